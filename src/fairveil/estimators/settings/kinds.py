"""Every class of settings, by its name: in files, and at the front door."""

from __future__ import annotations

from .descents import Descent, PenaltyDescent
from .grouped import GroupDescent, GroupLimits
from .keeping import SetAside
from .least_squares import CoefficientGrid, Moments
from .oracles import Exponential, LinearOracle, OracleGame
from .post_processing import Offsets, Thresholds
from .setting import Setting

SETTINGS: dict[str, type[Setting]] = {
    one.__name__: one
    for one in (
        *(
            Descent,
            PenaltyDescent,
            GroupDescent,
            Moments,
            CoefficientGrid,
            LinearOracle,
            Exponential,
            OracleGame,
        ),
        *(Thresholds, Offsets, GroupLimits, SetAside),
    )
}
