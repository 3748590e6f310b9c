"""docs/file_formats.md lists every format that the library reads, with the version that it
reads."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import fairveil
from fairveil.data import encoding
from fairveil.estimators import Alternatives, Certificate, PrivateTable, ReleasedGroups
from fairveil.estimators.certifying import alternatives, monitor
from fairveil.facts import schema

PAGE = (Path(__file__).parent.parent / "docs" / "file_formats.md").read_text("utf-8")


def test_every_format_is_listed_with_its_version() -> None:
    listed = {
        name: int(version)
        for name, version in re.findall(
            r"^\| `(fairveil[- ][a-z -]+)` \| (\d+) \|", PAGE, re.MULTILINE
        )
    }
    kinds = Alternatives, Certificate, PrivateTable, ReleasedGroups, monitor
    found = {one.FILE.format: one.FILE.version for one in kinds}
    found[alternatives.PLAN] = alternatives.PLAN_VERSION
    for module in pkgutil.walk_packages(fairveil.__path__, "fairveil."):
        path = Path(str(module.module_finder.path), f"{module.name.rpartition('.')[2]}.py")  # type: ignore[union-attr]
        if not path.exists() or not re.search(
            r"^FORMAT\b.*\"fairveil", path.read_text("utf-8"), re.MULTILINE
        ):
            continue
        there = importlib.import_module(module.name)
        # cards name the format of reports
        if hasattr(there, "FORMAT_VERSION") or hasattr(there, "VERSION"):
            found[there.FORMAT] = (
                there.FORMAT_VERSION if hasattr(there, "FORMAT_VERSION") else there.VERSION
            )
    assert listed == found
    assert len(found) >= 12


def test_files_that_say_their_version_otherwise_are_listed() -> None:
    rows = dict(re.findall(r"^\| a[n]? [^|]+ \| `(\w+)`[^|]* \| (\d+) \|$", PAGE, re.MULTILINE))
    versions = {
        "fairveil_schema": schema.FORMAT,
        "fairveil_encoding": encoding.FORMAT,
    }
    assert {name: int(version) for name, version in rows.items()} == versions
