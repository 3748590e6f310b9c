"""Torch modules as models of estimators: what is handed in, and rows that come with more axes than
two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._types import Floats, TableLike
from ...errors import InputError
from ...facts import RowSource
from ...models import MixtureModel
from ..reading.training import Training
from .coded import axes_of

if TYPE_CHECKING:
    from ...models import NetworkModel, Skeleton


def flattened(X: TableLike, module: object) -> tuple[Any, tuple[int, ...] | None]:
    """For a module: X as (rows, numbers) and the shape of one row, where it has more axes than
    that; else X as it is."""
    axes = axes_of(X)
    if module is None or axes < 3 or isinstance(X, RowSource):
        return X, None
    array = np.asarray(X)
    return array.reshape(len(array), math.prod(array.shape[1:])), tuple(array.shape[1:])


def as_rows(X: TableLike, model: object) -> Any:
    """X as (rows, numbers) where the model is a network whose rows had a shape; anything else as it
    is."""
    axes = axes_of(X)
    if model is None or axes < 3 or isinstance(X, RowSource):
        return X
    parts: Any = model.models if isinstance(model, MixtureModel) else (model,)
    networks = (part for part in parts if part.kind == "network")
    shape = next((one.skeleton.input_shape for one in networks), None)
    array = np.asarray(X)
    if shape is None or array.shape[1:] != shape:
        remedy = "Pass rows of the shape of the fit, or (rows, numbers)."
        expected = "(rows, numbers)" if shape is None else f"rows of shape {shape}"
        raise InputError.expected(expected, of="X", got=f"shape {array.shape}", remedy=remedy)
    return array.reshape(len(array), math.prod(shape))


def skeleton_of(
    module: Any, training: Training, shape: tuple[int, ...] | None, device: object
) -> Skeleton | None:
    """The module, checked against the rows: a copy, so a fit changes nothing that it was given.
    None for a linear model."""
    if module is None:
        return None
    try:
        from ...models import Skeleton
    except ImportError as error:
        remedy = "pip install 'fairveil[torch]', or fit a linear model."
        raise InputError.expected(
            "torch, to use a module", of="model", got=str(error), remedy=remedy
        ) from error
    layout = training.rows.layout
    where = _default_device() if device is None else str(device)
    return Skeleton.of(module, layout.width, len(training.classes), input_shape=shape, device=where)


def model_of(skeleton: Skeleton, parameters: Floats, training: Training) -> NetworkModel:
    """The fitted network."""
    from ...models import NetworkModel

    return NetworkModel(
        skeleton.apart(parameters),
        parameters,
        classes=training.classes,
        layout=training.coding.layout,
    )


def _default_device() -> str:
    """A GPU where there is one."""
    from ...models.torch_network import default_device

    return default_device()
