"""Export a model as ONNX, which runs without `levels`."""

import os
from pathlib import Path

import numpy as np

from levels.hardware import PLACE
from levels.low_level import Variable, dce, trace
from levels_more import needed
from levels_more.checks import file_name
from levels_more.compiler.passes import cse
from levels_more.high_level.model import Model
from levels_more.high_level.rows import as_list, unwrap_single
from levels_more.saving.files import replace
from levels_more.saving.model import check_built, specs_of

with needed():
    import onnx
    from onnx import helper, numpy_helper

ONNX = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg", "matmul": "MatMul"}
ONNX.update(relu="Relu", sigmoid="Sigmoid", tanh="Tanh", softmax="Softmax", log_softmax="LogSoftmax", gather="Gather")
ONNX.update(exp="Exp", log="Log", sqrt="Sqrt", power="Pow", maximum="Max", minimum="Min", where="Where")
ONNX.update(absolute="Abs", sin="Sin", cos="Cos", erf="Erf")
ONNX.update(equal="Equal", less="Less", less_equal="LessOrEqual")


def traced(model, rows):
    """Trace a prediction for this number of rows. Raises ValueError for anything that has no form in ONNX."""
    specs = [PLACE.device.spec((rows, *spec.shape[1:]), spec.dtype) for spec in specs_of(model)]
    graph = dce(cse(trace(lambda *x: model(unwrap_single(x)), specs)[0]))
    if graph.updates:
        raise ValueError(f"export: a prediction of {model.name} assigns to a variable; in ONNX nothing can")
    for node in graph.ops:
        if node.op not in ONNX or (isinstance(ONNX[node.op], str) and any(node.attrs.values())):
            cure = "compute it with other ops, or give it a row in the table ONNX"
            raise ValueError(f"export: no ONNX form is known for {node.op} {node.attrs or ''}; {cure}")
    return graph


def both(p, q, unknown):
    """The sizes that two shapes have in common, with `unknown` where they differ."""
    return [a if a == b else unknown for a, b in zip(p, q, strict=True)]


def _same(two, three):
    return two.attrs if two.attrs == three.attrs else None


def _same_variable(two, three):
    return {} if two.source is three.source else None


def _same_numbers(two, three):
    return {} if two.source.numpy().tobytes() == three.source.numpy().tobytes() else None


def _shape_but_rows(two, three):
    shape = both(two.attrs["shape"], three.attrs["shape"], -1)
    return {"shape": shape} if shape.count(-1) < 2 else None


# op -> function: the common attributes of a node and its twin; None if one depends on the number of rows
ATTRIBUTES = {"variable": _same_variable, "constant": _same_numbers, "reshape": _shape_but_rows}


def attributes_of(two, three):
    """The attributes of a node. `two` is this node in the graph for 2 rows, `three` the same node in that for 3 rows.

    Raises ValueError if an attribute depends on the number of rows.
    """
    common = ATTRIBUTES.get(two.op, _same)(two, three) if two.op == three.op else None
    if common is None:
        raise ValueError(f"export: {two} computes with the number of rows, so it would hold for one number only")
    return common


class OnnxWriter:
    """Collects nodes and initializers."""

    def __init__(self):
        self.nodes = []
        self.initializers = []

    def constant(self, array, name=None):
        """Add an array as an initializer, and return its name."""
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name or f"c{len(self.initializers)}"))
        return self.initializers[-1].name

    def op(self, row, name=None):
        """Add a node; return its result's name. `row`: (op, inputs, attributes). Inputs: names, rows, or numbers."""
        op, inputs, attributes = row
        kinds = {str: str, tuple: self.op}
        given = [kinds.get(type(x), self.constant)(x) for x in inputs]
        self.nodes.append(helper.make_node(op, given, [name or f"t{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]


def onnx_graph(model):
    """A built model as a graph of ONNX: inputs x0, x1, … with any number of rows, outputs y0, y1, …"""
    two = traced(model, 2)
    three = traced(model, 3)
    writer = OnnxWriter()
    called = {id(v): f"{model.name}/{path}" for path, v in model.named(Variable).items()}
    names = {}
    results = {node: f"y{k}" for k, node in enumerate(two.outputs)}
    for node, twin in zip(two.nodes, three.nodes, strict=True):
        attributes = attributes_of(node, twin)
        if node.op == "input":
            names[node] = f"x{node.source}"
        elif node.op in ("variable", "constant"):
            names[node] = writer.constant(node.source.numpy(), called.get(id(node.source)))
        else:
            row = ONNX[node.op]
            inputs = [names[x] for x in node.inputs]
            row = (row, inputs, {}) if isinstance(row, str) else row(*inputs, **attributes)
            names[node] = writer.op(row, results.get(node))
    given = [info(f"x{k}", spec.dtype, ["rows", *spec.shape[1:]]) for k, spec in enumerate(specs_of(model))]
    gives = []
    for k, (node, twin) in enumerate(zip(two.outputs, three.outputs, strict=True)):
        if names[node] != f"y{k}":  # an input that goes straight through, or a result that is an output twice
            writer.op(("Identity", [names[node]], {}), f"y{k}")
        gives.append(info(f"y{k}", node.spec.dtype, both(node.spec.shape, twin.spec.shape, "rows")))
    return helper.make_graph(writer.nodes, model.name, given, gives, writer.initializers)


def info(name, dtype, shape):
    """The ONNX description of an input or an output."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def onnx_model(model):
    """A built model as ONNX, checked. Raises ValueError for an op that has no form in ONNX."""
    edition = {"opset_imports": [helper.make_opsetid("", 17)], "ir_version": 8, "producer_name": "levels"}
    made = helper.make_model(onnx_graph(model), **edition)
    onnx.checker.check_model(made, full_check=True)
    return made


def export(model: Model, path: str | os.PathLike, format: str = "onnx") -> None:
    """Write a model's prediction as an ONNX file, opset 17. The file is checked before it is written.

    Raises ValueError for a model that is not built, for another format, and for an op that has no form in ONNX.
    """
    if format != "onnx":
        raise ValueError(f"export: format is {format!r}; there is 'onnx'")
    check_built(model, "export")
    path = file_name("export: path", path)
    if Path(path).suffix != ".onnx":
        raise ValueError(f"export: the path is {path}; expected a name that ends in .onnx")
    replace(path, onnx_model(model).SerializeToString())


def reduction_row(op):
    """The row of ONNX for a reduction that takes its axes as an attribute."""
    return lambda x, axis, keepdims: (op, [x], {"axes": None if axis is None else as_list(axis), "keepdims": keepdims})


def sum_row(x, axis, keepdims):
    """The row for a sum, which takes its axes as an input."""
    return "ReduceSum", [x] if axis is None else [x, as_list(axis)], {"keepdims": keepdims}


def arg_row(op):
    """The row for the index of the largest (or smallest) number, along an axis or among all numbers."""
    return lambda x, axis: (op, [("Reshape", [x, [-1]], {}) if axis is None else x], {"axis": axis or 0, "keepdims": 0})


ONNX.update({f"reduce_{name}": reduction_row(f"Reduce{name.title()}") for name in ("mean", "max", "min")})
ONNX.update(
    reduce_sum=sum_row,
    arg_max=arg_row("ArgMax"),
    arg_min=arg_row("ArgMin"),
    not_equal=lambda x, y: ("Not", [("Equal", [x, y], {})], {}),
    cast=lambda x, dtype: ("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(dtype)}),
    clip=lambda x, low, high: ("Clip", [x, *(("CastLike", [bound, x], {}) for bound in (low, high))], {}),
    elu=lambda x, alpha: ("Elu", [x], {"alpha": alpha}),
    concat=lambda *x, axis: ("Concat", x, {"axis": axis}),
    one_hot=lambda x, depth, dtype: ("OneHot", [x, depth, np.array([0, 1], dtype)], {"axis": -1}),
    reshape=lambda x, shape: ("Reshape", [x, shape], {}),
    transpose=lambda x, axes: ("Transpose", [x], {"perm": axes}),
)


def slice_row(x, slices):
    """x[start:stop:step, …]"""
    far = 2**63 - 1  # beyond any size: up to the end

    def bounds(start, stop, step):
        first, last = (far, -far) if (step or 1) < 0 else (0, far)
        return first if start is None else start, last if stop is None else stop, step or 1

    starts, stops, steps = map(list, zip(*(bounds(*part) for part in slices), strict=True))
    return "Slice", [x, starts, stops, list(range(len(slices))), steps], {}


ONNX["slice"] = slice_row
