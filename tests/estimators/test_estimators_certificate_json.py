"""Certificates as files: the same again, and every number that was changed is noticed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil.errors import FairveilError, InputError, SignatureError
from fairveil.estimators.counted import checksum
from fairveil.methods.counts import CountNoise
from fairveil.statement import signing

RNG = np.random.default_rng(0)
GROUP = RNG.integers(3, size=3000)
CHOSEN = RNG.random(3000) < 0.3
NOTIONS = [fv.DemographicParity(0.12), fv.SelectionRateRatio(0.6), fv.EqualOpportunity(0.4)]
FOUND = fv.certify(
    CHOSEN,
    None,
    RNG.random(3000) < 0.5,
    sensitive_features=GROUP,
    constraints=NOTIONS,
    epsilon=1.0,
    random_state=1,
)
TEXT = FOUND.to_json()


def test_the_same_again() -> None:
    again = fv.estimators.Certificate.from_json(TEXT)
    assert again.to_json() == TEXT
    assert again.certified is FOUND.certified
    assert again.bounds == FOUND.bounds
    assert again.rates == FOUND.rates
    assert str(again) == str(FOUND)
    assert not again.check()


def test_a_refused_group_and_public_counts_too(tmp_path) -> None:  # type: ignore[no-untyped-def]
    few = fv.certify(
        CHOSEN[:8],
        None,
        sensitive_features=GROUP[:8],
        constraints=NOTIONS[:2],
        epsilon=0.3,
        random_state=0,
    )
    exact = fv.certify(
        CHOSEN, None, sensitive_features=GROUP, constraints=NOTIONS[:2], epsilon=float("inf")
    )
    for found in (few, exact):
        path = found.write(tmp_path / "certificate.json", overwrite=True)
        assert fv.estimators.Certificate.from_json(path.read_text()).bounds == found.bounds


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        place: Any = values
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to

    return change


TAMPERED = {
    "a count": _set("counted", "counts", "values", 0, to=lambda n: n + 40),
    "a negative count": _set("counted", "counts", "values", 1, to=-5.0),
    "the confidence": _set("counted", "confidence", to=0.99),
    "the noise": _set("counted", "noise", "scale", to=lambda s: s / 2),
    "no noise": _set("counted", "noise", to={"type": "CountNoise", "kind": "none", "scale": 0.0}),
    "a bound": _set("results", "bounds", 0, "at_most", to=lambda b: b - 0.01),
    "a verdict": _set("results", "bounds", 2, "certified", to=lambda b: not b),
    "people needed": _set("results", "bounds", 0, "people_needed", to=17),
    "a rate": _set("results", "rates", 0, "high", to=lambda r: r - 0.01),
    "a limit": _set("counted", "notions", 0, "max_gap", to=0.5),
    "a ratio": _set("counted", "notions", 1, "min_ratio", to=0.1),
    "a notion left out": lambda values: (
        values["counted"]["notions"].pop(),
        values["results"]["bounds"].pop(),
    ),
    "a rate left out": lambda values: values["results"]["rates"].pop(),
    "a group left out": lambda values: values["counted"]["cells"]["columns"][0].pop(),
    "the whole verdict": _set("results", "certified", to=lambda b: not b),
    "the words": _set("results", "verdict", to="certified: everything"),
    "the epsilon": _set("statement", "epsilon", to=0.1),
    "an event": _set("statement", "events", "event", "events", 0, "noise_multiplier", to=0.3),
}


@pytest.mark.parametrize("what", TAMPERED)
@pytest.mark.parametrize("sealed", [False, True])
def test_whatever_was_changed_is_refused(what: str, sealed: bool) -> None:
    """Also where whoever changed it made the checksum again."""
    values = json.loads(TEXT)
    TAMPERED[what](values)
    assert values != json.loads(TEXT)
    if sealed:
        values["checksum"] = checksum(values)
    with pytest.raises(FairveilError):
        fv.estimators.Certificate.from_json(json.dumps(values))


def test_noise_that_is_not_that_of_the_statement_is_found_though_all_else_follows() -> None:
    less = CountNoise(FOUND.noise.kind, FOUND.noise.scale / 2)
    table = fv.private_audit(CHOSEN, sensitive_features=GROUP, epsilon=1.0, random_state=1)
    for found in (FOUND, table):
        again = type(found).examine(replace(found, noise=less).to_json())[1]
        assert [one.grave for one in again] == [True]
        assert "the noise is said to be" in again[0].sentence


def test_all_contradictions_are_listed() -> None:
    values = json.loads(TEXT)
    TAMPERED["a count"](values)
    _, found = fv.estimators.Certificate.examine(json.dumps(values))
    assert any("does not follow from the counts" in one.sentence for one in found)
    assert any("checksum" in one.sentence for one in found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": "fairveil certificate"}',
        TEXT[:-20],
        TEXT.replace("terms", "x") + "1",
    ],
)
def test_what_is_no_certificate_is_one_error(text: str) -> None:
    with pytest.raises(InputError):
        fv.estimators.Certificate.examine(text)


def test_a_file_is_signed_whole(tmp_path) -> None:  # type: ignore[no-untyped-def]
    for name in ("mine", "other"):
        signing.new_key(tmp_path / f"{name}.key")
    path = FOUND.write(tmp_path / "c.json", key=tmp_path / "mine.key", note="for 2026")
    assert fv.estimators.Certificate.load(path, key=tmp_path / "mine.pub").bounds == FOUND.bounds
    with pytest.raises(SignatureError):
        fv.estimators.Certificate.load(path, key=tmp_path / "other.pub")
    with pytest.raises(InputError, match="not there yet"):
        FOUND.write(path)
    FOUND.write(path, overwrite=True)
    with pytest.raises(SignatureError, match="a signature"):
        fv.estimators.Certificate.load(path, key=tmp_path / "mine.pub")


def test_a_million_changes_of_one_character_raise_nothing_else() -> None:
    """2,000 of them, seeded."""
    rng = np.random.default_rng(0)
    short = fv.certify(
        CHOSEN, None, sensitive_features=GROUP, constraints=NOTIONS[0], epsilon=float("inf")
    ).to_json()
    for _ in range(300):
        at = int(rng.integers(len(short)))
        text = short[:at] + str(rng.choice(list('0123456789.-"{}[],:xe'))) + short[at + 1 :]
        try:
            _, found = fv.estimators.Certificate.examine(text)
        except FairveilError:
            continue
        assert found or json.loads(text) == json.loads(short)
