"""A frontier: error against fairness gap at several epsilons, and what looking at all of its models
has cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..estimators import RateConstrainedClassifier
from ..privacy.shown import at_most
from ..show.frontier import Floor, Point, Series, charts
from ..show.frontier import table as points_table
from ..show.parts import Note, Part, Shown, first_chart
from ..statement.document import PrivacyStatement
from .runs import Run, point

Key = tuple[float, float | None, int | None]


@dataclass(frozen=True, eq=False)
class FrontierContents(Shown):
    """The runs, the statement of all of them, and all that follows from them. See `Frontier`."""

    measure: str
    runs: tuple[Run, ...]
    privacy: PrivacyStatement
    held_out_rows: int | None = None
    published: tuple[Series, ...] = ()
    models: Mapping[Key, RateConstrainedClassifier] = field(default_factory=dict, repr=False)

    @property
    def epsilon(self) -> float:
        """The price of looking at all models, at `privacy.delta`."""
        return self.privacy.epsilon

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The epsilon of one model each, in the order asked for."""
        return tuple(dict.fromkeys(run.epsilon for run in self.runs))

    @property
    def targets(self) -> tuple[float | None, ...]:
        """The gaps that were required; None: no bound."""
        return tuple(dict.fromkeys(run.target for run in self.runs))

    def table(self) -> list[dict[str, Any]]:
        """The frontier as a table, one line for each epsilon and target.

        Returns
        -------
        list of dict
            Lines of plain values: see `runs.point`.
        """
        groups: dict[tuple[float, float | None], list[Run]] = {}
        for run in self.runs:
            groups.setdefault((run.epsilon, run.target), []).append(run)
        return [point(runs) for runs in groups.values()]

    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """The table as one array a column, NaN where nothing is known.

        Returns
        -------
        dict of ndarray
            Arrays by name, as `pandas.DataFrame` takes them.
        """
        lines = self.table()
        return {
            name: np.array([math.nan if line[name] is None else line[name] for line in lines])
            for name in lines[0]
        }

    @property
    def summary(self) -> str:
        """How many models, and what looking at all of them costs."""
        count = (
            f"{len(self.runs)} models, {len(self.epsilons)} epsilons, {len(self.targets)} targets "
            f"of the {self.measure}"
        )
        return f"{count}; {self.price}."

    @property
    def price(self) -> str:
        """What looking at all models costs, in words."""
        if math.isinf(self.epsilon):
            return "some are not private: looking at them all is covered by no guarantee"
        return (
            f"looking at all of them costs epsilon {at_most(self.epsilon)} at delta "
            f"{self.privacy.delta:g}"
        )

    def parts(self) -> Iterator[Part]:
        """The price of all models, every point, and error against the swept gap."""
        yield Note(f"{self.summary[:1].upper()}{self.summary[1:]}")
        if self.held_out_rows is not None and self.series:
            yield from self.shown()

    def shown(
        self,
        *,
        dataset: str = "held-out rows",
        floor: Floor | None = None,
        notes: Sequence[str] = (),
    ) -> list[Part]:
        """Error against the swept gap on held-out rows: a chart with one curve an epsilon, one beside
        published curves, and a table of every point.

        Parameters
        ----------
        dataset : str, default="held-out rows"
            Whose rows, for the title.
        floor : Floor, default=None
            Gap that an exactly fair model measures at on so few rows. None: not drawn.
        notes : sequence of str, default=()
            Sentences for the text alternative.

        Returns
        -------
        list of charts and a table
            The parts.
        """
        if self.held_out_rows is None:
            raise InputError.expected(
                "held-out rows",
                of="plot",
                got=None,
                remedy=(
                    "Errors of training rows are not released: pass frontier(..., test=(X, "
                    "y, sensitive_features))."
                ),
            )
        series = self.series
        if not series:
            remedy = "A group has no held-out row that a rate is about: hold more rows out."
            raise InputError.expected("a gap that is defined", of="plot", got="none", remedy=remedy)
        left_out = len(self.table()) - sum(len(one.points) for one in series)
        said = (self._interval, *notes)
        if left_out:
            undefined = "points are left out: their gap is undefined on the held-out rows"
            said = (*said, f"{left_out} {undefined}.")
        unit = "points" if self.measure.endswith("gap") else "percent"
        required = [one for one in self.targets if one is not None]
        every = (*series, *self.published)
        drawn = charts(
            self.measure, dataset, every, floor=floor, required=required, notes=said, unit=unit
        )
        return [*drawn, points_table(every, self.measure, unit), *map(Note, said)]

    def plot(self, ax: object = None, **options: Any) -> Any:
        """Draw error against the swept gap on held-out rows.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.
        **options
            Those of `shown`.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        return first_chart(self.shown(**options), ax)

    @property
    def _interval(self) -> str:
        many = any(line["models"] > 1 for line in self.table())
        alone = any(line["models"] == 1 for line in self.table())
        one = (
            "95% intervals of this very model for people like the held-out ones (Wilson, Newcombe)"
        )
        if not many:
            return one
        return "95% intervals of the mean over seeds" + (
            f"; of a point with one model, {one}" if alone else ""
        )

    @property
    def series(self) -> tuple[Series, ...]:
        """A curve an epsilon, of the points whose gap is defined."""
        found = []
        for epsilon in self.epsilons:
            points = tuple(
                Point(
                    line["error"],
                    line["held_out_gap"],
                    line["error_low"],
                    line["error_high"],
                    line["held_out_gap_low"],
                    line["held_out_gap_high"],
                    target=line["target"],
                    seeds=line["models"],
                )
                for line in self.table()
                if line["epsilon"] == epsilon
                and line["error"] is not None
                and line["held_out_gap"] is not None
            )
            if points:
                private = not math.isinf(epsilon)
                protects = self.privacy.promise.protects if private else "nothing"
                found.append(Series("Fairveil", epsilon, protects, points))
        return tuple(found)
