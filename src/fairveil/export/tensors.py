"""Nodes, constants and inputs of an ONNX graph: (rows, k) tensors. The one module that imports
onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError


def library() -> Any:
    """onnx, or an error that says how to get it."""
    try:
        import onnx
    except ImportError:
        remedy = "pip install 'fairveil[export]'"
        raise InputError.expected(
            "the package onnx", of="export", got="none", remedy=remedy, quote=False
        ) from None
    return onnx


class Tensors:
    """Nodes as they are added. Names of tensors are handed from method to method."""

    def __init__(self) -> None:
        self.onnx = library()
        self.helper = self.onnx.helper
        self.nodes: list[Any] = []
        self.constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.initializers: list[Any] = []
        self.inputs: dict[str, Any] = {}
        self.refused: list[str] = []

    # Pieces

    def op(self, kind: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """One node, and the name of what it makes."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(
            self.helper.make_node(kind, list(inputs), [name], domain=domain, **attributes)
        )
        return name

    def constant(self, values: object, kind: npt.DTypeLike = np.float64) -> str:
        """A constant tensor; equal ones are one."""
        array = np.ascontiguousarray(np.asarray(values, dtype=kind))
        key = (
            array.dtype.str,
            array.shape,
            array.tobytes() if array.dtype != object else repr(array.tolist()).encode(),
        )
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = name
            self.initializers.append(self._tensor(name, array))
        return self.constants[key]

    def _tensor(self, name: str, array: npt.NDArray[Any]) -> Any:
        if array.dtype == object:
            texts = [value.encode() for value in array.ravel().tolist()]
            return self.helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, texts)
        return self.onnx.numpy_helper.from_array(array, name)

    def input(self, name: str, *, text: bool = False, width: int = 1) -> str:
        """An input of shape (rows, width)."""
        kind = self.onnx.TensorProto.STRING if text else self.onnx.TensorProto.DOUBLE
        self.inputs[name] = self.helper.make_tensor_value_info(name, kind, ["rows", width])
        return name

    def cast(self, name: str, kind: str) -> str:
        """The same in another type."""
        return self.op("Cast", name, to=getattr(self.onnx.TensorProto, kind))

    def column(self, name: str, at: int) -> str:
        """(rows, 1) of a (rows, k)."""
        return self.op("Gather", name, self.constant([at], np.int64), axis=1)

    def sum(self, name: str, *, keep: bool = True) -> str:
        """Over the columns."""
        return self.op("ReduceSum", name, self.constant([1], np.int64), keepdims=int(keep))

    def any(self, flags: Sequence[str]) -> str:
        """(rows, 1): whether one of several flags holds."""
        joined = self.op("Concat", *(self.cast(flag, "INT64") for flag in flags), axis=1)
        return self.op("Greater", self.sum(joined), self.constant([[0]], np.int64))

    def refuse(self, flag: str) -> None:
        """Rows of this flag have no result."""
        self.refused.append(flag)
