"""`fairveil certify`: 0 certified, 1 not, 2 refused; what it writes is verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

ASKED = (
    "--prediction",
    "decided",
    "--target",
    "hired",
    "--sensitive",
    "sex",
    "--epsilon",
    1,
    "--seed",
    1,
)


@pytest.fixture
def decided(tmp_path: Path) -> Path:
    """3,000 people, of whom 31 % of one sex and 35 % of the other are selected."""
    lines = ["sex,hired,decided"]
    for i in range(3000):
        sex, k = "fm"[i % 2], i // 2
        lines.append(f"{sex},{k % 3 == 0:d},{k % 100 < (31 if sex == 'f' else 35):d}")
    path = tmp_path / "set_aside.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_certificate_is_written_shown_and_verified(
    fairveil: Command, decided: Path, tmp_path: Path
) -> None:
    asked = ("--constraint", "demographic_parity:10%", "--constraint", "selection_rate_ratio:0.7")
    done = fairveil(
        "certify", "-", decided, *ASKED, *asked, "--out", "c.json", "--html", "page.html"
    )
    assert done.code == 0, done.err
    assert done.out.startswith("verdict     certified, with 0.95 confidence")
    assert "the ratio is at least" in done.out
    page = (tmp_path / "page.html").read_text()
    assert "What is certified" in page
    assert "P(prediction = 1 | group f)" in page
    twin = json.loads((tmp_path / "page.json").read_text())
    assert twin["certificate"]["certified"] is True
    assert fairveil("verify", "c.json").code == 0
    assert json.loads(fairveil("verify", "c.json", "--json").out)["certified"] is True
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace('"confidence": 0.95', '"confidence": 0.99', 1))
    found = fairveil("verify", "c.json")
    assert found.code == 1
    assert "CONTRADICTION" in found.out


def test_what_is_not_certified_ends_with_1_and_says_how_many_people(
    fairveil: Command, decided: Path
) -> None:
    done = fairveil("certify", "-", decided, *ASKED, "--constraint", "demographic_parity:0.055")
    assert done.code == 1
    assert "not certified, at most" in done.out
    assert "people set aside would do" in done.out
    printed = json.loads(
        fairveil(
            "certify", "-", decided, *ASKED, "--constraint", "demographic_parity:0.055", "--json"
        ).out
    )
    assert printed["certified"] is False
    assert printed["bounds"][0]["people_needed"] > 3000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (
                "-",
                "T",
                "--sensitive",
                "sex",
                "--target",
                "hired",
                "--constraint",
                "x:1",
                "--epsilon",
                1,
            ),
            "one of both",
        ),
        (("-", "T", *ASKED), "notions with a bound"),
        (("-", "T", *ASKED, "--constraint", "selection_rate_ratio:much"), "ratio"),
        (
            ("-", "T", *ASKED, "--constraint", "demographic_parity:0.1", "--confidence", 1),
            "confidence",
        ),
        (("-", "T", *ASKED[:-4], "--constraint", "demographic_parity:0.1"), "privacy budget"),
        (
            (
                "-",
                "T",
                *ASKED,
                "--constraint",
                "demographic_parity:0.1",
                "--out",
                "a.json",
                "--html",
                "a.html",
            ),
            "of its own",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_spends_nothing(
    fairveil: Command, decided: Path, arguments: tuple[object, ...], words: str
) -> None:
    done = fairveil("certify", *(decided if one == "T" else one for one in arguments))
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err


def test_a_saved_model(fairveil: Command, table: Path, others: Path, schema: Path) -> None:
    fitted = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        "--constraint",
        "demographic_parity:0.2",
        "--out",
        "m",
        "--seed",
        1,
    )
    assert fitted.code == 0, fitted.err
    done = fairveil(
        "certify",
        "m",
        others,
        "--constraint",
        "demographic_parity:0.6",
        "--epsilon",
        1,
        "--out",
        "c.json",
    )
    assert done.code == 0, done.err
    assert fairveil("verify", "c.json").code == 0


def test_a_fit_with_a_confidence_certifies(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    asked = ("--constraint", "demographic_parity:0.5", "--confidence", 0.9, "--certify-share", 0.4)
    done = fairveil("fit", table, "--schema", schema, *asked, "--out", "m", "--seed", 1)
    assert done.code == 0, done.err
    assert (
        "certificate certified, with 0.9 confidence" in done.out
        or "certificate not certified" in done.out
    )
    assert "fairness    no verdict" not in done.out
    assert "The people set aside (" in done.out
    assert "No held-out people were measured" not in (tmp_path / "m" / "report.html").read_text()
    assert fairveil("verify", tmp_path / "m" / "certificate.json").code == 0
    assert "What is certified" in (tmp_path / "m" / "report.html").read_text()
    assert (
        fairveil(
            "fit",
            table,
            "--schema",
            schema,
            *asked,
            "--if-refused",
            "keep",
            "--out",
            "k",
            "--seed",
            1,
        ).code
        == 0
    )
    unknown = (*asked, "--if-refused", "shrug")
    for wrong in (
        asked[2:],
        asked[:2] + asked[4:],
        (*asked[:2], "--if-refused", "keep"),
        unknown,
        (*asked, "--certify", "demographic_parity:0.2"),
    ):
        refused = fairveil("fit", table, "--schema", schema, *wrong, "--out", "new")
        assert refused.code == 2
        assert not (tmp_path / "new").exists()


PARITY = "demographic_parity:30%"


@pytest.mark.parametrize(
    "asked",
    [
        ("--method", "fermi", "--certify", PARITY, "--certify", "selection_rate_ratio:0.5"),
        ("--method", "tailored", "--certify", PARITY, "--confidence", 0.9, "--certify-share", 0.4),
        (
            "--method",
            "group-objective",
            "--constraint",
            PARITY,
            "--constraint",
            "gmean:0.6",
            "--confidence",
            0.95,
        ),
    ],
)
def test_what_keeps_no_bound_on_rates_certifies_after_the_fit(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path, asked: tuple[object, ...]
) -> None:
    for again in ((), ("--force",)):  # a folder with a certificate is one that the command wrote
        done = fairveil("fit", table, "--schema", schema, *asked, "--out", "m", "--seed", 1, *again)
        assert done.code == 0, done.err
    assert (
        "certificate certified, with 0.9" in done.out
        or "certificate not certified, with 0.9" in done.out
    )
    assert fairveil("verify", tmp_path / "m" / "certificate.json").code == 0
    assert "What is certified" in (tmp_path / "m" / "report.html").read_text()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("fermi", "--confidence", 0.9), "--certify beside it"),
        (("tailored", "--if-refused", "keep"), "--certify beside it"),
        (("rate-constrained", "--certify", PARITY), "of --method fermi"),
        (("fermi", "--certify", PARITY, "--confidence", 1), "confidence"),
        (
            ("group-objective", "--constraint", "gmean:0.4", "--confidence", 0.9),
            "a --constraint on rates of decisions",
        ),
    ],
)
def test_mistakes_about_certifying_after_a_fit(
    fairveil: Command, table: Path, schema: Path, asked: tuple[object, ...], words: str
) -> None:
    done = fairveil("fit", table, "--schema", schema, "--out", "new", "--method", *asked)
    assert done.code == 2
    assert words in done.err
