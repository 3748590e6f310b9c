"""`fairveil export`: the same file as the library writes, and refusals in the shell's words."""

from __future__ import annotations

from pathlib import Path

import pytest
from people_who_do_not_exist import Command

import fairveil as fv
from fairveil.export import sql_query


@pytest.fixture
def model(fairveil: Command, table: Path, schema: Path, tmp_path: Path) -> Path:
    done = fairveil("fit", table, "--schema", schema, "--seed", 0, "--out", "model")
    assert done.code == 0, done.err
    return tmp_path / "model"


def test_a_file_is_what_the_library_writes(fairveil: Command, model: Path, tmp_path: Path) -> None:
    clf = fv.load(model)
    done = fairveil(
        "export",
        model,
        "--table",
        "people",
        "--keep",
        "id",
        "--keep",
        "b",
        "--out",
        "m.sql",
    )
    assert done.code == 0
    assert done.out.startswith("Written: m.sql (")
    assert (tmp_path / "m.sql").read_text() == sql_query(clf, table="people", keep=["id", "b"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--keep", "prediction", "--out", "m"), "--keep"),
        (("--table", "", "--out", "m"), "name"),
        (("--out", "there"), "--force"),
    ],
)
def test_a_wrong_option_is_refused_and_writes_nothing(
    fairveil: Command, model: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    (tmp_path / "there").write_text("mine")
    before = sorted(tmp_path.iterdir())
    done = fairveil("export", model, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there").read_text() == "mine"


def test_a_folder_without_a_model_is_refused(fairveil: Command, tmp_path: Path) -> None:
    done = fairveil("export", tmp_path, "--out", "m.sql")
    assert done.code == 2
    assert not (tmp_path / "m.sql").exists()
