"""What the people of each group pay for a list of events: for the tests of every room."""

from __future__ import annotations

import math
from typing import Any

from fairveil.core.events import as_event
from fairveil.statement.form import Event, event
from fairveil.statement.groups import Cells, group_epsilons
from fairveil.statement.rule import Said


def by_group(
    events: Any, delta: float, neighbours: str, cells: int, column: int = 0, fixed: bool = True
) -> tuple[float, ...]:
    """The epsilon, at this delta, of the people of each of the `cells` groups of a sensitive column.

    `fixed`: whether the shares were fixed before data were read. If not, `events` must tell this
    column's releases as they were made and all others as they were planned.
    """
    whole: Event = event(as_event(events).to_dict())
    said = Said(whole, whole, None, math.inf, math.inf, delta, neighbours)
    return tuple(one for one, _ in group_epsilons(said, Cells(column, cells), fixed))
