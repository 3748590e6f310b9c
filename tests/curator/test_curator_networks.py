"""Questions about networks, by the guarantees of curator/questions/networks.py."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from fairveil.core.events import Gaussian  # noqa: E402
from fairveil.core.extra.torch_gradient import Wanted, engine, rounding_of  # noqa: E402
from fairveil.core.passes import Passes, totals  # noqa: E402
from fairveil.core.pricing import constant_scale  # noqa: E402
from fairveil.core.quiet import Troubles  # noqa: E402
from fairveil.curator import (  # noqa: E402
    CellCounts,
    Curator,
    GradientSum,
    Journal,
    Linear,
    Network,
    NetworkGradient,
    NetworkHistogram,
    Poisson,
    PredictionHistogram,
    Rows,
    describe,
)
from fairveil.errors import InputError, MissingBoundError, PrivacyError  # noqa: E402
from fairveil.facts import RowBlock  # noqa: E402
from fairveil.models import NetworkModel, Skeleton  # noqa: E402
from fairveil.privacy import NoiseSource, Promise  # noqa: E402
from fairveil.statement.document import PrivacyStatement  # noqa: E402

CLIP = 0.5


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    yield
    torch.set_num_threads(before)


def dense(width: int, classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, 7), nn.Tanh(), nn.Linear(7, classes))


def table(n: int, classes: int = 3, *, seed: int = 0, weights: bool = False) -> dict[str, Any]:
    """Numbers, codes, labels, two sensitive columns."""
    rng = np.random.default_rng(seed)
    return {
        "X": rng.normal(size=(n, 4)),
        "codes": rng.integers(0, 3, (n, 1)),
        "y": rng.integers(0, classes, n),
        "sensitive": [rng.integers(0, 2, n), rng.integers(0, 3, n)],
        "sample_weight": rng.uniform(0.2, 1.0, n) if weights else None,
    }


def rows_of(columns: dict[str, Any], classes: int = 3, **more: Any) -> Rows:
    return Rows.from_arrays(
        **columns,
        code_sizes=(3,),
        classes=tuple(range(classes)),
        groups=((0, 1), (0, 1, 2)),
        sensitive_names=("sex", "age"),
        **more,
    )


def network(classes: int = 3, *, sharpness: float = 1.0, outputs: int | None = None) -> Network:
    skeleton = Skeleton.of(dense(7, outputs or classes), 7, classes)
    return Network(skeleton, skeleton.start, sharpness)


def values(
    question: Any, rows: Rows, promise: Promise | None = None, threads: int | None = None
) -> Any:
    """The total without noise, in units."""
    cap = rows.max_sample_weight if rows.weighted else None
    scale = constant_scale(question, rows.layout, promise or Promise(1.0, 1e-6), cap)
    return totals([(question, [scale])], rows, rows.blocks(), threads)[0][0] * scale.unit


def costs_of(rows: Rows, mode: str, labels: int, classes: int = 3) -> tuple[Any, Any]:
    cells = rows.cells(mode)
    return cells, np.random.default_rng(9).normal(size=(cells.count, labels, classes))


def by_hand(question: NetworkGradient, rows: Rows, columns: dict[str, Any]) -> Any:
    """The clipped sum from the definition, row by row, by autograd alone."""
    skeleton, block = question.model.skeleton, next(iter(rows.blocks()))
    skeleton.load(question.model.parameters)
    X = np.concatenate([columns["X"], np.eye(3)[columns["codes"][:, 0]]], axis=1).astype(np.float32)
    out = np.zeros(skeleton.size)
    for i in range(len(X)):
        z = skeleton.module(torch.from_numpy(X[i : i + 1])).double()
        z = z if z.shape[1] > 1 else torch.cat([torch.zeros_like(z), z], dim=1)
        y, objective = int(columns["y"][i]), torch.zeros((), dtype=torch.float64)
        if question.loss == "log":
            objective = objective - torch.log_softmax(z, dim=1)[0, y] * question.loss_weight
        if question.cell_costs is not None:
            for cell in block.cells(question.cells)[:, i]:
                costs = question.cell_costs[cell, y if question.cell_costs.shape[1] > 1 else 0]
                objective = (
                    objective
                    + (
                        torch.tensor(costs) * torch.softmax(question.model.sharpness * z, dim=1)[0]
                    ).sum()
                )
        found = torch.autograd.grad(objective, list(skeleton.module.parameters()))
        gradient = np.concatenate([g.numpy().ravel() for g in found]).astype(np.float64)
        norm = np.linalg.norm(gradient)
        weight = 1.0 if columns["sample_weight"] is None else columns["sample_weight"][i]
        out += weight * gradient * min(1.0, (question.clip or math.inf) / norm)
    return out


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("mode", "labels"), [("product", 1), ("product", 0), ("marginal", 0)])
@pytest.mark.parametrize("weights", [False, True])
def test_gradients_are_those_of_the_definition(
    classes: int, mode: str, labels: int, weights: bool
) -> None:
    """Guarantee 2: one number a row, loss and costs of all its cells, clipped as a whole."""
    columns = table(40, classes, weights=weights)
    rows = rows_of(columns, classes)
    cells, costs = costs_of(rows, mode, labels or classes, classes)
    model = network(classes, sharpness=2.0, outputs=1 if labels == 1 and classes == 2 else None)
    for loss in ("log", "none"):
        asked = NetworkGradient(model, CLIP, cells, costs, loss=loss, loss_weight=0.7)
        right = by_hand(asked, rows, columns)
        assert np.linalg.norm(values(asked, rows) - right) <= 1e-4 * np.linalg.norm(right)
    free = NetworkGradient(model, None, cells, costs, loss_weight=0.7)
    right = by_hand(free, rows, columns)
    assert np.linalg.norm(
        values(free, rows, Promise(math.inf, 1e-6)) - right
    ) <= 1e-5 * np.linalg.norm(right)


def test_a_linear_module_is_the_linear_question() -> None:
    """The same costs, cells and clip mean what they mean for `GradientSum` and
    `PredictionHistogram`."""
    columns = table(60, 3)
    columns["X"] = columns["X"].astype(np.float32).astype(np.float64)
    rows = rows_of(columns)
    cells, costs = costs_of(rows, "product", 3)
    skeleton = Skeleton.of(nn.Linear(7, 3), 7, 3)
    model, W = Network(skeleton, skeleton.start, 1.5), skeleton.start
    linear = Linear(np.concatenate([W[21:, np.newaxis], W[:21].reshape(3, 7)], axis=1), 1.5)
    theirs = values(GradientSum(linear, CLIP, cells, costs), rows)
    theirs = np.concatenate([theirs[:, 1:].ravel(), theirs[:, 0]])
    assert np.linalg.norm(
        values(NetworkGradient(model, CLIP, cells, costs), rows) - theirs
    ) <= 1e-4 * np.linalg.norm(theirs)
    for decisions, by_label in itertools.product(("hard", "soft"), (False, True)):
        one = values(NetworkHistogram(model, cells, decisions, by_label), rows)
        other = values(PredictionHistogram(linear, cells, decisions, by_label), rows)
        assert np.abs(one - other).max() <= 1e-4


@pytest.mark.parametrize(("classes", "outputs"), [(2, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_histograms_are_the_models_predictions(classes: int, outputs: int, mode: str) -> None:
    columns = table(50, classes, weights=True)
    rows, model = rows_of(columns, classes), network(classes, outputs=outputs)
    cells, block = rows.cells(mode), next(iter(rows.blocks()))
    made = NetworkModel(
        model.skeleton, model.parameters, classes=tuple(range(classes)), layout=rows.layout
    )
    for decisions, by_label in itertools.product(("hard", "soft"), (False, True)):
        given = RowBlock(block.numbers, block.codes)
        law = made.decision_proba(given) if decisions == "hard" else made.predict_proba(given)
        law = law[:, 1:] if classes == 2 else law
        right = np.zeros((cells.count, classes if by_label else 1, law.shape[1]))
        for i, line in itertools.product(range(50), block.cells(cells)):
            right[line[i], columns["y"][i] if by_label else 0] += (
                columns["sample_weight"][i] * law[i]
            )
        asked = NetworkHistogram(model, cells, decisions, by_label)
        found = values(asked, rows)
        assert (
            found.shape
            == asked.shape(rows.layout)
            == ((cells.count, classes) if by_label else (cells.count,)) + law.shape[1:]
        )
        assert np.abs(found.reshape(right.shape) - right).max() < 1e-5


PROMISES = {
    "add-remove": Promise(1.0, 1e-6),
    "replace-one": Promise(1.0, 1e-6, neighbours="replace-one"),
    "sensitive features": Promise(1.0, 1e-6, protects="sensitive_features"),
}


def neighbours(columns: dict[str, Any], relation: str) -> Iterator[dict[str, Any]]:
    """Every row removed, or replaced by extreme rows of every label, or with every other list of
    sensitive values."""
    n = len(columns["y"])
    for i in range(n):
        if relation == "add-remove":
            keep = np.arange(n) != i
            yield {
                k: [v[keep] for v in part]
                if k == "sensitive"
                else None
                if part is None
                else part[keep]
                for k, part in columns.items()
            }
            continue
        groups = itertools.product(range(2), range(3))
        changes = (
            [(None, None, g) for g in groups]
            if relation != "replace-one"
            else [(s, y, (0, 2)) for s in (-30.0, 30.0) for y in range(3)]
        )
        for size, label, group in changes:
            other = {
                k: [v.copy() for v in p] if k == "sensitive" else None if p is None else p.copy()
                for k, p in columns.items()
            }
            for k in range(2):
                other["sensitive"][k][i] = group[k]
            if size is not None:
                other["X"][i], other["y"][i] = size * np.sign(columns["X"][i]), label
            yield other


@pytest.mark.parametrize("relation", PROMISES)
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_no_neighbour_moves_a_total_further_than_the_bound(relation: str, mode: str) -> None:
    """Guarantee 1, and that the bound is not idle: some neighbour comes within a factor of 1.5."""
    columns = table(8)
    rows, model, promise = rows_of(columns), network(), PROMISES[relation]
    cells, _ = costs_of(rows, mode, 1)
    apart = (
        40.0
        * np.eye(3)[np.arange(cells.count) % 3][:, np.newaxis]
        * np.where(np.arange(cells.count) % 2, 1.0, -1.0)[:, None, None]
    )
    closest: dict[str, float] = {}
    for name, asked in {
        "gradient": NetworkGradient(model, CLIP, cells, apart, loss="log"),
        "costs alone": NetworkGradient(model, CLIP, cells, apart, loss="none"),
        "hard": NetworkHistogram(model, cells, by_label=True),
        "soft": NetworkHistogram(model, cells, "soft"),
    }.items():
        bound = constant_scale(asked, rows.layout, promise, None).bound.sensitivity(
            promise.neighbours
        )
        before = values(asked, rows, promise)
        for other in neighbours(columns, relation):
            moved = float(np.linalg.norm(values(asked, rows_of(other), promise) - before))
            assert moved <= bound
            closest[name] = max(closest.get(name, 0.0), moved / bound)
    assert min(closest["gradient"], closest["costs alone"], closest["hard"]) > 1 / 1.5


def test_blocks_threads_and_order_do_not_matter() -> None:
    """To the last grid step."""
    columns = table(90)
    rows, model = rows_of(columns), network()
    asked = NetworkGradient(model, CLIP, *costs_of(rows, "product", 1))
    whole = values(asked, rows)
    order = np.random.default_rng(1).permutation(90)
    mixed = {
        k: [v[order] for v in p] if k == "sensitive" else None if p is None else p[order]
        for k, p in columns.items()
    }
    assert np.array_equal(values(asked, rows_of(mixed)), whole)
    assert np.array_equal(values(asked, rows, threads=3), whole)


def test_one_pass_gives_the_bits_of_two() -> None:
    rows, model = rows_of(table(300, weights=True)), network()
    cells, costs = costs_of(rows, "product", 1)
    measurements = [
        (NetworkHistogram(model, cells, "soft", True), 1.0),
        (NetworkGradient(model, CLIP, cells, costs), 1.0),
    ]
    scaled = [(q, [q.scale(rows.layout, 1.0)]) for q, _ in measurements]
    together = Passes(scaled, rows)
    assert together._passes == [(1, 0)]
    one = together.run([q for q, _ in measurements], rows.blocks())
    for (question, scales), found in zip(scaled, one, strict=True):
        assert np.array_equal(totals([(question, scales)], rows, rows.blocks())[0], found)


def test_a_poisson_batch_is_gathered_as_its_rows() -> None:
    columns = table(200)
    rows, model = rows_of(columns), network()
    cells, costs = costs_of(rows, "product", 3)
    index = np.sort(np.random.default_rng(0).choice(200, 60, replace=False))
    for asked in (
        NetworkGradient(model, CLIP, cells, costs),
        NetworkHistogram(model, cells, "soft"),
    ):
        scale = asked.scale(rows.layout, None)
        found = totals([(asked, [scale])], rows, rows.drawn(index))[0][0] * scale.unit
        some = {
            k: [v[index] for v in p] if k == "sensitive" else None if p is None else p[index]
            for k, p in columns.items()
        }
        assert np.array_equal(found, values(asked, rows_of(some)))


class Fails(nn.Module):
    """Raises on some rows and gives NaN for others."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = dense(7, 3)

    def forward(self, x: Any) -> Any:
        if bool((x[:, 0] > 8.5).any()):
            raise ValueError(f"secret {float(x[0, 0])}")
        return self.inner(x) / torch.where(x[:, :1] < -8.5, 0.0, 1.0)


def test_rows_that_fail_contribute_nothing_and_nobody_is_told_before_the_end() -> None:
    """Guarantee 3."""
    columns = table(30)
    columns["X"][:, 0] = np.clip(columns["X"][:, 0], -2, 2)
    good = np.ones(30, bool)
    good[[3, 7, 20]] = False
    broken = {**columns, "X": columns["X"].copy()}
    broken["X"][[3, 7], 0], broken["X"][20, 0] = 9.0, -9.0
    skeleton = Skeleton.of(Fails(), 7, 3)
    model = Network(skeleton, skeleton.start)
    rows = rows_of(broken)
    cells = rows.cells()
    measurements = [(NetworkGradient(model, CLIP), 1e-3), (NetworkHistogram(model, cells), 1e-3)]
    curator = Curator(
        rows,
        Promise(1e9, 1e-6),
        plan=describe(measurements, rows.layout, Promise(1e9, 1e-6)),
        noise=NoiseSource.seeded(0),
    )
    gradient, histogram = curator.answer(measurements)
    left = rows_of(
        {
            k: [v[good] for v in p] if k == "sensitive" else None if p is None else p[good]
            for k, p in columns.items()
        }
    )
    assert np.abs(gradient - values(measurements[0][0], left)).max() < 0.01
    assert np.abs(histogram - values(measurements[1][0], left)).max() < 0.01
    with pytest.raises(PrivacyError):
        curator.trouble()
    curator.close()
    assert any("ValueError" in text for text in curator.trouble())
    assert any("NaN" in text for text in curator.trouble())


def test_the_statement_says_float32_and_user_code() -> None:
    rows, promise = rows_of(table(30)), Promise(1.0, 1e-6)
    measurements = [(NetworkHistogram(network(), rows.cells()), 10.0)]
    curator = Curator(rows, promise, plan=describe(measurements, rows.layout, promise))
    assert (
        PrivacyStatement.of_run(curator).arithmetic,
        PrivacyStatement.of_run(curator).user_code,
    ) == ("exact", "none")
    curator.answer(measurements)
    said = PrivacyStatement.of_run(curator)
    assert (said.arithmetic, said.user_code) == ("float32-by-row", "trusted")
    assert "torch" in said.summary()
    assert "two clips" in said.summary()


def test_a_run_that_goes_on_still_says_float32_and_user_code(tmp_path: Any) -> None:
    rows, promise = rows_of(table(30)), Promise(1.0, 1e-6)
    measurements, counts = (
        [(NetworkHistogram(network(), rows.cells()), 10.0)],
        [(CellCounts(rows.cells()), 10.0)],
    )
    plan = [describe(asked, rows.layout, promise) for asked in (measurements, counts)]
    curator = Curator(rows, promise, plan=plan, earlier=Journal(tmp_path / "journal"))
    curator.answer(measurements)
    curator.close()
    again = Curator(rows, promise, plan=plan, earlier=Journal(tmp_path / "journal"))
    again.answer(measurements)  # given again, by no network
    again.answer(counts)
    again.finish()
    assert (
        PrivacyStatement.of_run(again).arithmetic,
        PrivacyStatement.of_run(again).user_code,
    ) == (
        "float32-by-row",
        "trusted",
    )


def test_without_a_clip_only_what_is_free() -> None:
    """Guarantee 4."""
    rows, model = rows_of(table(30)), network()
    cells, costs = costs_of(rows, "product", 1)
    free, bound = NetworkGradient(model), NetworkGradient(model, None, cells, costs)
    for asked, promise in ((free, PROMISES["add-remove"]), (bound, PROMISES["sensitive features"])):
        with pytest.raises(MissingBoundError, match="clip"):
            describe([(asked, 1.0)], rows.layout, promise)
    for asked, promise in (
        (free, PROMISES["sensitive features"]),
        (bound, Promise(math.inf, 1e-6)),
    ):
        (answer,) = Curator(rows, promise).answer([(asked, 0.0)])
        assert np.linalg.norm(answer - by_hand(asked, rows, table(30))) <= 1e-5 * np.linalg.norm(
            answer
        )
    with pytest.raises(PrivacyError, match="multiplier"):
        describe(
            [(NetworkGradient(model, 1.0, cells, costs), 0.0)],
            rows.layout,
            PROMISES["sensitive features"],
        )


def test_rounds_share_their_price_and_differ_in_parameters() -> None:
    rows, model, promise = rows_of(table(60)), network(), Promise(50.0, 1e-6)
    cells, costs = costs_of(rows, "product", 1)
    first = NetworkGradient(model, CLIP, cells, costs)
    event = describe([(first, 2.0)], rows.layout, promise, Poisson(0.5))
    curator = Curator(rows, promise, plan=[event] * 3, noise=NoiseSource.seeded(3))
    for k in range(3):
        moved = Network(model.skeleton, model.parameters + 0.1 * k)
        asked = first.at(model=moved, cell_costs=costs * k)
        assert asked.key == first.key == NetworkGradient(moved, CLIP, cells, costs).key
        curator.answer([(asked, 2.0)], Poisson(0.5))
    assert len(curator._ready) == 1
    curator.finish()
    assert list(curator.log.events) == [event] * 3
    assert Gaussian(2.0) in _leaves(event)


def _leaves(event: Any) -> Sequence[Any]:
    inner = getattr(event, "event", None)
    return [event] if inner is None else _leaves(inner)


def test_how_many_rows_there_are_refuses_no_network() -> None:
    """Totals are kept modulo 2^64, and so is the noise in them: one row more is never an error, and
    the noisy remainder moves by what the total moves by."""
    rows = rows_of(table(6))
    question = NetworkGradient(network(), CLIP)
    scale = constant_scale(question, rows.layout, Promise(1.0, 1e-6), None)
    passes = Passes([(question, [scale])], rows)
    rows._starts = [0, (1 << 25) + 1]  # as if of so many rows: the pass is laid out by public facts
    assert Passes([(question, [scale])], rows).shapes == passes.shapes
    total, noise = np.array([2**63 - 5], np.int64), np.array([12345], np.int64)
    one_row = np.array([2**36], np.int64)
    assert ((total + one_row + noise) - (total + noise) == one_row).all()


def test_shapes_that_do_not_fit_are_refused() -> None:
    rows, model = rows_of(table(20)), network()
    cells = rows.cells()
    for asked, match in (
        (NetworkGradient(model, 1.0, cells, np.zeros((2, 1, 3))), "cell_costs"),
        (NetworkGradient(network(2), 1.0), "classes of the network"),
        (NetworkHistogram(Network(*_of(5, 3)), cells), "width of the network"),
    ):
        with pytest.raises(InputError, match=match):
            asked.shape(rows.layout)
    with pytest.raises(InputError, match="parameters"):
        Network(model.skeleton, model.parameters[1:])
    with pytest.raises(InputError, match="new question"):
        NetworkGradient(model, 1.0).at(model=network())
    with pytest.raises(InputError, match="cell_costs"):
        NetworkGradient(model, 1.0, cells, np.zeros((6, 1, 3))).at(
            model=model, cell_costs=np.zeros((6, 3, 3))
        )


def _of(width: int, classes: int) -> tuple[Skeleton, Any]:
    skeleton = Skeleton.of(dense(width, classes), width, classes)
    return skeleton, skeleton.start


def test_sparse_and_streamed_rows_are_the_same() -> None:
    import scipy.sparse

    columns = table(50)
    columns["X"][columns["X"] < 0.3] = 0.0
    model = network()
    rows = rows_of(columns)
    asked = NetworkGradient(model, CLIP, *costs_of(rows, "product", 1))
    sparse = rows_of({**columns, "X": scipy.sparse.csr_array(columns["X"])})
    assert np.array_equal(values(asked, sparse), values(asked, rows))


@pytest.mark.parametrize("clip", [0.5, 0.75])
def test_the_bound_has_the_rounding_of_every_number(clip: float) -> None:
    """Guarantee 1: rows of one weight reach the clip and nearly all that rounding adds, and never
    more; of many weights half a step of each, for each relation and largest weight."""
    skeleton = Skeleton.of(nn.Linear(1, 1, bias=False), 1, 2)
    model = Network(skeleton, np.array([0.001]))
    X = np.random.default_rng(4).uniform(1.0, 2.0, (300, 1)).astype(np.float32) * 1_000
    rows = Rows.from_arrays(X, np.zeros(300, int), classes=(0, 1))
    scale = NetworkGradient(model, clip).scale(rows.layout, None)
    wanted = Wanted(clip, scale.unit, True, 1.0, 1.0, np.zeros(1, np.int64), None, None)
    ready = engine(skeleton)
    found = [ready.run(model.parameters, X[i : i + 1], wanted, Troubles())[1] for i in range(300)]
    norms = [abs(int(one[0])) * scale.unit for one in found]  # type: ignore[index]
    added = rounding_of(skeleton) * scale.unit
    assert clip + 0.5 * added < max(norms) <= scale.bound.norm
    many = Skeleton.of(nn.Linear(5, 3), 5, 3)
    layout = Rows.from_arrays(np.zeros((3, 5)), np.arange(3), classes=(0, 1, 2)).layout
    for cap in (None, 2.0):
        scale = NetworkGradient(Network(many, many.start), clip).scale(layout, cap)
        slack = scale.unit * rounding_of(many)
        assert scale.bound.norm >= clip * (cap or 1.0) + slack
        assert scale.bound.norm == pytest.approx(clip * (cap or 1.0) * (1 + 2.0**-28) + slack)
        assert scale.bound.diameter >= 2 * scale.bound.norm * (1 - 2.0**-50)
        assert scale.slack >= 2 * slack / scale.bound.norm * (1 - 2.0**-50)
