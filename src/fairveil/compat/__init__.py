"""Ring 6: other people's tools: fairlearn, AIF360, datasets, skops, MLflow. Each is imported when
it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import aif360 as aif360
    from . import fairlearn as fairlearn
    from . import hugging_face as hugging_face
    from . import mlflow_model as mlflow_model
    from . import skops_files as skops_files

PLACES = {
    "aif360": ".aif360",
    "fairlearn": ".fairlearn",
    "hugging_face": ".hugging_face",
    "mlflow_model": ".mlflow_model",
    "skops_files": ".skops_files",
}

__all__ = ["aif360", "fairlearn", "hugging_face", "mlflow_model", "skops_files"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
