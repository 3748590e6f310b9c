"""Estimators whose parts contradict each other are refused when they are read; files are looked at
before they are read."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
import ways
from fairveil.errors import ChecksumError, FairveilError, InputError
from knobs import made

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """The files of three small estimators."""
    draw = np.random.default_rng(0)
    n = 200
    X, A = draw.uniform(-1, 1, (n, 2)), draw.integers(0, 2, n)
    y = (X[:, 0] > 0).astype(int)
    common: dict[str, Any] = {"random_state": 0, "epsilon": 5.0, "delta": 1e-5, "public_rows": n}
    table = {"a": X[:, 0], "b": X[:, 1], "w": np.array(["u", "v"], object)[A]}
    parity = fv.DemographicParity(0.9)
    fits = {
        "table": made(fv.FairClassifier, parity, solver=fv.PrimalDual(rounds=2), **common).fit(
            table, y, sensitive_features="w"
        ),
        "odds": made(fv.FairPostProcessor, constraints=parity, **common).fit(
            X, y, sensitive_features=A
        ),
        "game": made(ways.game, constraints=parity, rounds=2, **common).fit(
            X, y, sensitive_features=A
        ),
    }
    out = {}
    for name, one in fits.items():
        path = fv.save(one, tmp_path_factory.mktemp("saved") / name)
        out[name] = {file.name: file.read_bytes() for file in path.iterdir()}
    return out


def written(
    files: dict[str, bytes],
    folder: Path,
    change: Change | None = None,
    name: str = "estimator.json",
) -> Path:
    """A folder of these files, one of them changed, with checksums that fit."""
    files = dict(files)
    if change is not None:
        content = json.loads(files[name])
        change(content)
        files[name] = json.dumps(content).encode()
    if name != "estimator.json":
        content = json.loads(files["estimator.json"])
        content["sha256"][name] = hashlib.sha256(files[name]).hexdigest()
        files["estimator.json"] = json.dumps(content).encode()
    folder.mkdir()
    for file, raw in files.items():
        (folder / file).write_bytes(raw)
    return folder


def outcome(**values: Any) -> Change:
    return lambda d: d["outcome"].update(values)


CONTRADICTIONS: list[tuple[str, Change, str]] = [
    ("table", lambda d: d.update(features=5), "'columns'|columns"),
    ("table", lambda d: d.update(features=10**15), "features"),
    ("table", lambda d: d.update(features=3.7), "features: expected a whole number"),
    (
        "table",
        lambda d: d.update(features="3"),
        "features: expected a whole number from 0 to .*, got '3'",
    ),
    ("table", lambda d: d.update(features=True), "features"),
    ("table", lambda d: d.update(features=-1), "features"),
    ("table", lambda d: d.update(columns=["a", "b"]), "columns: expected 3 names"),
    ("table", lambda d: d.update(columns="abw"), "columns: expected a list of texts"),
    (
        "table",
        lambda d: d["coding"]["features"][0].update(name="z"),
        r"coding\.columns: expected the names of all features",
    ),
    ("table", lambda d: d["coding"]["columns"].pop(), "coding|features"),
    ("table", lambda d: d["coding"]["features"].pop(), "a coding that fits the model|coding"),
    (
        "table",
        lambda d: d["coding"].update(
            standard={"type": "Standard", "means": [0.0], "deviations": [1.0]}
        ),
        "standard: expected means of 2",
    ),
    (
        "table",
        lambda d: d["coding"].update(
            standard={"type": "Standard", "means": [0.0] * 2, "deviations": [1.0, 0.0]}
        ),
        "deviations above 0",
    ),
    ("table", lambda d: d["outcome"]["names"].append("more"), r"one for each of 'names'"),
    ("table", lambda d: d["outcome"]["weights"].update(shape=[3, 1]), "weights of shape"),
    ("table", lambda d: d["outcome"]["weights"].update(shape=[3]), "weights of shape"),
    (
        "table",
        lambda d: d["outcome"]["bounds"].update(values=[]),
        r"bounds\.values: expected a list of \d+ numbers",
    ),
    ("table", lambda d: d["outcome"]["bounds"].update(shape=[2**60, 2**60]), "shape"),
    ("table", outcome(rounds="3"), "rounds: expected a whole number"),
    ("table", outcome(reason="because"), "reason: expected one of"),
    ("table", outcome(rows=["1"]), "rows: expected a number"),
    (
        "table",
        lambda d: d["cells"].update(columns=[list(range(2000))] * 3, names=["a", "b", "c"]),
        "groups",
    ),
    ("table", lambda d: d["cells"].update(columns=[[["u"], {}]]), "cells"),
    (
        "table",
        lambda d: d["parameters"].update(constraints={"type": "Notion", "value": 3}),
        "constraints",
    ),
    (
        "table",
        lambda d: d["parameters"].update(
            schema={"type": "array", "shape": [2], "values": ["a", "b"]}
        ),
        r"schema\.values\[0\]: expected a number",
    ),
    (
        "table",
        lambda d: d["parameters"].update(schema={"type": "number", "value": "five"}),
        r"schema\.value: expected a number",
    ),
    (
        "table",
        lambda d: d["parameters"].update(schema={"type": "mapping", "pairs": [["a"]]}),
        r"pairs\[0\]: expected a list of 2",
    ),
    (
        "table",
        lambda d: d["parameters"].update(schema={"a": 1, "b": 2}),
        "schema: expected a field 'type'",
    ),
    (
        "odds",
        lambda d: d.update(sensitive=["s", True]),
        "sensitive: expected a list of texts",
    ),
    (
        "odds",
        lambda d: d["released"]["raw"].update(shape=[1, 1, 1]),
        "raw.values: expected a list of 1 ",
    ),
    ("odds", lambda d: d["report"].update(lines=[["a", 1, 2]]), r"lines\[0\]: expected an object"),
    ("odds", lambda d: d["guarantee"]["bounds"].append(0.1), r"bounds, one for each of"),
    ("odds", lambda d: d.update(cells=None), "cells: expected the groups that the model reads"),
    ("odds", lambda d: d.update(base="FermiClassifier"), "a base that is a FermiClassifier"),
    ("game", lambda d: d["outcome"]["plays"].append(1), "numbers of plays"),
    ("game", lambda d: d["outcome"].update(plays=[0.5]), r"plays\[0\]: expected a whole number"),
    ("game", lambda d: d.update(named="yes"), "named: expected true or false"),
]


@pytest.mark.parametrize(("which", "change", "words"), CONTRADICTIONS)
def test_parts_that_contradict_each_other_are_refused_when_they_are_read(
    which: str, change: Change, words: str, saved: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    with pytest.raises(FairveilError) as caught:
        fv.load(written(saved[which], tmp_path / "model", change))
    assert re.search(words, str(caught.value)), caught.value
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize("which", ["table", "odds", "game"])
def test_what_was_saved_is_read(
    which: str, saved: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    fv.load(written(saved[which], tmp_path / "model", lambda content: None))


RAW: list[tuple[str, Callable[[str], str | bytes]]] = [
    ("5,000 digits", lambda text: text.replace('"features": 3', '"features": ' + "9" * 5000)),
    ("infinity", lambda text: text.replace('"features": 3', '"features": Infinity')),
    ("1e999", lambda text: text.replace('"features": 3', '"features": 1e999')),
    ("twice", lambda text: text.replace('"features": 3', '"features": 3, "features": 3')),
    (
        "deep",
        lambda text: text.replace(
            '"parameters": {', '"parameters": {"public_rows":' + "[" * 900 + "]" * 900 + ",", 1
        ),
    ),
    ("version true", lambda text: text.replace('"version": 2', '"version": true')),
    ("version 2.0", lambda text: text.replace('"version": 2', '"version": 2.0')),
    ("no text", lambda text: text.encode().replace(b"features", b"f\xff")),
]


@pytest.mark.parametrize(("kind", "change"), RAW)
def test_json_that_is_refused(
    kind: str,
    change: Callable[[str], str | bytes],
    saved: dict[str, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    path = written(saved["table"], tmp_path / "model")
    changed = change((path / "estimator.json").read_text())
    (path / "estimator.json").write_bytes(
        changed if isinstance(changed, bytes) else changed.encode()
    )
    with pytest.raises(InputError, match=r"estimator\.json"):
        fv.load(path)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "more.json", "base.base.base.base.base.model.json", "x\0y"],
)
def test_a_list_of_files_names_those_of_an_estimator(
    name: str, saved: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="files that an estimator has"):
        fv.load(
            written(saved["table"], tmp_path / "model", lambda d: d["sha256"].update({name: "0"}))
        )


@pytest.mark.parametrize("name", ["estimator.json", "model.json", "arrays.npz", "statement.json"])
def test_files_are_looked_at_before_they_are_read(
    name: str, saved: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    path = written(saved["table"], tmp_path / "model")
    with (path / name).open("r+b") as made:
        made.truncate(6 << 30)  # sparse: it takes no room
    with pytest.raises(InputError, match=r"bytes, got 6442450944 bytes"):
        fv.load(path)
    (path / name).unlink()
    os.mkfifo(path / name)
    with pytest.raises(FairveilError, match="got a pipe"):
        fv.load(path)


def test_arrays_are_as_large_as_the_model_says_and_no_larger(
    saved: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    path = written(saved["table"], tmp_path / "model")
    whole = (path / "arrays.npz").read_bytes()
    (path / "arrays.npz").write_bytes(whole + b"\0" * 5000)
    with pytest.raises(InputError, match="a plain file of at most"):
        fv.load(path)
    (path / "arrays.npz").write_bytes(whole + b"\0")
    with pytest.raises(ChecksumError):
        fv.load(path)
    told = {"type": "<f8", "shape": [2**40]}
    (path / "arrays.npz").write_bytes(whole)
    content = json.loads((path / "model.json").read_bytes())
    (path / "model.json").write_text(json.dumps({**content, "arrays": {"weights": told}}))
    with pytest.raises(InputError, match="arrays of at most"):
        fv.load(path)
