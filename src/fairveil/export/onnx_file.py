"""The ONNX file of a `Program`: its graph, what it gives, and what it says about itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from .graph import Graph
from .program import Classified, Program
from .tensors import library

OPSET, OPSET_ML, IR = 18, 3, 9
LABEL, PROBABILITIES, REFUSED, PREDICTION = "label", "probabilities", "refused", "prediction"


def to_bytes(program: Program) -> bytes:
    """The model file."""
    onnx = library()
    graph = Graph(program.inputs)
    helper, found = graph.helper, program.result
    if isinstance(found, Classified):
        outputs = _classified(graph, found)
    else:
        scaled = graph.op("Mul", graph.scores(found.scores), graph.constant([[found.half]]))
        shifted = graph.op("Add", scaled, graph.constant([[found.center]]))
        nothing = graph.constant([[np.nan]])
        _named(graph, graph.op("Where", _refused(graph), nothing, shifted), PREDICTION)
        outputs = [helper.make_tensor_value_info(PREDICTION, onnx.TensorProto.DOUBLE, ["rows", 1])]
    outputs.append(helper.make_tensor_value_info(REFUSED, onnx.TensorProto.BOOL, ["rows", 1]))
    body = helper.make_graph(
        graph.nodes, "fairveil", list(graph.inputs.values()), outputs, graph.initializers
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", OPSET_ML)]
    model = helper.make_model(body, opset_imports=opsets, ir_version=IR, producer_name="fairveil")
    told = {"fairveil.estimator": program.about, "fairveil.statement": program.statement}
    if isinstance(found, Classified):
        told["fairveil.classes"] = json.dumps(list(found.classes))
    helper.set_model_props(model, told)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def _refused(graph: Graph) -> str:
    """The flag of refused rows, under its name."""
    return _named(graph, graph.any(graph.refused), REFUSED)


def _named(graph: Graph, name: str, output: str) -> str:
    graph.nodes.append(graph.helper.make_node("Identity", [name], [output]))
    return name


def _classified(graph: Graph, found: Classified) -> list[Any]:
    onnx, helper, classes = graph.onnx, graph.helper, len(found.classes)
    kind, values = _labels(onnx, found.classes)
    law, decided = graph.law(found.probabilities), graph.law(found.decision)
    code = graph.drawn(decided, classes) if found.drawn else graph.certain(decided)
    refused = _refused(graph)
    code = graph.op("Where", refused, graph.constant([[classes]], np.int64), code)
    array: Any = np.array(values, dtype=object if kind == onnx.TensorProto.STRING else None)
    _named(graph, graph.op("Gather", graph.constant(array, array.dtype), code, axis=0), LABEL)
    _named(graph, graph.op("Where", refused, graph.constant([[np.nan]]), law), PROBABILITIES)
    return [
        helper.make_tensor_value_info(LABEL, kind, ["rows", 1]),
        helper.make_tensor_value_info(PROBABILITIES, onnx.TensorProto.DOUBLE, ["rows", classes]),
    ]


def _labels(onnx: Any, classes: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The type of labels, and the values at each code; the last is that of refused rows."""
    kinds = {type(value) for value in classes}
    if kinds == {str}:
        return onnx.TensorProto.STRING, [*classes, ""]
    if kinds == {bool}:
        return onnx.TensorProto.BOOL, [*classes, False]
    if kinds == {int} and max(map(abs, classes)) < 1 << 62:
        return onnx.TensorProto.INT64, [*classes, min(-1, min(classes) - 1)]
    if kinds <= {int, float}:
        return onnx.TensorProto.DOUBLE, [*map(float, classes), float("nan")]
    remedy = "Fit to labels of one kind, or export SQL or Python."
    raise InputError.expected("classes of one kind", of="model", got=list(classes), remedy=remedy)
