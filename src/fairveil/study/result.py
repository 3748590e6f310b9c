"""A frontier: error against fairness gap at several epsilons, what looking at all of its models has
cost, and its JSON: all runs, the table made of them, one statement of all models, known curves.
Undefined is null."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .. import _checks
from ..core.events import Event
from ..core.promise import Promise
from ..errors import InputError
from ..estimators import FairClassifier
from ..privacy import epsilon as price
from ..show.frontier import Point, Series, parts_of
from ..show.numbers import at_most
from ..show.parts import Note, Part, Shown, first_chart
from ..statement.document import ARITHMETICS, PrivacyStatement, StatedBound

CONFIDENCE = 0.95
FORMAT, FORMAT_VERSION = "fairveil-frontier", 1
SHARED = (
    "models of one seed share their noise: the price of all of them together is that of secure "
    "noise alone (seeds=None)"
)
Key = tuple[float, float | None, int | None]
"""Epsilon, target and seed."""


@dataclass(frozen=True)
class Run:
    """One model: what was required, what was measured in training with noise, what held-out people show.

    `target`: the bound on the swept gap; None: none. `training`: the noisy training value of that
    gap (None: nothing was required, so nothing was measured), `noise` the largest standard
    deviation of what it is the maximum of. `met`: whether every constraint is met in training;
    None: that cannot be told from the noise. `error`, `gap` and `excess` (of the worst of all
    constraints over its bound) are exact values on held-out rows; None: not measured, or undefined
    there.

    `error_low` to `gap_high`: ends of 95 % intervals of this very model's error and gap, for the
    population that the held-out rows were drawn from.
    """

    epsilon: float
    target: float | None
    seed: int | None
    training: float | None
    noise: float | None
    met: bool | None
    reason: str
    rounds: int
    error: float | None = None
    gap: float | None = None
    excess: float | None = None
    error_low: float | None = None
    error_high: float | None = None
    gap_low: float | None = None
    gap_high: float | None = None


def point(runs: Sequence[Run]) -> dict[str, Any]:
    """All models of one epsilon and one target: means over seeds, standard deviations, 95 %
    intervals of the means.

    mean +- t sd / sqrt(n), t the quantile of Student's distribution with n - 1 degrees of freedom.
    It is about the noise of training on this split alone: other people would give other numbers. Of
    one model the ends are its own, over the held-out rows. None: not measured.
    """
    out: dict[str, Any] = {
        "epsilon": runs[0].epsilon,
        "target": runs[0].target,
        "models": len(runs),
    }
    training = summary([run.training for run in runs])
    noises = [run.noise for run in runs if run.noise is not None]
    out |= {
        "training_gap": training["mean"],
        "training_gap_sd": training["sd"],
        "training_noise": max(noises, default=None),
    }
    for name in ("error", "gap"):
        own = [_checks.named(run, (name, f"{name}_low", f"{name}_high")) for run in runs]
        found = summary([one[name] for one in own])
        head = name if name == "error" else "held_out_gap"
        out |= {
            head if part == "mean" else f"{head}_{part}": value for part, value in found.items()
        }
        if len(runs) == 1:
            out |= {f"{head}_{end}": own[0][f"{name}_{end}"] for end in ("low", "high")}
    excesses = [run.excess for run in runs]
    out["held_out_excess"] = summary(excesses)["mean"]
    out["undefined"] = sum(run.error is not None and run.gap is None for run in runs)
    for name, verdict in (("met", True), ("not_met", False), ("cannot_be_told", None)):
        out[name] = sum(run.met is verdict for run in runs)
    return out


def summary(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean, standard deviation and the ends of the interval of the mean; None wherever one of the
    values is.

    >>> {name: round(value, 4) for name, value in summary([0.1, 0.2, 0.3]).items()}
    {'mean': 0.2, 'sd': 0.1, 'low': -0.0484, 'high': 0.4484}
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return dict.fromkeys(("mean", "sd", "low", "high"))
    mean = float(np.mean(known))
    if len(known) < 2:
        return {"mean": mean, "sd": None, "low": None, "high": None}
    sd = float(np.std(known, ddof=1))
    reach = float(stdtrit(len(known) - 1, 0.5 + CONFIDENCE / 2)) * sd / math.sqrt(len(known))
    return {"mean": mean, "sd": sd, "low": mean - reach, "high": mean + reach}


@dataclass(frozen=True, eq=False)
class Frontier(Shown):
    """Models over bounds, budgets and seeds, measured on held-out rows: what `frontier` returns.

    It holds released values, and exact tables of held-out rows, which no guarantee covers.

    Attributes
    ----------
    measure : str
        The swept gap, in words.
    runs : tuple of Run
        One a model.
    privacy : PrivacyStatement
        Statement of all models together: its epsilon is the price of looking at all, and of
        choosing one.
    held_out_rows : int or None
        Number of held-out rows; None where nothing was held out.
    published : tuple of Series
        Published curves to compare with.
    models : mapping
        Fitted estimators by (epsilon, target, seed).

    See Also
    --------
    frontier : Makes one.
    fairveil.show.Report : A page of several results, with a decision statement.
    """

    measure: str
    runs: tuple[Run, ...]
    privacy: PrivacyStatement
    held_out_rows: int | None = None
    published: tuple[Series, ...] = ()
    models: Mapping[Key, FairClassifier] = field(default_factory=dict, repr=False)

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
            Lines of plain values: see `point`.
        """
        places = dict.fromkeys((run.epsilon, run.target) for run in self.runs)
        return [
            point([run for run in self.runs if (run.epsilon, run.target) == place])
            for place in places
        ]

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
        notes: Sequence[str] = (),
    ) -> list[Part]:
        """Error against the swept gap on held-out rows: a chart with one curve an epsilon, and a table
        of every point.

        Parameters
        ----------
        dataset : str, default="held-out rows"
            Whose rows, for the title.
        notes : sequence of str, default=()
            Sentences for the text alternative.

        Returns
        -------
        list of charts and a table
            The parts.
        """
        if self.held_out_rows is None:
            remedy = "Errors of training rows are not released: pass frontier(..., test=(X, y, A))."
            raise InputError.expected("held-out rows", of="plot", got=None, remedy=remedy)
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
        told = parts_of(self.measure, dataset, every, required=required, notes=said, unit=unit)
        return [*told, *map(Note, said)]

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
        counts = [line["models"] for line in self.table()]
        one = (
            "95% intervals of this very model for people like the held-out ones (Wilson, Newcombe)"
        )
        if max(counts) == 1:
            return one
        alone = f"; of a point with one model, {one}" if 1 in counts else ""
        return f"95% intervals of the mean over seeds{alone}"

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

    def to_json(self) -> str:
        """Every number of the frontier as a JSON document, with the statement.

        Returns
        -------
        str
            The document. Models are saved with `fairveil.save`.
        """
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Describe the frontier as plain JSON values.

        Returns
        -------
        dict
            Every number, with the statement.
        """
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "measure": self.measure,
            "held_out_rows": self.held_out_rows,
            "runs": _plain([asdict(run) for run in self.runs]),
            "table": _plain(self.table()),
            "privacy": self.privacy.to_dict(),
            "published": _plain([asdict(series) for series in self.published]),
        }


def _plain(value: object) -> Any:
    """JSON has no infinities: "inf", as everywhere in the library."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


# Of all models together


def promise_of_all(promises: Sequence[Promise], events: Sequence[Event]) -> Promise:
    """What models together keep; not private where one of them is not."""
    promise, spent = promises[0], math.inf
    if all(one.is_private for one in promises):
        spent = price(events, promise.delta, promise.neighbours) * (1.0 + 1e-9)
    return replace(promise, epsilon=max(spent, *(one.epsilon for one in promises)))


def tuning_of(keys: Iterable[Key], whole: Promise) -> str:
    """What each model's statement says of the others."""
    listed = list(keys)
    epsilons, gaps, seeds = (len({key[place] for key in listed}) for place in range(3))
    grid = (
        f"one of {len(listed)} models of a frontier ({epsilons} epsilons, {gaps} gaps, {seeds} "
        f"seeds)"
    )
    cost = (
        f"epsilon {at_most(whole.epsilon)} at delta {whole.delta:g}"
        if whole.is_private
        else "what no guarantee covers"
    )
    return f"{grid}; whoever saw them all, or chose this one by what was seen, was shown {cost}"


def held_out_words(rows: int) -> str:
    """What is not covered beside the models."""
    return (
        f"exact errors and gaps of {rows} held-out rows, shown beside the models: no guarantee "
        f"covers those rows"
    )


def statement_of_all(
    stated: Sequence[PrivacyStatement], events: Sequence[Event], whole: Promise
) -> PrivacyStatement:
    """The statement of all models together."""
    bounds: dict[str, StatedBound] = {}
    for bound in (bound for statement in stated for bound in statement.bounds):
        if bound.question not in bounds or bound.sensitivity > bounds[bound.question].sensitivity:
            bounds[bound.question] = bound
    secure = all(statement.noise == "secure" for statement in stated)
    not_covered = dict.fromkeys(
        sentence for statement in stated for sentence in statement.not_covered
    )
    together = PrivacyStatement.of(
        whole,
        events,
        plan=events if whole.is_private else None,
        facts=stated[0].facts,
        bounds=bounds.values(),
        not_covered=[*not_covered, *([] if secure else [SHARED])],
        tuning=f"the price of all {len(stated)} models of a frontier together: any of them may be "
        f"chosen by what was seen",
        noise="secure" if secure else "seeded",
        arithmetic=max(
            (statement.arithmetic for statement in stated), key=ARITHMETICS.index, default="exact"
        ),
        user_code=next(
            (statement.user_code for statement in stated if statement.user_code != "none"), "none"
        ),
        ledger=max(
            (one.ledger for one in stated if one.ledger is not None),
            key=lambda one: one.entry,
            default=None,
        ),
    )
    notes = dict.fromkeys(sentence for statement in stated for sentence in statement.notes)
    return replace(together, notes=tuple(notes))
