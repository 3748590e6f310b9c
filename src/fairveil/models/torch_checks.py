"""What a torch module must be before rows meet it, as far as it shows without running it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from .. import _checks
from ..errors import InputError

MIXING = (nn.modules.batchnorm._NormBase,)  # BatchNorm, SyncBatchNorm and InstanceNorm
DROPPING = (nn.modules.dropout._DropoutNd,)


def axes_of(shape: Sequence[int] | None, width: int) -> tuple[int, ...] | None:
    """How a row is laid out, if not as a plain vector."""
    if shape is None:
        return None
    axes = tuple(_checks.whole(at_least=1, input_shape=axis) for axis in shape)
    if int(np.prod(axes)) != width:
        remedy = "Leave it out for a plain vector."
        raise InputError.expected(
            f"axes whose product is {width}", of="input_shape", got=axes, remedy=remedy
        )
    return axes


def check_module(module: object) -> None:
    """What can be seen without running the module."""
    remedy = "Pass torch.nn.Sequential(torch.nn.Linear(width, 64), ...), for example."
    module = _checks.instance(nn.Module, "model", module, remedy, "a torch.nn.Module")
    for name, inner in module.named_modules():
        where = f"model, layer {name or 'itself'!r}"
        if isinstance(inner, MIXING) and (
            inner.track_running_stats
            or not isinstance(inner, nn.modules.instancenorm._InstanceNorm)
        ):
            remedy = "Use GroupNorm or LayerNorm: they look at one row."
            raise InputError.expected(
                "no layer that mixes rows", of=where, got=type(inner).__name__, remedy=remedy
            )
        if isinstance(inner, DROPPING) and inner.p > 0:
            remedy = (
                "Pass p=0: the noise regularises already, and dropout would draw from a generator "
                "of its own."
            )
            raise InputError.expected("no dropout", of=where, got=f"p={inner.p:g}", remedy=remedy)
        if getattr(inner, "dropout", 0.0) and isinstance(inner.dropout, float):
            remedy = "Pass dropout=0: the noise regularises already."
            raise InputError.expected(
                "no dropout", of=where, got=f"dropout={inner.dropout:g}", remedy=remedy
            )
    parameters = dict(module.named_parameters())
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in parameters.values()):
        remedy = "Run the module on one row first, so that lazy layers get their shapes."
        raise InputError.expected(
            "parameters with shapes", of="model", got="lazy ones", remedy=remedy
        )
    for name, p in parameters.items():
        if p.dtype != torch.float32:
            remedy = "Call module.float() first."
            raise InputError.expected(
                "float32", of=f"parameter {name!r}", got=str(p.dtype), remedy=remedy
            )
        if not torch.isfinite(p).all():
            remedy = "Initialise it again."
            raise InputError.expected(
                "finite numbers", of=f"parameter {name!r}", got="NaN or inf", remedy=remedy
            )
    if not any(p.requires_grad for p in parameters.values()):
        remedy = "Let some ask for gradients: parameter.requires_grad_(True)."
        raise InputError.expected("parameters to train", of="model", got="none", remedy=remedy)
