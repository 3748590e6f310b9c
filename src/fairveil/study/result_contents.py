"""A frontier: error against fairness gap at several epsilons, and what looking at all of its models
has cost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _html
from ..errors import InputError
from ..estimators import RateConstrainedClassifier
from ..figures import Floor, FrontierFigure, Measure, Point, Series, svg_frontier
from ..privacy.shown import at_most
from ..privacy.statement.statement import PrivacyStatement
from .runs import Run, point

Key = tuple[float, float | None, int | None]


@dataclass(frozen=True, eq=False)
class FrontierContents:
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

    def figure(
        self,
        *,
        dataset: str = "held-out rows",
        floor: Floor | None = None,
        notes: Sequence[str] = (),
        layout: str = "auto",
    ) -> FrontierFigure:
        """Figure of error against the swept gap on held-out rows, one curve an epsilon.

        Parameters
        ----------
        dataset : str, default="held-out rows"
            Whose rows, for the title.
        floor : Floor, default=None
            Gap that an exactly fair model measures at on so few rows. None: not drawn.
        notes : sequence of str, default=()
            Sentences for the text alternative.
        layout : {"auto", "together", "by-epsilon"}, default="auto"
            One pair of axes for all curves, or one for each epsilon. ``"auto"``: chosen for the
            curves.

        Returns
        -------
        FrontierFigure
            Contents to draw as SVG, or on axes by `FrontierDisplay`.
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
        lines = [
            line
            for line in self.table()
            if line["error"] is not None and line["held_out_gap"] is not None
        ]
        left_out = len(self.table()) - len(lines)
        if left_out:
            notes = (
                *notes,
                f"{left_out} points are left out: their gap is undefined on the held-out rows.",
            )
        series = [
            self._series(epsilon, lines)
            for epsilon in self.epsilons
            if any(x["epsilon"] == epsilon for x in lines)
        ]
        if not series:
            remedy = "A group has no held-out row that a rate is about: hold more rows out."
            raise InputError.expected("a gap that is defined", of="plot", got="none", remedy=remedy)
        unit: Any = "points" if self.measure.endswith("gap") else "percent"
        return FrontierFigure(
            self.measure.removesuffix(" gap"),
            dataset,
            (*series, *self.published),
            floor=floor,
            notes=tuple(notes),
            interval=self._interval,
            gap=Measure(self.measure, unit),
            layout=layout,  # type: ignore[arg-type]  # the figure checks the word
        )

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, width: int = 720, **options: Any
    ) -> str:
        """Draw the figure as SVG.

        Parameters
        ----------
        path : path, default=None
            File that it is written to, ending in .svg. None: it is not written.
        width : int, default=720
            Width in pixels.
        **options
            Those of `figure`.

        Returns
        -------
        str
            The SVG.
        """
        drawn = svg_frontier(self.figure(**options), width=width)
        if path is not None:
            if Path(path).suffix.lower() != ".svg":
                remedy = "Pass plot('frontier.svg')."
                raise InputError.expected(
                    "a name that ends .svg", of="path", got=str(path), remedy=remedy
                )
            Path(path).write_text(drawn + "\n", encoding="utf-8")
        return drawn

    def _repr_html_(self) -> str:
        drawn = (
            ""
            if self.held_out_rows is None
            else svg_frontier(self.figure(), name=f"frontier-{id(self):x}")
        )
        return _html.paragraph(str(self)) + drawn

    def __str__(self) -> str:
        count = (
            f"{len(self.runs)} models, {len(self.epsilons)} epsilons, {len(self.targets)} targets "
            f"of the {self.measure}"
        )
        if math.isinf(self.epsilon):
            price = "some are not private: looking at them all is covered by no guarantee"
        else:
            price = (
                f"looking at all of them costs epsilon {at_most(self.epsilon)} at delta "
                f"{self.privacy.delta:g}"
            )
        return f"{count}; {price}."

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

    def _series(self, epsilon: float, lines: Sequence[Mapping[str, Any]]) -> Series:
        private = not math.isinf(epsilon)
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
            for line in lines
            if line["epsilon"] == epsilon
        )
        return Series(
            "Fairveil", epsilon, self.privacy.promise.protects if private else "nothing", points
        )
