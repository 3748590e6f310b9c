"""One fit whose constraints have a `confidence`: rows are set aside by coins, the model aims inside, and is certified.

    DemographicParity(max_gap=0.05, confidence=0.95)

Every row is set aside with probability `certify_share` by a coin of its own: new, secret, and of no other row. A model is
fitted to the other rows with the whole promise, and certified on those set aside with the whole promise (`certify`). A person
is in one of the two parts, so the two together keep the same promise (theory.md#set-aside), not twice of it. A ledger does not
know this yet: it charges both.

The model aims inside each bound by the margin of `learning/certificates/margin.py`, for a chance of 0.8 if
the fit reaches its aim (notions given labels often do not: docs/benchmarks.md), or at a fifth of the
bound where the margin is wider. Without a public number of rows it aims at half of the bound. The certificate is of the bound
itself.

Guarantees (tests/estimators/test_estimators_certified_fits.py):
1. Whether a row is set aside depends on its own coin alone; coins are thrown anew by each fit.
2. If a bound is broken in the population by the model that was found, it is certified with probability at most 1 - confidence.
3. Parameters are not changed; an error before the first release changes no attribute.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ... import _checks
from ...curator.elsewhere import Elsewhere
from ...data import EncodedRows
from ...errors import InputError, complaint
from ...facts import RowSource, Schema
from ...facts.columns import Boolean, Category
from ...fairness import Notion
from ...fairness.rates import RateConstraint
from ...fairness.ratios import SelectionRateRatio
from ...learning.certificates.margin import SupposedPeople, even, margins
from ...learning.certificates.parts import layout_of
from ...learning.certificates.plan import plan
from ...learning.systems import NO_GROUPS
from ...privacy.ledger.ambient import current
from ...privacy.noise.sources import NoiseSource
from ..fitting import promises
from ..fitting.recorded import remembered, require_room
from ..fitting.row_parts import length_of, rows_at
from ..reading import cautions
from ..reading.columns import names_in, read_labels
from ..wrapped import bases, decided
from .certificate import Certificate
from .certifying import certify, confidence_of

SHARE, CHANCE, LEAST, BLIND = 0.3, 0.8, 0.2, 0.5
"""The share that is set aside, the chance that margins are for, the least part of a bound that is aimed at, and the part of it
without a public number of rows."""
SET_ASIDE = (
    "rows were set aside by a coin of their own each, thrown anew, so that the model has not seen them: a person is in one "
    "part, and fit and certificate together keep the promise that each of them keeps"
)


@dataclass(frozen=True)
class CertifiedAim:
    """What a certified fit aimed at: the `share` of rows set aside, about how many `people` (None: not public), and for each
    notion its bound, the `margin` that a certificate needs with this `chance`, and the `aim` of the fit."""

    share: float
    people: int | None
    chance: float
    confidence: float
    bounds: tuple[float, ...]
    margins: tuple[float, ...]
    aims: tuple[float, ...]

    @property
    def wide_enough(self) -> bool:
        """Whether the certificate will be granted with about the chance; else set aside more, or allow a larger bound."""
        return self.people is not None and all(m < (1.0 - LEAST) * b for m, b in zip(self.margins, self.bounds, strict=True))


class Both:
    """One fit with its certificate."""

    def __init__(self, estimator: Any, fit: Callable[..., Any], notions: list[Notion]) -> None:
        self.estimator, self.fit, self.notions, self.confidence = estimator, fit, notions, one_confidence(notions)
        share = SHARE if estimator.certify_share is None else estimator.certify_share
        remedy = "Pass certify_share=0.3, for example: the part of the rows that the model does not see."
        self.share = _checks.fraction(certify_share=share, low_open=True, high_open=True, remedy=remedy)
        self.promise = promises.promise_of(estimator.epsilon, estimator.delta, estimator.protects, estimator.neighbours)
        self.seed = promises.seed_of(estimator.random_state)
        self.stated: int | None = None  # the schema's number of rows

    def run(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Any:
        """Set aside, fit, certify, publish."""
        self._refuse(X, sample_weight)
        aim, tightened = self._aim(X, y, groups)
        rows = length_of(X) or 0
        stream = NoiseSource.of(bases.derived_seed(self.seed, 31)).stream("sampling")
        aside = stream.uniforms(rows) < self.share
        places = (np.flatnonzero(~aside), np.flatnonzero(aside))
        parts = [(rows_at(X, at), rows_at(y, at), _groups(groups, at, rows)) for at in places]
        _require_both(parts, y)
        self._require_room()
        inner = self._inner(tightened, rows)
        (X, y, groups), others = parts
        self.fit(inner, X, y, sensitive_features=groups)
        inner.privacy_ = replace(inner.privacy_, not_covered=(*inner.privacy_.not_covered, SET_ASIDE))
        fitted = {name: value for name, value in vars(inner).items() if name not in inner.get_params(deep=False)}
        found = self._certificate(inner, *others)
        for name in [name for name in vars(self.estimator) if name.endswith("_") and not name.startswith("__")]:
            del self.estimator.__dict__[name]
        self.estimator.__dict__.update(fitted, certificate_=found, certified_aim_=aim)
        return self.estimator

    def _certificate(self, inner: Any, X: Any, y: Any, groups: Any) -> Certificate:
        estimator = self.estimator
        with cautions.said_around():
            return certify(
                inner,
                X,
                y,
                sensitive_features=groups,
                constraints=[_plain(notion) for notion in self.notions if notion_confidence(notion) is not None],
                confidence=self.confidence,
                epsilon=estimator.epsilon,
                delta=estimator.delta,
                protects=estimator.protects,
                neighbours=estimator.neighbours,
                schema=estimator.schema,
                random_state=bases.derived_seed(self.seed, 32),
                ledger=estimator.ledger,
                assumptions=[SET_ASIDE],
            )

    def _inner(self, tightened: list[Notion], rows: int) -> Any:
        inner = copy.copy(self.estimator)
        for name in [name for name in vars(inner) if name.endswith("_") and not name.startswith("__")]:
            del inner.__dict__[name]
        inner.constraints, inner.certify_share = tightened, None
        stated = self.estimator.public_rows
        if stated is None and self.stated is not None and not self.promise.rows_are_public:
            stated = self.stated
        inner.public_rows = None if stated is None else max(1, round(stated * (1.0 - self.share)))
        if isinstance(self.estimator.random_state, np.random.RandomState | np.random.Generator):
            inner.random_state = bases.derived_seed(self.seed, 33)
        return inner

    def _aim(self, X: Any, y: Any, groups: Any) -> tuple[CertifiedAim, list[Notion]]:
        """What to aim at, from public facts; reading the rows refuses what is wrong with them."""
        ways = promises.ways_of(self.estimator.schema, False, False, 1.0, self.promise)
        training = decided.read_rows(X, y, groups, None, ways, ()).training
        layout, schema = training.rows.layout, training.schema
        cells = training.rows.cells() if layout.sensitive else NO_GROUPS
        promises.require_groups([notion for notion in self.notions if not isinstance(notion, SelectionRateRatio)], training)
        self.stated = training.rows_stated
        people = self._people(training.rows.exact_count, self.stated)
        wanted = [notion for notion in self.notions if notion_confidence(notion) is not None]
        found: tuple[float, ...] = (math.inf,) * len(wanted)
        if people is not None:
            shares = even(cells.count, len(training.classes), _stated(schema, cells.names), _of_target(schema))
            noise = plan(self.promise, reads_groups=bool(layout.sensitive)).noise
            asked = layout_of([_plain(notion) for notion in wanted], cells, training.classes)
            found = margins(
                asked,
                len(wanted),
                SupposedPeople(people, shares, (1.0 - self.share) / self.share),
                noise,
                self.confidence,
                CHANCE,
            )
        left = iter(found)
        tightened = [
            _plain(notion) if notion_confidence(notion) is None else _tightened(notion, next(left)) for notion in self.notions
        ]
        aims = [_bound(one) for one, notion in zip(tightened, self.notions, strict=True) if notion in wanted]
        bounds = tuple(_bound(notion) for notion in wanted)
        public = None if people is None else round(people)
        return CertifiedAim(self.share, public, CHANCE, self.confidence, bounds, found, tuple(aims)), tightened

    def _people(self, exact: int, stated: int | None) -> float | None:
        known = exact if self.promise.rows_are_public or not self.promise.is_private else self.estimator.public_rows or stated
        return None if known is None else self.share * known

    def _refuse(self, X: Any, sample_weight: Any) -> None:
        found: list[tuple[str, str, Any]] = []
        if isinstance(X, Elsewhere) or (isinstance(X, RowSource) and not isinstance(X, EncodedRows)):
            found.append(("X", "a table in memory, whose rows can be set aside", type(X).__name__))
        if sample_weight is not None:
            found.append(("sample_weight", "None: a certificate is about people, who count once", "weights"))
        if getattr(self.estimator, "unit", None) is not None:
            found.append(("unit", "None: coins are thrown for rows, and a person's rows would lie in both parts", "persons"))
        if getattr(self.estimator, "checkpoint", None) is not None:
            found.append(("checkpoint", "None: coins are thrown anew, and a resumed fit would see other rows", "a folder"))
        for of, expected, got in found:
            remedy = "Or pass notions without confidence=, and call fv.certify with other rows."
            raise InputError(complaint(expected=expected, of=of, got=got, remedy=remedy))

    def _require_room(self) -> None:
        book = self.estimator.ledger or current() or remembered(self.estimator)
        if book is not None and self.promise.is_private:
            event = plan(self.promise, reads_groups=True).event
            require_room(book, [event, event], self.promise, "a fit and its certificate")


def notion_confidence(notion: Notion) -> float | None:
    """The confidence with which a notion is to be certified."""
    found = getattr(notion, "confidence", None)
    return None if found is None else float(found)


def one_confidence(notions: Sequence[Notion]) -> float:
    """The confidence of all that are to be certified."""
    found = {one for notion in notions if (one := notion_confidence(notion)) is not None}
    if len(found) > 1:
        remedy = "All of them are certified together: give them one confidence."
        raise InputError(complaint(expected="one confidence", of="constraints", got=sorted(found), remedy=remedy))
    return confidence_of(found.pop())


def _plain(notion: Notion) -> Notion:
    return notion if notion_confidence(notion) is None else replace(cast(Any, notion), confidence=None)


def _bound(notion: Any) -> float:
    if isinstance(notion, SelectionRateRatio):
        return 1.0 - notion.min_ratio
    name = "bound" if isinstance(notion, RateConstraint) else next(f.name for f in fields(notion) if f.name.startswith("max_"))
    return float(getattr(notion, name))


def _tightened(notion: Any, margin: float) -> Notion:
    """The notion with a bound that lies the margin inside; a ratio by about as much: at rates of one half its unit is twice."""
    bound = _bound(notion)
    if isinstance(notion, SelectionRateRatio):
        return replace(notion, min_ratio=1.0 - _within(bound, 2.0 * margin), confidence=None)
    name = next(f.name for f in fields(notion) if f.name.startswith("max_"))
    return cast(Notion, replace(notion, **{name: _within(bound, margin), "confidence": None}))


def _within(bound: float, margin: float) -> float:
    return BLIND * bound if math.isinf(margin) else max(bound - margin, LEAST * bound)


def _stated(schema: Schema | None, names: Sequence[str]) -> list[float] | None:
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


def _of_target(schema: Schema | None) -> tuple[float, ...] | None:
    target = None if schema is None or schema.target is None else schema.columns[schema.target]
    return target.shares if isinstance(target, Category | Boolean) else None


def _groups(groups: Any, at: npt.NDArray[np.intp], rows: int) -> Any:
    """The same of groups: names of columns stay names; a list of columns is one of them."""
    names = names_in(groups)
    if names is not None and len(names) != rows:
        return groups
    if isinstance(groups, list | tuple) and len(groups) != rows:
        return [rows_at(column, at) for column in groups]
    return rows_at(groups, at)


def _require_both(parts: list[tuple[Any, Any, Any]], y: Any) -> None:
    """Nobody on one side, or a class that only those set aside have: told before anything is released."""
    if not all(length_of(part[0]) for part in parts):
        remedy = "Pass more rows, or another certify_share."
        raise InputError(complaint(expected="rows on both sides", of="certify_share", got="none on one", remedy=remedy))
    if y is None:
        return
    known, others = (set(read_labels(part[1]).tolist()) for part in parts)
    if not others <= known:
        remedy = "Pass schema=, which lists the classes, or more rows."
        got = sorted(map(str, others - known))
        raise InputError(complaint(expected="classes that the model sees", of="y", got=got, remedy=remedy))
