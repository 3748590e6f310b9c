"""Ring 5: many fits looked at together, what looking at them all has cost, and how many rows theory
asks for in advance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .families import Family as Family
    from .private_search import PrivateSearchCV as PrivateSearchCV
    from .result import Frontier as Frontier
    from .result import Run as Run
    from .sample_size import SampleSizePlan as SampleSizePlan
    from .sample_size import plan_sample_size as plan_sample_size
    from .sweep import frontier as frontier

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
