"""Ring 1: what comes out. Models that predict, explain their randomness, and are saved without
pickle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily
from . import files, folders
from .files import load, save
from .linear import AffineMap, GroupedLinearModel, LinearModel, RegressionModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Model, Parts, Predictor, RandomState
from .postprocessed import PostProcessedModel, ShiftedModel

if TYPE_CHECKING:
    from .torch_network import NetworkModel as NetworkModel
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
