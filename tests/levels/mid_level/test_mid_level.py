"""Level 4: each part against Keras and PyTorch on the same numbers, compiled against eager, and what readers rely on."""

import contextlib
import hashlib
import json
import math

import numpy as np
import pytest
from core_alone import more

from course.author.build import ROOT
from levels import mid_level as core
from levels.low_level import functions
from levels.low_level.row_program import RowProgram
from levels_more import mid_level
from levels_more.compiler.fused.backend import FusedProgram
from levels_more.kernels import use
from levels_more.low_level import (
    GradientTape,
    Module,
    Variable,
    apply,
    constant,
    eager,
    exp,
    function,
    log,
    maximum,
    reduce_mean,
    reduce_sum,
)
from levels_more.mid_level import (
    AUC,
    INITIALIZERS,
    L1,
    METRICS,
    RANDOM,
    SGD,
    Adam,
    AdamW,
    BatchNormalization,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    Dense,
    Dropout,
    Embedding,
    ExponentialDecay,
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
    metrics,
)
from levels_more.mid_level.layers import TRAINING
from levels_more.mid_level.notes import noted

GOLDEN = json.loads((ROOT / "tests" / "support" / "golden" / "golden.json").read_text(encoding="utf-8"))
GOLDEN["metrics"] = [case for case in GOLDEN["metrics"] if "curve" not in case["arguments"]]  # here AUC is that of ROC
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


@pytest.fixture(params=[[RowProgram], [], *more("FusedProgram", ([FusedProgram],))], ids=["rows", "replay", "fused"])
def back_end(request, monkeypatch):
    """What a graph may become."""
    monkeypatch.setattr(functions, "BACK_ENDS", request.param)


# The same numbers as Keras and PyTorch.


def test_the_golden_values_are_those_of_the_script_as_it_stands():
    script = ROOT / "tests" / "support" / "golden" / "make_golden.py"
    made_by = hashlib.sha256(script.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
    assert GOLDEN["script"] == made_by, (
        "make golden.json anew, with Keras and PyTorch: python3 tests/support/golden/make_golden.py"
    )


OPTIONS = {  # what the classes of the core take
    "Dense": {"units", "activation"},
    "SGD": {"learning_rate"},
    "Adam": {"learning_rate", "beta_1", "beta_2", "epsilon"},
}


def parameters(case, *others):
    """The parameters of a test, with the mark `more` if the case asks for more than the core has."""
    known = case["arguments"].keys() <= OPTIONS.get(case["class"], set())
    known = known and case["arguments"].get("activation") in (None, "linear", "relu", "sigmoid")
    known = known and case.get("sample_weight") is None
    return pytest.param(case, *others, marks=[] if known else [pytest.mark.more("these arguments")])


def golden(kind):
    """One test for each case of that kind and each dtype."""
    cases = [(case, dtype) for case in GOLDEN[kind] for dtype in TOLERANCE]
    names = [f"{n // 2}-{case['class']}-{dtype}" for n, (case, dtype) in enumerate(cases)]
    return pytest.mark.parametrize(("case", "dtype"), [parameters(*case) for case in cases], ids=names)


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


def penalties(layer):
    """Those of its regularizers, which the core does not have."""
    return getattr(layer, "losses", [])


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
            total = reduce_sum(y * typed(case["dy"], dtype)) if n == len(case["calls"]) - 1 else 0.0
            total = sum(penalties(layer), total)
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
    for penalty, value in zip(penalties(layer), expected["penalties"], strict=True):
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
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        for variable, value in zip(variables, case[dtype].get(str(step), variables), strict=True):
            assert_close(variable.numpy(), value, dtype)


# Compiled equals eager, to the last bit in float64, as a row program and launch by launch.


def each_once(kind):
    """The golden cases without weights of samples, so that each class and arguments come once."""
    cases = [case for case in GOLDEN[kind] if case.get("sample_weight") is None]
    names = [f"{n}-{case['class']}" for n, case in enumerate(cases)]
    return pytest.mark.parametrize("case", [*map(parameters, cases)], ids=names)


def same(results, expected):
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))


def both_ways(make_step, *args):
    """What a step returns, and leaves in the module it comes with, compiled and op by op."""
    found = []
    for way in (lambda step: step, function):
        step, module = make_step()
        run = way(step)
        results = [x.numpy() for _ in range(3) for x in run(*args)]
        found.append(results + module.get_weights())
    same(*found)


@each_once("layers")
def test_a_compiled_layer(case, back_end):
    inputs = [typed(x, "float64") for x in case["calls"][-1]["inputs"]]

    def make_step():
        RANDOM.seed(1)
        layer = made(case)

        def step(*inputs):
            with GradientTape() as tape:
                y = layer(list(inputs) if case["class"] == "Concatenate" else inputs[0], training=True)
                loss = sum(penalties(layer), reduce_sum(y * y))
            return [y, loss, *tape.gradient(loss, layer.trainable_variables)]

        step(*inputs)  # builds it
        return step, layer

    both_ways(make_step, *inputs)


@each_once("losses")
def test_a_compiled_loss(case, back_end, pytestconfig):
    y_true, y_pred = typed(case["y_true"], "float64"), typed(case["y_pred"], "float64")

    def make_step():
        module = Module()
        module.scale = Variable(np.ones(y_pred.shape[1:]))

        def step(y_true, y_pred, *weight):
            with GradientTape() as tape:
                loss = made(case)(y_true, y_pred * module.scale, *weight)
            return [loss, tape.gradient(loss, module.scale)]

        return step, module

    weights = [] if pytestconfig.option.core else [np.linspace(0.5, 2.0, len(y_pred))]
    both_ways(make_step, y_true, y_pred, *weights)


@each_once("optimizers")
def test_a_compiled_optimizer(case, back_end):
    def make_step():
        module = Module()
        module.w, module.b = (Variable(typed(GOLDEN["problem"][name], "float64")) for name in "wb")
        module.optimizer = made(case)
        variables = [module.w, module.b]

        def step(x, y):
            with GradientTape() as tape:
                loss = objective(*variables, x, y)
            module.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return [loss]

        return step, module

    both_ways(make_step, *(typed(GOLDEN["problem"][name], "float64") for name in "xy"))


def steps_of(optimizer, change=None, kernel=None, by="apply_gradients"):
    """The weights and the memory after each of five steps in eager. Before the fourth: change(optimizer), or a kernel is used."""
    variables = [Variable(typed(GOLDEN["problem"][name], "float64")) for name in "wb"]
    found = []
    for step in range(5):
        if change and step == 3:
            change(optimizer)
        gradients = [constant(np.cos(v.numpy() + step)) for v in variables]
        with eager(), use("subtract", "cpu", kernel) if kernel and step == 3 else contextlib.nullcontext():
            if by == "op_by_op" and step:
                optimizer.op_by_op(gradients, variables)
            else:
                optimizer.apply_gradients(zip(gradients, variables, strict=True))
        found += [v.numpy() for v in (*variables, *optimizer.variables)]
    return found


EAGER = {name: getattr(mid_level, name) for name in ("SGD", "Adam", "AdamW", "RMSprop")}
EAGER |= {"momentum": lambda: SGD(0.1, 0.9), "clipped": lambda: Adam(0.1, clipvalue=0.5, global_clipnorm=1.0)}
EAGER |= {"schedule": lambda: SGD(PiecewiseConstantDecay([1, 3], [1.0, 0.1, 0.01]))}


@pytest.mark.more("one program per step")
@pytest.mark.parametrize("name", EAGER)
def test_a_step_in_eager_is_one_program_with_the_bits_of_its_ops(name):
    optimizer = EAGER[name]()
    same(steps_of(optimizer), steps_of(EAGER[name](), by="op_by_op"))
    ((program, _),) = noted(optimizer, "program").programs.values()
    assert type(program) is FusedProgram


def set_to(**changes):
    return lambda optimizer: [setattr(optimizer, *change) for change in changes.items()]


@pytest.mark.more("one program per step")
@pytest.mark.parametrize(
    ("scheduled", "change"),
    [
        (False, {"change": set_to(momentum=0.5)}),
        (False, {"change": set_to(clipnorm=0.1)}),
        (False, {"change": set_to(learning_rate=0.01)}),
        (True, {"change": lambda sgd: set_to(decay_rate=0.1)(sgd.learning_rate)}),
        (False, {"kernel": lambda x, y: (x - y) * (1.0 + 2.0**-52)}),
    ],
)
def test_a_step_in_eager_heeds_what_changes(scheduled, change):
    def make():
        return SGD(ExponentialDecay(0.1, 2, 0.5) if scheduled else 0.1, 0.9)

    found = steps_of(make(), **change)
    same(found, steps_of(make(), **change, by="op_by_op"))
    assert not all(map(np.array_equal, found, steps_of(make())))


@pytest.mark.more("one program per step")
def test_in_eager_a_rule_of_ones_own_runs_in_each_step():
    heard = []

    class Loud(RMSprop):
        def update(self, rate, dw, w, v):
            heard.append(dw.numpy())
            return super().update(rate, dw, w, v)

    def loud(rate, dw, w):
        heard.append(dw.numpy())
        return (w,)

    steps_of(Loud())
    assert len(heard) == 10  # two variables
    steps_of(SGD(), change=set_to(update=loud))
    assert len(heard) == 14


def test_an_open_tape_hears_each_op_of_an_optimizer():
    w, sgd, heard = Variable(np.ones(2)), SGD(0.5), []
    for _ in range(2):
        with GradientTape() as tape:
            sgd.apply_gradients([(constant(np.ones(2)), w)])
        heard.append([op for op, *_ in tape.records])
    assert heard == [["add", "multiply", "subtract"]] * 2


@pytest.mark.parametrize("name", sorted({case["class"] for case in GOLDEN["metrics"]}))
def test_a_metric_in_a_compiled_step(name, back_end):
    """In batches of which the last is shorter, with weights; the state is equal, not only the result."""
    *_, case = (case for case in GOLDEN["metrics"] if case["class"] == name and case["updates"][0]["sample_weight"])
    inputs = [
        np.concatenate([typed(u["inputs"][k], "float64") for u in case["updates"]]) for k in range(2 - (name == "Mean"))
    ]
    weight = np.concatenate([u["sample_weight"] for u in case["updates"]])
    batches = [*np.arange(12).reshape(2, 6), [12, 16, 15, 14, 13]]
    compiled, plain = made(case, metrics), made(case, metrics)

    @function
    def step(weight, *inputs):
        compiled.update_state(*inputs, weight)

    step.over(weight, *inputs, batches)
    for rows in batches:
        plain.update_state(*(x[rows] for x in inputs), weight[rows])
    same(compiled.get_weights(), plain.get_weights())
    assert compiled.result() == plain.result() != 0.0


@pytest.mark.parametrize("back_ends", ["core", "any"])
def test_metrics_count_beyond_what_float32_holds(back_ends, monkeypatch):
    """One running sum in float32 gives 0.1008 for the mean of 0.1, and stays at 2²⁴ rows."""
    if back_ends == "any":
        monkeypatch.setattr(functions, "BACK_ENDS", [RowProgram, FusedProgram])
    mean, accuracy = Mean(), BinaryAccuracy()
    accuracy.update_state(np.ones((2**24, 1), "f4"), np.ones((2**24, 1), "f4"))

    @function
    def step(x):
        mean.update_state(x)
        accuracy.update_state(x, x - x)

    step.over(np.full((500_000, 1), 0.1, "f4"), np.arange(500_000).reshape(-1, 1))
    assert mean.result() == pytest.approx(np.float32(0.1), rel=1e-7)
    assert accuracy.result() == pytest.approx(2**24 / (2**24 + 500_000), rel=1e-7)


def test_an_infinity_stays_one_until_the_reset():
    mean = Mean()
    for value in (1.0, math.inf, 1.0):
        mean.update_state(np.float32(value))
    assert mean.result() == math.inf
    mean.update_state(np.float32(-math.inf))
    assert math.isnan(mean.result())
    mean.reset_state()
    assert mean(np.float32(2.0)) == 2.0


# Layers.


class Pair(Layer):
    """Two dense layers, in a list."""

    def __init__(self):
        super().__init__()
        self.inside = [Dense(4, "relu"), Dense(1)]

    def call(self, x):
        for layer in self.inside:
            x = layer(x)
        return x


def test_a_layer_is_built_once_and_for_one_width():
    dense = Dense(3)
    assert dense.variables == []
    dense(np.ones((2, 4)))
    before = dense.variables
    dense(np.ones((5, 4)))
    assert [*map(id, dense.variables)] == [*map(id, before)]
    for layer in (dense, BatchNormalization()):
        layer(np.ones((2, 4)))
        told = r"x is \(2, 5\) and w is \(4, 3\)" if layer is dense else r"built for 4 inputs, got float64\[2, 5\]"
        with pytest.raises(ValueError, match=told):
            layer(np.ones((2, 5)))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_layer_takes_the_dtype_of_its_first_input(dtype):
    layer = Pair()
    assert layer(np.ones((2, 3), dtype)).dtype == dtype
    assert {v.dtype for v in layer.variables} == {np.dtype(dtype)}


def test_the_training_flag_reaches_layers_inside_and_ends_with_the_call():
    class Asking(Pair):
        seen = []

        def call(self, x):
            self.seen.append(TRAINING.now)
            return super().call(x)

    outer, inner = Pair(), Asking()
    outer.inside[0] = inner
    for flag in (None, True, False):
        outer(np.ones((2, 3)), training=flag)
    assert inner.seen == [False, True, False]
    assert not TRAINING.now
    outer.inside.append(None)  # so that the call fails
    with pytest.raises(TypeError):
        outer(np.ones((2, 3)), training=True)
    assert not TRAINING.now


@pytest.mark.parametrize("way", [lambda call: call, function])
def test_what_is_drawn_is_of_record(way):
    """In each call the same numbers, to the bit, as the key and the counter give them."""
    drop, x = Dropout(0.5, seed=7), constant(np.zeros((2, 3)))
    call = way(lambda x: drop(x, training=True))
    for k in range(3):
        state = constant(np.array([7, 6 * k]))
        kept = apply("random_uniform", state, shape=(2, 3), dtype=x.dtype).numpy() >= 0.5
        same([call(x + 1.0)], [2.0 * kept])
    with pytest.raises(ValueError, match="Dropout: seed"):
        Dropout(0.5, seed="one")


def test_an_embedding_gives_rows_and_refuses_ids_that_are_none():
    words = Embedding(5, 2)
    y = words(np.array([[0, 4], [4, 4]]))
    assert y.shape == (2, 2, 2)
    same(y.numpy()[1], words.embeddings.numpy()[[4, 4]])
    for wrong in ([5], [-1]):
        with pytest.raises(IndexError, match="row number is out of range"):
            words(np.array(wrong))
        with pytest.raises(IndexError, match="row number is out of range"):
            function(lambda x: words(x))(np.array(wrong))
    with pytest.raises(TypeError, match="whole numbers|row numbers"):
        words(np.array([0.5]))


@pytest.mark.parametrize("loss", [lambda w: L1(0.1)(w), lambda w: MeanAbsoluteError()(np.zeros((2, 1)), w)])
def test_an_absolute_value_has_no_slope_at_0(loss):
    w = Variable(np.zeros((2, 1)))
    with GradientTape() as tape:
        value = loss(w)
    same([tape.gradient(value, w).numpy()], [np.zeros((2, 1))])


LIMITS = {  # name -> (the largest there can be, the standard deviation), for weights [200, 50]
    "zeros": (0.0, 0.0),
    "ones": (1.0, 0.0),
    "random_normal": (math.inf, 0.05),
    "random_uniform": (0.05, 0.05 / math.sqrt(3)),
    "truncated_normal": (0.1, 0.05 * 0.87962566103423978),
    "glorot_uniform": (math.sqrt(6 / 250), math.sqrt(2 / 250)),
    "glorot_normal": (2 * math.sqrt(2 / 250) / 0.87962566103423978, math.sqrt(2 / 250)),
    "lecun_normal": (2 * math.sqrt(1 / 200) / 0.87962566103423978, math.sqrt(1 / 200)),
    "lecun_uniform": (math.sqrt(3 / 200), math.sqrt(1 / 200)),
    "he_normal": (2 * math.sqrt(2 / 200) / 0.87962566103423978, math.sqrt(2 / 200)),
    "he_uniform": (math.sqrt(6 / 200), math.sqrt(2 / 200)),
}


@pytest.mark.parametrize("name", INITIALIZERS)
def test_starting_weights_have_their_range_and_their_variance(name):
    largest, deviation = LIMITS[name]
    RANDOM.seed(3)
    w = Layer().add_weight((200, 50), name).numpy()
    assert abs(w).max() <= largest
    assert abs(w).max() >= (3 * deviation if largest == math.inf else 0.97 * largest)
    assert w.std() == pytest.approx(deviation, rel=0.03)  # four standard deviations of 10,000 numbers
    assert abs(w.mean() - (name == "ones")) <= 4 * deviation / 100
    RANDOM.seed(3)
    same([Layer().add_weight((200, 50), name).numpy()], [w])


@pytest.mark.parametrize("shape", [(200, 50), (60, 20, 10), (4, 30, 20, 10)])
def test_inputs_and_units_are_the_last_two_axes_of_weights(shape):
    """However many matrices there are, each starts as one alone does."""
    RANDOM.seed(3)
    w = Layer().add_weight(shape, "glorot_uniform").numpy()
    limit = math.sqrt(6 / (shape[-2] + shape[-1]))
    assert w.shape == shape and 0.99 * limit <= abs(w).max() <= limit
    assert w.std() == pytest.approx(limit / math.sqrt(3), rel=0.03)


# Losses.

COLUMN = np.array([[1.0], [0.0]])


@pytest.mark.parametrize("kind", [MeanSquaredError, MeanAbsoluteError, BinaryCrossentropy, CategoricalCrossentropy])
def test_a_loss_refuses_shapes_that_would_broadcast(kind):
    with pytest.raises(ValueError, match=r"y_true is float64\[2\].* and y_pred is float64\[2, 1\]"):
        kind()(np.ones(2), COLUMN)


@pytest.mark.parametrize("wrong", [1.5, -1e-9, -math.inf])
def test_probabilities_lie_in_0_and_1_or_are_cut_off_when_compiled(wrong):
    loss, p = BinaryCrossentropy(), np.array([[wrong], [0.5]])
    with pytest.raises(ValueError, match=r"BinaryCrossentropy: y_pred holds .*; expected probabilities, from 0 to 1"):
        loss(COLUMN, p)
    with pytest.raises(ValueError, match="y_true holds"):
        loss(p, COLUMN)
    same([function(lambda y, p: loss(y, p))(COLUMN, p)], [loss(COLUMN, np.clip(p, 0.0, 1.0))])


def test_nan_stays_nan():
    nan = np.array([[math.nan], [0.5]])
    for loss in (MeanSquaredError(), MeanAbsoluteError(), BinaryCrossentropy(), BinaryCrossentropy(from_logits=True)):
        for call in (loss, function(lambda y, p, loss=loss: loss(y, p))):
            assert math.isnan(float(call(COLUMN, nan)))


def test_class_numbers():
    loss, p = SparseCategoricalCrossentropy(), np.full((2, 3), 1 / 3)
    for wrong in (3, -1):
        with pytest.raises(ValueError, match=f"y_true holds {wrong}; there are 3 classes, 0 to 2"):
            loss(np.array([0, wrong]), p)
        with pytest.raises(IndexError, match="class number is out of range"):
            function(lambda y, p: loss(y, p))(np.array([0, wrong]), p)
    for wrong in (np.array([0.0, 1.0]), np.array([0, 1, 2])):
        with pytest.raises(ValueError, match=r"expected whole numbers \(2,\)"):
            loss(wrong, p)
    same([loss(np.array([[0], [2]]), p)], [loss(np.array([0, 2]), p)])


@pytest.mark.more("from_logits")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_cross_entropy_of_logits_has_the_bits_of_its_formula(dtype):
    z, y = constant(np.linspace(-120.0, 120.0, 401).astype(dtype)), constant((np.arange(401) % 2).astype(dtype))
    e = exp(-maximum(z, -z))
    each = maximum(z, 0.0) - y * z + (log(1.0 + e) + (e - (1.0 + e - 1.0)) / (1.0 + e))
    assert apply("logits_crossentropy", y, z).numpy().tolist() == each.numpy().tolist()


# Metrics.


@pytest.mark.parametrize("wrong", [1.5, -0.1, math.nan])
@pytest.mark.parametrize("way", [lambda call: call, function])
def test_the_area_under_no_probabilities_is_an_error(wrong, way):
    area = AUC()
    way(lambda y, p: area.update_state(y, p))(np.array([1.0, 0.0]), np.array([wrong, 0.5]))
    with pytest.raises(ValueError, match="no probabilities"):
        area.result()


def test_r2_far_from_0_and_in_batches():
    far = np.arange(1000.0)[:, None] % 7 + 1e9
    score = R2Score()
    for rows in np.split(np.arange(1000), [1, 10, 500]):
        score.update_state(far[rows], far[rows] + 0.5)
    assert score.result() == pytest.approx(1.0 - 0.25 / np.var(np.arange(1000) % 7), rel=1e-9)
    score.update_state(far[:3], far[:3] + 100.0, np.zeros(3))  # counts for nothing
    assert score.result() == pytest.approx(1.0 - 0.25 / np.var(np.arange(1000) % 7), rel=1e-9)
    assert R2Score()(np.ones((3, 1)), np.ones((3, 1))) == 0.0


def test_a_metric_refuses_what_does_not_fit():
    p = np.full((2, 3), 1 / 3)
    for metric in (BinaryAccuracy(), Precision(), Recall(), AUC(), R2Score(), MeanLoss(MeanSquaredError())):
        with pytest.raises(ValueError, match=r"y_true is float64\[2\].* and y_pred is float64\[2, 1\]"):
            metric(np.ones(2), COLUMN)
        with pytest.raises(ValueError, match=r"sample_weight is float64\[3\].*\(2,\)"):
            metric(COLUMN, COLUMN, np.ones(3))
        assert metric.result() == 0.0  # nothing of that was counted
    for metric in (BinaryAccuracy(), Precision(), AUC()):
        with pytest.raises(ValueError, match="y_true holds 2; expected probabilities"):
            metric(COLUMN * 2.0, COLUMN)
    for metric in (SparseCategoricalAccuracy(), METRICS["accuracy"]()):
        with pytest.raises(ValueError, match="y_true holds 3; there are 3 classes, 0 to 2"):
            metric(np.array([0, 3]), p)
    with pytest.raises(ValueError, match="expected one column"):
        AUC()(p, p)


@pytest.mark.parametrize("kind", [BinaryAccuracy, AUC, Mean, Precision, R2Score, SparseCategoricalAccuracy])
def test_a_metric_has_no_result_while_a_function_is_traced(kind):
    metric, p = kind(), np.array([[0.25, 0.75], [0.5, 0.5]])
    batch = {Mean: (p,), SparseCategoricalAccuracy: (np.array([0, 1]), p)}.get(kind, (COLUMN[:2] * 0.0, p[:, :1]))

    @function
    def step(*batch):
        metric.update_state(*batch)
        return metric.result()

    metric.update_state(*batch)
    before = metric.result()
    with pytest.raises(
        TypeError,
        match=rf"{kind.__name__}: inside a function only update_state can be called; call result\(\) after it",
    ):
        step(*batch)
    assert metric.result() == before


def test_accuracy_counts_what_is_above_its_threshold_and_not_at_it():
    assert BinaryAccuracy()(np.ones((1, 1)), np.array([[0.5]])) == 0.0


def test_accuracy_goes_by_the_shapes():
    p = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    for y_true, y_pred, same_as in [
        (COLUMN, np.array([[0.9], [0.8]]), BinaryAccuracy()),
        (np.array([1.0, 0.0]), np.array([0.9, 0.8]), BinaryAccuracy()),
        (np.eye(3)[[1, 1]], p, CategoricalAccuracy()),
        (np.array([1, 1]), p, SparseCategoricalAccuracy()),
    ]:
        assert METRICS["accuracy"]()(y_true, y_pred) == same_as(y_true, y_pred) == 0.5


# Optimizers.

KINDS = {
    "SGD": lambda: SGD(0.1),
    "Adam": lambda: Adam(0.01),
}
KINDS_MORE = {
    "a schedule": lambda: Adam(lambda step: 0.1 / (1.0 + step)),
    "momentum": lambda: SGD(0.1, momentum=0.9, nesterov=True),
    "RMSprop": lambda: RMSprop(0.01),
    "AdamW": lambda: AdamW(0.01),
    "decay": lambda: Adam(ExponentialDecay(0.1, 5, 0.5)),
    "staircase": lambda: SGD(ExponentialDecay(0.1, 20, 0.1, staircase=True)),
    "clipped": lambda: SGD(0.1, global_clipnorm=0.1),
}
EACH_KIND = pytest.mark.parametrize(
    "kind",
    [*KINDS.values(), *more("these optimizers", *zip(KINDS_MORE.values()))],
    ids=[*KINDS, *KINDS_MORE],
)


def descent(optimizer):
    """A compiled step on a small net, and the module that owns all of it."""
    RANDOM.seed(2)
    module = Module()
    module.net, module.optimizer = Pair(), optimizer
    x = np.random.default_rng(1).normal(size=(8, 3))
    module.net(x)

    @function
    def step(x):
        with GradientTape() as tape:
            loss = MeanSquaredError()(reduce_sum(x, 1, keepdims=True), module.net(x))
        variables = module.net.trainable_variables
        module.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return module, lambda: float(step(x))


@EACH_KIND
def test_training_goes_on_from_a_saved_state_as_if_nothing_had_been(kind):
    module, step = descent(kind())
    for _ in range(5):
        step()
    saved = [part.get_weights() for part in (module, module.optimizer)]
    assert (
        len(saved[0]) == len(module.variables) == len(module.net.variables)
    )  # an optimizer's are none of the module's
    losses = [step() for _ in range(5)]
    fresh, fresh_step = descent(kind())
    fresh.optimizer.build(fresh.net.trainable_variables)
    for part, weights in zip((fresh, fresh.optimizer), saved, strict=True):
        part.set_weights(weights)
    assert [fresh_step() for _ in range(5)] == losses
    same(fresh.get_weights(), module.get_weights())
    same(fresh.optimizer.get_weights(), module.optimizer.get_weights())


def test_a_learning_rate_can_be_changed_between_compiled_steps():
    module, step = descent(SGD(0.1))
    assert module.optimizer.learning_rate == 0.1
    step()
    before = module.net.get_weights()
    module.optimizer.learning_rate = 0.0
    step()
    same(module.net.get_weights(), before)
    module.optimizer.learning_rate = 0.2
    assert module.optimizer.learning_rate == 0.2
    step()
    assert all((a != b).any() for a, b in zip(before, module.net.get_weights(), strict=True))


def test_an_optimizer_belongs_to_its_variables():
    v, w = Variable(np.ones(2)), Variable(np.ones(3))
    sgd = SGD(0.1)
    sgd.apply_gradients([(v, v), (w, w)])
    for others in ([v], [w, v], [v, Variable(np.ones(3))]):
        with pytest.raises(ValueError, match="SGD: built for other variables, or another order"):
            sgd.apply_gradients([(x, x) for x in others])


V, W, DW = Variable([1.0, 1.0]), Variable([2.0, 2.0]), constant([1.0, 1.0])
NO_PAIRS = [(1, 2, 3)], [(V,)], [(V, DW)], [DW], (DW, V), {V: DW}, [[(DW, V)]], iter([]), zip([], [], strict=True)
UNFIT = {  # pairs that fit no step, and what the error says
    "no gradient": ([(DW, V), (None, W)], r"gradient 1 is None, and its variable is float32\[2\]"),
    "another shape": (
        [(DW, V), (constant([1.0] * 3), W)],
        r"gradient 1 is float32\[3\] on cpu:0, and its variable is float32\[2\]",
    ),
    "one number for two": ([(1.0, V)], r"gradient 0 is float32\[\] on cpu:0, and its variable is float32\[2\]"),
    "another dtype": ([(np.ones(2), V)], r"gradient 0 is float64\[2\] on cpu:0, and its variable is float32\[2\]"),
    "a variable twice": ([(DW, V), (DW, V)], "a variable stands in two pairs; add its gradients"),
}


@pytest.mark.parametrize(
    "kind", [core.SGD, core.Adam, *more("these optimizers", *zip([mid_level.SGD, mid_level.Adam, mid_level.RMSprop]))]
)
def test_what_is_no_step_is_told_and_changes_nothing(kind):
    for begun in (False, True):
        for pairs in NO_PAIRS:
            optimizer = kind(0.1)
            if begun:
                optimizer.apply_gradients([(DW * 0.0, V), (DW * 0.0, W)])
            with pytest.raises(TypeError, match=r"^apply_gradients: got .*; expected pairs \(gradient, variable\)"):
                optimizer.apply_gradients(pairs)
        for pairs, words in UNFIT.values():
            before = [V.numpy(), W.numpy()]
            with pytest.raises(ValueError, match=f"^apply_gradients: {words}"):
                optimizer.apply_gradients(pairs)
            same([V.numpy(), W.numpy()], before)
        optimizer.apply_gradients([(DW, V), ([0.5, 0.5], W)])
        assert (V.numpy() != before[0]).all() and (W.numpy() != before[1]).all()


@EACH_KIND
def test_nothing_of_a_zero_gradient_becomes_nan(kind):
    w = Variable(np.zeros(2))
    kind().apply_gradients([(constant(np.zeros(2)), w)])
    same([w.numpy()], [np.zeros(2)])


@pytest.mark.more("labels of whole numbers")
def test_whole_numbers_are_labels_of_yes_and_no():
    said = np.array([[0.2], [0.7]])
    for loss in (mid_level.BinaryCrossentropy(), mid_level.MeanSquaredError()):
        assert loss(np.array([[0], [1]]), said).numpy() == loss(np.array([[0.0], [1.0]]), said).numpy()


def test_a_part_says_how_it_was_made():
    assert repr(mid_level.Adam(0.1, beta_2=0.99)) == "Adam(0.1, beta_2=0.99)" and repr(mid_level.L2(0.5)) == "L2(0.5)"
