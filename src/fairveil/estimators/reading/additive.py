"""`Additive`: the model that is a sum of steps and lines, one a number; which columns have them,
and where their edges lie.

Edges are public always: declared (`Number(low, high, edges=...)`), or made from declared bounds,
or, where no bounds are known, the same for every column. Why none are released:
docs/additive_models.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...data.encoding import Affine
from ...errors import InputError, NoSteps
from ...facts import RowLayout, Schema
from ...facts.columns import Number
from .coding import Coding, SchemaCoding, TableCoding
from .shapes import Shapes, Side

NAME = "additive"
WORDS = "'linear', 'additive', an Additive"
BINS = 16
HALVINGS = 8
"""How often the part of a range that is next to zero (or to the end next to zero) is cut in half
again: columns of money have most of their rows there. A part where nobody is costs next to nothing:
docs/additive_models.md."""
ANYWHERE = tuple(
    sorted({0.0, *(sign * 2.0 ** (power / 2) for power in range(-20, 41) for sign in (-1.0, 1.0))})
)
"""Edges of a number whose bounds are not known: zero, and two an octave from 0.001 to a million on
either side."""
MANY = 32
ROWS_A_NUMBER = 300
"""A table of more numbers than `MANY` gets steps only where so many rows a number are known to be
there."""
MOST_BINS = 256
COARSE = 8
MOST_SIDE = 33
MOST_CELLS = 4_096


@dataclass(frozen=True)
class Additive:
    """Model that is a sum over columns: of each number a line and steps, of each category a term.

    Parameters
    ----------
    bins : int, default=16
        Number of equal parts that a declared range is cut into. The part next to zero, or to the
        end next to zero, is halved eight times more. A column with declared edges
        (`Number(low, high, edges=...)`) has those.
    columns : tuple of str, default=None
        Names of the numbers that get steps. None: all. A table with more than 32 numbers and fewer
        than 300 known rows a number gets none, and a warning says so.
    interactions : tuple of pairs of str, default=()
        Pairs of columns whose combinations get a term each.

    See Also
    --------
    FairClassifier : Takes it as `model`.

    Examples
    --------
    >>> Additive(interactions=[("age", "hours")])
    Additive(bins=16, columns=None, interactions=(('age', 'hours'),))
    """

    bins: int = BINS
    columns: tuple[str, ...] | None = None
    interactions: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if _checks.whole(bins=self.bins, at_least=2) > MOST_BINS:
            raise InputError.expected(
                f"at most {MOST_BINS}",
                of="bins",
                got=self.bins,
                remedy="Pass bins=16, for example.",
            )
        if self.columns is not None:
            _checks.normalise(self, columns=_names(self.columns, "columns"))
        pairs: Any = self.interactions
        if isinstance(pairs, str) or not isinstance(pairs, Sequence):
            _refuse_pairs(pairs)
        _checks.normalise(self, interactions=tuple(map(_pair, pairs)))

    def to_dict(self) -> dict[str, Any]:
        """Describe it as plain values, for `from_dict`.

        Returns
        -------
        dict
            Plain values.
        """
        columns = None if self.columns is None else list(self.columns)
        return {
            "bins": self.bins,
            "columns": columns,
            "interactions": [list(pair) for pair in self.interactions],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Additive:
        """Read what `to_dict` gives.

        Parameters
        ----------
        values : mapping
            Plain values.

        Returns
        -------
        Additive
            The description.
        """
        unknown = sorted(set(values) - {"bins", "columns", "interactions"})
        if unknown:
            remedy = "Save the estimator again."
            raise InputError.expected(
                "bins, columns and interactions", of="model", got=unknown, remedy=remedy
            )
        return Additive(**values)

    def shapes(self, coding: Coding, layout: RowLayout, rows: int | None) -> Shapes | None:
        """Steps of rows of this coding.

        Parameters
        ----------
        coding : Coding
            How the table is coded.
        layout : RowLayout
            Columns of the coded rows.
        rows : int or None
            Number of rows, where that is public.

        Returns
        -------
        Shapes or None
            The steps; None where there are to be none.
        """
        numbers, categories = _columns_of(coding, layout)
        steps = tuple(
            self._steps(name, place, scale, declared)
            for place, (name, scale, declared) in enumerate(numbers)
        )
        if self.columns is not None:
            _require_known(self.columns, [side.name for side in steps], "columns")
            steps = tuple(side for side in steps if side.name in self.columns)
        elif len(steps) > MANY and (rows is None or rows < ROWS_A_NUMBER * len(steps)):
            declared_alone = {name for name, _, declared in numbers if declared is not None}
            if not declared_alone:
                _warn_of_many(len(steps))
            steps = tuple(side for side in steps if side.name in declared_alone)
        steps = tuple(side for side in steps if side.edges)
        sides = {
            name: self._side(name, place, scale, declared)
            for place, (name, scale, declared) in enumerate(numbers)
        }
        sides |= {
            name: Side(name, place, values=values)
            for place, (name, values) in enumerate(categories)
        }
        pairs = tuple(self._crossed(pair, sides) for pair in self.interactions)
        return Shapes(steps, pairs) if steps or pairs else None

    def _steps(
        self, name: str, place: int, scale: Affine | None, declared: tuple[float, ...] | None
    ) -> Side:
        if scale is None:
            return Side(name, place, ANYWHERE, ANYWHERE, along=True)
        return _side(
            name,
            place,
            scale,
            _parts(scale, self.bins, HALVINGS) if declared is None else _coded(declared, scale),
        )

    def _side(
        self, name: str, place: int, scale: Affine | None, declared: tuple[float, ...] | None
    ) -> Side:
        """Of a pair: coarser."""
        if scale is None:
            every = ANYWHERE[2::4]
            return Side(name, place, every, every)
        edges = (
            _parts(scale, min(COARSE, self.bins), 2)
            if declared is None
            else _thinned(_coded(declared, scale))
        )
        return _side(name, place, scale, edges)

    def _crossed(self, pair: tuple[str, str], sides: Mapping[str, Side]) -> tuple[Side, Side]:
        _require_known(pair, list(sides), "interactions")
        one, other = (sides[name] for name in pair)
        if one.size * other.size > MOST_CELLS:
            remedy = "Leave this pair out, or join values of these columns in the schema."
            got = f"{pair[0]} x {pair[1]}: {one.size * other.size}"
            raise InputError.expected(
                f"at most {MOST_CELLS} cells", of="interactions", got=got, remedy=remedy
            )
        return one, other


def wanted(model: object) -> Additive | None:
    """What `model=` asks for: None for a linear model, or a module."""
    if isinstance(model, Additive):
        return model
    if isinstance(model, str) and model not in ("linear", NAME):
        remedy = "Pass model='additive', or model=None, which is linear."
        raise InputError.expected(
            f"{WORDS}, a torch.nn.Module or None", of="model", got=model, remedy=remedy
        )
    return Additive() if takes_steps(model) else None


def module_of(model: object) -> Any:
    """A torch module, or None where the model is linear or additive."""
    return None if isinstance(model, str | Additive) else model


def takes_steps(model: object) -> bool:
    """Whether a table must be dense for it."""
    return isinstance(model, Additive) or (isinstance(model, str) and model == NAME)


def of_rows(model: object) -> Additive | None:
    """The same as `wanted`, for estimators that take no module."""
    if module_of(model) is not None:
        remedy = "Pass model='additive', or model=None; modules are fitted by FairClassifier."
        got = type(model).__name__
        raise InputError.expected(f"{WORDS} or None", of="model", got=got, remedy=remedy)
    return wanted(model)


def words_of(shapes: Shapes | None) -> str:
    """For a statement."""
    if shapes is None:
        return "linear: no number has steps"
    told = [f"steps of {side.name} at {len(side.edges)} edges" for side in shapes.steps]
    told += [f"cells of {one.name} x {other.name}" for one, other in shapes.pairs]
    return "additive: " + "; ".join(told)


# Edges


def _parts(scale: Affine, bins: int, halvings: int) -> Floats:
    """Edges of [-1, 1]: equal parts, and halves of halves towards zero, or towards the end next to
    it."""
    zero = min(1.0, max(-1.0, -scale.center / scale.half))
    steps = 2.0 / bins * 0.5 ** np.arange(1, halvings + 1)
    edges = np.unique(
        np.concatenate([np.linspace(-1.0, 1.0, bins + 1), zero - steps, [zero], zero + steps])
    )
    return np.asarray(edges[(edges > -1.0) & (edges < 1.0)])


def _coded(marks: Sequence[float], scale: Affine) -> Floats:
    """As `data.coding.number_codes` codes numbers, so that a number on an edge lies on it."""
    values = np.array(marks, np.float64)
    values -= scale.center
    values /= scale.half
    return values


def _thinned(edges: Floats) -> Floats:
    return edges[:: -(-len(edges) // MOST_SIDE)] if len(edges) else edges


def _side(name: str, place: int, scale: Affine, edges: Floats) -> Side:
    return Side(name, place, tuple(edges.tolist()), tuple(scale.undo(edges).tolist()))


# Columns

Numbers = list[tuple[str, Affine | None, tuple[float, ...] | None]]


def _columns_of(
    coding: Coding, layout: RowLayout
) -> tuple[Numbers, list[tuple[str, tuple[str, ...]]]]:
    """Numbers, each with its scale and declared edges where they are known; and categories with
    their values."""
    if isinstance(coding, SchemaCoding):
        encoding = coding.encoding
        schema: Schema = encoding.schema
        numbers: Numbers = [
            (scale.name, scale, _declared(schema, scale.name)) for scale in encoding.numbers
        ]
        return numbers, [(name, tuple(map(str, schema.listed(name)))) for name in encoding.coded]
    if isinstance(coding, TableCoding):
        numbers = [
            (feature.name, None, None) for feature in coding.features if feature.values is None
        ]
        words = [
            (one.name, tuple(map(str, one.values)))
            for one in coding.features
            if one.values is not None
        ]
        return numbers, words
    numbers = [(f"x{j}", None, None) for j in range(layout.numbers)]
    return numbers, [
        (f"code{j}", tuple(map(str, range(size)))) for j, size in enumerate(layout.code_sizes)
    ]


def _declared(schema: Schema, name: str) -> tuple[float, ...] | None:
    column = schema.columns[name]
    assert isinstance(column, Number)
    return column.edges


def _require_known(names: Sequence[str], known: Sequence[str], of: str) -> None:
    strange = [name for name in names if name not in known]
    if strange:
        remedy = "Name features as the schema does, or as the table at fit."
        raise InputError.expected(f"names among {list(known)}", of=of, got=strange, remedy=remedy)


def _names(given: object, of: str) -> tuple[str, ...]:
    listed = () if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    if (
        not listed
        or not all(isinstance(name, str) for name in listed)
        or len(set(listed)) != len(listed)
    ):
        remedy = 'Pass ["age", "hours"], for example; or None, for all.'
        raise InputError.expected("a list of distinct names", of=of, got=given, remedy=remedy)
    return listed


def _pair(given: object) -> tuple[str, str]:
    listed = () if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    if (
        len(listed) != 2
        or not all(isinstance(name, str) for name in listed)
        or listed[0] == listed[1]
    ):
        _refuse_pairs(given)
    return listed[0], listed[1]


def _refuse_pairs(given: object) -> None:
    remedy = 'Pass interactions=[("age", "hours")], for example.'
    raise InputError.expected(
        "pairs of distinct names", of="interactions", got=given, remedy=remedy
    )


def _warn_of_many(numbers: int) -> None:
    text = (
        f"{numbers} numbers, and not {ROWS_A_NUMBER} rows for each are known to be there: the "
        f"model is linear, as steps for "
        'all would be noise. Pass model=Additive(columns=["age", ...]) to name those that matter; '
        "or schema=Schema(rows=...), if there are more."
    )
    warnings.warn(text, NoSteps, stacklevel=3)
