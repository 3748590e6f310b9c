"""Pieces of rows' gradients in a layer: their norms, and their clipped sums on a grid."""

from __future__ import annotations

import math

import numpy as np
import torch

from . import layers as kernels_layers

A_BITS = 16  # of an input's largest number, in a product
MOST_SCRATCH = 1 << 24  # numbers that are kept: a knob of speed only
# an input all of whose numbers are below counts as this large: its rounding is then absolute
SMALLEST = 2.0**-60


class Scratch:
    """Memory for the numbers of one chunk, used again for the next: fresh pages cost as much as
    what is written on them.

    It holds private numbers, so it belongs to the curator's own pass, never to a module or an
    engine.
    """

    def __init__(self) -> None:
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
    which is always 1.

    On a CPU the whole numbers are made by `kernels_layers`, in one pass: the same ones.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        slopes: torch.Tensor,
        weight: int,
        bias: int | None = None,
        exact: bool = True,
        scratch: Scratch | None = None,
    ) -> None:
        rows, width = inputs.shape
        self.weight, self.bias, self.exact = weight, bias, exact
        self.compiled = (
            exact
            and inputs.device.type == "cpu"
            and inputs.dtype == torch.float32
            and slopes.is_contiguous()
        )
        room = scratch if scratch is not None and self.compiled else Scratch()
        self.a = room.take((weight, "a"), rows, width + (bias is not None), inputs.device)
        self.d = (
            room.take((weight, "d"), rows, slopes.shape[1], inputs.device).copy_(slopes)
            if self.compiled
            else slopes.double()
        )
        if self.compiled:
            self.up = torch.empty(rows, dtype=torch.float64)
            self.norms = torch.empty(rows, dtype=torch.float64)
            least = np.float32(SMALLEST if bias is None else 1.0).view(np.int32)
            given = (inputs.contiguous().numpy(), int(least), A_BITS, width)
            kernels_layers.whole_numbers(
                *given, self.a.numpy(), self.up.numpy(), self.norms.numpy(), 0, rows
            )
            return
        if exact:
            top = (
                inputs.abs().amax(dim=1, keepdim=True).clamp_min(SMALLEST if bias is None else 1.0)
            )
            up = torch.frexp(top).exponent - A_BITS
            # whole numbers of at most 2^16
            self.a[:, :width] = (inputs * torch.ldexp(torch.ones_like(top), -up)).round_()
            self.up = torch.ldexp(
                torch.ones(rows, dtype=torch.float64, device=inputs.device), up[:, 0]
            )
        else:
            self.a[:, :width], self.up = (
                inputs,
                torch.ones(rows, dtype=torch.float64, device=inputs.device),
            )
        if bias is not None:
            # a power of two, exactly, unless all others are above 2^16
            self.a[:, width] = torch.round(1.0 / self.up)
        self.norms = torch.linalg.vector_norm(self.a, dim=1)

    def squares(self) -> torch.Tensor:
        return torch.square(self.norms * self.up * torch.linalg.vector_norm(self.d, dim=1))

    def drop(self, bad: torch.Tensor) -> None:
        self.a[bad], self.d[bad], self.up[bad] = 0.0, 0.0, 1.0

    def scale(self, factors: torch.Tensor) -> None:
        by = factors * self.up
        if self.compiled:
            kernels_layers.scaled(self.d.numpy(), by.numpy(), 0, len(by))
        else:
            self.d.mul_(by.unsqueeze(1))
            if self.exact:
                self.d.round_()

    def add_rows(self, first: int, last: int, total: torch.Tensor) -> None:
        found = self.d[first:last].T @ self.a[first:last]
        height, width = found.shape[0], found.shape[1] - (self.bias is not None)
        total[self.weight : self.weight + height * width] += found[:, :width].reshape(-1)
        if self.bias is not None:
            total[self.bias : self.bias + height] += found[:, width]

    @staticmethod
    def error(width: int, height: int) -> float:
        """What rounding may add to a row's norm, in grid steps."""
        return math.sqrt(width * height) * 2.0 ** (A_BITS - 1)


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
