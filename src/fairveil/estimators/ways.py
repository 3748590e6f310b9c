"""How a solver fits: what it is asked to keep, its search, and what it publishes. Abstract.

`FairClassifier` and `FairRegressor` hold the parameters and the one walk of a fit; a `Way` of their
solver reads them, plans, and publishes what was found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from .._types import TableLike
from ..core.promise import Promise
from ..curator import Curator
from ..errors import InputError
from ..facts import Cells
from ..fairness import Notion
from ..fairness.objectives import Constraint
from ..fairness.sentences import sentence
from ..models import DerandomisedModel
from . import fitting
from .fitting import OpenedFit
from .reading import Read, Training
from .settings import Setting


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class PlannedFit:
    """A fit that has not begun: opened, its search planned and priced, nothing asked yet."""

    opening: OpenedFit
    cells: Cells | None
    search: Any

    @property
    def promise(self) -> Promise:
        """What it promises."""
        return self.opening.promise

    @property
    def training(self) -> Training:
        """Its rows, and how they were read."""
        return self.opening.training


class Way(ABC):
    """How the solver of one estimator, `of`, fits."""

    kind: ClassVar[type[Setting]]
    title: ClassVar[str] = "Fitting"
    """Of the bar that shows progress."""

    def __init__(self, of: Any) -> None:
        self.of = of

    @property
    def solver(self) -> Any:
        """Its settings, checked."""
        return self.of._setting("solver", self.kind)

    @property
    def module(self) -> Any:
        """The torch module that it fits; None for other models."""
        return None

    @property
    def draws(self) -> bool:
        """Whether what it finds is a mixture as a rule."""
        return False

    @property
    def covers(self) -> bool:
        """Whether the counts of a certificate may stand beside the fit's own releases at no further
        price: these are Gaussian, and of all rows."""
        return False

    @abstractmethod
    def intend(self, read: Read, X: TableLike, shape: tuple[int, ...] | None) -> PlannedFit:
        """Check, read the rows and plan: all that comes before the first question. `X`: as given;
        None: there is none yet."""

    @abstractmethod
    def publish(self, intent: PlannedFit, found: Any, curator: Curator) -> None:
        """Write what was found to the estimator, and say what is to be said of it."""

    @abstractmethod
    def required(self) -> Constraint:
        """What was asked for: notions, and bounds on other functions of losses."""

    def reported(self) -> list[Notion]:
        """The notions that a page is about."""
        return list(self.required().notions)

    def said(self, cells: Cells | None, classes: tuple[Any, ...]) -> tuple[str, ...]:
        """Every bound that requires something, in a sentence."""
        asked = self.required()
        listed: list[Any] = [*asked.bounds, *(one for one in asked.notions if not one.is_vacuous)]
        return tuple(sentence(one, cells, classes) for one in listed)

    def derandomised(self, model: DerandomisedModel) -> None:
        """Write decisions without chance, of which nobody released anything."""
        kind = type(self.solver).__name__
        remedy = "Take predict_proba(X).argmax(axis=1), or fit without randomised=True."
        raise InputError.expected(
            "a mixture by OracleGame or GroupObjective", of="derandomise", got=kind, remedy=remedy
        )

    def refuse_objective(self) -> None:
        """Of a solver that minimizes the mean loss alone."""
        if self.of.objective not in (None, "error"):
            remedy = "Leave objective=None, or pass solver=fv.GroupObjective()."
            got, kind = self.of.objective, type(self.solver).__name__
            raise InputError.expected(
                f"None with solver={kind}", of="objective", got=got, remedy=remedy
            )


def notions_alone(of: Any) -> Constraint:
    """Constraints that are notions of fairness, and nothing else."""
    return Constraint((), tuple(fitting.notions_of(of.constraints, certified=True)))
