"""Neural networks as models: a checked private copy of a torch module, and the model that it makes
with a vector of parameters.

Everything else sees a flat float64 vector of parameters; torch stays in this module and in
`core.extra.torch_gradient`. A module computes in float32, and each row's output must depend on that
row alone.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import _checks
from .._types import Floats, Singles
from ..core.layout import row_major as row_major
from ..errors import FairveilError, InputError
from .model import fixed_array
from .torch_checks import axes_of, check_module

BLOCK_NUMBERS = 1 << 22  # inputs and outputs of all layers at a time, for predictions


PROBE_ROWS = 5


# relative: another row beside it may change the last bits of a float32 output, and nothing more
SAME = 1e-3


class Skeleton:
    """A checked private copy of a module, without the question of which parameters:
    `Skeleton.of(module, width, classes)`.

    `width`: numbers of one row (`RowLayout.width`); a row is handed over as float32, numbers first,
    then the one-hot of each category column, in the shape `input_shape` where that is given. The
    module gives (rows, classes) logits, or for two classes (rows, 1), the second's. `start` holds
    the trainable parameters as they were handed in; parameters that ask for no gradient stay as
    they are. Modules run as in `eval()`.
    """

    def __init__(
        self,
        module: nn.Module,
        width: int,
        classes: int,
        input_shape: tuple[int, ...] | None,
        device: str,
    ) -> None:
        self.width, self.classes, self.input_shape, self.device = (
            width,
            classes,
            input_shape,
            torch.device(device),
        )
        # the module is one, its parameters change from question to question
        self.lock = threading.RLock()
        self.module = copy.deepcopy(module).to(self.device).eval()
        named = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        self.names = tuple(name for name, _ in named)
        self.shapes = tuple(tuple(p.shape) for _, p in named)
        ends = np.cumsum([0, *(p.numel() for _, p in named)]).tolist()
        self.places = dict(zip(self.names, itertools.pairwise(ends), strict=True))
        self.size = int(ends[-1])
        self._flat = torch.empty(self.size, dtype=torch.float32, device=self.device)
        for name, p in named:  # one vector behind all parameters: to set them is one copy
            a, b = self.places[name]
            self._flat[a:b] = p.detach().reshape(-1)
            p.data = self._flat[a:b].view(p.shape)
        self.start: Floats = self._flat.cpu().numpy().astype(np.float64)
        self.start.setflags(write=False)
        # of a row's inputs and outputs in all layers; found by the probe
        self.numbers_per_row = width
        self.kept: dict[str, Any] = {}  # what the curator works out about the module, once

    @staticmethod
    def of(
        module: nn.Module,
        width: int,
        classes: int,
        *,
        input_shape: Sequence[int] | None = None,
        device: str = "cpu",
    ) -> Skeleton:
        """A private copy, checked: no neighbouring row may change a row's output, and the output
        must fit the classes."""
        width, classes = (
            _checks.whole(at_least=1, width=width),
            _checks.whole(at_least=2, classes=classes),
        )
        shape = axes_of(input_shape, width)
        check_module(module)
        if not _is_there(device):
            remedy = "Pass device='cpu'."
            raise InputError.expected(
                "a device that there is", of="device", got=str(device), remedy=remedy
            )
        try:
            skeleton = Skeleton(module, width, classes, shape, str(device))
        except FairveilError:
            raise
        except Exception as error:
            remedy = "Fairveil works on a copy: make a module that copy.deepcopy can copy."
            raise InputError.expected(
                "a module that can be copied", of="model", got=str(error), remedy=remedy
            ) from error
        _probe(skeleton)
        return skeleton

    def apart(self, parameters: Floats) -> Skeleton:
        """A copy that no row went through, with these parameters. What was worked out as rows came,
        and the parameters that were set last, stay behind: they would tell a table of none from
        one of one."""
        with self.lock:
            out = Skeleton(
                self.module, self.width, self.classes, self.input_shape, str(self.device)
            )
        out.start, out.numbers_per_row = self.start, self.numbers_per_row
        out.load(parameters)
        return out

    def probes(self, rows: int) -> Iterator[Singles]:
        """Made-up rows: see `probes`."""
        return probes(self.width, rows)

    @property
    def outputs(self) -> int:
        """1 for two classes (the second's logit against the first's 0), else the number of
        classes."""
        return 1 if self.classes == 2 else self.classes

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of layers that hold parameters, in order."""
        return tuple(type(m).__name__ for m in self.module.modules() if m._parameters)

    @property
    def architecture(self) -> str:
        """The module as it prints itself."""
        return str(self.module)

    def load(self, parameters: Floats) -> None:
        """Set the trainable parameters."""
        with torch.no_grad():
            self._flat.copy_(torch.from_numpy(np.asarray(parameters, np.float32)))

    def check_parameters(self, parameters: object) -> Floats:
        """A read-only copy of a vector of parameters, checked."""
        return fixed_array(parameters, (self.size,), "parameters")

    def tensor(self, rows: Singles) -> torch.Tensor:
        """Rows as the module reads them."""
        return (
            torch.from_numpy(rows)
            .to(self.device)
            .reshape(len(rows), *(self.input_shape or (self.width,)))
        )

    def padded(self, rows: Singles, shape: int = 0, filler: Singles | None = None) -> torch.Tensor:
        """A copy of rows as the module reads them, in memory of torch's own; behind them `filler`,
        up to `shape` rows."""
        held = torch.empty(max(len(rows), shape), self.width)
        held[: len(rows)] = torch.from_numpy(rows)
        held[len(rows) :] = 0.0 if filler is None else torch.from_numpy(filler)
        return held.to(self.device).reshape(len(held), *(self.input_shape or (self.width,)))

    def logits(
        self, rows: torch.Tensor, parameters: dict[str, torch.Tensor] | None = None
    ) -> torch.Tensor:
        """(rows, outputs), of the parameters that are set, or of those given by name."""
        out = (
            self.module(rows)
            if parameters is None
            else torch.func.functional_call(self.module, parameters, (rows,))
        )
        if (
            not isinstance(out, torch.Tensor)
            or out.ndim != 2
            or out.shape[0] != len(rows)
            or out.shape[1] not in self._widths
        ):
            got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
            expected = (
                f"({len(rows)}, "
                + " or ".join(map(str, self._widths))
                + f") for {self.classes} classes"
            )
            remedy = "Let the last layer have one output a class (for two classes one is enough)."
            raise InputError.expected(expected, of="output of the network", got=got, remedy=remedy)
        return out[:, 1:] - out[:, :1] if self.classes == 2 and out.shape[1] == 2 else out

    @property
    def _widths(self) -> tuple[int, ...]:
        return (2, 1) if self.classes == 2 else (self.classes,)

    @property
    def block(self) -> int:
        """How many rows at a time."""
        return max(16, min(4096, BLOCK_NUMBERS // self.numbers_per_row))

    def __repr__(self) -> str:
        return (
            f"<Skeleton of {type(self.module).__name__}: {self.size} parameters, {self.width} "
            f"inputs, {self.classes} classes>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        again = (
            self.module,
            self.width,
            self.classes,
            self.input_shape,
            str(self.device),
            self.start,
            self.numbers_per_row,
        )
        return _restored, again


def _is_there(device: object) -> bool:
    """Whether torch knows the name of the device, and there is a GPU where one is named."""
    try:
        return torch.device(str(device)).type != "cuda" or torch.cuda.is_available()
    except RuntimeError:
        return False


def _restored(
    module: nn.Module,
    width: int,
    classes: int,
    shape: tuple[int, ...] | None,
    device: str,
    start: Floats,
    numbers: int,
) -> Skeleton:
    skeleton = Skeleton(module, width, classes, shape, device)
    skeleton.load(start)
    skeleton.start, skeleton.numbers_per_row = start, numbers
    return skeleton


def probes(width: int, rows: int = PROBE_ROWS) -> Iterator[Singles]:
    """Rows made up, to try a module on: plain numbers; for modules that look rows up in tables
    zeros and ones; zeros."""
    rng = np.random.default_rng(20240229)
    yield rng.normal(size=(rows, width)).astype(np.float32)
    yield rng.integers(0, 2, size=(rows, width)).astype(np.float32)
    yield np.zeros((rows, width), np.float32)


def _probe(skeleton: Skeleton) -> None:
    """Try the module on made-up rows: it must run, give the right shape, leave no trace, and not
    mix rows."""
    before = {name: b.clone() for name, b in skeleton.module.named_buffers()}
    trouble: Exception | None = None
    for rows in probes(skeleton.width):
        try:
            with torch.no_grad(), Counting(skeleton):
                one = skeleton.logits(skeleton.tensor(rows))
            with torch.no_grad():
                others = np.concatenate([rows[:1], 1.0 - rows[1:]])
                beside, alone = (
                    skeleton.logits(skeleton.tensor(others)),
                    skeleton.logits(skeleton.tensor(rows[:1])),
                )
            break
        except FairveilError:
            raise
        except Exception as error:
            trouble = error
    else:
        shape = skeleton.input_shape or (skeleton.width,)
        remedy = "Check the first layer and input_shape against the coded rows."
        raise InputError.expected(
            f"a module that takes float32 (rows, {', '.join(map(str, shape))})",
            of="model",
            got=str(trouble),
            remedy=remedy,
        ) from trouble
    if not all(bool(torch.isfinite(out).all()) for out in (one, beside, alone)):
        remedy = (
            "Keep it finite whatever a row holds: clamp before a logarithm, a root or a division, "
            "for example."
        )
        got = "NaN or inf for some that were made up"
        raise InputError.expected(
            "finite outputs for rows of any numbers", of="model", got=got, remedy=remedy
        )
    size = SAME * (1.0 + float(one[0].abs().max()))
    if not all(float((out[0] - one[0]).abs().max()) <= size for out in (beside, alone)):
        remedy = (
            "No layer may look at several rows at a time (GroupNorm and LayerNorm look at one), "
            "nor draw random numbers."
        )
        raise InputError.expected(
            "a row's output to depend on that row alone",
            of="model",
            got="one that changed with the rows beside it",
            remedy=remedy,
        )
    if any(not torch.equal(before[name], b) for name, b in skeleton.module.named_buffers()):
        remedy = "Keep no running statistics: use GroupNorm or LayerNorm."
        raise InputError.expected(
            "buffers that stay as they are",
            of="model",
            got="some that change with rows",
            remedy=remedy,
        )


class Counting:
    """Counts the numbers that one row's inputs and outputs of all layers take."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton

    def __enter__(self) -> None:
        self.total = 0
        leaves = [m for m in self.skeleton.module.modules() if not list(m.children())]
        self.hooks = [m.register_forward_hook(self.count) for m in leaves]

    def count(self, module: nn.Module, given: tuple[object, ...], out: object) -> None:
        self.total += sum(t.numel() for t in (*given, out) if isinstance(t, torch.Tensor))

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()
        self.skeleton.numbers_per_row = max(self.skeleton.width, self.total // PROBE_ROWS)


def default_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"
