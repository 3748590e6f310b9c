"""Why a budget is shared by standard errors, not by sizes (Alabi and Wiggins, Lemma 3.1 and table
4), and where it is no use.

    python examples/why_standard_errors.py [--out FOLDER]      writes
    why_standard_errors_{losses,one_clip,own_clips}.svg

**What the lemma says.** Two groups, y = x.b_k + N(0, s_k^2), n_k rows each, X_k their rows, d = b_1
- b_2. Rows are the first group's with probability c, else the second's, and the predictor, drawn
apart from that, is b_1 with probability c, else b_2. Its expected loss is

    E = c n_1 s_1^2 + (1 - c) n_2 s_2^2 + c (1 - c) (|X_1 d|^2 + |X_2 d|^2).

The paper prints c^2 n_1 C s_1^2 + (1 - c)^2 n_2 C s_2^2 + c (1 - c) (G_1 + G_2) with C ~ chi^2_1,
G_1 = |Y_2 - X_2 b_1|^2 and G_2 = |Y_1 - X_1 b_2|^2. Three corrections: an expectation has no random
C (its mean is 1); |Y_1 - X_1 b_1|^2 is s_1^2 times a chi^2 of n_1 degrees, whose mean is that of
n_1 chi^2_1, and whose variance is n_1 times smaller; and the G have variances of targets in them,
too, E G_1 = n_2 s_2^2 + |X_2 d|^2, so that s_k^2 counts c, not c^2, in all.

So a group's loss is its variance and what another line costs it. With equal sizes (table 4:
variances 10,000 and 10) sizes tell nothing of that, and standard errors do.

**What shares do.** Two groups' sums, each clipped row by row to a clip C_k, and with noise of
deviation C_k / sqrt(r_k), have together noise of deviation sqrt(C_1^2 / r_1 + C_2^2 / r_2). With
r_1 + r_2 = 1:

- *One clip for both.* Noise does not know how large residuals are. It is least at equal shares; a
  ratio t of standard errors makes it (t^2 + 1) / (2 t) times larger with shares s_k^2, (t + 1) / (2
  sqrt t) with shares s_k.
- *A clip for each group, in proportion to its standard error.* Least at shares s_k (Neyman's rule;
  what table 4 prints), up to sqrt 2 below equal shares. Shares s_k^2 (Algorithm 1, and tables 2 and
  3) are no better than equal ones in the sum; what they make equal is the two groups' noise, so
  that the larger of them is least.
- *At the worst off person's guarantee.* Nobody is in both groups. If every group may have what the
  worst off person of shares s_k^2 has, max r, there is less noise than with any of these in both
  cases, and no group's share is at the cost of another's.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from fairveil.show import Axis, Curve, Curves

VARIANCES = (10_000.0, 10.0)  # table 4
APART = 1000.0  # |X_k d|^2 / n_k
RATIOS = tuple(2.0 ** (step / 4) for step in range(21))
RULES = {
    "equal shares (as by sizes)": 0.0,
    "shares by standard errors (table 4)": 1.0,
    "by their squares (Algorithm 1)": 2.0,
}
WORST = "every group what the worst person has there"


def expected_loss(
    c: float, sizes: tuple[int, int], variances: tuple[float, float], apart: tuple[float, float]
) -> float:
    """Lemma 3.1, corrected. `apart`: |X_k d|^2."""
    own = c * sizes[0] * variances[0] + (1.0 - c) * sizes[1] * variances[1]
    return own + c * (1.0 - c) * sum(apart)


def group_losses(
    c: float, variances: tuple[float, float] = VARIANCES, apart: float = APART
) -> tuple[float, float]:
    """What the predictor of the lemma loses a row, in each group. `apart`: |X_k d|^2 / n_k."""
    return variances[0] + (1.0 - c) * apart, variances[1] + c * apart


def shares(errors: tuple[float, float], power: float) -> tuple[float, float]:
    """In proportion to a power of standard errors: they add up to 1."""
    first, second = (error**power for error in errors)
    return first / (first + second), second / (first + second)


def noise(clips: tuple[float, float], paid: tuple[float, float]) -> float:
    """The deviation in the sum of both groups' sums. `paid`: r_k."""
    return math.hypot(*(clip / math.sqrt(r) for clip, r in zip(clips, paid, strict=True)))


def arms(ratio: float, *, own_clips: bool) -> dict[str, float]:
    """Noise over that of equal shares, at a ratio of standard errors."""
    errors = (ratio, 1.0)
    clips = errors if own_clips else (1.0, 1.0)
    least = noise(clips, (0.5, 0.5))
    out = {name: noise(clips, shares(errors, power)) / least for name, power in RULES.items()}
    most = max(shares(errors, 2.0))
    return out | {WORST: noise(clips, (most, most)) / least}


def losses_figure() -> Curves:
    """Both groups' losses, whatever the mixture is."""
    chances = [step / 20 for step in range(21)]
    names = [f"group {k}, variance {variance:,.0f}" for k, variance in enumerate(VARIANCES, 1)]
    curves = [
        Curve(name, tuple((c, group_losses(c)[k]) for c in chances)) for k, name in enumerate(names)
    ]
    title = "Groups of one size: what the best randomised line loses"
    notes = ("Lemma 3.1, corrected. Sizes are equal: they do not tell which group is which.",)
    across = Axis("chance of the first group's line")
    return Curves(
        title,
        across,
        Axis("squared error a row", log=True),
        tuple(curves),
        notes=notes,
    )


def noise_figure(*, own_clips: bool) -> Curves:
    """Noise of every rule, by the ratio of standard errors."""
    found = {ratio: arms(ratio, own_clips=own_clips) for ratio in RATIOS}
    curves = tuple(
        Curve(name, tuple((ratio, arm[name]) for ratio, arm in found.items()))
        for name in (*RULES, WORST)
    )
    title = (
        "A clip for each group, by its standard error" if own_clips else "One clip for both groups"
    )
    notes = (
        f"Two groups of one size. Table 4 has a ratio of "
        f"{math.sqrt(VARIANCES[0] / VARIANCES[1]):.0f}.",
    )
    across, up = (
        Axis("ratio of standard errors", log=True),
        Axis("noise, equal shares = 1", log=True),
    )
    return Curves(title, across, up, curves, notes=notes)


def main() -> None:
    """Write the figures, and say where."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, default=Path("."))
    folder = options.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "losses": losses_figure(),
        "one_clip": noise_figure(own_clips=False),
        "own_clips": noise_figure(own_clips=True),
    }
    for name, figure in figures.items():
        place = folder / f"why_standard_errors_{name}.svg"
        place.write_text(figure.to_svg() + "\n", encoding="utf-8")
        print(place)
    ratio = math.sqrt(VARIANCES[0] / VARIANCES[1])
    for own_clips in (False, True):
        told = ", ".join(
            f"{name}: {value:.3g}" for name, value in arms(ratio, own_clips=own_clips).items()
        )
        print(f"{'own clips' if own_clips else 'one clip'}, ratio {ratio:.1f}: {told}")


if __name__ == "__main__":
    main()
