"""Private tables as files: read back, and refused wherever a number was changed."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import InputError
from fairveil.estimators.counted import checksum

RNG = np.random.default_rng(0)
SEX = np.array(["f", "m"])[RNG.integers(2, size=600)]
Y, DECIDED = RNG.random(600) < 0.5, RNG.random(600) < 0.4
FOUND = fv.private_audit(DECIDED, None, Y, sensitive_features=SEX, epsilon=1.0, random_state=0)
DOCUMENT = json.loads(FOUND.to_json())


def test_what_is_written_is_read_again(tmp_path) -> None:  # type: ignore[no-untyped-def]
    again = fv.estimators.PrivateTable.from_json(FOUND.write(tmp_path / "t.json").read_text())
    assert str(again) == str(FOUND)
    assert again.gaps == FOUND.gaps
    assert again.to_json() == FOUND.to_json()


def _changes() -> list[tuple[str, object]]:
    def set_(*path: object) -> object:
        def change(values: dict) -> None:
            inside = values
            for step in path[:-2]:
                inside = inside[step]
            inside[path[-2]] = path[-1]

        return change

    return [
        (
            "a count",
            set_("counted", "counts", "values", 0, DOCUMENT["counted"]["counts"]["values"][0] + 40),
        ),
        ("a rate", set_("results", "lines", 1, "rates", "error", "value", 0.1)),
        ("an end", set_("results", "lines", 1, "rates", "error", "low", 0.45)),
        ("people", set_("results", "lines", 0, "people", "value", 7.0)),
        ("a flag", set_("results", "lines", 0, "small", True)),
        ("a gap", set_("results", "gaps", 0, "differences", 0, "high", 0.01)),
        ("a pair's confidence", set_("results", "gaps", 0, "differences", 0, "named_with", 0.98)),
        ("the confidence", set_("counted", "confidence", 0.99)),
        ("how intervals hold", set_("counted", "intervals", "all")),
        ("the noise", set_("counted", "noise", "scale", 0.1)),
        ("what is small", set_("counted", "small_below", 400)),
        ("known totals", set_("counted", "known", {"shape": [], "values": [600.0]})),
        ("no list", set_("counted", "counts", 5)),
        ("a negative whole", set_("counted", "counts", "values", 0, 0.5)),
        ("a field", set_("extra", 1)),
        ("a statement", set_("statement", "epsilon", 0.1)),
    ]


@pytest.mark.parametrize(
    ("what", "change"), _changes(), ids=lambda one: one if isinstance(one, str) else ""
)
@pytest.mark.parametrize("sealed", [True, False])
def test_what_was_changed_is_refused(what: str, change: object, sealed: bool) -> None:
    values = copy.deepcopy(DOCUMENT)
    change(values)  # type: ignore[operator]
    if sealed:
        values["checksum"] = checksum(values)
    where = "privacy statement" if what == "a statement" else "private table"
    with pytest.raises(InputError, match=where):
        fv.estimators.PrivateTable.from_json(json.dumps(values))


def test_a_word_of_the_groups_is_under_the_checksum() -> None:
    values = copy.deepcopy(DOCUMENT)
    values["counted"]["layout"]["cells"]["columns"][0][0] = "x"
    _, found = fv.estimators.PrivateTable.examine(json.dumps(values))
    assert any(re.search("checksum|does not follow", one.sentence) for one in found)
