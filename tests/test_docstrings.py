"""Docstrings of public names follow numpydoc, say what the signature says, and describe the same
thing in the same words."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
import warnings
from typing import Any

import numpy as np
import pytest

import docstring_parts
import fairveil as fv
import shared_docstrings as shared
import test_words
from docstring_parts import LISTS, ORDER, Entry, Parts, parts
from fairveil import errors

NAMES = [name for name in fv.__all__ if not inspect.ismodule(getattr(fv, name))]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(fv, name))]
MADE_FOR_YOU = (
    "BudgetDisplay",
    "Certificate",
    "ConstraintDisplay",
    "Frontier",
    "FrontierDisplay",
    "GroupRatesDisplay",
    "Ledger",
    "Monitor",
    "NoiseDisplay",
    "PrivacyStatement",
    "PrivateTable",
    "ReleasedGroups",
    "RemoteData",
)
"""Classes whose instances come from functions: what their constructors take is listed under
Attributes where it is public."""

FITTED: dict[str, dict[str, Any]] = {
    "FermiClassifier": {"solver": fv.Descent(rounds=3)},
    "GroupObjectiveClassifier": {"solver": fv.LinearOracle(rounds=3)},
    "GroupObjectiveRegressor": {"target_bounds": (-1.0, 1.0)},
    "OddsPostProcessor": {"constraints": "equalized_odds:0.3"},
    "ParityPostProcessor": {"max_gap": 0.3, "solver": fv.Offsets(rounds=3)},
    "OracleGameClassifier": {
        "constraints": "equalized_odds:0.3",
        "rounds": 3,
        "protects": "sensitive_features",
    },
    "RateConstrainedClassifier": {
        "constraints": "demographic_parity:0.3",
        "solver": fv.Descent(rounds=3),
        "randomised": False,
    },
    "TailoredClassifier": {"solver": fv.GroupDescent(rounds=3)},
    "TailoredRegressor": {"solver": fv.GroupDescent(rounds=3), "target_bounds": (-1.0, 1.0)},
}
"""Estimators, and with what they are fitted here, quickly."""

DESCENT = PERSONS = ("RateConstrainedClassifier", "FermiClassifier")
CONSTRAINED = ("RateConstrainedClassifier", "OracleGameClassifier", "OddsPostProcessor")
LEFT_OUT = {"ES01", "EX01", "SA01", "SS05"}
"""What numpydoc would like that is not a rule here: more text, examples and links everywhere, and
no plural nouns for verbs."""

LAYOUT = re.compile(r"^(?:>>>|\.\.\. |Guarantees|Fitted:)", re.MULTILINE)
LONGEST = 100


def doc_of(value: Any) -> Parts:
    """A docstring of its own, taken apart."""
    assert value.__doc__, value
    return parts(value.__doc__)


def functions() -> list[Any]:
    """Functions and methods of public names, each once, by a name for the report."""
    found: dict[Any, str] = {getattr(fv, name): name for name in NAMES if name not in CLASSES}
    for name in CLASSES:
        for member, function in docstring_parts.members(getattr(fv, name)):
            if not docstring_parts.is_property(getattr(fv, name), member):
                found.setdefault(function, f"{name}.{member}")
    return [pytest.param(function, id=name) for function, name in found.items()]


def everything() -> list[Any]:
    """All public classes, functions, methods and properties."""
    found: dict[Any, str] = {getattr(fv, name): name for name in NAMES}
    for name in CLASSES:
        for member, function in docstring_parts.members(getattr(fv, name)):
            found.setdefault(function, f"{name}.{member}")
    return [pytest.param(value, id=name) for value, name in found.items()]


def said_wrong(entry: Entry, parameter: inspect.Parameter) -> str:
    """What is wrong with the entry of a parameter; empty where it says what the signature says."""
    if entry.name != docstring_parts.starred(parameter):
        return f"{entry.name} stands where {parameter.name} belongs"
    if not entry.text.endswith((".", ")", "``")):
        return f"{entry.name}: no sentence"
    if entry.name.startswith("*"):
        return ""
    if not entry.kind:
        return f"{entry.name}: no type"
    bare = parameter.default is parameter.empty or repr(parameter.default) == "required"
    if bare or entry.default is None:
        return (
            ""
            if bare == (entry.default is None)
            else f"{entry.name}: default={parameter.default!r}"
        )
    return (
        ""
        if same_default(entry.default, parameter.default)
        else f"{entry.name}: {entry.default}, not {parameter.default!r}"
    )


def same_default(written: str, default: object) -> bool:
    """Whether a default is written as it is: a literal, the name of a class, or words for what a
    factory makes."""
    if inspect.isclass(default):
        return written == default.__name__
    if isinstance(default, tuple) and len(default) > 8:
        return written.startswith(f"{default[0]} to {default[-1]}")
    try:
        return bool(ast.literal_eval(written) == default)
    except (ValueError, SyntaxError):
        return False


def checked(value: Any, entries: list[Entry]) -> list[str]:
    """Everything that is wrong with the parameters of a call."""
    given = docstring_parts.parameters(value)
    wrong = [said_wrong(entry, parameter) for entry, parameter in zip(entries, given, strict=False)]
    extra = [entry.name for entry in entries[len(given) :]] + [
        one.name for one in given[len(entries) :]
    ]
    return [one for one in (*wrong, *extra) if one]


@pytest.mark.parametrize("value", everything())
def test_a_docstring_begins_with_a_sentence_and_has_its_sections_in_order(value: Any) -> None:
    doc = doc_of(value)
    assert len(doc.first) <= LONGEST
    assert re.match(r'[A-Z`*|"(]', doc.first)
    assert doc.first.endswith(".")
    assert inspect.cleandoc(value.__doc__).partition("\n")[2].partition("\n")[0] == "", (
        "no empty line below the first"
    )
    titles = [title for title, _ in doc.sections]
    assert titles == [title for title in ORDER if title in titles]
    outside = "\n".join(
        (doc.more, *(text for title, text in doc.sections if title not in ("Notes", "Examples")))
    )
    assert not LAYOUT.search(outside)


@pytest.mark.parametrize("value", everything())
def test_a_docstring_uses_the_terms_of_the_field_in_short_sentences(value: Any) -> None:
    text = re.sub(r"``.*?``", "CODE", doc_of(value).prose, flags=re.DOTALL)
    plain = test_words.prose(text)
    assert test_words.found_in(plain) == []
    assert [
        one for one in test_words.sentences(text) if test_words.words(one) > test_words.MOST_WORDS
    ] == []


@pytest.mark.parametrize("name", [name for name in CLASSES if name not in MADE_FOR_YOU])
def test_every_parameter_of_a_class_is_described_as_it_is(name: str) -> None:
    kind = getattr(fv, name)
    assert checked(kind, doc_of(kind).entries("Parameters")) == []


@pytest.mark.parametrize("name", MADE_FOR_YOU)
def test_attributes_of_a_result_are_there(name: str) -> None:
    kind = getattr(fv, name)
    fields = (
        {field.name for field in dataclasses.fields(kind)}
        if dataclasses.is_dataclass(kind)
        else set()
    )
    assert listed(kind)
    assert listed(kind) <= fields | {key for key in dir(kind) if not key.startswith("_")} | set_by(
        kind
    )
    assert {field for field in fields if not field.startswith("_")} <= listed(kind)


def set_by(kind: type) -> set[str]:
    """Attributes that the methods of a class, or of its bases here, set on `self`, or that it
    annotates."""
    found: set[str] = set()
    for one in kind.__mro__:
        if one.__module__.startswith("fairveil."):
            found |= set(one.__annotations__)
            tree = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one))))
            found |= {
                node.attr
                for node in tree
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            }
    return found


@pytest.mark.parametrize("value", functions())
def test_every_parameter_of_a_function_is_described_as_it_is(value: Any) -> None:
    assert checked(value, doc_of(value).entries("Parameters")) == []


@pytest.mark.parametrize("value", functions())
def test_a_function_says_what_it_returns(value: Any) -> None:
    doc = doc_of(value)
    returns = inspect.signature(value).return_annotation
    assert bool(doc.section("Returns") or doc.section("Yields")) == (returns != "None")


@pytest.mark.parametrize("value", functions())
def test_raised_errors_and_given_warnings_are_of_the_family(value: Any) -> None:
    doc = doc_of(value)
    for title, kind in (("Raises", errors.FairveilError), ("Warns", errors.FairveilWarning)):
        named = [entry.name for entry in doc.entries(title)]
        assert all(issubclass(getattr(errors, name), kind) for name in named)


@pytest.mark.parametrize("value", everything())
def test_numpydoc_finds_nothing(value: Any, request: pytest.FixtureRequest) -> None:
    validate = pytest.importorskip(
        "numpydoc.validate", reason="environments with the lowest versions lack it"
    ).validate
    name = request.node.callspec.id
    left_out = LEFT_OUT | ({"PR01"} if name in MADE_FOR_YOU else set())
    found = validate(f"fairveil.{name}")["errors"]
    assert [(code, text) for code, text in found if code not in left_out] == []


@pytest.mark.parametrize("name", NAMES)
def test_entries_have_a_type_and_a_text(name: str) -> None:
    doc = doc_of(getattr(fv, name))
    for title in LISTS:
        for entry in doc.entries(title):
            assert entry.text, f"{title}: {entry}"
            assert (
                entry.kind
                or title not in ("Parameters", "Attributes")
                or entry.name.startswith("*")
            ), f"{title}: {entry}"


def texts_of(name: str) -> list[dict[str, tuple[str, str]]]:
    """The shared texts of the parameters of one estimator."""
    tailored = name.startswith("Tailored")
    texts = [
        shared.EVERY_FIT,
        shared.PERSONS
        if name in PERSONS
        else shared.IN_ONE_GROUP
        if tailored
        else shared.COUNTED_BY_PERSON,
    ]
    if name in CONSTRAINED:
        texts.append(shared.CONSTRAINTS)
    if name in DESCENT:
        texts.append(shared.DESCENT)
    if name.startswith("Tailored"):
        texts.append(shared.TAILORED)
    if name not in DESCENT:
        texts.append(shared.KEPT)
    grouped = shared.DECLARED if name.startswith("Parity") else shared.GROUPS
    return [*texts, shared.CERTIFIED, grouped, shared.LEAST_SQUARES]


@pytest.mark.parametrize("name", FITTED)
def test_what_estimators_share_is_said_in_the_same_words(name: str) -> None:
    doc = doc_of(getattr(fv, name))
    said = {entry.name: (entry.kind, entry.text) for entry in doc.entries("Parameters")}
    wanted = {key: text for texts in texts_of(name) for key, text in texts.items() if key in said}
    assert {key: said[key] for key in wanted} == wanted
    attributes = {entry.name: (entry.kind, entry.text) for entry in doc.entries("Attributes")}
    assert {key: text for key, text in attributes.items() if key in shared.FITTED} == {
        key: shared.FITTED[key] for key in attributes if key in shared.FITTED
    }


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (("certify", "private_audit"), {**shared.COUNT, **shared.COUNTED_PERSONS}),
        (("release_groups", "frontier"), shared.ROWS),
        (("group_table", "demographic_parity_gap", "equalized_odds_gap"), shared.MEASURED),
        (("DemographicParity", "EqualizedOdds", "ErrorRateParity"), shared.GAPS),
        (("EqualOpportunity", "FalsePositiveRateParity"), {**shared.GAPS, **shared.POSITIVE}),
        (("ReleasedClassifier",), shared.CONSTRAINTS),
        (("GroupLimits", "GroupDescent"), {**shared.TAILORED, **shared.GROUPS}),
        (("Descent", "PenaltyDescent"), {**shared.DESCENT, "device": shared.MODULES["device"]}),
        (
            ("PrivateSearchCV",),
            {key: shared.EVERY_FIT[key] for key in ("delta", "protects", "neighbours")},
        ),
    ],
)
def test_what_functions_and_notions_share_is_said_in_the_same_words(
    names: tuple[str, ...], texts: dict[str, Any]
) -> None:
    for name in names:
        said = {
            entry.name: (entry.kind, entry.text)
            for entry in doc_of(getattr(fv, name)).entries("Parameters")
        }
        wanted = {key: text for key, text in texts.items() if key in said}
        assert len(wanted) >= min(2, len(texts))
        assert {key: said[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    "name", [name for name in FITTED if "model" in inspect.signature(getattr(fv, name)).parameters]
)
def test_models_are_described_in_one_of_two_ways(name: str) -> None:
    said = {
        entry.name: (entry.kind, entry.text)
        for entry in doc_of(getattr(fv, name)).entries("Parameters")
    }
    texts = shared.MODULES if name in (*DESCENT, "TailoredClassifier") else shared.ADDITIVE
    assert said["model"] == texts["model"]


def table() -> tuple[dict[str, Any], Any, Any]:
    """Features by name, labels and groups of made-up people."""
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=300)
    columns = np.clip(rng.normal(size=(300, 2)) + 0.5 * groups[:, np.newaxis], -1, 1)
    return {"a": columns[:, 0], "b": columns[:, 1]}, (columns.sum(axis=1) > 0.3).astype(int), groups


def ends(fitted: Any) -> set[str]:
    """The public attributes that a fit has set, by scikit-learn's convention."""
    return {
        key
        for key in dir(fitted)
        if key.endswith("_") and not key.startswith("_") and hasattr(fitted, key)
    }


def listed(kind: type) -> set[str]:
    """The attributes that a docstring lists."""
    return {entry.name for entry in doc_of(kind).entries("Attributes")}


@pytest.mark.parametrize("name", FITTED)
def test_every_fitted_attribute_is_listed_and_there(name: str) -> None:
    kind = getattr(fv, name)
    X, y, groups = table()
    target = X["a"] if name.endswith("Regressor") else y
    options: dict[str, Any] = {"epsilon": 1.0, "random_state": 0, **FITTED[name]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = kind(**options).fit(X, target, sensitive_features=groups)
    parameters = inspect.signature(kind).parameters
    certified = {"certificate_"} if "certify_share" in parameters else set()
    aims = {"certified_aim_"} if certified and "certify" not in parameters else set()
    assert listed(kind) == ends(fitted) | certified | aims


def test_attributes_of_a_certified_fit_are_listed_and_there() -> None:
    X, y, groups = table()
    constraint = fv.DemographicParity(0.3, confidence=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = fv.RateConstrainedClassifier(
            constraint, epsilon=1.0, solver=fv.Descent(rounds=3), random_state=0
        )
        fitted.fit(X, y, sensitive_features=groups)
    absent = listed(fv.RateConstrainedClassifier) - ends(fitted)
    assert ends(fitted) <= listed(fv.RateConstrainedClassifier)
    # of linear models alone, and this may be a mixture
    assert absent <= {"coef_", "intercept_", "coef_names_"}


def test_attributes_of_fits_around_others_are_listed_and_there() -> None:
    X, y, groups = table()
    rows = np.column_stack([X["a"], X["b"]])
    clf = fv.RateConstrainedClassifier(solver=fv.Descent(rounds=3), public_rows=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = fv.PrivateSearchCV(clf, {"clip": [0.5, 2.0]}, epsilon=3.0, random_state=0).fit(
            rows, y
        )
        released = fv.release_groups(X, y, sensitive_features=groups, random_state=0).fit(
            X, y, "demographic_parity:0.3"
        )
    for fitted in (search, released):
        assert listed(type(fitted)) == ends(fitted), type(fitted)


def test_what_is_wrong_would_be_found() -> None:
    def call(first: int, second: str = "x", *, third: float = 1e-6) -> None:
        """Nothing."""

    right = [
        Entry("first", "int", None, "A."),
        Entry("second", "str", '"x"', "B."),
        Entry("third", "float", "1e-6", "C."),
    ]
    assert checked(call, right) == []
    assert checked(call, right[::-1])
    assert checked(call, right[:2]) == ["third"]
    assert checked(call, [*right, Entry("fourth", "int", None, "D.")]) == ["fourth"]
    assert checked(call, [right[0], right[1], Entry("third", "float", "1e-5", "C.")]) == [
        "third: 1e-5, not 1e-06"
    ]
    assert checked(call, [right[0], right[1], Entry("third", "float", None, "C.")]) == [
        "third: default=1e-06"
    ]
    assert checked(call, [Entry("first", "", None, "A."), *right[1:]]) == ["first: no type"]


def test_a_docstring_is_taken_apart() -> None:
    doc = parts("""A sentence.

    More.

    Parameters
    ----------
    a : {"x", "y"}, default="x"
        What it
        does.
    **rest
        Others.

    Notes
    -----
    1. A guarantee.
    """)
    assert (doc.first, doc.more) == ("A sentence.", "More.")
    assert [title for title, _ in doc.sections] == ["Parameters", "Notes"]
    assert doc.entries("Parameters") == [
        Entry("a", '{"x", "y"}', '"x"', "What it does."),
        Entry("**rest", "", None, "Others."),
    ]
