"""Does a privacy statement agree with itself? Reads the document strictly, by its JSON Schema
(`schema.json`), recomputes every price and sum by `rule`, and lists what contradicts.

Everything here is plain values: no numpy, no other room of the library, so that what `fairveil verify`
rests on can be read in an evening; the accountant of `core` is loaded only for events without a closed
form. docs/statement_spec.md is the same in words.

Guarantees (tests/statement/).
1. `read` refuses what is not a statement with `Malformed`, whatever the text; nothing keeps it busy.
2. A statement without a contradiction states no smaller epsilon than its events cost, but for the
   stated tolerances (`SLACK`, `ON_A_GRID`).
3. A field that follows from others is compared with them: `RECOMPUTED`. The others are `ON_TRUST`.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from . import rule
from .rule import ON_A_GRID, SLACK, Said, is_within

RECOMPUTED = ("epsilon", "delta", "accounting", "groups", "stamps", "releases", "checksum")
ON_TRUST = (
    *("promise", "events", "plan", "cap", "facts", "bounds", "not_covered", "notes", "tuning"),
    *("earlier_releases", "audit", "noise", "arithmetic", "user_code", "versions", "created"),
    "ledger",
)
"""Fields that are taken as they are: nobody can tell from a statement alone whether they are true.
A signature says who stands by them."""
NAMED_VERSIONS = ("fairveil", "python", "numpy", "scipy")
READ_FROM_DATA: Final = "read from the data, not covered"
FORMAT, VERSION = "fairveil privacy statement", 1
MORE = ("groups", "ledger", "releases", "notes")
"""Fields that a document need not have."""
DEEPEST, LARGEST = 200, 1 << 26


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


# ---- reading


def read(text: str) -> dict[str, Any]:
    """The document in this text, of the schema's shape."""
    values = plain(text)
    require_statement(values)
    return dict(_whole(values))


WHOLE = ("count", "part", "parts", "column", "cell", "crossings", "times", "entry", "max_rows")


def _whole(value: Any, name: object = "") -> Any:
    """The same, whole numbers that were written with a point as whole numbers."""
    if isinstance(value, dict):
        named: dict[str, str] = {"sensitivity": "part"} if "kind" in value else {}  # of integers
        return {one: _whole(inner, named.get(one, one)) for one, inner in value.items()}
    if isinstance(value, list):
        return [_whole(one, name) for one in value]
    return int(value) if isinstance(value, float) and name in WHOLE else value


def require_statement(values: Any) -> None:
    """A `Malformed` unless these are the values of a statement."""
    _require(values, schema(), "privacy statement")
    for name in ("events", "plan"):
        if values[name] is not None:
            _require_event(values[name]["event"])


def require_part(values: Any, name: str) -> None:
    """The same of one of a statement's parts: what is, or may be listed, in this field."""
    shape = schema()["properties"][name]
    shape = shape["anyOf"][1] if "anyOf" in shape else shape
    _require(values, shape.get("items", shape), name)


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
    if math.isinf(value):
        raise Malformed("finite numbers", got="a larger one")
    return value


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of statements (draft 2020-12)."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))
    return found


LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "at least"),
    "exclusiveMinimum": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
    "exclusiveMaximum": (operator.lt, "below"),
}
DIGITS = "0123456789abcdef"


def _require(value: Any, shape: dict[str, Any], place: str) -> None:
    """A `Malformed` unless a value is of a schema's shape."""
    if "$ref" in shape:
        shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]]
    if "anyOf" in shape:
        for one in shape["anyOf"][:-1]:
            try:
                return _require(value, one, place)
            except Malformed:
                continue
        return _require(value, shape["anyOf"][-1], place)
    if "oneOf" in shape:  # told apart by their kinds
        kind = value.get("kind") if isinstance(value, dict) else None
        kinds = [one for one in shape["oneOf"] if one["properties"]["kind"]["const"] == kind]
        return _require(value, kinds[0], place) if kinds else _refuse(place, "a known kind")
    holds, expected = _of_shape(value, shape)
    if not holds:
        _refuse(place, expected, f"{sorted(value)}" if isinstance(value, dict) else value)
    if shape.get("type") == "object":
        for name, one in value.items():
            _require(name, {"type": "string"}, place)
            inner = shape.get("properties", {}).get(name) or shape["additionalProperties"]
            _require(one, inner, f"{place}.{name}")
    elif shape.get("type") == "array":
        for at, one in enumerate(value):
            _require(one, shape["items"], f"{place}[{at}]")
    return None


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
        right = isinstance(value, str) and bool(value.strip()) and value.isprintable()
        if "hex" not in shape.get("format", ""):
            return right, "some words on one line"
        return right and len(value) == 64 and set(value) <= set(DIGITS), "64 hexadecimal digits"
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
        noise = rule.made_of(event(value["event"]), (*rule.LEAVES, "no-op"))
        if value["part"] >= value["parts"] or not noise:
            _refuse(kind, "noise on a part below the number of parts")
    elif kind == "poisson-sampled":
        parts, spreads = _parts(value["event"]), value["spreads"]
        if parts > rule.MOST_PARTS or not rule.made_of(event(value["event"]), rule.LEAVES):
            _refuse(kind, f"at most {rule.MOST_PARTS} noise events")
        if spreads is not None and len(spreads) != parts:
            _refuse(kind, f"{parts} spreads")
    elif kind == "private-selection" and value["shape"] != "inf" and value["mean"] < 1:
        _refuse(kind, "a mean of at least 1")


def _parts(value: dict[str, Any]) -> int:
    if value["kind"] == "composed":
        return sum(_parts(one) for one in value["events"])
    return _parts(value["event"]) * value["count"] if value["kind"] == "repeated" else 1


def event(value: Any) -> Any:
    """An event of a document as a tuple of `rule`."""
    if isinstance(value, dict):
        given = {"crossings": (), "column": 0, **value}
        return (value["kind"], *(event(given[name]) for name in rule.FIELDS[value["kind"]]))
    if isinstance(value, list | tuple):
        return tuple(event(one) for one in value)
    return math.inf if value == "inf" else value


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


# ---- what contradicts: section 5 of the specification


def said_in(doc: dict[str, Any]) -> Said:
    """What prices follow from in a document."""
    promise, plan = doc["promise"], doc["plan"]
    return Said(
        event(doc["events"]["event"]),
        None if plan is None else event(plan["event"]),
        doc["cap"],
        event(doc["epsilon"]),
        event(promise["epsilon"]),
        promise["delta"],
        promise["neighbours"],
    )


def stamps(epsilon: float, noise: str, user_code: str, origins: Iterable[str]) -> tuple[str, ...]:
    """The flags that a statement with these contents carries."""
    found = {
        "not-private": math.isinf(epsilon),
        "seeded-noise": noise == "seeded",
        "data-dependent-bounds": READ_FROM_DATA in origins,
        "user-code-trusted": user_code == "trusted",
    }
    return tuple(name for name, holds in found.items() if holds)


def findings(doc: dict[str, Any]) -> list[Finding]:
    """All contradictions of a document that `read` accepts, and then what is only noted."""
    said = said_in(doc)
    found = [
        *(Finding(True, sentence, code) for code, wrong, sentence in _rules(doc, said) if wrong),
        *_cost(said),
        *_groups(doc, said),
    ]
    return sorted(found, key=lambda one: not one.grave)


def _rules(doc: dict[str, Any], said: Said) -> Iterator[tuple[str, Any, str]]:
    """(code, whether it is broken, what contradicts) of every rule without a price."""
    promise, noise, audit, named = doc["promise"], doc["noise"], doc["audit"], doc["versions"]
    unit, mine, route = promise.get("unit"), said.neighbours, doc["accounting"]["route"]
    priced, stated, singles = doc["accounting"]["neighbours"], said.epsilon, doc["arithmetic"]
    capped = not said.nothing and not math.isinf(said.budget)
    words = "the content is not what the checksum was made of: it was changed"
    yield "checksum", doc["checksum"] != checksum(doc), words
    words = f"epsilon was priced under {priced!r} neighbours, the guarantee is about {mine!r}"
    yield "relation", priced != mine, words
    alone = promise["protects"] == "sensitive_features"
    words = "of the sensitive attributes alone neighbours are replace-one"
    yield "relation", alone and mine != "replace-one", words
    endless = unit is not None and unit["max_rows"] is None and capped
    yield "rows-of-a-person", endless, "no largest number of rows of one person is stated"
    words = f"epsilon is stated at delta {doc['delta']:g}, the guarantee is about delta"
    yield "delta", doc["delta"] != said.delta, f"{words} {said.delta:g}"
    words = f"the events are not priced by {route!r}"
    yield "route", _priced(rule.is_route, route, said) is False, words
    words = f"epsilon {_shown(stated)} is above the guarantee's {_shown(said.budget)}"
    yield "guarantee", stated > said.budget * (1 + SLACK), words
    origins = [bound["origin"] for bound in doc["bounds"]]
    required = stamps(stated, noise, doc["user_code"], origins)
    for stamp in required:
        yield "flag", stamp not in doc["stamps"], f"the flag {stamp!r} is missing"
    for stamp in doc["stamps"]:
        yield "flag", stamp not in required, f"the flag {stamp!r} contradicts the rest"
    capped = capped and said.plan is None
    words = "there is neither a plan nor a filter: nothing was fixed in advance"
    yield "nothing-fixed", capped and said.cap is None, words
    words = "a filter is named, but there is a plan or nothing to cap"
    yield "filter", not capped and said.cap is not None, words
    begun = said.plan is None or _priced(rule.is_prefix, said.events, said.plan, mine)
    words = "the log is not a beginning of the plan: something else was done than was planned"
    yield "plan", not begun, words
    told = [
        (one["mechanism"], tuple(map(float, one["numbers"])), one["rows"], one["times"])
        for one in doc.get("releases", ())
    ]
    other = told and not rule.same_releases(told, rule.leaves(said.events))
    yield "releases", other, "the table of releases is not that of the events"
    has = "a version of torch is named" if "torch" in named else "the version of torch is not named"
    words = f"arithmetic is stated as {singles!r}, and {has}"
    yield "arithmetic", (singles != "exact") != ("torch" in named), words
    words = f"arithmetic is stated as {singles!r}, that of a module, and user code as 'none'"
    yield "arithmetic", singles != "exact" and doc["user_code"] != "trusted", words
    shows = 0.0 if audit is None else audit["epsilon"]
    words = f"an audit shows epsilon >= {_shown(shows)}, above the stated {_shown(stated)}"
    yield "audit", shows > stated, words
    for name in NAMED_VERSIONS:
        yield "version", name not in named, f"the version of {name} is not named"


def _priced(function: Any, *given: Any) -> Any:
    try:
        return function(*given)
    except Malformed:
        raise
    # a stranger's events may be wrong in any way: what cannot be priced is a finding
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, MemoryError):
        return None


def _compared(code: str, of: str, stated: float, found: tuple[float, bool]) -> Iterator[Finding]:
    """A stated epsilon beside the one that was found."""
    words = f"epsilon{of} is stated as {_shown(stated)}"
    if not is_within(found, stated):
        yield Finding(True, f"{words}, the events cost {_shown(found[0])}", code)
    elif stated > found[0] * (1 + (ON_A_GRID if found[1] else SLACK)):
        yield Finding(False, f"{words}, above the {_shown(found[0])} that the events cost")


def _cost(said: Said) -> Iterator[Finding]:
    found, stated = _priced(rule.charge, said), said.epsilon
    if found is None:
        yield Finding(True, "the events cannot be priced", "unpriced")
    elif math.isinf(stated) and not math.isinf(found[0]):
        words = f"epsilon is stated as inf, the events cost {_shown(found[0])}: nothing in them is"
        yield Finding(True, f"{words} unprotected", "epsilon")
    else:
        yield from _compared("epsilon", "", stated, found)


def _groups(doc: dict[str, Any], said: Said) -> Iterator[Finding]:
    if not doc.get("groups"):
        return
    from .groups import Cells, group_epsilons, keeps

    columns: dict[int, list[dict[str, Any]]] = {}
    for group in doc.get("groups", ()):
        columns.setdefault(group["column"], []).append(group)
    for number, groups in columns.items():
        column, fixed = Cells(number, len(groups)), groups[0]["fixed"]
        each = sorted(group["cell"] for group in groups) == list(range(len(groups)))
        alike = all(group["fixed"] == fixed for group in groups)
        if not (each and alike and len({group["name"] for group in groups}) == len(groups)):
            words = f"the groups of column {number} are not one a cell"
            yield Finding(True, words, "groups")
            continue
        found = _priced(group_epsilons, said, column, fixed)
        if found is None:
            yield Finding(True, f"the groups of column {number} cannot be priced", "groups")
            continue
        for group in groups:
            name, cell, limit = group["name"], group["cell"], group.get("limit")
            yield from _compared(
                "group", f" of group {name!r}", event(group["epsilon"]), found[cell]
            )
            if limit is not None and not _priced(keeps, said, float(limit), cell, column):
                words = f"group {name!r} has a limit of {_shown(limit)}, which its events exceed"
                yield Finding(True, words, "limit")


def _shown(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.10g}"
