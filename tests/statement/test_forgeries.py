"""Every field of a statement, forged one at a time: what a checker says of each, written by hand from
docs/statement_spec.md, and that both programs say it. What no checker can find a signature does.

A forger seals what he changed: the checksum is made anew.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairveil.core.events import Gaussian, PerCell
from fairveil.privacy import Filter, Promise, Unit
from fairveil.statement import check, form
from fairveil.statement.document import (
    Audit,
    NamedGroups,
    PrivacyStatement,
    PublicFact,
    Receipt,
    StatedBound,
    releases_of,
)
from fairveil.statement.form import READ_FROM_DATA
from fairveil.statement.signing import signed_text, verify_text

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MALFORMED, TRUSTED = "malformed", ""
CELLS = PerCell(((40.0, 120.0),), (2.0,))
PROMISE = Promise(1.0, 1e-6, unit=Unit("patient", 12))


def planned() -> PrivacyStatement:
    """A statement that says everything, of a plan that was followed."""
    done = [Gaussian(20.0), *[CELLS] * 50]
    return PrivacyStatement.of(
        PROMISE,
        done,
        plan=done,
        facts=[PublicFact("rows", "some 30 000", READ_FROM_DATA)],
        bounds=[StatedBound("a sum", "L2", 1.5, "seen", READ_FROM_DATA)],
        not_covered=["held-out tables were exact"],
        tuning="one fit",
        earlier_releases="none",
        audit=Audit(0.1, 0.95, "membership inference"),
        noise="seeded",
        arithmetic="float32-by-row",
        user_code="trusted",
        created="2026-01-01",
        groups=[NamedGroups(("few", "many"), limits=(0.9, 0.5))],
        ledger=Receipt("people", "5f1d", 12, "0a" * 32),
        releases=releases_of([(("a sum",), done[0]), *[(("counts",), CELLS)] * 50]),
    )


def chosen() -> PrivacyStatement:
    """One of answers that were chosen one after another, under a filter."""
    return PrivacyStatement.of(
        PROMISE, [Gaussian(12.0), Gaussian(13.0)], cap=Filter.create(PROMISE, "renyi")
    )


# The first pattern that fits a path says what must be found: a code or several, `MALFORMED`, or
# `TRUSTED`. A path that ends in "-" is a list without its first.
PLANNED = {
    r"format|version|.*\.version|.*\.kind|cap|.*\.multipliers\.-|.*\.spreads\.-": MALFORMED,
    r"checksum": "checksum",
    r"promise\.epsilon": "guarantee",
    r"promise\.delta": "delta epsilon group",
    r"promise\.neighbours": "epsilon group limit relation",
    r"promise\.protects": "relation",
    r"promise\.unit\..*": TRUSTED,
    r"epsilon": "epsilon",
    r"delta": "delta",
    r"accounting\.neighbours": "relation",
    r"accounting\.route": "route",
    r"stamps\.\d": MALFORMED,
    r"stamps\.-": "flag",
    r"events\..*spreads\.0": "plan",
    r"events\.event\.events\.-": "releases",
    r"events\..*multipliers\.0\.\d": "limit plan releases",
    r"events\..*": "plan releases",
    r"plan\.event\.events\.0\.noise_multiplier": "epsilon group plan",
    r"plan\..*multipliers\.0\.0": "epsilon group plan",
    r"plan\..*multipliers\.0\.1": "group plan",
    r"plan\..*multipliers\.0\.-": "groups plan",
    r"plan\..*count": "epsilon group",
    r"plan\..*": "plan",
    r"bounds\.0\.origin|bounds\.-": "flag",
    r"noise": "flag",
    r"arithmetic": "arithmetic",
    r"user_code": "arithmetic flag",
    r"audit\.epsilon": "audit",
    r"ledger\.hash": MALFORMED,
    r"groups\.\d\.name": "groups",
    r"groups\.\d\.(cell|column|fixed)|groups\.-": "groups",
    r"groups\.\d\.epsilon": "group",
    r"groups\.\d\.limit": "limit",
    r"releases\.\d\.name": TRUSTED,
    r"releases\..*": "releases",
    r"(facts|bounds|audit|ledger|versions)\..*|not_covered\..*": TRUSTED,
    r"tuning|earlier_releases|created": TRUSTED,
}
CHOSEN = {
    r"promise\.epsilon": "guarantee",
    r"promise\.delta": "delta",
    r"promise\.neighbours": "relation",
    r"epsilon": "epsilon",
    r"arithmetic": "arithmetic",
    r"user_code": "flag",
    r"plan|cap\.kind|audit": MALFORMED,
    r"cap\.order": "epsilon",
    # less that was kept, or another log that the filter would have taken: nobody can tell
    r"cap\.reserve|events\.event\.events\.\d\.noise_multiplier|events\..*-": TRUSTED,
}
OTHER = {
    "records": "sensitive_features",
    "add-remove": "replace-one",
    "seeded": "secure",
    "secure": "seeded",
    "float32-by-row": "exact",
    "exact": "float32-by-row",
    "trusted": "none",
    "none": "trusted",
    "closed form": "nothing read",
    "renyi filter": "closed form",
    "all rows": "one of 2 fixed parts of the rows",
    "few": "many",
    "many": "few",
    "Gaussian": "Laplace",
    "Gaussian by cell": "Laplace",
    READ_FROM_DATA: "schema",
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value that holds no others, and every list that can be a line shorter."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in inner:
        if isinstance(one, dict | list):
            yield from paths(one, (*path, name))
        else:
            yield (*path, name), one
    if isinstance(value, list) and value:
        yield (*path, "-"), value


def forged(path: tuple[Any, ...], value: Any) -> Any:
    """What a forger may put there: a better number, another word."""
    if path[-1] == "-":
        return value[1:]
    if isinstance(value, bool):
        return not value
    if path == ("audit", "epsilon"):
        return 9.0  # an attack that the stated epsilon must have stopped
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value / 2
    if value is None:
        return 0.5 if path[-1] == "order" else "nothing else"
    return OTHER.get(value, f"{value}1")


def forgeries(doc: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, document with another value there, sealed)."""
    for path, value in paths(doc):
        out = copy.deepcopy(doc)
        holder = out
        *steps, last = path[:-1] if path[-1] == "-" else path
        for step in steps:
            holder = holder[step]
        holder[last] = forged(path, value)
        if path != ("checksum",):
            out["checksum"] = form.checksum(out)
        yield ".".join(map(str, path)), out


FORGED = {
    f"{name}, {path}": (doc, next(c for p, c in table.items() if re.fullmatch(p, path)))
    for name, made, table in (
        ("plan", planned, PLANNED),
        ("filter", chosen, {**CHOSEN, **PLANNED, **CHOSEN}),
    )
    for path, doc in forgeries(made().to_dict())
}


def told(doc: dict[str, Any]) -> str:
    """The codes that this library finds."""
    try:
        found = check.findings(form.read(json.dumps(doc)))
    except form.Malformed:
        return MALFORMED
    return " ".join(sorted({one.code for one in found if one.grave}))


def test_what_is_not_forged_is_consistent() -> None:
    assert [told(made().to_dict()) for made in (planned, chosen)] == ["", ""]


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_field_is_found_or_is_taken_on_trust(name: str) -> None:
    doc, codes = FORGED[name]
    assert told(doc) == codes


def test_what_is_recomputed_is_found_and_what_is_on_trust_is_not() -> None:
    unseen = {name.split(", ")[1].split(".")[0] for name, one in FORGED.items() if not one[1]}
    found = {name.split(", ")[1].split(".")[0] for name, one in FORGED.items() if one[1]}
    assert unseen <= {*check.ON_TRUST, "releases"}  # of these the names of the queries
    assert set(check.RECOMPUTED) <= found


def test_the_page_finds_the_same(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on the path")
    for number, (doc, _) in enumerate(FORGED.values()):
        (tmp_path / f"{number:03}.json").write_text(json.dumps({"statement": doc}), "utf-8")
    checker = ROOT / "docs" / "site" / "static" / "check.js"
    schema = ROOT / "src" / "fairveil" / "statement" / "schema.json"
    words = [node, *map(str, (HERE / "check_vectors.mjs", checker, schema, tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=500)
    answers = [one["answer"] for _, one in sorted(json.loads(done.stdout).items())]
    codes = [
        MALFORMED if a["verdict"] == MALFORMED else " ".join(a["contradictions"]) for a in answers
    ]
    assert dict(zip(FORGED, codes, strict=True)) == {n: c for n, (_, c) in FORGED.items()}


def test_a_signature_finds_every_one() -> None:
    key = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey
    private = key.generate()
    for name, made in (("plan", planned), ("filter", chosen)):
        text = made().to_json()
        signed = signed_text(text, private)
        verify_text(text, signed, private.public_key())
        for path, (doc, _) in FORGED.items():
            if path.startswith(name):
                with pytest.raises(ValueError, match="the signed statement"):
                    verify_text(json.dumps(doc), signed, private.public_key())
