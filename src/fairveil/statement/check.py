"""Does a privacy statement agree with itself? Reads the document strictly, by its JSON Schema
(`schema.json`), recomputes every price and sum by `rule`, and lists what contradicts.

Everything here is plain values: no numpy, no accountant, no other room of the library, so that what
`fairveil verify` rests on can be read in an evening. docs/statement_spec.md is the same in words.

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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from . import counts, rule
from .counts import Event, Unpriced
from .log import Said, is_prefix, kept, leaves, same_releases
from .rule import ON_A_GRID, SLACK, is_within

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
TWO_STEPS = "two-step"
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
    return dict(values)


def require_statement(values: Any) -> None:
    """A `Malformed` unless these are the values of a statement."""
    _require(values, schema(), "privacy statement")
    for name in ("events", "plan"):
        if values[name] is not None:
            _require_events(values[name]["event"])


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


def _require(value: Any, shape: dict[str, Any], place: str) -> None:
    if "$ref" in shape:
        shape = schema()["$defs"][shape["$ref"].rpartition("/")[2]]
    if "anyOf" in shape:
        return _require_any(value, shape["anyOf"], place)
    if "oneOf" in shape:
        return _require_kind(value, shape["oneOf"], place)
    kind = shape.get("type")
    if "const" in shape and (value != shape["const"] or isinstance(value, bool)):
        _refuse(place, f"{shape['const']!r}", value)
    if "enum" in shape and not (isinstance(value, str) and value in shape["enum"]):
        _refuse(place, f"one of {', '.join(shape['enum'])}", value)
    if kind == "object":
        known, given = shape.get("properties", {}), value if isinstance(value, dict) else {}
        missing = set(shape.get("required", ())) - set(given)
        strange = set(given) - set(known) if shape["additionalProperties"] is False else set()
        if not isinstance(value, dict) or missing or strange:
            got = sorted(given) if isinstance(value, dict) else value
            _refuse(place, f"an object with the fields {', '.join(known) or 'of names'}", f"{got}")
        for name, one in given.items():
            _require(name, {"type": "string", "format": "line"}, place)
            _require(one, known.get(name) or shape["additionalProperties"], f"{place}.{name}")
    elif kind == "array":
        if not isinstance(value, list) or len(value) < shape.get("minItems", 0):
            _refuse(place, "a list", value)
        for at, one in enumerate(value):
            _require(one, shape["items"], f"{place}[{at}]")
    elif kind == "string":
        if not isinstance(value, str) or not (value.strip() and value.isprintable()):
            _refuse(place, "some words on one line", value)
        if "hex" in shape.get("format", "") and (len(value) != 64 or set(value) - set(DIGITS)):
            _refuse(place, "64 hexadecimal digits", value)
    elif kind in ("number", "integer"):
        _require_number(value, shape, place)
    elif (kind == "null" and value is not None) or (
        kind == "boolean" and not isinstance(value, bool)
    ):
        _refuse(place, str(kind), value)


DIGITS = "0123456789abcdef"


def _require_any(value: Any, shapes: list[dict[str, Any]], place: str) -> None:
    for shape in shapes[:-1]:
        try:
            return _require(value, shape, place)
        except Malformed:
            continue
    _require(value, shapes[-1], place)


def _require_kind(value: Any, shapes: list[dict[str, Any]], place: str) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    for shape in shapes:
        if shape["properties"]["kind"]["const"] == kind:
            return _require(value, shape, place)
    _refuse(place, "an event of a known kind")


def _require_number(value: Any, shape: dict[str, Any], place: str) -> None:
    whole = shape["type"] == "integer"
    if type(value) not in (int, float) or not math.isfinite(value) or (whole and value % 1):
        _refuse(place, "a whole number" if whole else "a number", value)
    if (
        value < shape.get("minimum", -math.inf)
        or value > shape.get("maximum", math.inf)
        or value <= shape.get("exclusiveMinimum", -math.inf)
        or value >= shape.get("exclusiveMaximum", math.inf)
    ):
        _refuse(place, f"a number {_limits(shape)}", value)


def _limits(shape: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    return " and ".join(f"{word} {shape[name]:g}" for name, word in words.items() if name in shape)


def _refuse(place: str, expected: str, got: Any = "another") -> NoReturn:
    text = repr(got) if isinstance(got, str | int | float | None) else type(got).__name__
    raise Malformed(expected, place, text if len(text) <= 120 else f"{text[:117]}...")


def _require_events(value: dict[str, Any]) -> None:
    """What a schema cannot say of events."""
    kind = value["kind"]
    for one in [*value.get("events", ()), *([value["event"]] if "event" in value else ())]:
        _require_events(one)
    if kind == "per-cell":
        rows, more = value["multipliers"], value.get("crossings") or value["spreads"]
        if len({len(row) for row in rows}) != 1 or not (
            len(rows) == len(value["spreads"]) == len(more)
        ):
            _refuse(kind, "one row of multipliers a part, all of one length, and one spread a part")
    elif kind == "on-part":
        if value["part"] >= value["parts"] or not _is_noise(value["event"], ("no-op",)):
            _refuse(kind, "noise on a part below the number of parts")
    elif kind == "poisson-sampled":
        parts = _parts(value["event"])
        spreads = value["spreads"]
        if parts > counts.MOST_PARTS or not _is_noise(value["event"]):
            _refuse(kind, f"at most {counts.MOST_PARTS} noise events")
        if spreads is not None and len(spreads) != parts:
            _refuse(kind, f"{parts} spreads")
    elif kind == "private-selection" and value["shape"] != "inf" and value["mean"] < 1:
        _refuse(kind, "a mean of at least 1")


def _is_noise(value: dict[str, Any], more: tuple[str, ...] = ()) -> bool:
    if value["kind"] == "composed":
        return all(_is_noise(one, more) for one in value["events"])
    if value["kind"] == "repeated":
        return _is_noise(value["event"], more)
    return value["kind"] in (*counts.LEAVES, *more)


def _parts(value: dict[str, Any]) -> int:
    if value["kind"] == "composed":
        return sum(_parts(one) for one in value["events"])
    return _parts(value["event"]) * value["count"] if value["kind"] == "repeated" else 1


def event(value: Any) -> Any:
    """An event of a document as a tuple of `rule`."""
    if isinstance(value, dict):
        given = {"crossings": (), "column": 0, **value}
        return (value["kind"], *(event(given[name]) for name in counts.FIELDS[value["kind"]]))
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
        inner = (
            f"{json.dumps(name, ensure_ascii=False)}:{canonical(value[name])}" for name in names
        )
        return "{" + ",".join(inner) + "}"
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


# ---- what it says, as numbers


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


def charge(said: Said) -> tuple[float, bool]:
    """What is charged: the whole plan; else what the cap allows, provided that it admits the log;
    else, nothing having been fixed in advance, inf. And whether a grid was used."""
    cap = said.cap
    if said.plan is not None:
        return rule.price(said.plan, said.delta, said.neighbours)
    if cap is None:
        return (0.0 if said.nothing else math.inf), False
    found = (
        two_steps(said.events, said.delta, said.neighbours)
        if cap["kind"] == TWO_STEPS
        else _filtered(cap, said)
    )
    # what a filter admits is charged with what it allows
    return (said.budget if is_within(found, said.budget) else found[0]), found[1]


def _filtered(cap: dict[str, Any], said: Said) -> tuple[float, bool]:
    """The epsilon of the filter's own sum (spec, section 4.6)."""
    from . import losses

    kind, delta, budget = cap["kind"], said.delta, said.budget
    total = counts.inventory(said.events, said.neighbours)
    if not total.private or math.isinf(budget):
        return math.inf, False
    kept = delta * (1 - cap["reserve"])
    error = rule.whole_error(total, said.neighbours)
    if kind == "pure":
        found, leak = rule.addition(total, said.neighbours)
        kept, room = 0.0, delta
    elif kind == "gaussian":
        square, leak = total.square, 0.0
        for one, times in total.others:
            own, lost = rule.addition(
                counts.Inventory(0.0, ((one, 1),), 0.0, True), said.neighbours
            )
            if math.isinf(own):
                raise Unpriced("a filter of Gaussians takes Gaussian and pure releases alone")
            square, leak = square + times * _gaussian_below(own) ** 2, leak + times * lost
        found, room = counts.gaussian_epsilon(math.sqrt(square), kept), delta - kept
    else:
        orders: Iterable[float] = losses.ORDERS
        if kind == "renyi":
            if cap["order"] is None or kept <= 0:
                raise Unpriced("a Renyi filter names its order, and keeps some delta")
            order = min(losses.ORDERS, key=lambda a: abs(a - cap["order"]))
            values, leak, error = losses.total_moments(total, said.neighbours, order)
            orders = (order,)
        else:
            values, leak, error = losses.total_moments(total, said.neighbours)
            rho = max(value / a for value, a in zip(values, losses.ORDERS, strict=False))
            values = tuple(rho * a for a in losses.ORDERS)
        found, room = losses.moments_epsilon(values, orders, kept), delta - kept
    leak += (1 + math.exp(min(budget, 700.0))) * error if error else 0.0
    return (found if leak <= room * (1 + SLACK) else math.inf), kind in ("renyi", "zcdp")


def _gaussian_below(epsilon: float) -> float:
    """The mu with P(Z > mu/2) = 1/(1 + e^epsilon): a Gaussian of it is no easier to keep apart."""
    low, high, level = 0.0, 2.0 * math.sqrt(2 * epsilon + 4), -counts.log_sum(0.0, epsilon)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if counts.log_tail(middle / 2) > level else (low, middle)
    return high


def two_steps(whole: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """All releases but the last, and the last with one of two references (spec, section 4.7)."""
    before, after = _last_apart(kept(whole) or ("no-op",))
    first, second = (counts.inventory(one, neighbours) for one in (before, after))
    if any(
        one.private and not one.others and not one.square and not one.error
        for one in (first, second)
    ):
        return rule.price(("composed", (before, after)), delta, neighbours)
    if second.private and not second.error and not second.others:
        reference: Event = ("gaussian", (1 - 1e-15) / math.sqrt(second.square))
    else:
        epsilon, leak = rule.addition(second, neighbours)
        if not second.private or second.error or math.isinf(epsilon) or leak:
            raise Unpriced("a release after the others were seen is pure, or Gaussian")
        reference = ("pure", epsilon)
    stays = math.fsum(t * math.log1p(-one[2]) for one, t in first.others if one[0] == "approximate")
    lost = min(delta, max(0.0, -math.expm1(stays) * (1 - 1e-12)))
    share = lost + (delta - lost) / 2
    return rule.price(("composed", (before, reference)), share, neighbours)


def _last_apart(whole: Event) -> tuple[Event, Event]:
    """All releases but the last, and the last, of an event without free ones."""
    if whole[0] == "composed":
        before, after = _last_apart(whole[1][-1])
        return ("composed", (*whole[1][:-1], before)), after
    if whole[0] == "repeated":
        before, after = _last_apart(whole[1])
        return ("composed", (("repeated", whole[1], whole[2] - 1), before)), after
    return ("no-op",), whole


# ---- findings


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
    found = [*_contradictions(doc, said_in(doc))]
    return sorted(found, key=lambda one: not one.grave)


def _contradictions(doc: dict[str, Any], said: Said) -> Iterator[Finding]:
    promise, stated = doc["promise"], said.epsilon
    if doc["checksum"] != checksum(doc):
        yield _grave("checksum", "the content is not what the checksum was made of: it was changed")
    priced = doc["accounting"]["neighbours"]
    if priced != said.neighbours:
        words = f"epsilon was priced under {priced!r} neighbours, the guarantee is about"
        yield _grave("relation", f"{words} {said.neighbours!r}")
    if promise["protects"] == "sensitive_features" and said.neighbours != "replace-one":
        yield _grave("relation", "of the sensitive attributes alone neighbours are replace-one")
    unit = promise.get("unit")
    if (
        unit is not None
        and unit["max_rows"] is None
        and said.budget < math.inf
        and not said.nothing
    ):
        yield _grave("rows-of-a-person", "no largest number of rows of one person is stated")
    if doc["delta"] != said.delta:
        words = f"epsilon is stated at delta {doc['delta']:g}, the guarantee is about delta"
        yield _grave("delta", f"{words} {said.delta:g}")
    yield from _cost(said, stated)
    route = doc["accounting"]["route"]
    if _priced(_is_route, route, said) is False:
        yield _grave("route", f"the events are not priced by {route!r}")
    if stated > said.budget * (1 + SLACK):
        words = f"epsilon {_shown(stated)} is above the guarantee's {_shown(said.budget)}"
        yield _grave("guarantee", words)
    yield from _groups(doc, said)
    required = stamps(stated, doc["noise"], doc["user_code"], [b["origin"] for b in doc["bounds"]])
    for stamp in (*required, *doc["stamps"]):
        if stamp not in doc["stamps"]:
            yield _grave("flag", f"the flag {stamp!r} is missing")
        elif stamp not in required:
            yield _grave("flag", f"the flag {stamp!r} contradicts the rest")
    capped = said.plan is None and not said.nothing and said.budget < math.inf
    if capped and doc["cap"] is None:
        words = "there is neither a plan nor a filter: nothing was fixed in advance"
        yield _grave("nothing-fixed", words)
    if not capped and doc["cap"] is not None:
        yield _grave("filter", "a filter is named, but there is a plan or nothing to cap")
    if said.plan is not None and not _priced(is_prefix, said.events, said.plan, said.neighbours):
        words = "the log is not a beginning of the plan: something else was done than was planned"
        yield _grave("plan", words)
    told = [
        (one["mechanism"], tuple(map(float, one["numbers"])), one["rows"], one["times"])
        for one in doc.get("releases", ())
    ]
    if told and not same_releases(told, leaves(said.events)):
        yield _grave("releases", "the table of releases is not that of the events")
    stated_as, singles = doc["arithmetic"], doc["arithmetic"] != "exact"
    if singles != ("torch" in doc["versions"]):
        words = "the version of torch is not named" if singles else "a version of torch is named"
        yield _grave("arithmetic", f"arithmetic is stated as {stated_as!r}, and {words}")
    if singles and doc["user_code"] != "trusted":
        words = f"arithmetic is stated as {stated_as!r}, that of a module, and user code as 'none'"
        yield _grave("arithmetic", words)
    if doc["audit"] is not None and doc["audit"]["epsilon"] > stated:
        shows = f"an audit shows epsilon >= {_shown(doc['audit']['epsilon'])}"
        yield _grave("audit", f"{shows}, above the stated {_shown(stated)}")
    for name in NAMED_VERSIONS:
        if name not in doc["versions"]:
            yield _grave("version", f"the version of {name} is not named")


def _priced(function: Any, *given: Any) -> Any:
    try:
        return function(*given)
    except Malformed:
        raise
    # a stranger's events may be wrong in any way: what cannot be priced is a finding
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, MemoryError):
        return None


def _cost(said: Said, stated: float) -> Iterator[Finding]:
    found = _priced(charge, said)
    if found is None:
        yield _grave("unpriced", "the events cannot be priced")
    elif not is_within(found, stated):
        words = f"epsilon is stated as {_shown(stated)}, the events cost {_shown(found[0])}"
        yield _grave("epsilon", words)
    elif math.isinf(stated) and not math.isinf(found[0]):
        words = f"epsilon is stated as inf, the events cost {_shown(found[0])}: nothing in them is"
        yield _grave("epsilon", f"{words} unprotected")
    elif stated > found[0] * (1 + (ON_A_GRID if found[1] else SLACK)):
        words = f"epsilon is stated as {_shown(stated)}, above the {_shown(found[0])} that the events cost"
        yield Finding(False, words)


def _is_route(route: str, said: Said) -> bool:
    """Whether a price of these events can have been computed so (spec, section 4.2)."""
    if said.plan is None and said.cap is not None:
        return route == (
            "two steps" if said.cap["kind"] == TWO_STEPS else f"{said.cap['kind']} filter"
        )
    if math.isinf(said.epsilon):
        return route in ("none", "Renyi")
    total = counts.inventory(said.plan or said.events, said.neighbours)
    if not total.private:
        return True  # the price tells
    if total.others:
        return route in ("addition", "privacy-loss distribution", "Renyi")
    return route == ("closed form" if total.square else "nothing read")


def _groups(doc: dict[str, Any], said: Said) -> Iterator[Finding]:
    if not doc.get("groups"):
        return
    from .groups import group_epsilons, keeps

    columns: dict[int, list[dict[str, Any]]] = {}
    for group in doc.get("groups", ()):
        columns.setdefault(group["column"], []).append(group)
    for column, groups in columns.items():
        cells = len(groups)
        if (
            sorted(group["cell"] for group in groups) != list(range(cells))
            or len({group["fixed"] for group in groups}) != 1
            or len({group["name"] for group in groups}) < cells
        ):
            yield _grave("groups", f"the groups of column {column} are not one a cell")
            continue
        found = _priced(group_epsilons, said, cells, column, groups[0]["fixed"])
        if found is None:
            yield _grave("groups", f"the groups of column {column} cannot be priced")
            continue
        for group in groups:
            name = group["name"]
            pays = found[group["cell"]]
            told = event(group["epsilon"])
            words = f"epsilon of group {name!r} is stated as {_shown(told)}"
            if not is_within(pays, told):
                yield _grave("group", f"{words}, the events cost {_shown(pays[0])}")
            elif told > pays[0] * (1 + (ON_A_GRID if pays[1] else SLACK)):
                yield Finding(False, f"{words}, above the {_shown(pays[0])} that the events cost")
            if group.get("limit") is not None and not _priced(
                keeps, said, float(group["limit"]), group["cell"], column, cells
            ):
                words = f"group {name!r} has a limit of {_shown(group['limit'])}"
                yield _grave("limit", f"{words}, which its events exceed")


def _grave(code: str, sentence: str) -> Finding:
    return Finding(True, sentence, code)


def _shown(value: float) -> str:
    return "inf" if math.isinf(value) else f"{value:.10g}"
