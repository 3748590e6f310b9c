"""The one reader of every JSON (and TOML) document that the library takes from a file, and typed
readers of its fields.

A document may come from anybody, so it is read strictly. What is refused raises the caller's error,
one of the library's, with the name of the document: no other exception leaves this module, and no
text keeps it busy.

Guarantees (tests/test_json.py):
1. Names occur once, numbers are finite, whole numbers have at most 19 digits, texts can be written
   in UTF-8.
2. Depth and size are refused before the parser runs, so neither the interpreter's stack nor its
   memory is at risk.
3. A `Node` returns a value only as the type that was asked for: true is no number, a text no
   list, 3.0 no whole number.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from json import JSONDecodeError, JSONDecoder, dumps
from typing import Any, NoReturn

from .errors import FairveilError, InputError

DEEPEST = 200
"""Levels of one value inside another. Events and models nest by a few dozen at most, and have
narrower limits of their own."""
LARGEST = 1 << 28
"""Characters of a document, where its reader does not say otherwise."""
DIGITS = 20
"""Characters of a whole number, its sign included: all that 64 bits hold."""
SHOWN = 120
MALFORMED = (
    *(LookupError, TypeError, ValueError, ArithmeticError),
    *(AttributeError, MemoryError, RecursionError),
)
"""What values of a stranger's document may raise where they are put together."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.|\\\Z)*+(?:"|\Z)', re.DOTALL)
_NOT_BRACKETS = bytes(code for code in range(256) if code not in b"[]{}")
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{40,}}")
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Document:
    """What is read: its name in words, what to do when it is wrong, and the class of the error."""

    name: str
    remedy: str
    error: type[FairveilError] = InputError
    largest: int = LARGEST
    deepest: int = DEEPEST

    def refuse(self, expected: str, got: object, of: str = "") -> NoReturn:
        """The error of this document; `of`: where in it."""
        raise self.refusal(expected, got, of)

    def refusal(self, expected: str, got: object, of: str = "") -> FairveilError:
        """The same, to be raised by the caller."""
        place = f"{self.name}, {of}" if of else self.name
        return self.error.expected(
            expected, of=place, got=shown(got), remedy=self.remedy, quote=False
        )

    def json(self, given: object) -> Any:
        """The values of a JSON document, text or bytes in UTF-8; guarantees 1 and 2."""
        text = self.text(given)
        return self._read(text, lambda decoder: decoder.decode(text))

    def beginning(self, text: str, at: int) -> tuple[Any, int]:
        """The value that begins at a place of a text, and where it ends: of a line that was cut
        short after it."""
        found: tuple[Any, int] = self._read(
            self.text(text), lambda decoder: decoder.raw_decode(text, at)
        )
        return found

    def _read(self, text: str, read: Callable[[JSONDecoder], Any]) -> Any:
        self._check_depth(text)
        decoder = JSONDecoder(
            object_pairs_hook=self._once,
            parse_constant=self._no_constant,
            parse_int=self._whole,
            parse_float=self._finite,
        )
        try:
            values = read(decoder)
        except (ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, FairveilError):
                raise
            self.refuse("a JSON document", _where(error))
        if _SURROGATE.search(text):
            self.require_writable(values)
        return values

    def toml(self, given: object) -> Any:
        """The values of a TOML document; dates and times are left to whoever reads the fields."""
        text = self.text(given)
        self._check_depth(text)
        if _LONG_NAME.search(text):  # the parser needs the square of their number
            self.refuse("TOML whose names have at most 40 parts", "a longer one")
        try:
            values = tomllib.loads(text, parse_float=self._finite)
        except (ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, FairveilError):
                raise
            self.refuse("a TOML document", _where(error))
        self._check_plain(values)
        return values

    def node(self, given: object) -> Node:
        """The document as a `Node`."""
        return self.of(self.json(given))

    def of(self, values: object) -> Node:
        """Values that were parsed before as a `Node`."""
        return Node(values, "", self)

    def text(self, given: object) -> str:
        """The text of a document, of a size that is read."""
        if not isinstance(given, str | bytes):
            self.refuse("text", type(given).__name__)
        if len(given) > self.largest:
            self.refuse(f"at most {self.largest} characters", f"{len(given)}")
        try:
            if isinstance(given, bytes):
                return given.decode("utf-8")
            given.encode("utf-8")
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            self.refuse("text in UTF-8", error.reason)
        return given

    def _check_depth(self, text: str) -> None:
        if text.count("[") + text.count("{") <= self.deepest:
            return
        brackets = _STRING.sub("", text).encode("utf-8").translate(None, _NOT_BRACKETS)
        if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > self.deepest:
            self.refuse(f"at most {self.deepest} levels", "more")

    def require_writable(self, values: object) -> None:
        """An error where the values are no text in UTF-8."""
        try:
            dumps(values, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            self.refuse("text in UTF-8", "half of a pair of surrogates")

    def _check_plain(self, values: object) -> None:
        """TOML has whole numbers of any length, and dots in a name are levels, too."""
        level: list[object] = [values]
        for _ in range(self.deepest):
            below: list[object] = []
            for value in level:
                if isinstance(value, Mapping):
                    below += value.values()
                elif isinstance(value, list):
                    below += value
                elif isinstance(value, int) and abs(value) >= 10 ** (DIGITS - 1):
                    self.refuse(f"whole numbers of at most {DIGITS - 1} digits", "a longer one")
            if not below:
                return
            level = below
        self.refuse(f"at most {self.deepest} levels", "more")

    def _once(self, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in pairs:
            if name in out:
                self.refuse("each field once", name)
            out[name] = value
        return out

    def _no_constant(self, name: str) -> NoReturn:
        self.refuse('finite numbers (an infinite one is written "inf")', name)

    def _whole(self, digits: str) -> int:
        if len(digits) > DIGITS:
            self.refuse(f"whole numbers of at most {DIGITS - 1} digits", f"one of {len(digits)}")
        return int(digits)

    def _finite(self, digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            self.refuse("finite numbers", digits)
        return value


@dataclass(frozen=True)
class Node:
    """One value of a document and where it stands; guarantee 3."""

    value: Any
    place: str
    document: Document

    def refuse(self, expected: str, got: object) -> NoReturn:
        """The error of this place."""
        self.document.refuse(expected, got, self.place)

    def mapping(self) -> dict[str, Any]:
        """An object."""
        if not isinstance(self.value, dict):
            self.refuse("an object", self.value)
        return self.value

    def only(self, names: Collection[str], optional: Collection[str] = ()) -> Node:
        """The same, of an object that has just these fields."""
        given = set(self.mapping())
        if not set(names) <= given <= {*names, *optional}:
            self.refuse(f"the fields {sorted({*names, *optional})}", sorted(given))
        return self

    def __getitem__(self, name: str) -> Node:
        """A field of an object."""
        values = self.mapping()
        if name not in values:
            self.refuse(f"a field {name!r}", sorted(values))
        return Node(values[name], f"{self.place}.{name}" if self.place else name, self.document)

    @property
    def is_null(self) -> bool:
        """Whether nothing is there."""
        return self.value is None

    def list(self, length: int | None = None) -> tuple[Node, ...]:
        """A list, of so many where that is said."""
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            self.refuse("a list" if length is None else f"a list of {length}", self.value)
        return tuple(
            Node(value, f"{self.place}[{at}]", self.document) for at, value in enumerate(self.value)
        )

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse("a text", self.value)
        return self.value

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        if not isinstance(self.value, list) or not all(
            isinstance(value, str) for value in self.value
        ):
            self.refuse("a list of texts", self.value)
        return tuple(self.value)

    def one_of(self, words: Collection[str]) -> str:
        """One of these texts."""
        if not isinstance(self.value, str) or self.value not in words:
            self.refuse(f"one of {', '.join(map(repr, words))}", self.value)
        return self.value

    def truth(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.refuse("true or false", self.value)
        return self.value

    def whole(self, *, at_least: int = 0, at_most: int = 2**63 - 1) -> int:
        """A whole number within these limits."""
        if type(self.value) is not int or not at_least <= self.value <= at_most:
            self.refuse(f"a whole number from {at_least} to {at_most}", self.value)
        return self.value

    def number(self, *, words: bool = False) -> float:
        """A finite number; with `words` also the texts "inf", "-inf" and "nan", which stand for
        those."""
        if words and isinstance(self.value, str) and self.value in _WORDS:
            return _WORDS[self.value]
        if type(self.value) not in (int, float):
            self.refuse('a number, "inf", "-inf" or "nan"' if words else "a number", self.value)
        return float(self.value)

    def numbers(self, *, words: bool = False, length: int | None = None) -> tuple[float, ...]:
        """A list of numbers."""
        if not isinstance(self.value, list) or (length is not None and len(self.value) != length):
            self.refuse(
                "a list of numbers" if length is None else f"a list of {length} numbers", self.value
            )
        # the common case, without a node for each
        if all(type(value) is float for value in self.value):
            return tuple(self.value)
        return tuple(one.number(words=words) for one in self.list())


def shown(got: object) -> str:
    """What came, in few words: a text or number as it is written, of the rest its kind and size."""
    if got is None:
        return "null"
    if isinstance(got, str):
        return repr(got) if len(got) <= SHOWN else repr(got[:SHOWN])[:-1] + "...'"
    if isinstance(got, dict):
        return f"an object with {_listed(got)}"
    if isinstance(got, list | tuple):
        plain = len(got) <= 40 and all(isinstance(one, str) and len(one) <= 40 for one in got)
        return repr(list(got)) if plain else f"a list of {len(got)}"
    return repr(got)[:SHOWN]


def _listed(values: Mapping[str, object]) -> str:
    names = [name[:40] for name in list(values)[:12]]
    return f"{names}" + (
        "" if len(values) <= len(names) else f" and {len(values) - len(names)} more"
    )


def _where(error: Exception) -> str:
    """Where a parser stopped; its own words may repeat the document."""
    if isinstance(error, JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    at = re.search(r"at line (\d+), column (\d+)", str(error))
    return f"what cannot be read at line {at[1]}, column {at[2]}" if at else "what cannot be read"
