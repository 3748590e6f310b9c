"""Every field of a statement changed, with the checksum made again: how much `verify` finds alone,
and with the signer's key.

python benchmarks/tampering.py
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairveil.errors import FairveilError, SignatureError
from fairveil.privacy import (
    NamedGroups,
    PrivacyStatement,
    Promise,
    PublicFact,
    new_key,
    sign,
    verify_signature,
)
from fairveil.privacy.events import Gaussian, PerCell
from fairveil.privacy.statement.documents import checksum
from fairveil.privacy.statement.parts import READ_FROM_DATA, Audit, Receipt, StatedBound
from fairveil.privacy.statement.statement import examine

PLAN = [Gaussian(20.0), PerCell(((40.0, 120.0),), (2.0,))]


def statement() -> PrivacyStatement:
    """One that has every field."""
    return PrivacyStatement.of(
        Promise(1.0, 1e-6),
        PLAN,
        plan=PLAN,
        facts=[PublicFact("sex", "female, male", "schema")],
        bounds=[StatedBound("gradient sum", "L2", 1.0, "clipped", READ_FROM_DATA)],
        not_covered=["how rows were gathered"],
        tuning="one fit",
        earlier_releases="none",
        audit=Audit(0.01, 0.95, "an attack"),
        noise="seeded",
        user_code="trusted",
        created="2026",
        groups=[NamedGroups(("few", "many"))],
        ledger=Receipt("people", "a-spend", 3, "0" * 64),
    )


def changes(values: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the single values are."""
    inner = (
        values.items()
        if isinstance(values, dict)
        else enumerate(values)
        if isinstance(values, list)
        else ()
    )
    for name, value in inner:
        yield from (
            [(*place, name)]
            if not isinstance(value, dict | list)
            else changes(value, (*place, name))
        )


def changed(values: Any, place: tuple[Any, ...]) -> Any:
    """The same with one value a little different: a number by a thousandth, so that it is still
    one."""
    out = copy.deepcopy(values)
    at = out
    for name in place[:-1]:
        at = at[name]
    old = at[place[-1]]
    numeric = isinstance(old, int | float) and not isinstance(old, bool)
    at[place[-1]] = (
        not old if isinstance(old, bool) else old * 1.001 if numeric else f"{old or ''}x"
    )
    return out


def lies(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Several fields together, as somebody would who wants to look better."""

    def without(stamp: str, **fields: Any) -> dict[str, Any]:
        return {
            **copy.deepcopy(values),
            **fields,
            "stamps": [one for one in values["stamps"] if one != stamp],
        }

    bounds = [{**bound, "origin": "argument"} for bound in values["bounds"]]
    return {
        "noise secure, stamp removed": without("seeded-noise", noise="secure"),
        "no user code, stamp removed": without("user-code-trusted", user_code="none"),
        "bounds given, stamp removed": without("data-dependent-bounds", bounds=bounds),
        "nothing is uncovered": {**values, "not_covered": []},
        "no facts": {**values, "facts": []},
    }


def caught(text: str) -> bool:
    """By `verify` without a key."""
    try:
        return any(finding.grave for finding in examine(text)[1])
    except FairveilError:
        return True


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new_key(folder / "holder.key")
        path = statement().write(folder / "statement.json")
        sign(path, folder / "holder.key")
        values = json.loads(path.read_text("utf-8"))

        def refused(text: str) -> bool:
            path.write_text(text, "utf-8")
            try:
                verify_signature(path, folder / "holder.pub")
            except SignatureError:
                return True
            return False

        single = [place for place in changes(values) if place != ("checksum",)]
        tried = {"one value of one field": [changed(values, place) for place in single]}
        tried |= {name: [lie] for name, lie in lies(values).items() if lie != values}
        print(
            "| changed | tried | found by `verify` | found by `verify --key` |\n|---|---|---|---|"
        )
        for words, documents in tried.items():
            texts = [json.dumps({**one, "checksum": checksum(one)}) for one in documents]
            found: list[Callable[[str], bool]] = [caught, refused]
            counts = [sum(map(finds, texts)) for finds in found]
            print(f"| {words} | {len(texts)} | {counts[0]} | {counts[1]} |")


if __name__ == "__main__":
    main()
