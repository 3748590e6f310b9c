"""Ring 1: what a release costs. Knows nothing of fairness, models or rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core import events as events
    from ..core.cost import Price as Price
    from ..core.cost import curve as curve
    from ..core.cost import delta as delta
    from ..core.cost import epsilon as epsilon
    from ..core.cost import price as price
    from ..core.cost import routes_of as routes_of
    from ..core.filters import Filter as Filter
    from ..core.noise import NoiseSource as NoiseSource
    from ..core.noise import Stream as Stream
    from ..core.promise import NEIGHBOURS as NEIGHBOURS
    from ..core.promise import PROTECTS as PROTECTS
    from ..core.promise import Promise as Promise
    from ..core.promise import Unit as Unit
    from ..statement.document import NamedGroups as NamedGroups
    from ..statement.document import PrivacyStatement as PrivacyStatement
    from ..statement.document import PublicFact as PublicFact
    from ..statement.signing import Signature as Signature
    from ..statement.signing import new_key as new_key
    from ..statement.signing import sign as sign
    from ..statement.signing import verify_signature as verify_signature
    from .accounting.calibration import Calibrated as Calibrated
    from .accounting.calibration import calibrate as calibrate
    from .accounting.calibration import full_batch as full_batch
    from .accounting.calibration import most_rounds as most_rounds
    from .accounting.calibration import scaled as scaled
    from .accounting.calibration import split as split
    from .accounting.two_steps import TwoSteps as TwoSteps
    from .accounting.two_steps import price_after as price_after

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
