"""`fairveil monitor`: begin, count a period, alarm with status 1, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from people_who_do_not_exist import Command

BEGIN = (
    "--constraint",
    "demographic_parity:10%",
    "--group",
    "sex:f,m",
    "--classes",
    "0,1",
    "--epsilon",
    1,
)


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    """2,000 people, of whom 30 % of one sex and 80 % of the other are selected."""
    lines = [
        "sex,decided",
        *(f"{'fm'[i % 2]},{(i // 2) % 100 < (30 if i % 2 == 0 else 80):d}" for i in range(2000)),
    ]
    path = tmp_path / "may.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_monitor_begins_counts_and_raises_an_alarm(fairveil: Command, drifted: Path) -> None:
    done = fairveil("monitor", "m.json", *BEGIN)
    assert done.code == 0, done.err
    assert done.out.startswith("no alarm; 0 periods")
    done = fairveil("monitor", "m.json", drifted, "--period", "May", "--prediction", "decided")
    assert done.code == 1, done.err
    assert done.out.startswith("alarm in May; 1 periods")
    assert fairveil("monitor", "m.json").code == 1
    again = fairveil("monitor", "m.json", drifted, "--period", "May", "--prediction", "decided")
    assert again.code == 2
    assert "a period that is new" in again.err


def test_people_who_may_come_back(fairveil: Command, drifted: Path) -> None:
    told = ("--unit", "patient", "--max-periods-per-unit", 2)
    done = fairveil("monitor", "m.json", *BEGIN[:-1], 1000, *told)
    assert done.code == 0, done.err
    assert "(patient)" in done.out
    period = ("--period", "May", "--prediction", "decided")
    done = fairveil("monitor", "m.json", drifted, *period)
    assert done.code == 2
    assert "patient" in done.err
    header, *lines = drifted.read_text().splitlines()
    rows = [f"{line},{at}" for at, line in enumerate(lines)]
    drifted.write_text("\n".join([f"{header},patient", *rows]) + "\n")
    done = fairveil("monitor", "m.json", drifted, *period)
    assert done.code == 1, done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.json",), "the file of a monitor"),
        (("m.json", *BEGIN[:-2]), "privacy budget"),
        (("m.json", *BEGIN[:2], *BEGIN[4:]), "--group"),
        (("m.json", *BEGIN[:4], *BEGIN[6:]), "--classes"),
        (("m.json", "--epsilon", 1), "--constraint beside it"),
        (("m.json", "T"), "--period"),
        (("m.json", "T", "--period", "May"), "--prediction"),
    ],
)
def test_what_is_wrong_is_one_line_and_leaves_no_file(
    fairveil: Command, drifted: Path, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    done = fairveil("monitor", *(drifted if one == "T" else one for one in arguments))
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "m.json").exists()
