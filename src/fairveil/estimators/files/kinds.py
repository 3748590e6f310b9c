"""Every class of estimators that is written: what it writes beside what all do, and how it is
read."""

from __future__ import annotations

from ..fermi import FermiClassifier
from ..group_objective import GroupObjectiveClassifier
from ..group_objective_regressor import GroupObjectiveRegressor
from ..oracle_game import OracleGameClassifier
from ..post_processing.odds_post_processor import OddsPostProcessor
from ..post_processing.parity_post_processor import ParityPostProcessor
from ..rate_constrained import RateConstrainedClassifier
from ..released.classifier import ReleasedClassifier
from ..tailored_classifier import TailoredClassifier
from ..tailored_regressor import TailoredRegressor
from .descents import descent_content, revive_descent
from .kind import Kind
from .mixtures import game_content, group_objective_content, revive_game, revive_group_objective
from .post_processed import parity_content, post_content, revive_parity, revive_post
from .regressions import (
    regression_content,
    revive_regression,
    revive_tailored_classifier,
    revive_tailored_regression,
    tailored_content,
    tailored_regression_content,
)
from .released import released_content, revive_released

KINDS: dict[str, Kind] = {
    "RateConstrainedClassifier": Kind(
        RateConstrainedClassifier, frozenset({"coding", "outcome"}), descent_content, revive_descent
    ),
    "FermiClassifier": Kind(
        FermiClassifier, frozenset({"coding", "outcome"}), descent_content, revive_descent
    ),
    "OracleGameClassifier": Kind(
        OracleGameClassifier,
        frozenset({"coding", "classes", "outcome", "places", "candidates", "named"}),
        game_content,
        revive_game,
    ),
    "GroupObjectiveClassifier": Kind(
        GroupObjectiveClassifier,
        frozenset({"coding", "classes", "outcome", "places", "candidates", "certain"}),
        group_objective_content,
        revive_group_objective,
    ),
    "GroupObjectiveRegressor": Kind(
        GroupObjectiveRegressor,
        frozenset({"coding", "outcome", "target"}),
        regression_content,
        revive_regression,
    ),
    "TailoredRegressor": Kind(
        TailoredRegressor,
        frozenset({"coding", "outcome", "target", "tailoring"}),
        tailored_regression_content,
        revive_tailored_regression,
    ),
    "TailoredClassifier": Kind(
        TailoredClassifier,
        frozenset({"coding", "outcome", "tailoring"}),
        tailored_content,
        revive_tailored_classifier,
    ),
    "ReleasedClassifier": Kind(
        ReleasedClassifier,
        frozenset({"coding", "error", "report"}),
        released_content,
        revive_released,
    ),
    "OddsPostProcessor": Kind(
        OddsPostProcessor,
        frozenset({"base", "sensitive", "released", "guarantee", "report", "predict_method"}),
        post_content,
        revive_post,
    ),
    "ParityPostProcessor": Kind(
        ParityPostProcessor,
        frozenset({"base", "sensitive", "found", "report"}),
        parity_content,
        revive_parity,
    ),
}
