"""Signatures of statements and of folders: the guarantees of statement/signing.py."""

from __future__ import annotations

import base64
import builtins
import copy
import dataclasses
import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil.facts import Schema

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization

import fairveil as fv
from fairveil.core.events import Gaussian, PerCell
from fairveil.errors import (
    DataNotFoundError,
    ExposedKey,
    InputError,
    SignatureError,
    StatementError,
)
from fairveil.privacy import (
    NamedGroups,
    PrivacyStatement,
    Promise,
    PublicFact,
    Signature,
    new_key,
    sign,
    verify_signature,
)
from fairveil.statement.document import (
    Audit,
    Receipt,
    StatedBound,
    releases_of,
)
from fairveil.statement.form import (
    READ_FROM_DATA,
    canonical,
    checksum,
    schema,
)
from fairveil.statement.signing import remarks

PLAN = [Gaussian(20.0), PerCell(((40.0, 120.0),), (2.0,))]


def statement_of(**options: Any) -> PrivacyStatement:
    """One that has every field."""
    made = PrivacyStatement.of(
        Promise(1.0, 1e-6),
        PLAN,
        plan=PLAN,
        facts=[PublicFact("sex", "female, male", "schema")],
        bounds=[StatedBound("gradient sum", "L2", 1.0, "clipped", READ_FROM_DATA)],
        not_covered=["how rows were gathered"],
        audit=Audit(0.01, 0.95, "an attack"),
        groups=[NamedGroups(("few", "many"), limits=(1.0, None))],
        ledger=Receipt("people", "a-spend", 3, "0" * 64),
        releases=releases_of((("a sum",), event) for event in PLAN),
        **{
            "tuning": "one fit",
            "earlier_releases": "none",
            "noise": "seeded",
            "user_code": "trusted",
            "created": "2026",
            **options,
        },
    )
    return dataclasses.replace(made, notes=("rows were set aside by coins",))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "holder.key")
    return tmp_path / "holder.pub"


@pytest.fixture
def private(key: Path) -> Path:
    return key.with_suffix(".key")


@pytest.fixture
def signed(tmp_path: Path, private: Path) -> Path:
    path = statement_of().write(tmp_path / "statement.json")
    sign(path, private, note="as published")
    return path


def leaves(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values that hold no others, empty ones among them."""
    inner = (
        values.items()
        if isinstance(values, dict)
        else enumerate(values)
        if isinstance(values, list)
        else ()
    )
    below = [leaf for name, value in inner for leaf in leaves(value, (*path, name))]
    yield from below or [path]


def changed(values: Any, path: tuple[Any, ...]) -> Any:
    out = copy.deepcopy(values)
    at = out
    for name in path[:-1]:
        at = at[name]
    old = at[path[-1]]
    at[path[-1]] = (
        (not old)
        if isinstance(old, bool)
        else old + 1
        if isinstance(old, int | float)
        else f"{old or ''}x"
    )
    return out


def sealed(values: dict[str, Any]) -> str:
    """With the checksum of what it holds, as anybody can make it."""
    return json.dumps({**values, "checksum": checksum(values)})


def test_a_signature_is_read_back_and_holds(signed: Path, key: Path) -> None:
    found = verify_signature(signed, key)
    assert found == Signature.from_json(found.to_json())
    assert found.note == "as published"
    assert found.files is None
    assert PrivacyStatement.from_json(signed.read_text("utf-8")) == statement_of()


def test_guarantee_1_no_field_of_the_statement_can_be_changed(signed: Path, key: Path) -> None:
    values = json.loads(signed.read_text("utf-8"))
    places = list(leaves(values))
    assert {place[0] for place in places} == set(schema()["properties"])
    for place in places:
        signed.write_text(sealed(changed(values, place)), "utf-8")
        if place != ("checksum",):  # which `sealed` made right again
            with pytest.raises(SignatureError, match="changed since"):
                verify_signature(signed, key)
        signed.write_text(json.dumps(changed(values, place)), "utf-8")
        with pytest.raises(SignatureError, match="changed since"):
            verify_signature(signed, key)
    for name in values:
        signed.write_text(
            json.dumps({other: value for other, value in values.items() if other != name}), "utf-8"
        )
        with pytest.raises(SignatureError, match="changed since"):
            verify_signature(signed, key)
    signed.write_text(json.dumps(values | {"more": 1}), "utf-8")
    with pytest.raises(SignatureError, match="changed since"):
        verify_signature(signed, key)


def opened(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """An envelope, and the in-toto Statement inside."""
    envelope = json.loads(file.read_text("utf-8"))
    return envelope, json.loads(base64.b64decode(envelope["payload"]))


def sealed_again(envelope: dict[str, Any], said: Any) -> str:
    """The envelope around something else, as who has no key can make it."""
    payload = base64.b64encode(canonical(said).encode()).decode()
    return json.dumps({**envelope, "payload": payload})


def test_guarantee_1_no_field_of_the_signature_can_be_changed(signed: Path, key: Path) -> None:
    file = signed.with_name("statement.json.sig")
    envelope, said = opened(file)
    forged = [json.dumps(changed(envelope, place)) for place in leaves(envelope)]
    forged += [sealed_again(envelope, changed(said, place)) for place in leaves(said)]
    forged += [
        sealed_again(envelope, {**said, "more": 1}),
        sealed_again(envelope, {**said, "predicate": {**said["predicate"], "more": 1}}),
        json.dumps({**envelope, "signatures": [*envelope["signatures"], *envelope["signatures"]]}),
        json.dumps({**envelope, "signatures": []}),
    ]
    for text in forged:
        file.write_text(text, "utf-8")
        with pytest.raises(SignatureError):
            verify_signature(signed, key)


def test_the_envelope_is_what_dsse_and_in_toto_say(signed: Path, key: Path) -> None:
    """Read by their specifications alone, with the key's library."""
    envelope, said = opened(signed.with_name("statement.json.sig"))
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
    public = serialization.load_pem_public_key(key.read_bytes())
    head = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode()
    public.verify(base64.b64decode(envelope["signatures"][0]["sig"]), head + payload)  # type: ignore[union-attr, call-arg]
    assert kind == "application/vnd.in-toto+json"
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    values = json.loads(signed.read_text("utf-8"))
    assert said["subject"][0]["digest"] == {
        "jcsSha256": hashlib.sha256(canonical(values).encode()).hexdigest()
    }


def test_guarantee_1_spaces_and_order_do_not_matter(signed: Path, key: Path) -> None:
    values = json.loads(signed.read_text("utf-8"))
    signed.write_text(json.dumps(dict(reversed(values.items()))), "utf-8")
    assert verify_signature(signed, key).statement
    assert canonical(values) == canonical(dict(reversed(values.items())))


def test_guarantee_2_of_another_key_or_statement(signed: Path, key: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "other.key")
    with pytest.raises(SignatureError, match="one by sha256:"):
        verify_signature(signed, tmp_path / "other.pub")
    other = statement_of(tuning="many").write(tmp_path / "other.json")
    with pytest.raises(SignatureError, match=r"none in other\.json\.sig"):
        verify_signature(other, key)
    moved = tmp_path / "other.json.sig"
    moved.write_bytes((tmp_path / "statement.json.sig").read_bytes())
    with pytest.raises(SignatureError, match="changed since"):
        verify_signature(other, key)
    envelope, said = opened(moved)
    said["predicate"]["signer"] = sign(other, tmp_path / "other.key", replace=True).signer
    envelope["signatures"][0]["keyid"] = said["predicate"]["signer"]
    moved.write_text(sealed_again(envelope, said), "utf-8")
    with pytest.raises(SignatureError, match="this key did not make"):
        verify_signature(other, tmp_path / "other.pub")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff", b"[]", b"null", b'{"format": NaN}', b"[" * 1000, b" " * (2 << 20)],
)
def test_a_malformed_signature_is_a_signature_error(
    signed: Path, key: Path, content: bytes
) -> None:
    file = signed.with_name("statement.json.sig")
    whole = file.read_bytes()
    for damaged in (
        content,
        whole[: len(whole) // 2],
        whole[:-5],
        whole + b"x",
        whole.replace(b"sha256:", b"sha1:", 1),
    ):
        file.write_bytes(damaged)
        with pytest.raises(SignatureError):
            verify_signature(signed, key)


def test_names_of_signed_files_stay_in_the_folder(signed: Path) -> None:
    envelope, said = opened(signed.with_name("statement.json.sig"))
    said["predicate"]["folder"] = True
    for name in ("../secret", "/etc/passwd", "a/b", "..", ".", "", ".hidden", "a\\b", "a\nb"):
        more = {"name": name, "digest": {"sha256": "0" * 64}}
        text = sealed_again(envelope, {**said, "subject": [*said["subject"], more]})
        with pytest.raises(SignatureError, match="in-toto"):
            Signature.from_json(text)


def test_guarantee_3_a_contradiction_is_not_signed_unasked(
    tmp_path: Path, private: Path, key: Path
) -> None:
    values = json.loads(statement_of().to_json())
    values["stamps"].remove("seeded-noise")
    path = tmp_path / "statement.json"
    path.write_text(sealed(values), "utf-8")
    with pytest.raises(StatementError, match="the flag 'seeded-noise' is missing"):
        sign(path, private)
    assert not (tmp_path / "statement.json.sig").exists()
    sign(path, private, inconsistent=True)
    assert verify_signature(path, key)


def test_guarantee_4_nothing_is_overwritten_unasked(
    signed: Path, private: Path, key: Path, tmp_path: Path
) -> None:
    file = signed.with_name("statement.json.sig")
    before = file.read_bytes()
    with pytest.raises(InputError, match="no signature yet"):
        sign(signed, private)
    assert file.read_bytes() == before
    made = sign(signed, private, note="again", replace=True)
    assert verify_signature(signed, key) == made
    other = sign(signed, private, out=tmp_path / "second.sig")
    assert verify_signature(signed, key, signature=tmp_path / "second.sig") == other
    for name in ("holder.key", "holder.pub"):
        kept = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="not there yet"):
            new_key(tmp_path / "holder.key")
        assert (tmp_path / name).read_bytes() == kept
        (tmp_path / name).rename(tmp_path / f"{name}.away")
        if name == "holder.key":
            with pytest.raises(InputError, match=r"holder\.pub"):
                new_key(tmp_path / "holder.key")
            assert not (tmp_path / name).exists()
        (tmp_path / f"{name}.away").rename(tmp_path / name)


def test_keys(tmp_path: Path, signed: Path, key: Path, private: Path) -> None:
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert b"BEGIN PRIVATE KEY" in private.read_bytes()
    assert new_key(tmp_path / "plain") != new_key(tmp_path / "locked.key", passphrase="word")
    assert (tmp_path / "plain.pub").exists()
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in (tmp_path / "locked.key").read_bytes()
    for word in (None, "", lambda: "", "other", lambda: "other"):
        with pytest.raises(InputError, match="passphrase"):
            sign(signed, tmp_path / "locked.key", passphrase=word, replace=True)
    sign(signed, tmp_path / "locked.key", passphrase=lambda: "word", replace=True)
    assert verify_signature(signed, tmp_path / "locked.pub")
    sign(signed, private, passphrase="not needed", replace=True)
    with pytest.raises(InputError, match="some letters"):
        new_key(tmp_path / "empty.key", passphrase="")
    with pytest.raises(InputError, match="got a private key"):
        verify_signature(signed, private)
    with pytest.raises(InputError, match="got a public key"):
        sign(signed, key, replace=True)
    with pytest.raises(DataNotFoundError):
        verify_signature(signed, tmp_path / "missing.pub")


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 50, b"-----BEGIN PUBLIC "
                                                              b"KEY-----\nMCow\n-----END PUBLIC "
                                                              b"KEY-----\n",
                                     b"-----BEGIN PRIVATE KEY-----\nMCow\n-----END PRIVATE "
                                     b"KEY-----\n"])  # fmt: skip
def test_malformed_keys_are_input_errors(signed: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "wrong.pem"
    file.write_bytes(content)
    file.chmod(0o600)
    for call in (lambda: verify_signature(signed, file), lambda: sign(signed, file, replace=True)):
        with pytest.raises(InputError) as found:
            call()
        assert not isinstance(found.value, SignatureError)


def test_keys_of_another_kind(signed: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    other = ec.generate_private_key(ec.SECP256R1())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (tmp_path / "ec.key").write_bytes(
        other.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
    public = other.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "ec.pub").write_bytes(public)
    with pytest.raises(InputError, match="ed25519"):
        sign(signed, tmp_path / "ec.key", replace=True)
    with pytest.raises(InputError, match="ed25519"):
        verify_signature(signed, tmp_path / "ec.pub")


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_key_that_others_may_read_is_warned_of(signed: Path, private: Path) -> None:
    private.chmod(0o640)
    with pytest.warns(ExposedKey, match="chmod 600"):
        sign(signed, private, replace=True)


def test_without_the_library_the_error_says_how_to_get_it(
    signed: Path, key: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_import = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return true_import(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    for call in (
        lambda: verify_signature(signed, key),
        lambda: sign(signed, private, replace=True),
        lambda: new_key(key.with_name("new.key")),
    ):
        with pytest.raises(InputError, match=r"pip install 'fairveil\[sign\]'"):
            call()


def test_the_library_is_imported_only_where_it_is_used() -> None:
    code = (
        "import sys, fairveil.statement.signing, fairveil.cli; assert 'cryptography' "
        "not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X, A = rng.random((80, 2)), rng.choice(["a", "b"], 80)
    clf = fv.FairClassifier(
        "demographic_parity:0.3", solver=fv.PrimalDual(rounds=2), schema=Schema(rows=80), delta=1e-4
    )
    clf.fit(X, (X[:, 0] > 0.5).astype(int), sensitive_features=A)
    return Path(fv.save(clf, tmp_path_factory.mktemp("made") / "model"))


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(model, tmp_path / "model"))


def test_a_folder_is_signed_in_place_and_loads_as_before(
    folder: Path, key: Path, private: Path
) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    made = sign(folder, private)
    assert made.files is not None
    assert {name for name, _ in made.files} == set(before) - {"statement.json"}
    assert {
        file.name: file.read_bytes() for file in folder.iterdir() if file.suffix != ".sig"
    } == before
    assert verify_signature(folder, key) == made == verify_signature(folder / "statement.json", key)
    assert fv.load(folder).predict(np.zeros((2, 2))).shape == (2,)
    assert not remarks(folder, made)


def test_guarantee_2_a_folder_and_its_statement_belong_together(
    folder: Path, key: Path, private: Path, tmp_path: Path
) -> None:
    made = sign(folder, private)
    for file in sorted(folder.iterdir()):
        if file.suffix == ".sig" or file.name == "statement.json":
            continue
        whole = file.read_bytes()
        for damage in (whole[:-1], bytes([whole[0] ^ 1]) + whole[1:], whole + b" "):
            file.write_bytes(damage)
            for target in (folder, folder / "statement.json"):
                with pytest.raises(SignatureError, match=file.name):
                    verify_signature(target, key)
        file.unlink()
        with pytest.raises(SignatureError, match=f"{file.name}, got none"):
            verify_signature(folder, key)
        # a statement may be published without its model
        assert verify_signature(folder / "statement.json", key)
        assert (
            f"together with {file.name}, not found here"
            in remarks(folder / "statement.json", made)[0]
        )
        file.symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere").write_bytes(whole)
        with pytest.raises(SignatureError, match=file.name):
            verify_signature(folder, key)
        file.unlink()
        file.write_bytes(whole)
    assert verify_signature(folder, key) == made
    (folder / "later.txt").write_text("more")
    assert remarks(folder, verify_signature(folder, key)) == (
        "later.txt was not signed: it came later",
    )


def test_guarantee_2_a_signature_of_the_statement_alone_is_none_of_the_folder(
    folder: Path, key: Path, private: Path
) -> None:
    sign(folder / "statement.json", private)
    assert verify_signature(folder / "statement.json", key)
    with pytest.raises(SignatureError, match="one of its statement alone"):
        verify_signature(folder, key)


def test_what_is_no_plain_file_is_not_signed(folder: Path, private: Path, tmp_path: Path) -> None:
    (folder / "inner").mkdir()
    with pytest.raises(InputError, match="plain files"):
        sign(folder, private)
    with pytest.raises(DataNotFoundError):
        sign(tmp_path, private)


@pytest.mark.parametrize("note", ["", " ", "two\nlines", "\x1b[2J"])
def test_a_note_is_a_line_of_words(signed: Path, private: Path, note: str) -> None:
    with pytest.raises(InputError, match="some words"):
        sign(signed, private, note=note, replace=True)
