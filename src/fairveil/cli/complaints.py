"""Errors in the shell's words: `error: what (where)`, then `hint: an option or a command to use`.

The library says what was expected of which argument, and the way out in Python. Its errors carry
these parts (`errors.Complaint`); here arguments become options, Python's values become words, and a
way out that only Python has is replaced by one of the command line.

Guarantees (tests/cli/test_cli_complaints.py, tests/cli/test_cli_fuzz.py):
1. No word of Python stands in what is printed: no `name="value"`, no call, no `None`, `True` or
   `Pass ...`.
2. A password in an address is not printed.
"""

from __future__ import annotations

import errno
import math
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from .._urls import without_password
from ..errors import LONGEST, Complaint, Complaints, FairveilError, Overspent
from . import colour
from .shell_words import ARGUMENTS, COMMANDS, GROUPS, HINTS, PYTHON, WAYS, WORDS


@dataclass(frozen=True)
class Said:
    """One error: what is wrong, where, and an option or a command that would do."""

    what: str
    where: str
    hint: str


class Refused(FairveilError):  # noqa: N818  # what happened
    """Words of the command line itself, refused: one thing or several."""

    def __init__(self, *said: Said) -> None:
        super().__init__("; ".join(f"{one.what} ({one.where})" for one in said))
        self.said = said


def lines(error: BaseException, words: list[str] | None = None) -> list[str]:
    """What standard error gets; `words`: what was typed after `fairveil`. A line a complaint; hints
    that repeat are one."""
    said = list(all_said(error, command_of(sys.argv[1:] if words is None else words)))
    out = []
    for at, one in enumerate(said):
        out.append(
            _headed("error", one.what if not one.where else f"{one.what} ({one.where})", "bad")
        )
        if at + 1 == len(said) or said[at + 1].hint != one.hint:
            out.append(_headed("hint", one.hint, "hint"))
    return out


def all_said(error: BaseException, command: str) -> Iterator[Said]:
    """Each thing that an error is about."""
    if isinstance(error, Refused):
        yield from error.said
        return
    if isinstance(error, OSError) and not isinstance(error, FairveilError):
        yield _of_system(error, command)
        return
    if isinstance(error, Overspent):
        yield _of_overspent(error, command)
        return
    text = error.args[0] if error.args else str(error)
    for part in text.parts if isinstance(text, Complaints) else (text,):
        yield (
            _of_complaint(part, command)
            if isinstance(part, Complaint)
            else Said(in_words(str(part)), "", _help(command))
        )


def _of_complaint(one: Complaint, command: str) -> Said:
    where = place(one.of)
    came = in_words(str(one.got)) if not one.quote else shown(one.got)
    came = came if len(came) <= LONGEST else f"{came[: LONGEST - 3]}..."
    remedy = one.remedy.strip()
    remedy = remedy if ". " in remedy else remedy.removesuffix(".")
    hint = next((way for start, way in WAYS.items() if one.expected.startswith(start)), remedy)
    if not hint or PYTHON.search(hint):
        named = where.split(",")[0]
        hint = HINTS.get(named, _help(command))
    if one.nearest:
        like = " or ".join(one.nearest)
        hint = (
            f"did you mean "
            f"{f'{where} {like}' if where.startswith('--') and ',' not in where else like}?"
        )
    return Said(
        without_password(f"expected {in_words(one.expected)}, got {came}"), where, in_words(hint)
    )


def _of_overspent(error: Overspent, command: str) -> Said:
    """What fits, rounded down."""
    largest, text = error.largest_epsilon, error.args[0]
    fits = math.floor(largest * 1000) / 1000 if largest < 1000 else largest
    if not fits:
        hint = "nothing of this kind fits any more: fairveil ledger show lists what was spent"
    elif command == "frontier":
        hint = (
            f"the largest epsilon that fits, of all models together, is {fits:g}: take fewer or "
            f"smaller --epsilons"
        )
    else:
        hint = f"the largest epsilon that fits is {fits:g}: --epsilon {fits:g}"
    if not isinstance(text, Complaint):
        return Said(in_words(str(text)), "", hint)
    return Said(
        f"expected {in_words(text.expected)}, got {in_words(str(text.got))}", place(text.of), hint
    )


def place(of: str) -> str:
    """Where something is wrong: the option of an argument, else as it is said.

    >>> place("max_gap"), place("column 'age', low"), place("--target")
    ('--constraint', "column 'age', low", '--target')
    """
    return ARGUMENTS.get(of, without_password(of))


def shown(got: object) -> str:
    """What came, in words.

    >>> shown(None), shown("karma"), shown(["a", "b"]), shown(True)
    ('nothing', "'karma'", 'a, b', 'true')
    """
    if got is None:
        return "nothing"
    if isinstance(got, bool):
        return str(got).lower()
    if isinstance(got, float):
        return f"{got:.6g}"
    if isinstance(got, str):
        return in_words(got) if " " in got.strip() else f"'{_printable(got)}'"
    if isinstance(got, Mapping):
        return "; ".join(f"{key} {shown(value)}" for key, value in got.items()) or "nothing"
    if isinstance(got, list | tuple | set | frozenset):
        return (
            ", ".join(_printable(one) if isinstance(one, str) else shown(one) for one in got)
            or "nothing"
        )
    return _printable(str(got)) if isinstance(got, int) else f"a {type(got).__name__.lower()}"


def in_words(text: str) -> str:
    """A text of the library without Python's lists, values and names.

    >>> in_words("columns out of ['age', 'sex']")
    'columns out of age, sex'
    >>> in_words("pip install 'fairveil[serve]'")
    "pip install 'fairveil[serve]'"
    """
    text = re.sub(r"(?<!\w)\[((?:'[^']*'|\"[^\"]*\"|[^\[\]'\"]*)*)\]", _listed, text)
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    return _printable(
        re.sub(
            r"\b(?:Demographic|Equal|Equalized|False|ErrorRate|Bounded|Rate)[A-Z]\w+\b",
            _uncamelled,
            text,
        )
    )


def _uncamelled(match: re.Match[str]) -> str:
    """The name of a class of notions as the command line has it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", match.group(0)).lower()


def _listed(match: re.Match[str]) -> str:
    inside = match.group(1)
    if re.fullmatch(r"\s*-?[\w.]+, ?-?[\w.]+\s*", inside) and "'" not in inside:  # an interval
        return match.group(0)
    return (
        re.sub(r"'([^']*)'|\"([^\"]*)\"", lambda one: one.group(1) or one.group(2) or "", inside)
        or "nothing"
    )


def _of_system(error: OSError, command: str) -> Said:
    what = error.strerror or in_words(str(error))
    where = "" if error.filename is None else without_password(str(error.filename))
    hints = {
        errno.ENOSPC: "free space on that disk, or name another place with --out",
        errno.EACCES: "name a place where you may read and write",
        errno.ENOENT: "look for its name",
    }
    return Said(what, where, hints.get(error.errno or 0, _help(command)))


class _Usage(Protocol):
    """What click's errors of usage have. Newer versions of typer bring their own click along."""

    message: str
    ctx: Any


def of_usage(error: Exception, words: list[str]) -> Refused:
    """What the framework says of words that it cannot read."""
    from ..errors import nearest

    command = command_of(words)
    usage = cast(_Usage, error)
    message = str(usage.message or error)
    where, near = "", []
    context = usage.ctx
    if (option := getattr(error, "option_name", None)) is not None:
        there = (
            [name for one in context.command.params for name in one.opts]
            if context is not None
            else []
        )
        near, where = list(nearest(option, there)), option
        message = "there is no such option" if "such option" in message else message
    elif (name := re.match(r"No such command '([^']*)'", message)) is not None:
        near = list(
            nearest(
                name.group(1),
                getattr(context.command, "commands", ()) if context is not None else (),
            )
        )
        message, where = "there is no such command", name.group(1)
        command = command if command in GROUPS else ""
    elif (param := getattr(error, "param", None)) is not None:
        where = (
            max(param.opts, key=len)
            if param.param_type_name == "option"
            else str(param.name).upper()
        )
        if type(error).__name__ == "MissingParameter":
            message = "expected a value, got nothing"
    if (
        extra := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message)
    ) is not None:
        message, where = "expected no more words", extra.group(1)
    for kind, expected in (
        ("valid number", "a number"),
        ("valid float", "a number"),
        ("valid integer", "a whole number"),
    ):
        message = f"expected {expected}" if kind in message else message
    message = message[:1].lower() + message[1:].rstrip(".")
    hint = f"did you mean {' or '.join(near)}?" if near else HINTS.get(where, _help(command))
    return Refused(Said(in_words(without_password(message)), without_password(where), hint))


def command_of(words: list[str]) -> str:
    """The command that was typed, for a hint.

    >>> (
    ...     command_of(["ledger", "show", "budget.db"]),
    ...     command_of(["fit", "people.csv"]),
    ...     command_of([]),
    ... )
    ('ledger show', 'fit', '')
    """
    named = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
    return (
        " ".join(named)
        if named and named[0] in GROUPS
        else "".join(named[:1])
        if words[:1] == named[:1]
        else ""
    )


def _help(command: str) -> str:
    known = command if command in (*COMMANDS, *GROUPS) else command.partition(" ")[0]
    return " ".join(
        ("fairveil", *(known.split() if known in (*COMMANDS, *GROUPS) else ()), "--help")
    )


def _headed(head: str, text: str, style: str) -> str:
    return f"{colour.painted(f'{head}:', style, sys.stderr)} {_printable(text)}"


def _printable(text: str) -> str:
    """On one line: a terminal obeys some letters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
