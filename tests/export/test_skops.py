"""Estimators in skops files: the same bits after a round trip, one type to trust, and files of
others refused."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import fairveil as fv
import ways
from fairveil.errors import FairveilError, InputError
from fairveil.export import skops_files
from knobs import made

skops = pytest.importorskip(
    "skops.io", reason="skops is not installed: pip install 'fairveil[skops]'"
)
COLUMNS = ("a", "b")


def people(rows: int = 300) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 2))
    return X, np.where(X[:, 0] > 0, "yes", "no"), rng.choice(["f", "m"], rows)


def fitted(clf: Any) -> Any:
    X, y, sex = people()
    return clf.fit(X, y, sensitive_features=sex)


SEEN: dict[str, Any] = {"protects": "sensitive_features", "epsilon": 5.0, "random_state": 0}
MAKERS: dict[str, Any] = {
    "rate": lambda: fitted(fv.FairClassifier(epsilon=5.0, random_state=0)),
    "game": lambda: fitted(made(ways.game, "demographic_parity:0.1", rounds=10, **SEEN)),
    "post": lambda: fitted(made(fv.FairPostProcessor, None, "equalized_odds:0.1", **SEEN)),
}
pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")


def test_guarantees_1_and_2_what_was_read_predicts_the_same_bits_and_one_type_is_trusted() -> None:
    X, _, sex = people(50)
    for name in MAKERS:
        clf = MAKERS[name]()
        options = {"sensitive_features": sex} if name == "post" else {}
        data = skops_files.dumps(clf)
        assert skops.get_untrusted_types(data=data) == [skops_files.NAME]
        with zipfile.ZipFile(io.BytesIO(data)) as whole:  # no pickle
            assert not any(whole.read(one)[:2] == b"\x80\x04" for one in whole.namelist())
        again = skops_files.loads(data)
        assert type(again) is type(clf)
        assert np.array_equal(again.predict_proba(X, **options), clf.predict_proba(X, **options))
        assert again.privacy_ == clf.privacy_


def test_a_pipeline_that_ends_in_one_comes_back_whole() -> None:
    X, y, sex = people()
    pipe = make_pipeline(MinMaxScaler(), fv.FairClassifier(epsilon=5.0, random_state=0))
    pipe.fit(X, y, fairclassifier__sensitive_features=sex)
    last = pipe[-1]
    again = skops_files.loads(skops_files.dumps(pipe))
    assert np.array_equal(again.predict_proba(X), pipe.predict_proba(X))
    assert pipe[-1] is last
    assert isinstance(again[-1], fv.FairClassifier)


class Stranger(StandardScaler):
    """Somebody's class."""


def test_guarantee_2_types_of_others_are_not_trusted_by_us() -> None:
    data = skops.dumps(make_pipeline(StandardScaler(), Stranger()))
    with pytest.raises(InputError, match="trusted"):
        skops_files.loads(data)
    with pytest.raises(InputError, match="ends in one"):
        skops_files.loads(data, trusted=[f"{__name__}.Stranger"])
    with pytest.raises(InputError, match="list"):
        skops_files.loads(data, trusted="numpy.x")


def test_guarantee_3_damaged_files_and_those_of_others_are_refused() -> None:
    files = skops_files.packed(MAKERS["rate"]())
    for name in set(files) - {"estimator.json"}:  # which has the checksums of the others
        for changed in (b"", files[name][:-2], files[name].replace(b"1", b"2", 1)):
            if changed != files[name]:
                with pytest.raises(FairveilError):
                    skops_files.unpacked({**files, name: changed})
    text: Any = {"model.json": "text"}
    many = {f"f{n}": b"" for n in range(99)}
    for other in (None, {}, {"../model.json": b""}, {"/tmp/x": b""}, text, {3: b""}, many):
        with pytest.raises(FairveilError):
            skops_files.unpacked(other)
    for data in (b"", b"no archive"):
        with pytest.raises(InputError):
            skops_files.loads(data)
    for bad in (fv.FairClassifier(), MinMaxScaler(), make_pipeline(MinMaxScaler()), 3):
        with pytest.raises((FairveilError, ValueError)):
            skops_files.dumps(bad)
