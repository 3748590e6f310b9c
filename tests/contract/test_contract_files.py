"""Files: saved and loaded in another process to the bit, strict readers, reports and exports."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from configurations import CONFIGURATIONS, ESTIMATORS, FEATURES, RELEASES, Configuration, Table
from observing import METHODS, digest, files, predicted

import fairveil as fv

SAVED = [name for name, row in ESTIMATORS.items() if "search" not in row.tags]

READER = """
import sys
sys.path[:0] = [{here!r}, {beside!r}]
import warnings; warnings.simplefilter("ignore")
import json, numpy as np
import fairveil as fv
from configurations import CONFIGURATIONS, network, people
from observing import METHODS, digest, predicted
table, out = people(), {{}}
for name in json.loads(sys.argv[1]):
    row = CONFIGURATIONS[name]
    options = {{"model": network()}} if "network" in row.tags else {{}}
    clf = fv.load(sys.argv[2] + "/" + name, **options)
    X, groups = row.features(table), row.groups(table)
    out[name] = {{
        m: digest(predicted(clf, m, X, groups).astype(str).tobytes())
        for m in METHODS if hasattr(clf, m)
    }} | {{"statement": clf.privacy_.to_json()}}
print(json.dumps(out))
"""


def options_of(row: Configuration) -> dict[str, Any]:
    from configurations import network

    return {"model": network()} if "network" in row.tags else {}


def answers(row: Configuration, clf: Any, table: Table) -> dict[str, str]:
    X, groups = row.features(table), row.groups(table)
    return {
        name: digest(predicted(clf, name, X, groups).astype(str).tobytes())
        for name in METHODS
        if hasattr(clf, name)
    } | {"statement": clf.privacy_.to_json()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, fitted: Any) -> Path:
    out = tmp_path_factory.mktemp("saved")
    for name in SAVED:
        fv.save(fitted(CONFIGURATIONS[name]), out / name)
    return out


@pytest.mark.xdist_group("files")
def test_another_process_reads_the_same_to_the_bit(
    folders: Path, fitted: Any, table: Table
) -> None:
    program = READER.format(here=str(Path(__file__).parent), beside=str(Path(__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(SAVED), str(folders)],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    for name in SAVED:
        row = CONFIGURATIONS[name]
        assert found[name] == answers(row, fitted(row), table), name


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.xdist_group("files")
def test_what_was_loaded_is_saved_as_the_same_bytes(
    name: str, folders: Path, tmp_path: Path
) -> None:
    row = CONFIGURATIONS[name]
    again = fv.save(fv.load(folders / name, **options_of(row)), tmp_path / "again")
    assert files(Path(again)) == files(folders / name)
    with pytest.raises(fv.errors.FairveilError):
        fv.save(fv.load(folders / name, **options_of(row)), tmp_path / "again")
    fv.save(fv.load(folders / name, **options_of(row)), tmp_path / "again", overwrite=True)
    assert files(Path(again)) == files(folders / name)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.xdist_group("files")
def test_a_damaged_file_is_refused(name: str, folders: Path, tmp_path: Path) -> None:
    """One byte of a file with a checksum, changed in the middle."""
    row = CONFIGURATIONS[name]
    whole = {p.relative_to(folders / name): p.read_bytes() for p in (folders / name).rglob("*.*")}
    for damaged in [path for path in whole if "estimator.json" not in path.name]:
        folder = tmp_path / re.sub(r"\W", "-", str(damaged))
        for path, content in whole.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            if path == damaged:
                middle = len(content) // 2
                changed = bytes([content[middle] ^ 1])
                content = content[:middle] + changed + content[middle + 1 :]
            (folder / path).write_bytes(content)
        with pytest.raises((fv.errors.FairveilError, ValueError)):
            fv.load(folder, **options_of(row))


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.xdist_group("files")
def test_no_file_is_a_pickle_or_holds_a_row(name: str, folders: Path, table: Table) -> None:
    for path in (folders / name).rglob("*.*"):
        content = path.read_bytes()
        assert not content.startswith(b"\x80"), path
        assert table["person"][0].encode() not in content, path


# -- what is shown -------------------------------------------------------------------------------


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+", text))


SHOWN = [
    *("descent-grades", "descent-certified", "fermi", "game", "objective-weights", "regressor"),
    *("tailored-alone", "tailored-regressor", "odds-certified", "parity-grades", "search"),
    *RELEASES,
]


@pytest.mark.parametrize("name", SHOWN)
def test_text_notebook_page_and_json_show_the_same_numbers(name: str, fitted: Any) -> None:
    """Of every kind of result that a fit publishes: they are made of the same parts."""
    result = fitted(CONFIGURATIONS[name])
    shown = {name: one for name, one in vars(result).items() if isinstance(one, fv.show.Shown)}
    assert "privacy_" in shown or not hasattr(result, "privacy_")
    for name, one in shown.items():
        text = numbers(str(one))
        for page in (one._repr_html_(), one.to_html()):
            words = re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.S)
            assert numbers(unescape(words)) <= text, name
        # Tables of the JSON parts hold what the text rounds.
        for part in one.parts():
            if isinstance(part, fv.show.Table):
                cells = [cell for line in part.lines() for cell in line]
                assert all(cell in str(one) for cell in cells), name
                assert len(part.rows()) >= len(part.lines())
        json.loads(one.to_json())


def test_json_of_a_release_reads_back(release_row: Configuration, fitted: Any) -> None:
    result = fitted(release_row)
    again = type(result).from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert str(again) == str(result)


def test_a_certificate_is_computed_again_from_its_counts(fitted: Any) -> None:
    """One number of its file, changed: reading it computes the bounds anew and finds it."""
    document = json.loads(fitted(CONFIGURATIONS["certify"]).to_json())
    document["results"]["certified"] = not document["results"]["certified"]
    with pytest.raises(fv.errors.FairveilError):
        fv.estimators.Certificate.from_json(json.dumps(document))


# -- exports -------------------------------------------------------------------------------------

EXPORTED = [
    "descent",
    "descent-weights",
    "descent-alone-additive",
    "descent-grades",
    "fermi",
    "game",
    "objective-oracle-persons",
    "regressor",
    "tailored-alone",
    "odds-decisions",
    "odds-alone",
]


@pytest.mark.parametrize("name", EXPORTED)
def test_sql_decides_as_predict_does(name: str, fitted: Any, table: Table) -> None:
    row = CONFIGURATIONS[name]
    clf = fitted(row)
    query = fv.export.sql_query(clf, table="people", keep=["id"])
    columns = [*FEATURES, *row.sensitive]
    with closing(sqlite3.connect(":memory:")) as base:
        kinds = ["REAL" if table[c].dtype.kind == "f" else "TEXT" for c in columns]
        told = ", ".join(f"{c} {k}" for c, k in zip(columns, kinds, strict=True))
        base.execute(f"CREATE TABLE people (id INTEGER, {told})")
        marks = ", ".join("?" * (len(columns) + 1))
        lines = zip(range(60), *(table[c][:60].tolist() for c in columns), strict=True)
        base.executemany(f"INSERT INTO people VALUES ({marks})", lines)
        answer = base.execute(query)
        names = [one[0] for one in answer.description]
        found = {line[names.index("id")]: line for line in answer}
    part = {name: column[:60] for name, column in table.items()}
    X, groups = row.features(part), row.groups(part)
    if row.target == "pay":
        given = [found[i][names.index("prediction")] for i in range(60)]
        assert np.allclose(given, predicted(clf, "predict", X, groups), atol=1e-6)
        return
    chances = predicted(clf, "predict_proba", X, groups)
    for place, one in enumerate(np.asarray(clf.classes_).astype(str)):
        column = next(n for n in names if n.startswith("probability") and f"[{one}]" in n)
        given = [found[i][names.index(column)] for i in range(60)]
        assert np.allclose(given, chances[:, place], atol=1e-6), one
