"""`OracleGameClassifier`: a fair mixture of classifiers, found by a private game (Jagielski et al.,
sec. 4)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._types import ColumnsLike, Floats, TableLike
from ..data.reading import PathLike
from ..facts import Cells, RowBlock
from ..fairness import FalsePositiveRateParity, Notion
from ..methods.comparison import Choice as HistogramCache
from ..methods.descent import Reason
from ..methods.game import Equilibrium, Game, plan
from ..methods.game_bounds import Guarantee
from ..methods.oracles import GameInstance
from ..models import DerandomisedModel, MixtureModel
from ..models.model import RandomState, draw_codes
from . import faces, fitting
from .certifying.certified_fits import certified, forget_certificate
from .choosing import GameChoices
from .descending import cells_of
from .faces import Blindly, expected_accuracy
from .fitting import READS_GROUPS, OpenedFit, journal_in, run, said, statement_of
from .handed import words_of
from .mixing import (
    MixingClassifier,
    model_of,
    rule_of,
    shares_of,
    told_of,
)
from .reading import additive, inputs
from .reading.columns import names_in
from .reading.training import Training
from .reading.unread import Read
from .reports import (
    BaselineReport,
    ConstraintReport,
    of_comparison,
    warn_if_not_enforced,
    warn_if_worse,
    warn_of_missed,
)
from .settings import OracleGame, SetAside
from .words import described, worded
from .wrapped import group_ids

WHOLE = 1_000_000  # plays of a mixture whose shares are known


@described
class OracleGameClassifier(MixingClassifier):
    """Mixture of classifiers: the learner's plays in a private game against an auditor.

    The auditor holds the constraints, and the learner responds with cost-sensitive classifiers; see
    docs/oracle_game.md.

    Parameters
    ----------
    dual_bound : float, default=None
        Size of the auditor's simplex. A larger one comes closer to the bounds, for more error and
        noise. None: 2 to 5, the more the less noise public facts foretell; with `group_aware` the
        number of groups.
    rounds : int, default=None
        Number of rounds. None: chosen from epsilon and delta, between 50 and 500; at most 80 for
        ``"responses"``, and 120 for ``"descent"`` with records protected.
    oracle : {"responses", "regression", "exponential", "labellings", "descent"}, default=None
        How the learner responds. ``"responses"``: searches on public rows, whose groups are
        estimated from sums released once; a linear program makes the mixture. ``"regression"``:
        linear regression of costs, from the same sums. ``"exponential"``: the exponential mechanism
        over `candidates`. ``"labellings"``: the same over labellings that cuts of public scores
        induce, for two classes. ``"descent"``: private gradient descent. None: ``"responses"``
        where features are public, ``"descent"`` where records are protected, and ``"regression"``
        for rules that read the group or for few numbers without public bounds.
    solver : OracleGame, default=None
        Settings of the game, such as ``OracleGame(group_aware=True)``. None: the library's.
    model : str or Additive, default=None
        None: a model that is linear in the columns. ``"additive"`` or an `Additive`: steps of each
        number beside the line (docs/additive_models.md).

    Attributes
    ----------
    model_ : MixtureModel or None
        The mixture of rules; None for a mixture of given classifiers, `candidates_`.
    candidates_, plays_, privacy_
    guarantee_ : Guarantee
        Bounds on gaps and error of the mixture, on the training rows, with probability
        `confidence`.
    constraint_report_, baselines_
    outcome_ : Equilibrium
        Everything that the game released.
    classes_, groups_
    named_ : bool
        Whether groups were given as names of columns of X.
    n_features_in_, feature_names_in_, coding_, cells_, n_iter_, certificate_, certified_aim_

    See Also
    --------
    RateConstrainedClassifier : One model under the same constraints.
    GroupObjectiveClassifier : Functions of group losses, by similar oracles.

    Notes
    -----
    Guarantees (tests/estimators/test_estimators_game.py):

    1. The fit depends on the rows through the curator's releases alone, except for what
       `privacy_.facts` and `privacy_.not_covered` list as read from the data.
    2. `privacy_` is the price of the whole plan, at most (epsilon, delta).
    3. A fit that fails or is interrupted changes no attribute.

    References
    ----------
    .. [1] Jagielski, Kearns, Mao, Oprea, Roth, Sharifi-Malvajerdi and Ullman 2019. "Differentially
       Private Fair Learning." arXiv:1812.02696. Corrected as docs/theory/papers.md tells.
    .. [2] Agarwal, Beygelzimer, Dudík, Langford and Wallach 2018. "A Reductions Approach to Fair
       Classification." arXiv:1803.02453.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=2000)
    >>> X = rng.normal(size=(2000, 2)) + 0.5 * A[:, None]
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 1).astype(int)
    >>> clf = OracleGameClassifier(
    ...     "equalized_odds:0.1",
    ...     epsilon=2.0,
    ...     protects="sensitive_features",
    ...     random_state=0,
    ...     rounds=50,
    ... )
    >>> clf.fit(X, y, sensitive_features=A).predict(X[:3], random_state=0).shape
    (3,)
    >>> clf.privacy_.epsilon <= 2.0, clf.n_iter_
    (True, 50)
    """

    __metadata_request__score: ClassVar = {"sample_weight": True, "sensitive_features": True}
    __metadata_request__predict: ClassVar = {"sensitive_features": True, "random_state": True}
    __metadata_request__predict_proba: ClassVar = {"sensitive_features": True}

    guarantee_: Guarantee | None = field(init=False)
    outcome_: Equilibrium = field(init=False)
    constraint_report_: ConstraintReport = field(init=False)
    baselines_: BaselineReport | None = field(init=False)

    SETTINGS: ClassVar = {"solver": (OracleGame,), "certify_share": (SetAside,)}

    constraints: object = None
    _: KW_ONLY
    dual_bound: float | None = None
    rounds: int | None = None
    oracle: str | None = None
    solver: OracleGame | None = None
    sensitive_as_feature: bool = False
    checkpoint: PathLike | None = None
    model: object = None
    certify_share: object = None

    @certified
    @worded
    def fit(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> OracleGameClassifier:
        """Fit to a table X and labels y, matched by position.

        Warns
        -----
        ConstraintNotMet, NotEnforced, WorseThanBaseline, DecisionsReplaced
        """
        journal = journal_in(self.checkpoint)
        opened, cells, game = self._intend(
            lambda ways: inputs.read(X, y, sensitive_features, sample_weight, ways), X
        )
        outcome, curator = run(opened, game.plan, "Playing", game.run, journal)
        training, listed = opened.training, self._chooses.listed()
        statement = statement_of(
            curator,
            training,
            [*([READS_GROUPS] if self._solver.group_aware else []), *told_of(listed)],
        )
        self._publish(training, outcome, listed, cells)
        self.named_ = names_in(sensitive_features) is not None
        self.privacy_ = statement
        told = {} if outcome.choice is None else _told(outcome.choice, training)
        self.baselines_ = of_comparison(outcome.comparison, training.classes, **told)
        warn_if_worse(self.baselines_, learnt=outcome.learnt)
        if self.constraint_report_.missed_by_far:
            self._warn()
        else:
            warn_if_not_enforced(
                self.constraint_report_,
                1.0 if outcome.choice is None else outcome.choice.model,
                went_on=outcome.reason is Reason.HIDDEN,
                stacklevel=4,
            )
        return self

    def _intend(self, read: Read, X: TableLike) -> tuple[OpenedFit, Cells | None, Game]:
        """Check, read the rows and plan: all that comes before the first question. `X`: as given;
        None: there is none yet."""
        whose, promise = fitting.asked(self)
        ledger = fitting.ledger_of(self, promise)
        notions = fitting.notions_of(self.constraints)
        confidence = self._solver.confidence
        fitting.refuse_unused(self._solver, self._chooses.idle())
        scaled = bool(self.unsafe_data_dependent_bounds) or self._chooses.needs_scale(promise, X)
        ways = fitting.own_ways(
            self, promise, whose, additive.of_rows(self.model), standardise=scaled
        )
        training = read(ways)
        opened = OpenedFit.of(self, promise, ledger, training, numbers=self._chooses.numbers())
        fitting.require_groups(notions, training)
        cells = cells_of(notions, training)
        ground = GameInstance.of(
            promise,
            training.rows.layout,
            cells,
            notions,
            public_rows=opened.public_rows,
            max_sample_weight=opened.max_sample_weight,
            group_aware=bool(self._solver.group_aware),
        )
        listed = self._chooses.listed()
        game = plan(
            ground,
            self._chooses.oracle(
                ground, training, self._decided_by(listed, training, X) if listed else None
            ),
            dual_bound=self.dual_bound,
            rounds=self.rounds,
            confidence=confidence,
            only_false_positives=_one_parity_of_false_positives(notions),
        )
        return opened, cells, game

    @property
    def _solver(self) -> OracleGame:
        return self._setting("solver", OracleGame)

    def _search(self, read: Read) -> Game:
        return self._intend(read, None)[2]

    # -- predictions -------------------------------------------------------------------------------

    @worded
    def predict_proba(self, X: TableLike, *, sensitive_features: ColumnsLike = None) -> Floats:
        """Exact distribution of `predict`: what share of the mixture decides for each class.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self, "outcome_")
        if self.model_ is None:
            return self._distribution_of_candidates(X)
        blocks: Iterable[RowBlock] = self._blocks(X)
        if self.model_.reads_groups:
            blocks = self._with_groups(list(blocks), X, sensitive_features)
        return self._distribution_of_model(blocks)

    def _with_groups(self, blocks: list[RowBlock], X: TableLike, given: Any) -> list[RowBlock]:
        """Blocks with the product cell of each row, read from what was given at prediction."""
        assert self.cells_ is not None
        rows = sum(block.rows for block in blocks)
        ids = group_ids(given, X, self.cells_, rows, self.named_)
        codes = np.stack(np.unravel_index(ids, self.cells_.sizes)).astype(np.uint16)
        ends = np.cumsum([block.rows for block in blocks])
        parts = np.split(codes, ends[:-1], axis=1)
        return [replace(block, sensitive=part) for block, part in zip(blocks, parts, strict=True)]

    @worded
    def predict(
        self,
        X: TableLike,
        random_state: RandomState = None,
        *,
        sensitive_features: ColumnsLike = None,
    ) -> npt.NDArray[Any]:
        """Predict the class of each row, drawn from the mixture: a rule anew for every row.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes, as the labels were written.
        """
        codes = draw_codes(
            self.predict_proba(X, sensitive_features=sensitive_features), random_state
        )
        return np.asarray(self.classes_[codes])

    @worded
    def score(
        self,
        X: TableLike,
        y: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
    ) -> float:
        """Expected share of rows, by weight, whose class is predicted right.

        Returns
        -------
        float
            Expected accuracy, between 0 and 1.
        """
        law = self.predict_proba(X, sensitive_features=sensitive_features)
        return expected_accuracy(law, self.classes_, X, y, sample_weight)

    def derandomise(self, threshold: float | None = None) -> OracleGameClassifier:
        """Classifier that decides without chance.

        Parameters
        ----------
        threshold : float, default=None
            With two classes: the second is decided where more than this share of the rules does.
            None: the class that most rules decide for.

        Returns
        -------
        OracleGameClassifier
            A copy. Its gap and error are its own, and were not part of the plan: its report leaves
            them undefined, so measure them.
        """
        model = self._derandomised(threshold)
        if model is None:
            return self
        out, found = copy.copy(self), self.outcome_
        unknown = replace(found, values=np.full_like(found.values, np.nan), guarantee=None)
        out._set_game(unknown, model, ())
        out.baselines_ = None
        forget_certificate(out)
        return out

    # -- fitting -----------------------------------------------------------------------------------

    @property
    def _chooses(self) -> GameChoices:
        return GameChoices(self.oracle, self.schema, self._solver)

    def _publish(
        self, training: Training, outcome: Equilibrium, listed: tuple[Any, ...], cells: Cells | None
    ) -> None:
        shares = np.array(outcome.plays, np.float64) / sum(outcome.plays)
        mixture = (
            None
            if listed
            else MixtureModel([model_of(rule, training) for rule in outcome.rules], shares)
        )
        self._publish_shape(training, cells)
        self._set_game(outcome, mixture, listed)

    def _set_game(
        self,
        outcome: Equilibrium,
        model: MixtureModel | DerandomisedModel | None,
        listed: tuple[Any, ...],
    ) -> None:
        """Write what was found: after a fit, and when read from disk."""
        plays = shares_of(outcome.rules, outcome.plays, len(listed))
        self.model_, self.candidates_, self.plays_ = model, listed, plays
        self.outcome_, self.guarantee_ = outcome, outcome.guarantee
        self.n_iter_ = outcome.rounds
        self.constraint_report_ = ConstraintReport.of(outcome, said(self))

    def _replace_decisions(self, blindly: Blindly) -> bool:
        """Publish a mixture with blind decisions; False of candidates made elsewhere, which are
        played as they are."""
        model = faces.mixture_of(
            self.model_ if isinstance(self.model_, MixtureModel) else None, blindly
        )
        if model is None:
            return False
        found, left = self.outcome_, 1.0 - blindly.share
        told = replace(
            found,
            rules=tuple(map(rule_of, model.models)),
            plays=tuple(round(WHOLE * share) for share in model.weights),
            values=blindly.mixed(found.names, found.values),
            spread=left * found.spread,
            sampling=None if found.sampling is None else left * found.sampling,
            guarantee=None,
            comparison=None
            if found.comparison is None
            else faces.comparison_of(found.comparison, blindly),
        )
        self.baselines_ = faces.baselines_of(
            self.baselines_, told.comparison, self.classes_.tolist(), blindly
        )
        self._set_game(told, model, ())
        return True

    def _warn(self) -> None:
        ask = "Ask for a larger bound, a larger epsilon, dual_bound or more rounds"
        warn_of_missed(self.constraint_report_, "the mixture reached", ask, stacklevel=4)


def _told(choice: HistogramCache, training: Training) -> dict[str, str]:
    """The final model, in words, where a program chose it."""
    name, remark = words_of(choice, training.classes, "the mixture that was played")
    return {} if choice.is_model else {"handed_out": name, "remark": remark}


def _one_parity_of_false_positives(notions: Sequence[Notion]) -> bool:
    """Theorem 4.6: raising the lowest groups' rates repairs every pair of groups. Not groups
    against the rest, and not two classes' rates at once."""
    asked = [notion for notion in notions if not notion.is_vacuous]
    return (
        len(asked) == 1
        and isinstance(asked[0], FalsePositiveRateParity)
        and asked[0].compare == "pairs"
    )
