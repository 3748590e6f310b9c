"""Models that are fair to groups and private to people, with proof of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._lazy import lazily

if TYPE_CHECKING:
    from . import curator as curator
    from . import data as data
    from . import facts as facts
    from . import fairness as fairness
    from . import models as models
    from . import privacy as privacy
    from .privacy.promise import Promise as Promise
    from .privacy.statement import PrivacyStatement as PrivacyStatement

__version__ = "0.1.0"

PLACES = {
    "curator": ".curator",
    "data": ".data",
    "facts": ".facts",
    "fairness": ".fairness",
    "models": ".models",
    "privacy": ".privacy",
    "PrivacyStatement": ".privacy.statement",
    "Promise": ".privacy.promise",
}
"""Where each public name lives. The block for type checkers above says the same; a test compares them."""

__all__ = ["PrivacyStatement", "Promise", "curator", "data", "facts", "fairness", "models", "privacy"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
