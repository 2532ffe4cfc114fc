"""Edges of the core that readers met: with `levels_more` beside it, and by `pytest --core` with the core alone."""

import contextlib
import math
import sys
import warnings

import numba
import numpy as np
import pytest
from back_ends import kinds

import levels_more.high_level  # noqa: F401 (it stands beside the core, unless --core keeps it out)
from levels.hardware import Assembler, pool
from levels.high_level import Sequential
from levels.kernels import ELEMENTWISE, KERNELS, PLANNERS, PLANS, kernel, launch, scalar, use
from levels.low_level import (
    BACK_ENDS,
    VJPS,
    GradientTape,
    Tensor,
    Variable,
    apply,
    constant,
    eager,
    function,
    functions,
    nn,
    reduce_mean,
    reduce_sum,
)
from levels.mid_level import SGD, Adam, Dense
from levels.support.tables import GUARDED  # the functions that are compiled with a check of each index

CPU = pool()["cpu:0"]
ROWS = np.random.default_rng(0).normal(size=(50, 4))
BATCHES = np.arange(50).reshape(5, 10)


@pytest.fixture(autouse=True)
def as_before():
    """What a test enters into the open tables is gone after it."""
    tables = KERNELS, ELEMENTWISE, PLANNERS, VJPS
    before = [dict(table) for table in tables]
    back_ends = [*BACK_ENDS]
    yield
    for table, rows in zip(tables, before, strict=True):
        for key in table.keys() - rows.keys():
            del table[key]
        for key, row in rows.items():
            table[key] = row
    BACK_ENDS[:] = back_ends
    PLANS.clear()


def raised(python):
    """What a call returns, or the error that it raises, in words."""
    try:
        return python()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def step_of(predict):
    """A compiled step of gradient descent with four weights of 1."""
    w = Variable(np.ones((4, 1)))

    @function
    def step(x, y):
        with GradientTape() as tape:
            error = predict(x, w) - y
            loss = reduce_mean(error * error)
        w.assign(w - 0.01 * tape.gradient(loss, w))
        return loss

    return step


def test_a_mean_of_few_numbers_of_none_and_of_both_dtypes():
    for dtype in ("f4", "f8"):
        for shape, axis in (
            ((0, 3), 0),
            ((0, 3), 1),
            ((0, 3), None),
            ((3, 0), -1),
            ((), None),
            ((1, 1), 0),
            ((5, 3), (0, 1)),
        ):
            a = np.arange(math.prod(shape), dtype=dtype).reshape(shape)
            for keepdims in (False, True):
                found = reduce_mean(a, axis, keepdims).numpy()
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    right = np.mean(a, axis, keepdims=keepdims)
                assert found.dtype == dtype and found.shape == right.shape, (shape, axis, found)
                assert np.array_equal(found, right, equal_nan=True), (shape, axis, found)
        assert float(reduce_mean(constant(3.0, dtype))) == 3.0
    if "levels_more.kernels" not in sys.modules:  # the core alone: levels_more divides whole numbers
        assert "int64; cast it" in raised(lambda: reduce_mean([1, 2]))


def test_a_freed_tensor_says_so():
    t = constant(3.0)
    t.device.free(t)
    assert repr(t) == str(t) == f"{t}" == "Tensor(freed, shape=(), float32, cpu:0)", repr(t)
    for use_it in (t.numpy, lambda: float(t), lambda: t + 1.0, lambda: 1.0 - t, lambda: -t, lambda: np.ones(2) * t):
        told = raised(use_it)
        assert "freed" in told and "Recursion" not in told, told


def test_an_array_beside_a_tensor_gives_a_tensor():
    t = constant(np.array([1.0, 2.0]))
    array = np.array([3.0, 5.0])
    for op in ("+", "-", "*", "/"):
        mine, theirs = eval(f"array {op} t"), eval(f"array {op} t.numpy()")
        assert type(mine) is Tensor and mine.numpy().tolist() == theirs.tolist(), op
    assert (np.ones((2, 2)) @ constant(np.ones((2, 1)))).numpy().tolist() == [[2.0], [2.0]]
    assert (np.float64(2.0) * t).numpy().tolist() == [2.0, 4.0] and type(np.float64(2.0) * t) is Tensor
    told = raised(lambda: array.__iadd__(t))
    assert told.startswith("TypeError: np.add takes arrays"), told


def test_abs_is_written_into_programs(caplog):
    scalar("softsquare")(lambda x: x * x / (1.0 + abs(x)))
    scalar("softsquare_grad")(lambda dy, x: dy * x * (2.0 + abs(x)) / ((1.0 + abs(x)) * (1.0 + abs(x))))
    VJPS["softsquare"] = (lambda dy, y, x: apply("softsquare_grad", dy, x),)
    step = step_of(lambda x, w: apply("softsquare", x @ w))
    step.over(ROWS, ROWS[:, :1], BATCHES)
    assert kinds(step) == {"RowProgram"} and not caplog.messages

    a = Assembler("abs", "f8")
    given, found = a.array("x", "rows", 1), a.array("y", "rows", 1)
    with a.loop("rows") as r:
        a.store(abs(a.load(given, r, 0)), found, r, 0)
    hard = np.array([[-np.inf], [-2.0], [-0.0], [0.0], [3.0], [np.inf], [np.nan], [-5e-324]])
    y = CPU.put(np.zeros_like(hard))
    a.assemble()(x=CPU.put(hard), y=y)
    assert np.array_equal(y.numpy(), np.abs(hard), equal_nan=True) and not np.signbit(y.numpy()[:6]).any()


def test_second_derivatives_through_a_product_are_in_levels_more(pytestconfig):
    v, w = Variable(np.array(3.0)), Variable(np.array([[3.0]]))

    def second(power, w):
        with GradientTape() as outer:
            with GradientTape() as inner:
                y = power(w)
            first = inner.gradient(y, w)
        return outer.gradient(first, w).numpy().tolist()

    assert second(lambda v: v * v * v, v) == 18.0
    told = raised(lambda: second(lambda w: w @ w @ w, w))
    if pytestconfig.option.core:
        assert "matmul with transpose_x has no rule here; levels_more.low_level has second derivatives" in told, told
        assert "spread has no rule yet" in raised(lambda: second(lambda v: reduce_sum(v * v), v))
    else:
        assert told == [[18.0]], told
    VJPS["clip"] = (lambda dy, y, x, *, low, **more: dy * low,)  # a rule may take attributes in any way
    with GradientTape() as tape:
        y = apply("clip", w, low=2.0, high=4.0)
    assert tape.gradient(y, w).numpy().tolist() == [[2.0]]
    VJPS["clip"] = [lambda dy, y, x: dy]
    with GradientTape() as tape:
        y = apply("clip", w, low=2.0, high=4.0)
    assert raised(lambda: tape.gradient(y, w)).startswith(
        "LookupError: gradient: clip with low and high has no rule here; "
    )


def test_a_function_says_once_that_it_replays_and_why(caplog):
    def mine(x):
        return 0.0 if x <= 0.0 else x

    compiled = step_of(lambda x, w: nn.relu(x @ w))
    right = compiled.over(ROWS, ROWS[:, :1], BATCHES).numpy()
    assert kinds(compiled) == {"RowProgram"} and not caplog.messages
    with use("relu", "cpu", mine):
        step = step_of(lambda x, w: nn.relu(x @ w))
        losses = step.over(ROWS, ROWS[:, :1], BATCHES).numpy()
        assert losses.tolist() == right.tolist()
        step(ROWS[:10], ROWS[:10, :1])
        step(ROWS[:7], ROWS[:7, :1])
    (said,) = caplog.messages
    assert kinds(step) == {"Replay"} and said.startswith("function step runs op by op, which is slower: "), said
    assert "the function of relu cannot be written as instructions" in said and "use select(condition, x, y)" in said


def test_a_fit_with_batches_of_one_row_is_compiled(caplog, monkeypatch):
    """Over one row, no sum is needed for the gradient of a bias: its new value belongs to that row."""
    programs, compile_it = [], functions.Function.compile

    def heard(self, *given):
        made = compile_it(self, *given)
        programs.append(type(made[0]).__name__)
        return made

    monkeypatch.setattr(functions.Function, "compile", heard)
    x, y = ROWS[:33], ROWS[:33, :1] - 2.0 * ROWS[:33, 1:2]
    for dtype in ("f8", "f4"):
        for optimizer in (SGD, Adam):
            for size in (32, 1):  # the last batch of 33 rows has one row
                found = []
                for around in (contextlib.nullcontext, eager):
                    model = Sequential([Dense(3, "relu"), Dense(2, "sigmoid"), Dense(1)])
                    model.compile(optimizer(0.05), "mse")
                    model.build((None, 4), dtype)
                    draw = np.random.default_rng(1)
                    model.set_weights([draw.normal(size=v.shape).astype(dtype) for v in model.variables])
                    with around():
                        losses = model.fit(x.astype(dtype), y.astype(dtype), size, 2, verbose=0, shuffle=False).losses
                    found.append([losses, *model.get_weights()])
                for one, other in zip(*found, strict=True):
                    assert np.allclose(one, other, rtol=1e-4), (dtype, optimizer, size)
                    assert dtype == "f4" or np.array_equal(one, other), (dtype, optimizer, size)
    assert not caplog.messages and "Replay" not in programs, programs

    v = Variable(np.zeros((10, 1)))

    @function
    def kept(rows):
        v.assign(rows * 2.0)
        return reduce_sum(rows)

    totals = kept.over(ROWS[:, :1], [[*range(10)], [*range(20, 30)]]).numpy()
    assert np.allclose(totals, [ROWS[:10, 0].sum(), ROWS[20:30, 0].sum()], rtol=1e-12)
    assert "Replay" not in programs, programs
    assert v.numpy().tolist() == (2.0 * ROWS[20:30, :1]).tolist()


def test_another_product_or_sum_is_heard_by_a_compiled_step():
    """No instructions stand for such a kernel, so the step launches it, and afterwards is a program again."""

    def twice(out, x, w):
        out[:] = 0.0
        for i in range(out.shape[0]):
            for k in range(x.shape[1]):
                for j in range(out.shape[1]):
                    out[i, j] += 2.0 * x[i, k] * w[k, j]

    def one_more(total, x):
        return total + x + 1.0

    error = ROWS[:10].sum(axis=1) - ROWS[:10, 0]  # with weights of 1
    double = 2.0 * ROWS[:10].sum(axis=1) - ROWS[:10, 0]
    cases = ("matmul", twice, np.mean(double**2)), ("reduce_sum", one_more, np.mean(error**2) + 1.0)
    for op, mine, first_loss in cases:
        with use(op, "cpu", mine):
            step = step_of(lambda x, w: x @ w)
            assert np.isclose(step.over(ROWS, ROWS[:, :1], BATCHES).numpy()[0], first_loss, rtol=1e-12), op
            assert "RowProgram" not in kinds(step), (op, kinds(step))
        step = step_of(lambda x, w: x @ w)
        assert np.isclose(step.over(ROWS, ROWS[:, :1], BATCHES).numpy()[0], np.mean(error**2), rtol=1e-12), op
        assert kinds(step) == {"RowProgram"}, op


def test_a_function_that_was_compiled_before_a_block_hears_of_it():
    """What it was compiled to is out of date in the block, and after it."""

    @function
    def total(x):
        return reduce_sum(x)

    numbers = np.arange(6.0)
    found = [float(total(numbers))]
    with use("reduce_sum", "cpu", lambda total, x: total + x + 1.0):
        found.append(float(total(numbers)))
    found.append(float(total(numbers)))
    assert found == [15.0, 21.0, 15.0], found


def first(x, y):
    return x + y + 1.0


def second(x, y):
    return x + y + 2.0


SUM, PRODUCT = KERNELS["add", "cpu"], KERNELS["multiply", "cpu"]


def sum_of_ones():
    ones = CPU.put(np.ones(3))
    return launch("add", None, ones, ones).numpy().tolist()


def test_use_blocks_that_overlap_leave_neither_a_kernel_nor_a_check_of_bounds_behind():
    """The one that opened first ends first, as with generators, ExitStacks and threads."""
    a, b = use("add", "cpu", SUM), use("multiply", "cpu", PRODUCT)
    a.__enter__()
    b.__enter__()
    sum_of_ones()
    assert {*GUARDED} == {SUM, PRODUCT}
    a.__exit__(None, None, None)
    assert {*GUARDED} == {PRODUCT}
    b.__exit__(None, None, None)
    assert sum_of_ones() == [2, 2, 2] and not GUARDED
    assert KERNELS["add", "cpu"] is SUM and KERNELS["multiply", "cpu"] is PRODUCT


def test_a_kernel_stays_in_use_until_its_own_block_ends():
    """Two blocks for one op: the second goes on after the first, and then the course's kernel is back."""
    a, b, again = use("add", "cpu", first), use("add", "cpu", second), use("add", "cpu", second)
    a.__enter__()
    b.__enter__()
    again.__enter__()
    a.__exit__(None, None, None)
    assert sum_of_ones() == [4, 4, 4]
    b.__exit__(None, None, None)
    assert sum_of_ones() == [4, 4, 4] and {*GUARDED} == {second}
    again.__exit__(None, None, None)
    assert sum_of_ones() == [2, 2, 2] and KERNELS["add", "cpu"] is SUM and not GUARDED
    with use("add", "cpu", first):
        assert sum_of_ones() == [3, 3, 3]
        with use("add", "cpu", second):
            assert sum_of_ones() == [4, 4, 4]
        assert sum_of_ones() == [3, 3, 3]
    kernel("add", "cpu")(first)  # for good: a block goes back to it, not to the kernel of an earlier block
    with use("add", "cpu", second):
        assert sum_of_ones() == [4, 4, 4]
    assert sum_of_ones() == [3, 3, 3]


def test_a_kernel_that_is_refused_is_not_left_behind():
    with pytest.raises(TypeError, match="expected names, and a function"):
        use("add", "cpu", 5).__enter__()
    with use("add", "cpu", SUM):  # (with levels_more, one that passes its trial)
        pass
    assert KERNELS["add", "cpu"] is SUM and sum_of_ones() == [2, 2, 2]


def test_a_bug_in_a_back_end_is_no_silent_slowdown():
    def broken(graph, batch, over):
        return {}["no such key"]

    BACK_ENDS.insert(0, broken)
    step = step_of(lambda x, w: x @ w)
    with pytest.raises(KeyError, match="no such key"):
        step.over(ROWS, ROWS[:, :1], BATCHES)


@numba.njit
def square(x):
    return x * x


def test_a_kernel_that_calls_what_numba_has_compiled_is_left_to_its_kernel(caplog):
    scalar("square_and_one")(lambda x: square(x) + 1.0)
    step = function(lambda x: apply("square_and_one", x))
    assert step(constant([[2.0], [3.0]])).numpy().tolist() == [[5.0], [10.0]]
    (said,) = caplog.messages
    assert "the function of square_and_one cannot be written as instructions (" in said and "\n" not in said
