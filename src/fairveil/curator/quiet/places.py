"""Attributes of modules, classes and streams that are others for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TextIO


class Place:
    """An attribute that is another for a while. Each step can be done again, so that an interrupt
    between them does no harm."""

    def __init__(self, owner: object, name: str, make: Callable[[Any], Any]) -> None:
        self._owner, self._name, self._make = owner, name, make
        self._own: Any = None  # what the owner itself has there; else it is its class's
        self._ours: Any = None

    def begin(self) -> None:
        """Put ours in place."""
        found = self._owner.__dict__.get(self._name)
        if found is not None and found is self._ours:
            return
        if self._ours is None or found is not self._own:
            self._own, self._ours = found, self._make(getattr(self._owner, self._name))
        setattr(self._owner, self._name, self._ours)

    def end(self) -> None:
        """Take it away, unless somebody else has put another in its place since."""
        if self._ours is None or self._owner.__dict__.get(self._name) is not self._ours:
            return
        if self._own is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)


class StandIn:
    """A stream, but for what is written to it."""

    def __init__(self, stream: TextIO, write: Callable[[str], Any]) -> None:
        self._stream, self.write = stream, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
