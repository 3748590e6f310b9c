"""The face that classifiers found by private descent share: reading rows, planning, searching,
publishing. Abstract."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

from .. import _checks
from .._types import ColumnsLike, Floats, TableLike
from ..core.promise import Promise
from ..errors import InputError
from ..facts import Cells
from ..fairness import Notion
from ..methods import Outcome, Settings, networks
from ..models import LinearModel, MixtureModel
from ..statement.document import PrivacyStatement
from . import faces, fitting
from .faces import Blindly, LinearClassifier
from .fitting import Descent as Planned
from .fitting import OpenedFit, PlannedFit, journal_in, run, statement_of
from .handed import handed
from .reading import additive, inputs
from .reading.carried import groups_of
from .reading.fitted_parts import parts_of
from .reading.training import ReadOptions, Training
from .reading.unread import Read
from .reports import BaselineReport, warn_if_worse, warn_of_chance
from .settings import Descent
from .words import worded

KNOBS = ("rounds", "clip", "temperature", "sampling_rate", "learning_rate")


class DescentClassifier(LinearClassifier):
    """A classifier that private descent finds: linear, or a torch module. Abstract."""

    outcome_: Outcome
    n_iter_: int
    baselines_: BaselineReport | None
    privacy_: PrivacyStatement
    randomised: Any = None

    # Parameters that all of them have; `__init__` is each one's own, as scikit-learn wants it.
    model: Any
    solver: Any
    checkpoint: Any
    sensitive_as_feature: Any

    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> Self:
        """Fit to a table X and labels y, matched by position.

        X is an array, a sparse array, a table of pandas, polars or pyarrow, a mapping of columns,
        or a source of coded rows. A source has labels and groups of its own. A torch module also
        takes an array with more axes, such as images.

        Warns
        -----
        WorseThanBaseline
        """
        X, shape = faces.flattened(X, self._module)
        journal = journal_in(self.checkpoint)
        intent = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), shape
        )
        outcome, curator = run(
            intent.opening,
            intent.search.plan,
            "Fitting",
            intent.search.run,
            journal,
        )
        self._conclude(intent, outcome, statement_of(curator, intent.training))
        if self._is_randomized:
            warn_of_chance("" if self.baselines_ is None else self.baselines_.remark, stacklevel=5)
        self._after_fit()
        warn_if_worse(self.baselines_, learnt=self.outcome_.learnt)
        return self

    @property
    def _solver(self) -> Descent:
        return self._setting("solver", Descent)

    @property
    def _module(self) -> Any:
        return additive.module_of(self.model)

    def _search(self, read: Read) -> Planned:
        return self._intend(read).search

    @abstractmethod
    def _asked(self) -> list[Notion]:
        """The notions whose groups are distinguished; checked."""

    @abstractmethod
    def _usual(self, promise: Promise) -> Settings:
        """The settings of a linear model's run, before the knobs."""

    @abstractmethod
    def _plan(
        self,
        promise: Promise,
        training: Training,
        cells: Cells | None,
        notions: list[Notion],
        facts: dict[str, Any],
    ) -> Planned:
        """The search. `facts`: keyword arguments of `primal_dual.planned`, settings and skeleton
        among them."""

    @abstractmethod
    def _report(self, outcome: Outcome) -> None:
        """Publish what was measured of the model."""

    def _after_fit(self) -> None:
        """Say what is to be said once the model is there."""

    def _intend(
        self, read: Callable[[ReadOptions], Training], shape: tuple[int, ...] | None = None
    ) -> PlannedFit:
        """Check, read the rows and plan: all that comes before the first question."""
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise)
        of_modules = "without a module (model=None)" if self._module is None else None
        fitting.refuse_unused(self._solver, {"learning_rate": of_modules, "device": of_modules})
        if self.randomised is not None:
            _checks.truth(randomised=self.randomised)
        notions = self._asked()
        settings = self._with_knobs(self._usual(promise))
        ways = fitting.own_ways(
            self,
            promise,
            whose,
            additive.wanted(self.model),
            standardise=self.unsafe_data_dependent_bounds,
        )
        training = read(ways if self._module is None else dataclasses.replace(ways, thin=False))
        opening = OpenedFit.of(
            self,
            promise,
            ledger,
            training,
            numbers="scaled" if self._module is None else "as given",
        )
        self._require_groups(notions, training)
        known = opening.known_rows
        skeleton = faces.skeleton_of(self._module, training, shape, self._solver.device)
        if skeleton is not None:
            settings = self._with_knobs(networks.usual_settings(promise, known))
        _refuse_empty_batches(settings, known)
        cells = cells_of(notions, training)
        facts = {
            "settings": settings,
            "public_rows": opening.public_rows,
            "max_sample_weight": opening.max_sample_weight,
            "scalable": skeleton is None and fitting.numbers_are_scalable(training, promise),
            "skeleton": skeleton,
            "companion": True,
        }
        search = self._plan(promise, training, cells, notions, facts)
        return PlannedFit(opening, cells, search)

    def _require_groups(self, notions: list[Notion], training: Training) -> None:
        fitting.require_groups(notions, training)

    def _with_knobs(self, settings: Settings) -> Settings:
        given = _checks.named(self._solver, KNOBS)
        return dataclasses.replace(
            settings, **{name: value for name, value in given.items() if value is not None}
        )

    def _conclude(self, intent: PlannedFit, outcome: Outcome, statement: PrivacyStatement) -> None:
        """Publish what a search found."""
        training, skeleton = intent.training, intent.search.planned.skeleton
        planned = intent.search.planned
        shape = (planned.outputs, 1 + training.rows.layout.width)
        found = handed(outcome, training.classes, randomised=self.randomised, shape=shape)
        models = [
            _linear(weights, training)
            if skeleton is None or weights.ndim == 2
            else faces.model_of(skeleton, weights, training)
            for weights in found.lines
        ]
        if len(models) > 1:
            self._set_mixture(MixtureModel(models, found.shares), training.coding)
        elif isinstance(models[0], LinearModel):
            self._set_model(models[0], training.coding)
        else:
            self._set_network(models[0], training.coding)
        self.baselines_ = found.report
        self._publish_shape(training, intent.cells)
        self.privacy_ = statement
        self._set_outcome(found.outcome)

    def _set_outcome(self, outcome: Outcome) -> None:
        self.outcome_, self.n_iter_ = outcome, outcome.rounds
        self._report(outcome)

    def _replace_decisions(self, blindly: Blindly) -> bool:
        """Publish a mixture with blind decisions; False of a module, whose mixtures have no
        file."""
        model = faces.mixture_of(self.model_, blindly)
        if model is None:
            return False
        outcome = faces.outcome_of(self.outcome_, blindly)
        self.baselines_ = faces.baselines_of(
            self.baselines_, outcome.comparison, self.classes_.tolist(), blindly
        )
        self._set_mixture(model, self.coding_)
        self._set_outcome(outcome)
        return True

    def _blocks(self, X: TableLike) -> Any:
        return super()._blocks(faces.as_rows(X, parts_of(self).model))


def _linear(weights: Floats, training: Training) -> LinearModel:
    return LinearModel(
        weights[:, 1:], weights[:, 0], classes=training.classes, layout=training.coding.layout
    )


def cells_of(notions: list[Notion], training: Training) -> Cells | None:
    """Product groups, unless every notion is content with marginal ones, whose histograms are
    smaller."""
    asked = [notion for notion in notions if not notion.is_vacuous]
    marginal = bool(asked) and all(notion.groups == "marginal" for notion in asked)
    return groups_of(training, "marginal" if marginal else "product")


def _refuse_empty_batches(settings: Settings, rows: int | None) -> None:
    """Against a public number of rows only."""
    rate = settings.sampling_rate
    rows = None if rows is None else max(rows, 1)
    if rate is not None and rows is not None and rate * rows < 1.0:
        remedy = (
            f"Most batches would be empty, and teach nothing: pass "
            f"sampling_rate={min(1.0, 256.0 / rows):.2g}, for example."
        )
        expected = f"at least 1/{rows}, one row a batch on average"
        raise InputError.expected(expected, of="sampling_rate", got=rate, remedy=remedy)
