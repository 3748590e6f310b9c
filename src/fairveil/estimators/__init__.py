"""Ring 4: the scikit-learn face, one file a system. Strings stop here: below are objects and enums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .additive import Additive as Additive
    from .certificate import Certificate as Certificate
    from .certified_run import CertifiedAim as CertifiedAim
    from .certifying import certify as certify
    from .constraint_report import ConstraintLine as ConstraintLine
    from .constraint_report import ConstraintReport as ConstraintReport
    from .fermi import FermiClassifier as FermiClassifier
    from .files import load as load
    from .files import save as save
    from .gap_report import GapLine as GapLine
    from .gap_report import GapReport as GapReport
    from .group_objective import GroupObjectiveClassifier as GroupObjectiveClassifier
    from .group_objective_regressor import GroupObjectiveRegressor as GroupObjectiveRegressor
    from .monitor import Monitor as Monitor
    from .odds_post_processor import OddsPostProcessor as OddsPostProcessor
    from .oracle_game import OracleGameClassifier as OracleGameClassifier
    from .private_auditing import private_audit as private_audit
    from .private_table import PrivateTable as PrivateTable
    from .rate_constrained import RateConstrainedClassifier as RateConstrainedClassifier
    from .released_classifier import ReleasedClassifier as ReleasedClassifier
    from .released_frontier import ReleasedFrontier as ReleasedFrontier
    from .released_groups import ReleasedGroups as ReleasedGroups
    from .released_groups import release_groups as release_groups
    from .row_metric import RowMetric as RowMetric
    from .scoring import FairScorer as FairScorer
    from .scoring import fair_scorer as fair_scorer
    from .tailored import TailoringReport as TailoringReport
    from .tailored_classifier import TailoredClassifier as TailoredClassifier
    from .tailored_regressor import TailoredRegressor as TailoredRegressor

PLACES = {
    "Additive": ".additive",
    "Certificate": ".certificate",
    "CertifiedAim": ".certified_run",
    "ConstraintLine": ".constraint_report",
    "ConstraintReport": ".constraint_report",
    "FairScorer": ".scoring",
    "FermiClassifier": ".fermi",
    "GapLine": ".gap_report",
    "GapReport": ".gap_report",
    "GroupObjectiveClassifier": ".group_objective",
    "GroupObjectiveRegressor": ".group_objective_regressor",
    "Monitor": ".monitor",
    "OddsPostProcessor": ".odds_post_processor",
    "OracleGameClassifier": ".oracle_game",
    "PrivateTable": ".private_table",
    "RateConstrainedClassifier": ".rate_constrained",
    "ReleasedClassifier": ".released_classifier",
    "ReleasedFrontier": ".released_frontier",
    "ReleasedGroups": ".released_groups",
    "RowMetric": ".row_metric",
    "TailoredClassifier": ".tailored_classifier",
    "TailoredRegressor": ".tailored_regressor",
    "TailoringReport": ".tailored",
    "certify": ".certifying",
    "fair_scorer": ".scoring",
    "load": ".files",
    "private_audit": ".private_auditing",
    "release_groups": ".released_groups",
    "save": ".files",
}

__all__ = [
    "Additive",
    "Certificate",
    "CertifiedAim",
    "ConstraintLine",
    "ConstraintReport",
    "FairScorer",
    "FermiClassifier",
    "GapLine",
    "GapReport",
    "GroupObjectiveClassifier",
    "GroupObjectiveRegressor",
    "Monitor",
    "OddsPostProcessor",
    "OracleGameClassifier",
    "PrivateTable",
    "RateConstrainedClassifier",
    "ReleasedClassifier",
    "ReleasedFrontier",
    "ReleasedGroups",
    "RowMetric",
    "TailoredClassifier",
    "TailoredRegressor",
    "TailoringReport",
    "certify",
    "fair_scorer",
    "load",
    "private_audit",
    "release_groups",
    "save",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
