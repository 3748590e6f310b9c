"""Matrix products whose every row begins at the same place of a cache line: numbers are padded by
zeros to whole lines.

A BLAS may add up a row's product in another order where the row begins elsewhere in memory: with 33
inputs of 4 bytes, at each fourth row (MKL 2024.2). Zeros beside the numbers change no sum. What
torch finds backwards through padded products is padded, too. See `torch_alone`, which tries plain
products first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LINE = 16  # float32 numbers of 64 bytes, where torch's own memory begins


class Aligned(TorchFunctionMode):
    """Inside, products of matrices of float32 numbers are padded ones. Others, and all other
    functions, are torch's own."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        rule = RULES.get(func)
        return (
            func(*args, **(kwargs or {})) if rule is None else rule(func, *args, **(kwargs or {}))
        )


def _linear(
    func: Callable[..., torch.Tensor],
    given: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    if not _fits(given, weight) or given.shape[-1] % LINE == 0 == weight.shape[0] % LINE:
        result: torch.Tensor = func(given, weight, bias)
        return result
    out: torch.Tensor = func(_padded(given), _padded(weight, both=True))[..., : weight.shape[0]]
    return out if bias is None else out + bias


def _product(
    func: Callable[..., torch.Tensor], a: torch.Tensor, b: torch.Tensor, **more: object
) -> Any:
    if more or not _fits(a, b) or a.shape[-1] % LINE == 0 == b.shape[-1] % LINE:
        return func(a, b, **more)
    return func(_padded(a), _padded(b, both=True))[..., : b.shape[-1]]


def _sum(
    func: Callable[..., torch.Tensor],
    bias: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    **more: object,
) -> Any:
    if more or not _fits(a, b):
        return func(bias, a, b, **more)
    return bias + _product(torch.matmul, a, b)


def _fits(a: object, b: object) -> bool:
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return False
    return a.dtype == b.dtype == torch.float32 and min(a.ndim, b.ndim) >= 2


def _padded(tensor: torch.Tensor, *, both: bool = False) -> torch.Tensor:
    """Zeros up to whole lines behind the last axis, or behind the last two."""
    over = [-tensor.shape[-1] % LINE, -tensor.shape[-2] % LINE if both else 0]
    return functional.pad(tensor, (0, over[0], 0, over[1])) if any(over) else tensor


RULES: dict[Any, Callable[..., Any]] = {
    functional.linear: _linear,
    **dict.fromkeys(
        (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm),
        _product,
    ),
    **dict.fromkeys((torch.bmm, torch.Tensor.bmm), _product),
    **dict.fromkeys((torch.addmm, torch.Tensor.addmm, torch.baddbmm, torch.Tensor.baddbmm), _sum),
}
