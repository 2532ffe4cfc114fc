"""Level 4: each part against Keras and PyTorch on the same numbers, compiled against eager, and what readers rely on."""

import json
import math
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course import tasks
from levels import mid_level
from levels.low_level import (
    GradientTape,
    Module,
    Variable,
    compiler,
    constant,
    eager,
    function,
    reduce_mean,
    reduce_sum,
)
from levels.mid_level import (
    ACTIVATIONS,
    AUC,
    INITIALIZERS,
    L1,
    L2,
    LOSSES,
    METRICS,
    RANDOM,
    SGD,
    TRAINING,
    Activation,
    Adam,
    AdamW,
    BatchNormalization,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    Concatenate,
    Dense,
    Dropout,
    Embedding,
    ExponentialDecay,
    Flatten,
    Layer,
    Mean,
    MeanAbsoluteError,
    MeanLoss,
    MeanSquaredError,
    PiecewiseConstantDecay,
    Precision,
    R2Score,
    Recall,
    RMSprop,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    known,
    metrics,
)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "golden.json").read_text(encoding="utf-8"))
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
BACK_ENDS = {"Rows": compiler.LIMIT, "Launches": -1}  # with no room for a row, every graph becomes launches


@pytest.fixture(params=BACK_ENDS)
def back_end(request, monkeypatch):
    monkeypatch.setattr(compiler, "LIMIT", BACK_ENDS[request.param])
    return request.param


# The same numbers as Keras and PyTorch.


def golden(kind):
    """One test for each case of that kind and each dtype."""
    cases = [(case, dtype) for case in GOLDEN[kind] for dtype in TOLERANCE]
    names = [f"{n // 2}-{case['class']}-{dtype}" for n, (case, dtype) in enumerate(cases)]
    return pytest.mark.parametrize(("case", "dtype"), cases, ids=names)


def typed(values, dtype):
    array = np.asarray(values)
    return array.astype(dtype) if array.dtype.kind == "f" else array


def assert_close(result, expected, dtype):
    """As near as the dtype allows, relative to what is larger, 1 or the number itself."""
    result, expected = np.asarray(result, np.float64), np.asarray(expected, np.float64)
    assert result.shape == expected.shape
    assert (abs(result - expected) <= TOLERANCE[dtype] * np.maximum(1.0, abs(expected))).all(), abs(result - expected)


def made(case, module=mid_level, **more):
    """The part that a case names; of its arguments, a pair [name, …] is a part too."""
    given = dict(case["arguments"]) | more
    for name, value in given.items():
        if isinstance(value, list) and isinstance(value[0], str):
            part, argument = getattr(mid_level, value[0]), value[1]
            given[name] = part(**argument) if isinstance(argument, dict) else part(argument)
    return getattr(module, case["class"])(**given)


@golden("layers")
def test_a_layer_is_kerass(case, dtype):
    layer, expected = made(case, dtype=dtype), case[dtype]
    for n, (call, wanted) in enumerate(zip(case["calls"], expected["calls"], strict=True)):
        inputs = [Variable(x) if x.dtype.kind == "f" else x for x in (typed(x, dtype) for x in call["inputs"])]
        x = inputs if case["class"] == "Concatenate" else inputs[0]
        if n == 0:
            layer(x)
            if case["weights"]:
                values = [typed(w, dtype) for w in case["weights"]]
                layer.set_weights([w.reshape(v.shape) for w, v in zip(values, layer.variables, strict=True)])
        with GradientTape() as tape:
            y = layer(x, training=call["training"])
            total = sum(layer.losses, reduce_sum(y * typed(case["dy"], dtype)) if n == len(case["calls"]) - 1 else 0.0)
        assert y.dtype == dtype
        assert_close(y.numpy(), wanted["y"], dtype)
        state = [v.numpy() for v in layer.variables if not v.trainable]
        for moving, wanted_state in zip(state, wanted["state"], strict=True):
            assert_close(moving, wanted_state, dtype)
    floats = [x for x in inputs if isinstance(x, Variable)]
    gradients = tape.gradient(total, floats + layer.trainable_variables)
    wanted = expected["gradients"]["inputs"] + expected["gradients"]["weights"]
    for gradient, value in zip(gradients, wanted, strict=True):
        assert_close(gradient.numpy().reshape(np.shape(value)), value, dtype)
    for penalty, value in zip(layer.losses, expected["penalties"], strict=True):
        assert_close(penalty, value, dtype)


@golden("losses")
def test_a_loss_is_kerass(case, dtype):
    y_true, y_pred = typed(case["y_true"], dtype), Variable(typed(case["y_pred"], dtype))
    weight = None if case["sample_weight"] is None else typed(case["sample_weight"], dtype)
    with GradientTape() as tape:
        loss = made(case)(y_true, y_pred, weight)
    assert_close(loss, case[dtype]["loss"], dtype)
    assert_close(tape.gradient(loss, y_pred).numpy(), case[dtype]["gradient"], dtype)


@golden("metrics")
def test_a_metric_is_kerass(case, dtype):
    metric = made(case, metrics)
    assert metric.result() == 0.0
    for update, expected in zip(case["updates"], case[dtype], strict=True):
        weight = None if update["sample_weight"] is None else typed(update["sample_weight"], dtype)
        metric.update_state(*(typed(x, dtype) for x in update["inputs"]), sample_weight=weight)
        assert type(metric.result()) is float
        assert_close(metric.result(), expected, dtype)


def objective(w, b, x, y):
    """That of the script which made the golden values."""
    error = x @ w + b - y
    return reduce_mean(error * error) + 0.1 * reduce_sum(w * w * w * w)


@golden("optimizers")
def test_an_optimizer_goes_the_same_way_for_100_steps(case, dtype):
    x, y, w, b = (typed(GOLDEN["problem"][name], dtype) for name in "xywb")
    variables, optimizer = [Variable(w), Variable(b)], made(case)
    for step in range(1, 101):
        with GradientTape() as tape:
            loss = objective(*variables, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        for variable, value in zip(variables, case[dtype].get(str(step), variables), strict=True):
            assert_close(variable.numpy(), value, dtype)
