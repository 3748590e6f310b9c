"""A base classifier that was looked at before counts were asked for: the delta that a choice
reaches, and what noise it takes.

`python benchmarks/looked_at.py` prints Markdown. The delta is enumerated over the outcomes of the
base (of a choice: over its extreme pairs of distributions), taking at each the kind of noise that
tells most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy import special

from fairveil.learning.postprocessing.counting import CountNoise
from fairveil.privacy import Filter, Promise, calibrate
from fairveil.privacy.accounting.routes import gaussian_mu
from fairveil.privacy.accounting.two_steps import reference, within
from fairveil.privacy.events import DiscreteLaplace, Event, Exponential, Gaussian, Pure, compose

Floats = npt.NDArray[np.float64]
KINDS: dict[str, Callable[[float], Event]] = {
    "discrete-laplace": DiscreteLaplace,
    "gaussian": Gaussian,
}


def gaussian_delta(mu: float, e: Floats) -> Floats:
    """Balle and Wang (2018)."""
    return np.asarray(
        special.ndtr(mu / 2 - e / mu) - np.exp(e + special.log_ndtr(-mu / 2 - e / mu))
    )


def pure_delta(epsilon: float, e: Floats) -> Floats:
    """Of randomised response, which discrete Laplace noise on one count is."""
    p = 1 / (1 + math.exp(-epsilon))
    return np.maximum(0.0, p - np.exp(e) * (1 - p)) + np.maximum(0.0, 1 - p - np.exp(e) * p)


def losses_of(base: Event) -> Iterator[tuple[Floats, Floats]]:
    """(losses, chances) of the base's worst pairs."""
    if isinstance(base, Exponential):
        for at in base.epsilon * np.linspace(0.02, 0.98, 49):
            p = (1 - math.exp(at - base.epsilon)) / (1 - math.exp(-base.epsilon))
            yield np.array([at, at - base.epsilon]), np.array([p, 1 - p])
    elif isinstance(base, Pure):
        p = 1 / (1 + math.exp(-base.epsilon))
        yield np.array([base.epsilon, -base.epsilon]), np.array([p, 1 - p])
    elif isinstance(base, Gaussian):
        mu, ends = 1 / base.noise_multiplier, np.linspace(-8, 8, 4001)
        yield mu * mu / 2 + mu * ends[:-1], np.diff(special.ndtr(ends))


def reached(base: Event, laplace: float, gaussian: float, epsilon: float) -> float:
    """The delta of the best choice between two multipliers."""
    out = 0.0
    for losses, chances in losses_of(base):
        e = epsilon - losses
        out = max(
            out,
            float(
                chances @ np.maximum(pure_delta(1 / laplace, e), gaussian_delta(1 / gaussian, e))
            ),
        )
    return out


def least(
    promise: Promise, base: Event, law: Callable[[float], Event], *, two_steps: bool
) -> float:
    """The least multiplier beside the base, as one plan or as a second step."""
    if not two_steps:
        return calibrate(promise, lambda z: compose((base, law(z)))).multiplier
    target = within(promise, base)
    return calibrate(
        target, lambda z: compose((base, reference(law(z), promise.neighbours)))
    ).multiplier


def filtered(promise: Promise, base: Event) -> str:
    """The least noise of a count that a Gaussian filter admits after the base."""
    cap = Filter.create(promise, "gaussian")
    if not cap.fits(base):
        return "no room"
    return (
        f"{min(CountNoise(kind, _least(cap.add(base), law)).sd for kind, law in KINDS.items()):.2f}"
    )


def main() -> None:
    """Measure and print."""
    print(
        "| base | promise | delta, one plan | delta, two steps | noise, one plan | noise, two "
        "steps | noise, Gaussian filter |"
    )
    print("|---|---|---|---|---|---|---|")
    tried, beyond, worst, ratios = 0, 0, 0.0, []
    for epsilon, delta in (
        (0.5, 1e-3),
        (0.5, 1e-6),
        (1.0, 1e-3),
        (1.0, 1e-5),
        (1.0, 1e-6),
        (3.0, 1e-5),
    ):
        promise = Promise(epsilon, delta)
        half, most = (
            Gaussian(1 / gaussian_mu(share * epsilon, share * delta)) for share in (0.5, 0.8)
        )
        for base in (
            Exponential(0.2 * epsilon),
            Exponential(0.8 * epsilon),
            Pure(0.5 * epsilon),
            half,
            most,
        ):
            plan, steps = (
                [least(promise, base, law, two_steps=later) for law in KINDS.values()]
                for later in (False, True)
            )
            naive, mended = (reached(base, *found, epsilon) / delta for found in (plan, steps))
            noises = [
                min(map(lambda kind, z: CountNoise(kind, z).sd, KINDS, found))
                for found in (plan, steps)
            ]
            tried, beyond, worst = tried + 1, beyond + (mended > 1), max(worst, naive)
            ratios.append((delta, noises[1] / noises[0]))
            size = base.noise_multiplier if isinstance(base, Gaussian) else base.epsilon
            told = [
                f"{type(base).__name__}({size:.3g})",
                f"{epsilon:g}, {delta:g}",
                f"{naive:.2f} x",
                f"{mended:.2f} x",
            ]
            print(
                f"| "
                f"{' | '.join([*told, *(f'{noise:.2f}' for noise in noises), filtered(promise, base)])} "
                f"|"
            )
    print(
        f"\n{tried} tried: as one plan up to {worst:.2f} times the promised delta, in two steps "
        f"{beyond} beyond it. Noise of"
    )
    for at in (1e-3, 1e-5, 1e-6):
        found = [ratio for delta, ratio in ratios if delta == at]
        print(
            f"two steps at delta {at:g}: {min(found):.2f} to {max(found):.2f} times that of one "
            f"plan."
        )


def _least(cap: Filter, law: Callable[[float], Event]) -> float:
    low, high = 1e-3, 1e6
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cap.fits(law(middle)) else (middle, high)
    return high


if __name__ == "__main__":
    main()
