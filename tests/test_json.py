"""The one reader of JSON and TOML: each of its three guarantees, with what is refused and what is
not."""

from __future__ import annotations

import json
import random
import string

import pytest

from fairveil._json import DEEPEST, Document, Node, shown
from fairveil.errors import InputError, LedgerError

HERE = Document("a file", "Write it anew.")


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"a": 1, "a": 1}',
            '{"x": {"b": 1, "b": 2}}',
            "NaN",
            "[Infinity]",
            "-Infinity",
            "1e999",
            "-1e400",
        ),
        *(
            "9" * 21,
            "-" + "9" * 20,
            f"[{'9' * 5000}]",
            r'"\ud800"',
            r'{"\udfff": 1}',
            "",
            "{",
            "[1,]",
            "1 2",
            "\x00",
            "'a'",
        ),
        *(
            "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
            '{"a":' * 100_000,
            "[" * 100_000,
            "\ud800",
            b"\xff",
            b"\xef\xbb\xbf[]",
        ),
    ],
)
def test_guarantees_1_and_2_what_is_refused(text: str | bytes) -> None:
    with pytest.raises(InputError, match=r"^a file: expected .* got .* Write it anew\.$"):
        HERE.json(text)


@pytest.mark.parametrize("given", [None, 3, [], {}, bytearray(b"{}")])
def test_only_text_is_read(given: object) -> None:
    with pytest.raises(InputError, match="expected text"):
        HERE.json(given)


def test_what_json_wrote_reads_back() -> None:
    draw = random.Random(3)
    for _ in range(200):
        value = _value(draw, 4)
        assert HERE.json(json.dumps(value)) == value
        assert HERE.json(json.dumps(value, ensure_ascii=False).encode()) == value
    deep: object = 1
    for _ in range(DEEPEST):
        deep = [deep]
    assert HERE.json(json.dumps(deep)) == deep


def _value(draw: random.Random, depth: int) -> object:
    kind = draw.randrange(7 if depth else 5)
    if kind == 5:
        return [_value(draw, depth - 1) for _ in range(draw.randrange(4))]
    if kind == 6:
        return {_text(draw): _value(draw, depth - 1) for _ in range(draw.randrange(4))}
    return (
        None,
        True,
        draw.randint(-(2**63), 2**63 - 1),
        draw.uniform(-1e300, 1e300),
        _text(draw),
    )[kind]


def _text(draw: random.Random) -> str:
    return "".join(draw.choice(string.printable + '[]{}"\\é😀') for _ in range(draw.randrange(12)))


def test_brackets_inside_of_texts_are_no_levels() -> None:
    text = json.dumps(["[" * 5000, '"' + "{" * 5000, "\\" * 999 + "[" * 999])
    assert len(HERE.json(text)) == 3


@pytest.mark.parametrize("text", ['"' + '\\"' * 200_000, '"\\' * 200_000, '["' + "\\" * 200_001])
def test_texts_without_an_end_are_looked_at_once(text: str) -> None:
    """With a step back at every quotation mark these would take the square of their length:
    hours."""
    with pytest.raises(InputError):
        HERE.json("[" * DEEPEST + "[" + text)


def test_a_larger_document_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Document("a file", "", LedgerError, largest=10)
    monkeypatch.setattr("fairveil._json.JSONDecoder", None)  # parsing would fail otherwise
    with pytest.raises(LedgerError, match="at most 10 characters, got '11'"):
        small.json("[" + " " * 9 + "]")


def test_no_message_repeats_a_file() -> None:
    name = json.dumps("k" * 9000)
    for text in (json.dumps("x" * 10_000) + "]", f"{{{name}: 1, {name}: 1}}", "1" * 9000):
        with pytest.raises(InputError) as caught:
            HERE.json(text)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a = inf",
            "a = nan",
            "a = 1e999",
            f"a = {'9' * 5000}",
            f"a = {'9' * 25}",
            "a = 1\na = 2",
            "a = ",
            "[a\n",
        ),
        *(
            f"{'a.' * 50}a = 1",
            f"[{'a.' * 50}a]",
            f"{'x y'!r}" + '."x y"' * 60 + " = 1",
            f"a = {'[' * 900}",
        ),
        *(
            f"a = {'{b = ' * 300}1{'}' * 300}",
            "\ud800",
            b"\xff",
            '# a "quotation mark\na = ' + "[" * 900 + "]" * 900,
        ),
    ],
)
def test_toml_is_read_as_strictly(text: str | bytes) -> None:
    with pytest.raises(InputError, match="a file"):
        HERE.toml(text)


def test_toml_that_is_read() -> None:
    assert HERE.toml('a = 1.5\nb.c = ["x", "1.2.3.4.5"]\n[d]\ne = -3\n') == {
        "a": 1.5,
        "b": {"c": ["x", "1.2.3.4.5"]},
        "d": {"e": -3},
    }


def node(value: object) -> Node:
    return HERE.node(json.dumps({"x": {"y": [value]}}))["x"]["y"].list()[0]


@pytest.mark.parametrize(
    ("ask", "good", "bad"),
    [
        (Node.text, ["", "a"], [1, None, ["a"], {}, True]),
        (Node.texts, [[], ["a"]], ["ab", ["a", 1], {}, None, [["a"]]]),
        (Node.truth, [True, False], [0, 1, "true", None, []]),
        (Node.whole, [0, 5, 2**63 - 1], [-1, 3.0, True, "3", None, [3], 2**63]),
        (Node.number, [0, -1.5, 3], ["3", True, None, [3.0], "inf", {}]),
        (Node.numbers, [[], [1.5, 2], [1.5]], [3, [1.5, "2"], [1.5, None], [True], "12", [[1.5]]]),
        (Node.mapping, [{}, {"a": 1}], [[], None, "a"]),
        (Node.list, [[], [1]], [{}, "ab", None]),
    ],
)
def test_guarantee_3_a_value_comes_as_the_type_that_was_asked_for(ask, good, bad) -> None:  # type: ignore[no-untyped-def]
    for value in good:
        ask(node(value))
    for value in bad:
        with pytest.raises(InputError, match=r"^a file, x\.y\[0\]"):
            ask(node(value))


def test_fields_and_words() -> None:
    x = HERE.node('{"a": 1, "b": null, "c": "inf", "d": [1, "nan", "-inf"]}')
    assert x["b"].is_null
    assert x["c"].number(words=True) == float("inf")
    assert repr(x["d"].numbers(words=True)) == "(1.0, nan, -inf)"
    assert x.only("abcd") is x
    for wrong in (
        lambda: x["z"],
        lambda: x.only("abc"),
        lambda: x.only("abcdz"),
        lambda: x["d"].list(2),
        lambda: x["a"]["b"],
    ):
        with pytest.raises(InputError, match="a file"):
            wrong()
    with pytest.raises(InputError, match=r"a file, c: expected one of 'x', 'y', got 'inf'"):
        x["c"].one_of(("x", "y"))
    with pytest.raises(InputError, match=r"d\[1\]: expected a number"):
        x["d"].numbers()


def test_a_line_that_was_cut_short_says_its_first_value() -> None:
    text = '{"event":{"kind":"pure"},"num'
    assert HERE.beginning(text, len('{"event":')) == (
        {"kind": "pure"},
        len('{"event":{"kind":"pure"}'),
    )
    with pytest.raises(InputError):
        HERE.beginning('{"event":{"kind"', len('{"event":'))


def test_what_came_is_told_in_few_words() -> None:
    assert shown("a" * 500) == repr("a" * 120)[:-1] + "...'"
    assert shown([[0.0]] * 99) == "a list of 99"
    assert shown({"a": 1}) == "an object with ['a']"
    assert shown(["a"]) == "['a']"
    assert shown(None) == "null"
