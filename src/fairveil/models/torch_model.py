"""A network as a model: its module, its parameters, and the files that it is written to."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import RowBlock, RowLayout
from .linear import as_block, is_sparse
from .model import Parts, ScoredModel, fixed_array, known_classes
from .torch_checks import check_module
from .torch_network import Skeleton, row_major


@dataclass(frozen=True, eq=False, init=False)
class NetworkModel(ScoredModel):
    """A network and its parameters. Two classes: the second where its probability is above one
    half.

    Reads RowBlocks, or dense or sparse arrays (rows, width) where there are no category codes.
    float32 inside, so a row's last bits may differ with the rows beside it.
    """

    kind: ClassVar[str] = "network"
    skeleton: Skeleton
    parameters: Floats
    numbers: int
    code_sizes: tuple[int, ...]
    _classes: tuple[Hashable, ...]

    def __init__(
        self,
        skeleton: Skeleton,
        parameters: npt.ArrayLike,
        *,
        classes: Sequence[Hashable],
        layout: RowLayout,
    ) -> None:
        _checks.normalise(self, skeleton=skeleton, _classes=known_classes(classes))
        _checks.normalise(self, numbers=_checks.whole(numbers=layout.numbers))
        _checks.normalise(
            self,
            code_sizes=tuple(
                _checks.whole(at_least=1, code_size=size) for size in layout.code_sizes
            ),
        )
        for name, got, wanted in (
            ("classes", len(self._classes), skeleton.classes),
            ("width of the layout", layout.width, skeleton.width),
        ):
            if got != wanted:
                remedy = "Make the skeleton for these rows and classes."
                raise InputError.expected(f"{wanted}", of=name, got=got, remedy=remedy)
        # what the module computes with
        singles = skeleton.check_parameters(parameters).astype(np.float32)
        _checks.normalise(self, parameters=fixed_array(singles, (skeleton.size,), "parameters"))

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self._classes

    @property
    def is_randomised(self) -> bool:
        """A network decides by its logits alone."""
        return False

    def __repr__(self) -> str:
        return (
            f"<NetworkModel of {type(self.skeleton.module).__name__}: {self.skeleton.size} "
            f"parameters, classes {self.classes}>"
        )

    def decision_scores(self, rows: object) -> Floats:
        """Logits, (rows, outputs): for two classes one, the second's against the first's 0."""
        block = self._block(rows)
        out = np.empty((block.rows, self.skeleton.outputs))
        step = self.skeleton.block
        with self.skeleton.lock, torch.no_grad():
            self.skeleton.load(self.parameters)
            for a in range(0, block.rows, step):
                part = row_major(block, self.code_sizes, slice(a, a + step))
                out[a : a + step] = self.skeleton.logits(self.skeleton.tensor(part)).cpu().numpy()
        if not np.isfinite(out).all():
            remedy = "Encode missing and unbounded values by a schema."
            raise InputError.expected("finite logits", of="rows", got="NaN or inf", remedy=remedy)
        return out

    def to_parts(self) -> Parts:
        """Classes, layout and a printed description as values; the state dict as arrays, by name.
        Never the module itself."""
        with self.skeleton.lock:
            self.skeleton.load(self.parameters)
            state = self.skeleton.module.state_dict()
            arrays = {
                name: np.array(tensor.detach().cpu().numpy(), order="C")
                for name, tensor in state.items()
            }
        shape = self.skeleton.input_shape
        values = {
            "classes": list(self._classes),
            "numbers": self.numbers,
            "code_sizes": list(self.code_sizes),
            "input_shape": None if shape is None else list(shape),
            "trainable": list(self.skeleton.names),
            "architecture": self.skeleton.architecture,
        }
        return Parts(self.kind, values, arrays)

    @staticmethod
    def from_parts(parts: Parts, module: nn.Module | None, *, device: str = "cpu") -> NetworkModel:
        """The inverse of `to_parts`, with the module handed back in: its state dict must have the
        same names and shapes."""
        if module is None:
            remedy = (
                f"Classes of torch are never written to disk: load(path, model=module). It was "
                f"{parts.values['architecture']}"
            )
            raise InputError.expected(
                "the module that the network was made of", of="model", got=None, remedy=remedy
            )
        check_module(module)
        twin = copy.deepcopy(module)
        _check_state(twin.state_dict(), parts)
        twin.load_state_dict(
            {name: torch.from_numpy(np.array(array)) for name, array in parts.arrays.items()}
        )
        trainable = set(parts.values["trainable"])
        for name, p in twin.named_parameters():
            p.requires_grad_(name in trainable)
        layout = RowLayout(parts.values["numbers"], tuple(parts.values["code_sizes"]))
        classes, shape = parts.values["classes"], parts.values["input_shape"]
        skeleton = Skeleton.of(twin, layout.width, len(classes), input_shape=shape, device=device)
        return NetworkModel(skeleton, skeleton.start, classes=classes, layout=layout)

    def _block(self, rows: object) -> RowBlock:
        block = rows if isinstance(rows, RowBlock) else as_block(rows)
        numbers = block.numbers.shape[1] if is_sparse(block.numbers) else block.numbers.shape[0]
        if numbers != self.numbers or len(block.codes) != len(self.code_sizes):
            expected = f"{self.numbers} numbers and {len(self.code_sizes)} category columns"
            got = f"{numbers} and {len(block.codes)}"
            raise InputError.expected(
                expected, of="rows", got=got, remedy="Encode rows as those of the fit were."
            )
        for j, (line, size) in enumerate(zip(block.codes, self.code_sizes, strict=True)):
            if line.size and (int(line.max()) >= size or int(line.min()) < 0):
                remedy = "Encode rows by the schema of the fit."
                of = f"category column {j}"
                raise InputError.expected(
                    f"codes from 0 to {size - 1}", of=of, got="a code outside", remedy=remedy
                )
        return block


def _check_state(state: Mapping[str, torch.Tensor], parts: Parts) -> None:
    """Names and shapes of the module's state against those that were saved."""
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    saved = {name: tuple(array.shape) for name, array in parts.arrays.items()}
    for name in sorted(set(found) | set(saved)):
        if found.get(name) != saved.get(name):
            expected = f"{name} of shape {saved[name]}" if name in saved else f"no {name}"
            got = f"shape {found[name]}" if name in found else "a module without it"
            remedy = f"Hand in the module that was trained: {parts.values['architecture']}"
            raise InputError.expected(expected, of="model", got=got, remedy=remedy)
