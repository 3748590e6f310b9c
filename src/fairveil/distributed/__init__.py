"""Ring 4: rows on the workers of a dask cluster, here or on other machines, as sources that
estimators take. They code rows with `data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .dask_rows import DaskRows as DaskRows
    from .dask_rows import local_cluster as local_cluster

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
