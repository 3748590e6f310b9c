"""Signatures of statements: the data holder stands by what nobody can recompute, with a key of her
own.

A signature is a file of its own beside the statement, `statement.json.sig`; the statement, and a
model's folder, are not changed. It is a DSSE envelope (ed25519) around an in-toto Statement: its
subjects are the statement, by the SHA-256 of its canonical spelling (RFC 8785: every field, date and
checksum too), and, where a folder is signed, its other files; its predicate is the signer, the time
and a note. docs/statement_spec.md says every field.

A private key is PKCS #8 in PEM, for its owner's eyes only, encrypted where a passphrase is given; a
public key is a SubjectPublicKeyInfo, whose SHA-256 names the signer:
`openssl pkey -pubin -in holder.pub -outform DER | sha256sum`. This is the one module that imports
`cryptography`, and only where a key is used.

Guarantees (tests/statement/test_signing.py).

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

import base64
import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._json import MALFORMED, Document
from .._reading import read_bytes, read_text
from ..core.errors import need
from ..errors import ExposedKey, InputError, SignatureError, StatementError
from .form import Malformed, canonical, plain

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

Passphrase = str | Callable[[], str] | None
SUFFIX, STATEMENT = ".sig", "statement.json"
LARGEST_STATEMENT, LARGEST_SIGNATURE, LARGEST_KEY = 64 << 20, 1 << 20, 1 << 16
PAYLOAD_TYPE = "application/vnd.in-toto+json"
DOCUMENT = Document(
    "signature", "Sign the statement again: fairveil sign.", SignatureError, LARGEST_SIGNATURE
)
CHANGED = "another, or one that was changed since"
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
    signature: str = ""

    @property
    def payload(self) -> bytes:
        """The in-toto Statement, in one spelling."""
        files = [{"name": name, "digest": {"sha256": one[7:]}} for name, one in self.files or ()]
        folder = self.files is not None
        said = {"signer": self.signer, "time": self.time, "note": self.note, "folder": folder}
        told = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [
                {"name": STATEMENT, "digest": {"jcsSha256": self.statement[7:]}},
                *files,
            ],
            "predicateType": "https://fairveil.org/privacy-statement/v1",
            "predicate": said,
        }
        return canonical(told).encode()

    @property
    def signed(self) -> bytes:
        """The bytes that the key signed: the pre-authentication encoding of DSSE."""
        head = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(self.payload)} "
        return head.encode() + self.payload

    def to_json(self) -> str:
        """The signature as a JSON document."""
        envelope = {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"keyid": self.signer, "sig": self.signature}],
        }
        return json.dumps(envelope, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Signature:
        """The inverse of `to_json`: a `SignatureError` where anything is not as that writes it."""
        envelope = DOCUMENT.json(text)
        try:
            inner = DOCUMENT.json(base64.b64decode(envelope["payload"], validate=True))
            (first, *others), said = inner["subject"], inner["predicate"]
            files = tuple((one["name"], f"sha256:{one['digest']['sha256']}") for one in others)
            found = cls(
                said["signer"],
                said["time"],
                said["note"],
                f"sha256:{first['digest']['jcsSha256']}",
                files if said["folder"] is True else None,
                envelope["signatures"][0]["sig"],
            )
            # written again it must be the same, so that no field is there unread
            right = json.loads(found.to_json()) == envelope and found._is_sound()
        except MALFORMED:
            right = False
        if not right:
            DOCUMENT.refuse("an in-toto Statement of a privacy statement", "another")
        return found

    def _is_sound(self) -> bool:
        names, digests = [name for name, _ in self.files or ()], [d for _, d in self.files or ()]
        return (
            all(_DIGEST.fullmatch(one) for one in (self.signer, self.statement, *digests))
            and bool(_TIME.fullmatch(self.time))
            and (self.note is None or _is_line(self.note))
            and all(_is_line(name) and Path(name).name == name != STATEMENT for name in names)
            and not any(name.startswith(".") or "\\" in name for name in names)
            and len(set(names)) == len(names)
            and len(base64.b64decode(self.signature, validate=True)) == 64
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
    from .document import examine, write

    statement, folder = _target(path)
    line = note is None or _is_line(note)
    need(line, "some words on one line", of="note", got=note, fix="Or leave it out.")
    target = signature_path(path) if out is None else Path(out)
    free = replace or not (target.exists() or target.is_symlink())
    fix = "Name another place (--out), or replace it (--force; replace=True)."
    need(free, "no signature yet", of="sign", got=str(target), fix=fix)
    text = _text(statement)
    grave = [finding.sentence for finding in examine(text)[1] if finding.grave]
    fix = "Look at it with `fairveil verify`; --inconsistent (inconsistent=True) signs it all the same."
    expected, got = "a statement that agrees with itself", (grave or [""])[0]
    sound = inconsistent or not grave
    need(sound, expected, of=str(statement), got=got, fix=fix, error=StatementError)
    files = None if folder is None else tuple((one.name, _digest_of(one)) for one in _files(folder))
    made = signed_text(text, private_key(key, passphrase), note=note, files=files)
    write(target, made.to_json())
    return made


def signed_text(
    text: str,
    private: Any,
    *,
    note: str | None = None,
    files: tuple[tuple[str, str], ...] | None = None,
) -> Signature:
    """The signature of a statement's text, by a private key that was read before."""
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # the fingerprint is signed with the rest, so that a signature cannot be given to another key
    bare = Signature(fingerprint(private.public_key()), time, note, _digest(text), files)
    return replace(bare, signature=base64.b64encode(private.sign(bare.signed)).decode())


def verify_text(text: str, found: Signature, public: Any, of: str = "statement") -> None:
    """An error unless this signature of this text was made with the private half of the key."""
    from cryptography.exceptions import InvalidSignature

    given, fix = fingerprint(public), "Pass the public key of who signed it."
    _hold(found.signer == given, of, f"a signature by {given}", f"one by {found.signer}", fix)
    try:
        public.verify(base64.b64decode(found.signature), found.signed)
        made = True
    except InvalidSignature:
        made = False
    _hold(made, of, "a valid signature", "one that this key did not make: it was changed")
    _hold(found.statement == _digest(text), of, "the signed statement", CHANGED)


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
    public = public_key(key)
    statement, folder = _target(path)
    text, of = _text(statement), str(path)
    found = read_signature(path, signature)
    if found is None:
        got, fix = f"none in {signature_path(path).name}", "Ask the data holder to sign it."
        raise SignatureError.expected("a signature", of=of, got=got, remedy=fix, quote=False)
    verify_text(text, found, public, of)
    for name, digest in found.files or ():
        file = statement.parent / name
        if file.is_symlink() or file.exists():
            same = not file.is_symlink() and file.is_file() and _digest_of(file) == digest
            _hold(same, of, f"the signed file {name}", CHANGED)
        else:
            _hold(folder is None, of, f"the signed file {name}", "none of that name")
    whole, fix = folder is None or found.files is not None, f"Verify {STATEMENT} itself."
    _hold(whole, of, "a signature of the folder", "one of its statement alone", fix)
    return found


def read_signature(
    path: str | os.PathLike[str], signature: str | os.PathLike[str] | None = None
) -> Signature | None:
    """The signature beside a statement or in a folder, unverified; None where there is none."""
    file = signature_path(path) if signature is None else Path(signature)
    if signature is None and not file.exists():
        return None
    what, remedy = "a signature's file", "Pass the signature's file, statement.json.sig."
    most, error = LARGEST_SIGNATURE, SignatureError
    return Signature.from_json(read_bytes(file, what=what, most=most, remedy=remedy, error=error))


def remarks(path: str | os.PathLike[str], found: Signature) -> tuple[str, ...]:
    """What a reader of a valid signature should know: which files it is silent about, and which are
    elsewhere."""
    statement, folder = _target(path)
    names = {name for name, _ in found.files or ()}
    if folder is not None:
        later = [file.name for file in _files(folder) if file.name not in names]
        return tuple(f"{name} was not signed: it came later" for name in later)
    missing = sorted(name for name in names if not (statement.parent / name).exists())
    return (f"it was signed together with {', '.join(missing)}, not found here",) if missing else ()


def signature_path(path: str | os.PathLike[str]) -> Path:
    """Where the signature of a statement or folder is written."""
    statement, _ = _target(path)
    return statement.with_name(statement.name + SUFFIX)


def _target(path: str | os.PathLike[str]) -> tuple[Path, Path | None]:
    """The statement's file, and the folder where a folder was given."""
    given = Path(path)
    return (given / STATEMENT, given) if given.is_dir() else (given, None)


def _text(statement: Path) -> str:
    remedy = "Pass a statement's JSON file, or the folder that holds statement.json."
    what, most = "a statement's file", LARGEST_STATEMENT
    return read_text(statement, what=what, most=most, remedy=remedy, error=StatementError)


def _digest(text: str) -> str:
    """Of every field, in one spelling; read strictly, so that no field can be there twice."""
    try:
        return f"sha256:{hashlib.sha256(canonical(plain(text)).encode()).hexdigest()}"
    except Malformed as error:
        raise StatementError(str(error)) from None


def _files(folder: Path) -> list[Path]:
    """What is signed beside the statement: all plain files of the folder but signatures and hidden
    ones."""
    found = []
    for file in sorted(folder.iterdir()):
        if file.name != STATEMENT and not file.name.startswith(".") and file.suffix != SUFFIX:
            plain_file = file.is_file() and not file.is_symlink()
            fix = "Take it out of the folder, or sign statement.json alone."
            need(plain_file, "plain files alone", of=str(folder), got=file.name, fix=fix)
            found.append(file)
    return found


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _is_line(text: str) -> bool:
    return bool(text.strip()) and text.isprintable()


def _hold(holds: bool, of: str, expected: str, got: str, fix: str = "") -> None:
    fix = fix or "Ask the data holder for the files again."
    need(holds, expected, of=of, got=got, fix=fix, error=SignatureError, quote=False)


# ---- keys


def new_key(path: str | os.PathLike[str], *, passphrase: Passphrase = None) -> str:
    """Write a new private key to a file that only you can read, and its public key beside it
    (`holder.key`, `holder.pub`).

    Neither may be there already. With a passphrase the private key is encrypted. Give the public
    key to whoever verifies what you sign, and its fingerprint, which is returned, by another way.
    """
    serialization, ed25519 = _library()
    private = Path(path)
    public = public_path(private)
    for file in (private, public):
        free, expected = not (file.exists() or file.is_symlink()), "a file that is not there yet"
        fix = "Name another file: a key that is lost cannot sign again."
        need(free, expected, of="new key", got=str(file), fix=fix)
    word = passphrase() if callable(passphrase) else passphrase
    fix = "Leave it out for a key without one."
    need(word != "", "some letters", of="passphrase", got="none", fix=fix, quote=False)
    key = ed25519.Ed25519PrivateKey.generate()
    locked = serialization.NoEncryption()
    if word is not None:
        locked = serialization.BestAvailableEncryption(word.encode())
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    _write_new(private, key.private_bytes(pem, form, locked), 0o600)
    try:
        _write_new(public, public_pem(key.public_key()), 0o644)
    except BaseException:
        private.unlink()
        raise
    return fingerprint(key.public_key())


def public_path(private: Path) -> Path:
    """Where the public key of a private one is written."""
    if private.suffix == ".key":
        return private.with_suffix(".pub")
    return private.with_name(f"{private.name}.pub")


def private_key(path: str | os.PathLike[str], passphrase: Passphrase = None) -> Ed25519PrivateKey:
    """The private key in a file."""
    serialization, ed25519 = _library()
    what, fix = "a private key's file", "Pass --key holder.key."
    pem, word = read_bytes(path, what=what, most=LARGEST_KEY, remedy=fix), None
    if b"ENCRYPTED" in pem:
        word = passphrase() if callable(passphrase) else passphrase
        fix = "Pass the passphrase; the command line reads FAIRVEIL_KEY_PASSPHRASE, or asks."
        got = "none, and the key is encrypted"
        need(word, "a passphrase", of=str(path), got=got, fix=fix, quote=False)
    try:
        key = serialization.load_pem_private_key(pem, None if word is None else str(word).encode())
    except Exception as error:  # the library has many, and their words are about its own inside
        raise _no_key(path, "a private key", pem, "a wrong passphrase, or other content") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _no_key(path, "an ed25519 private key", pem, "a key of another kind")
    if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        text = f"{path}: other users of this machine may read or change this private key."
        warnings.warn(f"{text} Take their rights away: chmod 600.", ExposedKey, stacklevel=3)
    found: Ed25519PrivateKey = key
    return found


def public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """The public key in a file."""
    what, fix = "a public key's file", "Pass --key holder.pub."
    return public_key_in(read_bytes(path, what=what, most=LARGEST_KEY, remedy=fix), path)


def public_key_in(pem: bytes, path: str | os.PathLike[str] = "public key") -> Ed25519PublicKey:
    """The public key in PEM."""
    serialization, ed25519 = _library()
    try:
        key = serialization.load_pem_public_key(pem)
    except Exception as error:  # see above
        raise _no_key(path, "a public key", pem, "other content") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _no_key(path, "an ed25519 public key", pem, "a key of another kind")
    found: Ed25519PublicKey = key
    return found


def public_pem(key: Ed25519PublicKey) -> bytes:
    """A public key in PEM."""
    return _public(key, "PEM")


def fingerprint(key: Ed25519PublicKey) -> str:
    """The name of a key: the SHA-256 of its public half."""
    return f"sha256:{hashlib.sha256(_public(key, 'DER')).hexdigest()}"


def _public(key: Ed25519PublicKey, encoding: str) -> bytes:
    serialization, _ = _library()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(getattr(serialization.Encoding, encoding), form)
    return found


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        got, remedy = "no cryptography", "pip install 'fairveil[sign]'"
        of = "a signature"
        raise InputError.expected("cryptography", of=of, got=got, remedy=remedy) from None
    return serialization, ed25519


def _no_key(path: str | os.PathLike[str], expected: str, pem: bytes, got: str) -> InputError:
    fix = "Make a pair with `fairveil sign --new-key holder.key`."
    if b"ENCRYPTED" in pem:
        fix = "Pass its own passphrase."
    if b"PRIVATE KEY-----" in pem and "public" in expected:
        got = "a private key"
        fix = "Pass the public key, holder.pub, and keep the private one to yourself."
    elif b"PUBLIC KEY-----" in pem and "private" in expected:
        got, fix = "a public key", "Pass the private key, holder.key: only that one can sign."
    return InputError.expected(f"{expected} in PEM", of=str(path), got=got, remedy=fix, quote=False)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
