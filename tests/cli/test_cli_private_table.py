"""`fairveil audit --epsilon`: a table from one private count, written, shown, verified, and refused
in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

ASKED = ("--prediction", "decided", "--target", "hired", "--sensitive", "sex", "--seed", 1)


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """3,000 people, of whom 31 % of one sex and 45 % of the other are selected."""
    lines = ["sex,town,hired,decided"]
    for i in range(3000):
        sex, k = "fm"[i % 2], i // 2
        lines.append(
            f"{sex},{'xyz'[k % 7 % 3]},{k % 3 == 0:d},{k % 100 < (31 if sex == 'f' else 45):d}"
        )
    path = tmp_path / "decided.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_is_written_shown_and_verified(
    fairveil: Command, decided: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "audit",
        decided,
        *ASKED,
        "--sensitive",
        "town",
        "--epsilon",
        1,
        "--out",
        "t.json",
        "--html",
        "p.html",
    )
    assert done.code == 0, done.err
    assert "sex / m" in done.out
    assert "sex / m above sex / f: the widest pair with 0.999 confidence" in done.out
    assert "epsilon 1 at delta 0, add-remove" in done.out
    assert "NOT COVERED: classes, groups of sex, groups of town. They were read from" in done.out
    assert "from private counts" in (tmp_path / "p.html").read_text()
    assert json.loads((tmp_path / "p.json").read_text())["results"]
    assert fairveil("verify", "t.json").code == 0
    text = (tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(text.replace('"confidence": 0.95', '"confidence": 0.99', 1))
    found = fairveil("verify", "t.json")
    assert found.code == 1
    assert "CONTRADICTION" in found.out
    assert json.loads(fairveil("verify", "t.json", "--json").out)["consistent"] is False


def test_marginal_groups_and_other_options(fairveil: Command, decided: Path) -> None:
    options = (
        "--epsilon",
        1,
        "--groups",
        "marginal",
        "--intervals",
        "all",
        "--confidence",
        0.9,
        "--json",
    )
    found = json.loads(fairveil("audit", decided, *ASKED, "--sensitive", "town", *options).out)
    assert (found["depth"], found["intervals"], found["confidence"]) == (1, "all", 0.9)
    public = json.loads(
        fairveil(
            "audit", decided, *ASKED, "--epsilon", 1, "--protects", "sensitive-features", "--json"
        ).out
    )
    assert public["lines"][0]["people"] == {"value": 3000.0, "low": 3000.0, "high": 3000.0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "t.json"), "--epsilon beside it"),
        (("--confidence", 0.9), "--epsilon beside it"),
        (("--epsilon", 1, "--constraint", "demographic_parity:0.1"), "fairveil certify"),
        (("--epsilon", 1, "--confidence", 1), "--confidence"),
        (("--epsilon", 1, "--intervals", "some"), "--intervals"),
        (("--epsilon", 1, "--depth", 0), "--depth"),
        (("--epsilon", 1, "--out", "p.json", "--html", "p.html"), "of its own"),
    ],
)
def test_what_is_wrong_is_one_line_and_spends_nothing(
    fairveil: Command, decided: Path, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    done = fairveil(
        "audit", decided, *(one for one in ASKED if one not in ("--seed", 1)), *arguments
    )
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert (
        sorted(path.name for path in tmp_path.iterdir() if path.suffix in (".json", ".html")) == []
    )
