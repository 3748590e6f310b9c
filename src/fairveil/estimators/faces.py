"""What finished estimators share: prediction, coefficients, curves, and mixtures with blind decisions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from .._types import ColumnsLike, Floats, TableLike
from ..data.coding import codes_among
from ..errors import FairveilError, InputError, KindError, complaint
from ..facts import Cells, RowBlock, RowSource
from ..models import MixtureModel
from ..show.charts import Axis, Curve, Curves
from ..show.parts import Part, Shown
from ..statement.document import PrivacyStatement
from ..tables.columns import same_length
from ..tables.frames import refuse_duplicates, refuse_one_column, shape_of
from . import reading
from .coding import ANYWHERE, Coding, SchemaCoding, Side, TableCoding, takes_steps
from .fitting import Planning, Recorded, journal_in, run
from .pages import Paged
from .reading import Read, Training, read_labels, weights_of
from .settings import Setting

if TYPE_CHECKING:
    from ..models import NetworkModel, Skeleton


# ------------------------------ coded
# The face that estimators of coded rows share: how X is read at prediction. Abstract; `fit` is
# each one's own.


class CodedReader(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What reads X at prediction as the coding of the fit does."""

    coding_: Coding
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    def _blocks(self, X: TableLike) -> Iterator[RowBlock]:
        check_is_fitted(self, "model_")
        if isinstance(X, RowSource | RowBlock):
            return self.coding_.blocks(X)
        refuse_duplicates(X, "X")
        columns = (isinstance(X, Mapping) and not issparse(X)) or (
            isinstance(X, np.ndarray) and X.dtype.names is not None
        )
        with as_ours("X"):
            if axes_of(X) != 2 and not columns:
                refuse_one_column(X)
                check_array(X)  # says how to reshape it
            if not self._lacks_only_groups(X) and not columns:
                validate_data(self, X, reset=False, skip_check_array=True)
        return self.coding_.blocks(X)

    def _lacks_only_groups(self, X: object) -> bool:
        """Whether X has all features by name: what is not there was sensitive, or is not read at
        all by a schema."""
        shown = _column_names(X)
        # a schema, which finds its columns itself, or coded rows
        if not isinstance(self.coding_, TableCoding):
            return shown is not None
        columns = self.coding_.columns
        features = [feature.name for feature in self.coding_.features]
        if isinstance(X, Mapping) and hasattr(self, "feature_names_in_"):
            lacking = [name for name in features if name not in X]
            if lacking:
                remedy = "Pass the columns of the fit."
                raise InputError.expected(f"columns {lacking}", of="X", got=shown, remedy=remedy)
            return True
        if len(features) == len(columns):
            return False
        if shown is None:
            return (shape_of(X) or ())[1:] == (len(features),)
        return [name for name in shown if name in columns] == [
            name for name in columns if name in shown
        ] and set(features) <= set(shown) <= set(columns)


class CodedEstimator(Paged, Planning, Recorded, CodedReader, ABC):
    """An estimator of rows that a coding makes of X, by one of its solvers, and the one walk of a fit.
    Abstract."""

    __metadata_request__fit: ClassVar = {"sensitive_features": True, "sample_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    privacy_: PrivacyStatement
    cells_: Cells | None
    groups_: tuple[Any, ...]

    @abstractmethod
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> CodedEstimator:
        """Fit."""

    @property
    def _is_randomized(self) -> bool:
        """Whether `predict` may draw."""
        return False

    WAYS: ClassVar[Mapping[type[Setting], Callable[[Any], Any]]]
    """How each solver fits: see `ways`."""
    checkpoint: Any

    @property
    def _way(self) -> Any:
        """How the solver fits this estimator."""
        kind = type(self._setting("solver", Setting))
        if kind not in self.WAYS:
            known = " or ".join(f"fv.{one.__name__}(...)" for one in self.WAYS)
            remedy = "Or leave it None, which chooses one by what is asked."
            raise InputError.expected(known, of="solver", got=kind.__name__, remedy=remedy)
        return self.WAYS[kind](self)

    def _fitted(
        self, X: TableLike, y: ColumnsLike, sensitive_features: ColumnsLike, weights: ColumnsLike
    ) -> None:
        """Read, plan, run, publish."""
        way = self._way
        X, shape = flattened(X, way.module)
        journal = journal_in(self.checkpoint)
        intent = way.intend(
            lambda ways: reading.read(X, y, sensitive_features, weights, ways), X, shape
        )
        search = intent.search
        found, curator = run(intent.opening, search.plan, way.title, search.run, journal)
        self._published(lambda: way.publish(intent, found, curator))

    def _published(self, write: Callable[[], None]) -> None:
        """Write what was found, in place of an earlier fit; all of it, or nothing."""
        before = dict(vars(self))
        for name in [one for one in before if one.endswith("_") and not one.startswith("_")]:
            del self.__dict__[name]
        try:
            write()
        except BaseException as error:
            if not isinstance(error, Warning):  # one that is an error comes after the model
                self.__dict__.clear()
                self.__dict__.update(before)
            raise

    def _search(self, read: Read) -> Any:
        search = self._way.intend(read, None, None).search
        return getattr(search, "inner", search)

    def _publish_columns(self, training: Training, cells: Cells | None) -> None:
        """Write what is public of the columns and groups of a fit."""
        self.coding_, self.cells_ = training.coding, cells
        self.groups_ = () if cells is None else cells.keys
        self.n_features_in_ = training.n_features
        if training.columns:
            self.feature_names_in_ = np.array(training.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = not takes_steps(self.get_params(deep=False).get("model"))
        return tags


@contextmanager
def as_ours(of: str) -> Iterator[None]:
    """What scikit-learn says of an argument, in our family and with its words."""
    try:
        yield
    except (FairveilError, NotFittedError):
        raise
    except Exception as error:
        family = KindError if isinstance(error, TypeError) else InputError
        expected, got = "a table like that of the fit", f"another ({type(error).__name__})"
        raise family(
            complaint(expected=expected, of=of, got=got, remedy=f"{error}", quote=False)
        ) from None


def axes_of(X: TableLike) -> int:
    """How many axes; 2 where that cannot be seen."""
    axes = getattr(X, "ndim", 2)
    return axes if isinstance(axes, int) else 2


def as_array(classes: tuple[Any, ...]) -> npt.NDArray[Any]:
    """Classes as an array of their own kind; of objects where kinds are mixed."""
    if len({type(value) for value in classes}) == 1:
        return np.array(classes)
    out = np.empty(len(classes), dtype=object)
    out[:] = classes
    return out


def labels_of(source: RowSource, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    codes = [block.labels for block in source.blocks()]
    if any(part is None for part in codes):
        raise InputError.expected("rows with labels", of="X", got="rows without", remedy="Pass y.")
    return np.asarray(classes[np.concatenate([part for part in codes if part is not None])])


def labels_in(X: TableLike, y: ColumnsLike, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as given, or those of coded rows."""
    return labels_of(X, classes) if y is None and isinstance(X, RowSource) else read_labels(y)


def expected_accuracy(
    law: Floats,
    classes: npt.NDArray[Any],
    X: TableLike,
    y: ColumnsLike,
    sample_weight: ColumnsLike,
) -> float:
    """The share of rows, by weight, that decisions of probabilities `law` (rows, classes) get
    right."""
    labels = labels_in(X, y, classes).tolist()
    same_length({"X": len(law), "y": len(labels)})
    weights = weights_of(sample_weight, len(labels))
    at = codes_among(labels, classes.tolist())  # "1" in a schema is 1 in a frame
    right = np.where(at >= 0, law[np.arange(len(at)), at], 0.0)
    return float(np.average(right, weights=weights))


def _column_names(X: TableLike) -> list[str] | None:
    """Names of a table's columns; None for arrays."""
    if isinstance(X, Mapping):
        return list(map(str, X))
    import narwhals as nw

    wrapped = nw.from_native(X, pass_through=True, eager_only=True)
    return list(map(str, wrapped.columns)) if isinstance(wrapped, nw.DataFrame) else None


# ------------------------------ curves
# What an additive model says of each number: its term of the score, as a curve with the noise of
# its steps.
#
#     term(x) = w x + f(x),    shifted so that its mean over the declared range (or between the outermost edges) is 0
#
# Where the bounds of a number are not known, x is where it lies along its edges.
#
# Guarantees (tests/estimators/test_curves.py):
# 1. Terms of all columns and one constant add up to the score.
# 2. Noise moves a step by no more than `noise` in standard deviation, to first order
#    (`methods.primal_dual.Plan.weight_noise`).

DEVIATIONS = 2.0


@dataclass(frozen=True, eq=False)
class Term(Shown):
    """One number's part of a linear score. `ends`: of the intervals, low to high; `left`, `right`:
    the term at both ends of each interval; `noise`: the standard deviation of a step, at most;
    None: not known."""

    name: str
    ends: Floats
    left: Floats
    right: Floats
    noise: float | None

    def parts(self) -> Iterator[Part]:
        """The picture."""
        yield self.chart()

    def chart(self) -> Curves:
        """The term against the number, and two deviations of the noise of its steps."""
        gap = 1e-9 * float(self.ends[-1] - self.ends[0])
        across = np.column_stack([self.ends[:-1] + gap, self.ends[1:] - gap]).ravel()
        up = np.column_stack([self.left, self.right]).ravel()
        band = DEVIATIONS * (self.noise or 0.0)
        points = tuple(zip(across.tolist(), up.tolist(), strict=True))
        low, high = (tuple((up + sign * band).tolist()) if band else () for sign in (-1.0, 1.0))
        notes: tuple[str, ...] = ("Above 0 it moves decisions towards the second class.",)
        if band:
            notes += (f"Noise of privacy moves a step by {band:.2g} or less, in 95 of 100 fits.",)
        elif self.noise is None:
            notes += ("How much of it is noise is not known.",)
        name = self.name if self.name.isprintable() else ascii(self.name)
        return Curves(
            title=f"Term of {name} in the score",
            across=Axis(name),
            up=Axis("added to the log-odds"),
            curves=(Curve(name, points, low, high),),
            notes=notes,
        )


def terms_of(coding: Coding, weights: Floats, noise: float | None) -> tuple[Term, ...]:
    """Of each number that has steps; `weights` of one score, in the units of the table, as `coef_`
    has them."""
    if coding.shapes is None:
        remedy = 'Fit with model="additive", and a table whose numbers get steps.'
        raise InputError.expected(
            "an additive model", of="terms", got="a linear one", remedy=remedy
        )
    at = coding.own_layout.width
    found = []
    for side in coding.shapes.steps:
        found.append(
            _term(coding, side, float(weights[side.place]), weights[at : at + side.size], noise)
        )
        at += side.size
    return tuple(found)


def _term(coding: Coding, side: Side, slope: float, steps: Floats, noise: float | None) -> Term:
    low, high = _range(coding, side)
    ends = np.array([low, *side.marks, high])
    line = slope * (side.placed(ends) if side.along else ends)
    left, right = line[:-1] + steps, line[1:] + steps
    widths = np.diff(ends)
    middle = float(((left + right) / 2.0 * widths).sum() / widths.sum())
    return Term(side.name, ends, left - middle, right - middle, noise)


def _range(coding: Coding, side: Side) -> tuple[float, float]:
    """The declared bounds; without a schema, a little more than the edges."""
    if isinstance(coding, SchemaCoding):
        scale = coding.encoding.numbers[side.place]
        return scale.center - scale.half, scale.center + scale.half
    return 2.0 * ANYWHERE[0], 2.0 * ANYWHERE[-1]


# ------------------------------ modules
# Torch modules as models of estimators: what is handed in, and rows that come with more axes than
# two.


def flattened(X: TableLike, module: object) -> tuple[Any, tuple[int, ...] | None]:
    """For a module: X as (rows, numbers) and the shape of one row, where it has more axes than
    that; else X as it is."""
    axes = axes_of(X)
    if module is None or axes < 3 or isinstance(X, RowSource):
        return X, None
    array = np.asarray(X)
    return array.reshape(len(array), math.prod(array.shape[1:])), tuple(array.shape[1:])


def as_rows(X: TableLike, model: object) -> Any:
    """X as (rows, numbers) where the model is a network whose rows had a shape; anything else as it
    is."""
    axes = axes_of(X)
    if model is None or axes < 3 or isinstance(X, RowSource):
        return X
    parts: Any = model.models if isinstance(model, MixtureModel) else (model,)
    networks = (part for part in parts if part.kind == "network")
    shape = next((one.skeleton.input_shape for one in networks), None)
    array = np.asarray(X)
    if shape is None or array.shape[1:] != shape:
        remedy = "Pass rows of the shape of the fit, or (rows, numbers)."
        expected = "(rows, numbers)" if shape is None else f"rows of shape {shape}"
        raise InputError.expected(expected, of="X", got=f"shape {array.shape}", remedy=remedy)
    return array.reshape(len(array), math.prod(shape))


def skeleton_of(
    module: Any, training: Training, shape: tuple[int, ...] | None, device: object
) -> Skeleton | None:
    """The module, checked against the rows: a copy, so a fit changes nothing that it was given.
    None for a linear model."""
    if module is None:
        return None
    try:
        from ..models import Skeleton
    except ImportError as error:
        remedy = "pip install 'fairveil[torch]', or fit a linear model."
        raise InputError.expected(
            "torch, to use a module", of="model", got=str(error), remedy=remedy
        ) from error
    layout = training.rows.layout
    where = _default_device() if device is None else str(device)
    return Skeleton.of(module, layout.width, len(training.classes), input_shape=shape, device=where)


def model_of(skeleton: Skeleton, parameters: Floats, training: Training) -> NetworkModel:
    """The fitted network."""
    from ..models import NetworkModel

    return NetworkModel(
        skeleton.apart(parameters),
        parameters,
        classes=training.classes,
        layout=training.coding.layout,
    )


def _default_device() -> str:
    """A GPU where there is one."""
    from ..models.torch_network import default_device

    return default_device()
