"""Ring 1: what a release costs. Knows nothing of fairness, models or rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import events as events
    from .accounting import delta as delta
    from .accounting import epsilon as epsilon
    from .accounting import price as price
    from .calibration import calibrate as calibrate
    from .noise import NoiseSource as NoiseSource
    from .promise import NEIGHBOURS as NEIGHBOURS
    from .promise import PROTECTS as PROTECTS
    from .promise import Promise as Promise
    from .statement import PrivacyStatement as PrivacyStatement

PLACES = {
    "NEIGHBOURS": ".promise",
    "NoiseSource": ".noise",
    "PROTECTS": ".promise",
    "PrivacyStatement": ".statement",
    "Promise": ".promise",
    "calibrate": ".calibration",
    "delta": ".accounting",
    "epsilon": ".accounting",
    "events": ".events",
    "price": ".accounting",
}
"""Where each public name lives. The block for type checkers above says the same; a test compares them."""

__all__ = [
    "NEIGHBOURS",
    "PROTECTS",
    "NoiseSource",
    "PrivacyStatement",
    "Promise",
    "calibrate",
    "delta",
    "epsilon",
    "events",
    "price",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
