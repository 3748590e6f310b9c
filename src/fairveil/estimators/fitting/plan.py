"""`Plan`: what a fit would release, with how much noise, and what that lets one enforce and verify.
Public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...core.promise import Promise
from ...learning.forecasting.forecast import groups_of
from ...learning.forecasting.foretold import Forecast, Line
from ...learning.forecasting.releases import Release
from ...learning.forecasting.supposed import Supposed
from ...show.charts import Curves
from ...show.parts import Column, Facts, Note, Part, Shown, Table
from ...tables import keys
from .plan_figure import chart
from .plan_search import least, short, smallest_share
from .plan_words import from_points, noise_in_words, plain, points, rows_up, up

EQUAL = "supposed equal: nobody stated them"
MOST_LINES = 12  # of constraints in print; `table()` has them all


@dataclass(frozen=True)
class Enough:
    """What would do for every required bound: the least epsilon with as many rows, and the fewest
    rows at the same epsilon.

    None: nothing up to 1,000, or 10^10 rows, would. `enforce`: two deviations of the noise are
    within the bound; `verify`: a model without any gap is said to have met it in 19 fits of 20.
    """

    epsilon_to_enforce: float | None
    rows_to_enforce: int | None
    epsilon_to_verify: float | None
    rows_to_verify: int | None


@dataclass(frozen=True, eq=False)
class Plan(Shown):
    """What a fit would do, from public facts alone: nothing was read, and nothing is spent.

    `forecast`: its releases and the noise of each constraint's value. `supposed`: the rows and
    shares that it is worked out for. Print it, or take `verdict`, `table()`, `to_dict()`,
    `chart()`.
    """

    estimator: str
    promise: Promise
    forecast: Forecast
    supposed: Supposed
    _again: Callable[..., Forecast] = field(repr=False)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What would be released: noise multipliers, sensitivities, how often, and about which
        share of the budget."""
        return self.forecast.releases

    @property
    def lines(self) -> tuple[Line, ...]:
        """One a constraint: its bound, its noise, and the smallest bounds that could be enforced
        and verified."""
        return self.forecast.lines

    @property
    def can_be_enforced(self) -> bool | None:
        """Whether every required bound can be enforced; None where nothing is required, or no noise
        is foretold."""
        bounded = [line for line in self.lines if line.bound is not None]
        return all(line.can_be_enforced for line in bounded) if bounded else None

    @property
    def can_be_verified(self) -> bool | None:
        """Whether every required bound can be verified from what the fit releases."""
        bounded = [line for line in self.lines if line.bound is not None]
        return all(line.can_be_verified for line in bounded) if bounded else None

    @property
    def verdict(self) -> str:
        """The plan in one sentence."""
        if not self.promise.is_private:
            return "Nothing is private at epsilon inf: no noise is added."
        worst = self.forecast.noisiest
        if worst is None:
            return (
                f"No noise of a constraint is foretold: "
                f"{self.forecast.why or 'nothing is required'}."
            )
        if not any(line.noise for line in self.lines):
            return "No constraint's value gets noise: nothing that it is made of is protected."
        head = (
            f"With {self._sizes()} at epsilon {self.promise.epsilon:.3g} the noise is "
            f"±{points(worst.noise)} points{self._condition}"
        )
        bounded = [line for line in self.lines if line.bound is not None]
        if not bounded:
            return f"{head}; no bound is required."
        broken = [line for line in bounded if not line.can_be_enforced]
        if len(broken) == len(bounded):
            return f"{head}: nothing can be enforced."
        if broken:
            return f"{head}: {len(broken)} of {len(bounded)} constraints cannot be enforced."
        smallest = (
            ""
            if self.least_share is None
            else f" The smallest group must have {self._share_in_words()}."
        )
        unsure = [line for line in bounded if not line.can_be_verified]
        if unsure:
            return (
                f"{head}: what is required can be enforced, but the release can hardly verify "
                f"it.{smallest}"
            )
        return (
            f"{head}: what is required can be enforced, but a verdict is inconclusive where a fit "
            f"ends near its bound; with a confidence for the constraint it targets a tighter one."
            f"{smallest}"
        )

    @property
    def _condition(self) -> str:
        """What a reader must know of the groups, where nobody stated how large they are."""
        return "" if self._stated else " if groups are equal in size, which nobody stated"

    def _sizes(self) -> str:
        if self.forecast.cells is None:
            return f"{self.supposed.rows:,.0f} rows"
        shares = self.supposed.shares(self.forecast.cells)
        each = (
            f"{len(shares)} groups of {self.supposed.rows * float(shares.min()):,.0f} rows or more"
        )
        return each if self._stated else f"{self.supposed.rows:,.0f} rows in {len(shares)} groups"

    @property
    def _stated(self) -> bool:
        """Whether somebody stated how large all groups are."""
        cells = self.forecast.cells
        return cells is None or not set(cells.names) & set(self.supposed.guessed)

    @cached_property
    def enough(self) -> Enough | None:
        """What epsilon, or how many rows, would do; None where no bound is required."""
        if self.can_be_enforced is None or not self.promise.is_private:
            return None
        enforce, verify = "enforceable", "verifiable"
        return Enough(
            self._epsilon(enforce), self._rows(enforce), self._epsilon(verify), self._rows(verify)
        )

    def _epsilon(self, what: str) -> float | None:
        return least(
            lambda epsilon: short(self._at(self.supposed, epsilon), what),
            self.promise.epsilon,
            1e-3,
            1e3,
        )

    def _rows(self, what: str) -> int | None:
        found = least(
            lambda n: short(self._at(self.supposed.at(round(n))), what),
            self.supposed.rows,
            10.0,
            1e10,
        )
        return None if found is None else math.ceil(found)

    def _at(self, supposed: Supposed, epsilon: float | None = None) -> Forecast:
        """Foretold once for each place where a search looks."""
        key = (
            supposed.rows,
            epsilon,
            *(tuple(line.tolist()) for line in supposed.columns.values()),
        )
        if key not in self._looked:
            self._looked[key] = self._again(supposed, epsilon)
        return self._looked[key]

    @cached_property
    def _looked(self) -> dict[Any, Forecast]:
        return {}

    @cached_property
    def least_share(self) -> float | None:
        """The share that the smallest group may have, the others being alike, so that every bound
        could still be enforced.

        None where sizes were stated, or no share would do."""
        cells = self.forecast.cells
        if (
            self.can_be_enforced is None
            or cells is None
            or self._stated
            or not self.promise.is_private
        ):
            return None
        return smallest_share(self.supposed, cells, lambda one: short(self._at(one)))

    # -- shown -------------------------------------------------------------------------------------

    def table(self) -> list[dict[str, Any]]:
        """One mapping a constraint, of plain values: rates as fractions; too few rows to be told
        from none: "inf"."""
        return [
            {
                "target": line.name,
                "bound": line.bound,
                "noise": plain(line.noise),
                "sampling_error": None if line.sampling is None else plain(line.sampling),
                "smallest_enforceable": plain(line.enforceable),
                "smallest_verifiable": plain(line.verifiable),
                "smallest_breach": plain(line.breach),
                "can_be_enforced": line.can_be_enforced,
                "can_be_verified": line.can_be_verified,
            }
            for line in self.lines
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        enough = self.enough
        return {
            "estimator": self.estimator,
            "verdict": self.verdict,
            "can_be_enforced": self.can_be_enforced,
            "can_be_verified": self.can_be_verified,
            "promise": self.promise.to_dict(),
            "rows": round(self.supposed.rows),
            "shares": {
                name: [float(share) for share in line]
                for name, line in self.supposed.columns.items()
            },
            "shares_of_classes": [float(share) for share in self.supposed.classes],
            "shares_supposed": list(self.supposed.guessed),
            "rounds": self.forecast.rounds,
            "releases": [
                {
                    "release": one.name,
                    "noise_multiplier": one.multiplier,
                    "epsilon": one.epsilon,
                    "sensitivity": one.sensitivity,
                    "times": one.times,
                    "share": one.share,
                }
                for one in self.releases
            ],
            "constraints": self.table(),
            "added_error": self.forecast.added_error,
            "enough": None if enough is None else vars(enough).copy(),
            "least_share": self.least_share,
            "not_foretold": self.forecast.why or None,
        }

    def chart(self) -> Curves:
        """The smallest bound that can be enforced against epsilon, one line a group, and the bound
        that is required."""
        return chart(self.forecast, self.supposed, self.promise, self._again)

    def facts(self) -> list[tuple[str, str]]:
        """One fact a line: (label, words)."""
        s, found = self.supposed, self.forecast
        lines = [
            ("plan", self.verdict),
            ("privacy", str(self.promise)),
            ("rows", f"about {s.rows:,.0f}"),
        ]
        if found.cells is not None:
            lines.append(("groups", self._groups()))
            if not self._stated and self.enough is not None:
                lines.append(("smallest group", self._share_in_words()))
        worst = found.noisiest
        if worst is not None and self.promise.is_private:
            bounded = worst.bound is not None
            lines.append(("noise", noise_in_words(worst)))
            if bounded:
                lines.append(("enforceable", from_points(worst.enforceable)))
                lines.append(
                    ("verifiable", f"{from_points(worst.verifiable)}, at a confidence of 95 %")
                )
            if worst.sampling is not None:
                lines.append(
                    ("sampling error", f"±{points(worst.sampling)} points, on top of the noise")
                )
            lines += self._enough_in_words() if bounded else []
        elif found.why:
            lines.append(("not foretold", found.why))
        if found.added_error is not None and self.promise.is_private:
            added = (
                f"about {points(found.added_error)}"
                if found.added_error >= 0.0005
                else "less than 0.1"
            )
            lines.append(("added error", f"{added} points, from the noise in the model"))
        return lines

    def _groups(self) -> str:
        cells, shares = self.forecast.cells, self.supposed.shares(self.forecast.cells)
        named = [
            f"{keys.shown(key)} {share:.1%}"
            for key, share in zip(groups_of(self.forecast), shares, strict=True)
        ]
        shown = ", ".join(named[:8]) + (f", and {len(named) - 8} more" if len(named) > 8 else "")
        assert cells is not None
        guessed = [name for name in cells.names if name in self.supposed.guessed]
        return shown if not guessed else f"{shown} (shares of {', '.join(guessed)} {EQUAL})"

    def _share_in_words(self) -> str:
        share = self.least_share
        if share is None:
            return "no share of the rows would be enough to enforce what is required"
        people = math.ceil(share * self.supposed.rows)
        return (
            f"at least {100 * share:.2g} % of the rows, about {people:,}, for what is required to "
            f"be enforced"
        )

    def _enough_in_words(self) -> list[tuple[str, str]]:
        enough = self.enough
        if enough is None:
            return []
        pairs = (
            ("to enforce", enough.epsilon_to_enforce, enough.rows_to_enforce),
            ("to verify", enough.epsilon_to_verify, enough.rows_to_verify),
        )
        out = []
        for label, epsilon, rows in pairs:
            by_epsilon = "no epsilon up to 1,000" if epsilon is None else f"epsilon {up(epsilon)}"
            by_rows = "no number of rows" if rows is None else f"{rows_up(rows):,} rows"
            out.append((label, f"{by_epsilon}, or {by_rows}, would do"))
        return out

    def _releases(self) -> Table:
        rows = self.releases
        sizes = tuple(
            f"epsilon {one.epsilon:.3g}" if one.multiplier is None else f"{one.multiplier:.4g}"
            for one in rows
        )
        columns = (
            Column("release", tuple(one.name for one in rows)),
            Column("noise multiplier", sizes),
            Column("sensitivity", tuple(one.sensitivity for one in rows), "plain", missing="-"),
            Column("times", tuple(one.times for one in rows), "count"),
            Column("share of the budget", tuple(one.share for one in rows), "percent"),
        )
        return Table(columns, "What would be released")

    def _constraints(self) -> Table:
        """The noisiest first; of two that are each other's opposite one."""
        rows = self._apart
        numbers: dict[str, list[float | None]] = {
            "noise": [line.noise for line in rows],
            "enforceable from": [line.enforceable for line in rows],
            "verifiable from": [line.verifiable for line in rows],
            "sampling error": [line.sampling for line in rows],
        }
        columns = [
            Column(name, tuple(values), "points", missing="-") for name, values in numbers.items()
        ]
        names = Column("constraint", tuple(line.name for line in rows))
        title = "Standard deviations, and the smallest bounds that could be kept"
        return Table((names, *columns), title, shown=MOST_LINES)

    @property
    def _apart(self) -> list[Line]:
        """The noisiest first; a gap from one group to another has the noise of the gap back."""
        found: dict[Any, Line] = {}
        for line in sorted(self.lines, key=lambda line: -line.noise):
            found.setdefault((line.cells, line.bound, f"{line.noise:.9g}"), line)
        return list(found.values())

    def parts(self) -> Iterator[Part]:
        """What a fit would do: in facts, its releases, a line a constraint, and the picture."""
        yield Facts.of(self.facts())
        if self.releases:
            yield self._releases()
        if self.lines:
            yield self._constraints()
        if self.promise.is_private and any(line.noise for line in self.lines):
            yield self.chart()
        else:
            yield Note("Nothing has noise, so there is nothing to draw.")
