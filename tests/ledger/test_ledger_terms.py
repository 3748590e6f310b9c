"""What a ledger charges: never less than its filter, and under another relation never less than
what its own neighbours see."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import pytest

from fairveil.core import curves as profiles
from fairveil.core.cost import delta as delta_of
from fairveil.core.cost import epsilon as epsilon_of
from fairveil.core.cost import in_a_row
from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.core.promise import Promise
from fairveil.errors import FairveilError, InputError, LedgerError
from fairveil.ledger import Ledger, Terms
from fairveil.ledger.entries import WHOLE
from fairveil.ledger.terms import Cost
from fairveil.privacy.accounting.calibration import calibrate

ADD_REMOVE = Promise(1.0, 1e-5)
REPLACE_ONE = Promise(1.0, 1e-5, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")
ROUNDS: dict[str, list[Event]] = {
    "gaussian": [
        Gaussian(20.0),
        PerCell(((40.0, 25.0),), (1.0,)),
        Composed((Gaussian(35.0), SamplerError(1e-9))),
    ],
    "zcdp": [Gaussian(20.0), ZeroConcentrated(0.002), Laplace(20.0), Exponential(0.1)],
    "renyi": [
        PoissonSampled(0.02, Gaussian(1.5)),
        Repeated(Gaussian(90.0), 7),
        Approximate(0.01, 1e-9),
        PrivateSelection(Gaussian(60.0), 3.0, 1.0),
    ],
    "pure": [
        Laplace(20.0),
        Pure(0.02),
        Exponential(0.03),
        Approximate(0.01, 1e-7),
        DiscreteLaplace(30.0, 2),
    ],
}


def two_in_a_row(event: Event) -> Event:
    found = in_a_row(event, "add-remove", 2)
    assert found is not None
    return found


def terms(promise: Promise = ADD_REMOVE, kind: str | None = None) -> Terms:
    return Terms.create("people", promise, kind=kind)


# -- costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("promise", [ADD_REMOVE, REPLACE_ONE, SENSITIVE])
@pytest.mark.parametrize("kind", list(ROUNDS))
def test_guarantee_1_a_cost_is_the_filters_rounded_up_by_less_than_one_unit(
    kind: str, promise: Promise
) -> None:
    ours = terms(promise, kind)
    for event in (
        *ROUNDS[kind],
        Composed(tuple(ROUNDS[kind])),
        *(Repeated(one, 3) for one in ROUNDS[kind]),
    ):
        cost = ours.cost(event, promise)
        amount, leak = ours.filter.cost(event)
        of_filter = (
            (cost.units, amount, ours.filter.budget),
            (cost.leak, leak, ours.filter.allowance),
        )
        for units, exact, budget in of_filter:
            share = Fraction(exact) / Fraction(budget)
            assert 0 <= Fraction(units, WHOLE) - share < Fraction(1, WHOLE)
        assert cost.units > 0


@pytest.mark.parametrize("kind", list(ROUNDS))
def test_guarantee_1_whatever_fits_together_is_within_the_promise(kind: str) -> None:
    ours, chance = terms(kind=kind), random.Random(1)
    spent, leaked, admitted = 0, 0, []
    for _ in range(4000):
        event = chance.choice(ROUNDS[kind])
        cost = ours.cost(event, ADD_REMOVE)
        if cost.within(spent, leaked):
            spent, leaked = spent + cost.units, leaked + cost.leak
            admitted.append(event)
    assert spent > 0.97 * WHOLE or leaked > 0.97 * WHOLE
    assert 0.4 < epsilon_of(admitted, 1e-5) <= 1.0 + 1e-9


def test_what_is_free_costs_nothing_and_what_is_beyond_says_so() -> None:
    ours = terms()
    assert ours.cost(NoOp(), ADD_REMOVE) == ours.cost([], ADD_REMOVE) == Cost(0, 0)
    assert ours.cost(Gaussian(1e-3), ADD_REMOVE) == Cost(2 * WHOLE, 0)
    assert not ours.cost(Gaussian(1e-3), ADD_REMOVE).within(0, 0)
    assert ours.cost(Pure(1e-12), ADD_REMOVE).units >= 1
    with pytest.raises(LedgerError, match="finite epsilon"):
        ours.cost(NonPrivate(), ADD_REMOVE)
    pure = terms(Promise(1.0, 0.0))
    with pytest.raises(LedgerError, match="delta above 0"):
        pure.cost(Gaussian(5.0), pure.promise)
    # No delta is set aside: what leaks any never fits.
    assert not pure.cost(Approximate(0.1, 1e-12), pure.promise).within(0, 0)


def test_t10_two_mechanisms_that_each_complete_the_promise_are_not_both_admitted() -> None:
    """Randomised response, then one of two that its answer chooses: a tight total admits either,
    which goes beyond by half."""
    response = Pure(0.16)
    wins = 1 / (1 + math.exp(-response.epsilon))
    both_of_them = calibrate(
        ADD_REMOVE, lambda z: Composed((response, Gaussian(z))), precision=1e-9
    ).events
    noise = both_of_them.events[1]  # type: ignore[attr-defined]
    leak = Approximate(0.0, 1e-5)
    for last in (noise, leak):
        assert epsilon_of([response, last], 1e-5) <= 1.0
        assert delta_of([response, last], 1.0) == pytest.approx(1e-5, rel=1e-6)
    chosen = (
        wins * profiles.gaussian_delta(1.0 - response.epsilon, 1 / noise.noise_multiplier)
        + (1 - wins) * 1e-5
    )
    assert chosen > 1.4e-5

    def fits_after_the_response(kind: str, last: Event) -> bool:
        ours = terms(kind=kind)
        first = ours.cost(response, ADD_REMOVE)
        assert first.within(0, 0)
        try:
            return ours.cost(last, ADD_REMOVE).within(first.units, first.leak)
        except LedgerError:  # what is not pure has no place in a filter of pure releases
            return False

    for kind in ("renyi", "zcdp", "pure"):
        assert not (fits_after_the_response(kind, noise) and fits_after_the_response(kind, leak))


@pytest.mark.parametrize("kind", list(ROUNDS))
def test_what_fits_alone_is_what_the_tight_price_says_under_the_same_relation_only(
    kind: str,
) -> None:
    ours = terms(kind=kind)
    whole = Pure(1.0) if kind == "pure" else calibrate(ADD_REMOVE, Gaussian, precision=1e-9).events
    more = Pure(1.001) if kind == "pure" else Gaussian(whole.noise_multiplier * (1 - 1e-6))  # type: ignore[attr-defined]
    assert ours.fits_alone(whole, ADD_REMOVE)
    assert not ours.fits_alone(more, ADD_REMOVE)
    assert not ours.fits_alone(whole, REPLACE_ONE)
    assert not terms(REPLACE_ONE, kind).fits_alone(whole, ADD_REMOVE)
    assert not terms(SENSITIVE, kind).fits_alone(whole, REPLACE_ONE)


# -- relations, by enumeration: rows are (feature, sensitive column), data sets have up to three ---

Row = tuple[int, int]
Data = tuple[Row, ...]
Mechanism = Callable[[Data], dict[object, float]]
Pairs = list[tuple[Data, Data]]
ROWS: list[Row] = list(itertools.product((0, 1), (0, 1)))
SMALL: list[Data] = [
    data for size in range(3) for data in itertools.combinations_with_replacement(ROWS, size)
]


def both(pairs: Iterable[tuple[Data, Data]]) -> Pairs:
    return [pair for one, other in pairs for pair in ((one, other), (other, one))]


PRESENCE = both((data, (*data, row)) for data in SMALL for row in ROWS)
REPLACED = both(
    ((*data, one), (*data, other))
    for data in SMALL
    for one, other in itertools.combinations(ROWS, 2)
)
CHANGED = both(((*data, (x, 0)), (*data, (x, 1))) for data in SMALL for x in (0, 1))


def true_epsilon(mechanism: Mechanism, pairs: Pairs) -> float:
    """The least epsilon at delta 0."""
    ratios = [0.0]
    for p, q in ((mechanism(one), mechanism(other)) for one, other in pairs):
        ratios += [p[x] / q[x] if q.get(x, 0.0) > 0 else math.inf for x in p if p[x] > 0]
    return math.log(max(1.0, *ratios))


def true_delta(mechanism: Mechanism, pairs: Pairs, epsilon: float) -> float:
    """The worst hockey-stick divergence."""
    both_ = [(mechanism(one), mechanism(other)) for one, other in pairs]
    factor = math.exp(epsilon)
    return max(math.fsum(max(0.0, p[x] - factor * q.get(x, 0.0)) for x in p) for p, q in both_)


def counted(data: Data) -> tuple[int, int]:
    """How many have each value of the sensitive column."""
    ones = sum(a for _, a in data)
    return len(data) - ones, ones


def discrete_laplace(centre: int, scale: float, most: int = 12) -> dict[int, float]:
    """P(x) ~ exp(-|x - centre| / scale), cut to [-most, most]: what is beyond is at the ends."""
    q = math.exp(-1 / scale)
    out = {x: (1 - q) / (1 + q) * q ** abs(x - centre) for x in range(-most + 1, most)}
    return {**out, most: q ** (most - centre) / (1 + q), -most: q ** (most + centre) / (1 + q)}


def product(one: dict[int, float], other: dict[int, float]) -> dict[object, float]:
    return {(a, b): p * q for a, p in one.items() for b, q in other.items()}


def noisy_count(data: Data) -> dict[object, float]:
    return dict(discrete_laplace(counted(data)[1], 2.0).items())


def noisy_histogram(data: Data) -> dict[object, float]:
    return product(*(discrete_laplace(count, 2.0, 5) for count in counted(data)))


def response(data: Data) -> dict[object, float]:
    """Which value more rows have, and sometimes the other: flipped with odds e^0.5."""
    wins = 1 / (1 + math.exp(-0.5))
    zeros, ones = counted(data)
    return {True: wins, False: 1 - wins} if ones > zeros else {True: 1 - wins, False: wins}


def choice(data: Data) -> dict[object, float]:
    """The exponential mechanism on counts, of range 0.5 under add-remove."""
    weights = [math.exp(0.5 * count) for count in counted(data)]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


@pytest.mark.parametrize(
    ("mechanism", "event", "presence", "replaced", "changed"),
    [
        (noisy_count, DiscreteLaplace(2.0), 0.5, 0.5, 0.5),
        (noisy_histogram, DiscreteLaplace(2.0), 0.5, 1.0, 1.0),
        (response, Pure(0.5), 0.5, 0.5, 0.5),
        (choice, Exponential(0.5), None, None, None),
    ],
)
def test_guarantee_2_two_in_a_row_bounds_what_enumerated_pure_mechanisms_really_cost(
    mechanism: Mechanism,
    event: Event,
    presence: float | None,
    replaced: float | None,
    changed: float | None,
) -> None:
    found = [true_epsilon(mechanism, pairs) for pairs in (PRESENCE, REPLACED, CHANGED)]
    if presence is not None:
        assert found == pytest.approx([presence, replaced, changed])
    assert 0 < found[0] <= epsilon_of(event, 0.0) + 1e-12
    price = two_in_a_row(event)
    assert isinstance(price, Pure)
    assert max(found[1:]) <= price.epsilon + 1e-12
    for ours in (REPLACE_ONE, SENSITIVE):
        cost = terms(ours, "pure").cost(event, ADD_REMOVE)
        assert Fraction(cost.units, WHOLE) >= Fraction(max(found[1:]) - 1e-12)
        assert cost == terms(ours, "pure").cost(Pure(2 * epsilon_of(event, 0.0)), ours)


def test_guarantee_2_every_pair_of_protections_and_relations() -> None:
    factors = {
        (ADD_REMOVE, ADD_REMOVE): 1,
        (REPLACE_ONE, REPLACE_ONE): 1,
        (REPLACE_ONE, ADD_REMOVE): 2,
        (SENSITIVE, SENSITIVE): 1,
        (SENSITIVE, REPLACE_ONE): 1,
        (SENSITIVE, ADD_REMOVE): 2,
    }
    for ours, asked in itertools.product((ADD_REMOVE, REPLACE_ONE, SENSITIVE), repeat=2):
        # only the relation matters
        asked_other_size = Promise(0.3, 1e-9, asked.protects, asked.neighbours)
        for kind, event, exponent in (
            ("gaussian", Gaussian(50.0), 2),
            ("renyi", Gaussian(50.0), 2),
            ("pure", Pure(0.01), 1),
        ):
            cap = terms(ours, kind)
            if (ours, asked) in factors:
                once, found = cap.cost(event, ours), cap.cost(event, asked_other_size)
                assert found.units == pytest.approx(
                    once.units * factors[ours, asked] ** exponent, rel=1e-12
                )
                assert found.units >= once.units * factors[ours, asked] ** exponent * (1 - 1e-15)
            else:
                with pytest.raises(LedgerError, match="a ledger for each"):
                    cap.cost(event, asked_other_size)


@pytest.mark.parametrize("ours", [REPLACE_ONE, SENSITIVE])
def test_guarantee_2_add_remove_events_that_are_neither_gaussian_nor_pure_are_refused(
    ours: Promise,
) -> None:
    """(epsilon, delta) twice is not (2 epsilon, 2 delta): here delta (1 + e^epsilon) is lost. Nor
    do the others double."""
    epsilon, delta = 0.5, 0.1
    tables: list[dict[object, float]] = [
        {"yes": 0.0},
        {"yes": delta},
        {"yes": delta + math.exp(epsilon) * delta},
    ]
    for table in tables:
        table["no"] = 1 - table["yes"]  # type: ignore[index]

    def by_size(data: Data) -> dict[object, float]:
        """Two neighbours in a row, as data sets of sizes 0, 1 and 2."""
        return tables[len(data)]

    ladder: list[Data] = [(), (ROWS[0],), (ROWS[0], ROWS[1])]
    assert true_delta(by_size, both(itertools.pairwise(ladder)), epsilon) == pytest.approx(delta)
    assert true_delta(by_size, [(ladder[2], ladder[0])], 2 * epsilon) > 2 * delta
    cap = terms(ours)
    for event in (
        Approximate(0.1, 1e-9),
        ZeroConcentrated(0.001),
        DiscreteGaussian(50.0),
        PoissonSampled(0.1, Gaussian(30.0)),
        SamplerError(1e-12),
        Composed((Gaussian(40.0), SamplerError(1e-12))),
        Composed((Gaussian(40.0), Laplace(50.0))),
        PrivateSelection(Composed((Pure(0.01), SamplerError(1e-12))), 3.0, 1.0),
        NonPrivate(),
    ):
        with pytest.raises(LedgerError, match="Pass protects='records:replace-one'"):
            cap.cost(event, ADD_REMOVE)
    for told in (VisiblySampled(0.1, Gaussian(30.0)), OnPart(Gaussian(30.0), 0, 2)):
        with pytest.raises(InputError, match="where presence is protected"):
            cap.cost(told, ADD_REMOVE)
    # Pure all the way down, in a secret batch and in a private selection: two in a row has a price.
    for pure in (
        PoissonSampled(0.1, Laplace(30.0)),
        PrivateSelection(Pure(0.01), 3.0, 1.0),
        Composed((Pure(0.01), Laplace(40.0))),
    ):
        assert two_in_a_row(pure) == Pure(2 * epsilon_of(pure, 0.0))
    assert two_in_a_row(NoOp()) == two_in_a_row(Repeated(Gaussian(1.0), 0)) == NoOp()


# -- what it is made of ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(ROUNDS))
def test_json_both_ways(kind: str) -> None:
    made = Terms.create("people", ADD_REMOVE, production=True, kind=kind)
    ours = replace(made, fingerprint="0f" * 32)
    by_column = Terms.create("people", SENSITIVE, kind=kind, columns=["sex", "race", "sex"])
    assert by_column.columns == ("race", "sex")
    for one in (ours, by_column):
        assert Terms.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    values = ours.to_dict()
    told = values["promise"]
    promises = [None, [], {}, {**told, "epsilon": "inf"}, {**told, "epsilon": math.nan}, "x"]
    wrong: dict[str, list[object]] = {
        "version": [2, "1", None, [], True],
        "dataset": ["", " a", "a\nb", "a\u202e", 3, None, "x" * 201, "\ud800"],
        "promise": promises,
        "kind": ["moments", None, [], 1],
        "order": ["x", [], True, math.inf, -1.0] if kind == "renyi" else ["x", 2.0, []],
        "reserve": [-1, 1.0, None, "0.01", []],
        "production": [1, 0, "yes", None],
        "fingerprint": [1, [], True],
        "columns": ["sex", [], [3], ["sex"], {"sex": 1}, True],
    }
    bad = [{**values, name: value} for name, each in wrong.items() for value in each]
    bad += [{key: other for key, other in values.items() if key != name} for name in wrong]
    listed = ("sex", [], [3], ["sex", "race"], ["race", "race"], ["a\nb"], {"sex": 1}, True)
    bad += [{**by_column.to_dict(), "columns": columns} for columns in listed]
    for one in (*bad, {**values, "more": 1}, None, [], "terms", 3):
        with pytest.raises(LedgerError):
            Terms.from_dict(one)


def test_terms_that_cannot_be() -> None:
    for name in ("", "two\nlines", "bell\x07", " space", "x" * 201, None, 3, "right\u202eleft"):
        with pytest.raises(InputError, match="printable letters"):
            Terms.create(name, ADD_REMOVE)  # type: ignore[arg-type]
    cases: list[tuple[str, Promise, dict[str, object]]] = [
        ("finite epsilon", Promise(math.inf, 1e-6), {}),
        ("Only kind='renyi'", ADD_REMOVE, {"kind": "zcdp", "order": 3.0}),
        ("True or False", ADD_REMOVE, {"production": "no"}),
        ("a Schema", ADD_REMOVE, {"schema": "schema.json"}),
        ("kind='pure'", Promise(1.0, 0.0), {"kind": "renyi"}),
        ("columns", ADD_REMOVE, {"columns": ["sex"]}),
    ]
    for words, promise, how in cases:
        with pytest.raises(FairveilError, match=words):
            Terms.create("people", promise, **how)  # type: ignore[arg-type]
    assert (terms(Promise(1.0, 0.0)).kind, terms().kind) == ("pure", "renyi")


def test_events_nested_beyond_reading_are_refused() -> None:
    """They could be written, and not read again: a spend could not be settled."""
    event: Event = Gaussian(100.0)
    for _ in range(150):
        event = Composed((event,))
    ledger = Ledger.create(None, "people", 1.0, 1e-5)
    with pytest.raises(LedgerError, match="levels"):
        ledger.reserve(event)
    assert ledger.is_untouched
