"""The frame of the command line: help, refusals, names in errors, and how commands end."""

from __future__ import annotations

import ast
import errno
import inspect
import os
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv
from fairveil.cli import app, frame, main
from fairveil.cli.fields import METHODS, fields_of, knobs, parameters
from fairveil.cli.words import WORDS
from fairveil.errors import InputError, Overspent, SchemaError, complaint, together, within

ROOT = Path(__file__).parents[2]
SECRET = "Alice earns 41"
REFUSAL = re.compile(r"(?:error: [^\n]+\n)+hint: [^\n]+\n")


def leaves(command: Any = app, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    for name, inner in command.commands.items():
        called = f"{path} {name}".strip()
        if hasattr(inner, "called"):
            yield called, inner
        yield from leaves(inner, called) if hasattr(inner, "commands") else ()


LEAVES = dict(leaves())


# help


def test_the_list_of_commands_stands_under_themes(fairveil: Command) -> None:
    done = fairveil("--help")
    heads = re.findall(r"^(\w+):$", done.out, re.MULTILINE)
    assert heads[-5:] == list(frame.GROUPS)
    assert all(f"  {name} " in done.out for name in app.commands)
    assert len(app.commands) <= 18
    assert fairveil("-h").out == done.out
    bare = fairveil()
    assert (bare.code, bare.out) == (2, "")
    assert "Usage: fairveil" in bare.err


@pytest.mark.parametrize("name", LEAVES)
def test_help_is_short_or_long_and_every_option_has_words(name: str, fairveil: Command) -> None:
    long, short = fairveil(*name.split(), "--help"), fairveil(*name.split(), "-h")
    assert (long.code, short.code, long.err, short.err) == (0, 0, "", "")
    for param in LEAVES[name].params:
        shown = max(param.opts, key=len)
        if isinstance(param, click.Option) and not param.hidden:
            assert re.search(rf"{shown}(?![\w-])", long.out), shown
            listed = re.search(rf"^  (-o, )?{shown} ", short.out, re.MULTILINE) is not None
            assert listed == (param.name in LEAVES[name].usual), shown
            assert param.help
    assert "shows all options" in short.out
    assert len(short.out) < len(long.out) + 100
    assert all(example in short.out for example in LEAVES[name].examples)


def test_help_is_as_wide_as_the_terminal() -> None:
    shown = {}
    for width in ("60", "160"):
        done = subprocess.run(
            [sys.executable, "-m", "fairveil", "fit", "--help"],
            env=os.environ | {"COLUMNS": width},
            capture_output=True,
            text=True,
            check=True,
        )
        shown[width] = max(len(line) for line in done.stdout.partition("Examples")[0].splitlines())
    assert shown["60"] <= 60 < 100 < shown["160"] <= 160


def test_the_version(fairveil: Command) -> None:
    assert fairveil("-V").out == fairveil("--version").out == f"fairveil {fv.__version__}\n"


def test_one_word_means_one_thing() -> None:
    """Every row of the table is used, and an option that writes is `--out` everywhere."""
    declared = {
        (name, max(param.opts, key=len).removeprefix("--").upper() if not dashed else option)
        for name, command in LEAVES.items()
        for param in command.params
        for dashed in [isinstance(param, click.Option)]
        for option in [max(param.opts, key=len).removeprefix("--")]
    }
    used = {name for _, name in declared}
    for row in WORDS:
        command, _, name = row.rpartition(":")
        assert name in used, row
        assert not command or (command, name) in declared, row
    assert not {"output", "html", "svg", "target-file"} & used


# options are made from the fields


@pytest.mark.parametrize("method", METHODS)
def test_fields_are_those_of_the_estimator(method: str) -> None:
    """Names and defaults, as the class itself has them, which is not imported for it."""
    kind = getattr(fv, METHODS[method][1])
    found = {
        name: one for name, one in inspect.signature(kind).parameters.items() if name != "self"
    }
    known = parameters(method)
    assert list(known) == list(found)
    for name, one in found.items():
        if known[name].default:
            written = known[name].default.replace("``", "")
            assert ast.literal_eval(written) == one.default, name
        assert known[name].first
    for name, field in knobs(method).items():
        assert field.words, name


def test_options_of_fit_have_the_defaults_of_the_estimator() -> None:
    fit = {param.name: param for param in LEAVES["fit"].params}
    for name in ("epsilon", "delta", "protects"):
        field = parameters("primal-dual")[name]
        assert str(fit[name].default).strip('"') == field.default.strip('"')
    kinds = ("records", "records:replace-one", "sensitive-features")
    assert fit["protects"].type.choices == kinds


def test_help_of_a_method_lists_its_other_parameters(fairveil: Command) -> None:
    done = fairveil("fit", "--method", "tailored", "--help")
    for name in ("allocation", "by", "max_epsilon", "spend", "rounds", "share"):
        assert re.search(rf"^  {name}=", done.out, re.MULTILINE), name
    assert "  strength=" not in done.out
    assert "  strength=1.0" in fairveil("fit", "--method=fermi", "--help").out
    after = ("fit", "--method", "post-processing", "--help")
    assert "  interactions=" not in fairveil(*after).out
    assert "  interactions=" in fairveil(*after[:-1], "--model", "additive", "--help").out


def test_words_come_from_the_docstring() -> None:
    field = fields_of("fairveil.estimators.settings", "Fermi")["strength"]
    assert (field.kind, field.default) == ("float", "1.0")
    assert field.first == "Weight of the penalty; 0 is no penalty"


# refusals: before anything heavy, two lines, in the words of the caller


@pytest.fixture
def folder(schema: Path, tmp_path: Path) -> Path:
    write_csv(tmp_path / "t.csv", applicants(40, 1))
    schema.rename(tmp_path / "t.toml")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    return tmp_path


FIT = ("fit", "t.csv", "--schema", "t.toml")
NEW = (*FIT, "--out", "m")
REFUSALS: dict[tuple[str, ...], tuple[str, str]] = {
    ("fitt",): ("fitt: there is no such command", "Did you mean fit?"),
    ("ledger", "shwo"): ("shwo: there is no such command", "Did you mean show?"),
    ("fit",): ("TABLE: expected a value, got nothing", "fairveil fit --help"),
    (*FIT, "--ou", "m"): ("--ou: there is no such option", "Did you mean --out?"),
    (*NEW, "t.csv"): ("unexpected extra argument", "fairveil fit --help"),
    (*NEW, "--epsilon", "much"): ("--epsilon: expected a number, got 'much'", "--epsilon 1"),
    (*NEW, "--epsilon", "-1"): ("--epsilon: expected", "--epsilon inf asks for no privacy"),
    (*NEW, "--delta", "2"): ("--delta: expected", "--delta"),
    (*NEW, "--seed", "1.5"): ("--seed: expected a whole number", "--seed"),
    (*NEW, "--method", "taylored"): ("--method: expected", "Did you mean tailored?"),
    (*NEW, "--protects", "recods"): ("--protects: expected", "Did you mean records?"),
    (*NEW, "--constraint", "demografic_parity:0.1"): ("--constraint", "demographic_parity"),
    (*NEW, "--constraint", "demographic_parity:5"): (
        "--constraint: expected a bound",
        "500 percentage points",
    ),
    (*NEW, "--holdout", "1"): ("--holdout: expected a number in [0, 1)", "inside"),
    (*NEW, "--objective", "gmean"): ("--objective: expected nothing", "--method group-objective"),
    (*NEW, "--confidence", "0.95"): ("--confidence: expected --constraint", "--constraint"),
    (*NEW, "--method", "fermi", "--constraint", "equalized_odds", "--confidence", "0.9"): (
        "--confidence: expected --certify beside it",
        "--certify demographic_parity:5%",
    ),
    (*NEW, "--set", "rouns=5"): ("--set: expected a parameter of primal", "Did you mean rounds?"),
    (*NEW, "--set", "rounds"): ("--set: expected NAME=VALUE", "--set rounds=100"),
    (*NEW, "--set", "strength=5"): ("--set: expected a parameter of primal-dual", "--help"),
    (*NEW, "--set", "way=all"): ("--set way: expected --grid beside it", "--grid"),
    (*NEW, "--grid", "clip=1,2", "--holdout", "0.2"): ("--holdout: expected nothing", "--set"),
    (*NEW, "--grid", "karma=1,2"): ("--grid: expected a parameter", "--help lists them"),
    (*NEW, "--dataset", "people"): ("--dataset: expected a ledger beside it", "--ledger"),
    (*NEW, "--tuning", ""): ("--tuning: expected some words", "Say"),
    (*FIT, "--out", "there"): ("--out: expected a folder that is not there yet", "--force"),
    (*FIT, "--out", "there", "--force"): ("--out: expected a folder with estimator.json", "wrote"),
    (*FIT, "--out", "t.csv/deep"): ("--out: expected a folder", "write"),
    ("fit", "t.csv", "--out", "m"): ("--schema: expected the table's public", "schema init"),
    (*NEW, "--method", "fermi", "--constraint", "demographic_parity:5%"): (
        "--constraint: expected no bound",
        "--certify",
    ),
    ("plan", "--schema", "t.toml", "--shares", "sex"): ("--shares: expected", "sex=f:0.3"),
    ("plan", "--schema", "t.toml", "--out", "x.png"): ("--out: expected a file ending", ".html"),
    ("plan",): ("--schema: expected a value", "fairveil plan --help"),
    ("audit", "t.csv"): ("--prediction: expected one of", "--prediction"),
    ("certify", "there", "t.csv"): ("--epsilon: expected a privacy budget", "--epsilon inf"),
    ("monitor", "m", "--delta", "0.1"): (
        "--delta: expected --constraint beside it",
        "--constraint",
    ),
    ("monitor", "m", "t.csv"): ("--period: expected a value beside TABLE", "--period"),
    ("frontier", "t.csv", "--out", "m", "--gaps", "x"): ("--gaps: expected numbers", "0.1,0.05"),
    ("frontier", "t.csv", "--out", "m", "--gaps", "5"): (
        "--gaps: expected bounds",
        "500 percentage points",
    ),
    ("sign", "--new-key", "k", "--note", "x"): ("--new-key: expected --new-key alone", "sign"),
    ("export", "there", "--out", "x.py"): ("--out: expected a file ending in .sql, .md", ".sql"),
    ("serve",): ("--config: expected a value", "serve --help"),
    ("serve", "--config", "x.toml", "--port", "99999"): ("--port: expected a port", "8422"),
    ("ledger", "create", "new.db"): ("DATASET: expected a value", "--epsilon 1"),
    ("ledger", "show"): ("URL: expected an address", "FAIRVEIL_LEDGER"),
    ("release-groups", "t.csv"): ("--out: expected a value", "release-groups --help"),
    ("schema", "init", "t.csv", "--out", "x.json"): ("--out: expected a file ending", ".toml"),
    ("attack", "mine:fit"): ("--schema: expected a schema", "--schema FILE"),
}


@pytest.mark.parametrize("words", REFUSALS, ids=" ".join)
def test_a_refusal_is_two_lines_that_name_what_was_typed(
    words: tuple[str, ...], fairveil: Command, folder: Path
) -> None:
    before = sorted(folder.rglob("*"))
    done = fairveil(*words)
    assert (done.code, done.out) == (2, "")
    assert REFUSAL.fullmatch(done.err), done.err
    what, hint = done.err.splitlines()
    expected, fix = REFUSALS[words]
    assert expected.lower() in what.lower(), done.err
    assert fix in hint, done.err
    assert sorted(folder.rglob("*")) == before


EARLY = [words for words in REFUSALS if words[0] in ("fit", "plan", "audit", "certify")]
HEAVY = ("sklearn", "numba", "torch", "pandas", "scipy.optimize", "matplotlib")


def test_a_refused_option_loads_nothing_heavy(folder: Path) -> None:
    """All of them in one process: what one of them loads is found."""
    program = (
        "import json, sys\nfrom fairveil.cli.frame import status_of\n"
        f"for words in json.loads({__import__('json').dumps([list(one) for one in EARLY])!r}):\n"
        "    assert status_of(words) == 2, words\n"
        f"    found = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "    assert not found, (words, found)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def wrong(**more: Any) -> InputError:
    text = {"expected": "a number above 0", "of": "epsilon", "got": -1} | more
    return InputError(complaint(remedy=text.pop("remedy", "Pass epsilon=1.0, say."), **text))


def test_an_argument_becomes_its_option_where_the_command_has_it() -> None:
    assert frame.lines(wrong(), ["fit", "t.csv"]) == [
        "error: --epsilon: expected a number above 0, got -1.",
        "hint: Pass --epsilon 1.0, say.",
    ]
    assert frame.lines(wrong(), ["verify", "x"])[0].startswith("error: epsilon: expected")
    aliased = wrong(of="sensitive_features", remedy="Pass random_state=1.")
    assert frame.lines(aliased, ["fit"])[0].startswith("error: --sensitive: ")
    assert frame.lines(aliased, ["fit"])[1] == "hint: Pass --seed 1."
    knob = wrong(of="max_epsilon", remedy="Pass max_epsilon=0.5.")
    assert frame.lines(knob, ["fit"])[0].startswith("error: --set max_epsilon: ")


def test_several_things_have_a_line_each_and_hints_that_repeat_are_one() -> None:
    parts = [
        SchemaError(complaint(expected=f"fact {at}", of="kind", got=None, remedy="Edit it."))
        for at in range(3)
    ]
    whole = SchemaError(within("people.toml", together(parts)))
    said = frame.lines(whole, ["fit"])
    assert [line.split(":")[0] for line in said] == ["error", "error", "error", "hint"]
    assert all("people.toml" in line for line in said[:3])


def test_errors_survive_a_journey_between_processes() -> None:
    error = wrong(among=["d"])
    assert frame.lines(pickle.loads(pickle.dumps(error)), ["fit"]) == frame.lines(error, ["fit"])


def test_what_fits_a_budget_is_rounded_down() -> None:
    text = complaint(expected="room", of="ledger 'x'", got="0.9", remedy="Less.", quote=False)
    error = Overspent(text, spent=0.1, asked=0.9, left=0.8, largest_epsilon=0.81999)
    assert frame.lines(error, ["fit"])[1].endswith("--epsilon 0.819.")


def test_a_line_is_one_line_and_shows_no_password() -> None:
    said = frame.lines(wrong(of="--out", got="x\x1b[31m\ny", expected="a\nb"), ["fit"])
    assert len(said) == 2
    assert all(line.isprintable() for line in said)
    for error in (
        wrong(got="postgresql://me:hunter2@host/base"),
        OSError(2, "No", "a://u:hunter2@h/b"),
    ):
        assert "hunter2" not in "".join(frame.lines(error, ["fit"]))


def hints_to_install() -> Iterator[tuple[str, str]]:
    """Each text of the source that names an extra, with its place."""
    source = Path(fv.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if re.search(r"pip install .*fairveil\[\w+\]", node.value) and ">>>" not in node.value:
                yield f"{path.relative_to(source)}:{node.lineno}", node.value


def test_an_extra_is_printed_as_it_must_be_typed() -> None:
    """In Python and in the shell, and the extra is one of ours: whoever held the name that is left
    without its brackets would run code on machines of users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = dict(hints_to_install())
    assert len(found) >= 4
    for text in found.values():
        error = InputError.expected("a package", of="engine", got="none", remedy=text)
        for printed in (text, str(error), *frame.lines(error, ["fit"])[1:]):
            typed = re.findall(r"pip install (\S*fairveil\S*)", printed)
            assert typed, printed
            for name in typed:
                extra = re.fullmatch(r"'fairveil\[(\w+)\]'[.,]?", name)
                assert extra, printed
                assert extra[1] in project["optional-dependencies"], printed


# how a command ends


@pytest.fixture
def ending(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], int]:
    """The status of a command in which this happens."""
    monkeypatch.delenv(frame.DEBUG, raising=False)

    def run(error: BaseException) -> int:
        def broken(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr("fairveil.statement.document.examine", broken)
        return frame.status_of(["verify", __file__])

    return run


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, RecursionError, UnicodeError])
def test_guarantee_2_an_unexpected_error_is_told_without_its_words(
    kind: type[Exception],
    ending: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ending(kind(SECRET)) == 70
    told = capsys.readouterr().err
    assert told.startswith(f"error: internal error: {kind.__name__} (fairveil/cli/evidence.py:")
    assert told.count("\n") == 2
    assert "Alice" not in told
    monkeypatch.setenv(frame.DEBUG, "1")
    assert ending(kind(SECRET)) == 70
    assert "Alice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MemoryError(), 70, "error: not enough memory (fairveil/"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (InputError("epsilon: wrong"), 2, "error: epsilon: wrong\nhint: "),
        (OSError(errno.ENOSPC, "No space left"), 2, "error: No space left\nhint: Free space"),
        (frame.Ended(1), 1, ""),
        (frame.Ended(3), 3, ""),
    ],
)
def test_each_ending_has_its_status(
    error: BaseException,
    status: int,
    words: str,
    ending: Callable[[BaseException], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ending(error) == status
    told = capsys.readouterr().err
    assert told.startswith(words)
    assert bool(told) == bool(words)


def test_main_takes_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("fairveil ")


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A command line in a shell, with `fairveil` as this interpreter's."""
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    whole = f'fairveil() {{ "{sys.executable}" -m fairveil "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", whole], capture_output=True, env=given, check=False)


def test_guarantee_3_streams_that_are_gone_or_full(tmp_path: Path) -> None:
    done = shell(
        "fairveil --help | true; echo ${PIPESTATUS[0]}; fairveil --help >&-; echo $?;"
        "fairveil verify /nowhere 2>&-; echo $?; fairveil --help >/dev/full; echo $?"
    )
    assert done.stdout == b"141\n0\n2\n2\n"
    assert done.stderr.splitlines()[0] == b"error: No space left on device"
    (tmp_path / "t.csv").write_text(
        "\u03a9,y,p\n\u03b1,\u00e4,\u00e4\n\u03b2,b,b\n", encoding="utf-8"
    )
    table = f"{tmp_path}/t.csv --target y --prediction p --sensitive \u03a9"
    latin = {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = shell(f"fairveil audit {table}; echo $?; fairveil audit {table} --json", **latin)
    assert b"0\n{" in done.stdout, done.stderr
    assert rb"\u03b1" in done.stdout
