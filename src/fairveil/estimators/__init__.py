"""Ring 4: the scikit-learn face, one file a system. Strings stop here: below are objects and
enums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .certifying.alternatives import Alternatives as Alternatives
    from .certifying.alternatives import lda as lda
    from .certifying.certificate import Certificate as Certificate
    from .certifying.certificate import certify as certify
    from .certifying.certified_fits import CertifiedAim as CertifiedAim
    from .certifying.monitor import Monitor as Monitor
    from .certifying.private_table import PrivateTable as PrivateTable
    from .certifying.private_table import private_audit as private_audit
    from .certifying.score_audit import score_audit as score_audit
    from .coding import Additive as Additive
    from .fair import FairClassifier as FairClassifier
    from .fair import FairRegressor as FairRegressor
    from .files import load as load
    from .files import save as save
    from .post_processing import FairPostProcessor as FairPostProcessor
    from .reading import SoftGroups as SoftGroups
    from .reasons import reason_codes as reason_codes
    from .released import ReleasedGroups as ReleasedGroups
    from .released import release_groups as release_groups
    from .reports import ConstraintLine as ConstraintLine
    from .reports import ConstraintReport as ConstraintReport
    from .reports import GapLine as GapLine
    from .reports import GapReport as GapReport
    from .settings import Fermi as Fermi
    from .settings import GroupObjective as GroupObjective
    from .settings import Offsets as Offsets
    from .settings import OracleGame as OracleGame
    from .settings import PrimalDual as PrimalDual
    from .settings import SetAside as SetAside
    from .settings import Tailored as Tailored
    from .settings import Thresholds as Thresholds
    from .tailored import TailoringReport as TailoringReport

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
