"""Numbers that may differ by group on a command line: `--max-epsilon 0.5`, or
`--max-epsilon f:0.5 --max-epsilon m:1`.

Groups are named as reports name them. Which value of the table a name stands for is known once rows
are there: `resolved`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..tables import keys

if TYPE_CHECKING:
    from .samples import Sample

Numbers = float | dict[str, float]


def numbers(option: str, texts: Sequence[str] | None) -> Numbers | None:
    """One number for all groups, or one for each that is named.

    >>> numbers("--max-epsilon", ["0.5"]), numbers("--max-epsilon", ["f:0.5", "m / a:1"])
    (0.5, {'f': 0.5, 'm / a': 1.0})
    """
    if not texts:
        return None
    if len(texts) == 1 and _number(texts[0]) is not None:
        return _number(texts[0])
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition(":")
        value = _number(number)
        if not name or value is None or name in found:
            remedy = f"Say {option} 0.5, or {option} f:0.5 {option} m:1, each group once."
            raise InputError.expected(
                "a number, or GROUP:NUMBER", of=option, got=text, remedy=remedy
            )
        found[name] = value
    return found


def resolved(
    given: Mapping[str, dict[str, float]], groups: str, sample: Sample
) -> dict[str, dict[Hashable, float]]:
    """Arguments of an estimator by the values that groups have in these rows."""
    if not given:
        return {}
    known = _groups(groups, sample)
    out: dict[str, dict[Hashable, float]] = {}
    for argument, named in given.items():
        unknown = [name for name in named if name not in known]
        if unknown:
            remedy = "Name groups as the audit's table does."
            option = f"--{argument.replace('_', '-')}"
            raise InputError.expected(
                f"groups out of {list(known)}", of=option, got=unknown, remedy=remedy, among=known
            )
        out[argument] = {known[name]: number for name, number in named.items()}
    return out


def _groups(groups: str, sample: Sample) -> dict[str, Hashable]:
    from ..estimators.reading import inputs
    from ..estimators.reading.training import ReadOptions

    rows = inputs.read(*sample.fit_arguments, None, ReadOptions()).rows
    if not rows.layout.sensitive:
        return {}
    listed: Any = rows.cells(groups).keys
    names = {keys.shown(key): key for key in listed}
    if len(names) < len(listed):
        remedy = (
            "Give the groups other names in the table, or fit in Python, where groups are values."
        )
        raise InputError.expected(
            "groups of different names", of="--sensitive", got=list(listed), remedy=remedy
        )
    return names


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
