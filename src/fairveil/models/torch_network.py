"""Neural networks as models: a checked private copy of a torch module, the model that it makes with
a vector of parameters, and the files that it is written to.

Everything else sees a flat float64 vector of parameters; torch stays in this module and in
`core.extra.torch_gradient`. A module computes in float32, and each row's output must depend on that
row alone.
"""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from .. import _checks
from .._types import Floats, Singles
from ..core.errors import need
from ..core.layout import row_major as row_major
from ..errors import FairveilError, InputError
from ..facts import RowLayout
from .model import Parts, ScoredModel, fitting, fixed_array, known_classes, plain_layout

BLOCK_NUMBERS = 1 << 22  # inputs and outputs of all layers at a time, for predictions
PROBE_ROWS = 5
# relative: another row beside it may change the last bits of a float32 output, and nothing more
SAME = 1e-3
MIXING = (nn.modules.batchnorm._NormBase,)  # BatchNorm, SyncBatchNorm and InstanceNorm
DROPPING = (nn.modules.dropout._DropoutNd,)


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
        self.width, self.classes, self.input_shape = width, classes, input_shape
        self.device = torch.device(device)
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
        width = _checks.whole(at_least=1, width=width)
        classes = _checks.whole(at_least=2, classes=classes)
        shape = None
        if input_shape is not None:
            shape = tuple(_checks.whole(at_least=1, input_shape=axis) for axis in input_shape)
            words, fix = f"axes whose product is {width}", "Leave it out for a plain vector."
            need(int(np.prod(shape)) == width, words, of="input_shape", got=shape, fix=fix)
        _check_module(module)
        words, fix = "a device that there is", "Pass device='cpu'."
        need(_is_there(device), words, of="device", got=str(device), fix=fix)
        try:
            skeleton = Skeleton(module, width, classes, shape, str(device))
        except FairveilError:
            raise
        except Exception as error:
            words, got = "a module that can be copied", str(error)
            fix = "Fairveil works on a copy: make a module that copy.deepcopy can copy."
            raise InputError.expected(words, of="model", got=got, remedy=fix) from error
        _probe(skeleton)
        return skeleton

    def apart(self, parameters: Floats) -> Skeleton:
        """A copy that no row went through, with these parameters. What was worked out as rows came,
        and the parameters that were set last, stay behind: they would tell a table of none from
        one of one."""
        with self.lock:
            out = _restored(*self.__reduce__()[1])
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

    def load(self, parameters: Floats) -> None:
        """Set the trainable parameters."""
        with torch.no_grad():
            self._flat.copy_(torch.from_numpy(np.asarray(parameters, np.float32)))

    def check_parameters(self, parameters: object) -> Floats:
        """A read-only copy of a vector of parameters, checked."""
        return fixed_array(parameters, (self.size,), "parameters")

    def tensor(self, rows: Singles) -> torch.Tensor:
        """Rows as the module reads them."""
        shape = self.input_shape or (self.width,)
        return torch.from_numpy(rows).to(self.device).reshape(len(rows), *shape)

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
        given: Any = {} if parameters is None else parameters
        out = (
            torch.func.functional_call(self.module, given, (rows,)) if given else self.module(rows)
        )
        widths = (2, 1) if self.classes == 2 else (self.classes,)
        got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        words = f"({len(rows)}, {' or '.join(map(str, widths))}) for {self.classes} classes"
        fix = "Let the last layer have one output a class (for two classes one is enough)."
        fits = got in [(len(rows), width) for width in widths]
        need(fits, words, of="output of the network", got=got, fix=fix)
        both = self.classes == 2 and out.shape[1] == 2
        return out[:, 1:] - out[:, :1] if both else out  # type: ignore[no-any-return]

    @property
    def block(self) -> int:
        """How many rows at a time."""
        return max(16, min(4096, BLOCK_NUMBERS // self.numbers_per_row))

    def __repr__(self) -> str:
        named = type(self.module).__name__
        sizes = f"{self.size} parameters, {self.width} inputs, {self.classes} classes"
        return f"<Skeleton of {named}: {sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (self.module, self.width, self.classes, self.input_shape, str(self.device))
        return _restored, (*made_of, self.start, self.numbers_per_row)


def _restored(*given: Any) -> Skeleton:
    *made_of, start, numbers = given
    skeleton = Skeleton(*made_of)
    skeleton.load(start)
    skeleton.start, skeleton.numbers_per_row = start, numbers
    return skeleton


def default_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def _is_there(device: object) -> bool:
    """Whether torch knows the name of the device, and there is a GPU where one is named."""
    try:
        return torch.device(str(device)).type != "cuda" or torch.cuda.is_available()
    except RuntimeError:
        return False


# ---- what a module must be before rows meet it


def _check_module(module: object) -> None:
    """What can be seen without running the module."""
    fix = "Pass torch.nn.Sequential(torch.nn.Linear(width, 64), ...), for example."
    module = _checks.instance(nn.Module, "model", module, fix, "a torch.nn.Module")
    for name, inner in module.named_modules():
        where, one_row = f"model, layer {name or 'itself'!r}", nn.modules.instancenorm._InstanceNorm
        mixes = isinstance(inner, MIXING) and not isinstance(inner, one_row)
        mixes = mixes or (isinstance(inner, MIXING) and inner.track_running_stats)
        fix, got = "Use GroupNorm or LayerNorm: they look at one row.", type(inner).__name__
        need(not mixes, "no layer that mixes rows", of=where, got=got, fix=fix)
        name = "p" if isinstance(inner, DROPPING) else "dropout"
        p = getattr(inner, name, 0.0)
        drops = isinstance(p, int | float) and p > 0
        fix = f"Pass {name}=0: the noise regularises already, and dropout would draw from a "
        need(
            not drops, "no dropout", of=where, got=f"{name}={p}", fix=f"{fix}generator of its own."
        )
    parameters = dict(module.named_parameters())
    lazy = any(isinstance(p, nn.parameter.UninitializedParameter) for p in parameters.values())
    fix = "Run the module on one row first, so that lazy layers get their shapes."
    need(not lazy, "parameters with shapes", of="model", got="lazy ones", fix=fix)
    for name, p in parameters.items():
        of, single, fix = f"parameter {name!r}", p.dtype == torch.float32, "Initialise it again."
        need(single, "float32", of=of, got=str(p.dtype), fix="Call module.float() first.")
        finite = bool(torch.isfinite(p).all())
        need(finite, "finite numbers", of=of, got="NaN or inf", fix=fix)
    fix = "Let some ask for gradients: parameter.requires_grad_(True)."
    learns = any(p.requires_grad for p in parameters.values())
    need(learns, "parameters to train", of="model", got="none", fix=fix)


def probes(width: int, rows: int = PROBE_ROWS) -> Iterator[Singles]:
    """Rows made up, to try a module on: plain numbers; for modules that look rows up in tables
    zeros and ones; zeros."""
    rng = np.random.default_rng(20240229)
    yield rng.normal(size=(rows, width)).astype(np.float32)
    yield rng.integers(0, 2, size=(rows, width)).astype(np.float32)
    yield np.zeros((rows, width), np.float32)


@torch.no_grad()
def _probe(skeleton: Skeleton) -> None:
    """Try the module on made-up rows: it must run, give the right shape, leave no trace, and not
    mix rows."""
    before = {name: b.clone() for name, b in skeleton.module.named_buffers()}
    trouble: Exception | None = None
    for rows in probes(skeleton.width):
        others = np.concatenate([rows[:1], 1.0 - rows[1:]])
        try:
            one = _counted(skeleton, rows)
            beside = skeleton.logits(skeleton.tensor(others))
            alone = skeleton.logits(skeleton.tensor(rows[:1]))
            break
        except FairveilError:
            raise
        except Exception as error:
            trouble = error
    else:
        shape = ", ".join(map(str, skeleton.input_shape or (skeleton.width,)))
        words, got = f"a module that takes float32 (rows, {shape})", str(trouble)
        fix = "Check the first layer and input_shape against the coded rows."
        raise InputError.expected(words, of="model", got=got, remedy=fix) from trouble
    finite = all(bool(torch.isfinite(out).all()) for out in (one, beside, alone))
    words, got = "finite outputs for rows of any numbers", "NaN or inf for some that were made up"
    fix = "Keep it finite whatever a row holds: clamp before a logarithm, a root or a division."
    need(finite, words, of="model", got=got, fix=fix)
    size = SAME * (1.0 + float(one[0].abs().max()))
    apart = all(float((out[0] - one[0]).abs().max()) <= size for out in (beside, alone))
    words, got = "a row's output to depend on that row alone", "one that changed with the others"
    fix = "No layer may look at several rows at a time (GroupNorm and LayerNorm look at one), nor "
    need(apart, words, of="model", got=got, fix=f"{fix}draw random numbers.")
    still = all(torch.equal(before[name], b) for name, b in skeleton.module.named_buffers())
    words, got = "buffers that stay as they are", "some that change with rows"
    fix = "Keep no running statistics: use GroupNorm or LayerNorm."
    need(still, words, of="model", got=got, fix=fix)


def _counted(skeleton: Skeleton, rows: Singles) -> torch.Tensor:
    """Logits; and from now on the skeleton knows how many numbers one row's inputs and outputs of
    all layers take."""
    total = [0]

    def count(module: nn.Module, given: tuple[object, ...], out: object) -> None:
        total[0] += sum(t.numel() for t in (*given, out) if isinstance(t, torch.Tensor))

    leaves = [m for m in skeleton.module.modules() if not list(m.children())]
    hooks = [m.register_forward_hook(count) for m in leaves]
    try:
        return skeleton.logits(skeleton.tensor(rows))
    finally:
        for hook in hooks:
            hook.remove()
        skeleton.numbers_per_row = max(skeleton.width, total[0] // PROBE_ROWS)


# ---- a network as a model


@dataclass(frozen=True, eq=False, repr=False)
class NetworkModel(ScoredModel):
    """A network and its parameters. Two classes: the second where its probability is above one
    half.

    Reads RowBlocks, or dense or sparse arrays (rows, width) where there are no category codes.
    float32 inside, so a row's last bits may differ with the rows beside it.
    """

    kind: ClassVar[str] = "network"
    skeleton: Skeleton
    parameters: Floats
    _: KW_ONLY
    classes: tuple[Hashable, ...]
    layout: RowLayout

    def __post_init__(self) -> None:
        classes, layout = known_classes(self.classes), plain_layout(self.layout)
        skeleton, fix = self.skeleton, "Make the skeleton for these rows and classes."
        fits, got = len(classes) == skeleton.classes, len(classes)
        need(fits, f"{skeleton.classes}", of="classes", got=got, fix=fix)
        fits, got = layout.width == skeleton.width, layout.width
        need(fits, f"{skeleton.width}", of="width of the layout", got=got, fix=fix)
        # what the module computes with
        singles = skeleton.check_parameters(self.parameters).astype(np.float32)
        parameters = fixed_array(singles, (skeleton.size,), "parameters")
        _checks.normalise(self, parameters=parameters, classes=classes, layout=layout)

    def __repr__(self) -> str:
        named, size = type(self.skeleton.module).__name__, self.skeleton.size
        return f"<NetworkModel of {named}: {size} parameters, classes {self.classes}>"

    def decision_scores(self, rows: object) -> Floats:
        """Logits, (rows, outputs): for two classes one, the second's against the first's 0."""
        block, step = fitting(rows, self.layout), self.skeleton.block
        out = np.empty((block.rows, self.skeleton.outputs))
        with self.skeleton.lock, torch.no_grad():
            self.skeleton.load(self.parameters)
            for a in range(0, block.rows, step):
                part = row_major(block, self.layout.code_sizes, slice(a, a + step))
                out[a : a + step] = self.skeleton.logits(self.skeleton.tensor(part)).cpu().numpy()
        finite, fix = np.isfinite(out).all(), "Encode missing and unbounded values by a schema."
        need(finite, "finite logits", of="rows", got="NaN or inf", fix=fix)
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
        shape, layout = self.skeleton.input_shape, self.layout
        values = {
            "classes": list(self.classes),
            "numbers": layout.numbers,
            "code_sizes": list(layout.code_sizes),
            "input_shape": None if shape is None else list(shape),
            "trainable": list(self.skeleton.names),
            "architecture": str(self.skeleton.module),
        }
        return Parts(self.kind, values, arrays)

    @staticmethod
    def revived(parts: Parts, module: nn.Module | None, *, device: str = "cpu") -> NetworkModel:
        """The inverse of `to_parts`, with the module handed back in: its state dict must have the
        same names and shapes."""
        values, printed = parts.values, parts.values["architecture"]
        fix = f"Classes of torch are never written to disk: load(path, model=module). It was {printed}"
        words = "the module that the network was made of"
        need(module is not None, words, of="model", got=None, fix=fix)
        _check_module(module)
        twin: nn.Module = copy.deepcopy(module)  # type: ignore[assignment]
        found = {name: tuple(tensor.shape) for name, tensor in twin.state_dict().items()}
        saved = {name: tuple(array.shape) for name, array in parts.arrays.items()}
        fix = f"Hand in the module that was trained: {printed}"
        for name in sorted(set(found) | set(saved)):
            words = f"{name} of shape {saved[name]}" if name in saved else f"no {name}"
            got = f"shape {found[name]}" if name in found else "a module without it"
            need(found.get(name) == saved.get(name), words, of="model", got=got, fix=fix)
        twin.load_state_dict({k: torch.from_numpy(np.array(a)) for k, a in parts.arrays.items()})
        for name, p in twin.named_parameters():
            p.requires_grad_(name in values["trainable"])
        layout, classes = (
            RowLayout(values["numbers"], tuple(values["code_sizes"])),
            values["classes"],
        )
        shape = values["input_shape"]
        skeleton = Skeleton.of(twin, layout.width, len(classes), input_shape=shape, device=device)
        return NetworkModel(skeleton, skeleton.start, classes=classes, layout=layout)
