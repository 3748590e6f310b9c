"""Ring 1: what a release costs. Knows nothing of fairness, models or rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import events as events
    from .accounting import Price as Price
    from .accounting import curve as curve
    from .accounting import delta as delta
    from .accounting import epsilon as epsilon
    from .accounting import price as price
    from .accounting import routes_of as routes_of
    from .calibration import Calibrated as Calibrated
    from .calibration import calibrate as calibrate
    from .calibration import full_batch as full_batch
    from .calibration import most_rounds as most_rounds
    from .calibration import scaled as scaled
    from .calibration import split as split
    from .filters import Filter as Filter
    from .ledger import Ledger as Ledger
    from .noise import NoiseSource as NoiseSource
    from .promise import NEIGHBOURS as NEIGHBOURS
    from .promise import PROTECTS as PROTECTS
    from .promise import Promise as Promise
    from .samplers import Stream as Stream
    from .signatures import Signature as Signature
    from .signatures import sign as sign
    from .signatures import verify_signature as verify_signature
    from .signing_keys import new_key as new_key
    from .statement import NamedGroups as NamedGroups
    from .statement import PrivacyStatement as PrivacyStatement
    from .statement import PublicFact as PublicFact
    from .two_steps import TwoSteps as TwoSteps
    from .two_steps import price_after as price_after
    from .units import Unit as Unit

PLACES = {
    "Calibrated": ".calibration",
    "Filter": ".filters",
    "Ledger": ".ledger",
    "NEIGHBOURS": ".promise",
    "NamedGroups": ".statement",
    "NoiseSource": ".noise",
    "PROTECTS": ".promise",
    "Price": ".accounting",
    "PrivacyStatement": ".statement",
    "Promise": ".promise",
    "PublicFact": ".statement",
    "Signature": ".signatures",
    "Stream": ".samplers",
    "TwoSteps": ".two_steps",
    "Unit": ".units",
    "calibrate": ".calibration",
    "curve": ".accounting",
    "delta": ".accounting",
    "epsilon": ".accounting",
    "events": ".events",
    "full_batch": ".calibration",
    "most_rounds": ".calibration",
    "new_key": ".signing_keys",
    "price": ".accounting",
    "price_after": ".two_steps",
    "routes_of": ".accounting",
    "scaled": ".calibration",
    "sign": ".signatures",
    "split": ".calibration",
    "verify_signature": ".signatures",
}
"""Where each public name lives. The block for type checkers above says the same; a test compares them."""

__all__ = [
    "NEIGHBOURS",
    "PROTECTS",
    "Calibrated",
    "Filter",
    "Ledger",
    "NamedGroups",
    "NoiseSource",
    "Price",
    "PrivacyStatement",
    "Promise",
    "PublicFact",
    "Signature",
    "Stream",
    "TwoSteps",
    "Unit",
    "calibrate",
    "curve",
    "delta",
    "epsilon",
    "events",
    "full_batch",
    "most_rounds",
    "new_key",
    "price",
    "price_after",
    "routes_of",
    "scaled",
    "sign",
    "split",
    "verify_signature",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
