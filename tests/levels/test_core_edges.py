"""Edges of the core that readers met: run once with the core alone, and once with `levels_more` beside it."""

import os
import subprocess
import sys

import pytest

from course import build

START = """
import logging
import math
import sys
import warnings

import numpy as np

from levels.hardware import Assembler, pool, select
from levels.kernels import BACKENDS, KERNELS, kernel, launch, scalar, use
from levels.low_level import (
    BACK_ENDS, VJPS, GradientTape, Tensor, Variable, apply, constant, eager, function, nn, reduce_mean, reduce_sum,
    sqrt, trace
)

def raised(python):
    try:
        return python()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("levels").addHandler(handler)

def kinds(step):
    return [type(program).__name__ for program, _ in step.programs.values()]

def step_of(predict):
    w = Variable(np.ones((4, 1)))

    @function
    def step(x, y):
        with GradientTape() as tape:
            error = predict(x, w) - y
            loss = reduce_mean(error * error)
        w.assign(w - 0.01 * tape.gradient(loss, w))
        return loss

    return step

x = np.random.default_rng(0).normal(size=(50, 4))
batches = np.arange(50).reshape(5, 10)
"""


@pytest.fixture(params=["the core alone", "with levels_more"])
def python(request):
    """Run lines after START in a new process. Whatever they assert has to hold."""

    def run(code):
        env = os.environ | {"PYTHONPATH": str(build.ROOT)}
        more = "" if request.param == "the core alone" else "import levels_more.high_level\n"
        done = subprocess.run(
            [sys.executable, "-c", more + START + code], env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr

    return run


def test_a_sum_along_any_axis_and_a_root_have_gradients(python):
    python("""
a = np.arange(1.0, 25.0).reshape(2, 3, 4)
for reduce, share in ((reduce_sum, lambda n: 1), (reduce_mean, lambda n: n)):
    for axis in (0, 1, 2, -1, (0, 1), (1, 2), None):
        for keepdims in (False, True):
            v = Variable(a)
            with GradientTape() as tape:
                part = reduce(v, axis=axis, keepdims=keepdims)
                loss = reduce_sum(part * part)
            sums = np.sum(a, axis=axis, keepdims=True)
            n = share(a.size // sums.size)
            right = 2 * sums / n / n * np.ones_like(a)
            assert np.allclose(tape.gradient(loss, v).numpy(), right, rtol=1e-12), (reduce, axis, keepdims)
v = Variable(a)
with GradientTape() as tape:
    loss = reduce_sum(sqrt(v))
assert np.allclose(tape.gradient(loss, v).numpy(), 0.5 / np.sqrt(a), rtol=1e-12)
""")


def test_a_tape_is_read_once_and_what_is_wider_says_where_it_is(python):
    python("""
w = Variable(np.array([2.0, 3.0]))
with GradientTape() as tape:
    loss = reduce_sum(w * w * w)
assert tape.gradient(loss, w).numpy().tolist() == [12.0, 27.0]
told = raised(lambda: tape.gradient(loss, w))
assert "this tape was read" in told and "levels_more.low_level" in told, told
with GradientTape() as outer:
    with GradientTape() as tape:
        loss = reduce_sum(w * w * w)
    slope = tape.gradient(loss, w)
found = raised(lambda: outer.gradient(slope, w))  # the way back through the way back of a sum
if "levels_more" in sys.modules:
    assert found.numpy().tolist() == [12.0, 18.0]
else:
    assert "spread has no rule" in found and "levels_more.low_level" in found, found
""")


def test_a_mean_of_few_numbers_of_none_and_of_both_dtypes(python):
    python("""
for dtype in ("f4", "f8"):
    for shape, axis in (((0, 3), 0), ((0, 3), 1), ((0, 3), None), ((3, 0), -1), ((), None), ((1, 1), 0), ((5, 3), (0, 1))):
        a = np.arange(math.prod(shape), dtype=dtype).reshape(shape)
        for keepdims in (False, True):
            found = reduce_mean(a, axis, keepdims).numpy()
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                right = np.mean(a, axis, keepdims=keepdims)
            assert found.dtype == dtype and found.shape == right.shape, (shape, axis, found)
            assert np.array_equal(found, right, equal_nan=True), (shape, axis, found)
    assert float(reduce_mean(constant(3.0, dtype))) == 3.0
assert "int64; cast it" in raised(lambda: reduce_mean([1, 2])), raised(lambda: reduce_mean([1, 2]))
""")


def test_a_mean_has_the_same_bits_in_batches_of_one_row_and_in_a_shorter_last_one(python):
    python("""
def train(batches):
    step = step_of(lambda x, w: x @ w)
    return step.over(x, x[:, :1], batches).numpy().tolist()

for batches in ([[3], [4], [5]], [[0, 1, 2], [3, 4, 5], [6]], [[0, 1, 2], [3, 4]]):
    with eager():
        right = train(batches)
    assert train(batches) == right, batches
""")


def test_a_freed_tensor_says_so(python):
    python("""
t = constant(3.0)
t.device.free(t)
assert repr(t) == str(t) == f"{t}" == "Tensor(freed, shape=(), float32, cpu:0)", repr(t)
for use_it in (t.numpy, lambda: float(t), lambda: t + 1.0, lambda: 1.0 - t, lambda: -t, lambda: np.ones(2) * t):
    told = raised(use_it)
    assert "freed" in told and "Recursion" not in told, told
""")


def test_what_numpy_cannot_do_with_a_tensor_is_told(python):
    python("""
t = constant(np.array([1.0, 2.0]))
for name in ("log", "square", "exp", "maximum", "sqrt", "abs"):
    told = raised(lambda: getattr(np, name)(*[t] * getattr(np, name).nin))
    assert told.startswith(f"TypeError: np.{np.abs.__name__ if name == 'abs' else name} takes arrays and got a Tensor: write "), told
assert "x.numpy()" in raised(lambda: np.log(Variable(t)))
array = np.array([3.0, 5.0])
for op in ("+", "-", "*", "/"):
    mine, theirs = eval(f"array {op} t"), eval(f"array {op} t.numpy()")
    assert type(mine) is Tensor and mine.numpy().tolist() == theirs.tolist(), op
assert (np.ones((2, 2)) @ constant(np.ones((2, 1)))).numpy().tolist() == [[2.0], [2.0]]
assert (np.float64(2.0) * t).numpy().tolist() == [2.0, 4.0] and type(np.float64(2.0) * t) is Tensor
told = raised(lambda: array.__iadd__(t))
assert told.startswith("TypeError: np.add takes arrays"), told
""")


def test_abs_is_written_into_programs(python):
    python("""
scalar("softsquare")(lambda x: x * x / (1.0 + abs(x)))
scalar("softsquare_grad")(lambda dy, x: dy * x * (2.0 + abs(x)) / ((1.0 + abs(x)) * (1.0 + abs(x))))
VJPS["softsquare"] = (lambda dy, y, x: apply("softsquare_grad", dy, x),)
step = step_of(lambda x, w: apply("softsquare", x @ w))
step.over(x, x[:, :1], batches)
assert kinds(step)[0] in ("RowProgram", "QuickRowProgram") and not said, said

cpu = pool()["cpu:0"]
a = Assembler("abs", "f8")
given, found = a.array("x", "rows", 1), a.array("y", "rows", 1)
with a.loop("rows") as r:
    a.store(abs(a.load(given, r, 0)), found, r, 0)
hard = np.array([[-np.inf], [-2.0], [-0.0], [0.0], [3.0], [np.inf], [np.nan], [-5e-324]])
y = cpu.put(np.zeros_like(hard))
a.assemble()(x=cpu.put(hard), y=y)
assert np.array_equal(y.numpy(), np.abs(hard), equal_nan=True) and not np.signbit(y.numpy()[:6]).any()
""")


def test_second_derivatives_through_a_product_are_in_levels_more(python):
    python("""
v, w = Variable(np.array(3.0)), Variable(np.array([[3.0]]))

def second(power, w):
    with GradientTape() as outer:
        with GradientTape() as inner:
            y = power(w)
        first = inner.gradient(y, w)
    return outer.gradient(first, w).numpy().tolist()

assert second(lambda v: v * v * v, v) == 18.0
told = raised(lambda: second(lambda w: w @ w @ w, w))
if "levels_more" in sys.modules:
    assert told == [[18.0]], told
else:
    assert told == (
        "LookupError: gradient: matmul with transpose_x has no rule here; levels_more.low_level has second derivatives"
    ), told
VJPS["clip"] = (lambda dy, y, x, *, low, **more: dy * low,)  # a rule may take attributes in any way
with GradientTape() as tape:
    y = apply("clip", w, low=2.0, high=4.0)
assert tape.gradient(y, w).numpy().tolist() == [[2.0]]
VJPS["clip"] = [lambda dy, y, x: dy]
with GradientTape() as tape:
    y = apply("clip", w, low=2.0, high=4.0)
assert raised(lambda: tape.gradient(y, w)).startswith("LookupError: gradient: clip with low and high has no rule here; ")
""")


def test_a_function_says_once_that_it_replays_and_why(python):
    python("""
def mine(x):
    return 0.0 if x <= 0.0 else x

compiled = step_of(lambda x, w: nn.relu(x @ w))
right = compiled.over(x, x[:, :1], batches).numpy()
assert kinds(compiled)[0] in ("RowProgram", "QuickRowProgram") and not said
with use("relu", "cpu", mine):
    step = step_of(lambda x, w: nn.relu(x @ w))
    losses = step.over(x, x[:, :1], batches).numpy()
    assert losses.tolist() == right.tolist()
    step(x[:10], x[:10, :1])
    step(x[:7], x[:7, :1])
assert set(kinds(step)) == {"Replay"} and len(said) == 1, said
assert said[0].startswith("function step runs op by op, which is slower: "), said
assert "the function of relu cannot be written as instructions" in said[0] and "use select(condition, x, y)" in said[0], said
""")


def test_a_fit_with_batches_of_one_row_is_compiled(python):
    """Over one row, no sum is needed for the gradient of a bias: its new value belongs to that row."""
    python("""
from contextlib import nullcontext
from levels.high_level import Sequential
from levels.low_level import eager, functions
from levels.mid_level import Adam, SGD, Dense

programs, compile_it = [], functions.Function.compile

def heard(self, *given):
    made = compile_it(self, *given)
    programs.append(type(made[0]).__name__)
    return made

functions.Function.compile = heard
x, y = x[:33], x[:33, :1] - 2.0 * x[:33, 1:2]
for dtype in ("f8", "f4"):
    for optimizer in (SGD, Adam):
        for size in (32, 1):  # the last batch of 33 rows has one row
            found = []
            for around in (nullcontext, eager):
                model = Sequential([Dense(3, "relu"), Dense(2, "sigmoid"), Dense(1)])
                model.compile(optimizer(0.05), "mse")
                model.build((None, 4), dtype)
                draw = np.random.default_rng(1)
                model.set_weights([draw.normal(size=v.shape).astype(dtype) for v in model.variables])
                with around():
                    losses = model.fit(x.astype(dtype), y.astype(dtype), size, 2, verbose=0, shuffle=False).losses
                found.append([losses, *model.get_weights()])
            for one, other in zip(*found):
                assert np.allclose(one, other, rtol=1e-4), (dtype, optimizer, size)
                assert dtype == "f4" or np.array_equal(one, other), (dtype, optimizer, size)
assert not said and "Replay" not in programs, (said, programs)

v = Variable(np.zeros((10, 1)))

@function
def kept(rows):
    v.assign(rows * 2.0)
    return reduce_sum(rows)

totals = kept.over(x[:, :1], [[*range(10)], [*range(20, 30)]]).numpy()
assert np.allclose(totals, [x[:10, 0].sum(), x[20:30, 0].sum()], rtol=1e-12) and "Replay" not in programs, programs
assert v.numpy().tolist() == (2.0 * x[20:30, :1]).tolist()
""")


def test_another_product_or_sum_is_heard_by_a_compiled_step(python):
    """No instructions stand for such a kernel, so the step launches it, and afterwards is a program again."""
    python("""
def twice(out, x, w):
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(x.shape[1]):
            for j in range(out.shape[1]):
                out[i, j] += 2.0 * x[i, k] * w[k, j]

error = x[:10].sum(axis=1) - x[:10, 0]  # with weights of 1
double = 2.0 * x[:10].sum(axis=1) - x[:10, 0]
one_more = lambda total, x: total + x + 1.0
for op, mine, first_loss in (("matmul", twice, np.mean(double**2)), ("reduce_sum", one_more, np.mean(error**2) + 1.0)):
    with use(op, "cpu", mine):
        step = step_of(lambda x, w: x @ w)
        assert np.isclose(step.over(x, x[:, :1], batches).numpy()[0], first_loss, rtol=1e-12), op
        assert "RowProgram" not in kinds(step)[0], (op, kinds(step))
    step = step_of(lambda x, w: x @ w)
    assert np.isclose(step.over(x, x[:, :1], batches).numpy()[0], np.mean(error**2), rtol=1e-12), op
    assert kinds(step)[0] in ("RowProgram", "QuickRowProgram"), op
""")


def test_a_function_that_was_compiled_before_a_block_hears_of_it(python):
    """What it was compiled to is out of date in the block, and after it."""
    python("""
@function
def total(x):
    return reduce_sum(x)

numbers = np.arange(6.0)
found = [float(total(numbers))]
with use("reduce_sum", "cpu", lambda total, x: total + x + 1.0):
    found.append(float(total(numbers)))
found.append(float(total(numbers)))
assert found == [15.0, 21.0, 15.0], found
""")


CLOSED_IN_ORDER = """
def first(x, y):
    return x + y + 1.0

def second(x, y):
    return x + y + 2.0

from levels.support.tables import GUARDED  # the functions that are compiled with a check of each index

ones = pool()["cpu:0"].put(np.ones(3))
sums, products = KERNELS["add", "cpu"], KERNELS["multiply", "cpu"]

def sum_of_ones():
    return launch("add", None, ones, ones).numpy().tolist()
"""


def test_use_blocks_that_overlap_leave_neither_a_kernel_nor_a_check_of_bounds_behind(python):
    """The one that opened first ends first, as with generators, ExitStacks and threads."""
    python(
        CLOSED_IN_ORDER
        + """
a, b = use("add", "cpu", sums), use("multiply", "cpu", products)
a.__enter__()
b.__enter__()
sum_of_ones()
assert {*GUARDED} == {sums, products}
a.__exit__(None, None, None)
assert {*GUARDED} == {products}
b.__exit__(None, None, None)
assert sum_of_ones() == [2, 2, 2] and not GUARDED
assert KERNELS["add", "cpu"] is sums and KERNELS["multiply", "cpu"] is products
"""
    )


def test_a_kernel_stays_in_use_until_its_own_block_ends(python):
    """Two blocks for one op: the second goes on after the first, and then the course's kernel is back."""
    python(
        CLOSED_IN_ORDER
        + """
a, b, again = use("add", "cpu", first), use("add", "cpu", second), use("add", "cpu", second)
a.__enter__()
b.__enter__()
again.__enter__()
a.__exit__(None, None, None)
assert sum_of_ones() == [4, 4, 4]
b.__exit__(None, None, None)
assert sum_of_ones() == [4, 4, 4] and {*GUARDED} == {second}
again.__exit__(None, None, None)
assert sum_of_ones() == [2, 2, 2] and KERNELS["add", "cpu"] is sums and not GUARDED
with use("add", "cpu", first):
    assert sum_of_ones() == [3, 3, 3]
    with use("add", "cpu", second):
        assert sum_of_ones() == [4, 4, 4]
    assert sum_of_ones() == [3, 3, 3]
kernel("add", "cpu")(first)  # for good: a block goes back to it, not to the kernel of an earlier block
with use("add", "cpu", second):
    assert sum_of_ones() == [4, 4, 4]
assert sum_of_ones() == [3, 3, 3]
"""
    )


def test_a_kernel_that_is_refused_is_not_left_behind_and_one_function_may_be_in_use_twice(python):
    python(
        CLOSED_IN_ORDER
        + """
try:
    use("add", "cpu", 5).__enter__()
    assert False, "it is no function"
except TypeError as error:
    assert "expected names, and a function" in str(error), error
with use("add", "cpu", sums):  # (with levels_more, one that passes its trial)
    pass
assert KERNELS["add", "cpu"] is sums and sum_of_ones() == [2, 2, 2]
if "levels_more" not in sys.modules:
    with use("add", "cpu", first):
        with use("add", "cpu", second):
            with use("add", "cpu", first):
                assert sum_of_ones() == [3, 3, 3]
            assert sum_of_ones() == [4, 4, 4]
        assert sum_of_ones() == [3, 3, 3]
    assert sum_of_ones() == [2, 2, 2] and not GUARDED
"""
    )


def test_a_bug_in_a_back_end_is_no_silent_slowdown(python):
    python("""
def broken(graph, batch, over):
    return {}["no such key"]

BACK_ENDS.insert(0, broken)
step = step_of(lambda x, w: x @ w)
assert raised(lambda: step.over(x, x[:, :1], batches)) == "KeyError: 'no such key'"
""")


def test_a_trace_that_fails_leaves_the_door_free():
    """A function that raises while it is traced: afterwards an op runs."""
    from levels.hardware import pool
    from levels.low_level import constant, trace

    cpu = pool()["cpu:0"]
    with pytest.raises(ValueError, match="inner sizes"):
        trace(lambda r, t: r @ t, (cpu.spec((10, 2), "f8"), cpu.spec((10, 1), "f8")))
    assert float(constant(1.0) + constant(2.0)) == 3.0


FIRST_FIT = """
import sys
import numpy as np
from levels.high_level import Sequential
from levels.mid_level import SGD, Dense
model = Sequential([Dense(4, "relu"), Dense(1, "sigmoid")])
model.compile(SGD(0.1), "binary_crossentropy")
x = np.linspace(-1.0, 1.0, 64).reshape(32, 2)
y = (x[:, 0] > 0).astype(float)  # [rows]: made [rows, 1] for this model
model.fit(x, y, epochs=2, verbose=0)
model.evaluate(x, y)
model.predict(x)
from course import tasks
from levels.mid_level.tasks import linear_regression
task = tasks.linear()
linear_regression(task.x, task.y, task.weights, task.batches[:3], task.learning_rate)
print("numba" in sys.modules)
"""


@pytest.mark.quick
def test_a_first_fit_makes_its_variables_without_numba():
    """numba takes most of a second to import, and compiles a kernel in 0.3 s. A training that is a program needs neither."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FIT],
        cwd=build.ROOT,
        env=build.environment(build.ROOT),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "False\n", done.stdout + done.stderr
