"""What `fairveil verify` says of a signature."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..statement.signing import Signature


@dataclass(frozen=True)
class Signed:
    """The lines to print, the same as plain values (None: no signature was looked for, and none is
    there), and the verdict."""

    lines: tuple[str, ...]
    plain: dict[str, Any] | None
    is_valid: bool = False
    is_refused: bool = False


def _unchecked() -> Signed:
    words = "note: there is a signature, which was not checked: pass --key holder.pub"
    return Signed((words,), {"valid": None})


def _refused(error: Exception) -> Signed:
    plain = {"valid": False, "reason": str(error)}
    return Signed((f"NOT SIGNED: {error}",), plain, is_refused=True)


def checked(path: Path, key: Path | None, file: Path | None) -> Signed:
    """The signature of a statement or folder, held against a public key; without one only that
    there is one is said."""
    from ..errors import SignatureError
    from ..statement import signing

    if key is None:
        if not signing.signature_path(path).is_file():
            return Signed((), None)
        return _unchecked()
    try:
        found = signing.verify_signature(path, key, signature=file)
    except SignatureError as error:
        return _refused(error)
    return _valid(found, signing.remarks(path, found))


def inside(text: str, path: Path, key: Path | None) -> Signed:
    """The signature inside a file of released groups, held against a public key."""
    from ..errors import SignatureError
    from ..estimators.released.released_counts import ReleasedCounts
    from ..estimators.released.saving import read, require_signed
    from ..statement.signing import public_key

    if key is None:
        if read(text, ReleasedCounts)[1] is None:
            return Signed((), None)
        return _unchecked()
    try:
        found = require_signed(text, public_key(key), str(path))
    except SignatureError as error:
        return _refused(error)
    return _valid(found, (), "together with the counts")


def _valid(found: Signature, remarks: tuple[str, ...], beside: str = "") -> Signed:
    note = "" if found.note is None else f", with the note {found.note!r}"
    bound = (
        ""
        if found.files is None
        else f", {beside or f'together with {len(found.files)} other files'}"
    )
    lines = (
        f"Signed by {found.signer} at {found.time}{note}{bound}: valid",
        *(f"note: {remark}" for remark in remarks),
    )
    plain = {
        "valid": True,
        "signer": found.signer,
        "time": found.time,
        "note": found.note,
        "files": None if found.files is None else dict(found.files),
        "remarks": list(remarks),
    }
    return Signed(lines, plain, is_valid=True)
