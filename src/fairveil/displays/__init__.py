"""Ring 6: displays. Results on axes of matplotlib, after the convention of scikit-learn:
`from_...`, then `plot(ax=...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .budget import BudgetDisplay as BudgetDisplay
    from .constraints import ConstraintDisplay as ConstraintDisplay
    from .frontier import FrontierDisplay as FrontierDisplay
    from .group_rates import GroupRatesDisplay as GroupRatesDisplay
    from .noise import NoiseDisplay as NoiseDisplay

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
