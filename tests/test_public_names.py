"""The public names: every one exists, and says what each of its parameters is."""

from __future__ import annotations

import importlib
import inspect
from operator import attrgetter
from typing import Any

import pytest

import fairveil as fv

PACKAGES = (
    "fairveil",
    "fairveil.privacy",
    "fairveil.statement.importing",
    "fairveil.curator",
    "fairveil.data",
    "fairveil.show",
    "fairveil.audit",
    "fairveil.estimators",
    "fairveil.export",
    "fairveil.study",
)

RESULTS = (
    "estimators.Alternatives",
    "estimators.Certificate",
    "estimators.PrivateTable",
    "estimators.ReleasedGroups",
    "estimators.SoftGroups",
    "export.sql_query",
    "export.to_sklearn",
    "facts.Reports",
    "fairness.RateConstraint",
    "study.Frontier",
    "study.plan_sample_size",
)
"""Beside the front door, as pages name them."""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_listed_name_exists(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def described() -> list[Any]:
    """Classes, functions and methods of the front door, each by its name. What only functions make
    lists attributes in place of parameters."""
    found: dict[Any, str] = {}
    for name in (*fv.__all__, *RESULTS):
        value = attrgetter(name)(fv)
        if inspect.ismodule(value):
            continue
        if not inspect.isclass(value) or "Parameters\n" in (value.__doc__ or ""):
            found.setdefault(value, name)
        for key, member in inspect.getmembers(value, inspect.isfunction):
            own = inspect.unwrap(member).__module__.startswith("fairveil.")
            if own and not key.startswith("_") and inspect.isclass(value):
                found.setdefault(inspect.unwrap(member), f"{name}.{key}")
    return [pytest.param(f"fairveil.{name}", id=name) for name in found.values()]


@pytest.mark.parametrize("name", described())
def test_every_public_parameter_is_described(name: str) -> None:
    """A docstring is there, and lists the parameters of the signature in their order."""
    validate = pytest.importorskip(
        "numpydoc.validate", reason="environments with the lowest versions lack it"
    ).validate
    wanted = ("GL08", "PR01", "PR02", "PR03")
    assert [text for code, text in validate(name)["errors"] if code in wanted] == []
