"""Released groups in one file: what it holds, who signed it, what of it is recomputed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import FairveilError, InputError, SignatureError
from fairveil.estimators.counted import checksum
from fairveil.statement import signing

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=600)
X = RNG.normal(size=(600, 2)) + 0.8 * A[:, None]
Y = (X.sum(axis=1) + RNG.normal(size=600) > 1).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, another one, and a signed release of two and of three groups."""
    out = tmp_path_factory.mktemp("holder")
    for name in ("holder", "other"):
        signing.new_key(out / f"{name}.key")
    for groups, name in ((A, "two"), (RNG.integers(3, size=600), "three")):
        released = fv.release_groups(X, Y, sensitive_features=groups, epsilon=1.0)
        released.write(out / f"{name}.json", key=out / "holder.key", note="for 2026")
    return out


@pytest.mark.parametrize("name", ["two", "three"])
def test_what_was_written_is_read_and_fitted_to(name: str, folder: Path) -> None:
    given = fv.estimators.ReleasedGroups.load(folder / f"{name}.json", key=folder / "holder.pub")
    other = fv.estimators.ReleasedGroups.load(given.write(folder / f"{name}-again.json"))
    assert given.counts.raw.tobytes() == other.counts.raw.tobytes()
    assert given.privacy == other.privacy
    laws = []
    for one in (given, other):
        clf = fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features")
        laws.append(clf.fit(X, Y, sensitive_features=one).predict_proba(X))
    assert (laws[0] == laws[1]).all()
    again, found = fv.estimators.ReleasedGroups.examine((folder / f"{name}.json").read_text())
    assert found == []
    assert again.groups == given.groups


def leaves(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every value of a document; of long lists of the first and the last."""
    if isinstance(values, dict) and values:
        return [one for name, value in values.items() for one in leaves(value, (*path, name))]
    if isinstance(values, list) and values:
        places = sorted({0, len(values) - 1})
        return [one for at in places for one in leaves(values[at], (*path, at))]
    return [path]


def changed(values: Any, path: tuple[Any, ...]) -> Any:
    out = json.loads(json.dumps(values))
    at = out
    for step in path[:-1]:
        at = at[step]
    old = at[path[-1]]
    at[path[-1]] = (
        (old + 1)
        if isinstance(old, int | float) and not isinstance(old, bool)
        else not old
        if old in (True, False)
        else f"{old}x"
    )
    return out


def test_guarantee_1_no_field_of_a_signed_file_can_be_changed(folder: Path) -> None:
    text = (folder / "two.json").read_text()
    content, public = json.loads(text), signing.public_key(folder / "holder.pub")
    fv.estimators.ReleasedGroups.require_signed(
        json.dumps(content, indent=3, sort_keys=True), public, "file"
    )
    places = leaves(content)
    assert len(places) > 100
    for path in places:
        broken = changed(content, path)
        with pytest.raises(FairveilError):
            fv.estimators.ReleasedGroups.require_signed(json.dumps(broken), public, "file")
        if path[0] == "counted":  # also where the checksum, which anybody can make, is made anew
            broken["checksum"] = checksum(broken)
            with pytest.raises(FairveilError):
                fv.estimators.ReleasedGroups.require_signed(json.dumps(broken), public, "file")


def test_guarantee_1_another_key_another_statement_and_no_signature_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(SignatureError, match="signature by"):
        fv.estimators.ReleasedGroups.load(folder / "two.json", key=folder / "other.pub")
    two, three = (json.loads((folder / f"{name}.json").read_text()) for name in ("two", "three"))
    mixed = {**two, "counted": three["counted"], "checksum": three["checksum"]}
    (tmp_path / "mixed.json").write_text(json.dumps(mixed))
    with pytest.raises(SignatureError, match="the signed counts"):
        fv.estimators.ReleasedGroups.load(tmp_path / "mixed.json", key=folder / "holder.pub")
    fv.estimators.ReleasedGroups.load(folder / "two.json").write(tmp_path / "bare.json")
    with pytest.raises(SignatureError, match="a signature"):
        fv.estimators.ReleasedGroups.load(tmp_path / "bare.json", key=folder / "holder.pub")
    with pytest.raises(InputError, match="a file that is not there yet"):
        fv.estimators.ReleasedGroups.load(folder / "two.json").write(tmp_path / "bare.json")


def scale(content: Any) -> None:
    content["counted"]["counts"]["noise"]["scale"] *= 0.5


def kind(content: Any) -> None:
    content["counted"]["counts"]["noise"] |= {"kind": "none", "scale": 0.0}


def total(content: Any) -> None:
    content["counted"]["counts"]["raw"]["values"][0] += 1


@pytest.mark.parametrize(
    ("change", "words"),
    [(scale, "the noise is said"), (kind, "the noise is said"), (total, "do not add up")],
)
def test_guarantee_2_what_does_not_follow_is_found(
    change: Callable[[Any], None], words: str, folder: Path
) -> None:
    content = json.loads((folder / "two.json").read_text())
    change(content)
    with pytest.raises(InputError):
        fv.estimators.ReleasedGroups.from_json(json.dumps(content))
    content["checksum"] = checksum(content)
    _, found = fv.estimators.ReleasedGroups.examine(json.dumps(content))
    assert [finding.grave for finding in found] == [True]
    assert words in found[0].sentence


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("counts", "raw", "shape"), [1, 7]),
        (("counts", "totals", "values"), [1.0]),
        (("counts", "noise", "scale"), -1.0),
        (("counts", "noise", "kind"), "gaussian"),
        (("classes",), [0, 1, 2]),
        (("clusters", "trees"), []),
    ],
)
def test_what_is_no_release_is_refused(place: tuple[str, ...], value: Any, folder: Path) -> None:
    content = json.loads((folder / "two.json").read_text())
    at = content["counted"]
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    content["checksum"] = checksum(content)
    with pytest.raises(InputError):
        fv.estimators.ReleasedGroups.examine(json.dumps(content))
    with pytest.raises(InputError, match="version"):
        fv.estimators.ReleasedGroups.examine(json.dumps(content | {"version": 9}))
