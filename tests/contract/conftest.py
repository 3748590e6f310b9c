"""The table of configurations as parameters, and one fit of each for all checks of a session."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from typing import Any

import configurations
import pytest
from configurations import CONFIGURATIONS, ESTIMATORS, RELEASES, Configuration
from observing import shown
from seam import Released, recording

PARAMETERS = {"row": CONFIGURATIONS, "estimator_row": ESTIMATORS, "release_row": RELEASES}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `row`, `estimator_row` or `release_row` runs over that table. Tests of one
    configuration are one group: with `--dist loadgroup` they share the process that fitted it."""
    for name, table in PARAMETERS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, [grouped(row) for row in table.values()])


def grouped(row: Configuration) -> Any:
    return pytest.param(row, id=row.name, marks=pytest.mark.xdist_group(row.name))


def rows_of(names: Iterable[str]) -> list[Any]:
    """Parameters of some rows alone."""
    return [grouped(CONFIGURATIONS[name]) for name in names]


@pytest.fixture(autouse=True)
def _warnings_are_outcomes() -> Any:
    """Fits of few rows warn, each of its own. Tests of warnings record them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def _fitted(name: str) -> tuple[Any, dict[str, str], tuple[Released, ...]]:
    with warnings.catch_warnings(), recording() as tape:
        warnings.simplefilter("ignore")
        made = CONFIGURATIONS[name].run()
    return made, shown(made), tuple(tape.entries)


@cache
def _unprotected(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CONFIGURATIONS[name].run(epsilon=float("inf"))


@pytest.fixture(scope="session")
def fitted() -> Any:
    """`fitted(row)`: what the row gives of its own table, once for all tests. Not to be changed."""
    return lambda row: _fitted(row.name)[0]


@pytest.fixture(scope="session")
def state() -> Any:
    """`state(row)`: all that is in it as it came out of the fit, before a test looked at what it
    works out when asked."""
    return lambda row: _fitted(row.name)[1]


@pytest.fixture(scope="session")
def released() -> Any:
    """`released(row)`: what that fit was answered."""
    return lambda row: _fitted(row.name)[2]


@pytest.fixture(scope="session")
def unprotected() -> Any:
    """`unprotected(row)`: the row's fit at epsilon infinity, once for all tests."""
    return lambda row: _unprotected(row.name)


@pytest.fixture(scope="session")
def table() -> configurations.Table:
    """The table of those fits."""
    return configurations.people()
