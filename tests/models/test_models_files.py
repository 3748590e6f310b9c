"""Save and load: bit for bit, whole or not at all, nothing followed or run, every damage an error
that says what."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fairveil.errors import ChecksumError, DataNotFoundError, InputError
from fairveil.facts import RowBlock, RowLayout
from fairveil.models import LinearModel, MixtureModel, files, folders, load, save

ROWS = RowBlock(
    np.array([[0.1, -2.0, 3.5], [1.0, 0.0, 0.25]]), np.array([[0, 2, 1]], dtype=np.uint8)
)


def linear(seed=0, classes=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    outputs = 1 if len(classes) == 2 else len(classes)
    weights = rng.normal(size=(outputs, 5)) * 10.0 ** rng.integers(-300, 300, size=(outputs, 5))
    weights[:, :2] = rng.normal(size=(outputs, 2))
    weights[0, 4] = 5e-324
    weights[0, 3] = -0.0
    return LinearModel(
        np.clip(weights, -1e290, 1e290),
        rng.normal(size=outputs) / 3,
        classes=classes,
        layout=RowLayout(2, (3,)),
    )


def examples():
    yield "linear", linear()
    yield "binary", linear(1, (False, True))
    yield "floats", linear(2, (0.1, 1 / 3))
    yield "texts", linear(3, ("é", "\n", ""))
    mixture = MixtureModel(
        [linear(s) for s in range(7)], np.random.default_rng(0).dirichlet(np.ones(7))
    )
    yield "mixture", mixture
    yield "nested", MixtureModel([mixture, linear(9)], [1 / 3, 2 / 3])
    yield "derandomised", mixture.derandomise()


@pytest.mark.parametrize(
    ("name", "model"), list(examples()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_round_trip_keeps_every_bit(name, model, tmp_path):
    save(model, tmp_path / "deep" / "model")
    back = load(tmp_path / "deep" / "model")
    assert same(back.to_parts(), model.to_parts())
    assert back.classes == model.classes
    assert [type(k) for k in back.classes] == [type(k) for k in model.classes]
    assert (back.predict_proba(ROWS) == model.predict_proba(ROWS)).all()
    assert (back.predict_codes(ROWS, 5) == model.predict_codes(ROWS, 5)).all()
    assert files.to_files(back) == files.to_files(model)
    assert sorted(os.listdir(tmp_path / "deep")) == ["model"]
    assert sorted(os.listdir(tmp_path / "deep" / "model")) == ["arrays.npz", "model.json"]


def same(one, other):
    return (
        one.kind == other.kind
        and one.values == other.values
        and one.arrays.keys() == other.arrays.keys()
        and all(one.arrays[k].tobytes() == other.arrays[k].tobytes() for k in one.arrays)
        and len(one.models) == len(other.models)
        and all(map(same, one.models, other.models))
    )


def test_an_existing_folder_is_kept_unless_it_is_an_earlier_model(tmp_path):
    target = tmp_path / "model"
    save(linear(0), target)
    before = files.to_files(load(target))
    with pytest.raises(InputError, match="overwrite=True"):
        save(linear(1), target)
    assert files.to_files(load(target)) == before
    save(linear(1), target, overwrite=True)
    assert files.to_files(load(target)) == files.to_files(linear(1))
    other = tmp_path / "photos"
    other.mkdir()
    (other / "cat.txt").write_text("cat")
    with pytest.raises(InputError, match="not there yet"):
        save(linear(1), other, overwrite=True)
    assert (other / "cat.txt").read_text() == "cat"
    (tmp_path / "empty").mkdir()
    save(linear(1), tmp_path / "empty")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="a folder to write"):
        save(linear(1), tmp_path / "file", overwrite=True)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(InputError, match="a folder to write"):
        save(linear(1), tmp_path / "link", overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "link", "model", "photos"]


@pytest.mark.parametrize("step", ["fsync", "rename"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_save_that_breaks_leaves_what_was_there(step, at, tmp_path, monkeypatch):
    """Broken at the first and second flush or move, with and without an earlier model."""
    target = tmp_path / "model"
    earlier = linear(0)
    for overwrite in (False, True):
        if overwrite:
            save(earlier, target)
        calls, real = [], getattr(os, step)

        def broken(*args, calls=calls, real=real, **kwargs):
            calls.append(args)
            if len(calls) == at:
                raise OSError("disk full")
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(folders.os, step, broken)
            if step == "rename" and at == 2 and not overwrite:
                save(linear(1), target)  # a new folder takes one move only
            else:
                with pytest.raises(OSError, match="disk full"):
                    save(linear(1), target, overwrite=overwrite)
        if overwrite:
            assert files.to_files(load(target)) == files.to_files(earlier)
        assert [name for name in os.listdir(tmp_path) if name != "model"] == []
        if not overwrite and target.exists():
            for file in target.iterdir():
                file.unlink()
            target.rmdir()


def tampered(change):
    content = files.to_files(linear())
    described = json.loads(content["model.json"])
    change(described)
    return {"model.json": json.dumps(described).encode(), "arrays.npz": content["arrays.npz"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="other"), "format"),
        (lambda d: d.update(version=2), "expected version 1, got 2"),
        (lambda d: d.update(version="1"), "version"),
        (lambda d: d.update(more=1), "model.json"),
        (lambda d: d.pop("arrays"), "model.json"),
        (lambda d: d.update(arrays=[]), "model.json"),
        (
            lambda d: d["model"].update(kind="forest"),
            "kind of model: expected one of .*'linear'.*got 'forest'",
        ),
        (lambda d: d["model"].update(kind=["linear"]), r"model\.kind: expected a text"),
        (lambda d: d["model"].pop("values"), "'values'"),
        (lambda d: d.update(model=None), "model: expected an object, got null"),
        (lambda d: d["model"]["values"].pop("classes"), "one without 'classes'"),
        (lambda d: d["model"]["values"].update(classes=["a", "b"]), "weights"),
        (lambda d: d["model"]["values"].update(classes=["a", "b", "b"]), "two distinct"),
        (lambda d: d["model"]["values"].update(classes=["a", "b", ["c"]]), "classes|complete"),
        (lambda d: d["model"]["values"].update(numbers=-1), "numbers"),
        (lambda d: d["model"]["values"].update(code_sizes="3"), "code_size"),
        (lambda d: d["model"]["values"].update(code_sizes=3), "complete description"),
        (
            lambda d: d["model"]["arrays"].update(weights="../../etc/passwd"),
            "one of 'intercept', 'weights'",
        ),
        (
            lambda d: d["model"]["arrays"].update(weights=["weights"]),
            "one of 'intercept', 'weights'",
        ),
        (lambda d: d["model"].update(models=3), r"model\.models: expected a list, got 3"),
        (lambda d: d["arrays"]["weights"].update(shape=[5, 3]), "weights of"),
        (lambda d: d["arrays"]["weights"].update(type="<f4"), "weights of"),
        (lambda d: d["arrays"].update(extra={"type": "<f8", "shape": [1]}), "the arrays"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        files.from_files(tampered(change))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"format": NaN}',
        b"[" * 100_000,
        b'{"format": "fairveil-model"}',
    ],
)
def test_a_broken_text_is_refused(raw):
    with pytest.raises(InputError, match=r"model\.json"):
        files.from_files({"model.json": raw, "arrays.npz": b""})


def test_any_changed_byte_of_the_arrays_is_found():
    content = files.to_files(linear())
    packed = content["arrays.npz"]
    for place in range(0, len(packed), 7):
        damaged = packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :]
        with pytest.raises(ChecksumError, match="SHA-256"):
            files.from_files(content | {"arrays.npz": damaged})
    for cut in (0, 10, len(packed) - 1):
        with pytest.raises(ChecksumError):
            files.from_files(content | {"arrays.npz": packed[:cut]})


def resealed(packed, change=None):
    described = json.loads(files.to_files(linear())["model.json"])
    described["arrays_sha256"] = hashlib.sha256(packed).hexdigest()
    if change:
        change(described)
    return {"model.json": json.dumps(described).encode(), "arrays.npz": packed}


def archive(members, compression=zipfile.ZIP_STORED):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as target:
        for name, array in members.items():
            raw = io.BytesIO()
            np.lib.format.write_array(raw, array, allow_pickle=True)
            target.writestr(name, raw.getvalue())
    return packed.getvalue()


def test_archives_that_could_do_harm_are_refused(tmp_path):
    """A pickled array, a compressed bomb, names out of the folder, and garbage, each with a right
    checksum."""
    model = linear()
    good = {"weights.npy": model.weights, "intercept.npy": model.intercept}
    assert same(files.from_files(resealed(archive(good))).to_parts(), model.to_parts())

    class Harm:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "harm"),))

    bad = [
        archive(good | {"weights.npy": np.array([Harm()], dtype=object)}),
        archive(good, zipfile.ZIP_DEFLATED),
        archive({"../weights.npy": model.weights, "intercept.npy": model.intercept}),
        archive(good | {"more.npy": model.weights}),
        archive({"weights.npy": model.weights}),
        archive(good | {"weights.npy": model.weights.astype(">f8")}),
        archive(good | {"weights.npy": model.weights.astype(complex)}),
        archive(good | {"weights.npy": np.full_like(model.weights, np.nan)}),
        b"garbage",
        b"",
    ]
    for packed in bad:
        with pytest.raises(InputError):
            files.from_files(resealed(packed))
    assert os.listdir(tmp_path) == []


def test_models_too_deep_inside_each_other_are_refused():
    model = linear()
    for _ in range(files.DEEPEST):
        model = MixtureModel([model])
    assert same(files.from_files(files.to_files(model)).to_parts(), model.to_parts())
    with pytest.raises(InputError, match="inside each other"):
        files.to_files(MixtureModel([model]))

    def deepen(described):
        for _ in range(files.DEEPEST + 1):
            described["model"] = {
                "kind": "derandomised",
                "values": {},
                "arrays": {},
                "models": [described["model"]],
            }

    with pytest.raises(InputError, match="inside each other"):
        files.from_files(tampered(deepen))


def test_links_missing_files_and_names_out_of_the_folder_are_refused(tmp_path):
    with pytest.raises(DataNotFoundError, match="a folder"):
        load(tmp_path / "nowhere")
    target = save(linear(), tmp_path / "model")
    (tmp_path / "arrays.npz").write_bytes((target / "arrays.npz").read_bytes())
    (target / "arrays.npz").unlink()
    with pytest.raises(DataNotFoundError, match="arrays"):
        load(target)
    (target / "arrays.npz").symlink_to(tmp_path / "arrays.npz")
    with pytest.raises(InputError, match="not a link"):
        load(target)
    for name in ("../x", "/etc/passwd", "a/b", "..", ".hidden", "", "a\\b", "x\n", "c:x"):
        with pytest.raises(InputError, match="file name"):
            folders.write_folder(tmp_path / "new", {name: b""})
        with pytest.raises(InputError, match="file name"):
            folders.read_folder(tmp_path / "model", (name,))
    assert sorted(os.listdir(tmp_path)) == ["arrays.npz", "model"]


def test_a_folder_may_hold_more_than_the_model(tmp_path):
    content = files.to_files(linear()) | {"statement.json": b"{}"}
    folders.write_folder(tmp_path / "model", content)
    assert same(load(tmp_path / "model").to_parts(), linear().to_parts())
    assert Path(tmp_path / "model" / "statement.json").read_bytes() == b"{}"


def test_other_kinds_are_not_saved():
    class Wrapped(MixtureModel):
        kind = "wrapped"

    with pytest.raises(InputError, match="kind of model"):
        files.to_files(Wrapped([linear()]))
