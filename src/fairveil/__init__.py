"""Models that are fair to groups and private to people, with proof of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazily

if TYPE_CHECKING:
    from . import audit as audit
    from . import curator as curator
    from . import data as data
    from . import distributed as distributed
    from . import estimators as estimators
    from . import export as export
    from . import facts as facts
    from . import fairness as fairness
    from . import ledger as ledger
    from . import methods as methods
    from . import metrics as metrics
    from . import models as models
    from . import privacy as privacy
    from . import serving as serving
    from . import show as show
    from . import study as study
    from .core.promise import Promise as Promise
    from .estimators import Additive as Additive
    from .estimators import FairClassifier as FairClassifier
    from .estimators import FairPostProcessor as FairPostProcessor
    from .estimators import FairRegressor as FairRegressor
    from .estimators import Fermi as Fermi
    from .estimators import GroupObjective as GroupObjective
    from .estimators import Monitor as Monitor
    from .estimators import Offsets as Offsets
    from .estimators import OracleGame as OracleGame
    from .estimators import PrimalDual as PrimalDual
    from .estimators import SetAside as SetAside
    from .estimators import Tailored as Tailored
    from .estimators import Thresholds as Thresholds
    from .estimators import certify as certify
    from .estimators import lda as lda
    from .estimators import load as load
    from .estimators import private_audit as private_audit
    from .estimators import reason_codes as reason_codes
    from .estimators import release_groups as release_groups
    from .estimators import save as save
    from .estimators import score_audit as score_audit
    from .facts import Schema as Schema
    from .fairness import BoundedGroupLoss as BoundedGroupLoss
    from .fairness import DemographicParity as DemographicParity
    from .fairness import EqualizedOdds as EqualizedOdds
    from .fairness import EqualOpportunity as EqualOpportunity
    from .fairness import ErrorRateParity as ErrorRateParity
    from .fairness import FalseNegativeRate as FalseNegativeRate
    from .fairness import FalsePositiveRateParity as FalsePositiveRateParity
    from .fairness import SelectionRateRatio as SelectionRateRatio
    from .ledger import Ledger as Ledger
    from .metrics import demographic_parity_gap as demographic_parity_gap
    from .metrics import equalized_odds_gap as equalized_odds_gap
    from .metrics import group_table as group_table
    from .serving import remote as remote
    from .statement.document import PrivacyStatement as PrivacyStatement
    from .study import PrivateSearchCV as PrivateSearchCV
    from .study import frontier as frontier

__version__ = "0.2.0"

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
