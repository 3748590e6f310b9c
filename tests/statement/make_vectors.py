"""Writes the test vectors of privacy statements: `python tests/statement/make_vectors.py`.

Each file of `vectors/` is one statement (or a text that is none) with the verdict that any checker
must come to, and the codes of the rules that it breaks. The verdicts are written here by hand, from
docs/statement_spec.md: no checker's answer is copied.
"""

from __future__ import annotations

import base64
import copy
import json
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairveil.core.events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    NonPrivate,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
)
from fairveil.privacy import Filter, Promise, TwoSteps, Unit
from fairveil.statement.document import (
    Audit,
    NamedGroups,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    releases_of,
)
from fairveil.statement.form import READ_FROM_DATA, canonical, checksum
from fairveil.statement.signing import Signature, fingerprint, public_pem, signed_text

FOLDER = Path(__file__).with_name("vectors")
ONE, REPLACE = Promise(1.0, 1e-6), Promise(1.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(2.0, 1e-5, protects="sensitive_features")
WIDE, WIDE_REPLACE = Promise(9.0, 1e-6), Promise(9.0, 1e-6, neighbours="replace-one")
VERSIONS = (("fairveil", "0.3"), ("python", "3.11.7"), ("numpy", "2.1.0"), ("scipy", "1.14.0"))
Change = Callable[[dict[str, Any]], Any]


def stated(promise: Promise, done: list[Event], **more: Any) -> dict[str, Any]:
    """The document of a statement with a plan that was followed."""
    options: dict[str, Any] = {"plan": done, "created": "2026-01-01", **more}
    made = PrivacyStatement.of(promise, options.pop("events", done), **options)
    torch = (("torch", "2.5"),) if made.arithmetic != "exact" else ()
    return replace(made, versions=(*VERSIONS, *torch)).to_dict()


def chosen(promise: Promise, log: list[Event], **more: Any) -> dict[str, Any]:
    """One without a plan: answers were chosen one after another."""
    return stated(promise, log, plan=None, events=log, **more)


GAUSSIANS: list[Event] = [Gaussian(20.0), *[Gaussian(60.0)] * 50]
BATCHES: list[Event] = [Repeated(PoissonSampled(0.02, Gaussian(1.5)), 60)]
COUNTS: list[Event] = [*[Gaussian(9.0)] * 4, DiscreteLaplace(5.0), DiscreteLaplace(8.0, 2)]
CELLS = PerCell(((40.0, 120.0),), (2.0,))
BY_CELL: list[Event] = [Gaussian(20.0), *[CELLS] * 50]
GROUPS = [NamedGroups(("few", "many"))]
EPISODE = [OnPart(Gaussian(6.0), part, 4) for part in range(4)]

CONSISTENT: dict[str, Callable[[], dict[str, Any]]] = {
    "gaussians": lambda: stated(ONE, GAUSSIANS),
    # whole numbers beyond 2^53, as ECMAScript writes them
    "numbers-of-many-digits": lambda: stated(ONE, [Gaussian(4.862048283708252e19), Gaussian(3e22)]),
    "whole-numbers-with-points": lambda: stated(ONE, BY_CELL, groups=GROUPS),
    "interrupted": lambda: stated(ONE, GAUSSIANS, events=GAUSSIANS[:7]),
    "nothing": lambda: stated(ONE, []),
    "not-private": lambda: stated(Promise(math.inf, 0.0), [NonPrivate()]),
    "pure-counts": lambda: stated(Promise(1.0, 0.0), [DiscreteLaplace(3.0)] * 3),
    "gaussians-and-counts": lambda: stated(WIDE, COUNTS),
    "batches-add-remove": lambda: stated(WIDE, BATCHES),
    "batches-replace-one": lambda: stated(WIDE_REPLACE, BATCHES),
    "joint-batches": lambda: stated(
        WIDE_REPLACE,
        [Repeated(PoissonSampled(0.05, Composed((Gaussian(4.0), Gaussian(8.0)))), 30)],
    ),
    "choices": lambda: stated(
        WIDE, [Repeated(Exponential(0.05), 50), Repeated(Gaussian(30.0), 50)]
    ),
    "moments": lambda: stated(WIDE, [ZeroConcentrated(0.05), ZeroConcentrated(0.01)]),
    "search": lambda: stated(WIDE, [PrivateSelection(Approximate(0.3, 1e-9), 5.0, 1.0)]),
    "search-poisson": lambda: stated(WIDE, [PrivateSelection(Gaussian(10.0), 5.0, math.inf)]),
    "known-by-epsilon-and-delta": lambda: stated(WIDE, [Approximate(0.5, 1e-7), Gaussian(6.0)]),
    "visible-batches": lambda: stated(
        WIDE_REPLACE, [Repeated(VisiblySampled(0.1, Gaussian(5.0)), 10)]
    ),
    "parts": lambda: stated(WIDE_REPLACE, [*EPISODE, *EPISODE]),
    "cells-fixed": lambda: stated(ONE, BY_CELL, groups=GROUPS),
    "cells-replace-one": lambda: stated(
        WIDE_REPLACE,
        [PerCell(((9.0, 12.0, 30.0),), (2.0,), (1,)), CELLS, PerCell(((8.0, 9.0, 9.0),), (0.0,))],
        groups=[NamedGroups(("a", "b", "c"))],
    ),
    "cells-later": lambda: stated(
        ONE,
        [Gaussian(20.0), *[Gaussian(40.0)] * 50],
        events=BY_CELL,
        groups=[NamedGroups(("few", "many"), fixed=False)],
    ),
    "cells-limited": lambda: stated(
        ONE, BY_CELL, groups=[NamedGroups(("few", "many"), limits=(0.9, 0.5))]
    ),
    "cells-in-batches": lambda: stated(
        WIDE_REPLACE,
        [Repeated(PoissonSampled(0.1, PerCell(((10.0, 20.0),), (2.0,))), 10)],
        groups=GROUPS,
    ),
    "sensitive-only": lambda: stated(
        SENSITIVE, [PerCell(((4.0, 5.0),), (0.0,), (-1,)), Gaussian(3.0)]
    ),
    "filter-gaussian": lambda: chosen(
        ONE, [Gaussian(8.0), Pure(0.05), Gaussian(9.0)], cap=Filter.create(ONE)
    ),
    "filter-renyi": lambda: chosen(ONE, [Gaussian(12.0), Exponential(0.1), DiscreteLaplace(20.0)]),
    "filter-renyi-batches": lambda: chosen(
        ONE, [Repeated(PoissonSampled(0.01, Gaussian(2.0)), 30)]
    ),
    "filter-pure": lambda: chosen(Promise(1.0, 0.0), [DiscreteLaplace(4.0)] * 3),
    "two-steps": lambda: chosen(ONE, [Gaussian(8.0), DiscreteLaplace(2.2)], cap=TwoSteps(ONE)),
    "two-steps-gaussian": lambda: chosen(ONE, [Gaussian(12.0), Gaussian(7.0)], cap=TwoSteps(ONE)),
    "everything-said": lambda: {
        **stated(
            WIDE,
            COUNTS,
            facts=[PublicFact("rows", "some 30 000", READ_FROM_DATA)],
            bounds=[StatedBound("a sum", "L2", 1.5, "seen", READ_FROM_DATA)],
            not_covered=["held-out tables were exact"],
            tuning="one fit",
            earlier_releases="none",
            audit=Audit(0.1, 0.95, "membership inference"),
            noise="seeded",
            arithmetic="float32-by-row",
            user_code="trusted",
            ledger=Receipt("people", "5f1d", 12, "0a" * 32),
            releases=releases_of(((f"query {k}",), event) for k, event in enumerate(COUNTS)),
        ),
        "notes": ["rows were set aside by coins", "Ärzte, 数, \U0001f600"],
    },
    "persons": lambda: stated(
        Promise(1.0, 1e-6, unit=Unit("patient", 12)), GAUSSIANS, tuning="one fit"
    ),
    "more-than-the-cost": lambda: {**stated(ONE, GAUSSIANS), "epsilon": 0.9},
    "within-the-tolerance": lambda: scaled(stated(WIDE, BATCHES), 1 - 2e-4),
}


def scaled(doc: dict[str, Any], factor: float) -> dict[str, Any]:
    """The same, another epsilon."""
    return {**doc, "epsilon": doc["epsilon"] * factor}


def at(path: str, value: Any) -> Change:
    """Sets one value; of a function, to what it makes of the old one."""

    def change(doc: dict[str, Any]) -> None:
        *steps, last = (
            int(step) if step.lstrip("-").isdigit() else step for step in path.split(".")
        )
        for step in steps:
            doc = doc[step]
        doc[last] = value(doc[last]) if callable(value) else value  # type: ignore[index]

    return change


def gone(name: str) -> Change:
    """Takes one field away."""
    return lambda doc: doc.pop(name)


PLANNED = "plan.event.events"
# name: (of which consistent one, codes, changes)
FORGED: dict[str, tuple[str, list[str], list[Change]]] = {
    "epsilon-lowered": ("gaussians", ["epsilon"], [at("epsilon", lambda e: e * 0.999)]),
    "epsilon-lowered-a-little": (
        "gaussians",
        ["epsilon"],
        [at("epsilon", lambda e: e * (1 - 1e-7))],
    ),
    "epsilon-zero": ("gaussians", ["epsilon"], [at("epsilon", 0.0)]),
    "batches-lowered": ("batches-add-remove", ["epsilon"], [at("epsilon", lambda e: e * 0.995)]),
    "counts-lowered": ("gaussians-and-counts", ["epsilon"], [at("epsilon", lambda e: e * 0.995)]),
    "choices-lowered": ("choices", ["epsilon"], [at("epsilon", lambda e: e * 0.995)]),
    "search-lowered": ("search", ["epsilon"], [at("epsilon", lambda e: e * 0.995)]),
    "moments-lowered": ("moments", ["epsilon"], [at("epsilon", lambda e: e * 0.995)]),
    "parts-lowered": ("parts", ["epsilon"], [at("epsilon", lambda e: e * 0.8)]),
    "noise-in-plan-and-log": (
        "gaussians",
        ["epsilon"],
        [at(f"{part}.event.events.0.noise_multiplier", 12.0) for part in ("events", "plan")],
    ),
    "rounds-in-plan": ("gaussians", ["epsilon"], [at(f"{PLANNED}.1.count", 60)]),
    "rate": (
        "batches-add-remove",
        ["epsilon"],
        [at(f"{part}.event.events.0.event.rate", 0.04) for part in ("events", "plan")],
    ),
    "other-relation": (
        "batches-add-remove",
        ["epsilon"],
        [at("promise.neighbours", "replace-one"), at("accounting.neighbours", "replace-one")],
    ),
    "relation-of-the-price": (
        "gaussians",
        ["relation"],
        [at("accounting.neighbours", "replace-one")],
    ),
    "sensitive-under-add-remove": (
        "gaussians",
        ["relation"],
        [at("promise.protects", "sensitive_features")],
    ),
    "delta-of-the-price": ("gaussians", ["delta"], [at("delta", 1e-5)]),
    "smaller-delta": (
        "gaussians",
        ["epsilon"],
        [at("delta", 1e-8), at("promise.delta", 1e-8)],
    ),
    "nothing-read": ("gaussians", ["route"], [at("accounting.route", "nothing read")]),
    "route-of-a-filter": ("gaussians", ["route"], [at("accounting.route", "renyi filter")]),
    "route-of-a-plan": ("filter-gaussian", ["route"], [at("accounting.route", "closed form")]),
    "groups-of-one-name": ("cells-fixed", ["groups"], [at("groups.1.name", "few")]),
    "beyond-the-guarantee": ("gaussians", ["guarantee"], [at("promise.epsilon", 0.4)]),
    "log-beyond-the-plan": ("gaussians", ["plan"], [at("events.event.events.1.count", 51)]),
    "log-with-less-noise": (
        "gaussians",
        ["plan"],
        [at("events.event.events.0.noise_multiplier", 19.0)],
    ),
    "cells-with-less-noise": (
        "cells-later",
        ["group", "plan"],
        [at("events.event.events.1.event.multipliers", [[39.0, 120.0]])],
    ),
    "no-plan-no-filter": ("gaussians", ["epsilon", "nothing-fixed"], [at("plan", None)]),
    "filter-beside-a-plan": (
        "gaussians",
        ["filter"],
        [at("cap", {"kind": "gaussian", "order": None, "reserve": 0.01})],
    ),
    "unprotected": (
        "gaussians",
        ["epsilon"],
        [at(f"{part}.event.events.0", {"kind": "non-private"}) for part in ("events", "plan")],
    ),
    "infinite-without-need": (
        "gaussians",
        ["epsilon", "guarantee", "route"],
        [at("epsilon", "inf"), at("stamps", ["not-private"])],
    ),
    "flag-of-no-privacy-removed": ("not-private", ["flag"], [at("stamps", [])]),
    "flag-of-seeds-removed": (
        "everything-said",
        ["flag"],
        [at("stamps", lambda s: [x for x in s if x != "seeded-noise"])],
    ),
    "flag-of-bounds-removed": (
        "everything-said",
        ["flag"],
        [at("stamps", lambda s: [x for x in s if x != "data-dependent-bounds"])],
    ),
    "flag-of-code-removed": (
        "everything-said",
        ["flag"],
        [at("stamps", lambda s: [x for x in s if x != "user-code-trusted"])],
    ),
    "flag-added": ("gaussians", ["flag"], [at("stamps", ["seeded-noise"])]),
    "seeds-denied": ("everything-said", ["flag"], [at("noise", "secure")]),
    "audit-refutes": ("everything-said", ["audit"], [at("audit.epsilon", 5.0)]),
    "torch-not-named": (
        "everything-said",
        ["arithmetic"],
        [at("versions", lambda v: {k: one for k, one in v.items() if k != "torch"})],
    ),
    "module-without-user-code": (
        "everything-said",
        ["arithmetic"],
        [at("user_code", "none"), at("stamps", lambda s: [x for x in s if "user" not in x])],
    ),
    "torch-and-exact": (
        "gaussians",
        ["arithmetic"],
        [at("versions", lambda v: {**v, "torch": "2.5"})],
    ),
    "version-not-named": (
        "gaussians",
        ["version"],
        [at("versions", lambda v: {k: one for k, one in v.items() if k != "scipy"})],
    ),
    "releases-fewer": ("everything-said", ["releases"], [at("releases", lambda r: r[1:])]),
    "releases-with-more-noise": (
        "everything-said",
        ["releases"],
        [at("releases.0.numbers", [90.0])],
    ),
    "releases-of-a-batch": (
        "everything-said",
        ["releases"],
        [at("releases.0.rows", "a secret random batch, each row with probability 0.1")],
    ),
    "group-lowered": ("cells-fixed", ["group"], [at("groups.1.epsilon", lambda e: e * 0.999)]),
    "group-lowered-later": ("cells-later", ["group"], [at("groups.0.epsilon", lambda e: e * 0.99)]),
    "group-in-batches-lowered": (
        "cells-in-batches",
        ["group"],
        [at("groups.1.epsilon", lambda e: e * 0.99)],
    ),
    "group-left-out": ("cells-fixed", ["groups"], [at("groups", lambda g: g[1:])]),
    "group-twice": ("cells-fixed", ["groups"], [at("groups.1.cell", 0)]),
    "group-of-no-cell": ("cells-fixed", ["groups"], [at("groups", lambda g: g[:1])]),
    "group-limit": ("cells-limited", ["limit"], [at("groups.0.limit", 0.7)]),
    "shares-called-fixed": (
        "cells-later",
        ["group"],
        [at("groups.0.fixed", True), at("groups.1.fixed", True), at("groups.1.epsilon", 0.3)],
    ),
    "filter-log-too-long": (
        "filter-gaussian",
        ["epsilon"],
        [at("events.event.events", lambda events: events * 4)],
    ),
    "filter-epsilon-lowered": ("filter-renyi", ["epsilon"], [at("epsilon", 0.9)]),
    "filter-without-an-order": ("filter-renyi", ["unpriced"], [at("cap.order", None)]),
    "filter-of-another-kind": (
        "filter-renyi",
        ["unpriced"],
        [
            at("cap", {"kind": "gaussian", "order": None, "reserve": 0.01}),
            at("accounting.route", "gaussian filter"),
            at("events.event.events.1", {"kind": "zero-concentrated", "rho": 0.001}),
        ],
    ),
    "filter-reserve": ("filter-gaussian", ["epsilon"], [at("cap.reserve", 0.9999999)]),
    "filter-leak": (
        "filter-gaussian",
        ["epsilon"],
        [at("events.event.events.1", {"kind": "approximate", "epsilon": 0.2, "delta": 5e-8})],
    ),
    "two-steps-last-too-loud": (
        "two-steps",
        ["epsilon"],
        [at("events.event.events.1.noise_multiplier", 1.8)],
    ),
    "two-steps-of-a-choice-by-moments": (
        "two-steps",
        ["unpriced"],
        [at("events.event.events.1", {"kind": "zero-concentrated", "rho": 0.001})],
    ),
    "visible-under-add-remove": (
        "visible-batches",
        ["unpriced"],
        [at("promise.neighbours", "add-remove"), at("accounting.neighbours", "add-remove")],
    ),
    "parts-under-add-remove": (
        "parts",
        ["unpriced"],
        [at("promise.neighbours", "add-remove"), at("accounting.neighbours", "add-remove")],
    ),
    "rows-of-a-person": ("persons", ["rows-of-a-person"], [at("promise.unit.max_rows", None)]),
}
UNSEALED: dict[str, tuple[str, list[Change]]] = {
    "word-changed": ("gaussians", [at("earlier_releases", "none at all")]),
    "sum-changed": ("gaussians", [at("checksum", "sha256:" + "0" * 64)]),
}
MALFORMED: dict[str, list[Change]] = {
    "field-added": [at("more", 1)],
    "field-missing": [gone("noise")],
    "version-2": [at("version", 2)],
    "version-true": [at("version", True)],
    "epsilon-negative": [at("epsilon", -1.0)],
    "epsilon-text": [at("epsilon", "1")],
    "epsilon-null": [at("epsilon", None)],
    "delta-one": [at("delta", 1.0)],
    "unknown-event": [at("events.event.events.0.kind", "magic")],
    "event-without-noise": [at("events.event.events.0.noise_multiplier", 0.0)],
    "event-with-a-field-more": [at("events.event.events.0.more", 1)],
    "count-of-a-half": [at("events.event.events.1.count", 1.5)],
    "count-negative": [at("events.event.events.1.count", -1)],
    "rate-above-one": [
        at(
            "events.event.events.0",
            {"kind": "poisson-sampled", "rate": 1.5, "event": {"kind": "no-op"}, "spreads": None},
        )
    ],
    "visible-batch-of-counts": [
        at(
            "events.event.events.0",
            {
                "kind": "visibly-sampled",
                "rate": 0.5,
                "event": {"kind": "discrete-laplace", "noise_multiplier": 2.0, "sensitivity": 1},
            },
        )
    ],
    "filter-of-no-known-kind": [
        at("plan", None),
        at("cap", {"kind": "zcdp", "order": None, "reserve": 0.01}),
    ],
    "batch-of-a-choice": [
        at(
            "events.event.events.0",
            {
                "kind": "poisson-sampled",
                "rate": 0.5,
                "spreads": None,
                "event": {"kind": "exponential", "epsilon": 1.0},
            },
        )
    ],
    "batch-of-too-many": [
        at(
            "events.event.events.0",
            {
                "kind": "poisson-sampled",
                "rate": 0.5,
                "spreads": None,
                "event": {
                    "kind": "repeated",
                    "count": 2**50,
                    "event": {"kind": "gaussian", "noise_multiplier": 1.0},
                },
            },
        )
    ],
    "cells-of-two-lengths": [
        at(
            "events.event.events.0",
            {"kind": "per-cell", "multipliers": [[1.0], [1.0, 2.0]], "spreads": [1.0, 1.0]},
        )
    ],
    "part-beyond-the-parts": [
        at(
            "events.event.events.0",
            {
                "kind": "on-part",
                "part": 4,
                "parts": 4,
                "event": {"kind": "gaussian", "noise_multiplier": 1.0},
            },
        )
    ],
    "origin-unknown": [at("facts", [{"name": "a", "value": "b", "origin": "hearsay"}])],
    "control-codes": [at("tuning", "\x1b[2Jone fit")],
    "two-lines": [at("notes", ["one\ntwo"])],
    "empty-words": [at("not_covered", [" "])],
    "stamps-of-another-kind": [at("stamps", "seeded-noise")],
    "hash-too-short": [at("ledger", {"dataset": "a", "spend": "b", "entry": 1, "hash": "0a"})],
}
DEEP = '{"kind": "composed", "events": [' * 120 + "]}" * 120
TEXTS: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "half": lambda text: text[: len(text) // 2],
    "more-behind": lambda text: text + "x",
    "list": lambda text: f"[{text}]",
    "number": lambda text: "1",
    "not-a-number": lambda text: text.replace('"delta": 1e-06', '"delta": NaN', 1),
    "infinity": lambda text: text.replace('"delta": 1e-06', '"delta": Infinity', 1),
    "beyond-floats": lambda text: text.replace('"delta": 1e-06', '"delta": 1e999', 1),
    "field-twice": lambda text: text.replace('"noise":', '"noise": "seeded", "noise":', 1),
    "whole-number-too-large": lambda text: text.replace(
        '"count": 50', '"count": 9007199254740993', 1
    ),
    "levels": lambda text: text.replace('{"kind": "gaussian"', DEEP + '{"kind": "gaussian"', 1),
    "half-a-pair": lambda text: text.replace('"tuning": null', '"tuning": "\\ud800"', 1),
    "single-quotes": lambda text: text.replace('"', "'"),
    "comma-too-many": lambda text: text.replace('"stamps": []', '"stamps": [,]', 1),
    "comment": lambda text: "// a statement\n" + text,
}
# numbers that other programs would write in another way
AS_TEXT: dict[str, Callable[[str], str]] = {
    "numbers-of-many-digits": lambda text: text,
    "whole-numbers-with-points": lambda text: re.sub(
        r'("(?:count|cell|column)": \d+)', r"\1.0", text
    ),
}
HOSTILE: dict[str, tuple[list[str], list[Change]]] = {
    "more-rounds-than-there-are": (
        ["epsilon"],
        [at(f"{part}.event.events.1.count", 2**53) for part in ("events", "plan")],
    ),
    "repeated-upon-repeated": (
        ["epsilon", "route"],
        [
            at(
                f"{part}.event.events.0",
                {
                    "kind": "repeated",
                    "count": 2**53,
                    "event": {
                        "kind": "repeated",
                        "count": 2**53,
                        "event": {"kind": "pure", "epsilon": 1.0},
                    },
                },
            )
            for part in ("events", "plan")
        ],
    ),
    "nothing-very-often": (
        [],
        [
            at(
                f"{part}.event.events",
                lambda events: [
                    *events,
                    {
                        "kind": "repeated",
                        "count": 2**53,
                        "event": {"kind": "composed", "events": [{"kind": "no-op"}]},
                    },
                ],
            )
            for part in ("events", "plan")
        ],
    ),
    "noise-too-small-for-floats": (
        ["epsilon"],
        [at(f"{part}.event.events.0.noise_multiplier", 1e-100) for part in ("events", "plan")],
    ),
    "choice-of-a-huge-epsilon": (
        ["epsilon", "route"],
        [
            at(f"{part}.event.events.0", {"kind": "exponential", "epsilon": 1e300})
            for part in ("events", "plan")
        ],
    ),
    "integers-very-far": (
        ["epsilon", "route"],
        [
            at(
                f"{part}.event.events.0",
                {"kind": "discrete-laplace", "noise_multiplier": 1.0, "sensitivity": 2**20},
            )
            for part in ("events", "plan")
        ],
    ),
}
# Only a signature tells these: everything that others could recompute was changed with them.
UNSEEN: dict[str, tuple[str, list[Change]]] = {
    "false-events": (
        "gaussians",
        [at(f"{part}.event.events.0.noise_multiplier", 40.0) for part in ("events", "plan")],
    ),
    "seeds-denied-with-their-flag": (
        "everything-said",
        [at("noise", "secure"), at("stamps", lambda s: [x for x in s if x != "seeded-noise"])],
    ),
    "bounds-said-to-be-of-the-schema": (
        "everything-said",
        [
            at("bounds.0.origin", "schema"),
            at("stamps", lambda s: [x for x in s if "bounds" not in x]),
        ],
    ),
    "other-rows-protected": (
        "batches-replace-one",
        [at("promise.protects", "sensitive_features")],
    ),
    "earlier-releases-denied": ("everything-said", [at("earlier_releases", "no others")]),
    "audit-taken-out": ("everything-said", [at("audit", None)]),
    "exposure-left-out": ("everything-said", [at("not_covered", [])]),
    "receipt-of-another-spend": ("everything-said", [at("ledger.spend", "5f1e")]),
    "queries-renamed": ("everything-said", [at("releases.0.name", "something harmless")]),
    "other-date": ("gaussians", [at("created", "2020-01-01")]),
}


def sealed(doc: dict[str, Any]) -> dict[str, Any]:
    """With the checksum of what it holds, as anybody can make it."""
    return {**doc, "checksum": checksum(doc)}


def changed(doc: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
    """A copy after these changes."""
    out = copy.deepcopy(doc)
    for change in changes:
        change(out)
    return out


def vectors() -> dict[str, dict[str, Any]]:
    """Every vector by its name."""
    known = {name: sealed(make()) for name, make in CONSISTENT.items()}
    out: dict[str, dict[str, Any]] = {}

    def put(name: str, verdict: str, codes: list[str], **content: Any) -> None:
        expected = {"verdict": verdict, "contradictions": sorted(codes)}
        out[name] = {"expected": expected, **content}

    for name, doc in known.items():
        if name in AS_TEXT:
            put(f"consistent-{name}", "consistent", [], text=AS_TEXT[name](json.dumps(doc)))
        else:
            put(f"consistent-{name}", "consistent", [], statement=doc)
    for name, (of, codes, changes) in FORGED.items():
        doc = sealed(changed(known[of], changes))
        put(f"forged-{name}", "inconsistent", codes, statement=doc)
    for name, (of, changes) in UNSEALED.items():
        put(f"forged-{name}", "inconsistent", ["checksum"], statement=changed(known[of], changes))
    for name, changes in MALFORMED.items():
        doc = sealed(changed(known["gaussians"], changes))
        put(f"malformed-{name}", "malformed", [], statement=doc)
    for name, change in TEXTS.items():
        text = json.dumps(known["gaussians"])
        assert change(text) != text, name
        put(f"malformed-{name}", "malformed", [], text=change(text))
    for name, (codes, changes) in HOSTILE.items():
        doc = sealed(changed(known["gaussians"], changes))
        put(f"hostile-{name}", "inconsistent" if codes else "consistent", codes, statement=doc)
    out |= signed(known)
    return out


def signed(known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Statements with a signature: of this statement, of others, and by others."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    draw = random.Random(0)
    key, other = (Ed25519PrivateKey.from_private_bytes(draw.randbytes(32)) for _ in range(2))
    pem = public_pem(key.public_key()).decode()
    out = {}

    def put(name: str, doc: dict[str, Any], envelope: Any, valid: bool) -> None:
        expected = {
            "verdict": "consistent",
            "contradictions": [],
            "signature": "valid" if valid else "refused",
        }
        out[name] = {"expected": expected, "statement": doc, "signature": envelope, "key": pem}

    def sealed_by(private: Any, doc: dict[str, Any]) -> dict[str, Any]:
        made = signed_text(json.dumps(doc), private, note="as published")
        fixed = replace(made, time="2026-01-01T00:00:00Z")
        again = base64.b64encode(private.sign(fixed.signed)).decode()
        return dict(json.loads(replace(fixed, signature=again).to_json()))

    for name, (of, changes) in UNSEEN.items():
        true = sealed_by(key, known[of])
        put(f"unseen-{name}", sealed(changed(known[of], changes)), true, False)
    true = sealed_by(key, known["everything-said"])
    put("signed", known["everything-said"], true, True)
    put(
        "signed-by-another",
        known["everything-said"],
        sealed_by(other, known["everything-said"]),
        False,
    )
    said = json.loads(base64.b64decode(true["payload"]))
    said["predicate"]["note"] = "as never published"
    payload = base64.b64encode(canonical(said).encode()).decode()
    put("signed-note-changed", known["everything-said"], {**true, "payload": payload}, False)
    named = copy.deepcopy(sealed_by(other, known["everything-said"]))
    named["signatures"][0]["keyid"] = fingerprint(key.public_key())
    put("signed-by-another-in-this-name", known["everything-said"], named, False)
    assert Signature.from_json(json.dumps(true)).note == "as published"
    return out


def main() -> None:
    """Writes all of them anew."""
    FOLDER.mkdir(exist_ok=True)
    made = vectors()
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for name, vector in made.items():
        text = json.dumps(vector, separators=(",", ":"), allow_nan=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, "utf-8")
    print(f"{len(made)} vectors")


if __name__ == "__main__":
    main()
