"""Public calls of all five levels, each with arguments that work, and what is put in the place of one of them in turn.

`python tests/support/calls.py FIRST REPORT` tries them from this number on, and writes into the report what came of each.
tests/house/test_messages.py runs it, and watches.
"""

import collections
import contextlib
import faulthandler
import functools
import itertools
import math
import operator
import os
import re
import reprlib
import sys
import traceback
import warnings
from typing import NamedTuple

import numpy as np

import levels
import levels_more
from course.author.build import ROOT
from levels_more import distributed, hardware, high_level, kernels, low_level, mid_level, saving

ONES = np.ones((2, 3), "f4")


def symbol():
    """What stood for a tensor in a trace that is over."""
    kept = []
    low_level.function(lambda x: kept.append(x * 1.0) or kept[0])(ONES)
    return kept[0]


WRONG = {  # name -> what makes it
    "None": lambda: None,
    "text": lambda: "seven",
    "object": object,
    "function": lambda: len,
    "class": lambda: dict,
    "NaN": lambda: math.nan,
    "inf": lambda: math.inf,
    "huge": lambda: 10**30,
    "large": lambda: 10**13,
    "negative": lambda: -3,
    "zero": lambda: 0,
    "fraction": lambda: 2.5,
    "complex": lambda: 1j,
    "True": lambda: True,
    "empty": list,
    "dict": lambda: {"a": 1},
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "words": lambda: ["a", "b"],
    "shape": lambda: np.ones((5, 7), "f4"),
    "axis": lambda: np.ones(4, "f4"),
    "float64": lambda: np.ones((2, 3)),
    "int64": lambda: np.ones((2, 3), "i8"),
    "int16": lambda: np.ones((2, 3), "i2"),
    "bool": lambda: np.ones((2, 3), "?"),
    "no_rows": lambda: np.empty((0, 3), "f4"),
    "nans": lambda: np.full((2, 3), np.nan, "f4"),
    "objects": lambda: np.array([None, 1], object),
    "symbol": symbol,
}
LIMIT = 20  # seconds for twenty calls
GREEDY = 2**20  # KiB that one call may take


class Right(NamedTuple):
    """An argument that works: what makes it, and the names of what else is right in its place."""

    make: object
    takes: frozenset = frozenset()
    skips: frozenset = frozenset()  # and of what is right, too, but would take for ever

    def __add__(self, names):
        return self._replace(takes=self.takes | {*names.split()})

    def __sub__(self, names):
        return self._replace(takes=self.takes - {*names.split()})


def made(make, takes=""):
    """An argument that is made anew for each call."""
    return Right(make) + takes


def right(value, takes=""):
    return made(lambda: value, takes)


class Call(NamedTuple):
    function: object
    arguments: dict  # what is no `Right` is passed on as it is, and never replaced
    twin: object = None  # what NumPy calls it: then right means as many digits as float32 has


CALLS = collections.defaultdict(dict)  # level -> {label: Call}


def entering(level):
    """What enters rows of this level into the table."""

    def call(label, function, twin=None, /, **arguments):
        assert label not in CALLS[level], label
        CALLS[level][label] = Call(function, arguments, twin)

    return call


def in_order(function):
    """The function, called with its arguments by their places: their names in the table are only for the reader."""
    return lambda **arguments: function(*arguments.values())


def array(*shape, value=0.5, dtype="f4", takes=""):
    return made(lambda: np.full(shape, value, dtype), takes)


NUMBERS = "negative zero fraction NaN inf large huge"
BLOCKS = "shape axis no_rows nans empty"
FLOATS = f"{BLOCKS} {NUMBERS} float64"
ALL = " ".join(WRONG)
FLAG = right(True, "True")
COUNT = right(2, "large huge")  # a whole number from 1 on
WHOLE = right(1, "zero large huge")  # from 0 on
REAL = right(1.0, f"{NUMBERS} True")
POSITIVE = right(0.1, "fraction large huge")
RATE = POSITIVE + "zero"
SHARE = right(0.5)  # between 0 and 1
SEED = right(1, "None zero large huge")
DTYPE = right("f4", "symbol")
SPACE = right((2, 3), "empty no_rows")  # a shape
X = array(2, 3, takes=FLOATS)
ANY = X + "int64"
FIRST = right(0, "None zero")  # an axis

# fmt: off

# Level 1 ---------------------------------------------------------------------------------------------------------------

call = entering("hardware")
H, CPU = hardware, hardware.pool()["cpu:0"]
ROW = made(lambda: CPU.put(np.ones(3)))
BUFFER = made(lambda: CPU.put(ONES))
SPEED = right(1e6, "zero large huge fraction inf True")
call("alloc", CPU.alloc, shape=SPACE, dtype=DTYPE)
call("spec", CPU.spec, shape=SPACE, dtype=DTYPE)
call("put", CPU.put, array=array(2, 3, takes=f"{FLOATS} True complex int64 int16 bool") - "huge")
call("free", CPU.free, buffer=BUFFER)
call("copy", H.copy, buffer=BUFFER, device=made(lambda: CPU))
call("roofline", CPU.roofline, flops=SPEED, nbytes=SPEED)
call("pool", H.pool, cpus=right(1, "zero"))
call("pool of gpus", H.pool, gpus=right(1, "zero"))
call("Assembler", H.Assembler, name=right("p", ALL), dtype=DTYPE)
call("Lanes", H.Lanes, name=right("p", ALL), dtype=DTYPE, lanes=right(4, "None True"))
call("array of a program", lambda name: H.Assembler("p", "f4").array(name, "n"), name=right("x", "text"))
call("size of an array", lambda size: H.Assembler("p", "f4").array("x", size), size=right("n", "text True"))
call("rows_of", lambda size: H.Assembler("p", "f4").array("i", "m", rows_of=size), size=right("n", "None text True"))
call("number of a program", lambda name: H.Assembler("p", "f8").number(name), name=right("rate", "text"))


def writing(what):
    """An instruction with one operand that changes, in a program of its own."""
    def write(value):
        a = H.Assembler("p", "f8")
        return what(a, a.array("x", "n"), value)
    return write


def program():
    a = H.Assembler("scale", "f8")
    x, rate = a.array("x", "n"), a.number("rate")
    with a.loop("n") as i:
        a.store(a.load(x, i) * rate, x, i)
    return a.assemble()


call("loop", writing(lambda a, x, value: a.loop(value).__enter__()), value=right("n", "text True"))
call("lanes of a loop", lambda value: H.Lanes("p", "f4", 4).loop("n", value).__enter__(), value=right(1, "None"))
call("load", writing(lambda a, x, value: a.load(x, value)), value=right(0, "zero True"))
call("load from", writing(lambda a, x, value: a.load(x if value is X else value, 0)), value=right(X))
call("store", writing(lambda a, x, value: a.store(value, x, 0)), value=REAL)
call("value +", writing(lambda a, x, value: a.load(x, 0) + value), value=REAL)
call("value <", writing(lambda a, x, value: a.load(x, 0) < value), value=REAL)
call("sum +=", writing(lambda a, x, value: operator.iadd(a.sum(), value)), value=REAL)
call("count", writing(lambda a, x, value: a.count(value)), value=right("n", "text True"))
call("program", program(), x=ROW, rate=REAL)
call("bind", program().bind, x=ROW, rate=REAL)
for name in ("exp", "log", "sqrt"):
    call(name, getattr(H, name), x=right(2.0, "large fraction huge zero inf NaN True negative"))


def tasks(level):
    """The two tasks, on one level."""
    for name, units in (("linear_regression", [1]), ("dnn_classifier", [4, 8, 1])):
        shapes = [shape for k, n in itertools.pairwise([3, *units]) for shape in ((k, n), (1, n))]
        call(name, getattr(level, name), x=array(4, 3), y=array(4, 1),
             weights=made(lambda shapes=shapes: [np.ones(shape, "f4") for shape in shapes]),
             batches=right([[0, 1], [2, 3]], "int64 int16"), learning_rate=POSITIVE + "True")


tasks(H)


def threads(out, x):
    i = H.cuda.grid(1)
    if i < out.shape[0]:
        out[i] = x[i] * 2.0


for name in ("launch_kernel", "count_traffic"):
    call(name, in_order(getattr(H, name)), kernel=right(threads), blocks=right(1), threads=right(4),
         out=array(4, takes="axis no_rows"), x=array(4, takes="axis"))
GPU, TPU = H.MAKERS["gpu"]("gpu:7"), H.Tpu("tpu:7")
ON_GPU = made(lambda: GPU.put(np.ones(4, "f4")))
call("Gpu.launch", in_order(GPU.launch), kernel=right(threads), blocks=right(1), threads=right(4), out=ON_GPU, x=ON_GPU)
call("Gpu.alloc", GPU.alloc, shape=SPACE, dtype=DTYPE)
call("Tpu.matmul", TPU.matmul, x=array(2, 3, takes="nans"), w=array(3, 2))
call("Tpu.run", lambda program, **arrays: TPU.run(program, **arrays), program=made(lambda: H.dense_program(3, 2), "empty dict") - "dict",
     x=array(2, 3, takes="nans"), w=array(3, 2))
call("dense_program", H.dense_program, inputs=right(3), units=right(2), function=right("identity"))
call("amount", H.amount, number=right(3.0, NUMBERS) - "NaN inf negative", unit=right("B", "text"))
call("bfloat16", H.bfloat16, x=array(2, 3, takes="shape axis float64 no_rows nans NaN empty fraction inf"))

# Level 2 ---------------------------------------------------------------------------------------------------------------

call = entering("kernels")
K = kernels
PAIR = made(lambda: CPU.put(np.array([1, 0])))


def launching(op, *inputs):
    """A launch whose attributes change."""
    return lambda **attributes: K.launch(op, None, *map(CPU.put, inputs), **attributes)


call("launch", in_order(K.launch), op=right("add"), out=right(None, "None"), x=BUFFER, y=BUFFER)
call("launch into", in_order(K.launch), op="relu", out=made(lambda: CPU.put(ONES), "None"), x=BUFFER)
call("launch clip", launching("clip", ONES), low=REAL, high=REAL)
call("launch sum", launching("reduce_sum", ONES), axis=FIRST + "True", keepdims=FLAG)
call("launch mean", launching("reduce_mean", ONES), axis=FIRST + "True", keepdims=FLAG)
call("launch matmul", launching("matmul", ONES, ONES.T), transpose_x=right(False))
call("launch sgd", lambda rate: K.launch("sgd", CPU.put(ONES), CPU.put(ONES), rate=rate), rate=REAL)
call("launch one_hot", launching("one_hot", np.arange(2)), depth=right(2), dtype=DTYPE)
call("launch scatter_add", launching("scatter_add", ONES, np.arange(2)), count=right(2))
call("launch random", launching("random_uniform", np.array([1, 0])), shape=SPACE + "zero", dtype=right(np.dtype("f4"), "symbol"))
call("launch reshape", launching("reshape", ONES), shape=right((3, 2)))
call("launch transpose", launching("transpose", ONES), axes=right((1, 0), "None"))
call("launch cast", launching("cast", ONES), dtype=right(np.dtype("f8"), "symbol"))
call("launch concat", launching("concat", ONES, ONES), axis=right(0, "zero"))
call("launch gather", in_order(functools.partial(K.launch, "gather", None)), x=BUFFER, rows=PAIR)
call("use", lambda **options: K.use(**options).__enter__(), op=right("negative"), kind=right("cpu"), function=right(lambda x: -x))
call("kernel", lambda op, kind, function: K.kernel(op, kind)(function), op=right("nothing", "text"), kind=right("cpu"),
     function=right(lambda x: x, "function class"))
call("scalar", lambda op, function: K.scalar(op)(function), op=right("nothing", "text"), function=right(lambda x: x, "function class"))
call("counted", K.counted, run=right(lambda: None, "class"))
tasks(K)

# Level 3 ---------------------------------------------------------------------------------------------------------------

call = entering("low_level")
L, D, HALVES = low_level, distributed, np.full((2, 3), 0.5, "f4")


def doubled(f):
    """A function of NumPy's for float64, of whatever is given."""
    return lambda x: f(np.asarray(x, "f8"))


def waving(f):
    """The same within the angles of float32."""
    return doubled(lambda x: np.where(np.abs(x) < 2.0**24, f(x), np.nan))


ELEMENTWISE = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "stop_gradient": lambda x: x,
    "abs": np.abs, "square": np.square, "erf": np.vectorize(math.erf, otypes=["f8"]), "nn.elu": doubled(lambda x: np.where(np.greater(x, 0), x, np.expm1(x))),
    "sin": waving(np.sin), "cos": waving(np.cos),
    "nn.relu": lambda x: np.where(np.less_equal(x, 0), 0, x), "nn.sigmoid": lambda x: 1 / (1 + np.exp(np.negative(x))),
}
for name, twin in ELEMENTWISE.items():
    takes = {"stop_gradient": "int64 bool True", "abs": "int64", "square": "int64"}.get(name, "")
    call(name, operator.attrgetter(name)(L), twin, x=X + takes)
for name in ("nn.softmax", "nn.log_softmax"):
    call(name, operator.attrgetter(name)(L), x=X - NUMBERS)
for name in ("maximum", "minimum"):
    call(name, in_order(getattr(L, name)), getattr(np, name), x=X - "float64", y=X - "float64")
for name in ("add", "sub", "mul", "truediv", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne"):
    twin = getattr(operator, name)
    call(f"tensor {name}", lambda y, f=twin: f(L.constant(HALVES), y), lambda y, f=twin: f(HALVES, y),
         y=array(*((3, 2) if name == "matmul" else (2, 3)), takes=FLOATS) - "float64" + "None" * (name in ("eq", "ne")))
call("matmul", in_order(L.matmul), np.matmul, x=X, w=array(3, 2, takes=FLOATS))
for name in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"):
    twin = getattr(np, name.removeprefix("reduce_"))
    call(name, getattr(L, name), lambda x, axis, keepdims, f=twin: f(x, axis=axis, keepdims=keepdims),
         x=ANY, axis=FIRST, keepdims=FLAG)
call("arg_max", L.arg_max, np.argmax, x=ANY, axis=FIRST)
call("arg_min", L.arg_min, np.argmin, x=ANY, axis=FIRST)
for name in ("reduce_any", "reduce_all"):
    call(name, getattr(L, name), getattr(np, name.removeprefix("reduce_")), x=array(2, 3, dtype="?", takes="bool True"), axis=FIRST)
call("equal", in_order(L.equal), np.equal, x=X - "float64", y=X - "float64")
call("alpha", lambda alpha: L.nn.elu(ONES, alpha), alpha=right(1.0, NUMBERS) - "NaN inf")
call("expand_dims", in_order(L.expand_dims), np.expand_dims, x=ANY + "bool True", axis=right(0, "zero negative"))
call("squeeze", lambda axis: L.squeeze(ONES[:1], axis), lambda axis: np.squeeze(ONES[:1], axis), axis=right(0, "zero None"))
call("stack", in_order(L.stack), np.stack, values=made(lambda: [ONES, ONES], "shape axis float64 int64 nans bool"), axis=right(0, "zero negative"))
call("take", in_order(L.take), x=array(2, 3, takes="shape float64 int64 nans bool no_rows"), rows=made(lambda: np.array([0, 1]), "zero int64 int16 empty no_rows True"), axis=right(1, "zero"))
for name in ("all_gather", "all_reduce", "broadcast"):  # of one rank
    call(name, getattr(D, name), x=ANY + "bool True int64" - ("bool True" if name == "all_reduce" else f"{NUMBERS} True" if name == "all_gather" else ""))
call("root", lambda root: D.broadcast(ONES, root), root=right(0, "zero"))
call("time_limit", D.time_limit, seconds=right(300.0, "fraction large huge"))
call("boolean_mask", in_order(L.boolean_mask), x=array(2, 3, takes="float64 int64 nans bool"), mask=made(lambda: np.ones((2, 3), "?"), "bool"))
call("item", lambda x: L.constant(x).item(), x=right(1.0, f"{NUMBERS} True"))
for name in ("zeros", "ones"):
    call(name, getattr(L, name), shape=SPACE + "zero", dtype=DTYPE)
    call(f"{name}_like", getattr(L, f"{name}_like"), x=ANY + "bool True symbol", dtype=DTYPE + "None")
call("range", in_order(L.range), start=right(0, "zero negative fraction large"), limit=right(5, "None negative zero fraction"), delta=right(1, "negative fraction large"))
call("normal", L.normal, shape=SPACE + "zero", mean=right(0.0, "negative zero fraction large huge"), stddev=right(1.0, "zero fraction large huge"), dtype=DTYPE)
call("uniform", L.uniform, shape=SPACE + "zero", minval=right(0.0, "negative zero fraction"), maxval=right(3.0, "fraction large huge"), dtype=DTYPE)
call("shuffle", L.shuffle, x=array(2, 3, takes="shape axis float64 int64 nans bool no_rows empty"))
call("set_seed", L.set_seed, seed=right(1, "zero large"))
call("clip", in_order(L.clip), np.clip, x=X, low=right(0.0, f"{NUMBERS} True"), high=REAL)
call("transpose", in_order(L.transpose), np.transpose, x=ANY + "bool", axes=right((1, 0), "None"))
call("reshape", in_order(L.reshape), np.reshape, x=ANY + "bool", shape=right((3, 2)))
call("concat", in_order(L.concat), values=made(lambda: [ONES, ONES], "shape float64 int64 nans bool ragged"), axis=right(0, "zero"))
call("gather", in_order(L.gather), x=ANY + "bool", rows=made(lambda: np.array([0, 1]), "zero int64 int16 empty no_rows"))
call("where", in_order(L.where), np.where, mask=made(lambda: np.ones((2, 3), "?"), "True bool"), x=X - "float64", y=X - "float64")
call("cast", in_order(L.cast), x=ANY + "bool True", dtype=right("f8", "symbol"))
call("one_hot", L.one_hot, x=made(lambda: np.array([0, 1]), "zero int64 True"), depth=right(3), dtype=DTYPE)
call("constant", L.constant, values=ANY + "bool True symbol int16", dtype=DTYPE + "None")
call("device", lambda name: L.device(name).__enter__(), name=right("cpu:0"))
call("to", lambda name: L.constant(ONES).to(name), name=right("cpu:0"))
call("tensor[…]", lambda index: L.constant(ONES)[index], lambda index: ONES[index], index=right(1, "zero None bool"))
call("Variable", L.Variable, value=ANY + "bool True", name=right("w", ALL), trainable=FLAG)
call("assign", lambda value: L.Variable(ONES).assign(value), value=array(2, 3, takes="nans"))
call("assign_sub", lambda value: L.Variable(ONES).assign_sub(value), value=array(2, 3, takes=f"axis nans {NUMBERS}") - "axis")
call("apply", in_order(L.apply), op=right("exp"), x=X)


def on_tape(what, **given):
    """what(tape, …) of arguments in which "w" is a variable, and "y" what this tape knows to be the sum of w * w."""
    w = L.Variable(ONES)
    with L.GradientTape() as tape:
        known = {"w": w, "y": L.reduce_sum(w * w)}
        return what(tape, *(known.get(x, x) if isinstance(x, str) else x for x in given.values()))


Y, W = right("y"), right("w", "empty")
call("gradient", functools.partial(on_tape, lambda tape, *given: tape.gradient(*given)), target=Y, sources=W)
call("gradient of one", functools.partial(on_tape, lambda tape, y, w: tape.gradient(y, [w])), target=Y, source=W - "empty")
call("grad", functools.partial(on_tape, lambda tape, *given: L.grad(*given)), outputs=Y, inputs=W)
call("backward", functools.partial(on_tape, lambda tape, loss: L.backward(loss)), loss=Y)
call("GradientTape", L.GradientTape, persistent=FLAG)
call("function", lambda python: L.function(python)(ONES), python=right(lambda x: x * 2.0, "function"))
call("function of", lambda x: L.function(L.exp)(x), x=X + "True")
call("over", lambda **options: L.function(lambda x: L.reduce_sum(x)).over(*options.values()),
     x=array(4, 3, takes="shape axis float64 nans"), batches=right([[0, 1], [2, 3]], "int64 int16"))


class Pair(L.Module):
    def __init__(self):
        self.w, self.b = L.Variable(ONES), L.Variable(np.ones(2, "f4"))


call("set_weights", lambda weights: Pair().set_weights(weights), weights=made(lambda: [ONES, np.ones(2, "f4")]))
call("set_weights of", lambda weight: Pair().set_weights([weight, np.ones(2, "f4")]), weight=array(2, 3, takes="nans"))
call("named", lambda kind: Pair().named(kind), kind=right(L.Variable, "class"))
tasks(L)

# Level 4 ---------------------------------------------------------------------------------------------------------------

call = entering("mid_level")
M = mid_level
ACTIVATION, PENALTY, START = right("relu", "None function class"), right("l2", "None function class"), right("zeros")
NAME = right("part", ALL)


def layer(kind, x, takes="", **options):
    """Two rows: a layer's arguments, and its input."""
    fixed = {key: value.make() for key, value in options.items()}
    if options:
        call(kind.__name__, lambda **given: kind(**given)(x.make()), **options)
    call(f"{kind.__name__}: its input", lambda x: kind(**fixed)(x), x=x + takes)


BLOCK = array(2, 3, takes="shape float64 nans no_rows")
layer(M.Dense, BLOCK + "bool int64", units=COUNT - "large huge", activation=ACTIVATION, use_bias=FLAG, kernel_initializer=START,
      bias_initializer=START, kernel_regularizer=PENALTY, name=NAME, dtype=DTYPE + "None")
layer(M.Activation, X, activation=right("relu", "function"))
layer(M.Flatten, X, "int64 bool True")
layer(M.Dropout, X, "int64 bool True symbol", rate=SHARE + "zero", seed=SEED)
layer(M.BatchNormalization, X - NUMBERS, momentum=SHARE + "zero", epsilon=POSITIVE)
layer(M.Embedding, made(lambda: np.array([0, 1])), "zero int64 int16", input_dim=right(3), output_dim=right(2), embeddings_initializer=START)
layer(M.Concatenate, made(lambda: [ONES, ONES]), axis=right(0, "zero"))
layer(M.Arithmetic, X, op=right("add"), number=right(1.0, NUMBERS + " None nans")._replace(skips={"huge"}))
call("add_variable", lambda **options: M.Metric().add_variable(**options), shape=SPACE + "zero", initializer=START, dtype=DTYPE)
BUILT = M.Dense(2)
BUILT(ONES)
call("a built Dense", lambda x: BUILT(x), x=array(2, 3, takes="nans no_rows bool int64"))
call("training of a layer", lambda flag: BUILT(ONES, training=flag), flag=FLAG + "None")
for kind in (M.L1, M.L2):
    call(kind.__name__, kind, **{kind.__name__.lower(): RATE})
    call(f"{kind.__name__} of", lambda w, kind=kind: kind()(w), w=X)
call("add_weight", lambda **options: M.Layer().add_weight(**options), shape=SPACE, initializer=START, trainable=FLAG)

ROWS = array(2, 3, takes="nans")
ANSWERS = ROWS + "float64 int64 int16 bool"
TRUE = array(2, 3, value=1.0, takes="nans int64 int16 bool")
WEIGHTS = array(2, value=1.0, takes="None")
CLASSES = made(lambda: np.array([0, 2]))
for kind in (M.MeanSquaredError, M.MeanAbsoluteError, M.BinaryCrossentropy, M.CategoricalCrossentropy):
    call(kind.__name__, kind(), y_true=TRUE, y_pred=ROWS, sample_weight=WEIGHTS)
call("SparseCategoricalCrossentropy", M.SparseCategoricalCrossentropy(), y_true=CLASSES, y_pred=ROWS + "float64", sample_weight=WEIGHTS)
call("from_logits", lambda **options: M.BinaryCrossentropy(**options)(ONES, ONES), from_logits=FLAG)

for kind in (M.BinaryAccuracy, M.CategoricalAccuracy, M.Precision, M.Recall, M.R2Score):
    call(kind.__name__, lambda kind=kind, **given: kind().update_state(**given),
         y_true=TRUE + "float64", y_pred=ANSWERS, sample_weight=WEIGHTS)
call("MeanLoss", lambda **given: M.MeanLoss(M.MeanSquaredError()).update_state(**given),
     y_true=TRUE + "float64", y_pred=ANSWERS, sample_weight=WEIGHTS)
call("MeanLoss of", M.MeanLoss, loss=made(M.MeanSquaredError))
call("AUC", lambda **given: M.AUC()(**given), y_true=made(lambda: np.array([[0.0], [1.0], [1.0], [0.0]], "f4")), y_pred=array(4, 1))
call("SparseCategoricalAccuracy", lambda **given: M.SparseCategoricalAccuracy()(**given), y_true=CLASSES, y_pred=ANSWERS, sample_weight=WEIGHTS)
call("accuracy", lambda **given: M.METRICS["accuracy"]()(**given), y_true=TRUE + "float64", y_pred=ANSWERS)
call("Mean", lambda **given: M.Mean()(**given), values=ANY + "int16 bool True", sample_weight=WEIGHTS)
call("threshold", M.BinaryAccuracy, threshold=SHARE + "zero", name=NAME)
call("num_thresholds", M.AUC, num_thresholds=right(9))

SCHEDULE = RATE + "function class"
CLIPPED = right(1.0, "None fraction large huge")
call("SGD", M.SGD, learning_rate=SCHEDULE, momentum=SHARE + "zero", nesterov=FLAG, clipnorm=CLIPPED, global_clipnorm=CLIPPED)
call("Adam", M.Adam, learning_rate=SCHEDULE, beta_1=SHARE, beta_2=SHARE, epsilon=POSITIVE)
call("AdamW", M.AdamW, weight_decay=RATE)
call("RMSprop", M.RMSprop, rho=SHARE + "zero", epsilon=POSITIVE)
call("learning_rate =", lambda value: setattr(M.SGD(), "learning_rate", value), value=SCHEDULE)
call("ExponentialDecay", M.ExponentialDecay, initial_learning_rate=POSITIVE, decay_steps=POSITIVE, decay_rate=POSITIVE)
call("PiecewiseConstantDecay", M.PiecewiseConstantDecay, boundaries=made(lambda: [3]), values=made(lambda: [0.1, 0.01]))
call("apply_gradients", lambda pairs: M.SGD().apply_gradients(pairs), pairs=made(lambda: [(ONES, L.Variable(ONES))]))
call("apply a gradient", lambda **given: M.SGD().apply_gradients([(*given.values(),)]),
     gradient=array(2, 3, takes=f"nans {NUMBERS}"), variable=made(lambda: L.Variable(ONES)))


def some(dataset):
    """The first elements of a dataset."""
    return [*itertools.islice(dataset, 3)]


def staged(name):
    """A stage of a pipeline, and its first elements."""
    return lambda **options: some(getattr(M.Dataset.from_tensor_slices(np.ones((4, 2), "f4")), name)(**options))


SLICES = array(4, 2, takes="shape axis float64 int64 int16 bool nans words")
call("from_tensor_slices", lambda x: some(M.Dataset.from_tensor_slices(x)), x=SLICES)
call("shuffle", staged("shuffle"), buffer_size=right(4, "large huge"), seed=SEED, reshuffle_each_iteration=FLAG)
call("batch", staged("batch"), batch_size=COUNT, drop_remainder=FLAG)
call("take", staged("take"), count=WHOLE)
call("skip", staged("skip"), count=WHOLE)
call("shard", staged("shard"), num_shards=right(2, "large huge"), index=right(1, "zero"))
call("repeat", staged("repeat"), count=COUNT + "None")
call("prefetch", staged("prefetch"), buffer_size=COUNT)
call("map", staged("map"), function=right(lambda x: x * 2, "function"))
call("map gives", lambda value: some(M.Dataset.from_tensor_slices(ONES).map(lambda x: value)),
     value=ANY + "int16 bool True text words dict" - "huge")
call("filter", staged("filter"), predicate=right(lambda x: True, "function"))
call("filter says", lambda value: some(M.Dataset.from_tensor_slices(ONES).filter(lambda x: value)), value=FLAG + NUMBERS)
call("from_batches", lambda **given: some(M.Dataset.from_batches(**given)), x=array(2, 3, takes="float64 int64 int16 bool nans words"),
     y=array(2, 1, takes="float64 int64 int16 bool nans words"), batches=right([[0, 1], [1, 0]], "int64 int16"))
call("from_csv", lambda **given: some(M.Dataset.from_csv(**given)), path=right("points.csv"), label_name=right("y", "None"),
     na_value=right("NA", "text"))
call("from_generator", lambda generator: some(M.Dataset.from_generator(generator)), generator=right(lambda: iter([1.0, 2.0]), "class"))
call("zip", lambda dataset: some(M.Dataset.zip(dataset)), dataset=made(lambda: M.Dataset.from_tensor_slices(ONES)))
call("DataLoader", lambda **given: some(M.DataLoader(**given)), dataset=SLICES, batch_size=COUNT, shuffle=FLAG, drop_last=FLAG)

TABLE = {"depth": [1.0, 2.0, None], "species": ["a", "b", "a"], "year": [0, 1, 2]}
SPECIES = made(lambda: M.categorical_column_with_vocabulary_list("species", ["a", "b"]))


def column(kind, table=TABLE):
    """A feature column's arguments, and what it makes of a table."""
    return lambda **options: M.DenseFeatures([shown(kind(**options))])(table)


def shown(column):
    return M.indicator_column(column) if isinstance(column, M.CategoricalColumn) else column


call("numeric_column", column(M.numeric_column), key=right("depth"), normalizer_fn=made(lambda: lambda x: x * 2.0, "None"),
     default_value=right(0.0, "negative zero fraction large huge"))
call("bucketized_column", column(M.bucketized_column), boundaries=made(lambda: [1.5]),
     source_column=made(lambda: M.numeric_column("depth", default_value=0.0)))
call("vocabulary_list", column(M.categorical_column_with_vocabulary_list), key=right("species"), default_value=right(0, "zero"),
     vocabulary_list=made(lambda: ["a", "b"], "words"), num_oov_buckets=right(0, "zero"))
call("identity", column(M.categorical_column_with_identity), key=right("year"), num_buckets=right(3), default_value=FIRST)
call("hash_bucket", column(M.categorical_column_with_hash_bucket), key=right("species"), hash_bucket_size=right(4))
call("crossed_column", column(M.crossed_column), keys=made(lambda: ["species", "year"]), hash_bucket_size=right(4))
call("indicator_column", column(M.indicator_column), categorical_column=SPECIES)
call("embedding_column", column(M.embedding_column), categorical_column=SPECIES, dimension=COUNT - "large huge", initializer=START)
call("DenseFeatures", lambda **given: M.DenseFeatures(**given)(TABLE),
     feature_columns=made(lambda: [M.indicator_column(SPECIES.make())]), dtype=DTYPE + "None")
call("a table", lambda table: column(M.numeric_column, table)(key="a"), table=made(lambda: {"a": [1.0, 2.0]}))
call("a column's values", lambda values: column(M.numeric_column, {"a": values})(key="a"), values=made(lambda: [1.0, 2.0], "axis empty"))
call("a category's values", lambda values: column(M.categorical_column_with_hash_bucket, {"a": values})(key="a", hash_bucket_size=3),
     values=made(lambda: ["x", "y"], "words objects empty"))
tasks(M)

# Level 5 ---------------------------------------------------------------------------------------------------------------

call = entering("high_level")
F, S = high_level, saving


def trained(**options):
    model = F.Sequential([F.Input((3,)), M.Dense(1)])
    model.compile(**{"optimizer": "sgd", "loss": "mse"} | options)
    return model


def fit(**options):
    return trained().fit(**{"x": np.ones((4, 3), "f4"), "y": np.ones((4, 1), "f4"), "verbose": 0} | options)


def stopped(**options):
    """fit, told to stop after one epoch."""
    return fit(callbacks=[stop], **options)


stop = F.Callback()
stop.on_epoch_end = lambda epoch, logs: setattr(stop.model, "stop_training", True)


def compiled(**options):
    return trained(**options).fit(np.ones((4, 3), "f4"), np.ones((4, 1), "f4"), verbose=0)


INPUT = F.Input((3,))
OUTPUT = M.Dense(2)(INPUT)
XS, YS = array(4, 3), array(4, 1)
call("Sequential", F.Sequential, layers=made(lambda: [F.Input((3,)), M.Dense(1)], "empty no_rows"), name=NAME)
call("Sequential of", lambda layer: F.Sequential([F.Input((3,)), layer]), layer=made(lambda: M.Dense(1)))
call("Input", F.Input, shape=right((3,), "empty"), dtype=DTYPE, name=right("a", "None text"))
call("Model", F.Model, inputs=right(INPUT), outputs=right(OUTPUT))
call("build", lambda **given: F.Sequential([M.Dense(1)]).build(**given), input_shape=right((None, 3), "objects"), dtype=DTYPE)
call("compile", compiled, optimizer=made(M.SGD), loss=made(M.MeanSquaredError), metrics=made(lambda: [M.BinaryAccuracy()], "None empty"))
call("loss_weights", lambda loss_weights: F.Model(INPUT, OUTPUT).compile(loss_weights=loss_weights), loss_weights=made(lambda: [2.0], "None"))
call("arithmetic on an Input", lambda x: INPUT + x, x=right(1.0, "True complex nans zero negative fraction inf NaN large"))
call("LambdaCallback", lambda told: fit(callbacks=[F.LambdaCallback(on_epoch_end=told)]), 
     told=right(lambda epoch, logs: None, "None")._replace(skips={"class", "function"}))
call("compile by name", compiled, optimizer=right("sgd"), loss=right("mse"), metrics=right("accuracy", "None empty"))
call("fit", fit, x=XS, y=YS + "axis", batch_size=COUNT + "None", verbose=right(0, "True negative zero large huge"), callbacks=made(lambda: [F.TerminateOnNaN()], "None empty"),
     validation_split=right(0.25, "zero"), shuffle=FLAG, seed=SEED)
call("fit, validated", fit, validation_data=made(lambda: (np.ones((2, 3), "f4"), np.ones((2, 1), "f4")), "None"))
call("fit so long", stopped, epochs=right(1, "zero large huge"))
call("fit on", lambda data: trained().fit(data, verbose=0),
     data=made(lambda: M.Dataset.from_tensor_slices((np.ones((4, 3), "f4"), np.ones((4, 1), "f4"))).batch(2)))
call("evaluate", lambda **given: trained().evaluate(**given), x=XS, y=YS + "axis", batch_size=COUNT)
call("predict", lambda **given: trained().predict(**given), x=XS + "nans no_rows bool float64 int16 int64", batch_size=COUNT)
call("call a model", lambda x: trained()(x), x=XS + "nans no_rows bool int64")
call("DistributedDataParallel", lambda model, timeout: D.DistributedDataParallel(model, timeout).predict(ONES), model=made(trained),
     timeout=right(300.0, "fraction large huge"))
call("save", lambda path: trained().save(path), path=right("model", "text"))
call("load_model", S.load_model, path=right("kept", "text"), custom_objects=made(dict, "None dict"))
call("export", lambda path: trained().export(path), path=right("model.onnx"))
CARD = {"data": right("rings", "None text"), "metrics": made(lambda: {"accuracy": 0.9}, "None dict"), "license": right("mit", "None text")}
call("save_pretrained", lambda **given: S.save_pretrained(**{"model": trained(), "save_directory": "pushed"} | given), model=made(trained),
     save_directory=right("pushed", "text"), **CARD)
call("from_pretrained", lambda **given: S.from_pretrained(**{"repo_id": "kept"} | given), repo_id=right("kept", "text"), custom_objects=made(dict, "None dict"))
call("export_page", lambda **given: S.export_page(**{"model": trained(), "path": "page.html"} | given), model=made(trained), path=right("page.html", "text"),
     inputs=made(lambda: {"a": (0, 1), "b": (0, 1), "c": (0, 1)}, "None"), outputs=made(lambda: ["a"], "None words"), picture=right((1, 3, 1.0), "None"))
WATCHED = right("loss", "text")
call("EarlyStopping", F.EarlyStopping, monitor=WATCHED, min_delta=RATE + "negative", patience=WHOLE, mode=right("min"), restore_best_weights=FLAG)
call("ReduceLROnPlateau", F.ReduceLROnPlateau, monitor=WATCHED, factor=SHARE, patience=WHOLE, min_lr=RATE)
call("ModelCheckpoint", F.ModelCheckpoint, filepath=right("model", "text"), monitor=WATCHED, save_best_only=FLAG, save_weights_only=FLAG,
     verbose=right(0, "True negative zero large huge"))
call("CSVLogger", F.CSVLogger, filename=right("log.csv", "text"))
call("TensorBoard", F.TensorBoard, log_dir=right("logs", "text"), histogram_freq=WHOLE)
call("LearningRateScheduler", lambda schedule: fit(callbacks=[F.LearningRateScheduler(schedule)]), schedule=right(lambda epoch, rate: rate))
call("a schedule gives", lambda rate: fit(callbacks=[F.LearningRateScheduler(lambda epoch, _: rate)]), rate=RATE)
call("monitor", lambda monitor: fit(callbacks=[F.EarlyStopping(monitor)]), monitor=right("loss"))
BINARY = made(lambda: np.array([0, 1, 0, 1]))
for kind in (F.LinearRegressor, F.DNNClassifier, F.DNNRegressor):
    name = kind.__name__
    call(name, lambda kind=kind, **given: kind(**{"epochs": 1} | given).fit(np.ones((4, 3)), np.array([0, 1, 0, 1])), learning_rate=RATE,
         epochs=right(1, "zero")._replace(skips={"large", "huge"}), batch_size=COUNT + "None", random_state=SEED - "large huge" + "True",
         n_iter_no_change=COUNT)
    call(f"{name}.fit", lambda X, y, kind=kind: kind(epochs=1).fit(X, y), X=array(4, 3), y=BINARY + "axis" * (name != "DNNClassifier"))
    call(f"{name}.predict", kind(epochs=1).fit(np.ones((4, 3)), np.array([0, 1, 0, 1])).predict, X=array(4, 3, takes="float64 int64 int16 bool"))
call("DNNRegressor.sample_weight", lambda sample_weight: F.DNNRegressor(epochs=1).fit(np.ones((4, 3)), np.array([0, 1, 0, 1]), sample_weight),
     sample_weight=array(4, takes="None True fraction large huge axis"))
tasks(F)

# fmt: on

# Whoever reads these does not learn what was wrong with the call.
OBSCURE = re.compile(
    r"index out of range|ambiguous|has no attribute|unpack|not subscriptable|not iterable|unsupported operand|"
    r"must be real number|is not callable|inhomogeneous|could not broadcast|not supported between|has no len|"
    r"cannot reshape|unhashable|bad operand|numba|cannot be interpreted|object arrays|"
    r"argument must be|must be a (string|number|str|real)|could not convert|can't convert|cannot convert|zip\(\)"
)
CLEAR = re.compile(
    "Cannot interpret '.*' as a data type|data type '.*' not understood|expected str, bytes or os.PathLike object|in line .* of threads|Cannot construct a dtype from|must be between"
)
SENSIBLE = TypeError, ValueError, LookupError, OverflowError, MemoryError, RuntimeError, FloatingPointError, OSError


def plain(text):
    return re.sub(r"[\s,_]", "", text)


def described(value):
    """Texts by which a message may name a value: itself, one of its elements, its type, shape, dtype or name."""
    few = [*itertools.islice(value, 3)] if isinstance(value, (list, tuple, dict, str)) else []
    texts = [text for x in (value, *few) for text in (type(x).__name__, reprlib.repr(x)[:9], str(x)[:9])]
    texts += [str(getattr(value, name, "")) for name in ("__name__", "shape", "dtype")]
    if isinstance(value, (list, dict)) or isinstance(value, np.ndarray) and value.ndim:
        texts += [str(len(value))]
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
        texts += ["not a finite number"]
    if isinstance(value, (int, float, list)):
        with contextlib.suppress(ValueError):  # a ragged list has no shape
            texts += [str(np.shape(value)), str(np.asarray(value).dtype)]
    return {plain(text) for text in texts} - {"", "object"}


def told(error, given):
    """Whether this error is one of ours, and names something that was given."""
    said, where = str(error), traceback.extract_tb(error.__traceback__)[-1]
    by_sklearn = "sklearn" in where.filename
    folders = os.path.dirname(levels.__file__), os.path.dirname(levels_more.__file__)
    ours = where.line.startswith("raise") and where.filename.startswith(folders)
    ours = ours or by_sklearn or isinstance(error, (MemoryError, OSError)) and said
    named = any(text in plain(said) for x in given for text in described(x))
    named = named or by_sklearn or isinstance(error, MemoryError)
    sensible = isinstance(error, SENSIBLE) and type(error) is not KeyError and not OBSCURE.search(said)
    return CLEAR.search(said) or ours and named and sensible


def outcome(call, name, wrong):
    """("fine", "clear", "obscure" or "silent", what was said or given) where this argument is replaced."""
    given = {key: x.make() if isinstance(x, Right) else x for key, x in call.arguments.items()}
    given[name] = WRONG[wrong]()
    try:
        result = call.function(**given)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.relpath(where.filename, ROOT)}:{where.lineno}"
        kind = "clear" if told(error, given.values()) else "obscure"
        return kind, f"{type(error).__name__}: {error!s:.150} ({where})"
    if wrong not in call.arguments[name].takes:
        return "silent", reprlib.repr(result)
    if call.twin is None:
        return "fine", ""
    with np.errstate(all="ignore"):
        expected = np.asarray(call.twin(*given.values()), "f8")
    same = np.allclose(np.asarray(result, "f8"), expected, rtol=1e-4, equal_nan=True)
    return "fine" if same else "silent", f"{result}; NumPy: {expected}"


def peak():
    """KiB of memory that this process had at most, or 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used // 1024 if sys.platform == "darwin" else used


def rows():
    """[(level, label, its argument, what replaces it)] of all levels; the kernels last, for some calls leave ops of their own."""
    return [
        (level, label, name, wrong)
        for level in sorted(CALLS, key="kernels".__eq__)
        for label, call in CALLS[level].items()
        for name, argument in call.arguments.items()
        if isinstance(argument, Right)
        for wrong in WRONG
        if wrong not in argument.skips
    ]


def work(first, report):
    """Try the calls from this one on. The report names each before it is made, and then says what came of it."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with open("points.csv", "w") as file:
        file.write("x,y\n1,2\n3,4\n")
    trained().save("kept")
    with open(report, "a", buffering=1, encoding="utf-8") as file:
        for number, (level, label, name, wrong) in [*enumerate(rows())][first:]:
            if number == first or number % 20 == 0:
                faulthandler.dump_traceback_later(LIMIT, exit=True)
            file.write(f"{level}\t{label}({name}={wrong})\t")
            file.flush()
            before = peak()
            kind, said = outcome(CALLS[level][label], name, wrong)
            kind = "greedy" if peak() - before > GREEDY else kind
            file.write(f"{kind}\t{' '.join(said.split())}\n")
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    work(int(sys.argv[1]), sys.argv[2])
