"""Pieces of rows' gradients in a layer: their norms, and their clipped sums on a grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import layers as kernels_layers

A_BITS = 16  # of an input's largest number, in a product
MOST_SCRATCH = 1 << 24  # numbers that are kept: a knob of speed only
# an input all of whose numbers are below counts as this large: its rounding is then absolute
SMALLEST = 2.0**-60
WORTH_SHARING = 1 << 22  # numbers that are multiplied: below, a thread costs more than it saves
# job(a, b) over runs a to b of so many lines, on so many threads: see `rows.threads`
Sharing = Callable[[Callable[[int, int], None], int, int], object]


def _alone(job: Callable[[int, int], None], lines: int, threads: int) -> None:
    job(0, lines)


class Scratch:
    """Memory for the sums of one chunk, used again for the next: fresh pages cost as much as what
    is written on them. And how work is shared among threads.

    It holds private numbers, so it belongs to the curator's own pass, never to a module or an
    engine.
    """

    def __init__(self, share: Sharing = _alone) -> None:
        self.share = share
        self._held: dict[tuple[int, str], torch.Tensor] = {}

    def take(
        self, name: tuple[int, str], rows: int, width: int, device: torch.device
    ) -> torch.Tensor:
        """(rows, width) float64 of anything. What was taken under that name before is written
        over."""
        held = self._held.get(name)
        if held is None or held.numel() < rows * width or held.device != device:
            if rows * width > MOST_SCRATCH:
                return torch.empty(rows, width, dtype=torch.float64, device=device)
            held = self._held[name] = torch.empty(
                rows * width * 9 // 8, dtype=torch.float64, device=device
            )
        return held[: rows * width].view(rows, width)


class GradientPiece:
    """A piece of every row's gradient, at some place of the flat vector. Abstract."""

    def squares(self) -> torch.Tensor:
        """The squared norm of every row's piece, float64."""
        raise NotImplementedError

    def drop(self, bad: torch.Tensor) -> None:
        """Rows that hold no numbers become zero."""
        raise NotImplementedError

    def add(self, factors: torch.Tensor, total: torch.Tensor) -> None:
        """total += sum over rows of factor x piece, each rounded to whole numbers first where the
        part is exact. Once."""
        self.scale(factors)
        self.add_rows(0, len(factors), total)

    def scale(self, factors: torch.Tensor) -> None:
        """Each row's piece x its factor, in whole numbers where the part is exact. Once."""
        raise NotImplementedError

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        """total += what is now there of these rows."""
        raise NotImplementedError


class Product(GradientPiece):
    """d a' of one dense position: inputs (rows, in), slopes (rows, out). A bias is one more input,
    which is always 1."""

    def __init__(
        self,
        inputs: torch.Tensor,
        slopes: torch.Tensor,
        weight: int,
        bias: int | None = None,
        exact: bool = True,
    ) -> None:
        rows, self.width = inputs.shape
        self.weight, self.bias, self.exact = weight, bias, exact
        kind: dict[str, Any] = {"dtype": torch.float64, "device": inputs.device}
        self.a = torch.empty(rows, self.width + (bias is not None), **kind)
        self.d = slopes.double()
        if exact:
            top = inputs.abs().amax(dim=1, keepdim=True).clamp_min(least_of(bias))
            up = torch.frexp(top).exponent - A_BITS
            # whole numbers of at most 2^16
            self.a[:, : self.width] = (inputs * torch.ldexp(torch.ones_like(top), -up)).round_()
            self.up = torch.ldexp(torch.ones(rows, **kind), up[:, 0])
        else:
            self.a[:, : self.width], self.up = inputs, torch.ones(rows, **kind)
        if bias is not None:
            # a power of two, exactly, unless all others are above 2^16
            self.a[:, self.width] = torch.round(1.0 / self.up)
        self.norms = torch.linalg.vector_norm(self.a, dim=1)
        self.sizes = torch.linalg.vector_norm(self.d, dim=1)

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and lines of a row's piece."""
        return self.a.shape[1], self.d.shape[1]

    def seen(self) -> tuple[torch.Tensor, ...]:
        """All that is found of the rows, each on the first axis."""
        return self.a, self.d, self.up, self.norms, self.sizes

    def squares(self) -> torch.Tensor:
        return torch.square(self.norms * self.up * self.sizes)

    def drop(self, bad: torch.Tensor) -> None:
        self.a[bad], self.d[bad], self.up[bad] = 0.0, 0.0, 1.0

    def scale(self, factors: torch.Tensor) -> None:
        self.d.mul_((factors * self.up).unsqueeze(1))
        if self.exact:
            self.d.round_()

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        self.put(self.d[first:last].T @ self.a[first:last], total)

    def put(self, found: torch.Tensor, total: torch.Tensor) -> None:
        """total += (lines, columns): inputs, the bias, and columns of zeros."""
        height, width = len(found), self.width
        total[self.weight : self.weight + height * width] += found[:, :width].reshape(-1)
        if self.bias is not None:
            total[self.bias : self.bias + height] += found[:, width]

    @staticmethod
    def error(width: int, height: int) -> float:
        """What rounding may add to a row's norm, in grid steps."""
        return math.sqrt(width * height) * 2.0 ** (A_BITS - 1)


class FusedProduct(Product):
    """The same on a CPU, on the grid, by `kernels_layers`: whole numbers are made eight rows at a
    time, just before they are multiplied, and never kept."""

    def __init__(
        self,
        inputs: torch.Tensor,
        slopes: torch.Tensor,
        weight: int,
        bias: int | None = None,
        scratch: Scratch | None = None,
    ) -> None:
        rows, self.width = inputs.shape
        self.weight, self.bias, self.exact = weight, bias, True
        self._scratch = Scratch() if scratch is None else scratch
        self._inputs, self._slopes = inputs.contiguous().numpy(), slopes.contiguous().numpy()
        self.up, self.norms, self.sizes = torch.empty(3, rows, dtype=torch.float64)
        least = int(np.float32(least_of(bias)).view(np.int32))
        kernels_layers.lengths(
            self._inputs,
            least,
            A_BITS,
            int(bias is not None),
            self.up.numpy(),
            self.norms.numpy(),
            0,
            rows,
        )
        kernels_layers.sizes(self._slopes, self.sizes.numpy(), 0, rows)

    @property
    def shape(self) -> tuple[int, int]:
        return self.width + (self.bias is not None), self._slopes.shape[1]

    def seen(self) -> tuple[torch.Tensor, ...]:
        given = (torch.from_numpy(side) for side in (self._inputs, self._slopes))
        return (*given, self.up, self.norms, self.sizes)

    def drop(self, bad: torch.Tensor) -> None:
        self.up[bad] = 0.0  # and so what a row is multiplied by, which leaves it out

    def scale(self, factors: torch.Tensor) -> None:
        self._by = (factors * self.up).numpy()

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        (width, height), line = self.shape, kernels_layers.LINE
        columns = -(-width // line) * line
        found = self._scratch.take((self.weight, "sums"), height, columns, total.device).zero_()

        def job(low: int, high: int) -> None:
            # of torch: it begins at a line of the cache
            a, s = (
                torch.empty(kernels_layers.AT_ONCE, n, dtype=torch.float64).numpy()
                for n in (columns, high - low)
            )
            kernels_layers.add_product(
                self._inputs,
                self._slopes,
                self.up.numpy(),
                self._by,
                int(self.bias is not None),
                first,
                last,
                low,
                high,
                a,
                s,
                found.numpy(),
            )

        if (last - first) * height * columns < WORTH_SHARING:
            job(0, height)
        else:
            self._scratch.share(job, height, torch.get_num_threads())
        self.put(found, total)


def least_of(bias: int | None) -> float:
    """A number below which a row's largest input is not taken to lie."""
    return SMALLEST if bias is None else 1.0


def product_of(
    inputs: torch.Tensor,
    slopes: torch.Tensor,
    weight: int,
    bias: int | None,
    exact: bool,
    scratch: Scratch | None,
) -> Product:
    """The product of a dense layer's inputs and slopes, by the fastest way for them."""
    if exact and inputs.device.type == "cpu" and inputs.dtype == slopes.dtype == torch.float32:
        return FusedProduct(inputs, slopes, weight, bias, scratch)
    return Product(inputs, slopes, weight, bias, exact)


class Built(GradientPiece):
    """Pieces that are there: (rows, numbers)."""

    def __init__(self, pieces: torch.Tensor, start: int, exact: bool = True) -> None:
        self.pieces, self.start, self.exact = pieces.double(), start, exact

    def squares(self) -> torch.Tensor:
        return torch.square(torch.linalg.vector_norm(self.pieces, dim=1))

    def drop(self, bad: torch.Tensor) -> None:
        self.pieces[bad] = 0.0

    def scale(self, factors: torch.Tensor) -> None:
        self.by = factors
        if self.exact:
            self.pieces.mul_(factors.unsqueeze(1)).round_()

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        pieces = self.pieces[first:last]
        found = pieces.sum(dim=0) if self.exact else self.by[first:last] @ pieces
        total[self.start : self.start + len(found)] += found

    @staticmethod
    def error(numbers: int) -> float:
        """What rounding may add to a row's norm, in grid steps."""
        return math.sqrt(numbers) / 2.0


class Looked(GradientPiece):
    """Lines of a table that rows looked up, each line's slopes of a row added up: a row's gradient
    is zero elsewhere."""

    def __init__(
        self, index: torch.Tensor, slopes: torch.Tensor, lines: int, start: int, exact: bool = True
    ) -> None:
        rows, times = index.shape
        self.rows, self.start, self.exact = rows, start, exact
        keys = index + lines * torch.arange(rows, device=index.device).unsqueeze(1)
        unique, places = torch.unique(keys.reshape(-1), return_inverse=True)
        self.row, self.line = torch.div(unique, lines, rounding_mode="floor"), unique % lines
        self.values = torch.zeros(
            len(unique), slopes.shape[-1], dtype=torch.float64, device=slopes.device
        )
        self.values.index_add_(0, places, slopes.reshape(rows * times, -1).double())

    def squares(self) -> torch.Tensor:
        squares = (self.values * self.values).sum(dim=1)
        return torch.zeros(self.rows, dtype=torch.float64, device=squares.device).index_add_(
            0, self.row, squares
        )

    def drop(self, bad: torch.Tensor) -> None:
        self.values[bad[self.row]] = 0.0

    def scale(self, factors: torch.Tensor) -> None:
        self.values.mul_(factors[self.row].unsqueeze(1))
        if self.exact:
            self.values.round_()

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        a, b = torch.searchsorted(self.row, self.row.new_tensor([first, last])).tolist()
        width = self.values.shape[1]
        within = torch.arange(width, device=self.values.device)
        at = (self.start + self.line[a:b] * width).unsqueeze(1) + within
        total.index_add_(0, at.reshape(-1), self.values[a:b].reshape(-1))
