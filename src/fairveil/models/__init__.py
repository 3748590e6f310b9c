"""Ring 1: what comes out. Models that predict, explain their randomness, and are saved without
pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily
from . import files, folders
from .files import load, save
from .grouped import GroupedLinearModel
from .linear import AffineMap, LinearModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Model, Parts, Predictor, RandomState
from .postprocessed import PostProcessedModel
from .regression import RegressionModel
from .shifted import ShiftedModel

if TYPE_CHECKING:
    from .torch_model import NetworkModel as NetworkModel
    from .torch_network import Skeleton as Skeleton

# torch is loaded when they are asked for

__all__ = [
    "AffineMap",
    "DerandomisedModel",
    "GroupedLinearModel",
    "LinearModel",
    "MixtureModel",
    "Model",
    "NetworkModel",
    "Parts",
    "PostProcessedModel",
    "Predictor",
    "RandomState",
    "RegressionModel",
    "ShiftedModel",
    "Skeleton",
    "files",
    "folders",
    "load",
    "save",
]

if not TYPE_CHECKING:
    __getattr__, __dir__, _ = lazily(__name__)
