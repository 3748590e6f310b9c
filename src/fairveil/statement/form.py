"""A privacy statement as a document: read strictly by its JSON Schema (`schema.json`), spelled in one
way, its events as plain values. No other room of the library is imported.

An event is a tuple: its kind, then its fields in the order of `FIELDS`.

Guarantees (tests/statement/test_vectors.py).
1. `read` refuses what is not a statement with `Malformed`, whatever the text; nothing keeps it busy.
2. Two documents with one `canonical` spelling hold the same values.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

READ_FROM_DATA: Final = "read from the data, not covered"
FORMAT, VERSION = "fairveil privacy statement", 1
NAMED_VERSIONS = ("fairveil", "python", "numpy", "scipy")
MORE = ("groups", "ledger", "releases", "notes")
"""Fields that a document need not have."""
DEEPEST, LARGEST, MOST_PARTS = 200, 1 << 26, 1 << 16
UNPRICED = (ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What pricing the events of a stranger's file may come to."""


class Malformed(ValueError):  # noqa: N818  # what it is
    """What is no statement: what was expected, of what, and what came, in few words."""

    def __init__(self, expected: str, of: str = "privacy statement", got: str = "another") -> None:
        super().__init__(f"{of}: expected {expected}, got {got}")
        self.expected, self.of, self.got = expected, of, got


@dataclass(frozen=True)
class Finding:
    """One thing that was noticed. A `grave` one makes the statement inconsistent; another is only
    worth knowing. `code` names the rule of the specification that it breaks."""

    grave: bool
    sentence: str
    code: str = ""


# ---- events

Event = tuple[Any, ...]
FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("no-op", "non-private"), ()),
    **dict.fromkeys(("gaussian", "laplace"), ("noise_multiplier",)),
    "discrete-laplace": ("noise_multiplier", "sensitivity"),
    **dict.fromkeys(("exponential", "pure"), ("epsilon",)),
    "approximate": ("epsilon", "delta"),
    "zero-concentrated": ("rho",),
    "per-cell": ("multipliers", "spreads", "crossings", "column"),
    "composed": ("events",),
    "repeated": ("event", "count"),
    "poisson-sampled": ("rate", "event", "spreads"),
    "visibly-sampled": ("rate", "event"),
    "on-part": ("event", "part", "parts"),
    "private-selection": ("event", "mean", "shape"),
}
GAUSSIANS = ("gaussian", "per-cell")
NOISE = (*GAUSSIANS, "laplace", "discrete-laplace")


def event(value: Any) -> Any:
    """An event of a document as a tuple."""
    if isinstance(value, dict):
        given = {"crossings": (), "column": 0, **value}
        return (value["kind"], *(event(given[name]) for name in FIELDS[value["kind"]]))
    if isinstance(value, list | tuple):
        return tuple(event(one) for one in value)
    return math.inf if value == "inf" else value


def inside(event: Event) -> tuple[Event, ...]:
    """The events within an event."""
    if event[0] == "composed":
        return tuple(event[1])
    names = FIELDS[event[0]]
    return (event[1 + names.index("event")],) if "event" in names else ()


def made_of(whole: Event, kinds: tuple[str, ...]) -> bool:
    """Whether all that is composed and repeated is of these kinds."""
    if whole[0] in ("composed", "repeated"):
        return all(made_of(one, kinds) for one in inside(whole))
    return whole[0] in kinds


MECHANISMS = {
    "gaussian": "Gaussian",
    "laplace": "Laplace",
    "discrete-laplace": "discrete Laplace",
    "per-cell": "Gaussian by cell",
    "non-private": "exact",
}


def leaves(whole: Event, times: int = 1, rows: str = "all rows") -> Iterator[tuple[Any, ...]]:
    """(mechanism, numbers, rows, times) of everything that was released: section 4.10."""
    kind = whole[0]
    if kind == "repeated":
        times *= whole[2]
    elif kind == "poisson-sampled":
        rows = f"a secret random batch, each row with probability {whole[1]:g}"
    elif kind == "visibly-sampled":
        rows = f"a random batch that can be seen, each row with probability {whole[1]:g}"
    elif kind == "on-part":
        rows = f"one of {whole[3]} fixed parts of the rows"
    elif kind == "private-selection":
        rows += f", in the best of a random number of runs (mean {whole[2]:g}, shape {whole[3]:g})"
    if kind == "composed" or "event" in FIELDS[kind]:
        for one in inside(whole) if times else ():
            yield from leaves(one, times, rows)
    elif kind != "no-op":
        numbers = [n for part in whole[1] for n in part] if kind == "per-cell" else whole[1:]
        numbers = numbers[:1] if kind == "discrete-laplace" else numbers
        yield MECHANISMS.get(kind, kind), tuple(map(float, numbers)), rows, times


# ---- reading: section 2


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of statements (draft 2020-12)."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))
    return found


def read(text: str) -> dict[str, Any]:
    """The document in this text, of the schema's shape."""
    return require_statement(plain(text))


def require_statement(values: Any) -> dict[str, Any]:
    """The values of a statement, whole numbers as such; a `Malformed` where they are of none."""
    found: dict[str, Any] = _shaped(values, schema(), "privacy statement")
    for name in ("events", "plan"):
        if found[name] is not None:
            _require_event(found[name]["event"])
    return found


def require_part(values: Any, name: str) -> None:
    """The same of one of a statement's parts: what is, or may be listed, in this field."""
    shape = schema()["properties"][name]
    shape = shape["anyOf"][1] if "anyOf" in shape else shape
    _shaped(values, shape.get("items", shape), name)


def plain(text: str) -> Any:
    """The values of a JSON text: names once, numbers finite, levels few."""
    if len(text) > LARGEST:
        raise Malformed(f"at most {LARGEST} characters", got=f"{len(text)}")
    try:
        values = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no, parse_int=_int, parse_float=_finite
        )
        json.dumps(values, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        if isinstance(error, Malformed):
            raise
        raise Malformed("a JSON document", got=type(error).__name__) from None
    _require_levels(values, DEEPEST)
    return values


def _require_levels(value: Any, left: int) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise Malformed(f"at most {DEEPEST} levels", got="more")
        for one in value.values() if isinstance(value, dict) else value:
            _require_levels(one, left - 1)


def is_line(text: str) -> bool:
    """Whether it is printable words on one line."""
    return bool(text.strip()) and text.isprintable()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise Malformed("each field once", got="one twice")
    return out


def _no(word: str) -> NoReturn:
    raise Malformed('finite numbers (an infinite one is "inf")', got=word)


def _int(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > 2**53:
        raise Malformed("whole numbers up to 2^53", got="a larger one")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no("a larger one")


LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
    "exclusiveMaximum": (operator.lt, "below"),
}


def _shaped(value: Any, shape: dict[str, Any], place: str) -> Any:
    """The value, whole numbers as such; a `Malformed` unless it is of a schema's shape."""
    if "$ref" in shape:
        shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]]
    if "anyOf" in shape:
        for one in shape["anyOf"][:-1]:
            try:
                return _shaped(value, one, place)
            except Malformed:
                continue
        return _shaped(value, shape["anyOf"][-1], place)
    if "oneOf" in shape:  # told apart by their kinds
        kind = value.get("kind") if isinstance(value, dict) else None
        kinds = [one for one in shape["oneOf"] if one["properties"]["kind"]["const"] == kind]
        return _shaped(value, kinds[0], place) if kinds else _refuse(place, "a known kind")
    holds, expected = _of_shape(value, shape)
    if not holds:
        _refuse(place, expected, f"{sorted(value)}" if isinstance(value, dict) else value)
    if shape.get("type") == "object":
        known, out = shape.get("properties", {}), {}
        for name, one in value.items():
            _shaped(name, {"type": "string"}, place)
            inner = known.get(name) or shape["additionalProperties"]
            out[name] = _shaped(one, inner, f"{place}.{name}")
        return out
    if shape.get("type") == "array":
        return [_shaped(one, shape["items"], f"{place}[{at}]") for at, one in enumerate(value)]
    return int(value) if shape.get("type") == "integer" else value


def _of_shape(value: Any, shape: dict[str, Any]) -> tuple[bool, str]:
    """Whether a value is of a shape, its inside apart, and the shape in words."""
    kind = shape.get("type")
    if "const" in shape:
        right = value == shape["const"] and not isinstance(value, bool)
        return right, f"{shape['const']!r}"
    if "enum" in shape:
        right = isinstance(value, str) and value in shape["enum"]
        return right, f"one of {', '.join(shape['enum'])}"
    if kind == "object":
        known, given = shape.get("properties", {}), value if isinstance(value, dict) else ()
        right = isinstance(value, dict) and set(shape.get("required", ())) <= set(given)
        right = right and (bool(shape["additionalProperties"]) or set(given) <= set(known))
        return right, f"an object with the fields {', '.join(known) or 'of names'}"
    if kind == "array":
        return isinstance(value, list) and len(value) >= shape.get("minItems", 0), "a list"
    if kind == "string":
        right = isinstance(value, str) and is_line(value)
        if "hex" not in shape.get("format", ""):
            return right, "some words on one line"
        return right and len(value) == 64 and set(value) <= set("0123456789abcdef"), (
            "64 hexadecimal digits"
        )
    if kind in ("number", "integer"):
        limits = [(LIMITS[name], most) for name, most in shape.items() if name in LIMITS]
        right = type(value) in (int, float) and math.isfinite(value)
        right = right and (kind == "number" or value % 1 == 0)
        right = right and all(within(value, most) for (within, _), most in limits)
        words = " and ".join(f"{word} {most:g}" for (_, word), most in limits)
        return right, f"a {'whole ' * (kind == 'integer')}number {words}".rstrip()
    return value is None if kind == "null" else isinstance(value, bool), str(kind)


def _refuse(place: str, expected: str, got: Any = "another") -> NoReturn:
    text = repr(got) if isinstance(got, str | int | float | None) else type(got).__name__
    raise Malformed(expected, place, text if len(text) <= 120 else f"{text[:117]}...")


def _require_event(value: dict[str, Any]) -> None:
    """What a schema cannot say of events."""
    kind = value["kind"]
    for one in [*value.get("events", ()), *([value["event"]] if "event" in value else ())]:
        _require_event(one)
    if kind == "per-cell":
        rows, more = value["multipliers"], value.get("crossings") or value["spreads"]
        if {len(row) for row in rows} != {len(rows[0])} or not (
            len(rows) == len(value["spreads"]) == len(more)
        ):
            _refuse(kind, "one row of multipliers a part, all of one length, and one spread a part")
    elif kind == "on-part":
        noise = made_of(event(value["event"]), (*NOISE, "no-op"))
        if value["part"] >= value["parts"] or not noise:
            _refuse(kind, "noise on a part below the number of parts")
    elif kind == "poisson-sampled":
        parts, spreads = _parts(value["event"]), value["spreads"]
        if parts > MOST_PARTS or not made_of(event(value["event"]), GAUSSIANS):
            _refuse(kind, f"at most {MOST_PARTS} Gaussian events")
        if spreads is not None and len(spreads) != parts:
            _refuse(kind, f"{parts} spreads")
    elif kind == "visibly-sampled":
        if not made_of(event(value["event"]), (*GAUSSIANS, "no-op")):
            _refuse(kind, "Gaussian events")
    elif kind == "private-selection" and value["shape"] != "inf" and value["mean"] < 1:
        _refuse(kind, "a mean of at least 1")


def _parts(value: dict[str, Any]) -> int:
    if value["kind"] == "composed":
        return sum(_parts(one) for one in value["events"])
    return _parts(value["event"]) * value["count"] if value["kind"] == "repeated" else 1


# ---- one spelling


def checksum(values: dict[str, Any]) -> str:
    """SHA-256 of the content in the canonical spelling of RFC 8785, without the date. Shows an
    accident, proves no author."""
    content = {name: one for name, one in values.items() if name not in ("checksum", "created")}
    return f"sha256:{hashlib.sha256(canonical(content).encode()).hexdigest()}"


def canonical(value: Any) -> str:
    """JSON values in the one spelling of RFC 8785."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(canonical, value)) + "]"
    if type(value) in (int, float):
        return _number(value)
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """As ECMAScript writes numbers."""
    _, digits, power = Decimal(repr(value)).normalize().as_tuple()
    text, sign = "".join(map(str, digits)), "-" * (value < 0)
    at = len(text) + int(power)
    if -6 < at <= 0:
        return f"{sign}0.{'0' * -at}{text}"
    if 0 < at <= 21:
        return f"{sign}{text[:at]:0<{at}}{'.' * (len(text) > at)}{text[at:]}"
    return f"{sign}{text[0]}{'.' * (len(text) > 1)}{text[1:]}e{at - 1:+d}"


def stamps(epsilon: float, noise: str, user_code: str, origins: Iterable[str]) -> tuple[str, ...]:
    """The flags that a statement with these contents carries."""
    found = {
        "not-private": math.isinf(epsilon),
        "seeded-noise": noise == "seeded",
        "data-dependent-bounds": READ_FROM_DATA in origins,
        "user-code-trusted": user_code == "trusted",
    }
    return tuple(name for name, holds in found.items() if holds)
