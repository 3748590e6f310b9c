"""Libraries that may be missing: loaded when they are used, with an error that says how to get them."""

from __future__ import annotations

from ..errors import InputError, complaint


def missing(error: ModuleNotFoundError, package: str, *, extra: bool = True) -> Exception:
    """The error where a package is not there; where it is there and lacks another one, its own. `extra`: whether we have an
    extra of its name."""
    if (error.name or "").partition(".")[0] != package:
        return error
    remedy = f'pip install "fairveil[{package}]".' if extra else f"pip install {package}."
    return InputError(complaint(expected=f"the package {package}", of="compat", got="none", remedy=remedy, quote=False))
