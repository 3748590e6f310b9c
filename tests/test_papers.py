"""Figures of the five papers: what needs no rows is run whole, and pages, targets and numbers agree."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

import fairveil as fv

ROOT = Path(__file__).parent.parent / "papers"
sys.path.insert(0, str(ROOT))

import reproduce  # noqa: E402

PAPERS = reproduce.papers()
WITHOUT_ROWS = [
    "000:ols",
    "000:sec6",
    "001:constants",
    "002:ermi",
    "002:noise",
    "003:noise",
    "004:accountant",
]


def test_figures_that_need_no_rows_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main([*WITHOUT_ROWS, "--quick", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.count(" holds: ") == len(WITHOUT_ROWS)
    for name in WITHOUT_ROWS:
        found = json.loads((tmp_path / f"{name.replace(':', '_')}.json").read_text("utf-8"))
        assert found["holds"]
        assert found["lines"]
        assert "<svg" in (tmp_path / f"{name.replace(':', '_')}.svg").read_text("utf-8")


def test_a_verdict_that_no_longer_holds_is_an_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(asked: object) -> object:
        yield reproduce.Line("a", 1.0, 2.0, how=reproduce.LESS)

    paper = reproduce.Paper("009", "made up", ROOT)
    paper.target("one", "one", "better")(wrong)
    monkeypatch.setattr(reproduce, "papers", lambda: {"009": paper})
    assert reproduce.main(["009:one"]) == 1


def test_rows_that_are_missing_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FAIRVEIL_DATA", raising=False)
    assert reproduce.main(["004:fig3", "--quick", "--data", str(tmp_path)]) == 2
    assert "NOT RUN" in capsys.readouterr().err
    assert reproduce.main(["004:fig3", "--quick", "--data", str(tmp_path), "--skip-missing"]) == 0


def test_numbers_that_are_missing_end_the_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="NO PUBLISHED NUMBERS"):
        _ = reproduce.Paper("000", "none", tmp_path).published


@pytest.mark.parametrize("paper", PAPERS.values(), ids=lambda paper: paper.number)
def test_a_page_names_every_target_and_no_other(paper: reproduce.Paper) -> None:
    page = (paper.folder / "README.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    named = set()
    for line in rows:
        column = line.split("|")[3]
        number = paper.number
        if f"{number}:" in column:
            named |= {one.strip() for one in column.replace(f"{number}:", "").split(",")}
    assert named == set(paper.targets)
    assert re.search(r"\bcorrected\b|\bsame\b", page)
    assert {"paper", "source", "protects"} <= set(paper.published)


def test_sets_that_nobody_here_holds_are_read_by_their_documented_columns(tmp_path: Path) -> None:
    """Files made up by the documented columns; another file is said by the columns that it lacks."""
    import named

    def written(file: str, *rows: dict[str, object]) -> None:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        (tmp_path / file).write_text("\n".join(lines))

    (heart,) = named.SETS["heart"][1]
    well = dict.fromkeys(named.HEART.columns, "1.0") | {"BMI": "26.0", "Sex": "0.0"}
    written(heart, well, well | {"HeartDiseaseorAttack": "0.0", "Diabetes": "2.0"})
    found = named.named("heart", str(tmp_path))
    assert found.rows.layout.numbers == 7
    assert found.table["HeartDiseaseorAttack"].tolist() == [1, 0]

    worker: dict[str, object] = {name: 1 for name in named.ACS.columns if name != "above"}
    worker |= {"AGEP": 40, "WKHP": 40, "PINCP": 60_000, "PWGTP": 12, "OCCP": 10}
    young, idle, poor = (
        worker | {"AGEP": 12},
        worker | {"COW": "", "WKHP": ""},
        worker | {"PINCP": 900},
    )
    written("psam_p01.csv", worker, young, idle, poor)
    assert named.named("acs-alabama", str(tmp_path)).table["above"].tolist() == [True, False]

    person: dict[str, object] = {
        name: kind.values[0] if hasattr(kind, "values") else 20
        for name, kind in named.RETIRED.columns.items()
        if name != "above"
    }
    person |= {"education-num": 9, "income": 51_000}
    written("adult_reconstruction.csv", person, person | {"workclass": "?"}, person | {"income": 9})
    retired = named.named("retired-adult", str(tmp_path))
    assert retired.table["above"].tolist() == [True, False]
    assert retired.rows.layout.sensitive == (("Female", "Male"),)

    written("adult_reconstruction.csv", {"age": 1})
    with pytest.raises(fv.errors.DataNotFoundError, match=r"capital-gain.*another version"):
        named.named("retired-adult", str(tmp_path))


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: file.stem)
def test_what_a_figure_imports_is_there(file: Path) -> None:
    """Inside functions too, which only a full run enters."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "torch":
            module = importlib.import_module(node.module)
            for name in node.names:
                found = hasattr(module, name.name)
                assert found or importlib.import_module(f"{node.module}.{name.name}")
