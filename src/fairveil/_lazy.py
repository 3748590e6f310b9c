"""Public names that are loaded when they are first asked for (PEP 562), so that importing the
library costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazily(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The module functions `__getattr__` and `__dir__` of a package whose public names live in
    other modules.

    `places` maps a public name to the module that holds it, relative to the package (".promise"). A
    module that holds itself (`{"events": ".events"}`) is returned whole. A name that was asked
    for once is an ordinary attribute from then on.

    >>> getattr_, dir_ = lazily("fairveil.privacy", {"Promise": ".promise"})
    >>> getattr_("Promise").__name__
    'Promise'
    """

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(places[name], package)
        value: object = module if places[name] == f".{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(set(vars(sys.modules[package])) | set(places))

    return get, names
