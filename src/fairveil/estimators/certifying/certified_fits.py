"""Fits that certify themselves: what is set aside, what is aimed at, and what cannot be done."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, Ints, TableLike
from ...core.events import compose
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...data.elsewhere import Elsewhere
from ...errors import DecisionsReplaced, InputError
from ...facts import RowSource, Schema
from ...facts.columns import Boolean, Category
from ...fairness import Notion
from ...fairness.notions import RateConstraint, SelectionRateRatio
from ...fairness.objectives import Bound
from ...ledger import already_charged, current, given_ledger
from ...methods.certificate import (
    SupposedPeople,
    blind_decisions,
    even_shares,
    layout_of,
    least_replaced,
    margins,
    sums_of,
)
from ...methods.counts import CountPlan, beside, plan_counts
from ...methods.game import Equilibrium
from ...methods.objectives import Found
from ...methods.outcome import Outcome
from ...methods.systems import NO_GROUPS
from .. import fitting, wrapped
from ..faces import Blindly
from ..fitting import (
    CERTIFICATE,
    aside_of,
    length_of,
    parts_elsewhere,
    remembered,
    require_room,
    rows_at,
)
from ..reading import cautions, units
from ..reading.columns import names_in, read_labels
from ..reading.fitted_parts import parts_of
from ..reading.training import Training
from ..settings import REPLACE, SetAside
from . import seen
from .certificate import Certificate, certify_beside, require_compared
from .counted import confidence_of, notions_of

# ------------------------------ asked
# What is to be certified, as the parameters of an estimator say it.

CONSTRAINTS, CERTIFY = "constraints", "certify"
"""The parameters that may say what is certified."""


def parameter_of(estimator: Any) -> str:
    """Where this estimator says what is to be certified."""
    return CONSTRAINTS if estimator._setting(CERTIFY, SetAside).notions is None else CERTIFY


def listed_in(estimator: Any, of: str) -> tuple[list[Notion], list[Bound]]:
    """The notions of this parameter, and bounds on other functions, which cannot be certified."""
    if of == CERTIFY:
        asked = estimator._setting(of, SetAside).notions
        return notions_of(asked, of=of, certified=True), []
    if (way := getattr(estimator, "_way", None)) is not None:
        asked = way.required()
        return list(asked.notions), list(asked.bounds)
    return fitting.notions_of(estimator.constraints, certified=True), []


# ------------------------------ set_aside
# What statements say of the people that a fit with a certificate set aside.

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


# ------------------------------ certified_aim
# What a certified fit aims at: inside each bound by its margin, as far as there is room; and what
# is known in advance.

CHANCE, LEAST, BLIND = 0.8, 0.2, 0.5
"""The chance that margins are for, the least part of a bound that is aimed at, and the part of it
without a public number of rows."""


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


def notion_confidence(notion: Notion) -> float | None:
    """The confidence with which a notion is to be certified."""
    return None if notion.confidence is None else float(notion.confidence)


def without_confidence(notion: Notion) -> Notion:
    """The notion without its confidence."""
    return (
        notion if notion_confidence(notion) is None else replace(cast(Any, notion), confidence=None)
    )


def bound_of(notion: Any) -> float:
    """What it allows; of a ratio, how far below 1."""
    if isinstance(notion, SelectionRateRatio):
        return 1.0 - notion.min_ratio
    name = (
        "bound"
        if isinstance(notion, RateConstraint)
        else next(f.name for f in fields(notion) if f.name.startswith("max_"))
    )
    return float(getattr(notion, name))


def tightened(notion: Any, margin: float) -> Notion:
    """The notion with a bound that lies the margin inside; a ratio by about as much: at rates of
    one half its unit is twice."""
    bound = bound_of(notion)
    if isinstance(notion, SelectionRateRatio):
        return replace(notion, min_ratio=1.0 - _within(bound, 2.0 * margin), confidence=None)
    name = next(f.name for f in fields(notion) if f.name.startswith("max_"))
    return cast(Notion, replace(notion, **{name: _within(bound, margin), "confidence": None}))


def _within(bound: float, margin: float) -> float:
    return BLIND * bound if math.isinf(margin) else max(bound - margin, LEAST * bound)


def shares_stated(schema: Schema | None, names: Sequence[str]) -> list[float] | None:
    """The stated shares of product cells; None where a column has none."""
    if schema is None:
        return None
    columns = [schema.columns.get(name) for name in names]
    shares = [one.shares if isinstance(one, Category | Boolean) else None for one in columns]
    if not shares or any(share is None for share in shares):
        return None
    out = np.ones(1)
    for share in shares:
        out = np.outer(out, np.asarray(share)).ravel()
    return list(map(float, out))


def shares_of_target(schema: Schema | None) -> tuple[float, ...] | None:
    """The stated shares of the labels."""
    target = None if schema is None or schema.target is None else schema.columns[schema.target]
    return target.shares if isinstance(target, Category | Boolean) else None


def labels_of(inner: object, classes: Sequence[Any], schema: Schema | None) -> list[float] | None:
    """The shares of the labels, from what the fit released or the schema states; None where neither
    says."""
    parts = parts_of(inner)
    outcome, released = parts.outcome, parts.released
    comparison = outcome.comparison if isinstance(outcome, Outcome | Equilibrium) else None
    counts = np.zeros(0)
    if comparison is not None:
        counts = comparison.table.counts.sum(axis=1)
    elif released is not None:
        counts = released.counts.sum(axis=(0, 2))
    elif isinstance(outcome, Found):
        counts = outcome.counts.sum(axis=0)
    sizes = np.maximum(counts, 0.0)
    if len(sizes) == len(classes) and sizes.sum() > 0.0:
        return [float(one) for one in sizes / sizes.sum()]
    stated = shares_of_target(schema)
    return None if stated is None or len(stated) != len(classes) else list(stated)


# ------------------------------ certified_refusals
# What a fit that certifies itself cannot do, refused before anything is released.

DECISIONS = "zero_one"
CONFIDENCE = 0.95
"""That of notions in `certify` which state none."""


def one_confidence(notions: Sequence[Notion], of: str) -> float:
    """The confidence of all that are to be certified."""
    found = {one for notion in notions if (one := notion_confidence(notion)) is not None}
    if len(found) > 1:
        remedy = "All of them are certified together: give them one confidence."
        raise InputError.expected("one confidence", of=of, got=sorted(found), remedy=remedy)
    return confidence_of(found.pop() if found else CONFIDENCE)


def require_classes(parts: list[tuple[Any, Any, Any]], y: ColumnsLike) -> None:
    """A class that only those set aside have: told before anything is released."""
    if y is None:
        return
    known, others = (set(read_labels(part[1]).tolist()) for part in parts)
    if not others <= known:
        remedy = "Pass schema=, which lists the classes, or more rows."
        got = sorted(map(str, others - known))
        raise InputError.expected("classes that the model sees", of="y", got=got, remedy=remedy)


def require_certifiable(
    estimator: BaseEstimator, promise: Promise, of: str, X: TableLike, sample_weight: ColumnsLike
) -> None:
    """A table whose rows can be set aside, of people who count once, and no losses."""
    given = estimator.get_params(deep=False)
    found: list[tuple[str, str, Any]] = []
    if isinstance(X, RowSource) and not hasattr(X, "chosen"):
        found.append(("X", "a table in memory, whose rows can be set aside", type(X).__name__))
    if sample_weight is not None:
        of_people = "None: a certificate is about people, who count once"
        found.append(("sample_weight", of_people, "weights"))
    if promise.unit is not None:
        if promise.protects == "sensitive_features" or not promise.is_private:
            each = (
                "None without privacy or with protects='sensitive_features': a certificate counts "
                "one row of each person"
            )
            found.append(("unit", each, "persons"))
        if isinstance(X, Elsewhere):
            by_row = "None beside remote data, whose holder throws coins for rows"
            found.append(("unit", by_row, "persons"))
    if given.get("checkpoint") is not None:
        anew = "None: coins are thrown anew, and a resumed fit would see other rows"
        found.append(("checkpoint", anew, "a folder"))
    way: Any = getattr(estimator, "_way", None)
    loss = DECISIONS if way is None else getattr(way.solver, "loss", DECISIONS)
    if loss != DECISIONS:
        none = f"{DECISIONS!r}: bounds on losses of probabilities are none on decisions"
        found.append(("loss", none, loss))
    for name, expected, got in found:
        remedy = "Or pass notions without confidence=, and call fv.certify with other rows."
        if of == CERTIFY:
            remedy = "Or leave certify=None, and call fv.certify with other rows."
        raise InputError.expected(expected, of=name, got=got, remedy=remedy)


# ------------------------------ certified_run
# One fit whose constraints have a `confidence`: rows are set aside by coins, the model aims
# inside, and is certified.
#
#     DemographicParity(max_gap=0.05, confidence=0.95)
#
# Every row is set aside with probability `share` by a coin of its own: new, secret, and of no
# other row. A model is fitted to the other rows with the whole promise, and certified on those set
# aside with the whole promise (`certify`). A person is in one of the two parts, so the two together
# keep the same promise (theory.md#set-aside), not twice of it. Where persons are protected, the coin
# is a person's: all of their rows are on one side, and the certificate counts one of them. Where a
# ledger holds a fit with Gaussian releases of all its rows, the certificate's counts have Gaussian
# noise that these cover, and nothing more is charged (`beside`); else the ledger has two spends.
#
# The model aims inside each bound by the margin of `methods/certificate.py`, for a chance of
# 0.8 if the fit reaches its aim (notions given labels often do not: benchmarks/results), or at a
# fifth of the bound where the margin is wider. Without a public number of rows it aims at half of the
# bound. The certificate is of the bound itself. Where it is refused, and `if_refused` is "replace",
# as many decisions are replaced by blind ones as it takes (`methods/certificate.py`):
# the final model is then certified by the same counts.
#
# Notions in `certify` are of estimators that keep no notion, and nothing aims at them: their fits are
# what they would be. Where groups have guarantees of their own, the counts have the noise of the
# strongest one, so that each group's is kept by both.
#
# Guarantees (tests/estimators/test_estimators_certified_fits.py):
# 1. Whether a row, or a person, is set aside depends on its own coin alone; coins are thrown anew by
#    each fit.
# 2. If a bound is broken in the population by the final model, it is certified with probability at
#    most 1 - confidence; where decisions are replaced, the final model breaks a bound with
#    probability at most 1 - confidence.
# 3. Parameters are not changed; an error before the first release changes no attribute.


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
        self.estimator, self.fit, self.of, self.notions, self.beside = (
            estimator,
            fit,
            of,
            notions,
            tuple(beside),
        )
        self.wanted = [
            one for one in notions if of == CERTIFY or notion_confidence(one) is not None
        ]
        self.confidence = one_confidence(self.wanted, of)
        chosen = estimator._setting(CERTIFY, SetAside)
        self.share, self.replaces = float(chosen.share), chosen.if_refused == REPLACE
        self.whose = units.asked(estimator)
        self.promise = self._promise(estimator.epsilon)
        self.aside = SET_ASIDE if self.whose is None else PERSONS_ASIDE
        self.seed = fitting.seed_of(estimator.random_state)
        self.stated: int | None = None  # the schema's number of rows

    def run(
        self, X: TableLike, y: ColumnsLike, groups: ColumnsLike, sample_weight: ColumnsLike
    ) -> Any:
        """Set aside, fit, certify, publish."""
        require_certifiable(self.estimator, self.promise, self.of, X, sample_weight)
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
        if not found.certified and self.replaces:
            found = self._replaced(inner, found)
        fitted = {
            name: value
            for name, value in vars(inner).items()
            if name not in inner.get_params(deep=False)
        }
        for name in [
            name
            for name in vars(self.estimator)
            if name.endswith("_") and not name.startswith("__")
        ]:
            del self.estimator.__dict__[name]
        self.estimator.__dict__.update(fitted, certificate_=found)
        if aim is not None:
            self.estimator.certified_aim_ = aim
        return self.estimator

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
        if self.estimator._facts.declared is None:
            require_classes(parts, y)
        self._require_room()
        return parts

    def _promise(self, epsilon: float) -> Promise:
        """That of the fit."""
        of = self.estimator
        return fitting.promise_of(epsilon, of.delta, of.protects, self.whose)

    def _counting(self, epsilon: float) -> Promise:
        """That of the counts, where a person has one row."""
        promise = self._promise(epsilon)
        return (
            promise
            if promise.unit is None
            else replace(promise, unit=replace(promise.unit, max_rows=1))
        )

    def _certificate(
        self, inner: object, X: TableLike, y: ColumnsLike, groups: ColumnsLike
    ) -> Certificate:
        estimator = self.estimator
        strongest = _strongest(inner, estimator.epsilon)
        by_group = strongest < estimator.epsilon
        paid = self._paid(inner, strongest)
        said = [self.aside, *([BY_GROUP] if by_group else []), *([] if paid is None else [PAID])]
        with cautions.said_around(), nullcontext() if paid is None else already_charged():
            return certify_beside(
                inner,
                X,
                y,
                sensitive_features=groups,
                constraints=[without_confidence(notion) for notion in self.wanted],
                schema=estimator.schema,
                ledger=estimator.ledger if paid is None else None,
                assumptions=said,
                promised=(
                    strongest,
                    estimator.delta,
                    estimator.protects,
                ),
                confidence=self.confidence,
                random_state=wrapped.derived_seed(self.seed, 32),
                unit=None,
                most=None if self.whose is None else 1,
                plan=paid,
            )

    @property
    def _book(self) -> Any:
        found = given_ledger(self.estimator.ledger) or current() or remembered(self.estimator)
        return found if self.promise.is_private else None

    def _paid(self, inner: BaseEstimator, epsilon: float) -> CountPlan | None:
        """Counts that the ledger need not hold, beside the fit's own spend, which is all that this
        fit released there."""
        if self._book is None or hasattr(self.estimator, "estimator"):
            return None
        return beside(self._counting(epsilon), compose(inner.privacy_.events))

    def _replaced(self, inner: BaseEstimator, found: Certificate) -> Certificate:
        """What is returned instead, and its certificate; the same where nothing blind would keep
        the bounds."""
        by = blind_decisions(
            found.layout, labels_of(inner, found.classes, self.estimator._facts.declared)
        )
        part = (
            None
            if by is None
            else least_replaced(found.layout, found.counts, found.noise, found.confidence, by)
        )
        if part is None:
            return found
        way: Any = getattr(inner, "_way", None)
        reported = listed_in(inner, CONSTRAINTS)[0] if way is None else way.reported()
        asked = layout_of(
            [one for one in reported if not one.is_vacuous], found.cells, found.classes
        )
        sums = dict(zip((line.name for line in asked.lines), sums_of(asked, part.by), strict=True))
        if not inner._replace_decisions(
            Blindly(part.share, part.by, part.in_words(found.classes), sums)
        ):
            return found
        later = replace(found, replaced=part, found=None)
        text = (
            f"not certified as it was found, so {later.handed_out}: this mixture is certified; see "
            f"certificate_."
        )
        warnings.warn(text, DecisionsReplaced, stacklevel=5)
        return later

    def _inner(self, inside: list[Notion]) -> Any:
        inner = copy.copy(self.estimator)
        for name in [
            name for name in vars(inner) if name.endswith("_") and not name.startswith("__")
        ]:
            del inner.__dict__[name]
        inner.certify = None
        if self.of == CONSTRAINTS:
            inner.constraints = [*self.beside, *inside]
        if self.stated is not None:
            fewer = max(1, round(self.stated * (1.0 - self.share)))
            inner.schema = replace(inner._facts, rows=fewer)
        if isinstance(self.estimator.random_state, np.random.RandomState | np.random.Generator):
            inner.random_state = wrapped.derived_seed(self.seed, 33)
        return inner

    def _read(self, X: TableLike, y: ColumnsLike, groups: ColumnsLike) -> Training:
        """Refuses what is wrong with the rows before anything is released."""
        ways = fitting.ways_of(self.estimator.schema, self.promise, whose=self.whose)
        training = wrapped.labelled_rows(X, y, groups, None, ways, ()).training
        if self.whose is not None and training.rows.persons is None:
            remedy = "Pass a table in memory, in place of one that is coded person by person."
            raise InputError.expected(
                "rows whose persons can be set aside", of="X", got="a store", remedy=remedy
            )
        ratios = any(isinstance(notion, SelectionRateRatio) for notion in self.wanted)
        if ratios and self.of == CERTIFY and not training.rows.layout.sensitive:
            remedy = "Pass sensitive_features=...: columns, or names of columns of X."
            raise InputError.expected(
                "groups to compare", of="sensitive_features", got=None, remedy=remedy
            )
        fitting.require_groups(
            [notion for notion in self.notions if not isinstance(notion, SelectionRateRatio)],
            training,
        )
        cells = training.rows.cells() if training.rows.layout.sensitive else NO_GROUPS
        wanted = [without_confidence(notion) for notion in self.wanted]
        require_compared(layout_of(wanted, cells, training.classes), wanted, cells)
        self.stated = training.rows_stated
        return training

    def _aim(self, training: Training) -> tuple[CertifiedAim | None, list[Notion]]:
        """What to aim at, from public facts; None where nothing aims."""
        if self.of == CERTIFY:
            return None, []
        layout, schema = training.rows.layout, training.schema
        cells = training.rows.cells() if layout.sensitive else NO_GROUPS
        people = self._people(training.rows)
        wanted = self.wanted
        found: tuple[float, ...] = (math.inf,) * len(wanted)
        if people is not None:
            shares = even_shares(
                cells.count,
                len(training.classes),
                shares_stated(schema, cells.names),
                shares_of_target(schema),
            )
            noise = plan_counts(
                self._counting(self.promise.epsilon), reads_groups=bool(layout.sensitive)
            ).noise
            asked = layout_of(
                [without_confidence(notion) for notion in wanted], cells, training.classes
            )
            found = margins(
                asked,
                len(wanted),
                SupposedPeople(people, shares, (1.0 - self.share) / self.share),
                noise,
                self.confidence,
                CHANCE,
            )
        left = iter(found)
        inside = [
            without_confidence(notion)
            if notion_confidence(notion) is None
            else tightened(notion, next(left))
            for notion in self.notions
        ]
        aims = [
            bound_of(one)
            for one, notion in zip(inside, self.notions, strict=True)
            if notion_confidence(notion) is not None
        ]
        bounds = tuple(bound_of(notion) for notion in wanted)
        public = None if people is None else round(people)
        return CertifiedAim(
            self.share, public, CHANCE, self.confidence, bounds, found, tuple(aims)
        ), inside

    def _people(self, rows: Any) -> float | None:
        """How many are about to be counted: of persons at least as many as their rows make, at so
        many rows each."""
        if self.whose is not None and self.promise.units_are_public:
            return self.share * (int(rows.persons.max(initial=-1)) + 1)
        public = self.promise.rows_are_public or not self.promise.is_private
        known = rows.exact_count if public else self.stated
        return None if known is None else self.share * known / self.promise.rows_per_unit

    def _require_room(self) -> None:
        """Both spends; descent by Gaussian releases of all rows covers both."""
        way: Any = getattr(self.estimator, "_way", None)
        one = way is not None and way.covers and self.promise.delta > 0.0
        if self._book is not None and not one:
            event = plan_counts(self._counting(self.promise.epsilon)).event
            require_room(self._book, [event, event], self.promise, "a fit and its certificate")


def _strongest(inner: object, epsilon: float) -> float:
    """The smallest epsilon that any group was told."""
    told = parts_of(inner).tailoring
    return epsilon if told is None else min(epsilon, *told.epsilons)


def _groups(groups: ColumnsLike, at: npt.NDArray[np.intp], rows: int) -> Any:
    """The same of groups: names of columns stay names; a list of columns is one of them."""
    names = names_in(groups)
    if names is not None and len(names) != rows:
        return groups
    if isinstance(groups, list | tuple) and len(groups) != rows:
        return [rows_at(column, at) for column in groups]
    return rows_at(groups, at)


# ------------------------------ certified_fits
# A decorator of `fit`: notions that have a `confidence` are certified on rows set aside; see
# `certified_run`.
#
# Two parameters say what is to be certified. `constraints` are what a fit keeps: it aims inside those
# with a confidence. Nothing aims at notions in `certify`: what came of the fit is certified.

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
        of = parameter_of(self)
        notions, beside = listed_in(self, of)
        if notions and (of == CERTIFY or any(notion.confidence is not None for notion in notions)):
            Both(self, fit, of, notions, beside).run(X, y, sensitive_features, sample_weight)
            seen.remember(self, X)
            return self
        if (got := self.certify) is not None:
            remedy = (
                "Pass constraints=DemographicParity(0.05, confidence=0.95), for example, or "
                "certify=SetAside(notions=...)."
            )
            raise InputError.expected(
                "a notion to certify, or a constraint with a confidence",
                of=CERTIFY,
                got=got,
                remedy=remedy,
            )
        fit(self, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        forget_certificate(self)
        seen.remember(self, X)
        return self

    return cast(Fit, fitted)


def refuse_certify(estimator: BaseEstimator) -> None:
    """Where a fit is planned or repeated by itself, nothing is set aside."""
    if (got := estimator.certify) is not None:
        remedy = (
            "Leave it out here; a call of fit certifies, and fv.certify certifies a finished model "
            "on other rows."
        )
        raise InputError.expected("None here", of=CERTIFY, got=got, remedy=remedy)


def forget_certificate(estimator: object) -> None:
    """What was certified of an earlier fit, or of other decisions."""
    for name in ("certificate_", "certified_aim_"):
        estimator.__dict__.pop(name, None)
