"""Changed files for every reader: nothing but the library's own errors comes out."""

from __future__ import annotations

import json
import random

import pytest
from fuzz_readers import SCHEMA, Reader, readers

from fairveil.data import Schema
from fairveil.errors import FairveilError, SchemaError

INPUTS = 150
NAMES = (
    *(
        "statement",
        "ledger lines",
        "model folder",
        "estimator folder",
        "npz bytes",
    ),
    *(
        "schema, JSON",
        "schema, TOML",
        "encoding",
        "CSV",
        "Parquet",
        "coded store",
        "SQLite rows",
        "journal",
    ),
)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return {
        reader.name: reader for reader in readers(tmp_path_factory.mktemp("fuzz"), all_kinds=False)
    }


@pytest.mark.filterwarnings("ignore::fairveil.errors.FairveilWarning")
@pytest.mark.parametrize("name", NAMES)
def test_changed_files_end_in_errors_of_the_family(name: str, every: dict[str, Reader]) -> None:
    reader = every[name]
    draw = random.Random(f"{name} tests")
    accepted = refused = longest = 0
    for _ in range(INPUTS):
        case = reader.make(draw)
        try:
            reader.read(case)
            accepted += 1
        except FairveilError as error:
            longest = max(longest, len(str(error)))
            refused += 1
    assert accepted  # the changes are not so coarse that only the first check is reached
    assert refused
    assert longest < 5000  # a message, not a copy of the file


def test_every_reader_is_here(every: dict[str, Reader]) -> None:
    assert tuple(every) == NAMES


def test_what_the_long_run_found(every: dict[str, Reader]) -> None:
    """Statements that are accepted and could not be put in words, and a report that JSON could not
    hold."""
    from fairveil.core.events import Composed, Gaussian
    from fairveil.estimators.reports import ConstraintLine, ConstraintReport
    from fairveil.show.numbers import at_most
    from fairveil.statement.document import releases_of

    told = releases_of([(("a",), Composed((Composed(()), Gaussian(1.0))))])
    assert [one.times for one in told] == [1]
    assert releases_of([((), Composed(()))]) == ()
    assert float(at_most(1e308)) >= 1e308
    assert at_most(0.12341) == "0.124"
    line = ConstraintLine("gap", float("inf"), float("nan"), float("inf"), 0.5)
    assert '"bound": "inf"' in ConstraintReport((line,), 1, "done").to_json()


@pytest.mark.parametrize("roles", [{"target": ["y"]}, {"target": {"a": 1}}, {"sensitive": [["w"]]}])
def test_a_role_that_is_no_text(roles: dict[str, object]) -> None:
    with pytest.raises(SchemaError, match=r"target|sensitive"):
        Schema.from_json(json.dumps(SCHEMA.to_dict() | roles))
