"""How every fit opens: its promise checked, its rows read, where it is recorded; and from there the
curator, given a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import BaseEstimator

from ...core.events import Event
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import Curator, Journal
from ...curator.elsewhere import curator_of
from ...ledger import Ledger
from ...statement.document import PublicFact
from ..reading import cautions, origins
from ..reading.cautions import Numbers
from ..reading.training import Training
from . import promises
from .publish import read_from_data


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class OpenedFit:
    """A fit that asked nothing yet. `public_rows`: what averages divide by, if public;
    `rows_given`: it was an argument; `ledger`: where it is recorded, for `purpose`; `facts`:
    arguments that are public, with their origins; `stated_clips`: those that the caller passed;
    `one_group`: whether all rows of a person count in one group."""

    promise: Promise
    training: Training
    public_rows: int | None
    rows_given: bool
    random_state: Any
    ledger: Ledger | None
    purpose: str
    facts: tuple[PublicFact, ...] = ()
    stated_clips: tuple[float, ...] = ()
    one_group: bool = False

    @staticmethod
    def of(
        estimator: BaseEstimator,
        promise: Promise,
        ledger: Ledger | None,
        training: Training,
        *,
        numbers: Numbers = "scaled",
    ) -> OpenedFit:
        """Refuse or warn of what rows and promise show together. The estimator has the arguments
        that all share; `numbers`: how its search takes them."""
        promises.require_cap(training, promise)
        steps = cautions.of_pipeline(training, promise)
        if steps:
            training = replace(
                training, not_covered=(*training.not_covered, *(step.sentence for step in steps))
            )
        public_rows = promises.public_rows_of(estimator.public_rows, training, promise)
        purpose = f"{type(estimator).__name__}.fit"
        given = estimator.public_rows is not None
        known, clips = origins.facts_of(estimator, training), origins.stated_clips(estimator)
        opened = OpenedFit(
            promise,
            training,
            public_rows,
            given,
            estimator.random_state,
            ledger,
            purpose,
            known,
            clips,
        )
        cautions.of_promise(promise, opened.known_rows)
        cautions.of_units(training, promise, numbers)
        if ledger is not None:
            ledger.require(
                promise,
                schema=training.schema,
                read_from_data=[f"by pipeline step {step}" for step in steps],
            )
        return opened

    @property
    def known_rows(self) -> int | None:
        """The number of rows, where it is public."""
        return self.training.exact_rows if self.promise.rows_are_public else self.public_rows

    @property
    def max_sample_weight(self) -> float | None:
        """Where weights are cut; None without weights."""
        rows = self.training.rows
        return rows.max_sample_weight if rows.weighted else None

    def curator(
        self,
        plan: Event | None,
        noise: Sequence[NoiseSource] = (),
        *,
        promise: Promise | None = None,
        earlier: Journal | None = None,
        purpose: str | None = None,
    ) -> Curator:
        """The curator of this plan, reserved now. `noise`: one a model, for models side by side;
        `promise`: of all of them."""
        promise = promise or self.promise
        private = promise.is_private and not promise.rows_are_public
        persons = {"one_group": True} if self.one_group and promise.unit is not None else {}
        told = (
            fact
            for fact in self.training.facts
            if not self.rows_given or fact.name != "number of rows"
        )
        return curator_of(
            self.training.rows,
            promise,
            plan=plan,
            noise=noise or promises.noise_of(self.random_state),
            public_rows=self.public_rows if private else None,
            earlier=() if earlier is None else earlier,
            facts=[*told, *self.facts],
            bounds=read_from_data(self.training, promise),
            ledger=self.ledger,
            purpose=self.purpose if purpose is None else purpose,
            stated_clips=self.stated_clips,
            **persons,
        )
