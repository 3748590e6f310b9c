"""Ring 1: what a release costs. Knows nothing of fairness, models or rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core import events as events
    from ..core.cost import Filter as Filter
    from ..core.cost import Price as Price
    from ..core.cost import delta as delta
    from ..core.cost import epsilon as epsilon
    from ..core.cost import price as price
    from ..core.cost import routes_of as routes_of
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
    from .calibration import Calibrated as Calibrated
    from .calibration import TwoSteps as TwoSteps
    from .calibration import calibrate as calibrate
    from .calibration import full_batch as full_batch
    from .calibration import price_after as price_after
    from .calibration import scaled as scaled
    from .calibration import split as split

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
