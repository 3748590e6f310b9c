"""The words of parameters, attributes and warnings, once: docstrings of estimators and of their
methods, help of the command line and the reference are made from here.

    @described
    class FairClassifier(ClassifierMixin, CodedEstimator):
        \"\"\"...

        Parameters
        ----------
        objective : str or objective, default=None
            Words of its own. All other parameters have the words that stand here.

        Attributes
        ----------
        model_, privacy_
        gap_report_ : GapReport
            Words of its own, between names whose words stand here.
        \"\"\"

        objective: object = None

This module imports nothing of the library: the command line's help reads it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, dataclass_transform

Kind = TypeVar("Kind", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+)(?: : .*)?\n(?:(?: +.*)?\n)+", re.MULTILINE)


def sections(doc: str) -> dict[str, str]:
    """The sections of a numpydoc text by their heads; what comes before the first under ""."""
    parts = SECTION.split(f"{inspect.cleandoc(doc)}\n")
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """The entries of a section, each whole, by their names."""
    return {one[1]: f"{one[0].rstrip()}\n" for one in ENTRY.finditer(f"{section.strip()}\n")}


WORDS = entries("""
epsilon : float, default=1.0
    Privacy budget of this fit. Smaller is more private. ``float('inf')`` adds no noise and
    gives no privacy; the statement is flagged ``not-private``. Choose it without looking at the
    data.
delta : float, default=1e-6
    Slack that is added to the epsilon bound: one row changes the probability of any results by
    a factor of at most e^epsilon, plus delta. Choose it well below ``1 / n_rows``.
protects : {"records", "records:replace-one", "sensitive_features"}, default="records"
    What is protected. ``"records"``: all of a row, which is added or removed.
    ``"records:replace-one"``: one row is replaced, and their number is public.
    ``"sensitive_features"``: the sensitive attributes alone; features and labels are then public.
schema : Schema, default=None
    Public facts of the table (`fairveil.facts.Schema`): its columns with bounds, classes and
    groups, about how many rows there are, which column tells persons apart, and the largest
    sample weight. What it states is not read from the data. A schema without columns states the
    other facts alone, as ``Schema(rows=10_000)``. What nobody states is read from the data or
    released with noise, and the statement says so.
random_state : int or Generator, default=None
    None draws secure noise. An integer, or a NumPy generator, repeats the fit and flags the
    statement INSECURE.
ledger : Ledger, default=None
    Where the fit reserves its whole cost before rows are read, or is refused. None: the ledger
    of the ``with ledger.recording():`` block, if there is one. It is never saved with the
    estimator.
constraints : notion, str or list of these, default=None
    Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``, or
    its name and bound, ``"demographic_parity:0.05"``. A list combines them. Bounds are shares
    of 1, so 0.05 is 5 percentage points. None: no constraint.
model : str, Additive or torch.nn.Module, default="auto"
    ``"additive"`` or an `Additive`: steps of each number beside the line, so that it may bend
    (docs/additive_models.md). ``"linear"`` or None: the line alone. ``"auto"``: steps where a
    schema bounds all numbers, at most 32, and 2,000 rows and 100 / min(1, epsilon) a number are
    known to be there, and the solver descends; else linear. A module is copied, and training starts from its weights
    (docs/networks.md).
certify : notion, str, list of these, float or SetAside, default=None
    Notions to certify after the fit for people whom the model has not seen, such as
    ``DemographicParity(0.1, confidence=0.95)`` or ``"demographic_parity:0.1"``; the fit does not
    aim at them, as it does at `constraints` with a `confidence`. A notion without one has that of
    the others, else 0.95. A number is the share of the rows that is set aside for this, each by a
    coin of its own, and a `SetAside` says both. None: 0.3
    where a constraint has a confidence, else nothing is certified. The result is `certificate_`
    (docs/certificates.md).
checkpoint : path, default=None
    Folder in which answers of an interrupted fit are kept. Fit again with the same arguments
    and rows, and it is resumed: answers are given again at no further price. None: nothing is
    kept.
public_base : bool, default=False
    Whether the fitted base was made without these rows. It is then not charged, and the
    statement says so.
""")
"""Parameters that several estimators have."""

GIVEN = entries("""
X : table or array
    Features: an array, a table or a source of coded rows; see docs/data.md.
y : array, default=None
    Labels, or numbers for regression. None: the schema names the target among the columns of X.
sensitive_features : array, table or names of columns of X, default=None
    Groups: one column or several. None: the schema's, or no groups.
sample_weight : array, default=None
    Weight of each row, clipped to `max_sample_weight`. None: 1.
""")
"""Arguments of `fit`."""

ASKED = entries("""
X : table or array
    Rows to predict for, with the columns of the fit.
y : array, default=None
    True labels or numbers. None: X is a source of coded rows, which has its own.
sensitive_features : array, table or names of columns of X, default=None
    Groups of the rows, where the rule reads them. None: it does not.
sample_weight : array, default=None
    Weight of each row. None: 1.
random_state : int or Generator, default=None
    Seed of draws, where decisions are drawn: the same seed and rows draw the same. None: fresh
    draws.
""")
"""Arguments of other methods."""

COUNTED = WORDS | entries("""
sensitive_features : array, table or names of columns of X, default=None
    Groups: one column or several. Several make a hierarchy of groups. None: the schema's.
epsilon : float, default=None
    Privacy budget of the counts. ``float('inf')`` counts exactly: for people who are public or
    have consented. It must be given.
delta : float, default=0.0
    Slack that is added to the epsilon bound: one row changes the probability of any results by
    a factor of at most e^epsilon, plus delta.
schema : Schema, default=None
    Public facts of the table. None: classes and groups are those of the model, or read from the
    data.
random_state : int, default=None
    None draws secure noise. An integer repeats the release and flags the statement INSECURE.
ledger : Ledger, default=None
    Where the release is recorded. None: the ledger of the ``with ledger.recording():`` block,
    if there is one.
unit : str, mapping of one name, or one value a row, default=None
    Column of X that tells persons apart, where a person may have several rows. Persons are then
    protected, with all of their rows. The model does not see the column. None: protects each
    row by itself.
max_rows_per_unit : int, default=None
    Must be 1 with `unit`: one row of each person is counted, drawn by a coin, because intervals
    assume independent rows.
""")
"""Arguments of functions that release counts once."""

PUBLISHED = entries("""
model_ : LinearModel, MixtureModel or NetworkModel
    The model that was found.
privacy_ : PrivacyStatement
    Statement of what the fit cost and of what it covers.
report_ : Report
    What the fit came to, of released values alone: what was required and is known of it, privacy,
    error, and what was not assessed. It prints, and `report_.write(path)` writes a page.
constraint_report_ : ConstraintReport
    Released value, noise and bound of each constraint on the training rows.
baselines_ : BaselineReport or None
    Released error of the result beside results that cost nothing further.
outcome_ : RegressionOutcome
    Everything that the search released.
classes_ : ndarray of shape (n_classes,)
    Classes, in the order of the columns of `predict_proba`.
groups_ : tuple
    Keys of the groups; empty for a fit without sensitive features.
coef_ : ndarray
    Coefficients, in the units of X; of linear models alone.
intercept_ : ndarray or float
    Intercept; of linear models alone.
coef_names_ : tuple of str
    Name of each coefficient; of linear models alone.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of str
    Names of the columns of X; there only if X had names.
coding_ : TableCoding or SchemaCoding
    How tables are coded: which column is which number or category.
cells_ : Cells or None
    Groups as cells of the sensitive columns; None for a fit without them.
n_iter_ : int
    Number of rounds that ran.
certificate_ : Certificate
    Bounds for people whom the model has not seen; only where notions are certified.
certified_aim_ : CertifiedAim
    Bounds that the fit aimed at, inside of those that it certifies; beside `certificate_`.
candidates_ : tuple
    Given classifiers that the mixture is of; empty for mixtures of the fit's own rules.
plays_ : ndarray
    Share of the mixture that each of `candidates_` has.
objective_ : float
    Released value of the minimized objective.
target_ : TargetScale
    How y is clipped and scaled.
tailoring_ : TailoringReport
    Shares, standard errors and guarantee of each group.
estimator_ : classifier
    The base in use.
sensitive_names_ : tuple of str
    Names of the sensitive columns.
groups_named_ : bool
    Whether groups were given as names of columns of X.
""")
"""Attributes."""

HEARD = entries("""
InputError
    If an argument or the table cannot be used.
Overspent
    If the ledger's budget does not suffice for the cost.
PrivacyError
    If the base cannot be charged to this guarantee.
ConstraintNotMet
    If released values say that a constraint is missed by far.
NotEnforced
    If noise hides a constraint, or what the search found gave way to what costs nothing.
WorseThanBaseline
    If the result errs more than something that costs nothing further.
""")
"""Errors and warnings of `fit`."""


def listed(section: str, known: Mapping[str, str]) -> str:
    """A section whose lines of bare names are entries with the words that stand here."""
    own, found = entries(section), []
    for line in section.rstrip().splitlines():
        names = line.rstrip(",").split(", ")
        bare = all(name in known and name not in own for name in names)
        found += [known[name] for name in names] if bare else [f"{line}\n"]
    return "".join(found)


def _told(of: Any, found: dict[str, str], known: Mapping[str, str], more: dict[str, str]) -> str:
    """A docstring: what each parameter is, in its own words or in those here, and other sections."""
    own = entries(found.pop("Parameters", "")) or {}
    names = [name for name in inspect.signature(of).parameters if name != "self"]
    given = "".join(own.get(name) or known[name] for name in names)
    whole = {"": found.pop(""), "Parameters": given} | more | found
    return "\n\n".join(
        (f"{head}\n{'-' * len(head)}\n{text}" if head else text).strip()
        for head, text in whole.items()
        if text.strip()
    )


@dataclass_transform(eq_default=False, field_specifiers=(dataclasses.field,))
def described(cls: Kind) -> Kind:
    """A class decorator: its fields are the parameters of `__init__`, and its docstring says what
    each of them is."""
    made: Any = dataclasses.dataclass(eq=False, repr=False)(cls)
    found = sections(cls.__doc__ or "")
    more = {"Attributes": listed(found.pop("Attributes", ""), PUBLISHED)}
    made.__doc__ = _told(made.__init__, found, WORDS, more)
    return cls


def worded(function: Function) -> Function:
    """A decorator of a method: its docstring says what each argument is. That of a `fit` says what
    it returns, raises and warns of, too, and names errors and warnings alone."""
    found, more, known = sections(function.__doc__ or ""), {}, ASKED
    if function.__name__ == "fit":
        raised, warned = found.pop("Raises", "InputError, Overspent"), found.pop("Warns", "")
        more["Returns"] = "self\n    The fitted estimator.\n"
        more |= {"Raises": listed(raised, HEARD), "Warns": listed(warned, HEARD)}
        known = GIVEN
    function.__doc__ = _told(function, found, known, more)
    return function


def told(known: Mapping[str, str]) -> Callable[[Function], Function]:
    """A decorator of a function: its docstring says what each argument is, in its own words or in
    those that are known."""

    def said(function: Function) -> Function:
        function.__doc__ = _told(function, sections(function.__doc__ or ""), dict(known), {})
        return function

    return said
