"""Fits that certify themselves: notions that have a `confidence` are certified on rows set aside.

    DemographicParity(max_gap=0.05, confidence=0.95)

Every row is set aside with probability `share` by a coin of its own: new, secret, and of no
other row. A model is fitted to the other rows with the whole promise, and certified on those set
aside with the whole promise (`certify`). A person is in one of the two parts, so the two together
keep the same promise (theory.md#set-aside), not twice of it. Where persons are protected, the coin
is a person's: all of their rows are on one side, and the certificate counts one of them. Where a
ledger holds a fit with Gaussian releases of all its rows, the certificate's counts have Gaussian
noise that these cover, and nothing more is charged (`counts.beside`); else the ledger has two
spends.

Two parameters say what is to be certified. `constraints` are what a fit keeps: the model aims inside
each bound by the margin of `methods/certificate.py`, for a chance of 0.9 if the fit reaches its aim
(notions given labels often do not: benchmarks/results), or at a fifth of the bound where the margin
is wider. Without a public number of rows it aims at half of the bound. The certificate is of the
bound itself. Nothing aims at notions in `certify`, which are of estimators that keep no notion:
their fits are what they would be. Where groups have guarantees of their own, the counts have the
noise of the strongest one, so that each group's is kept by both.

Guarantees (tests/estimators/test_estimators_certified_fits.py):
1. Whether a row, or a person, is set aside depends on its own coin alone; coins are thrown anew by
   each fit.
2. If a bound is broken in the population by the model, it is certified with probability at most 1 -
   confidence.
3. Parameters are not changed; an error before the first release changes no attribute.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, Ints, TableLike
from ...core.errors import need
from ...core.events import compose
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...data.elsewhere import Elsewhere
from ...facts import RowSource, Schema
from ...facts.columns import Boolean, Category
from ...fairness import Notion
from ...fairness.notions import RateConstraint, SelectionRateRatio
from ...fairness.objectives import Bound
from ...ledger import already_charged, current, given_ledger
from ...methods.certificate import SupposedPeople, even_shares, layout_of, margins
from ...methods.counts import CountPlan, beside, plan_counts
from ...methods.outcome import Outcome
from ...methods.systems import NO_GROUPS, system_of
from .. import cautions, fitting, wrapped
from ..coding import parts_of
from ..counted import Asked, confidence_of, notions_of
from ..fitting import (
    CERTIFICATE,
    aside_of,
    length_of,
    parts_elsewhere,
    remembered,
    require_room,
    rows_at,
)
from ..reading import Training, names_in, read_labels
from ..settings import SetAside
from . import seen
from .certificate import Certificate, certified_by, require_compared

CONSTRAINTS, CERTIFY = "constraints", "certify"
"""The parameters that may say what is certified."""
SET_ASIDE = (
    "rows were set aside by an independent draw for each, so that the model has not seen "
    "them: a person is in one "
    "part, and fit and certificate together keep the guarantee that each of them keeps"
)
PERSONS_ASIDE = (
    "persons were set aside by an independent draw for each, with all of their rows, "
    "which the model has not seen. A "
    "person is in one part, so fit and certificate together keep the guarantee that each of them "
    "keeps"
)
BY_GROUP = (
    "the counts of the people set aside keep the strongest of the groups' guarantees: no group's "
    "people spend more than their "
    "own guarantee says"
)
PAID = (
    "the ledger holds one spend for both, that of the fit: the counts of the people set aside have "
    "Gaussian noise, and may "
    "lose no more than the fit's Gaussian releases"
)
CHANCE, LEAST, BLIND = 0.9, 0.2, 0.5
"""The chance that margins are for, the least part of a bound that is aimed at, and the part of it
without a public number of rows."""
DECISIONS = "zero_one"
CONFIDENCE = 0.95
"""That of notions in `certify` which state none."""

Fit = TypeVar("Fit", bound=Callable[..., Any])


def certified(fit: Fit) -> Fit:
    """A `fit` which certifies, of an estimator with `constraints` and `certify`."""

    @wraps(fit)
    def fitted(
        self: BaseEstimator,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> Any:
        asked = self._setting(CERTIFY, SetAside).notions
        of = CONSTRAINTS if asked is None else CERTIFY
        notions, beside = listed_in(self, of)
        if notions and (of == CERTIFY or any(notion.confidence is not None for notion in notions)):
            Both(self, fit, of, notions, beside).run(X, y, sensitive_features, sample_weight)
        else:
            got, expected = self.certify, "a notion to certify, or a constraint with a confidence"
            fix = (
                "Pass constraints=DemographicParity(0.05, confidence=0.95), for example, or "
                "certify=SetAside(notions=...)."
            )
            need(got is None, expected, of=CERTIFY, got=got, fix=fix)
            fit(self, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
            forget_certificate(self)
        seen.remember(self, X)
        return self

    return cast(Fit, fitted)


def refuse_certify(estimator: BaseEstimator) -> None:
    """Where a fit is planned or repeated by itself, nothing is set aside."""
    fix = (
        "Leave it out here; a call of fit certifies, and fv.certify a finished model on other rows."
    )
    got = estimator.certify
    need(got is None, "None here", of=CERTIFY, got=got, fix=fix)


def forget_certificate(estimator: object) -> None:
    """What was certified of an earlier fit, or of other decisions."""
    for name in ("certificate_", "certified_aim_"):
        estimator.__dict__.pop(name, None)


def listed_in(estimator: Any, of: str) -> tuple[list[Notion], list[Bound]]:
    """The notions of this parameter, and bounds on other functions, which cannot be certified."""
    if of == CERTIFY:
        asked = estimator._setting(of, SetAside).notions
        return notions_of(asked, of=of, certified=True), []
    if (way := getattr(estimator, "_way", None)) is not None:
        asked = way.required()
        return list(asked.notions), list(asked.bounds)
    return fitting.notions_of(estimator.constraints, certified=True), []


# ------------------------------ aims
# Inside each bound by its margin, as far as there is room.


@dataclass(frozen=True)
class CertifiedAim:
    """What a certified fit aimed at: the `share` of rows set aside, about how many `people` (None:
    not public), and for each notion its bound, the `margin` that a certificate needs with this
    `chance`, and the `aim` of the fit."""

    share: float
    people: int | None
    chance: float
    confidence: float
    bounds: tuple[float, ...]
    margins: tuple[float, ...]
    aims: tuple[float, ...]

    @property
    def wide_enough(self) -> bool:
        """Whether the certificate will be granted with about the chance; else set aside more, or
        allow a larger bound."""
        return self.people is not None and all(
            m < (1.0 - LEAST) * b for m, b in zip(self.margins, self.bounds, strict=True)
        )


def without_confidence(notion: Any) -> Notion:
    """The notion without its confidence."""
    return cast(Notion, notion if notion.confidence is None else replace(notion, confidence=None))


def _knob(notion: Any) -> str:
    """The name of a notion's bound."""
    if isinstance(notion, RateConstraint):
        return "bound"
    return next(f.name for f in fields(notion) if f.name.startswith("max_"))


def bound_of(notion: Any) -> float:
    """What it allows; of a ratio, how far below 1."""
    if isinstance(notion, SelectionRateRatio):
        return 1.0 - notion.min_ratio
    return float(getattr(notion, _knob(notion)))


def tightened(notion: Any, margin: float) -> Notion:
    """The notion with a bound that lies the margin inside; a ratio by about as much: at rates of
    one half its unit is twice."""
    bound, ratio = bound_of(notion), isinstance(notion, SelectionRateRatio)
    margin = 2.0 * margin if ratio else margin
    aim = BLIND * bound if math.isinf(margin) else max(bound - margin, LEAST * bound)
    changed = {"min_ratio": 1.0 - aim} if ratio else {_knob(notion): aim}
    return cast(Notion, replace(notion, **changed, confidence=None))


def _shares_stated(schema: Schema | None, names: Sequence[str | None]) -> Any:
    """The stated shares of product cells; None where a column has none."""
    columns = [None if schema is None or one is None else schema.columns.get(one) for one in names]
    shares = [one.shares if isinstance(one, Category | Boolean) else None for one in columns]
    if not shares or any(share is None for share in shares):
        return None
    out = np.ones(1)
    for share in shares:
        out = np.outer(out, np.asarray(share)).ravel()
    return out


# ------------------------------ the walk


class Both:
    """One fit with its certificate."""

    def __init__(
        self,
        estimator: BaseEstimator,
        fit: Callable[..., Any],
        of: str,
        notions: list[Notion],
        beside: Sequence[Bound] = (),
    ) -> None:
        self.estimator, self.fit, self.of, self.notions = estimator, fit, of, notions
        self.beside = tuple(beside)
        self.wanted = [one for one in notions if of == CERTIFY or one.confidence is not None]
        self.plain = [without_confidence(notion) for notion in self.wanted]
        found = {float(one.confidence) for one in self.wanted if one.confidence is not None}
        fix = "All of them are certified together: give them one confidence."
        need(len(found) < 2, "one confidence", of=of, got=sorted(found), fix=fix)
        self.confidence = confidence_of(found.pop() if found else CONFIDENCE)
        self.share = float(estimator._setting(CERTIFY, SetAside).share)
        self.whose, self.promise = fitting.asked(estimator)
        self.aside = SET_ASIDE if self.whose is None else PERSONS_ASIDE
        self.seed = fitting.seed_of(estimator.random_state)
        self.stated: int | None = None  # the schema's number of rows

    def run(
        self, X: TableLike, y: ColumnsLike, groups: ColumnsLike, sample_weight: ColumnsLike
    ) -> None:
        """Set aside, fit, certify, publish."""
        self._refuse(X, sample_weight)
        training = self._read(X, y, groups)
        aim, inside = self._aim(training)
        parts = self._parts(X, y, groups, training.rows.persons)
        inner = self._inner(inside)
        away = isinstance(X, Elsewhere)
        (X, y, groups), others = parts
        self.fit(inner, X, y, sensitive_features=groups)
        if not away:  # the holder's statement says it, and is signed
            inner.privacy_ = replace(inner.privacy_, notes=(*inner.privacy_.notes, self.aside))
        found = self._certificate(inner, *others)
        told = {} if aim is None else {"certified_aim_": aim}
        parameters = inner.get_params(deep=False)
        fitted = {name: value for name, value in vars(inner).items() if name not in parameters}
        del fitted["_certified"]
        _forget(self.estimator)
        self.estimator.__dict__.update(fitted, certificate_=found, **told)
        self._at_the_bounds(training)

    def _at_the_bounds(self, training: Training) -> None:
        """A descent reports what was required of it; the bounds that it was given are its aims."""
        of = self.estimator
        outcome = getattr(of, "outcome_", None)
        if self.of != CONSTRAINTS or not isinstance(outcome, Outcome):
            return
        asked = [without_confidence(notion) for notion in self.notions]
        system = system_of(asked, parts_of(of).cells, training.rows.layout)
        assert system is not None
        facts: Any = {"bounds": system.bounds, "names": system.names, "inside": outcome.aims}
        of._way.set_outcome(replace(outcome, **facts))

    def _refuse(self, X: TableLike, sample_weight: ColumnsLike) -> None:
        """What is no table whose rows can be set aside, of people who count once; and losses."""
        leave = "pass notions without confidence=" if self.of != CERTIFY else "leave certify=None"
        fix, of = f"Or {leave}, and call fv.certify with other rows.", self.estimator
        way: Any = getattr(of, "_way", None)
        loss = DECISIONS if way is None else getattr(way.solver, "loss", DECISIONS)
        kept = not isinstance(X, RowSource) or hasattr(X, "chosen")
        expected = "a table in memory, whose rows can be set aside"
        need(kept, expected, of="X", got=type(X).__name__, fix=fix)
        expected = "None: a certificate is about people, who count once"
        need(sample_weight is None, expected, of="sample_weight", got="weights", fix=fix)
        rows, promise = self.promise.unit is None, self.promise
        expected = (
            "None without privacy or with protects='sensitive_features': a certificate counts one "
            "row of each person"
        )
        sound = rows or (promise.is_private and promise.protects != "sensitive_features")
        need(sound, expected, of="unit", got="persons", fix=fix)
        expected, here = (
            "None beside remote data, whose holder throws coins for rows",
            not isinstance(X, Elsewhere),
        )
        need(rows or here, expected, of="unit", got="persons", fix=fix)
        expected = "None: coins are thrown anew, and a resumed fit would see other rows"
        fresh = getattr(of, "checkpoint", None) is None
        need(fresh, expected, of="checkpoint", got="a folder", fix=fix)
        expected = f"{DECISIONS!r}: bounds on losses of probabilities are none on decisions"
        need(loss == DECISIONS, expected, of="loss", got=loss, fix=fix)

    def _read(self, X: TableLike, y: ColumnsLike, groups: ColumnsLike) -> Training:
        """Refuses what is wrong with the rows before anything is released."""
        ways = fitting.ways_of(self.estimator.schema, self.promise, whose=self.whose)
        training = wrapped.labelled_rows(X, y, groups, None, ways, ()).training
        apart = self.whose is None or training.rows.persons is not None
        fix = "Pass a table in memory, in place of one that is coded person by person."
        need(apart, "rows whose persons can be set aside", of="X", got="a store", fix=fix)
        ratios = [one for one in self.notions if isinstance(one, SelectionRateRatio)]
        there = not ratios or self.of != CERTIFY or training.rows.layout.sensitive
        of, fix = "sensitive_features", wrapped.WITH_GROUPS
        need(there, "groups to compare", of=of, got=None, fix=fix)
        fitting.require_groups([one for one in self.notions if one not in ratios], training)
        cells = training.rows.cells() if training.rows.layout.sensitive else NO_GROUPS
        require_compared(layout_of(self.plain, cells, training.classes), self.plain, cells)
        self.stated = training.rows_stated
        return training

    def _aim(self, training: Training) -> tuple[CertifiedAim | None, list[Notion]]:
        """What to aim at, from public facts; None where nothing aims."""
        if self.of == CERTIFY:
            return None, []
        layout, schema, people = training.rows.layout, training.schema, self._people(training.rows)
        cells = training.rows.cells() if layout.sensitive else NO_GROUPS
        found: tuple[float, ...] = (math.inf,) * len(self.wanted)
        if people is not None:
            target = [None if schema is None else schema.target]
            stated = _shares_stated(schema, cells.names), _shares_stated(schema, target)
            shares = even_shares(cells.count, len(training.classes), *stated)
            noise = plan_counts(self._counting(), reads_groups=bool(layout.sensitive)).noise
            found = margins(
                layout_of(self.plain, cells, training.classes),
                len(self.wanted),
                SupposedPeople(people, shares, (1.0 - self.share) / self.share),
                noise,
                self.confidence,
                CHANCE,
            )
        left = iter(found)
        inside = [
            one if one.confidence is None else tightened(one, next(left)) for one in self.notions
        ]
        pairs = zip(inside, self.notions, strict=True)
        aims = tuple(bound_of(one) for one, notion in pairs if notion.confidence is not None)
        public, bounds = None if people is None else round(people), map(bound_of, self.wanted)
        said = self.share, public, CHANCE, self.confidence, tuple(bounds), found, aims
        return CertifiedAim(*said), inside

    def _people(self, rows: Any) -> float | None:
        """How many are about to be counted: of persons at least as many as their rows make, at so
        many rows each."""
        if self.whose is not None and self.promise.units_are_public:
            return self.share * (int(rows.persons.max(initial=-1)) + 1)
        public = self.promise.rows_are_public or not self.promise.is_private
        known = rows.exact_count if public else self.stated
        return None if known is None else self.share * known / self.promise.rows_per_unit

    def _parts(
        self, X: TableLike, y: ColumnsLike, groups: ColumnsLike, persons: Ints | None
    ) -> list[tuple[Any, Any, Any]]:
        """Those whom the model sees, and those set aside. There is room for both spends, as far as
        that is known now."""
        seed = wrapped.derived_seed(self.seed, 31)
        if isinstance(X, Elsewhere):
            event = plan_counts(self.promise).event
            X.require_room([event, event], self.promise)
            return parts_elsewhere(X, y, groups, self.share, seed, CERTIFICATE)
        rows = length_of(X) or 0
        aside = aside_of(NoiseSource.of(seed), rows, self.share, CERTIFICATE, persons)
        places = (np.flatnonzero(~aside), np.flatnonzero(aside))
        parts = [(rows_at(X, at), rows_at(y, at), _groups(groups, at, rows)) for at in places]
        if self.estimator._facts.declared is None and y is not None:
            known, others = (set(read_labels(part[1]).tolist()) for part in parts)
            got, fix = (
                sorted(map(str, others - known)),
                "Pass schema=, which lists the classes, or more rows.",
            )
            need(not got, "classes that the model sees", of="y", got=got, fix=fix)
        way: Any = getattr(self.estimator, "_way", None)
        # descent by Gaussian releases of all rows covers both
        one = way is not None and way.covers and self.promise.delta > 0.0
        if self._book is not None and not one:
            event = plan_counts(self._counting()).event
            require_room(self._book, [event, event], self.promise, "a fit and its certificate")
        return parts

    def _counting(self) -> Promise:
        """That of the counts, where a person has one row."""
        unit = self.promise.unit
        return (
            self.promise if unit is None else replace(self.promise, unit=replace(unit, max_rows=1))
        )

    def _inner(self, inside: list[Notion]) -> Any:
        """What is fitted: the estimator with its aims."""
        inner = copy.copy(self.estimator)
        _forget(inner)
        inner.certify = None
        inner._certified = True  # the verdict is the certificate's: margins are not doubled
        if self.of == CONSTRAINTS:
            inner.constraints = [*self.beside, *inside]
        if self.stated is not None:
            fewer = max(1, round(self.stated * (1.0 - self.share)))
            inner.schema = replace(inner._facts, rows=fewer)
        if isinstance(self.estimator.random_state, np.random.RandomState | np.random.Generator):
            inner.random_state = wrapped.derived_seed(self.seed, 33)
        return inner

    def _certificate(
        self, inner: object, X: TableLike, y: ColumnsLike, groups: ColumnsLike
    ) -> Certificate:
        of, told = self.estimator, parts_of(inner).tailoring
        # the smallest epsilon that any group was told
        strongest = of.epsilon if told is None else min(of.epsilon, *told.epsilons)
        paid = self._paid(inner, strongest)
        by_group = [BY_GROUP] if strongest < of.epsilon else []
        with cautions.said_around(), nullcontext() if paid is None else already_charged():
            seed, most = wrapped.derived_seed(self.seed, 32), None if self.whose is None else 1
            book = of.ledger if paid is None else None
            who = self.confidence, of.schema, seed, book, None, most
            asked = Asked.of(strongest, of.delta, of.protects, *who)
            assumed = [self.aside, *by_group, *([] if paid is None else [PAID])]
            return certified_by(asked, inner, X, y, groups, self.plain, assumed, paid)

    @property
    def _book(self) -> Any:
        found = given_ledger(self.estimator.ledger) or current() or remembered(self.estimator)
        return found if self.promise.is_private else None

    def _paid(self, inner: Any, epsilon: float) -> CountPlan | None:
        """Counts that the ledger need not hold, beside the fit's own spend, which is all that this
        fit released there."""
        if self._book is None or hasattr(self.estimator, "estimator"):
            return None
        return beside(replace(self._counting(), epsilon=epsilon), compose(inner.privacy_.events))


def _forget(estimator: object) -> None:
    """All that a fit wrote."""
    for name in [one for one in vars(estimator) if one.endswith("_") and not one.startswith("__")]:
        del estimator.__dict__[name]


def _groups(groups: ColumnsLike, at: npt.NDArray[np.intp], rows: int) -> Any:
    """The same of groups: names of columns stay names; a list of columns is one of them."""
    names = names_in(groups)
    if names is not None and len(names) != rows:
        return groups
    if isinstance(groups, list | tuple) and len(groups) != rows:
        return [rows_at(column, at) for column in groups]
    return rows_at(groups, at)
