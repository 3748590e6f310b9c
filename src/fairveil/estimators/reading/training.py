"""The rows of a fit and what is public about them, however they were read: by `inputs`, `unread` or
`elsewhere`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from scipy import sparse

from ...curator import Rows
from ...errors import InputError
from ...facts import RowBlock, RowLayout, Schema
from ...facts.rows import Traits
from ...models.model import known_classes
from ...statement.document import PublicFact
from ...tables.distinct import in_words
from .additive import Additive, words_of
from .coding import Coding
from .targets import NumericTarget, TargetScale
from .units import Whose


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Training:
    """The rows of a fit, and what is public about them.

    `columns`: the names of X's columns (with a schema, of those that are features), none where X
    had no names. `n_features`: how many such columns there are. `rows_stated`: the schema's number
    of rows, if any. `target`: the scale of a target that is a number. `schema`: as it was given, or
    as coded rows have it. `supposed`: of a plan, how many rows there may be: it has none.
    """

    rows: Rows
    coding: Coding
    facts: tuple[PublicFact, ...]
    not_covered: tuple[str, ...]
    columns: tuple[str, ...]
    n_features: int
    rows_stated: int | None = None
    target: TargetScale | None = None
    schema: Schema | None = None
    supposed: int | None = None

    @property
    def exact_rows(self) -> int:
        """How many rows there are; of a plan, which has none, how many are supposed."""
        return self.rows.exact_count if self.supposed is None else self.supposed

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.rows.layout.classes or ()


@dataclass(frozen=True)
class ReadOptions:
    """How rows are to be read: the arguments of an estimator that say so.

    `features_are_public`: sensitive features alone are protected, so no feature may be one of them.
    `groups`: those of the one sensitive column, where they were stated without a schema. `thin`:
    numbers are never shifted inside, so mostly empty ones may be kept sparse, which is
    faster and gives the same bits. `target`: how y is read where it is a number; None: it is one of
    several classes. `additive`: the steps that are wanted, if any; whether there are to be steps
    may hang on the number of rows, where that was passed (`public_rows`) or is public.
    """

    schema: Schema | None = None
    sensitive_as_feature: bool = False
    standardise: bool = False
    max_sample_weight: float = 1.0
    features_are_public: bool = False
    thin: bool = False
    target: NumericTarget | None = None
    additive: Additive | None = None
    public_rows: int | None = None
    rows_are_public: bool = False
    whose: Whose | None = None
    groups: tuple[Hashable, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Coded rows with their weights, as a `RowSource`. `of`: what the source that they come from
    tells of itself."""

    layout: RowLayout
    _blocks: Sequence[RowBlock]
    of: Traits = field(default_factory=Traits)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        return iter(self._blocks)

    @property
    def traits(self) -> Traits:
        """Of a file: that it is one, and the error where it has changed."""
        return Traits(is_mapped=self.of.is_mapped, require_same=self.of.require_same)


def with_steps(
    ways: ReadOptions,
    facts: list[PublicFact],
    coding: Coding,
    layout: RowLayout,
    rows: int | None,
    blocks: Sequence[RowBlock] = (),
) -> tuple[Coding, RowLayout]:
    """A coding that adds the steps of an additive model, and the shape of its rows. `rows`: how
    many, where that is public."""
    assert ways.additive is not None
    if any(sparse.issparse(block.numbers) for block in blocks):
        remedy = "Pass the columns that matter as a dense table; or model=None, a linear model."
        raise InputError.expected(
            "a dense table, for an additive model", of="X", got="a sparse one", remedy=remedy
        )
    shapes = ways.additive.shapes(
        coding, layout, rows if ways.public_rows is None else ways.public_rows
    )
    facts.append(PublicFact("model", words_of(shapes), "argument"))
    coding = replace(coding, shapes=shapes)  # type: ignore[type-var]
    return coding, layout if shapes is None else shapes.layout(layout)


def need_classes(layout: RowLayout) -> None:
    """An error where labels are numbers, or all alike."""
    if len(layout.classes or ()) < 2:
        got = f"one class: {in_words(layout.classes or ())}" if layout.classes else "numbers"
        remedy = "Pass labels of at least two classes; a schema may list classes that do not occur."
        if not layout.classes:
            remedy = "Declare the target a Category, or fit a FairRegressor."
        raise InputError.expected("labels of at least two classes", of="y", got=got, remedy=remedy)
    known_classes(layout.classes or ())
