"""Times and tightness of the accountant: `python benchmarks/accounting.py` prints JSON.

Times are the median of several runs on plans that were never priced before; ratios are ours over
dp_accounting's.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import dp_accounting as dp
from dp_accounting import pld

from fairveil.privacy.accounting.accountant import epsilon
from fairveil.privacy.accounting.calibration import calibrate, full_batch, most_rounds
from fairveil.privacy.events import Composed, Event, Gaussian, Laplace, PoissonSampled, Repeated
from fairveil.privacy.promise import Promise

RELATIONS = {
    "add-remove": dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace-one": dp.NeighboringRelation.REPLACE_ONE,
}
PLANS = ((0.017, 2000), (0.1, 100), (0.001, 10_000))


def milliseconds(run: Callable[[int], object], runs: int = 5) -> float:
    """The median over runs; each gets its number, so that it can ask something new."""
    times = []
    for number in range(runs):
        start = time.perf_counter()
        run(number)
        times.append(1e3 * (time.perf_counter() - start))
    return round(statistics.median(times), 3)


def poisson(rate: float, count: int, part: Callable[[float], Event]) -> Callable[[float], Event]:
    """A plan of `count` Poisson batches."""
    return lambda z: Repeated(PoissonSampled(rate, part(z)), count)


def their_epsilon(rate: float, z: float, count: int, neighbours: str) -> float:
    """dp_accounting's, at its default grid."""
    accountant = pld.PLDAccountant(RELATIONS[neighbours])
    accountant.compose(
        dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z)), count)
    )
    return float(accountant.get_epsilon(1e-5))


def main() -> None:
    """Measure and print."""
    full_batch(Promise(3.0, 1e-6), 10)
    beside = [Gaussian(20.0)]
    report: dict[str, object] = {
        "full batch, calibration, ms": milliseconds(
            lambda k: full_batch(Promise(1.0 + k / 10, 1e-6), 200, beside), 50
        )
    }
    for neighbours in RELATIONS:
        for rate, count in PLANS:
            plan = poisson(rate, count, Gaussian)
            name = f"{neighbours}, q={rate}, {count} batches"
            start = time.perf_counter()
            reference = their_epsilon(rate, 1.0, count, neighbours)
            theirs = round(1e3 * (time.perf_counter() - start), 1)
            report[name] = {
                "price, ms": milliseconds(
                    lambda k, plan=plan, n=neighbours: epsilon(plan(1.0 + k / 100), 1e-5, n)
                ),  # type: ignore[misc]
                "dp_accounting's price, ms": theirs,
                "calibration, ms": milliseconds(
                    lambda k, plan=plan, n=neighbours: calibrate(  # type: ignore[misc]
                        Promise(1.0 + k / 10, 1e-5, neighbours=n), plan, cache=False
                    ),
                    3,
                ),
                "epsilon, ours over dp_accounting's": round(
                    epsilon(plan(1.0), 1e-5, neighbours) / reference, 6
                ),
            }
    joint = poisson(0.017, 2000, lambda z: Composed((Gaussian(z), Laplace(z))))
    report["Gaussian with Laplace, calibration, ms"] = milliseconds(
        lambda k: calibrate(Promise(1.0 + k / 10, 1e-5), joint, cache=False), 3
    )
    report["most rounds, ms"] = milliseconds(
        lambda k: most_rounds(Promise(1.0 + k / 10, 1e-5), PoissonSampled(0.017, Gaussian(1.0))), 3
    )
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
