"""Signatures of statements: the data holder stands by what nobody can recompute, with a key of her
own.

A signature is a file of its own beside the statement, `statement.json.sig`; the statement, and a
model's folder, are not changed. It is a DSSE envelope (ed25519) around an in-toto Statement: its
subjects are the statement, by the SHA-256 of its canonical spelling (RFC 8785: every field, date and
checksum too), and, where a folder is signed, its other files; its predicate is the signer, the time
and a note. docs/statement_spec.md says every field.

A private key is PKCS #8 in PEM, encrypted where a passphrase is given; a public key is a
SubjectPublicKeyInfo, whose SHA-256 names the signer: `openssl pkey -pubin -in holder.pub -outform DER
| sha256sum`. `cryptography` is imported here alone, and only where a key is used.

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
from .form import Malformed, canonical, is_line, plain

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

File = str | os.PathLike[str]
Passphrase = str | Callable[[], str] | None
SUFFIX, STATEMENT = ".sig", "statement.json"
LARGEST_STATEMENT, LARGEST_SIGNATURE, LARGEST_KEY = 64 << 20, 1 << 20, 1 << 16
PAYLOAD_TYPE, TYPE = "application/vnd.in-toto+json", "https://in-toto.io/Statement/v1"
PREDICATE = "https://fairveil.org/privacy-statement/v1"
AGAIN = "Sign the statement again: fairveil sign."
DOCUMENT = Document("signature", AGAIN, SignatureError, LARGEST_SIGNATURE)
CHANGED = "another, or one that was changed since"
_DIGEST, _TIME = re.compile(r"sha256:[0-9a-f]{64}"), re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_NAME = re.compile(r"[^./\\][^/\\]*")


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
        subject = [{"name": STATEMENT, "digest": {"jcsSha256": self.statement[7:]}}]
        subject += [{"name": name, "digest": {"sha256": one[7:]}} for name, one in self.files or ()]
        folder = self.files is not None
        said = {"signer": self.signer, "time": self.time, "note": self.note, "folder": folder}
        told = {"_type": TYPE, "subject": subject, "predicateType": PREDICATE, "predicate": said}
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
            files = {one["name"]: f"sha256:{one['digest']['sha256']}" for one in others}
            told = (said["signer"], said["time"], said["note"])
            digest, sig = f"sha256:{first['digest']['jcsSha256']}", envelope["signatures"][0]["sig"]
            found = cls(
                *told, digest, tuple(files.items()) if said["folder"] is True else None, sig
            )
            # written again it must be the same, so that no field is there unread, and no name twice
            right = (
                json.loads(found.to_json()) == envelope
                and all(_DIGEST.fullmatch(one) for one in (told[0], digest, *files.values()))
                and all(is_line(name) and _NAME.fullmatch(name) for name in files)
                and STATEMENT not in files
                and bool(_TIME.fullmatch(told[1]))
                and (told[2] is None or is_line(told[2]))
                and len(base64.b64decode(sig, validate=True)) == 64
            )
        except MALFORMED:
            right = False
        if not right:
            DOCUMENT.refuse("an in-toto Statement of a privacy statement", "another")
        return found


def sign(
    path: File,
    key: File,
    *,
    passphrase: Passphrase = None,
    note: str | None = None,
    out: File | None = None,
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
    fix, line = "Or leave it out.", note is None or is_line(note)
    need(line, "some words on one line", of="note", got=note, fix=fix)
    target = signature_path(path) if out is None else Path(out)
    free = replace or not os.path.lexists(target)
    fix = "Name another place (--out), or replace it (--force; replace=True)."
    need(free, "no signature yet", of="sign", got=str(target), fix=fix)
    text = _text(statement)
    grave = [finding.sentence for finding in examine(text)[1] if finding.grave]
    fix = "Look at it with `fairveil verify`; --inconsistent (inconsistent=True) signs it all the same."
    told: dict[str, Any] = {"of": str(statement), "got": (grave or [""])[0], "fix": fix}
    sound = inconsistent or not grave
    need(sound, "a statement that agrees with itself", **told, error=StatementError)
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


def verify_signature(path: File, key: File, *, signature: File | None = None) -> Signature:
    """The signature of a statement, or of a folder, made with the private half of the public key in
    the file `key`.

    A `SignatureError` says what does not hold: there is none, it is another's or of something else,
    or something was changed. Of a folder all signed files must be there; beside a statement alone
    those that are there must be the signed ones. Whether the statement agrees with itself is for
    `PrivacyStatement.check`.
    """
    public, of = public_key(key), str(path)
    statement, folder = _target(path)
    text, place = _text(statement), signature_path(path) if signature is None else Path(signature)
    there, got = signature is not None or place.exists(), f"none in {place.name}"
    _hold(there, of, "a signature", got, "Ask the data holder to sign it.")
    told: dict[str, Any] = {"most": LARGEST_SIGNATURE, "error": SignatureError}
    fix = "Pass the signature's file, statement.json.sig."
    found = Signature.from_json(read_bytes(place, what="a signature's file", remedy=fix, **told))
    verify_text(text, found, public, of)
    for name, digest in found.files or ():
        file, expected = statement.with_name(name), f"the signed file {name}"
        if os.path.lexists(file):
            same = not file.is_symlink() and file.is_file() and _digest_of(file) == digest
            _hold(same, of, expected, CHANGED)
        else:
            _hold(folder is None, of, expected, "none of that name")
    whole, fix = folder is None or found.files is not None, f"Verify {STATEMENT} itself."
    _hold(whole, of, "a signature of the folder", "one of its statement alone", fix)
    return found


def remarks(path: File, found: Signature) -> tuple[str, ...]:
    """What a reader of a valid signature should know: which files it is silent about, and which are
    elsewhere."""
    statement, folder = _target(path)
    names = {name for name, _ in found.files or ()}
    if folder is not None:
        later = [file.name for file in _files(folder) if file.name not in names]
        return tuple(f"{name} was not signed: it came later" for name in later)
    missing = ", ".join(sorted(name for name in names if not statement.with_name(name).exists()))
    return (f"it was signed together with {missing}, not found here",) if missing else ()


def signature_path(path: File) -> Path:
    """Where the signature of a statement or folder is written."""
    statement, _ = _target(path)
    return statement.with_name(statement.name + SUFFIX)


def _target(path: File) -> tuple[Path, Path | None]:
    """The statement's file, and the folder where a folder was given."""
    given = Path(path)
    return (given / STATEMENT, given) if given.is_dir() else (given, None)


def _text(statement: Path) -> str:
    fix, most = "Pass a statement's JSON file, or the folder that holds it.", LARGEST_STATEMENT
    return read_text(statement, what="a statement", most=most, remedy=fix, error=StatementError)


def _digest(text: str) -> str:
    """Of every field, in one spelling; read strictly, so that no field can be there twice."""
    try:
        return f"sha256:{hashlib.sha256(canonical(plain(text)).encode()).hexdigest()}"
    except Malformed as error:
        raise StatementError(str(error)) from None


def _files(folder: Path) -> list[Path]:
    """What is signed beside the statement: all plain files of the folder but signatures and hidden
    ones."""
    found = [one for one in sorted(folder.iterdir()) if one.name != STATEMENT]
    found = [one for one in found if not one.name.startswith(".") and one.suffix != SUFFIX]
    for file in found:
        fix = "Take it out of the folder, or sign statement.json alone."
        right, of = file.is_file() and not file.is_symlink(), str(folder)
        need(right, "plain files alone", of=of, got=file.name, fix=fix)
    return found


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _hold(holds: bool, of: str, expected: str, got: str, fix: str = "") -> None:
    fix = fix or "Ask the data holder for the files again."
    need(holds, expected, of=of, got=got, fix=fix, error=SignatureError, quote=False)


# ---- keys


def new_key(path: File, *, passphrase: Passphrase = None) -> str:
    """Write a new private key to a file that only you can read, and its public key beside it
    (`holder.key`, `holder.pub`).

    Neither may be there already. With a passphrase the private key is encrypted. Give the public
    key to whoever verifies what you sign, and its fingerprint, which is returned, by another way.
    """
    coded, kinds = _library()
    private = Path(path)
    public = public_path(private)
    for file in (private, public):
        fix = "Name another file: a key that is lost cannot sign again."
        free, expected = not os.path.lexists(file), "a file that is not there yet"
        need(free, expected, of="new key", got=str(file), fix=fix)
    word = passphrase() if callable(passphrase) else passphrase
    fix = "Leave it out for a key without one."
    need(word != "", "some letters", of="passphrase", got="none", fix=fix, quote=False)
    key = kinds.Ed25519PrivateKey.generate()
    locked = coded.BestAvailableEncryption(word.encode()) if word else coded.NoEncryption()
    pem = key.private_bytes(coded.Encoding.PEM, coded.PrivateFormat.PKCS8, locked)
    _write_new(private, pem, 0o600)
    try:
        _write_new(public, public_pem(key.public_key()), 0o644)
    except BaseException:
        private.unlink()
        raise
    return fingerprint(key.public_key())


def public_path(private: Path) -> Path:
    """Where the public key of a private one is written."""
    return private.with_name(f"{private.name.removesuffix('.key')}.pub")


def private_key(path: File, passphrase: Passphrase = None) -> Ed25519PrivateKey:
    """The private key in a file."""
    what, fix = "a private key's file", "Pass --key holder.key."
    pem, word = read_bytes(path, what=what, most=LARGEST_KEY, remedy=fix), None
    if b"ENCRYPTED" in pem:
        word = passphrase() if callable(passphrase) else passphrase
        fix = "Pass the passphrase; the command line reads FAIRVEIL_KEY_PASSPHRASE, or asks."
        got = "none, and the key is encrypted"
        need(word, "a passphrase", of=str(path), got=got, fix=fix, quote=False)
    found: Ed25519PrivateKey = _key(pem, path, "private", None if word is None else word.encode())
    if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        text = f"{path}: other users of this machine may read or change this private key."
        warnings.warn(f"{text} Take their rights away: chmod 600.", ExposedKey, stacklevel=3)
    return found


def public_key(path: File) -> Ed25519PublicKey:
    """The public key in a file."""
    what, fix = "a public key's file", "Pass --key holder.pub."
    return public_key_in(read_bytes(path, what=what, most=LARGEST_KEY, remedy=fix), path)


def public_key_in(pem: bytes, path: File = "public key") -> Ed25519PublicKey:
    """The public key in PEM."""
    found: Ed25519PublicKey = _key(pem, path, "public")
    return found


def _key(pem: bytes, path: File, kind: str, *password: bytes | None) -> Any:
    """The key of this kind in PEM; an error, with the way out, where there is another, or none."""
    coded, kinds = _library()
    got, fix = "other content", "Make a pair with `fairveil sign --new-key holder.key`."
    other = {"private": b"PUBLIC KEY-----", "public": b"PRIVATE KEY-----"}[kind]
    if other in pem:
        got = f"a {'public' if kind == 'private' else 'private'} key"
        fix = "Only holder.key signs, and only holder.pub is for others: pass the other one."
    elif b"ENCRYPTED" in pem:
        got, fix = "a wrong passphrase, or other content", "Pass its own passphrase."
    try:
        found = getattr(coded, f"load_pem_{kind}_key")(pem, *password)
        if isinstance(found, getattr(kinds, f"Ed25519{kind.title()}Key")):
            return found
        got = "a key of another kind"
    except Exception as error:  # the library has many, and their words are about its own inside
        cause: Exception | None = error
    else:
        cause = None
    expected = f"an ed25519 {kind} key in PEM"
    told: dict[str, Any] = {"of": str(path), "got": got, "remedy": fix, "quote": False}
    raise InputError.expected(expected, **told) from cause


def public_pem(key: Ed25519PublicKey) -> bytes:
    """A public key in PEM."""
    return _public(key, "PEM")


def fingerprint(key: Ed25519PublicKey) -> str:
    """The name of a key: the SHA-256 of its public half."""
    return f"sha256:{hashlib.sha256(_public(key, 'DER')).hexdigest()}"


def _public(key: Ed25519PublicKey, encoding: str) -> bytes:
    coded, _ = _library()
    kind = coded.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(getattr(coded.Encoding, encoding), kind)
    return found


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        fix, of = "pip install 'fairveil[sign]'", "a signature"
        raise InputError.expected("cryptography", of=of, got="none", remedy=fix) from None
    return serialization, ed25519


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
