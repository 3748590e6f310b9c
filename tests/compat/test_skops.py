"""Estimators in skops files: the same bits after a round trip, one type to trust, and files of
others refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import fairveil as fv
from fairveil.compat import skops_files
from fairveil.errors import FairveilError, InputError
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
    "rate": lambda: fitted(fv.RateConstrainedClassifier(epsilon=5.0, random_state=0)),
    "game": lambda: fitted(
        made(fv.OracleGameClassifier, "demographic_parity:0.1", rounds=10, **SEEN)
    ),
    "post": lambda: fitted(made(fv.OddsPostProcessor, None, "equalized_odds:0.1", **SEEN)),
}
pytestmark = pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")


@pytest.mark.parametrize("name", MAKERS)
def test_guarantees_1_and_2_what_was_read_predicts_the_same_bits_and_one_type_is_trusted(
    name: str, tmp_path: Path
) -> None:
    clf = MAKERS[name]()
    X, _, sex = people(50)
    options = {"sensitive_features": sex} if name == "post" else {}
    path = skops_files.dump(clf, tmp_path / "model.skops")
    assert skops.get_untrusted_types(file=path) == [skops_files.NAME]
    again = skops_files.load(path)
    assert type(again) is type(clf)
    assert np.array_equal(again.predict_proba(X, **options), clf.predict_proba(X, **options))
    assert again.privacy_ == clf.privacy_


def test_a_pipeline_that_ends_in_one_comes_back_whole() -> None:
    X, y, sex = people()
    pipe = make_pipeline(MinMaxScaler(), fv.RateConstrainedClassifier(epsilon=5.0, random_state=0))
    pipe.fit(X, y, rateconstrainedclassifier__sensitive_features=sex)
    last = pipe[-1]
    again = skops_files.loads(skops_files.dumps(pipe))
    assert np.array_equal(again.predict_proba(X), pipe.predict_proba(X))
    assert pipe[-1] is last
    assert isinstance(again[-1], fv.RateConstrainedClassifier)


def test_guarantee_2_types_of_others_are_not_trusted_by_us() -> None:
    data = skops.dumps(make_pipeline(StandardScaler(), Stranger()))
    with pytest.raises(InputError, match="trusted"):
        skops_files.loads(data)
    with pytest.raises(InputError, match="ends in one"):
        skops_files.loads(data, trusted=[f"{__name__}.Stranger"])


class Stranger(StandardScaler):
    """Somebody's class."""


def test_guarantee_3_a_changed_byte_is_an_error() -> None:
    clf = MAKERS["rate"]()
    files = skops_files.packed(clf)
    assert np.array_equal(skops_files.unpacked(files).coef_, clf.coef_)
    for name in set(files) - {"estimator.json"}:  # which has the checksums of the others
        for changed in (b"", files[name][:-2], files[name].replace(b"1", b"2", 1)):
            if changed != files[name]:
                with pytest.raises(FairveilError):
                    skops_files.unpacked({**files, name: changed})


@pytest.mark.parametrize(
    "files",
    [
        None,
        {},
        {"../model.json": b""},
        {"/tmp/x": b""},
        {"model.json": "text"},
        {3: b""},
        {f"f{n}": b"" for n in range(99)},
    ],
)
def test_guarantee_3_files_of_others_are_refused(files: Any, tmp_path: Path) -> None:
    with pytest.raises(FairveilError):
        skops_files.unpacked(files)


def test_a_file_holds_no_pickle(tmp_path: Path) -> None:
    path = skops_files.dump(MAKERS["post"](), tmp_path / "model.skops")
    with zipfile.ZipFile(path) as whole:
        assert "schema.json" in whole.namelist()
        assert not any(whole.read(name)[:2] == b"\x80\x04" for name in whole.namelist())


@pytest.mark.parametrize("data", [b"", b"no archive", "text", None])
def test_what_is_no_skops_file_is_refused(data: Any) -> None:
    with pytest.raises(InputError):
        skops_files.loads(data)


def test_what_cannot_be_written_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    for bad in (
        fv.RateConstrainedClassifier(),
        MinMaxScaler(),
        make_pipeline(MinMaxScaler()),
        None,
    ):
        with pytest.raises((FairveilError, ValueError)):
            skops_files.dump(bad, path)
    assert not list(tmp_path.iterdir())
    path.write_text("mine")
    with pytest.raises(InputError, match="overwrite"):
        skops_files.dump(MAKERS["rate"](), path)
    assert path.read_text() == "mine"
    with pytest.raises(InputError, match="list"):
        skops_files.loads(b"x", trusted="numpy.x")
    assert (
        io.BytesIO(skops_files.dump(MAKERS["rate"](), path, overwrite=True).read_bytes()).read(2)
        == b"PK"
    )
