"""What all searches for a group objective have before data are read: a problem, and a plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from ...core.events import Event
from ..oracles import GameInstance
from .problem import Problem


@dataclass(frozen=True, eq=False)
class PlannedSearch(ABC):
    """A search that is planned and priced: public values alone."""

    problem: Problem

    @property
    def ground(self) -> GameInstance:
        """The public facts that all parts of the search share."""
        return self.problem.ground

    @abstractmethod
    def events(self) -> Event:
        """The whole search's events."""

    @cached_property
    def plan(self) -> Event | None:
        """The events that are fixed in advance; None where nothing is promised."""
        return self.events() if self.ground.promise.is_private else None
