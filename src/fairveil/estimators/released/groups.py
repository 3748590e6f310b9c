"""`release_groups`: counts of groups in public clusters, released once; `ReleasedGroups`: all that
is made of them for free."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, Floats, TableLike
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator import Curator
from ...curator.elsewhere import Elsewhere
from ...errors import InputError, PrivacyError
from ...facts import Cells, Reports, Schema
from ...learning import released as group_release
from ...learning.released import Clusters
from ...models.model import known_classes
from ...show.numbers import at_most
from ...statement.document import PublicFact
from ...statement.signing import private_key
from .. import fitting
from ..reading import cautions, inputs, units
from ..reading.carried import groups_of
from ..reading.soft_groups import SoftGroups
from ..reading.training import Training
from ..reading.units import Whose
from . import saving
from .classifier import ReleasedClassifier
from .frontier import ReleasedFrontier, swept
from .public_features import Ints, features_of, labels_in
from .released_counts import ReleasedCounts, expanded_rows

PURPOSE = "release_groups"
LAST = 12
"""Digits of an epsilon behind the point: what is behind them is last bits, and rounds none up."""


class ReleasedGroups(ReleasedCounts):
    """Noisy counts of groups in public clusters, which may be published.

    It holds nothing else of the groups. Every method is arithmetic on the release and on public
    rows, so calls cost no further privacy. Make one with `release_groups`.

    Attributes
    ----------
    privacy : PrivacyStatement
        Statement of the release.
    cells : Cells
        Groups as cells of the sensitive columns.
    classes : tuple
        Classes of the label.
    coding : Coding
        How tables are coded.
    clusters : Clusters
        Public function that sorts rows into clusters.
    counts : GroupCounts
        Released counts.

    See Also
    --------
    release_groups : Makes the release.
    ReleasedClassifier : Is fitted from it.
    """

    def expanded(
        self,
        X: TableLike,
        y: ColumnsLike,
        *,
        copies: int | None = None,
        random_state: object = None,
    ) -> tuple[Any, npt.NDArray[Any], npt.NDArray[Any], Floats]:
        """Rows for learners that take one group a row.

        Parameters
        ----------
        X : table or array
            Features of the rows of the release.
        y : array
            Their labels.
        copies : int, default=None
            How often each row is repeated, with weight 1, its groups dealt at random in the
            released shares. For learners that take no weights. None: once for each group, weighted
            by its membership.
        random_state : int or Generator, default=None
            Seed of the dealing. None: fresh draws.

        Returns
        -------
        tuple of four arrays
            X, y, groups and weights.
        """
        labels = labels_in(X, y, self.classes)
        return expanded_rows(self, X, labels, copies, fitting.seed_of(random_state))

    def fit(
        self,
        X: TableLike,
        y: ColumnsLike,
        constraints: object = None,
        *,
        estimator: object = None,
        rounds: int = 30,
    ) -> ReleasedClassifier:
        """Fit a classifier that keeps constraints at the released memberships.

        Parameters
        ----------
        X : table or array
            Features of the rows of the release.
        y : array
            Their labels.
        constraints : notion, str or list of these, default=None
            Constraints on rates of decisions: a notion such as ``DemographicParity(max_gap=0.05)``,
            or its name and bound, ``"demographic_parity:0.05"``. A list combines them. Bounds are
            shares of 1, so 0.05 is 5 percentage points. None: no constraint.
        estimator : classifier, default=None
            Classifier of scikit-learn with `sample_weight`, whose clones are fitted. None: linear
            models.
        rounds : int, default=30
            Number of clones of `estimator` that are fitted.

        Returns
        -------
        ReleasedClassifier
            The fitted classifier; it costs no further privacy.
        """
        return ReleasedClassifier(constraints, estimator=estimator, rounds=rounds).fit(
            X, y, sensitive_features=self
        )

    def frontier(
        self,
        X: TableLike,
        y: ColumnsLike,
        constraint: object = "equalized_odds",
        gaps: Iterable[float | None] = tuple(np.linspace(0.0, 0.245, 50).round(3).tolist()),
        *,
        estimator: object = None,
        rounds: int = 30,
    ) -> ReleasedFrontier:
        """Fit a classifier for each gap, all from this one release.

        Parameters
        ----------
        X : table or array
            Features of the rows of the release.
        y : array
            Their labels.
        constraint : str or notion, default="equalized_odds"
            Kind of the constraint.
        gaps : iterable of float or None, default=0.0 to 0.245 in steps of 0.005
            Bounds, as shares of 1; None is a model without one.
        estimator : classifier, default=None
            Classifier of scikit-learn with `sample_weight`, whose clones are fitted. None: linear
            models.
        rounds : int, default=30
            Number of clones of `estimator` that are fitted.

        Returns
        -------
        ReleasedFrontier
            Classifiers and their measured gaps.
        """
        return swept(self, X, y, constraint, gaps, estimator, rounds)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write a folder with `groups.json` and `statement.json`, which `fairveil verify` checks.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Whether an existing folder is replaced.

        Returns
        -------
        Path
            The folder.
        """
        return saving.save(self, path, overwrite=overwrite)

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | os.PathLike[str] | None = None,
        passphrase: str | None = None,
        note: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write one file with counts and statement, to be handed over; `fairveil verify` checks it.

        Parameters
        ----------
        path : path
            The file.
        key : path, default=None
            Private key that signs counts and statement together. None: not signed.
        passphrase : str, default=None
            Passphrase of the key, where it has one.
        note : str, default=None
            Line of words that is signed, too.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.is_dir() or (target.exists() and not overwrite):
            remedy = "Name another file, or pass overwrite=True."
            raise InputError.expected(
                "a file that is not there yet", of="path", got=str(path), remedy=remedy
            )
        saving.write(self, target, None if key is None else private_key(key, passphrase), note)
        return target

    @staticmethod
    def load(
        path: str | os.PathLike[str], key: str | os.PathLike[str] | None = None
    ) -> ReleasedGroups:
        """Read what `save` or `write` wrote.

        Parameters
        ----------
        path : path
            The folder, or the file.
        key : path, default=None
            Public key of whoever signed the file, or the folder. Another signature, or none, is an
            error. None: signatures are not looked at.

        Returns
        -------
        ReleasedGroups
            The release. Unexpected content is an error that names it.
        """
        return saving.load(path, key, ReleasedGroups)


def release_groups(
    X: TableLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    epsilon: float = 1.0,
    delta: float = 0.0,
    protects: str = "sensitive_features",
    schema: Schema | None = None,
    clusters: int | None = None,
    reports: Reports | None = None,
    ledger: object = None,
    random_state: object = None,
    unit: ColumnsLike = None,
    max_rows_per_unit: int | None = None,
) -> ReleasedGroups:
    """Release how many people of each group are in each public cluster, once, with pure epsilon.

    Features and labels are public, and only the sensitive features are protected. Clusters are
    leaves of trees on principal components of the features and a public score, one tree a label. No
    group is read to make them (docs/release_once.md). `SoftGroups` as `sensitive_features` are
    distributions over groups: one group is drawn for each row.

    Parameters
    ----------
    X : table or array
        Features: an array, a table or a source of coded rows; see docs/data.md.
    y : array, default=None
        Labels, or numbers for regression. None: the schema names the target among the columns of X.
    sensitive_features : array, table or names of columns of X, default=None
        Groups: one column or several. None: the schema's, or no groups.
    epsilon : float, default=1.0
        Privacy budget of the one release. ``float('inf')`` adds no noise and gives no privacy.
    delta : float, default=0.0
        The release itself has delta 0. A ledger with a delta above 0 needs the same here.
    protects : "sensitive_features", default="sensitive_features"
        What is protected. Anything else is refused.
    schema : Schema, default=None
        Declares columns and groups. None: the groups are read from the data, and the statement says
        so.
    clusters : int, default=None
        Largest number of clusters. None: it follows the number of rows, classes and groups, and the
        noise of one count.
    reports : Reports, default=None
        How recorded groups come from true ones, where they were flipped with known rates. None:
        they are the true ones.
    ledger : Ledger, default=None
        Where the release is recorded. None: the ledger of the ``with ledger.recording():`` block,
        if there is one.
    random_state : int, default=None
        None draws secure noise. An integer repeats the release and flags the statement INSECURE.
    unit : str, mapping of one name, or one value a row, default=None
        Column of X that tells persons apart, where a person may have several rows. Persons are then
        protected, with all of their rows. The column is no feature. None: protects each row by
        itself.
    max_rows_per_unit : int, default=None
        Most rows of one person, required beside `unit`. All rows count, so it is at least what the
        person with most rows has. Noise grows with it.

    Returns
    -------
    ReleasedGroups
        Counts to fit and measure from, any number of times.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    ReleasedClassifier : Classifier from a release.
    OddsPostProcessor : Releases counts for one classifier alone.
    Reports : Groups that were flipped with known rates.
    SoftGroups : Distributions over groups.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_released.py):

    1. `privacy` is the price of one release of counts, at most epsilon, at delta 0.
    2. What is returned depends on the groups through the noisy counts alone, except for what
       `privacy.facts` lists as read from the data.
    3. Clusters are the same whatever the groups are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 3)) + 0.7 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> released = release_groups(X, y, sensitive_features=A, epsilon=1.0, random_state=0)
    >>> released.memberships(X, y).shape, released.privacy.epsilon <= 1.0, released.privacy.check()
    ((2000, 2), True, [])
    >>> clf = released.fit(X, y, "equalized_odds:0.05")
    >>> clf.predict(X, random_state=0).shape
    (2000,)
    """
    if isinstance(X, Elsewhere):
        remedy = (
            "Fit a classifier on the remote data; or release the groups where features and labels "
            "are."
        )
        expected = "features and labels, which clusters are made of"
        raise InputError.expected(expected, of="X", got="remote data", remedy=remedy)
    whose = units.whose(unit, max_rows_per_unit, schema, epsilon)
    promise = promise_for(epsilon, delta, protects, whose)
    if whose is not None and (reports is not None or isinstance(sensitive_features, SoftGroups)):
        remedy = "Pass the recorded groups as they are; or protect rows: unit=None."
        expected = "groups that were not drawn by chance, beside a unit"
        raise PrivacyError.expected(
            expected, of="sensitive_features", got="drawn ones", remedy=remedy
        )
    asked = SimpleNamespace(
        ledger=ledger, unsafe_data_dependent_bounds=False, random_state=random_state, schema=schema
    )
    record = fitting.ledger_of(asked, promise)
    source = fitting.noise_of(random_state)
    listed = sensitive_features.groups if isinstance(sensitive_features, SoftGroups) else None
    sensitive_features, reports = recorded(sensitive_features, reports, source)
    limit = None if clusters is None else _checks.whole(at_least=1, clusters=clusters)
    ways = fitting.ways_of(schema, False, False, float("inf"), promise, whose=whose)
    training = inputs.read(X, y, sensitive_features, None, replace(ways, groups=listed))
    cautions.of_promise(promise, training.rows.exact_count)
    if record is not None:
        record.require(promise, schema=training.schema)
    cells = _several_groups(training)
    planned = group_release.plan_groups(promise, cells)
    told: tuple[PublicFact, ...] = ()
    if reports is not None:
        reports = reports.in_order(cells.keys)
        told = (fact_of(reports, promise),)
    labels = np.concatenate([np.asarray(block.labels, np.intp) for block in training.rows.blocks()])
    features = features_of(training.coding, X)
    made = grown(features, labels, len(training.classes), limit, cells.count, planned.noise.sd)
    at = made.codes(features, labels)
    sizes = np.bincount(at, minlength=made.count).astype(np.float64)
    fact = PublicFact(
        "clusters",
        f"{made.count} leaves of trees on features, label and a public score",
        "public features",
    )
    curator = Curator(
        training.rows,
        promise,
        plan=planned.event if promise.is_private else None,
        noise=source,
        facts=[*training.facts, fact, *told],
        ledger=record,
        purpose=PURPOSE,
    )
    with curator:
        read = frozenset({"features", "label"})
        attached = curator.attach_codes(at, made.count, columns_read=read, title="public clusters")
        counts = group_release.release_groups(curator, attached, planned, sizes, reports)
        curator.finish()
    statement = curator.statement(not_covered=training.not_covered)
    return ReleasedGroups(
        statement, cells, known_classes(training.classes), training.coding, made, counts
    )


def _several_groups(training: Training) -> Cells:
    """The groups of the rows: two or more."""
    cells = groups_of(training, either=False)
    if cells is None or cells.count < 2 or training.rows.weighted or not training.rows.exact_count:
        got = (
            "none"
            if cells is None
            else "rows with weights"
            if training.rows.weighted
            else f"{cells.count} group"
        )
        remedy = (
            "Pass sensitive_features with two groups or more; a schema may list groups that do not "
            "occur."
        )
        raise InputError.expected(
            "rows of several groups", of="sensitive_features", got=got, remedy=remedy
        )
    return cells


def recorded(
    given: object, reports: Reports | None, source: NoiseSource
) -> tuple[Any, Reports | None]:
    """Groups as they are counted, and what they are: of distributions, drawn ones."""
    if not isinstance(given, SoftGroups):
        return given, reports
    if reports is not None:
        remedy = "Leave reports out, or pass recorded groups."
        raise InputError.expected(
            "None beside distributions", of="reports", got="some", remedy=remedy
        )
    return given.drawn(source), given.reports


def fact_of(reports: Reports, promise: Promise) -> PublicFact:
    """What the statement says of recorded groups that are not the true ones."""
    words = "each drawn from that person's distribution over groups"
    if not reports.drawn:
        local, both = (
            at_most(round(one, LAST))
            for one in (reports.epsilon, reports.together(promise.epsilon))
        )
        words = (
            f"true ones flipped with known rates; epsilon {local} of each report, {both} of a true "
            f"group by this release"
        )
    return PublicFact("recorded groups", words, "argument")


def promise_for(epsilon: float, delta: float, protects: str, whose: Whose | None = None) -> Promise:
    """The promise; an error where it is not about sensitive features alone."""
    promise = fitting.promise_of(epsilon, delta, protects, None, whose)
    group_release.require_public_features(promise)
    return promise


def grown(
    features: Floats, labels: Ints, classes: int, limit: int | None, groups: int, deviation: float
) -> Clusters:
    """The clusters of public rows. `limit`: how many at most; None: from public facts."""
    leaves = (
        group_release.leaves_for(len(labels), classes, groups, deviation)
        if limit is None
        else limit
    )
    return group_release.grown_clusters(features, labels, classes, leaves)
