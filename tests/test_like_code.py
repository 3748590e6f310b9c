"""Few functions of the library are alike, by a rule that says what counts (`like_code`)."""

from __future__ import annotations

import ast
from textwrap import dedent, indent

from like_code import modules_of, pairs
from test_modules import SOURCES

MOST = 60

BODY = """
total = weigh(rows, 3)
for row in rows:
    total += row.size
    if total > limit:
        raise ValueError("too many")
return total / len(rows)
"""
RENAMED = (
    BODY.replace("total", "sum_").replace("rows", "lines").replace("3", "5").replace("many", "few")
)


def count(*texts: str) -> int:
    return len(pairs({f"m{at}": ast.parse(dedent(text)) for at, text in enumerate(texts)}))


def function(body: str, name: str = "f") -> str:
    return f"def {name}(rows, limit):\n{indent(body, '    ')}"


def test_few_functions_are_alike() -> None:
    """`python tests/like_code.py` lists them: let one function serve where two say the same. Two
    that look alike and mean other things may stay."""
    assert len(pairs(modules_of(SOURCES / "fairveil"))) <= MOST


def test_names_and_numbers_do_not_tell_code_apart() -> None:
    assert count(function(BODY), function(RENAMED)) == 1
    assert count(function(BODY), function(BODY), function(RENAMED)) == 3


def test_other_operations_do() -> None:
    assert count(function(BODY), function(BODY.replace("+=", "-=").replace(" / ", " * "))) == 0


def test_constructors_docstrings_and_short_runs_do_not_count() -> None:
    assert count(function(BODY, "__init__"), function(BODY, "__init__")) == 0
    words = '"""Of\nseveral\nlines\nof\nwords."""\na = 1\nb = 2\nreturn a'
    assert count(function(words), function(words)) == 0


def test_a_run_may_stand_twice_in_one_function() -> None:
    assert count(function(BODY + BODY)) == 1
