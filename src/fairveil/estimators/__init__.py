"""Ring 4: the scikit-learn face, one file a system. Strings stop here: below are objects and
enums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .certifying.certificate import Certificate as Certificate
    from .certifying.certificate import certify as certify
    from .certifying.certified_fits import CertifiedAim as CertifiedAim
    from .certifying.monitor import Monitor as Monitor
    from .certifying.private_table import PrivateTable as PrivateTable
    from .certifying.private_table import private_audit as private_audit
    from .fermi import FermiClassifier as FermiClassifier
    from .files import load as load
    from .files import save as save
    from .group_objective import GroupObjectiveClassifier as GroupObjectiveClassifier
    from .group_objective_regressor import GroupObjectiveRegressor as GroupObjectiveRegressor
    from .oracle_game import OracleGameClassifier as OracleGameClassifier
    from .post_processing import FairPostProcessor as FairPostProcessor
    from .rate_constrained import RateConstrainedClassifier as RateConstrainedClassifier
    from .reading.additive import Additive as Additive
    from .reading.soft_groups import SoftGroups as SoftGroups
    from .released import ReleasedClassifier as ReleasedClassifier
    from .released import ReleasedFrontier as ReleasedFrontier
    from .released import ReleasedGroups as ReleasedGroups
    from .released import release_groups as release_groups
    from .reports import ConstraintLine as ConstraintLine
    from .reports import ConstraintReport as ConstraintReport
    from .reports import FairScorer as FairScorer
    from .reports import GapLine as GapLine
    from .reports import GapReport as GapReport
    from .reports import fair_scorer as fair_scorer
    from .settings import CoefficientGrid as CoefficientGrid
    from .settings import Descent as Descent
    from .settings import Exponential as Exponential
    from .settings import GroupDescent as GroupDescent
    from .settings import GroupLimits as GroupLimits
    from .settings import LinearOracle as LinearOracle
    from .settings import Moments as Moments
    from .settings import Offsets as Offsets
    from .settings import OracleGame as OracleGame
    from .settings import PenaltyDescent as PenaltyDescent
    from .settings import SetAside as SetAside
    from .settings import Thresholds as Thresholds
    from .tailored import TailoringReport as TailoringReport
    from .tailored_classifier import TailoredClassifier as TailoredClassifier
    from .tailored_regressor import TailoredRegressor as TailoredRegressor

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
