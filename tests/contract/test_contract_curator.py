"""A curator, asked directly: what a run may do, what it is charged, what it leaves in journals and
ledgers; and joint questions, parts, cells, persons and weights against sums worked out here."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import configurations
import numpy as np
import pytest
from configurations import CONFIGURATIONS

import fairveil as fv
from fairveil import data
from fairveil.core.events import Composed, Gaussian, OnPart, PerCell, Repeated, compose
from fairveil.curator import (
    ByCell,
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Journal,
    Linear,
    Measurement,
    Part,
    Poisson,
    PredictionHistogram,
    RowCount,
    RowFunction,
    Rows,
    describe,
)
from fairveil.errors import FairveilError
from fairveil.privacy import Filter, NoiseSource, Promise, epsilon
from fairveil.statement.document import PrivacyStatement

REPLACED = Promise(3.0, 1e-6, neighbours="replace-one")
ADDED = Promise(3.0, 1e-6)
ALONE = Promise(3.0, 1e-6, "sensitive_features")
ROOMY = Promise(1e7, 1e-6)  # noise of almost nothing
TINY = 1e-3
WIDTH = 2


def rows_of(
    number: int = 40, width: int = WIDTH, weights: Any = None, cap: float = 1.0, columns: int = 1
) -> Rows:
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(number, width)), draw.integers(0, 2, number)
    return Rows.from_arrays(
        X,
        y,
        [draw.integers(0, 2, number) for _ in range(columns)],
        classes=(0, 1),
        groups=[(0, 1)] * columns,
        sample_weight=weights,
        max_sample_weight=cap,
    )


def seeded(rows: Rows, promise: Promise, seed: int = 0, **options: Any) -> Curator:
    return Curator(rows, promise, noise=NoiseSource.seeded(seed), **options)


def ledger_of(name: str = "people", **options: Any) -> fv.Ledger:
    given = {"neighbours": "replace-one", "kind": "renyi"} | options
    return fv.Ledger.create(None, name, 9.0, 1e-6, **given)


def curator_has_room(curator: Curator, ask: Any, before: Any = ()) -> bool:
    """Ask once more; the answer is none of those before."""
    try:
        (answer,) = curator.answer(ask)
    except FairveilError:
        return False
    assert not any(np.array_equal(answer, other) for other in before)
    return True


def kinds(ledger: fv.Ledger) -> list[str]:
    return [line.kind for line in ledger.history()][1:]


def charged(ledger: fv.Ledger) -> int:
    return list(ledger.history())[-1].spent


def cost(events: Any) -> int:
    """What a ledger charges for these."""
    ledger = ledger_of()
    ledger.reserve(events, REPLACED).commit()
    return charged(ledger)


# ---- what a run may do

PLAN = Repeated(
    Composed((Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2), OnPart(Gaussian(20.0), 1, 2))), 4
)


def follow(curator: Curator, rows: Rows, count: int, start: int = 0) -> list[Any]:
    """The next answers of that plan."""
    out = []
    for at in range(start, start + count):
        batch = [Part(at % 3 - 1, 2)] if at % 3 else []
        out += curator.answer([(CellCounts(rows.cells()), 20.0 if at % 3 else 30.0)], *batch)
    return out


def test_a_plan_is_priced_followed_and_done() -> None:
    rows = rows_of()
    with pytest.raises(FairveilError):
        seeded(rows, REPLACED, plan=Repeated(Gaussian(1.0), 2))
    dear = Gaussian(1.0 / (1.1 * mu_of(REPLACED)))
    with pytest.raises(FairveilError):
        seeded(rows, REPLACED, plan=dear)
    curator = seeded(rows, REPLACED, plan=PLAN)
    ask = CellCounts(rows.cells())
    for wrong in ([(ask, 29.0)], [(ask, 30.0), (ask, 30.0)]):
        with pytest.raises(FairveilError):
            curator.answer(wrong)
    with pytest.raises(FairveilError):
        curator.answer([(ask, 20.0)], Part(0, 2))
    follow(curator, rows, 1)
    with pytest.raises(FairveilError):
        curator.answer([(ask, 20.0)], Part(1, 2))
    with pytest.raises(FairveilError):
        curator.finish()
    follow(curator, rows, 11, 1)
    with pytest.raises(FairveilError):
        curator.answer([(ask, 3000.0)])
    curator.finish()
    with pytest.raises(FairveilError):
        follow(curator, rows, 1)
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert [event.part for event in _spelled(statement.events) if isinstance(event, OnPart)] == (
        [0, 1] * 4
    )


def mu_of(promise: Promise) -> float:
    """Of the Gaussian that costs this promise."""
    low, high = 0.01, 100.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        over = epsilon(Gaussian(1 / middle), promise.delta, promise.neighbours) > promise.epsilon
        low, high = (low, middle) if over else (middle, high)
    return low


def _spelled(events: Any) -> list[Any]:
    from fairveil.core.events import spelled_out

    return list(spelled_out(compose(events)))


def test_a_closed_run_answers_nothing() -> None:
    rows = rows_of()
    for plan in (None, PLAN):
        curator = seeded(rows, REPLACED, plan=plan)
        follow(curator, rows, 1)
        curator.close()
        with pytest.raises(FairveilError):
            follow(curator, rows, 1, 1)


def test_what_reads_rows_is_never_exact_and_parts_need_a_public_number() -> None:
    rows = rows_of()
    for promise in (ADDED, REPLACED):
        for question in (CellCounts(rows.cells()), FeatureSums(None, 1.0), GramMatrices(None, 1.0)):
            with pytest.raises(FairveilError, match="do not read what is protected"):
                seeded(rows, promise).answer([(question, 0.0)])
    with pytest.raises(FairveilError):
        seeded(rows, ADDED).answer([(CellCounts(rows.cells()), 20.0)], Part(0, 3))
    with pytest.raises(FairveilError):
        seeded(rows, ADDED).answer([(RowCount(), 0.0)])
    assert seeded(rows, REPLACED).answer([(RowCount(), 0.0)])[0] == 40.0


@pytest.mark.parametrize("kind", ["renyi", "gaussian"])
def test_without_a_plan_a_filter_holds_what_is_chosen(kind: str) -> None:
    rows, made = rows_of(), 0
    ledger = ledger_of()
    curator = seeded(rows, REPLACED, cap=Filter.create(REPLACED, kind), ledger=ledger)
    ask = [(CellCounts(rows.cells()), 4.0)]
    while made < 200 and curator_has_room(curator, ask):
        made += 1
    assert 3 < made < 200
    assert epsilon(list(curator.log.events), 1e-6, "replace-one") <= 3.0
    assert kinds(ledger).count("committed") == made
    assert charged(ledger) == pytest.approx(cost(Repeated(Gaussian(4.0), made)), rel=1e-9)
    assert PrivacyStatement.of_run(curator).epsilon == 3.0
    assert PrivacyStatement.of_run(curator).check() == []
    for other in (Promise(9.0, 1e-6, neighbours="replace-one"), ADDED):
        with pytest.raises(FairveilError):
            seeded(rows, REPLACED, cap=Filter.create(other, kind))


# ---- answers that fail


class StopError(Exception):
    """What fails inside of an answer."""


def failing(at: int, error: BaseException) -> Callable[[Any], None]:
    """A listener that fails at this entry: the answer was made, and is not returned."""
    seen: list[Any] = []

    def write(entry: Any) -> None:
        seen.append(entry)
        if len(seen) == at:
            raise error

    return write


@pytest.mark.parametrize("error", [StopError, KeyboardInterrupt])
@pytest.mark.parametrize("plan", [PLAN, None])
def test_an_answer_that_fails_is_charged_and_ends_a_plan(error: Any, plan: Any) -> None:
    """As reserved, where a row might have made it fail; by what was asked, where a person did."""
    rows, ledger = rows_of(), ledger_of()
    curator = seeded(rows, REPLACED, plan=plan, ledger=ledger, heard=failing(3, error()))
    follow(curator, rows, 2)
    with pytest.raises(error):
        follow(curator, rows, 1, 2)
    if plan is not None:
        with pytest.raises(FairveilError):
            follow(curator, rows, 1, 3)
    curator.close()
    asked = compose([Gaussian(30.0), OnPart(Gaussian(20.0), 0, 2), OnPart(Gaussian(20.0), 1, 2)])
    if plan is None:
        assert charged(ledger) >= cost(asked) * (1 - 1e-9)
    else:
        whole = cost(PLAN)
        assert kinds(ledger)[-1] == "committed"
        assert charged(ledger) == pytest.approx(whole if error is StopError else cost(asked))


def test_a_run_that_broke_off_is_charged_for_all_of_its_answers() -> None:
    rows, ledger = rows_of(), ledger_of()
    curator = seeded(rows, REPLACED, plan=PLAN, ledger=ledger)
    assert charged(ledger) == pytest.approx(cost(PLAN))
    follow(curator, rows, 6)
    curator.close()
    assert charged(ledger) == pytest.approx(cost(PLAN) / 2, rel=1e-6)
    unused = ledger_of()
    seeded(rows, REPLACED, plan=PLAN, ledger=unused).close()
    assert kinds(unused) == ["reserved", "refunded"]
    assert charged(unused) == 0


def test_user_code_is_named_and_does_not_ask_again() -> None:
    rows = rows_of()
    curator = seeded(rows, Promise(9.0, 1e-6))
    inside: list[str] = []

    def nosy(block: Any) -> Any:
        try:
            curator.answer([(RowCount(), 50.0)])
        except FairveilError:
            inside.append("refused")
        else:
            inside.append("answered")
        return np.zeros((len(block.numbers.T), 1))

    curator.answer([(RowFunction(nosy, 1, 1.0, frozenset({"features"})), 50.0)])
    assert inside
    assert set(inside) == {"refused"}
    assert len(curator.log) == 1
    curator.close()
    assert "user-code-trusted" in PrivacyStatement.of_run(curator).stamps
    plain = seeded(rows, Promise(9.0, 1e-6))
    plain.answer([(RowCount(), 50.0)])
    assert "user-code-trusted" not in PrivacyStatement.of_run(plain).stamps


def test_what_went_wrong_inside_is_told_when_the_run_has_ended() -> None:
    """Whether a row made user code fail is private while answers may still come."""
    curator = seeded(rows_of(), Promise(9.0, 1e-6))

    def broken(block: Any) -> Any:
        raise ValueError("a cell of a row")

    curator.answer([(RowFunction(broken, 1, 1.0, frozenset({"features"})), 50.0)])
    with pytest.raises(FairveilError):
        curator.trouble()
    curator.close()
    assert curator.trouble()


def test_weights_of_protected_rows_have_a_cap() -> None:
    rows = rows_of(6, weights=np.ones(6), cap=math.inf)
    for promise in (ADDED, REPLACED):
        with pytest.raises(FairveilError, match="weight"):
            seeded(rows, promise)


def test_strange_numbers_make_no_warning(capfd: Any) -> None:
    rows = Rows.from_arrays(
        np.array([[1e300, -1e308], [5e-324, 1e-310], [0.0, 1e200]] * 4),
        [0, 1, 0] * 4,
        [[0, 1, 1] * 4],
        classes=(0, 1),
        groups=[(0, 1)],
    )
    model = Linear(np.array([1.0, 1e200, -1e300]))
    asked: list[Any] = [
        GradientSum(model, 1.0),
        FeatureSums(rows.cells(), 1.0),
        GramMatrices(None, 1.0),
        GroupLosses(model, rows.cells(), "squared", 1.0),
        GroupLosses(model, rows.cells(), "log", 1.0),
        PredictionHistogram(model, rows.cells(), "soft"),
        RowFunction(lambda block: block.numbers.T**3 / block.numbers.T, 2, 1.0),
    ]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for question in asked:
            (answer,) = seeded(rows, ADDED).answer([(question, 50.0)])
            assert np.isfinite(answer).all()
    assert not told
    assert capfd.readouterr() == ("", "")


# ---- sittings, journals and ledgers


def test_a_second_sitting_is_charged_for_the_first_and_has_noise_of_its_own(tmp_path: Path) -> None:
    rows = rows_of()
    ask = [(CellCounts(rows.cells()), 4.0)]
    one = seeded(rows, REPLACED, earlier=Journal(tmp_path / "j"))
    first = [one.answer(ask)[0] for _ in range(3)]
    one.close()
    alone, made = 0, 0
    for earlier in (None, Journal(tmp_path / "j")):
        two, count = seeded(rows, REPLACED, earlier=earlier), 0
        for answer in first if earlier else []:
            np.testing.assert_array_equal(two.answer(ask)[0], answer)  # given again
        while count < 300 and curator_has_room(two, ask, first if earlier else []):
            count += 1
        alone, made = made, count
    assert made == alone - 3
    numbers = [entry.number for entry in two.log.entries]
    assert len(set(numbers)) == len(numbers)


def test_a_journal_goes_on_where_it_ends_with_what_it_began(tmp_path: Path) -> None:
    rows, path = rows_of(), tmp_path / "j"
    one = seeded(rows, REPLACED, plan=PLAN, earlier=Journal(path))
    first = follow(one, rows, 5)
    assert one.journal is not None
    assert one.journal.entries == one.log.entries == Journal(path).entries
    assert len(one.log.entries) == 5
    with pytest.raises(FairveilError):
        seeded(rows, REPLACED, plan=PLAN, earlier=Journal(path))  # it is being written
    one.close()
    before = path.read_bytes()
    for options in (
        {"plan": Repeated(Gaussian(30.0), 12)},
        {"plan": None},
        {"promise": Promise(2.9, 1e-6, neighbours="replace-one")},
    ):
        given = {"plan": PLAN, "promise": REPLACED} | options
        with pytest.raises(FairveilError):
            seeded(rows, given.pop("promise"), earlier=Journal(path), **given)
        assert path.read_bytes() == before
    two = seeded(rows, REPLACED, plan=PLAN, earlier=Journal(path))
    with pytest.raises(FairveilError):
        two.answer([(CellCounts(rows.cells()), 29.0)])  # not what was asked first
    two.close()
    three = seeded(rows, REPLACED, plan=PLAN, earlier=Journal(path))
    again = follow(three, rows, 12)
    three.finish()
    assert PrivacyStatement.of_run(three).check() == []
    drawn = [answer.tobytes() for answer in again]
    assert drawn[:5] == [answer.tobytes() for answer in first]
    assert len(set(drawn)) == len(drawn)
    numbers = [entry.number for entry in Journal(path).entries]
    assert len(set(numbers)) == 12


def test_one_seeded_sitting_makes_a_run_seeded(tmp_path: Path) -> None:
    rows, path = rows_of(), tmp_path / "j"
    one = seeded(rows, REPLACED, plan=PLAN, earlier=Journal(path))
    follow(one, rows, 2)
    one.close()
    two = Curator(rows, REPLACED, plan=PLAN, noise=NoiseSource.secure(), earlier=Journal(path))
    follow(two, rows, 12)
    two.finish()
    assert PrivacyStatement.of_run(two).noise == "seeded"
    assert not Journal(path).is_secure
    only = Curator(rows, REPLACED, plan=PLAN, noise=NoiseSource.secure())
    follow(only, rows, 12)
    only.finish()
    assert PrivacyStatement.of_run(only).noise == "secure"


def test_a_journal_of_answers_is_its_owners_and_of_noisy_ones(tmp_path: Path) -> None:
    rows = rows_of()
    mask = os.umask(0)
    try:
        curator = seeded(rows, REPLACED, earlier=Journal(tmp_path / "j"))
        follow(curator, rows, 1)
        curator.close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "j").stat().st_mode) == 0o600
    exact = Promise(float("inf"), 0.0)
    with pytest.raises(FairveilError):
        seeded(rows, exact, earlier=Journal(tmp_path / "exact"))
    assert not (tmp_path / "exact").exists() or not (tmp_path / "exact").read_bytes()


def test_after_half_a_line_nothing_follows(tmp_path: Path, monkeypatch: Any) -> None:
    rows = rows_of()
    curator = seeded(rows, REPLACED, earlier=Journal(tmp_path / "j"))
    ask = [(CellCounts(rows.cells()), 90.0)]
    curator.answer(ask)
    write = os.write

    def half(file: int, content: bytes) -> int:
        write(file, content[:25])
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(OSError, match="no space"):
            curator.answer(ask)
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(FairveilError):
        curator.answer(ask)
    assert (tmp_path / "j").read_bytes() == before


def test_a_run_is_charged_once_where_it_began(tmp_path: Path) -> None:
    """By the ledger that it began with, in one place: copies of its journal do not go on, and one
    that went on at once is charged as well."""
    rows, path, ledger = rows_of(), tmp_path / "j", ledger_of()
    one = seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(path))
    follow(one, rows, 5)
    del one
    shutil.copy(path, tmp_path / "copy")
    for other in (None, ledger_of("others"), ledger_of()):
        with pytest.raises(FairveilError):
            seeded(rows, REPLACED, plan=PLAN, ledger=other, earlier=Journal(tmp_path / "copy"))


def test_a_copy_of_a_journal_does_not_go_on_after_its_run_did(tmp_path: Path) -> None:
    rows, path, ledger = rows_of(), tmp_path / "j", ledger_of()
    one = seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(path))
    follow(one, rows, 5)
    one.close()
    shutil.copy(path, tmp_path / "copy")
    two = seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(path))
    follow(two, rows, 12)
    two.finish()
    assert charged(ledger) == pytest.approx(cost(PLAN))
    for again in (tmp_path / "copy", path):
        with pytest.raises(FairveilError):
            follow(
                seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(again)), rows, 13
            )
    assert charged(ledger) == pytest.approx(cost(PLAN))


def test_two_copies_that_go_on_at_once_are_both_charged(tmp_path: Path) -> None:
    rows, path, ledger = rows_of(), tmp_path / "j", ledger_of()
    one = seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(path))
    follow(one, rows, 5)
    shutil.copy(path, tmp_path / "copy")
    two = seeded(rows, REPLACED, plan=PLAN, ledger=ledger, earlier=Journal(tmp_path / "copy"))
    follow(one, rows, 7, 5)
    follow(two, rows, 12)
    two.finish()
    with pytest.raises(FairveilError):
        one.finish()
    assert charged(ledger) == pytest.approx(2 * cost(PLAN))
    assert not [one for one in ledger.check() if one.grave]


def test_a_forked_child_settles_nothing(tmp_path: Path) -> None:
    rows = rows_of()
    options = {"neighbours": "replace-one", "kind": "renyi"}
    ledger = fv.Ledger.create(tmp_path / "b.db", "people", 9.0, 1e-6, **options)
    curator = seeded(rows, REPLACED, plan=PLAN, ledger=ledger)
    follow(curator, rows, 3)
    child = os.fork()
    if child == 0:
        try:
            curator.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert kinds(ledger) == ["reserved"]
    follow(curator, rows, 9, 3)
    curator.finish()
    assert kinds(ledger) == ["reserved", "committed"]


def test_what_a_ledger_requires_is_asked_before_a_run() -> None:
    rows = rows_of()
    for plan in (PLAN, None):
        strict = ledger_of(production=True)
        with pytest.raises(FairveilError):
            seeded(rows, REPLACED, plan=plan, ledger=strict)
        assert kinds(strict) == []


# ---- joint questions: many models, cells, weights


def exact_of(rows: Rows, question: Any, promise: Promise = ROOMY) -> Any:
    """With noise of a thousandth of what one person adds."""
    (answer,) = seeded(rows, promise).answer([(question, TINY)])
    return answer


def test_models_side_by_side_are_priced_noised_and_answered_each_by_itself() -> None:
    """Forty equal models: as many events; forty answers that differ by noise of one scale each."""
    rows, models = rows_of(), 40
    weights = np.zeros((models, 1, 1 + WIDTH))
    for question in (
        PredictionHistogram(Linear(weights), rows.cells(), "soft"),
        GradientSum(Linear(weights), 1.0),
        GroupLosses(Linear(weights), rows.cells(), "log", 1.0),
        CellCounts(rows.cells(), copies=models),
    ):
        for noise in (
            NoiseSource.seeded(0),
            [NoiseSource.seeded(i) for i in range(models)],
        ):
            try:
                curator = Curator(rows, ADDED, noise=noise)
                (answer,) = curator.answer([(question, 60.0)])
            except FairveilError:
                assert isinstance(noise, list)
                continue
            assert _spelled(curator.log.events) == [Gaussian(60.0)] * models
            values = answer.reshape(models, -1)
            assert len({one.tobytes() for one in values}) == models
            bound = max(one.sensitivity for one in PrivacyStatement.of_run(curator).bounds)
            spread = values.std(axis=0) / (60.0 * bound)
            assert (spread > 0.6).all(), question.name
            assert (spread < 1.5).all(), question.name


def test_each_model_has_the_noise_of_its_own_largest_row() -> None:
    """Of public rows: the largest loss of each model, and the largest of all is stated."""
    rows = rows_of(30)
    weights = np.array([[[0.1, 0.0, 0.0]], [[300.0, 0.0, 0.0]]])
    question = GroupLosses(Linear(weights), rows.cells(), "log")
    drawn, stated = [], set()
    for seed in range(60):
        curator = seeded(rows, ALONE, seed)
        drawn.append(curator.answer([(question, 20.0)])[0])
        stated.add(PrivacyStatement.of_run(curator).bounds[0].sensitivity)
    spread = np.array(drawn).std(axis=0)
    largest = 300.0 * math.sqrt(2)
    assert max(stated) == pytest.approx(largest, rel=1e-3)
    assert len(stated) == 1
    assert spread[1] == pytest.approx(20.0 * largest, rel=0.4)
    assert (spread[0] < 20.0 * 2.0).all()


def test_noise_differs_by_cell_as_its_multipliers_do() -> None:
    rows = rows_of(8, 60)
    question = ByCell(FeatureSums(None, 1.0), rows.cells())
    multipliers = [20.0, 20_000.0]
    curator = seeded(rows, ADDED)
    (answer,) = curator.answer([(question, multipliers)])
    assert answer[0].std() == pytest.approx(20.0, rel=0.4)
    assert answer[1].std() == pytest.approx(20_000.0, rel=0.4)
    (event,) = curator.log.events
    assert isinstance(event, PerCell)
    assert event.multipliers == ((20.0, 20_000.0),)


def test_weights_are_in_every_bound() -> None:
    """One row of the largest weight, added to none: each answer moves by no more than is stated."""
    X, model = np.array([[1.0, -1.0]]), Linear(np.array([0.5, 1.0, -2.0]))
    for cap in (1.0, 1.5, 4.0):
        moved = {}
        for number in (0, 1):
            rows = Rows.from_arrays(
                X[:number],
                [0][:number],
                [[0][:number], [1][:number]],
                classes=(0, 1),
                groups=[(0, 1), (0, 1)],
                sample_weight=[9.0][:number],
                max_sample_weight=cap,
            )
            for mode in ("product", "marginal"):
                cells = rows.cells(mode)
                for name, question in {
                    "losses": GroupLosses(model, cells, "squared", 2.0),
                    "features": FeatureSums(cells, 1.5),
                    "counts": CellCounts(cells),
                    "predictions": PredictionHistogram(model, cells, "hard"),
                    "gradients": GradientSum(model, 0.7),
                    "grams": GramMatrices(cells, 1.5),
                    "rows": RowCount(),
                }.items():
                    curator = seeded(rows, ADDED)
                    (answer,) = curator.answer([(question, 1e4)])
                    stated = PrivacyStatement.of_run(curator).bounds[0].sensitivity
                    moved[mode, name, number] = (answer / 1e4, stated)
        for (mode, name, number), (answer, stated) in moved.items():
            if number:
                other, same = moved[mode, name, 0]
                assert same == stated
                # noise of one seed is the same but for its scale; what is left is the row
                assert np.linalg.norm(answer - other) * 1e4 <= stated * (1 + 1e-6) + 1.0
        exact = {}
        for mode, name in {(mode, name) for mode, name, _ in moved}:
            exact[mode, name] = moved[mode, name, 1][1]
        several = math.sqrt(2)
        assert exact["product", "losses"] == pytest.approx(2.0 * cap)
        assert exact["marginal", "losses"] == pytest.approx(2.0 * cap * several)
        assert exact["marginal", "features"] == pytest.approx(1.5 * cap * several)
        assert exact["product", "features"] == pytest.approx(1.5 * cap)
        assert exact["marginal", "counts"] == pytest.approx(cap * several)
        assert exact["product", "gradients"] == pytest.approx(0.7 * cap)


@pytest.mark.parametrize("relation", ["added", "replaced"])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_no_pair_of_rows_moves_an_answer_further_than_is_stated(relation: str, mode: str) -> None:
    """Every two rows of a grid of extremes, in place of one another: the answers are sums, so the
    difference of two tables of one row each is what a neighbour does."""
    promise = ADDED if relation == "added" else REPLACED
    people = [
        (x, y, a, b, w)
        for x in ((0.0, 0.0), (3.0, -4.0), (-3.0, 4.0), (1e9, 0.0))
        for y, a, b in ((0, 0, 0), (1, 0, 1), (1, 1, 1))
        for w in (0.2, 1.5)
    ]
    model = Linear(np.array([0.3, 1.0, -2.0]))
    found: dict[str, list[Any]] = {}
    bounds: dict[str, float] = {}
    for x, y, a, b, w in people:
        rows = Rows.from_arrays(
            [x],
            [y],
            [[a], [b]],
            classes=(0, 1),
            groups=[(0, 1)] * 2,
            sample_weight=[w],
            max_sample_weight=1.5,
        )
        cells = rows.cells(mode)
        for question in (
            GroupLosses(model, cells, "squared", 2.0),
            GroupLosses(model, cells, "log", 2.0),
            FeatureSums(cells, 1.5),
            FeatureSums(cells, 1.5, by_label=True),
            GramMatrices(cells, 1.5),
            CellCounts(cells),
            PredictionHistogram(model, cells, "hard"),
            PredictionHistogram(model, cells, "soft"),
            GradientSum(model, 0.7),
            GradientSum(model, 0.7, cells, np.ones((cells.count, 1, 2)) * [[-1.0, 2.0]]),
        ):
            curator = seeded(rows, Promise(1e9, 1e-6, neighbours=promise.neighbours))
            (answer,) = curator.answer([(question, 1e-4)])
            name = f"{question.name} {getattr(question, 'loss', '')} {answer.shape}"
            found.setdefault(name, []).append(np.ravel(answer))
            bounds[name] = PrivacyStatement.of_run(curator).bounds[0].sensitivity
    for name, answers in found.items():
        table = np.array(answers)
        moved = np.linalg.norm(table, axis=1).max()
        if relation == "replaced":
            moved = max(np.linalg.norm(table - one, axis=1).max() for one in table)
        # a symmetric matrix is answered whole, and each entry above its diagonal counts once
        if "gram" not in name:
            assert moved <= bounds[name] * (1 + 1e-3) + 1e-3, name


def test_weights_by_cell_count_each_row_as_its_cells_do() -> None:
    """Where groups alone are protected, weights that are the same for all cells read no group."""
    rows, model = rows_of(60), Linear(np.array([0.2, 1.0, -1.0]))
    plain = seeded(rows, ALONE).answer([(GradientSum(model, None), 0.0)])[0]
    for weight in (1.0, 3.0):
        question = GradientSum(model, 5.0, rows.cells(), cell_weights=np.full(2, weight))
        (answer,) = seeded(rows, ALONE).answer([(question, 1e3)])
        assert answer == pytest.approx(weight * plain, rel=1e-9)
    roomy = Promise(1e7, 1e-6, "sensitive_features")
    question = GradientSum(model, 50.0, rows.cells(), cell_weights=np.array([1.0, 3.0]))
    (answer,) = seeded(rows, roomy).answer([(question, 1e-3)])
    parts = seeded(rows, roomy).answer([(ByCell(GradientSum(model, 50.0), rows.cells()), 1e-3)])[0]
    assert answer.ravel() == pytest.approx((parts[0] + 3.0 * parts[1]).ravel(), abs=2.0)


# ---- persons


def test_a_store_of_many_blocks_reads_as_many_rows_of_a_person_as_memory(tmp_path: Path) -> None:
    """At most so many, whether or not a person's rows stand in one block."""
    table, row = configurations.people(), CONFIGURATIONS["descent-persons"]
    source, whole = {name: table[name] for name in row.facts.columns}, row.run(table)
    for out, block_rows in ((None, 7), (tmp_path / "a.store", 7), (tmp_path / "b.store", 64)):
        rows = data.encode(source, row.facts, out, block_rows=block_rows)
        again = row.estimator().fit(rows)
        assert again.coef_.tobytes() == whole.coef_.tobytes()
        assert again.intercept_.tobytes() == whole.intercept_.tobytes()


def test_a_persons_name_is_nothing_but_a_name() -> None:
    """Another name, wherever it sorts, and nothing else is another."""
    row, table = CONFIGURATIONS["descent-persons"], configurations.people()
    first = row.run(table)
    for old, new in ((table["person"][0], "zzz"), (table["person"][-1], "aaa")):
        persons = np.where(table["person"] == old, new, table["person"])
        other = row.run(table | {"person": persons.astype("U5")})
        assert other.coef_.tobytes() == first.coef_.tobytes()


def test_batches_are_drawn_anew_at_their_rate() -> None:
    """Sizes of secret batches, seen by an answer with almost no noise."""
    rows = rows_of(400)
    curator = seeded(rows, Promise(1e9, 1e-6))
    ask = [(CellCounts(rows.cells()), 1e-3)]
    sizes = [curator.answer(ask, Poisson(0.25))[0].sum() for _ in range(12)]
    assert len({round(float(size)) for size in sizes}) > 4
    assert 70 < np.mean(sizes) < 130


def test_a_noisy_number_of_rows_is_at_least_one() -> None:
    rows = rows_of(1)
    found = [seeded(rows, ADDED, seed).release_rows(20.0) for seed in range(12)]
    assert min(found) == 1
    assert max(found) > 1


def test_choices_are_random_and_each_by_itself() -> None:
    rows, weights = rows_of(60), np.zeros((6, 1, 1 + WIDTH))
    weights[:, 0, 0] = np.linspace(-1, 1, 6)
    question = GroupLosses(Linear(weights), rows.cells())
    curator = seeded(rows, Promise(50.0, 1e-6))
    drawn = [curator.choose(question, 0.01, cell_weights=[1.0, 1.0]) for _ in range(60)]
    assert len(set(drawn)) > 3
    exact = seeded(rows, Promise(float("inf"), 0.0))
    best = exact.choose(question, 1.0, cell_weights=[1.0, 1.0])
    losses = seeded(rows, Promise(float("inf"), 0.0)).answer([(question, 0.0)])[0].sum(axis=1)
    assert losses[best] == losses.min()


def test_a_plan_described_before_is_what_is_logged() -> None:
    rows = rows_of()
    for promise, question in itertools.product((ADDED, REPLACED), (1, 2)):
        asked = [Measurement(CellCounts(rows.cells()), 9.0)] * question
        event = describe(asked, rows.layout, promise)
        curator = seeded(rows, promise, plan=event)
        curator.answer(asked)
        curator.finish()
        assert curator.log.events == (event,)
