"""Histories of opacus accountants: every step an event, priced against opacus itself; batches that
were shuffled gain nothing."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from fairveil.core.cost import delta
from fairveil.core.events import Composed, Gaussian, NonPrivate, NoOp, PoissonSampled, Repeated
from fairveil.errors import InputError
from fairveil.statement.importing import Imported, from_opacus

DELTA = 1e-5
HISTORY = [(1.0, 0.01, 300), (1.5, 0.01, 200), (1.5, 0.02, 1)]


def read(spent: Any, **more: Any) -> Imported:
    return from_opacus(
        spent, **{"sampling": "poisson", "neighbours": "add-remove", "rows_per_person": 1} | more
    )


def test_every_step_is_an_event() -> None:
    """Guarantee 1."""
    steps = tuple(
        Repeated(PoissonSampled(rate, Gaussian(z)), count) for z, rate, count in HISTORY[:2]
    )
    assert read(HISTORY).events == Composed((*steps, PoissonSampled(0.02, Gaussian(1.5))))
    assert read([]).events == NoOp()
    assert read([(0.0, 0.01, 1)]).events == NonPrivate()
    assert read([(0.0, 0.0, 1), (1.0, 0.0, 5)]).events == NoOp()


@pytest.mark.parametrize("mechanism", ["rdp", "prv", "gdp"])
def test_real_accountants_are_read_and_cost_what_they_say(mechanism: str) -> None:
    accountants = pytest.importorskip("opacus.accountants")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opacus warns of its own accountant "gdp"
        accountant = accountants.create_accountant(mechanism)
    for z, rate, count in HISTORY if mechanism != "gdp" else HISTORY[:1]:
        for _ in range(count):
            accountant.step(noise_multiplier=z, sample_rate=rate)
    expected = read(HISTORY if mechanism != "gdp" else HISTORY[:1])
    for given in (accountant, accountant.state_dict(), accountant.history):
        assert read(given).events == expected.events
    theirs = accountant.get_epsilon(delta=DELTA)
    ours = read(accountant).price(DELTA).epsilon
    if mechanism == "prv":
        assert ours == pytest.approx(theirs, abs=0.02)
    elif mechanism == "rdp":
        assert 0.75 * theirs < ours <= theirs
    assert read(accountant).library.startswith("opacus 1.")


def test_a_real_run_is_read_from_its_engine() -> None:
    torch, opacus = pytest.importorskip("torch"), pytest.importorskip("opacus")
    rows = torch.utils.data.TensorDataset(torch.randn(64, 3), torch.zeros(64, dtype=torch.long))
    net = torch.nn.Linear(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine()
        module, optimizer, loader = engine.make_private(
            module=net,
            optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(rows, batch_size=16),
            noise_multiplier=1.2,
            max_grad_norm=1.0,
        )
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(module(x), y).backward()
                optimizer.step()
    assert read(engine).events == Repeated(PoissonSampled(0.25, Gaussian(1.2)), 8)


def test_a_replaced_row_spends_more_than_one_that_comes() -> None:
    assert (
        read(HISTORY, neighbours="replace-one").price(DELTA).epsilon
        > 1.2 * read(HISTORY).price(DELTA).epsilon
    )


def test_shuffled_batches_are_passes_over_all_rows() -> None:
    """Guarantee 2. A row of norm 1 that becomes its opposite moves one sum a pass by 2: Gaussians
    2/z apart, `passes` times."""
    found = read(
        [(4.0, 0.1, 10), (3.0, 0.1, 15)], sampling="shuffled", neighbours="replace-one", passes=3
    )
    assert found.events == Repeated(Gaussian(1.5), 3)
    assert delta(found.events, 1.0, "replace-one") == pytest.approx(
        delta([Gaussian(1.5)] * 3, 1.0, "replace-one")
    )
    assert found.price(DELTA).epsilon > 3 * read([(3.0, 0.1, 25)]).price(DELTA).epsilon
    assert "pass" in found.notes[0]
    broken_off = read([(4.0, 0.1, 10)], sampling="shuffled", neighbours="replace-one", passes=3)
    assert broken_off.events == Repeated(Gaussian(2.0), 3)
    assert read([], sampling="shuffled", neighbours="replace-one", passes=0).events == NoOp()
    assert isinstance(
        read([(0.0, 0.1, 1)], sampling="shuffled", neighbours="replace-one", passes=1).events,
        NonPrivate,
    )


@pytest.mark.parametrize(
    ("spent", "more", "words"),
    [
        (HISTORY, {"sampling": "shuffled"}, "moves others"),
        (HISTORY, {"sampling": "shuffled", "neighbours": "replace-one"}, "passes"),
        (
            [(1.0, 0.1, 31)],
            {"sampling": "shuffled", "neighbours": "replace-one", "passes": 3},
            "at least the 3.1 passes",
        ),
        (HISTORY, {"passes": 3}, "none where"),
        (HISTORY, {"sampling": "fixed"}, "'poisson' or 'shuffled'"),
        (HISTORY, {"neighbours": "bounded"}, "add-remove"),
        (HISTORY, {"rows_per_person": 0}, "at least 1"),
        (HISTORY, {"rows_per_person": 2}, "several rows"),
        ("history", {}, "history"),
        (object(), {}, "history"),
        ({"mechanism": "rdp"}, {}, "history"),
        ([1.0], {}, "noise multiplier"),
        ([(1.0, 0.1)], {}, "noise multiplier"),
        ([(-1.0, 0.1, 2)], {}, "at least 0"),
        ([(1.0, 1.1, 2)], {}, "sample_rate"),
        ([(1.0, 0.1, 2.5)], {}, "whole"),
        ([(1.0, 0.1, -2)], {}, "whole"),
        ([(float("nan"), 0.1, 2)], {}, "at least 0"),
    ],
)
def test_what_cannot_be_mapped_is_refused(spent: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(spent, **more)
