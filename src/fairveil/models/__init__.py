"""Ring 1: what comes out. Models that predict, explain their randomness, and are saved without pickle."""

from . import files, folders
from .files import load, save
from .grouped import GroupedLinearModel
from .linear import AffineMap, LinearModel
from .mixture import DerandomisedModel, MixtureModel
from .model import Model, Parts, RandomState
from .postprocessed import PostProcessedModel

__all__ = [
    "AffineMap",
    "DerandomisedModel",
    "GroupedLinearModel",
    "LinearModel",
    "MixtureModel",
    "Model",
    "Parts",
    "PostProcessedModel",
    "RandomState",
    "files",
    "folders",
    "load",
    "save",
]
