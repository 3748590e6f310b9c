"""holder.toml: read strictly, before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from doors import place_in

from fairveil.errors import FairveilError, InputError
from fairveil.serving.holder import Holder
from fairveil.serving.runs import Server

GOOD = """[door]
name = "O"
folder = "door"
[datasets.applicants]
rows = "applicants.csv"
schema = "applicants.toml"
ledger = "budget.db"
"""


def test_places_are_relative_to_the_file(tmp_path: Path) -> None:
    place_in(tmp_path)
    holder = Holder.load(tmp_path / "holder.toml")
    assert holder.folder == tmp_path / "door"
    assert holder.datasets[0].rows == str(tmp_path / "applicants.csv")
    (tmp_path / "other.toml").write_text(
        GOOD.replace('"budget.db"', '"postgresql://me@db/budgets"')
    )
    assert Holder.load(tmp_path / "other.toml").datasets[0].ledger == "postgresql://me@db/budgets"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[door]\n",
        GOOD.replace("[door]", "[dooor]"),
        GOOD + "more = 1\n",
        GOOD.replace('name = "O"', "name = 3"),
        GOOD.replace("datasets.applicants", 'datasets."../x"'),
        GOOD.replace("datasets.applicants", 'datasets."A b"'),
        GOOD.replace('folder = "door"', 'folder = "door"\nport = 70000'),
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "0.0.0.0"'),
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "example.org"'),
        GOOD.replace('folder = "door"', 'folder = "door"\ncertificate = "c.pem"'),
        GOOD + "[limits]\nrun_minutes = 0\n",
        GOOD + "[limits]\nunknown = 1\n",
        GOOD.partition("[datasets")[0] + "[datasets]\n",
        GOOD.replace("applicants.toml", "nowhere.toml"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(text: str, tmp_path: Path) -> None:
    place_in(tmp_path)
    (tmp_path / "holder.toml").write_text(text)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FairveilError):
        Holder.load(tmp_path / "holder.toml")
    assert sorted(tmp_path.rglob("*")) == before


def test_https_or_a_named_proxy_may_leave_this_machine(tmp_path: Path) -> None:
    place_in(tmp_path)
    (tmp_path / "holder.toml").write_text(
        GOOD.replace('folder = "door"', 'folder = "door"\naddress = "0.0.0.0"\nbehind_proxy = true')
    )
    assert Holder.load(tmp_path / "holder.toml").behind_proxy


def test_a_table_that_does_not_fit_its_schema_is_refused_before_it_is_served(
    tmp_path: Path,
) -> None:
    place = place_in(tmp_path)
    with (tmp_path / "applicants.csv").open("a") as table:
        table.write("0.1,0.1,nowhere,f,yes\n")
    with pytest.raises(InputError):
        place.door()
    holder = Holder.load(place.config)
    with pytest.raises(InputError):
        Server(holder)  # the records were let go of
