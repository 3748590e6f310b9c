"""Every class of settings, by its name: in files, and at the front door."""

from __future__ import annotations

from .descents import Descent, PenaltyDescent
from .keeping import Checkpoints, SetAside
from .setting import Setting

SETTINGS: dict[str, type[Setting]] = {one.__name__: one for one in (Descent, PenaltyDescent, Checkpoints, SetAside)}
