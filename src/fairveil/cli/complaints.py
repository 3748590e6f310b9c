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

from .._urls import without_password
from ..errors import LONGEST, Complaint, Complaints, FairveilError, Overspent
from . import colour

GROUPS = ("attribute", "data", "door", "ledger", "schema")
COMMANDS = (
    *(
        "fit",
        "tune",
        "predict",
        "audit",
        "audit-privacy",
        "certify",
        "monitor",
        "frontier",
        "release-groups",
        "encode",
        "plan",
        "verify",
        "sign",
        "export",
        "card",
        "statement",
        "demo",
        "serve",
        "attribute release",
        "attribute check",
        "attribute rates",
        "data list",
        "data get",
        "data describe",
    ),
    *(
        "door token",
        "door tokens",
        "door revoke",
        "door runs",
        "door stop",
        "ledger create",
        "ledger show",
        "ledger history",
        "ledger check",
        "ledger export",
        "ledger import",
        "schema init",
        "schema check",
    ),
)
ARGUMENTS: Mapping[str, str] = {
    "random_state": "--seed",
    "sensitive_features": "--sensitive",
    "unsafe_data_dependent_bounds": "--unsafe-data-dependent-bounds",
    "param_distributions": "--grid",
    "roles": "--target, --sensitive, --ignore",
    "X": "TABLE",
    "client": "--scheduler",
    "y": "--target",
    **dict.fromkeys(
        ("constraint", "constraints", "max_gap", "max_rate", "max_loss", "bound"), "--constraint"
    ),
    **{name: f"--constraint, {name}" for name in ("positive", "compare", "loss")},
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *(
                "epsilon",
                "delta",
                "protects",
                "neighbours",
                "public_rows",
                "holdout",
                "seed",
                "seeds",
                "gaps",
                "epsilons",
            ),
            *("unit", "max_rows_per_unit"),
            *(
                "target",
                "sensitive",
                "ignore",
                "notion",
                "strength",
                "objective",
                "search",
                "decisions",
                "allocation",
                "spend",
            ),
            *(
                "group_loss_bound",
                "min_epsilon",
                "max_epsilon",
                "groups",
                "method",
                "tuning",
                "earlier_releases",
                "purpose",
            ),
            *("as", "table", "keep", "certificate", "facts"),
            *(
                "scoring",
                "way",
                "runs",
                "grid",
                "minutes",
                "trials",
                "confidence",
                "certify",
                "certify_share",
                "if_refused",
                "intervals",
                "depth",
            ),
            *("false_alarm", "classes", "period", "if_refused"),
            *(
                "kind",
                "order",
                "production",
                "note",
                "query",
                "randomised",
                "predict_method",
                "group_aware",
                "rows",
                "shares",
            ),
        )
    },
}
"""Arguments of the library that an option stands for."""

HINTS: Mapping[str, str] = {
    "--as": "fairveil export, card and statement --help list what it may be",
    "--epsilon": "--epsilon 1, or --epsilon inf for a model that is not private",
    "--delta": "--delta 1e-6: well below one over the number of rows",
    "--protects": "--protects records, or --protects sensitive-features",
    "--neighbours": "--neighbours add-remove, or --neighbours replace-one",
    "--public-rows": "--public-rows 5000, or leave it out",
    "--unit": "--unit COLUMN: the column that tells persons apart",
    "--max-rows-per-unit": "--max-rows-per-unit 12: a public number, never the largest among the "
    "rows",
    "--holdout": "--holdout 0.25",
    "--scheduler": "--scheduler tls://scheduler:8786, or --scheduler local for workers of this "
    "machine",
    "--seed": "--seed 0, or leave it out for secure noise",
    "--seeds": "--seeds 5, or leave it out for one model a point",
    "--gaps": "--gaps 0.2,0.1,0.05",
    "--epsilons": "--epsilons 0.5,1,3",
    "--constraint": "--constraint demographic_parity:0.05; fairveil fit --help lists the names",
    "--notion": "--notion demographic_parity",
    "--strength": "--strength 1",
    "--objective": "--objective gmean; fairveil fit --help lists the names",
    "--method": "--method rate-constrained",
    "--groups": "--groups product, or --groups marginal",
    "--target": "--target COLUMN",
    "--sensitive": "--sensitive COLUMN: the column that makes the groups",
    "--min-epsilon": "--min-epsilon 0.1",
    "--max-epsilon": "--max-epsilon 1",
    "--group-loss-bound": "--group-loss-bound 0.5",
    "--allocation": "--allocation least-noise",
    "--confidence": "--confidence 0.95",
    "--certify": "--certify demographic_parity:10%, with --method fermi or tailored",
    "--certify-share": "--certify-share 0.3, beside --confidence 0.95",
    "--if-refused": "--if-refused replace, or --if-refused keep",
    "--intervals": "--intervals each, or --intervals all",
    "--depth": "--depth 2, or leave it out",
    "--group": "--group sex:f,m: a column and its values, which are public",
    "--classes": "--classes 0,1",
    "--false-alarm": "--false-alarm 0.05",
    "--period": "--period 2026-05",
    "--kind": "--kind renyi, gaussian, zcdp or pure",
    "--order": "--order 8, or leave it out",
    "--scoring": "--scoring error, gap or lagrangian",
    "--way": "--way auto, selection or all",
    "--runs": "--runs 10, or leave it out",
    "--minutes": "--minutes 10",
    "--trials": "--trials 500, or leave it out",
    "--rows": "--rows 10000: about how many there will be",
    "--shares": "--shares sex=f:0.3,m:0.7: a share for each value of a sensitive column, or of the "
    "target",
}
"""Ways out on the command line, for arguments whose way out the library says in Python."""

WAYS: Mapping[str, str] = {
    "the package onnx": 'pip install "fairveil[export]", or --as sql, or --as python',
    "a model that can be written in another language": "fairveil predict DIR TABLE decides rows by "
    "any saved model",
    "the file of a ledger": "fairveil ledger create budget.db NAME --epsilon 1 --delta 1e-6",
    "a delta above 0": "--delta 1e-6; a delta of 0 needs --method group-objective --search "
    "exponential",
    "a convex objective": "--constraint gini:0.1 bounds it, and --objective error is minimized",
    "an objective, or a name": "--objective gmean; a bound is a --constraint gmean:0.3",
    "the files ": "--path DIR, the folder that holds them; or set FAIRVEIL_DATA to it",
    "a Schema": "--schema schema.toml: the public facts of the table",
    "a schema file": "fairveil schema init TABLE --out schema.toml",
}
"""Ways out, by how what was expected begins, where the library's way is one of Python."""

WORDS = (
    (r"'([\w-]+)'(?= or |$)", r"\1"),
    (r"\b(epsilon|delta)=(?=[\d.])", r"\1 "),
    (r"\bsensitive_features\b", "sensitive-features"),
    (r"\bNone\b", "nothing"),
    (r"\bTrue\b", "true"),
    (r"\bFalse\b", "false"),
)
PYTHON = re.compile(
    r"\bPass\b|\b(?:None|True|False)\b|(?<![,\w])\w+=|\w\(|\b(?:fairveil|fv|data|losses|np)\.\w|\b[A-Z]\w+\.[a-z]|\bestimator\b|`\w+_`"
)
"""What marks a way out as one of Python."""


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
    """
    text = re.sub(r"\[((?:'[^']*'|\"[^\"]*\"|[^\[\]'\"]*)*)\]", _listed, text)
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


def of_usage(error: Exception, words: list[str]) -> Refused:
    """What the framework says of words that it cannot read."""
    from ..errors import nearest

    command = command_of(words)
    message = str(getattr(error, "message", "") or error)
    where, near = "", []
    context = getattr(error, "ctx", None)
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
