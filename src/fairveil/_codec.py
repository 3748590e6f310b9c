"""Values as plain JSON and back: dataclasses by their fields, arrays, enums and tuples, by the types
that the fields declare, out of a closed list of classes.

    CODEC = Codec(Kind(Standard), Kind(Schema, write=Schema.to_dict, read=schema_of))
    text = json.dumps(CODEC.write(value, Standard)); value = CODEC.read(DOCUMENT.node(text), Standard)

An object says its class under "type". Numbers keep every bit; those that are not finite are the
words "inf", "-inf" and "nan" where a number is declared. Where nothing is declared (`object`), a
value is a text, a truth value, a number, a list, or an object that says what it is.

Guarantees (tests/test_codec.py):
1. What was written is read back as it was: numbers to the last bit.
2. What is read has the declared types, and no class that is not in the list; anything else is the
   document's error, which names the place.
3. Reading runs no code but that of the listed classes, and no size is allocated that is only
   claimed.
"""

from __future__ import annotations

import math
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, get_args, get_origin

import numpy as np

from ._json import MALFORMED, Node
from .errors import FairveilError

TYPE = "type"
MOST_AXES, MOST_ITEMS = 8, 1 << 40
UNTYPED = (object, Any)
Check = Callable[[dict[str, Any], Node], object]


class UnwrittenError(TypeError):
    """A value of a class that is not in the list."""


@dataclass(frozen=True)
class Kind:
    """How values of a class are written: by their fields, but those `without`, or by `write` and
    `read`. `typed`: False where a class checks its fields itself, and keeps them as they were given.
    `check`: is handed the fields that were read, before there is an object of them."""

    cls: type
    name: str = ""
    without: tuple[str, ...] = ()
    typed: bool = True
    check: Check | None = None
    write: Callable[[Any], Any] | None = None
    read: Callable[[Node], Any] | None = None

    @property
    def word(self) -> str:
        """What stands under "type"."""
        return self.name or self.cls.__name__


class Codec:
    """What documents may hold: values of these classes."""

    def __init__(self, *kinds: Kind) -> None:
        self._kinds = {kind.word: kind for kind in kinds}

    def with_kinds(self, *kinds: Kind) -> Codec:
        """One of more classes."""
        return Codec(*self._kinds.values(), *kinds)

    # writing

    def write(self, value: Any, of: Any = object, without: Collection[str] = ()) -> Any:
        """Plain JSON values. `of`: the declared type; `without`: fields that are left out."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Enum):
            return value.name
        if value is None or isinstance(value, bool | str | int):
            return value
        if isinstance(value, float):
            if of is Hashable and not math.isfinite(
                value
            ):  # a text that reads the same is a key too
                raise UnwrittenError(str(value))
            words = math.isfinite(value) or of not in UNTYPED
            return _word(value) if words else {TYPE: "number", "value": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, of)
        if isinstance(value, list | tuple):
            inside = _items(of, len(value))
            return [self.write(one, kind) for one, kind in zip(value, inside, strict=True)]
        if isinstance(value, Mapping):
            return {
                TYPE: "mapping",
                "pairs": [[self.write(k), self.write(v)] for k, v in value.items()],
            }
        kind = self._of(type(value))
        if kind.write is not None:
            return {TYPE: kind.word, "value": kind.write(value)}
        hints = _hints(type(value)) if kind.typed else defaultdict(lambda: object)
        left_out = {*kind.without, *without}
        names = [one.name for one in fields(value) if one.name not in left_out]
        return {TYPE: kind.word} | {
            name: self.write(getattr(value, name), hints[name]) for name in names
        }

    def _of(self, cls: type) -> Kind:
        kinds = self._kinds.values()
        found = next((one for one in kinds if one.cls is cls), None) or next(
            (one for one in kinds if one.write and issubclass(cls, one.cls)), None
        )
        if found is None:
            raise UnwrittenError(cls.__name__)
        return found

    def _array(self, value: Any, of: Any) -> dict[str, Any]:
        if value.dtype.kind not in "fiub":
            raise UnwrittenError(f"an array of {value.dtype}")
        out = {"shape": list(value.shape), "values": list(map(_word, value.ravel().tolist()))}
        return {TYPE: "array"} | out if of in UNTYPED else out

    # reading

    def read(self, node: Node, of: Any = object, **given: Any) -> Any:
        """The value that was written. `given`: fields that were left out."""
        origin, inside = get_origin(of), get_args(of)
        if of in UNTYPED:
            return self._untyped(node)
        if of is None or of is types.NoneType:
            return node.refuse("null", node.value) if not node.is_null else None
        if origin in (typing.Union, types.UnionType):
            return self.read(node, self._member(node, inside), **given)
        if origin is typing.Literal:
            return node.one_of(inside)
        if of is Hashable:
            return _key(node)
        if of in _SCALARS:
            return _SCALARS[of](node)
        if of is np.ndarray or origin is np.ndarray:
            items = get_args(inside[-1]) if inside else ()
            return _read_array(node.only(("shape", "values")), items[0] if items else np.float64)
        if of == tuple[str, ...]:
            return node.texts()
        if origin in (tuple, list):
            found = node.list() if origin is list or inside[-1] is ... else node.list(len(inside))
            kinds = _items(of, len(found))
            return origin(self.read(one, kind) for one, kind in zip(found, kinds, strict=True))
        if isinstance(of, type) and issubclass(of, Enum):
            return of[node.one_of(list(of.__members__))]
        return self._made(node, of, given)

    def _member(self, node: Node, members: tuple[Any, ...]) -> Any:
        """The member of a union that a value is of."""
        if node.is_null and types.NoneType in members:
            return None
        exact: dict[type, Any] = {bool: bool, int: int, float: float, str: str}
        found = exact.get(type(node.value))
        if found in members:
            return found
        if (found is int or found is str) and float in members:
            return float
        if isinstance(node.value, list):
            return next((one for one in members if get_origin(one) in (tuple, list)), members[0])
        return next((one for one in members if self._may_be(node, one)), members[0])

    def _may_be(self, node: Node, member: Any) -> bool:
        told = node.value.get(TYPE) if isinstance(node.value, dict) else None
        kind = self._kinds.get(told) if isinstance(told, str) else None
        if kind is None or not isinstance(member, type):
            return get_origin(member) is np.ndarray and told is None
        return issubclass(kind.cls, member)

    def _untyped(self, node: Node) -> Any:
        if isinstance(node.value, list):
            return [self._untyped(one) for one in node.list()]
        if not isinstance(node.value, dict):
            return node.value
        word = node[TYPE].text()
        if word == "number":
            return node.only((TYPE, "value"))["value"].number(words=True)
        if word == "array":
            return _read_array(node.only((TYPE, "shape", "values")), None)
        if word == "mapping":
            pairs = [one.list(2) for one in node.only((TYPE, "pairs"))["pairs"].list()]
            return {_key(key): self._untyped(value) for key, value in pairs}
        return self._made(node, object, {})

    def _made(self, node: Node, of: Any, given: Mapping[str, Any]) -> Any:
        possible = {word: kind for word, kind in self._kinds.items() if issubclass(kind.cls, of)}
        kind = possible[node[TYPE].one_of(possible)]
        if kind.read is not None:
            return kind.read(node.only((TYPE, "value"))["value"])
        hints = _hints(kind.cls) if kind.typed else defaultdict(lambda: object)
        left_out = {*kind.without, *given}
        names = [one.name for one in fields(kind.cls) if one.name not in left_out]
        node.only((TYPE, *names))
        found = {name: self.read(node[name], hints[name]) for name in names} | dict(given)
        if kind.check is not None:
            kind.check(found, node)
        try:
            return kind.cls(**found)
        except FairveilError:
            raise
        except MALFORMED as error:
            wrong = type(error).__name__
        node.refuse(f"fields that make a {kind.word}", wrong)


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _KNOWN:
        _KNOWN[cls] = typing.get_type_hints(cls)
    return _KNOWN[cls]


def _items(of: Any, length: int) -> list[Any]:
    """The declared type of each item."""
    inside = get_args(of) if get_origin(of) in (tuple, list) else ()
    for member in get_args(of) if get_origin(of) in (typing.Union, types.UnionType) else ():
        inside = inside or (get_args(member) if get_origin(member) in (tuple, list) else ())
    if not inside:
        return [object] * length
    if len(inside) == 1 or inside[-1] is ...:
        return [inside[0]] * length
    return list(inside)


def _word(value: Any) -> Any:
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _key(node: Node) -> Hashable:
    """A value of a group or a class."""
    if isinstance(node.value, list):
        return tuple(map(_key, node.list()))
    if isinstance(node.value, dict):
        node.refuse("a text, a number, a truth value or a list of these", node.value)
    return node.value  # type: ignore[no-any-return]


def _read_array(node: Node, of: Any) -> Any:
    """Numbers of this type on so many axes. None: whole ones where all are, else others."""
    sizes = node["shape"].list()
    if len(sizes) > MOST_AXES:
        node["shape"].refuse(f"at most {MOST_AXES} axes", len(sizes))
    shape = [size.whole(at_most=MOST_ITEMS) for size in sizes]
    length = math.prod(shape)
    plain = node["values"].list(length) if of is not np.float64 else ()
    if of is np.bool_:
        return np.array([one.truth() for one in plain], np.bool_).reshape(shape)
    if of is np.intp or (of is None and plain and all(type(one.value) is int for one in plain)):
        return np.array([one.whole(at_least=-(2**63)) for one in plain], np.intp).reshape(shape)
    values = node["values"].numbers(words=True, length=length)
    return np.array(values, np.float64).reshape(shape)


_KNOWN: dict[type, dict[str, Any]] = {}
_SCALARS: dict[Any, Callable[[Node], Any]] = {
    bool: Node.truth,
    str: Node.text,
    int: lambda node: node.whole(at_least=-(2**63)),
    float: lambda node: node.number(words=True),
}
