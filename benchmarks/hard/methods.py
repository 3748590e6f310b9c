"""The methods: each fits coded rows and gives the distribution of decisions for other rows, (rows,
classes).

Nothing is drawn: a randomised classifier gives its probabilities, one without chance gives zeros
and ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.errors import FairveilWarning
from fairveil.facts import Cells
from fairveil.models import MixtureModel
from frontier.methods import dense
from frontier.splits import Coded

from . import fairlearn_fits
from .rival import Rival, binned

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Wanted:
    """One fit. `notion` and `asked`: None where nothing is asked for; of `fermi`, `asked` is a
    strength."""

    method: str
    notion: str | None
    constraint: str | None
    asked: float | None
    epsilon: float
    protects: str
    seed: int
    knobs: tuple[tuple[str, Any], ...] = ()


class ImpossibleError(Exception):
    """The method refuses these rows."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model. `said`: what the fit itself released and warned of."""

    law: Callable[[Coded], Floats]
    said: dict[str, Any]


def descent(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`RateConstrainedClassifier`."""
    return _ours(fv.RateConstrainedClassifier(wanted.constraint, **_shared(wanted, train)), train)


def unconstrained(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """The same without a constraint."""
    return _ours(fv.RateConstrainedClassifier(None, **_shared(wanted, train)), train)


def additive(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """The descent, of an additive model."""
    return _ours(
        fv.RateConstrainedClassifier(wanted.constraint, model="additive", **_shared(wanted, train)),
        train,
    )


def network(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """The descent, of a network with 16 hidden units, on one thread."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(wanted.seed)
    classes = len(train.layout.classes or ())
    layers = (
        torch.nn.Linear(train.layout.width, 16),
        torch.nn.Linear(16, max(1, classes - (classes == 2))),
    )
    module = torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])
    shared = _shared(wanted, train)
    return _ours(fv.RateConstrainedClassifier(wanted.constraint, model=module, **shared), train)


def additive_game(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """The game, of additive rules."""
    return _ours(
        fv.OracleGameClassifier(wanted.constraint, model="additive", **_shared(wanted, train)),
        train,
    )


def game(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`OracleGameClassifier`."""
    return _ours(fv.OracleGameClassifier(wanted.constraint, **_shared(wanted, train)), train)


def group(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`GroupObjectiveClassifier`, of the error."""
    return _ours(
        fv.GroupObjectiveClassifier("error", wanted.constraint, **_shared(wanted, train)), train
    )


def fermi(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`FermiClassifier`: asked for a strength of its penalty."""
    assert wanted.notion is not None
    kinds = {"demographic_parity": fv.DemographicParity, "equalized_odds": fv.EqualizedOdds}
    notion = kinds[wanted.notion](None, groups=cells.mode)
    return _ours(
        fv.FermiClassifier(notion, strength=wanted.asked or 0.0, **_shared(wanted, train)), train
    )


def post(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`OddsPostProcessor`, which reads the group at prediction, with its own private base."""
    return _ours(fv.OddsPostProcessor(None, wanted.constraint, **_shared(wanted, train)), train)


class _Given:
    """Probabilities made elsewhere, in the place of features."""

    def __init__(self, classes: int) -> None:
        self.classes_ = np.arange(classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Floats:
        """The rows themselves."""
        return np.asarray(X)

    def predict(self, X: Any) -> Any:
        """The largest of each row."""
        return self.classes_[np.argmax(X, axis=1)]


def parity(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """`ParityPostProcessor`, after DP2DP: a coin for each row says whether the base or the offsets
    may read it, so each part has the whole of epsilon. Seven in ten are for the base."""
    if wanted.notion != "demographic_parity" or cells.mode != "product":
        raise ImpossibleError("demographic parity only, of product groups")
    coins = np.random.default_rng((wanted.seed, 1)).random(train.block.rows) < 0.7
    first, second = train[np.flatnonzero(coins)], train[np.flatnonzero(~coins)]
    shared = {**_shared(wanted, train), "random_state": wanted.seed}
    base = fv.RateConstrainedClassifier(None, **shared).fit(first)
    promised = {name: shared[name] for name in ("epsilon", "delta", "protects")}
    assert second.block.sensitive is not None
    groups = cells.ids(second.block.sensitive)[0]
    declared = Cells((tuple(range(cells.count)),), names=("group",))
    model = fv.ParityPostProcessor(
        _Given(len(base.classes_)),
        wanted.asked or 0.0,
        **promised,
        groups=declared,
        random_state=wanted.seed + 1,
        public_base=promised["protects"] == "records",
    ).fit(_both(base.predict_proba(second)), sensitive_features={"group": groups})

    def law(rows: Coded) -> Floats:
        assert rows.block.sensitive is not None
        ids = cells.ids(rows.block.sensitive)[0]
        return np.asarray(
            model.predict_proba(_both(base.predict_proba(rows)), sensitive_features={"group": ids})
        )

    spent = max(base.privacy_.epsilon, model.privacy_.epsilon)
    return Fitted(law, {"spent": _plain(spent), "reported": model.gap_})


def _both(law: Floats) -> Floats:
    """Shares of all classes, to the last bit."""
    return np.asarray(law / law.sum(axis=1, keepdims=True))


def once(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """Groups released once in public clusters, then linear models of the memberships; of sensitive
    features alone."""
    if wanted.protects != "sensitive_features" or cells.mode != "product":
        raise ImpossibleError(
            "release_groups is of sensitive features alone, and of product groups"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairveilWarning)
        released = fv.release_groups(train, epsilon=wanted.epsilon, random_state=wanted.seed)
        model = released.fit(train, None, wanted.constraint)
    spent, reported = _plain(released.privacy.epsilon), max(line.value for line in model.report_)
    return Fitted(
        lambda rows: np.asarray(model.predict_proba(rows)), {"spent": spent, "reported": reported}
    )


def reduction(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """fairlearn's ExponentiatedGradient, not private."""
    return Fitted(
        fairlearn_fits.reduction(
            _numeric(train, cells), wanted.notion, wanted.asked, _numeric_of(train, cells)
        ),
        {},
    )


def threshold(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """fairlearn's ThresholdOptimizer, not private, which reads the group at prediction and takes no
    bound."""
    try:
        law = fairlearn_fits.threshold(
            _numeric(train, cells), wanted.notion, _numeric_of(train, cells)
        )
    except ValueError as refused:  # a group whose labels are all alike
        raise ImpossibleError(str(refused)) from refused
    return Fitted(law, {})


def aim(train: Coded, cells: Cells, wanted: Wanted, rival: Rival | None) -> Fitted:
    """The same reduction on synthetic rows by AIM, which protects whole records."""
    if rival is None:
        raise SystemExit("method aim needs --aim PYTHON: see benchmarks/hard/rival_aim.py")
    made, said = rival.rows(train, wanted.epsilon, wanted.seed)
    law = fairlearn_fits.reduction(
        _numeric(made, cells), wanted.notion, wanted.asked, _numeric_of(made, cells)
    )
    return Fitted(lambda rows: law(binned(rows)), said)  # what is predicted for is in the same bins


METHODS: dict[str, Callable[[Coded, Cells, Wanted, Rival | None], Fitted]] = {
    "unconstrained": unconstrained,
    "descent": descent,
    "additive": additive,
    "network": network,
    "game": game,
    "additive-game": additive_game,
    "group": group,
    "post": post,
    "parity": parity,
    "once": once,
    "fermi": fermi,
    "fairlearn": reduction,
    "fairlearn-threshold": threshold,
    "aim": aim,
}
READ_GROUP = ("post", "parity", "fairlearn-threshold")
NOT_PRIVATE = ("fairlearn", "fairlearn-threshold")
TWO_CLASSES = ("fairlearn", "fairlearn-threshold", "aim")
STRENGTHS = (1.0, 3.0, 10.0, 30.0)
"""What `fermi` is asked for."""


def _shared(wanted: Wanted, train: Coded) -> dict[str, Any]:
    return {
        "epsilon": wanted.epsilon,
        "delta": 1.0 / train.block.rows**2,
        "protects": wanted.protects,
        "random_state": wanted.seed,
        **dict(wanted.knobs),
    }


def _ours(model: Any, train: Coded) -> Fitted:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(train)
    report = getattr(model, "constraint_report_", None)
    said: dict[str, Any] = {
        "spent": _plain(model.privacy_.epsilon),
        "warned": sorted(
            {
                type(one.message).__name__
                for one in heard
                if isinstance(one.message, FairveilWarning)
            }
        ),
    }
    if report is not None and report.lines:
        said |= {"reported": max(line.value for line in report.lines), "verdict": report.verdict}
    return Fitted(lambda rows: _law(model, rows), said)


def _law(model: Any, rows: Coded) -> Floats:
    if isinstance(model, fv.OddsPostProcessor):
        return np.asarray(model.predict_proba(rows))
    certain = isinstance(
        model, fv.RateConstrainedClassifier | fv.FermiClassifier
    ) and not isinstance(model.model_, MixtureModel)
    if certain:
        return np.asarray(model.predict(rows)[:, np.newaxis] == model.classes_, np.float64)
    return np.asarray(model.predict_proba(rows))


def _numeric(rows: Coded, cells: Cells, like: Coded | None = None) -> fairlearn_fits.Numeric:
    """One-hot rows with numbers scaled by the training rows, and the product of the sensitive
    columns."""
    like = rows if like is None else like
    mean, deviation = like.block.numbers.mean(axis=1), like.block.numbers.std(axis=1)
    deviation[deviation == 0] = 1.0
    X = dense(rows)
    wide = len(mean)
    X[:, :wide] = (X[:, :wide] - mean) / deviation
    assert rows.block.sensitive is not None
    (groups,) = Cells(cells.columns).ids(rows.block.sensitive)
    return fairlearn_fits.Numeric(X, np.asarray(rows.block.labels), groups)


def _numeric_of(train: Coded, cells: Cells) -> Callable[[Coded], fairlearn_fits.Numeric]:
    return lambda rows: _numeric(rows, cells, train)


def _plain(value: float) -> Any:
    return value if math.isfinite(value) else str(value)
