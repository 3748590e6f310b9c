"""Keys to sign statements with: ed25519, in the PEM files that openssl reads and writes, too.

A private key is PKCS #8, for its owner's eyes only, and encrypted where a passphrase is given; a
public key is a SubjectPublicKeyInfo, whose SHA-256 names the signer:
`openssl pkey -pubin -in holder.pub -outform DER | sha256sum`. This is the one module that imports
`cryptography`, and only where a key is used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._reading import read_bytes
from ...errors import ExposedKey, InputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

LARGEST_KEY = 1 << 16
Passphrase = str | Callable[[], str] | None


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
        if file.exists() or file.is_symlink():
            remedy = "Name another file: a key that is lost cannot sign again."
            raise InputError.expected(
                "a file that is not there yet", of="new key", got=str(file), remedy=remedy
            )
    word = passphrase() if callable(passphrase) else passphrase
    if word == "":
        remedy = "Leave it out for a key without one."
        raise InputError.expected(
            "some letters", of="passphrase", got="none", remedy=remedy, quote=False
        )
    key = ed25519.Ed25519PrivateKey.generate()
    locked = (
        serialization.NoEncryption()
        if word is None
        else serialization.BestAvailableEncryption(word.encode())
    )
    pem = serialization.Encoding.PEM
    _write_new(private, key.private_bytes(pem, serialization.PrivateFormat.PKCS8, locked), 0o600)
    try:
        _write_new(
            public,
            key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo),
            0o644,
        )
    except BaseException:
        private.unlink()
        raise
    return fingerprint(key.public_key())


def public_path(private: Path) -> Path:
    """Where the public key of a private one is written."""
    return (
        private.with_suffix(".pub")
        if private.suffix == ".key"
        else private.with_name(f"{private.name}.pub")
    )


def private_key(path: str | os.PathLike[str], passphrase: Passphrase = None) -> Ed25519PrivateKey:
    """The private key in a file."""
    serialization, ed25519 = _library()
    pem = read_bytes(
        path, what="a private key's file", most=LARGEST_KEY, remedy="Pass --key holder.key."
    )
    try:
        try:
            key = serialization.load_pem_private_key(pem, None)
        except TypeError:  # it is encrypted
            word = passphrase() if callable(passphrase) else passphrase
            if not word:
                remedy = (
                    "Pass the passphrase; the command line reads FAIRVEIL_KEY_PASSPHRASE, or asks."
                )
                got = "none, and the key is encrypted"
                raise InputError.expected(
                    "a passphrase", of=str(path), got=got, remedy=remedy, quote=False
                ) from None
            key = serialization.load_pem_private_key(pem, word.encode())
    except InputError:
        raise
    except Exception as error:  # the library has many, and their words are about its own inside
        raise _no_key(path, "a private key", pem, "a wrong passphrase, or other content") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _no_key(path, "an ed25519 private key", pem, "a key of another kind")
    if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        text = (
            f"{path}: other users of this machine may read or change this private key. Take their "
            f"rights away: chmod 600."
        )
        warnings.warn(text, ExposedKey, stacklevel=3)
    found: Ed25519PrivateKey = key
    return found


def public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    """The public key in a file."""
    return public_key_in(
        read_bytes(
            path, what="a public key's file", most=LARGEST_KEY, remedy="Pass --key holder.pub."
        ),
        path,
    )


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
    serialization, _ = _library()
    pem: bytes = key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def fingerprint(key: Ed25519PublicKey) -> str:
    """The name of a key: the SHA-256 of its public half."""
    serialization, _ = _library()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


def is_made_by(key: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    """Whether the private half of this key signed these bytes."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        remedy = "pip install 'fairveil[sign]'"
        raise InputError.expected(
            "cryptography", of="a signature", got="no cryptography", remedy=remedy
        ) from None
    return serialization, ed25519


def _no_key(path: str | os.PathLike[str], expected: str, pem: bytes, got: str) -> InputError:
    remedy = "Make a pair with `fairveil sign --new-key holder.key`."
    if b"ENCRYPTED" in pem:
        remedy = "Pass its own passphrase."
    if b"PRIVATE KEY-----" in pem and "public" in expected:
        got, remedy = (
            "a private key",
            "Pass the public key, holder.pub, and keep the private one to yourself.",
        )
    elif b"PUBLIC KEY-----" in pem and "private" in expected:
        got, remedy = "a public key", "Pass the private key, holder.key: only that one can sign."
    return InputError.expected(
        f"{expected} in PEM", of=str(path), got=got, remedy=remedy, quote=False
    )


def _write_new(path: Path, content: bytes, mode: int) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
