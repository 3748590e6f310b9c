"""Signatures of statements: the data holder stands by what nobody can recompute, with a key of her
own.

A signature is a file of its own beside the statement, `statement.json.sig`; the statement, and a
model's folder, are not changed. What is signed is a short document: the SHA-256 of the whole
statement in one canonical spelling, every field of it, its date and checksum too; where a folder is
signed, the SHA-256 of its other files; the signer, the time, and a note.

Guarantees (tests/privacy/test_signatures.py).

1. No field of a signed statement, of its signature, and no byte of a signed folder's other files
   can be changed without the signature being refused. Spaces and the order of fields in a
   statement's file can.
2. A signature holds for one key, one statement, and one set of files: that of another is refused.
3. A statement that contradicts itself is not signed unless that is asked for.
4. Nothing is overwritten unless that is asked for; a signature's file is written whole or not at
   all.

A signature proves that the holder of the private key signed, not that what she signed is true.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..._json import Document, Node
from ..._reading import read_bytes, read_text
from ...errors import InputError, SignatureError, StatementError
from . import documents as statement_json
from . import signing_keys
from .signing_keys import Passphrase

FORMAT, FORMAT_VERSION = "fairveil signature", 1
SUFFIX = ".sig"
STATEMENT = "statement.json"
LARGEST_STATEMENT, LARGEST_SIGNATURE = 64 << 20, 1 << 20
CLAIMS = ("format", "version", "signer", "time", "note", "statement", "files")
DOCUMENT = Document(
    "signature",
    "Sign the statement again: fairveil sign.",
    SignatureError,
    largest=LARGEST_SIGNATURE,
)
_DIGEST, _TIME = re.compile(r"sha256:[0-9a-f]{64}"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Signature:
    """What was signed, when, and by whom: `signer` is the fingerprint of the public key,
    `statement` the digest of the statement, `files` those of the other files of a folder (None
    where a statement alone was signed)."""

    signer: str
    time: str
    note: str | None
    statement: str
    files: tuple[tuple[str, str], ...] | None
    signature: str

    @property
    def signed(self) -> bytes:
        """The bytes that the key signed."""
        # The format's name first: no other document's bytes can pass for a signature's claims.
        return FORMAT.encode() + b"\n" + canonical(self._claims())

    def to_json(self) -> str:
        """The signature as a JSON document."""
        return (
            json.dumps(self._claims() | {"signature": self.signature}, indent=2, ensure_ascii=True)
            + "\n"
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Signature:
        """The inverse of `to_json`: a `SignatureError` where anything is not as that writes it."""
        node = DOCUMENT.node(text).only((*CLAIMS, "signature"))
        node["format"].one_of((FORMAT,))
        node["version"].whole(at_least=FORMAT_VERSION, at_most=FORMAT_VERSION)
        note = None if node["note"].is_null else node["note"].text()
        if note is not None and not (note.strip() and note.isprintable()):
            node["note"].refuse("some words on one line", note)
        files = (
            None
            if node["files"].is_null
            else tuple(_named(node["files"], name) for name in node["files"].mapping())
        )
        time, signature = node["time"].text(), node["signature"].text()
        if not _TIME.fullmatch(time):
            node["time"].refuse("a time such as 2026-01-31T12:00:00Z", time)
        if not re.fullmatch("[0-9a-f]{128}", signature):
            node["signature"].refuse("128 hexadecimal digits", signature)
        return cls(
            _digest(node["signer"]), time, note, _digest(node["statement"]), files, signature
        )

    def _claims(self) -> dict[str, Any]:
        files = None if self.files is None else dict(self.files)
        return dict(
            zip(
                CLAIMS,
                (FORMAT, FORMAT_VERSION, self.signer, self.time, self.note, self.statement, files),
                strict=True,
            )
        )


def sign(
    path: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    passphrase: Passphrase = None,
    note: str | None = None,
    out: str | os.PathLike[str] | None = None,
    replace: bool = False,
    inconsistent: bool = False,
) -> Signature:
    """Sign a statement's file, or a folder with a statement and a model, with the private key in
    the file `key`.

    The signature is written beside the statement (`statement.json.sig`), or to `out`; `replace`:
    also where there is one. A statement that contradicts itself is refused unless `inconsistent`.
    """
    from .statement import examine

    statement, folder = _target(path)
    if note is not None and not (note.strip() and note.isprintable()):
        raise InputError.expected(
            "some words on one line", of="note", got=note, remedy="Or leave it out."
        )
    target = signature_path(path) if out is None else Path(out)
    if not replace and (target.exists() or target.is_symlink()):
        remedy = "Name another place (--out), or replace it (--force; replace=True)."
        raise InputError.expected("no signature yet", of="sign", got=str(target), remedy=remedy)
    text = _text(statement)
    grave = [finding.sentence for finding in examine(text)[1] if finding.grave]
    if grave and not inconsistent:
        remedy = (
            "Look at it with `fairveil verify`; to sign it all the same pass --inconsistent "
            "(inconsistent=True)."
        )
        raise StatementError.expected(
            "a statement that agrees with itself", of=str(statement), got=grave[0], remedy=remedy
        )
    files = (
        None if folder is None else tuple((file.name, _digest_of(file)) for file in _files(folder))
    )
    made = signed_text(text, signing_keys.private_key(key, passphrase), note=note, files=files)
    statement_json.write(target, made.to_json())
    return made


def signed_text(
    text: str,
    private: Any,
    *,
    note: str | None = None,
    files: tuple[tuple[str, str], ...] | None = None,
) -> Signature:
    """The signature of a statement's text, by a private key that was read before."""
    signer, time = (
        # The fingerprint is signed with the rest, so that a signature cannot be given to another
        # key.
        signing_keys.fingerprint(private.public_key()),
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    bare = Signature(signer, time, note, _digest_of_statement(text), files, "")
    return Signature(signer, time, note, bare.statement, files, private.sign(bare.signed).hex())


def verify_text(text: str, found: Signature, public: Any, of: str = "statement") -> None:
    """An error unless this signature of this text was made with the private half of the key."""
    given = signing_keys.fingerprint(public)
    if found.signer != given:
        raise _refused(
            of,
            f"a signature by {given}",
            f"one by {found.signer}",
            "Pass the public key of who signed it.",
        )
    if not signing_keys.is_made_by(public, bytes.fromhex(found.signature), found.signed):
        raise _refused(of, "a valid signature", "one that this key did not make: it was changed")
    if found.statement != _digest_of_statement(text):
        raise _refused(of, "the signed statement", "another, or one that was changed since")


def verify_signature(
    path: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    signature: str | os.PathLike[str] | None = None,
) -> Signature:
    """The signature of a statement, or of a folder, made with the private half of the public key in
    the file `key`.

    A `SignatureError` says what does not hold: there is none, it is another's or of something else,
    or something was changed. Of a folder all signed files must be there; beside a statement alone
    those that are there must be the signed ones. Whether the statement agrees with itself is for
    `PrivacyStatement.check`.
    """
    public = signing_keys.public_key(key)
    statement, folder = _target(path)
    text = _text(statement)
    found = read_signature(path, signature)
    if found is None:
        raise _refused(
            path,
            "a signature",
            f"none in {signature_path(path).name}",
            "Ask the data holder to sign it.",
        )
    verify_text(text, found, public, str(path))
    here = statement.parent
    for name, digest in found.files or ():
        file = here / name
        if not file.is_symlink() and not file.exists():
            if folder is not None:
                raise _refused(path, f"the signed file {name}", "none of that name")
        elif file.is_symlink() or not file.is_file() or _digest_of(file) != digest:
            raise _refused(
                path, f"the signed file {name}", "another, or one that was changed since"
            )
    if folder is not None and found.files is None:
        raise _refused(
            path,
            "a signature of the folder",
            "one of its statement alone",
            f"Verify {STATEMENT} itself.",
        )
    return found


def read_signature(
    path: str | os.PathLike[str], signature: str | os.PathLike[str] | None = None
) -> Signature | None:
    """The signature beside a statement or in a folder, unverified; None where there is none."""
    file = signature_path(path) if signature is None else Path(signature)
    if signature is None and not file.exists():
        return None
    remedy = "Pass the signature's file, statement.json.sig."
    return Signature.from_json(
        read_bytes(
            file,
            what="a signature's file",
            most=LARGEST_SIGNATURE,
            remedy=remedy,
            error=SignatureError,
        )
    )


def remarks(path: str | os.PathLike[str], found: Signature) -> tuple[str, ...]:
    """What a reader of a valid signature should know: which files it is silent about, and which are
    elsewhere."""
    statement, folder = _target(path)
    names = {name for name, _ in found.files or ()}
    if folder is not None:
        return tuple(
            f"{file.name} was not signed: it came later"
            for file in _files(folder)
            if file.name not in names
        )
    missing = sorted(name for name in names if not (statement.parent / name).exists())
    return (f"it was signed together with {', '.join(missing)}, not found here",) if missing else ()


def signature_path(path: str | os.PathLike[str]) -> Path:
    """Where the signature of a statement or folder is written."""
    statement, _ = _target(path)
    return statement.with_name(statement.name + SUFFIX)


def canonical(values: object) -> bytes:
    """JSON values in one spelling."""
    return json.dumps(
        values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def _target(path: str | os.PathLike[str]) -> tuple[Path, Path | None]:
    """The statement's file, and the folder where a folder was given."""
    given = Path(path)
    return (given / STATEMENT, given) if given.is_dir() else (given, None)


def _text(statement: Path) -> str:
    remedy = "Pass a statement's JSON file, or the folder that holds statement.json."
    return read_text(
        statement,
        what="a statement's file",
        most=LARGEST_STATEMENT,
        remedy=remedy,
        error=StatementError,
    )


def _digest_of_statement(text: str) -> str:
    """Of every field, in one spelling; read strictly, so that no field can be there twice."""
    return _sha256(canonical(statement_json.DOCUMENT.json(text)))


def _files(folder: Path) -> list[Path]:
    """What is signed beside the statement: all plain files of the folder but signatures and hidden
    ones."""
    found = []
    for file in sorted(folder.iterdir()):
        if file.name == STATEMENT or file.name.startswith(".") or file.name.endswith(SUFFIX):
            continue
        if file.is_symlink() or not file.is_file():
            remedy = "Take it out of the folder, or sign statement.json alone."
            raise InputError.expected(
                "plain files alone", of=str(folder), got=file.name, remedy=remedy
            )
        found.append(file)
    return found


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _digest(node: Node) -> str:
    text = node.text()
    if not _DIGEST.fullmatch(text):
        node.refuse("sha256: and 64 hexadecimal digits", text)
    return text


def _named(files: Node, name: str) -> tuple[str, str]:
    if (
        not name
        or name.startswith(".")
        or Path(name).name != name
        or "\\" in name
        or not name.isprintable()
    ):
        files.refuse("names of files of one folder", name)
    return name, _digest(files[name])


def _refused(
    path: object, expected: str, got: str, remedy: str = "Ask the data holder for the files again."
) -> SignatureError:
    return SignatureError.expected(expected, of=str(path), got=got, remedy=remedy, quote=False)
