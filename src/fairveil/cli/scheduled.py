"""Rows on a dask cluster, for `fairveil fit --scheduler`: none of them is in this process, and none
can be set aside here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .samples import CodedSample, Roles, Sample, Truth

if TYPE_CHECKING:
    from .._types import Mask
    from ..distributed import DaskRows
    from .tables import Place


@dataclass(frozen=True, eq=False, repr=False)
class ScheduledSample(Sample):
    """Rows that a cluster reads by a schema."""

    rows: DaskRows

    @staticmethod
    def read(roles: Roles, place: Place, scheduler: str) -> ScheduledSample:
        """The rows of a file, a folder or a store that all workers see; "local": workers of this
        machine."""
        from ..distributed import DaskRows

        if roles.schema is None:
            remedy = "Write one with `fairveil schema init`, and pass --schema."
            raise InputError.expected("a schema", of="--schema", got=None, remedy=remedy)
        if place.query is not None:
            remedy = "Write a coded store with `fairveil encode`, where all workers see it."
            raise InputError.expected(
                "files beside --scheduler", of="--query", got="a database", remedy=remedy
            )
        place.kind()  # what is not there is said before a cluster is asked
        store = place.kind() == "store"
        rows = DaskRows(scheduler, place.address, None if store else roles.schema)
        if rows.encoding.schema != roles.schema:
            remedy = "Write the store again by the schema and the roles that are asked for now."
            raise InputError.expected(
                "the store's own schema and roles", of="--schema", got="others", remedy=remedy
            )
        return ScheduledSample(rows)

    @property
    def size(self) -> int:
        return sum(block.rows for block in self.rows.blocks())

    @property
    def fit_arguments(self) -> tuple[Any, Any, Any]:
        return self.rows, None, None

    @property
    def features(self) -> Any:
        return self.rows

    @property
    def knows_persons(self) -> bool:
        return self.rows.encoding.schema.unit is not None

    def truth(self) -> Truth:
        return CodedSample(self.rows).truth()  # type: ignore[arg-type]  # blocks are all that it reads

    def part(self, chosen: Mask) -> Sample:
        remedy = "Measure on other rows with --test; rows of a cluster are not set aside."
        raise InputError.expected(
            "0 beside --scheduler", of="--holdout", got="a share", remedy=remedy
        )

    def split(self, holdout: float, seed: int | None) -> tuple[Sample, Sample]:
        return self.part(None), self  # type: ignore[arg-type]  # which refuses

    def require_like(self, held: Sample, of: str) -> None:
        """One schema coded both."""
        assert isinstance(held, CodedSample)
