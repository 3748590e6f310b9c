"""What an OpenDP measurement or odometer promises, as events.

OpenDP says what a mechanism costs as a map from distances of inputs to distances of outputs. The
caller names the distance of two neighbours, `d_in`, where the metric does not fix it.

| output measure | event |
|---|---|
| `MaxDivergence` | `Pure(epsilon)` |
| `Approximate(MaxDivergence)` | `Approximate(epsilon, delta)` |
| `ZeroConcentratedDivergence` | `ZeroConcentrated(rho)` |
| `Approximate(ZeroConcentratedDivergence)` | `Approximate(0, delta)` with `ZeroConcentrated(rho)` |
| `SmoothedMaxDivergence` | refused: a whole curve; fix one delta with `make_fix_delta` |
| `RenyiDivergence`, others | refused |

Guarantees (tests/privacy/importing/test_importing_opendp.py):
1. The event's guarantee is the map's, at the distance of two neighbours under the relation that was
   named.
2. A metric that does not bound those neighbours is refused.
"""

from __future__ import annotations

import math
from typing import Any

from ... import _checks
from ..accounting.inventory import checked_relation
from ..events import Approximate, Composed, Event, NonPrivate, NoOp, Pure, ZeroConcentrated
from ..promise import Neighbours
from .imported import Imported, plain_number, refusal, version_of

ROW_METRICS = {
    "SymmetricDistance": 1,
    "InsertDeleteDistance": 1,
    "ChangeOneDistance": 0,
    "HammingDistance": 0,
}
"""Those that count rows: 1 where a row added or removed is the step, 0 where one changed is."""


def from_opendp(
    spent: object,
    *,
    neighbours: str,
    rows_per_person: int,
    d_in: float | None = None,
    measure: object = None,
) -> Imported:
    """What an OpenDP `Measurement` has promised, or an `OdometerQueryable` has lost so far.

    `d_in`: the distance of two neighbours in the input metric. Metrics that count rows have their
    own, of which a larger one may be passed; for all others name it. `measure`: the output measure,
    for an odometer's queryable, which does not say it. Noise of OpenDP is cryptographic: the import
    says so.
    """
    relation = checked_relation(neighbours)
    kind = type(spent).__name__
    if not type(spent).__module__.startswith("opendp.") or kind not in (
        "Measurement",
        "OdometerQueryable",
    ):
        remedy = (
            "Pass a Measurement, or the queryable that odometer(data) returns; of a Context pass "
            "context.accountant."
        )
        raise refusal("a Measurement or an OdometerQueryable", "spent", spent, remedy)
    asked: Any = spent
    if kind == "Measurement":
        if measure is not None:
            raise refusal(
                "None: a measurement says its own", "measure", str(measure), "Leave it out."
            )
        distance = _distance(_name(asked.input_metric), relation, d_in)
        loss, named = asked.map(distance), _name(asked.output_measure)
    else:
        if measure is None or d_in is None:
            remedy = (
                "An odometer's queryable says neither: pass both, as the odometer was made with."
            )
            raise refusal("measure= and d_in=", "spent", kind, remedy)
        distance, named = d_in, _name(measure)
        loss = asked.privacy_loss(distance)
    notes = (f"The guarantee that OpenDP states ({named}, d_in={distance}) was taken on trust.",)
    library, event = version_of("opendp"), _event(named, loss)
    return Imported.of(
        event, relation, library, rows_per_person=rows_per_person, notes=notes, secure_noise=True
    )


def _name(described: object) -> str:
    return str(described).removesuffix("()")


def _distance(metric: str, relation: Neighbours, d_in: float | None) -> float:
    own = ROW_METRICS.get(metric)
    if own is None:
        if d_in is None:
            remedy = "Pass d_in: how far one row moves what goes in."
            raise refusal(
                "a distance of neighbours", "d_in", f"None for the metric {metric}", remedy
            )
        return d_in
    if own == 0 and relation == "add-remove":
        remedy = (
            "What is private between data sets of one size may publish the size: name replace-one."
        )
        raise refusal(f"'replace-one' for the metric {metric}", "neighbours", relation, remedy)
    least = 2 if own == 1 and relation == "replace-one" else 1
    if d_in is None:
        return least
    if not _checks.whole(d_in=d_in) >= least:
        remedy = (
            "A row replaced is one removed and one added."
            if least == 2
            else "Neighbours differ in one row."
        )
        raise refusal(
            f"at least {least} for {relation} and the metric {metric}", "d_in", d_in, remedy
        )
    return d_in


def _event(measure: str, loss: object) -> Event:
    match measure:
        case "MaxDivergence":
            return _part(Pure, _amount(loss))
        case "ZeroConcentratedDivergence":
            return _part(ZeroConcentrated, _amount(loss))
        case "Approximate(MaxDivergence)":
            epsilon, delta = _pair(loss)
            return NonPrivate() if math.isinf(epsilon) else Approximate(epsilon, delta)
        case "Approximate(ZeroConcentratedDivergence)":
            rho, delta = _pair(loss)
            return Composed((_part(ZeroConcentrated, rho), Approximate(0.0, delta)))
    remedy = (
        "Fix one delta first: dp.c.make_fix_delta(measurement, delta)."
        if measure == "SmoothedMaxDivergence"
        else (
            "Make it of MaxDivergence or ZeroConcentratedDivergence, or of their Approximate forms."
        )
    )
    raise refusal("a measure that has an event", "output_measure", measure, remedy)


def _part(kind: type[Pure] | type[ZeroConcentrated], amount: float) -> Event:
    if math.isinf(amount):
        return NonPrivate()
    return kind(amount) if amount > 0 else NoOp()


def _amount(loss: object) -> float:
    return _checks.non_negative(allow_inf=True, privacy_loss=plain_number(loss))


def _pair(loss: object) -> tuple[float, float]:
    if not isinstance(loss, tuple) or len(loss) != 2:
        raise refusal("a pair", "privacy_loss", repr(loss), "Pass what OpenDP returns.")
    return _amount(loss[0]), _checks.fraction(high_open=True, delta=plain_number(loss[1]))
