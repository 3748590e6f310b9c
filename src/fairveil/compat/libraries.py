"""Libraries that may be missing: loaded when they are used, with an error that says how to get
them."""

from __future__ import annotations

from ..errors import InputError


def missing(error: ImportError, package: str, *, extra: bool = True) -> Exception:
    """The error where a package is not there, or is a version that does not import; where it lacks
    another package, its own. `extra`: whether we have an extra of its name."""
    absent = isinstance(error, ModuleNotFoundError)
    if absent and (error.name or "").partition(".")[0] != package:
        return error
    remedy = f"pip install 'fairveil[{package}]'" if extra else f"pip install {package}"
    expected = (
        f"the package {package}"
        if absent
        else f"a version of {package} that imports beside the others"
    )
    return InputError.expected(
        expected, of="compat", got="none" if absent else str(error), remedy=remedy, quote=False
    )
