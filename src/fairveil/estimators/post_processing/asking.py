"""What a post-processor asks of the rows: room for both of its spends first, then the curator of
its counts."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ... import _checks
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import Curator
from ...curator.elsewhere import curator_of
from ...errors import Overspent
from ...facts import Cells
from ...learning import postprocess
from ...learning.counts import CountPlan
from ...learning.parity import ParityPlan
from ...ledger import Ledger
from .. import fitting
from ..fitting import require_room
from ..rate_constrained import RateConstrainedClassifier
from ..reading.units import Whose
from ..wrapped import spends as base_spends
from ..wrapped.bases import Base, BaseOptions
from ..wrapped.decided import DecidedRows

GIVEN = ("schema", "public_rows", "max_sample_weight", "unsafe_data_dependent_bounds")


def base_options(
    estimator: BaseEstimator,
    promise: Promise,
    share: float,
    ledger: Ledger | None = None,
    whose: Whose | None = None,
) -> BaseOptions:
    """What a post-processor was told about its base."""
    return BaseOptions(
        promise,
        float(share),
        bool(estimator.public_base),
        _checks.named(estimator, GIVEN),
        fitting.seed_of(estimator.random_state),
        RateConstrainedClassifier,
        ledger,
        whose,
    )


def require_both(
    estimator: object, asked: DecidedRows, wishes: BaseOptions, cells: Cells | None, purpose: str
) -> None:
    """Base and counts are two spends of the ledger: see now whether there is room for both, before
    the first is charged."""
    spent = base_spends.about_to_spend(estimator, wishes)
    if wishes.ledger is None or not spent:
        return
    weighted = asked.training.rows.weighted
    counts = postprocess.plan(wishes.promise, cells, spent, weighted=weighted)
    require_room(wishes.ledger, [*spent, counts.event], wishes.promise, purpose)


def curator_of_counts(
    asked: DecidedRows,
    base: Base,
    wishes: BaseOptions,
    plan: CountPlan | ParityPlan,
    noise: NoiseSource,
    purpose: str,
    fitted_here: bool,
) -> Curator:
    """The curator of the counts, with what the ledger does not yet hold of the base reserved beside
    it."""
    event = plan.event if wishes.promise.is_private else None
    options: dict[str, Any] = {
        "facts": asked.training.facts,
        "ledger": wishes.ledger,
        "purpose": purpose,
    }
    try:
        with base_spends.recorded(base, wishes, purpose):
            return curator_of(
                asked.training.rows, wishes.promise, plan=event, noise=noise, **options
            )
    except Overspent as error:
        raise (base_spends.also_spent(error) if fitted_here else error) from None
