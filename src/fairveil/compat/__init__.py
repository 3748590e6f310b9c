"""Ring 6: other people's tools: skops, MLflow. Each is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import mlflow_model as mlflow_model
    from . import skops_files as skops_files

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
