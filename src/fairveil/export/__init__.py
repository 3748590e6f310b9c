"""Ring 5: finished models elsewhere: as SQL, as steps of scikit-learn, as skops files and as MLflow
models. Nothing here reads training rows; other people's libraries are imported when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import mlflow_model as mlflow_model
    from . import skops_files as skops_files
    from .sklearn_steps import to_sklearn as to_sklearn
    from .sql import sql_query as sql_query

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
