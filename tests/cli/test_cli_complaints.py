"""Errors in the shell's words: two lines, what and where, then what to type; nothing of Python."""

from __future__ import annotations

import ast
import pickle
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from people_who_do_not_exist import PYTHONISM

import fairveil
from fairveil.cli import completing
from fairveil.cli.complaints import lines
from fairveil.cli.shell_words import HINTS
from fairveil.data import Category, Number, Schema, encode
from fairveil.errors import InputError, Overspent, SchemaError, complaint, nearest, together, within


def said(error: Exception, *words: str) -> list[str]:
    return lines(error, list(words) or ["fit", "people.csv"])


def test_an_argument_becomes_its_option_and_a_way_out_of_python_one_of_the_shell() -> None:
    wrong = InputError(
        complaint(
            expected="a number above 0", of="epsilon", got=-1, remedy="Pass epsilon=1.0, say."
        )
    )
    assert said(wrong) == [
        "error: expected a number above 0, got -1 (--epsilon)",
        f"hint: {HINTS['--epsilon']}",
    ]


def test_a_way_out_that_is_no_python_is_kept() -> None:
    wrong = InputError(
        complaint(
            expected="a folder",
            of="--out",
            got="m",
            remedy="Name another, or replace it with --force.",
        )
    )
    assert said(wrong)[1] == "hint: Name another, or replace it with --force"


def test_a_code_that_is_written_in_another_way_has_a_way_out(tmp_path: Path) -> None:
    schema = Schema({"code": Category(("1", "2")), "x": Number(0, 1)})
    table = tmp_path / "t.csv"
    table.write_text("code,x\n1.0,0\n2.0,1\n")
    with pytest.raises(SchemaError) as caught:
        encode(str(table), schema, tmp_path / "t.store")
    what, hint = said(caught.value)
    assert "got another value (in 2 of the 2 rows" in what
    assert "list 1 as a number, without quotes" in hint
    assert "as `unknown`" in hint
    table.write_text("code,x\n1,0\n,1\n")
    with pytest.raises(SchemaError) as caught:
        encode(str(table), schema, tmp_path / "t.store")
    assert said(caught.value)[1].endswith("as `missing`, the value that a missing cell counts as")


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (None, "nothing"),
        (True, "true"),
        (["a", "b"], "a, b"),
        ("x", "'x'"),
        ({"target": "x"}, "target 'x'"),
        (1e-6, "1e-06"),
    ],
)
def test_what_came_is_said_without_python(got: object, words: str) -> None:
    wrong = InputError(complaint(expected="one of ['a', 'b']", of="strength", got=got, remedy=""))
    assert said(wrong)[0] == f"error: expected one of a, b, got {words} (--strength)"


def test_a_hint_names_what_is_like_it() -> None:
    wrong = InputError(
        complaint(
            expected="a method",
            of="method",
            got="taylored",
            remedy="Pass x.",
            among=completing.METHODS,
        )
    )
    assert said(wrong)[1] == "hint: did you mean --method tailored?"
    assert nearest("demografic_parity:0.1", completing.NOTIONS) == ("demographic_parity",)
    assert nearest("zzz", completing.NOTIONS) == ()


def test_several_things_have_a_line_each_and_the_parts_survive_what_is_around() -> None:
    parts = [
        SchemaError(complaint(expected=f"fact {at}", of="kind", got=None, remedy=""))
        for at in range(3)
    ]
    whole = SchemaError(within("people.toml", together(parts)))
    assert [line.split(":")[0] for line in said(whole)] == ["error", "error", "error", "hint"]
    assert all("people.toml" in line for line in said(whole)[:3])
    assert together(parts[:1]) is parts[0]


def test_the_parts_of_an_error_survive_a_journey_between_processes() -> None:
    wrong = InputError(complaint(expected="a", of="epsilon", got=[1], remedy="c", among=["d"]))
    assert said(pickle.loads(pickle.dumps(wrong))) == said(wrong)


def test_what_fits_is_rounded_down() -> None:
    text = complaint(
        expected="room",
        of="ledger 'x'",
        got="epsilon=0.9",
        remedy="The largest is epsilon=0.81999.",
        quote=False,
    )
    wrong = Overspent(text, spent=0.1, asked=0.9, left=0.8, largest_epsilon=0.81999)
    assert said(wrong)[1].endswith("--epsilon 0.819")
    assert not PYTHONISM.search("\n".join(said(wrong)))


def test_a_line_is_one_line_whatever_came() -> None:
    wrong = InputError(complaint(expected="a\nb", of="--out", got="x\x1b[31m\ny", remedy="c\nd"))
    assert len(said(wrong)) == 2
    assert all(line.isprintable() for line in said(wrong))


def test_the_measurement_sees_python() -> None:
    for words in (
        "Pass epsilon=1.0, say",
        'groups="marginal"',
        "Number(low, high)",
        "got None",
        "Schema.save()",
        "is True",
    ):
        assert PYTHONISM.search(words), words
    assert not PYTHONISM.search("--constraint equal_opportunity:0.1,positive=yes (a scale, a law)")


def hints_to_install() -> Iterator[tuple[str, str]]:
    """Each text of the source that names an extra, with its place."""
    source = Path(fairveil.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            place = f"{path.relative_to(source)}:{getattr(node, 'lineno', 0)}"
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if re.search(r"pip install .*fairveil\[\w+\]", node.value) and ">>>" not in node.value:
                yield place, node.value


HINTS_TO_INSTALL = dict(hints_to_install())


@pytest.mark.parametrize("place", HINTS_TO_INSTALL)
def test_an_extra_is_printed_as_it_must_be_typed(place: str) -> None:
    """In Python and in the shell, and the extra is one of ours: whoever held the name that is left
    without its brackets would run code on machines of users."""
    text = HINTS_TO_INSTALL[place]
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wrong = InputError.expected("a package", of="engine", got="none", remedy=text)
    for printed in (text, str(wrong), *lines(wrong)[1:]):
        typed = re.findall(r"pip install (\S*fairveil\S*)", printed)
        assert typed, printed
        for name in typed:
            found = re.fullmatch(r"'fairveil\[(\w+)\]'[.,]?", name)
            assert found, printed
            assert found[1] in project["optional-dependencies"], printed


def test_the_source_names_extras() -> None:
    assert len(HINTS_TO_INSTALL) >= 12
