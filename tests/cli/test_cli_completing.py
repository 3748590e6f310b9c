"""What shells complete: words that the library knows, by scripts that typer writes; and what
`--help` shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import fairveil
from fairveil.cli import app, completing, method_options, method_reads, methods, shell_words
from fairveil.errors import InputError
from fairveil.fairness import notions, objectives
from fairveil.learning import allocation as tailoring
from fairveil.learning.lagrangian import fermi


def test_the_words_are_the_librarys() -> None:
    assert set(completing.NOTIONS) == set(notions.NOTIONS) - {"rate_constraint"}
    assert set(completing.METHODS) == set(methods.METHODS)
    assert set(completing.PENALISED) == set(fermi.NOTIONS)
    assert set(completing.ALLOCATIONS) == set(tailoring.ALLOCATIONS)
    assert set(completing.SPENDS) == set(tailoring.SPENDS)
    assert set(completing.SEARCHES) == set(method_options.SEARCHES)
    assert set(completing.DECISIONS) == set(method_options.NAMED)
    assert completing.ANSWERS == method_options.ANSWERS
    for name in completing.OBJECTIVES:
        assert objectives.parse_objective(name)


def completed(words: str) -> list[str]:
    """What bash is told, by the console script."""
    given = {
        **os.environ,
        "PYTHONPATH": str(Path(fairveil.__file__).parents[1]),
        "_FAIRVEIL_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "fairveil"], capture_output=True, text=True, env=given, check=False
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fairveil fit t.csv --method po", ["post-processing"]),
        ("fairveil fit t.csv --constraint equal_", ["equal_opportunity:"]),
        ("fairveil fron", ["frontier"]),
    ],
)
def test_a_shell_completes_methods_notions_and_commands(words: str, found: list[str]) -> None:
    assert completed(words) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    given = {
        **os.environ,
        "PYTHONPATH": str(Path(fairveil.__file__).parents[1]),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    command = [sys.executable, "-m", "fairveil", "--show-completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, env=given, check=False)
    assert done.returncode == 0, done.stderr
    assert "_FAIRVEIL_COMPLETE" in done.stdout
    assert "fairveil" in done.stdout


# Help


def leaves() -> list[tuple[str, Any]]:
    root: Any = typer.main.get_command(app)
    return [
        (f"{name} {part}".strip(), leaf)
        for name, one in root.commands.items()
        for part, leaf in (one.commands.items() if hasattr(one, "commands") else [("", one)])
    ]


def helped(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["fairveil", *command.split(), "--help"])
    with pytest.raises(SystemExit):
        fairveil.cli.main()
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["fit", "tune"])
@pytest.mark.parametrize("method", completing.METHODS)
def test_help_beside_a_method_has_the_options_that_it_reads(
    command: str, method: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = helped(command, monkeypatch, capsys)
    for words in (f"{command} --method {method}", f"{command} --method={method}"):
        shown = helped(words, monkeypatch, capsys)
        for name in (option for reads in method_reads.READS.values() for option in reads):
            option = rf"^  --{name.replace('_', '-')}(?![\w-])"
            there = re.search(option, shown, re.MULTILINE) is not None
            known = re.search(option, whole, re.MULTILINE) is not None
            assert there == (known and name in method_reads.READS[method]), name


@pytest.mark.parametrize("method", completing.METHODS)
def test_an_option_that_a_method_does_not_read_is_refused(method: str) -> None:
    given = {"strength": 1.0, "confidence": 0.9, "certify_share": 0.3}
    truths = ("randomised", "group_aware")
    lists = ("constraint", "allocation", "group_loss_bound", "min_epsilon", "max_epsilon")
    for name in method_reads.unread(method):
        value = True if name in truths else given.get(name, "x")
        wishes = method_options.FitOptions(
            **{name: ["demographic_parity:0.1"] if name in (*lists, "certify") else value}
        )
        with pytest.raises(InputError, match=f"--{name.replace('_', '-')}"):
            methods.METHODS[method].asked(wishes)


@pytest.mark.parametrize("command", [name for name, _ in leaves()])
def test_help_fits_eighty_columns_and_has_three_examples(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = helped(command, monkeypatch, capsys)
    assert shown.startswith(f"Usage: fairveil {command} ")
    assert max(map(len, shown.splitlines())) <= 80
    examples = re.findall(
        rf"^  (fairveil {command}\b.*)$", shown.partition("Examples:")[2], re.MULTILINE
    )
    assert len(examples) >= (1 if command == "data list" else 3)
    assert not re.search(r"<\w+(\[\w+\])?>|\[default: \(", shown)


@pytest.mark.parametrize("command", [name for name, _ in leaves()])
def test_the_examples_are_words_that_the_command_takes(command: str) -> None:
    """Every option of an example is one of the command, and as many arguments stand there as it has
    at most."""
    import shlex

    leaf = dict(leaves())[command]
    for example in type(leaf).examples:
        words = shlex.split(example)[1 + len(command.split()) :]
        context = leaf.make_context(command, list(words))
        assert context.params


def test_options_stand_in_panels_by_theme_and_method(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = helped("fit", monkeypatch, capsys)
    heads = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert heads[:3] == ["Data", "Fairness", "Method"]
    for panel, option in {
        "Method tailored": "--max-epsilon",
        "Method fermi": "--strength",
        "Privacy": "--epsilon",
    }.items():
        assert (
            option
            in re.split(
                r"^\S.*:$", shown.partition(f"{panel}:\n")[2], maxsplit=1, flags=re.MULTILINE
            )[0]
        )


def test_commands_for_hints_are_those_that_there_are() -> None:
    assert {name for name, _ in leaves()} <= set(shell_words.COMMANDS)
