"""A post-processor and its base under seeds: no two releases share a stream, and no seed is
forgotten."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.core.noise import NoiseSource
from fairveil.curator import Curator
from fairveil.errors import LedgerError
from fairveil.estimators import wrapped
from knobs import made

RNG = np.random.default_rng(0)
ROWS = 300
A = RNG.integers(2, size=ROWS)
X = RNG.normal(size=(ROWS, 2))
Y = (X.sum(axis=1) + 0.3 * A > 0).astype(int)
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "public_rows": ROWS}
SEEDS = (0, 7)


def unfitted(kind: str = "choice", **options: Any) -> Any:
    given = {"public_rows": ROWS, "epsilon": 0.5, "delta": 5e-7, **options}
    if kind == "choice":
        return made(ways.objective, "error", method="exponential", **given)
    return made(fv.FairClassifier, None, solver=fv.PrimalDual(rounds=3), **given)


def after(base: Any, **options: Any) -> fv.FairPostProcessor:
    # decisions may be drawn: with a seed, too
    given = {**PROMISE, "predict_method": "predict", **options}
    return made(fv.FairPostProcessor, base, "equalized_odds:0.2", **given).fit(
        X, Y, sensitive_features=A
    )


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The seed of each curator that is opened, and of the base's decisions."""
    out: list[int | None] = []
    opened, decisions = Curator.__init__, wrapped.decisions_of
    seeds: dict[int, int | None] = {}
    made = NoiseSource.of

    def remembered(seed: int | None) -> NoiseSource:
        source = made(seed)
        seeds[id(source)] = seed
        kept.append(source)
        return source

    def opens(self: Curator, *given: Any, noise: Any = None, **options: Any) -> None:
        sources = [noise] if isinstance(noise, NoiseSource) else list(noise or ())
        out.extend(seeds[id(source)] for source in sources)
        opened(self, *given, noise=noise, **options)

    def decides(base: Any, features: Any, classes: Any, rows: int, seed: int | None) -> Any:
        out.append(seed)
        return decisions(base, features, classes, rows, seed)

    kept: list[NoiseSource] = []  # so that no id comes twice
    monkeypatch.setattr(NoiseSource, "of", staticmethod(remembered))
    monkeypatch.setattr(Curator, "__init__", opens)
    monkeypatch.setattr(wrapped, "decisions_of", decides)
    return out


# -- one stream makes the noise of one release


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["choice", "descent", None])
def test_a_base_that_is_fitted_here_its_decisions_and_the_counts_have_a_seed_each(
    used: list[int | None], seed: int, kind: str | None
) -> None:
    clf = after(None if kind is None else unfitted(kind), random_state=seed)
    base, decisions, counts = used
    assert None not in used
    assert len({seed, base, decisions, counts}) == 4
    assert clf.estimator_.random_state == base


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fitted", [True, False])
def test_the_same_integer_given_to_both_does_not_make_the_same_noise(
    used: list[int | None], seed: int, fitted: bool
) -> None:
    base = unfitted(random_state=seed)
    after(base.fit(X, Y) if fitted else base, random_state=seed)
    first, decisions, counts = used
    assert first == seed
    assert len({first, decisions, counts}) == 3


def test_the_draws_of_base_and_counts_are_unlike_under_every_path() -> None:
    """Streams of one path under the two seeds: 500 draws each, correlated by less than 5
    deviations."""
    for seed in SEEDS:
        keys = [seed, *(wrapped.derived_seed(seed, part) for part in (1, 2, 3))]
        streams = [
            NoiseSource.of(key).stream("noise", number, 0) for key in keys for number in range(4)
        ]
        table = np.corrcoef([stream.rounded_gaussian(1e6, 500) for stream in streams])
        assert np.abs(table - np.eye(len(table))).max() < 5 / 500**0.5


def test_without_a_seed_nothing_is_derived(used: list[int | None]) -> None:
    assert after(unfitted()).privacy_.noise == "secure"
    assert used == [None, None, None]


# -- a seed is never forgotten


@pytest.mark.parametrize("kind", ["choice", "descent"])
@pytest.mark.parametrize("fitted", [True, False])
def test_a_seeded_base_makes_the_whole_insecure(fitted: bool, kind: str) -> None:
    base = unfitted(kind, random_state=3)
    clf = after(base.fit(X, Y) if fitted else base)
    statement = clf.privacy_
    assert clf.estimator_.privacy_.noise == "seeded"
    assert (statement.noise, "seeded-noise" in statement.stamps) == ("seeded", True)
    assert "INSECURE" in statement.summary()
    assert statement.check() == []


def test_a_seeded_base_without_constraints_is_insecure_too() -> None:
    base = unfitted(random_state=3).fit(X, Y)
    clf = made(fv.FairPostProcessor, base, None, **PROMISE).fit(X, Y, sensitive_features=A)
    assert (clf.privacy_.noise, clf.privacy_.stamps) == ("seeded", ("seeded-noise",))


@pytest.mark.parametrize("constraints", ["equalized_odds:0.2", None])
def test_a_ledger_in_production_refuses_a_seeded_base_under_a_secure_post_processor(
    constraints: str | None,
) -> None:
    base = unfitted(random_state=3).fit(X, Y)
    ledger = fv.Ledger.create(None, "people", 9.0, 1e-6, production=True)
    with pytest.raises(LedgerError, match="secure noise"):
        made(fv.FairPostProcessor, base, constraints, **PROMISE, ledger=ledger).fit(
            X, Y, sensitive_features=A
        )
    with pytest.raises(LedgerError, match="secure noise"):
        made(
            fv.FairPostProcessor, unfitted(random_state=3), constraints, **PROMISE, ledger=ledger
        ).fit(X, Y, sensitive_features=A)
    assert {line.kind for line in ledger.history()} <= {"created", "reserved", "refunded"}
