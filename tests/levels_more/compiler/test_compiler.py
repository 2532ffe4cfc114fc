"""Level 3, compiled: what `function` runs equals what runs op by op, to the last bit in float64."""

import collections
import contextlib
import functools
import gc
import itertools
import threading
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from back_ends import choose, kinds, on_threads

from levels_more import low_level
from levels_more.compiler.fused import programs as fused_parts
from levels_more.compiler.fused import threads as fused_threads
from levels_more.hardware import PLACE, Device
from levels_more.kernels import ELEMENTWISE, KERNELS, PLANNERS, PLANS, matmul_ikj, scalar, use
from levels_more.low_level import (
    DOOR,
    VJPS,
    GradientTape,
    Tensor,
    Variable,
    apply,
    arg_max,
    cast,
    clip,
    constant,
    eager,
    function,
    gather,
    nn,
    reduce_max,
    reduce_mean,
    reduce_sum,
    relu,
    reshape,
    transpose,
    where,
)


@pytest.fixture(params=["RowProgram", "FusedProgram", "Replay"])
def back_end(request, monkeypatch):
    choose(monkeypatch, request.param)
    return request.param


# Tracing.
X, Y = np.arange(12.0).reshape(6, 2) / 10 - 0.5, np.array([[0.5], [-1.0], [2.0], [0.0], [1.0], [-0.5]])


@pytest.fixture
def cpu(monkeypatch):
    """A device that counts the memory of one test alone: what others have left, threads and garbage, ends when it
    likes.
    """
    monkeypatch.setattr(PLACE, "device", Device("cpu:9", None, simulated=True))
    return PLACE.device


@pytest.mark.quick
def test_traced_once_for_each_shape_dtype_and_value(capsys):
    @function
    def mean_square(x, factor=2.0):
        print("inside")
        return reduce_mean(x * x) * factor

    for rows, traces in ((3, 1), (1, 2), (6, 3), (3, 3), (6, 3), (1, 3)):
        x = constant(X[:rows])
        assert float(mean_square(x)) == float(reduce_mean(x * x)) * 2.0
        assert mean_square.traces == traces
    mean_square(Variable(X)), mean_square(X[:3])
    assert mean_square.traces == 3 and capsys.readouterr().out == "inside\n" * 3
    for batches, traces in (([[0, 1], [2, 3], [4]], 5), ([[0, 1]] * 5, 5), ([[3], [2]], 5)):
        mean_square.over(X, batches)
        assert mean_square.traces == traces, "one for each size of a batch"
    for _ in range(2):
        mean_square(constant(X, "f4"))
    assert mean_square.traces == 6, "another dtype"
    mean_square.renew()
    for traces, factor in enumerate((3.0, 1.0, 1, np.nan, -0.0, 0.0), 1):
        for again in (factor, type(factor)(str(factor)), 3.0):
            result, expected = mean_square(constant(X), again), float(reduce_mean(X * constant(X))) * again
            assert np.array_equal(result.numpy(), expected, equal_nan=True)
            assert mean_square.traces == traces, "another value, or another type of it"
    with pytest.raises(TypeError, match="cast"):
        mean_square(constant(X), True)
    assert mean_square.traces == 7


RATE = 0.1


def inner(x):
    return x * RATE


def outer(x):
    return inner(x) + 1.0


WAYS = {
    "plain": function,
    "bound method": lambda f: function(types.MethodType(lambda self, x: f(x), X)),
    "partial": lambda f: function(functools.partial(f)),
    "decorated": lambda f: (lambda g: function(lambda x: g(x)))(function(f)),
}


@pytest.mark.parametrize("way", WAYS)
def test_names_are_watched_in_every_kind_of_function(way, monkeypatch):
    scope, x = globals(), constant(X)
    compiled = WAYS[way](lambda x: reduce_sum(outer(x) * RATE))

    def agree(changes):
        for _ in range(2):
            assert float(compiled(x)) == float(reduce_sum(scope["outer"](x) * scope["RATE"]))
            assert compiled.over(X, [range(6)]).numpy().tolist() == [float(compiled(x))]
        assert compiled.traces == 2 + 2 * changes, "a call and an `over`"

    agree(0)
    monkeypatch.setitem(scope, "RATE", 0.3)
    agree(1)
    monkeypatch.setitem(scope, "inner", lambda x: x * x)
    agree(2)
    monkeypatch.undo()
    monkeypatch.setitem(scope, "outer", lambda x: inner(x) - 2.0)
    agree(3)


def test_a_closures_number_is_watched():
    rate = 1.0
    compiled = function(lambda x: reduce_sum(x * rate))
    before = float(compiled(X + 1))
    rate = 2.0
    assert float(compiled(X + 1)) == 2 * before


UNKNOWN = "numbers are not known, for a function is traced.*where"
FAILS = {  # what a step does, and what is said of it
    "an op": (lambda x, v: x @ v, "both need two axes"),
    "Python": (lambda x, v: 1 / 0, "division by zero"),
    "if": (lambda x, v: x if reduce_sum(x) > 0 else -x, UNKNOWN),
    "float": (lambda x, v: x * float(reduce_sum(x)), UNKNOWN),
    "while": (lambda x, v: [x for _ in iter(lambda: bool(reduce_max(x) > 0.0), False)], UNKNOWN),
    "numpy": (lambda x, v: x.numpy(), UNKNOWN),
    "a tape": (lambda x, v: GradientTape().gradient(reduce_sum(x), v), "was not used"),
    "the result": (lambda x, v: "text", "these are words"),
    "an open tape": (lambda x, v: [GradientTape().__enter__(), x @ v], "both need two axes"),
}


@pytest.mark.parametrize("way", FAILS)
@pytest.mark.parametrize("over", [False, True])
def test_an_error_while_tracing_leaves_everything_as_it_was(way, over, cpu):
    v, before, x, (fails, words) = Variable(np.ones(2)), np.ones(2), constant(X), FAILS[way]

    def step(x):
        v.assign(v * 2.0 + reduce_sum(x))
        return fails(x, v)

    compiled = function(step)
    states, value = [], v.value
    for _ in range(4):
        gc.collect()
        states.append((cpu.used, KERNELS.version))
        with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=words) as error:
            compiled.over(x, [[0, 1]]) if over else compiled(x)
        assert len(str(error.value).splitlines()) == 1
        assert DOOR.top is DOOR.bottom
        assert v.value is value and v.numpy().tolist() == before.tolist()
    used, versions = zip(*states, strict=True)  # the first call keeps the numbers that it met, such as 2.0
    assert len({*used[1:]}) == len({*versions}) == 1
    assert (v * 2.0).numpy().tolist() == (before * 2).tolist()


LEAKED_USES = {
    "add": lambda t: t + 1.0,
    "float": lambda t: float(reduce_sum(t)),
    "gather": lambda t: gather(t, [0]),
    "assign": lambda t: Variable(X).assign(t),
    "traced": lambda t: function(lambda x: x + t)(X),
}


@pytest.mark.parametrize("use_of", LEAKED_USES)
def test_a_symbol_that_got_out_is_refused(use_of):
    leaked = []

    def step(x):
        leaked.append(x * 2.0)
        return reduce_sum(leaked[-1])

    compiled = function(step)
    assert float(compiled(X)) == float(reduce_sum(X * constant(2.0, "f8")))
    with pytest.raises((TypeError, ValueError)):
        LEAKED_USES[use_of](leaked[0])
    assert repr(leaked[0]).startswith("Symbol(")
    assert float(compiled(X * 2)) == float(reduce_sum(4.0 * constant(X)))


def test_who_is_traced_often_is_warned():
    compiled = function(lambda x, n: x * n)
    with pytest.warns(UserWarning) as told:
        for n in range(12):
            compiled(X, float(n))
    assert len(told) == 1 and "traced 10 times" in str(told[0].message)


# Beside tapes, and in each other.
def test_under_an_open_tape_a_function_is_recorded():
    w = Variable(np.array([[0.5], [-2.0]]))
    compiled = function(lambda x: reduce_mean((x @ w) ** 2))
    compiled(X)
    with GradientTape() as tape:
        loss = compiled(constant(X))
    with GradientTape() as plain:
        expected = compiled.python(constant(X))
    assert float(loss) == float(expected) == float(compiled(X)) and compiled.traces == 1
    assert (tape.gradient(loss, w).numpy() == plain.gradient(expected, w).numpy()).all()
    with GradientTape() as tape:
        losses = compiled.over(X, [[0, 1], [2, 3], [4]])
    assert losses.shape == (3,)


def test_inside_another_a_function_is_a_part_of_it(back_end):
    w, calls = Variable(np.ones((2, 1))), []

    @function
    def layer(x):
        calls.append(1)
        w.assign(w * 1.5)
        return x @ w

    @function
    def whole(x):
        loss = reduce_mean(layer(x) ** 2)
        with GradientTape() as tape:
            again = reduce_mean(layer(x) ** 2)
        w.assign(w - 0.1 * loss * tape.gradient(again, w.value))
        return loss + again

    losses = [float(whole(X)) for _ in range(3)]
    assert len(calls) == 2 and (whole.traces, layer.traces) == (1, 0) and back_end in kinds(whole)
    w.assign(np.ones((2, 1)))
    with eager():
        assert [float(whole(constant(X))) for _ in range(3)] == losses


# Arguments and results.
ARGUMENTS = {
    "variable": Variable(X),
    "float32": X.astype("f4"),
    "integers": np.arange(6).reshape(3, 2),
    "a view": X[::2, ::-1],
    "Fortran": np.asfortranarray(X),
    "no rows": X[:0],
    "float": 2.5,
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name, back_end):
    x = ARGUMENTS[name]
    call = lambda x: x * 2 + x  # noqa: E731
    plain = x if isinstance(x, (float, int)) else constant(x)
    result, expected = function(call)(x), call(plain)
    assert isinstance(result, Tensor)
    assert np.array_equal(result.numpy(), constant(expected).numpy()), (result, expected)


def returns():
    v, old = Variable(np.array([1.0, 2.0])), constant(np.array([3.0, 4.0]))

    def change(x):
        before = v.value
        v.assign(v * 2.0)
        return before, v, v.value, x

    return {
        "none": lambda x: None,
        "one": lambda x: x * 2.0,
        "tuple": lambda x: (x, x * 2.0),
        "list": lambda x: [reduce_sum(x), x],
        "one in a tuple": lambda x: (x * 2.0,),
        "twice": lambda x: (lambda y: (y, y))(x + 1.0),
        "empty": lambda x: (),
        "argument": lambda x: x,
        "constant": lambda x: old,
        "number": lambda x: (x, 2.5),
        "array": lambda x: np.ones(2),
        "variable": lambda x: v,
        "old value": change,
        "mask": lambda x: x > 0.0,
        "place": lambda x: arg_max(x, 1),
        "rows and sum": lambda x: (x * 2.0, reduce_sum(x, 0), reduce_sum(x)),
    }


@pytest.mark.parametrize("name", returns())
def test_results(name, back_end):
    """Each is a tensor of its own, which no later call changes."""
    compiled, plain, pairs = function(returns()[name]), returns()[name], []
    for x in (constant(X), constant(X), constant(X + 1)):
        made, expected = compiled(x), plain(x)
        assert type(made) is type(expected) or isinstance(made, Tensor)
        if name != "none":
            made, expected = (r if isinstance(r, (list, tuple)) else [r] for r in (made, expected))
            pairs += zip(made, map(constant, expected), strict=True)
    for ours, theirs in pairs:
        assert type(ours) is Tensor and ours.dtype == theirs.dtype and np.array_equal(ours.numpy(), theirs.numpy())
    assert len({id(ours) for ours, _ in pairs}) == len(pairs)


ASSIGNS = {
    "an argument": lambda x, a, b: a.assign(x),
    "swap": lambda x, a, b: (lambda old: (a.assign(b), b.assign(old)))(a.value),
    "one after the other": lambda x, a, b: (a.assign(b), b.assign(a)),
    "back": lambda x, a, b: (lambda old: (a.assign(b), a.assign(old)))(a.value),
    "twice": lambda x, a, b: (a.assign(a * 2.0), a.assign(a + 1.0)),
    "a constant": lambda x, a, b: (a.assign(np.ones((6, 2))), b.assign(b + a)),
    "a sum": lambda x, a, b: b.assign(a * reduce_sum(x)),
    "an old value late": lambda x, a, b: (lambda old: (a.assign(a - 1.0), b.assign(old + x)))(a * 2.0),
}


@pytest.mark.parametrize("name", ASSIGNS)
def test_assignments(name, back_end):
    ends = []
    for around in (eager, contextlib.nullcontext):
        a, b = Variable(X * 2.0), Variable(1.0 - X)
        step = function(lambda x, a=a, b=b: [ASSIGNS[name](x, a, b), reduce_sum(x)][1])
        with around():
            sums = [float(step(X + k)) for k in range(4)] + step.over(X, [range(6)] * 3).numpy().tolist()
        ends.append((sums, a.numpy().tolist(), b.numpy().tolist()))
    assert ends[0] == ends[1]


def test_a_variable_made_in_every_call_is_refused(back_end):
    def step(x):
        w = Variable(np.ones((2, 1)))
        w.assign(w * 2.0)
        return reduce_sum(x @ w)

    for call in (lambda f: f(X), lambda f: f.over(X, [[0, 1]])):
        with pytest.raises(ValueError, match="made in every call of this function; make it once, outside"):
            call(function(step))


def test_a_variable_made_in_the_first_call(back_end):
    made = []

    def step(x):
        if not made:
            made.append(Variable(np.ones((2, 1))))
        made[0].assign(made[0] * 2.0)
        return reduce_sum(x @ made[0])

    compiled = function(step)
    ours = [float(compiled(X + 1)) for _ in range(3)]
    made.clear()
    assert ours == [float(step(constant(X + 1))) for _ in range(3)]


def test_functions_that_share_variables(back_end):
    """Programs remember where variables lie; each must see what another one, or nobody compiled, did."""
    ends = []
    for around in (eager, contextlib.nullcontext):
        w, b = Variable(np.ones((2, 1))), Variable(np.zeros((1, 1)))

        @function
        def up(x, w=w):
            w.assign(w + 0.1 * reduce_mean(x * x))
            return reduce_sum(w * 1.0)

        @function
        def down(x, w=w, b=b):
            b.assign(b - reduce_sum(w))
            w.assign(w * 0.5 + b * 0.1)
            return reduce_sum(x @ w)

        read = function(lambda x, w=w, b=b: reduce_sum(x @ w + b))
        held, seen, rng = [], [], np.random.default_rng(7)
        for _ in range(40):
            x, kind = constant(X[: rng.integers(1, 7)]), rng.integers(0, 7)
            with around():
                if kind < 3:
                    seen.append(float((up, down, read)[kind](x)))
                elif kind == 3:
                    held.append((w.value, w.numpy()))
                elif kind == 4:
                    w.assign(w * 0.9)
                elif kind == 5:
                    held.clear()
                else:
                    seen += down.over(X, [[0, 1, 2], [3, 4]]).numpy().tolist()
            assert all((tensor.numpy() == numbers).all() for tensor, numbers in held)
        ends.append((seen, w.numpy().tolist(), b.numpy().tolist()))
    assert ends[0] == ends[1]


# Over all batches.
def trained(run):
    w, b = Variable(np.array([[0.5], [-1.0]])), Variable(np.zeros((1, 1)))

    @function
    def step(x, y):
        with GradientTape() as tape:
            loss = reduce_mean((x @ w + b - y) ** 2)
        for v, dv in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
            v.assign(v - 0.1 * dv)
        return loss

    return np.ravel([r.numpy() for r in run(step)]).tolist(), w.numpy().tolist(), b.numpy().tolist()


BATCHES = {
    "array": np.arange(12).reshape(4, 3) % 6,
    "unsigned": np.array([[0, 5], [1, 1]], np.uint8),
    "shorter": [[0, 1, 2, 3], [3, 4, 5, 0], [5, 5]],
    "arrays": [np.array([0, 1]), np.array([2, 3]), np.array([4])],
    "ranges": [range(3), range(3, 6)],
    "a view": np.arange(24).reshape(4, 6)[:, ::2] % 6,
}


@pytest.mark.parametrize("name", BATCHES)
def test_over_equals_step_by_step(name, back_end):
    batches, x, y = BATCHES[name], constant(X), constant(Y)

    def one_by_one(step):
        return [step(*(gather(a, [*map(int, i)]) for a in (x, y))) for i in batches]

    def at_once(step):
        return [step.over(X, Y, batches)]

    with eager():
        expected = trained(one_by_one)
        assert trained(at_once) == expected
    assert trained(one_by_one) == trained(at_once) == expected


WRONG_BATCHES = {
    "negative": [[0, -1]],
    "too large": [[0, 1], [2, 6]],
    "far too large": [[0, 2**62]],
    "beyond int64, as an array": np.array([[0, 2**64 - 1]], np.uint64),
    "floats": [[0.0, 1.0]],
    "empty": [],
    "empty batches": [[], []],
    "no rows": np.zeros((2, 0), int),
    "ragged": [[0, 1], [2], [3, 4]],
    "flat": np.array([0, 1]),
    "one number": 3,
    "too deep": np.zeros((2, 2, 2), int),
    "text": [["a", "b"]],
}


@pytest.mark.parametrize("name", WRONG_BATCHES)
def test_wrong_batches_are_one_error_and_change_nothing(name):
    w = Variable(np.ones((2, 1)))

    @function
    def step(x):
        w.assign(w * 0.5)
        return reduce_sum(x @ w)

    for _ in range(2):  # of a new function, and of one that has run
        before, value = w.numpy().tolist(), w.value
        with pytest.raises((ValueError, IndexError, TypeError)) as error:
            step.over(X, WRONG_BATCHES[name])
        assert w.value is value and w.numpy().tolist() == before
        assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) < 300
        assert str(error.value).startswith("over: batches")
        assert step.over(X, [[0]]).numpy().tolist() == [float(reduce_sum(constant(X[:1]) @ w))]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda f: f.over(X, Y[:3], [[0]]), "same number of rows"),
        (lambda f: f.over([[0]]), "same number of rows"),
        (lambda f: function(lambda x, y: x * 2.0).over(X, Y, [[0, 1]]), "one number"),
        (lambda f: function(lambda x, y: (reduce_sum(x), y)).over(X, Y, [[0, 1], [2, 3]]), "one number"),
    ],
)
def test_wrong_calls_of_over(call, message):
    w, f = Variable(np.ones(1)), function(lambda x, y: reduce_sum(x * y))
    with pytest.raises((ValueError, TypeError), match=message):
        call(f)
    assert f.over(X, Y, [[0]]).numpy().tolist() == [float(reduce_sum(X[:1] * constant(Y[:1])))] and float(w) == 1.0


# What a program cannot hold is the next one's, and the last is eager's own meaning.
ODD = {
    "shape": lambda x: reduce_sum(x) / x.shape[0],
    "len": lambda x: reduce_sum(x * (1.0 / len(x))),
    "iter": lambda x: sum(reduce_sum(row) * (k + 1.0) for k, row in enumerate(x)),
    "transposed": lambda x: reduce_sum(x) / transpose(x).shape[1],
    "reshape": lambda x: reduce_sum(reshape(x, (x.shape[0] * 2,)) ** 2),
    "last": lambda x: reduce_sum(x[-1]) + reduce_sum(x[:2]) + reduce_sum(x[len(x) // 2 :]),
    "no rows": lambda x: reduce_sum(x[:0] * 2.0) + reduce_sum(x),
    "nothing used": lambda x: constant(np.array(2.5)),
    "folds to NaN": lambda x: reduce_sum(x * (constant(np.array(0.0)) / constant(np.array(0.0)))),
    "folds to infinity": lambda x: reduce_sum(x / (constant(np.array(1.0)) / constant(np.array(0.0)))),
    "folds to a complex number": lambda x: reduce_sum(x * constant(np.array(-2.0)) ** constant(np.array(0.5))),
    "a root of less than nothing": lambda x: reduce_sum(x * low_level.sqrt(constant(np.array(-1.0)))),
    "two zeros": lambda x: reduce_sum(1.0 / clip(x, 0.0, 5.0) + 1.0 / clip(x, -0.0, 5.0)),
    "whole numbers": lambda x: reduce_sum(cast(cast(x * 10.0, "i8"), "f8")),
    "a mask of masks": lambda x: reduce_sum(where((x > 0.0) == (x > 0.1), x, 0.5)),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_graphs_are_what_they_are_op_by_op(name, back_end):
    plain, compiled = ODD[name], function(ODD[name])
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # (it is traced anew for many sizes)
        for rows in (6, 6, 1, 3, 1):
            assert np.array_equal(compiled(X[:rows]).numpy(), plain(constant(X[:rows])).numpy(), equal_nan=True)
        for batches in ([[0, 1, 2], [5, 5, 5], [3, 4]], [[1], [2]], np.array([[0], [0]])):
            expected = [plain(gather(X, i)).numpy() for i in batches]
            assert np.array_equal(compiled.over(X, batches).numpy(), np.array(expected), equal_nan=True)


Pair = collections.namedtuple("Pair", "first second")
NESTED = {
    "a tuple in a list": lambda x: [(x, x), x],
    "a dict": lambda x: {"loss": reduce_sum(x)},
    "a namedtuple": lambda x: Pair(x, reduce_sum(x)),
    "a set": lambda x: {reduce_sum(x)},
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("over", [False, True])
def test_other_results_are_refused_in_a_sentence(name, over):
    with pytest.raises(TypeError, match="returns a .*; expected tensors, or one list or tuple of them"):
        function(NESTED[name]).over(X, [[0, 1]]) if over else function(NESTED[name])(X)


# Kernels of one's own.
def test_a_kernel_in_use_is_respected(back_end):
    """Right kernels, of which no program knows."""

    mine = {
        "reduce_sum": lambda total, x: x + total,
        "matmul": lambda y, x, w: matmul_ikj(y, x, w),
        "relu": lambda x: 0.0 if x <= 0.0 else x,
    }
    step = function(lambda x: reduce_sum(relu(x @ constant(np.array([[1.0], [-2.0]])))))
    expected = float(step(X))
    assert kinds(step) == {back_end}
    for op, kernel in mine.items():
        with use(op, "cpu", kernel):
            assert float(step(X)) == expected and step.over(X, [range(6)] * 2).numpy().tolist() == [expected] * 2
            assert kinds(step) == {"Replay"}, op
        assert float(step(X)) == expected and kinds(step) == {back_end}, op


@pytest.fixture
def own_ops():
    """What ops are added in a test is taken away again."""
    tables = KERNELS, ELEMENTWISE, VJPS, PLANNERS
    before = [dict(table) for table in tables]
    yield
    for table, old in zip(tables, before, strict=True):
        for key in table.keys() - old.keys():
            del table[key]
    PLANS.clear()


def test_an_op_added_by_its_function_compiles(own_ops, back_end):
    scalar("cube")(lambda x: x * x * x)
    VJPS["cube"] = (lambda dy, y, x: dy * 3.0 * x * x,)
    ends = []
    for around in (eager, contextlib.nullcontext):
        w = Variable(np.array([[0.5], [-1.0]]))

        @function
        def step(x, w=w):
            with GradientTape() as tape:
                loss = reduce_sum(apply("cube", x @ w))
            w.assign(w - 0.1 * tape.gradient(loss, w))
            return loss

        with around():
            ends.append(([float(step(X)) for _ in range(3)], w.numpy().tolist()))
    assert ends[0] == ends[1] and kinds(step) == {back_end}
    scalar("cube")(lambda x: x + 1.0)
    compiled = function(lambda x: reduce_sum(apply("cube", x)))
    assert float(compiled(X)) == float(reduce_sum(constant(X) + 1.0))
    scalar("cube")(lambda x: x + 2.0)
    assert float(compiled(X)) == float(reduce_sum(constant(X) + 2.0)), "a function of another meaning"


# Nets, as a list of programs.
def trained_net(sizes, batch, dtype):
    """A few steps with a moment for each weight: the losses, how many numbers were above zero, and all variables."""
    draw, rows = np.random.default_rng(batch), 3 * batch
    weights = [draw.standard_normal(shape) / 2 for m, n in itertools.pairwise(sizes) for shape in ((m, n), (1, n))]
    weights = [Variable(w.astype(dtype)) for w in weights]
    moments, positive = [Variable(np.zeros(w.spec.shape, dtype)) for w in weights], Variable(np.zeros((), dtype))

    @function
    def step(x, y):
        with GradientTape() as tape:
            for w, b in zip(weights[::2], weights[1::2], strict=True):
                h = x @ w + b
                x = relu(h)
            many = sizes[-1] > 1
            loss = -reduce_mean(reduce_sum(y * nn.log_softmax(h), -1)) if many else reduce_mean((h - y) * (h - y))
        positive.assign(positive + reduce_sum(cast(cast(h, dtype) > 0.0, dtype)))
        for w, m, dw in zip(weights, moments, tape.gradient(loss, weights), strict=True):
            m.assign(0.9 * m + dw)
            w.assign(w - 0.05 * m)
        return loss

    x, order = draw.standard_normal((rows, sizes[0])), draw.permutation(rows).reshape(3, batch)
    y = np.eye(sizes[-1])[draw.integers(0, sizes[-1], rows)]
    x, y = constant(x.astype(dtype)), constant(y.astype(dtype))
    losses = [float(step(gather(x, order[0]), gather(y, order[0])))]
    losses += step.over(x, y, order).numpy().tolist()
    return kinds(step), [losses, *(v.numpy().tolist() for v in (positive, *weights, *moments))]


@pytest.mark.parametrize("sizes, batch", [((2, 40, 16, 4), 16), ((1, 1, 1), 2), ((20, 9, 65), 5), ((400, 300, 20), 65)])
def test_a_net_in_fused_programs_gives_the_bits_of_op_by_op_on_any_number_of_threads(sizes, batch, monkeypatch):
    """(65 classes are more than a kernel of rows is written out for: it is replayed.)"""
    with eager():
        expected, singles = trained_net(sizes, batch, np.float64), []
    for threads in (1, 3):
        on_threads(monkeypatch, threads)
        back_ends, found = trained_net(sizes, batch, np.float64)
        assert back_ends == {"Replay" if sizes[-1] > fused_parts.WIDEST_ROW else "FusedProgram"}
        assert (set(), found) == expected
        singles.append(trained_net(sizes, batch, np.float32)[1])
    for one, three, exact in zip(*singles, found, strict=True):
        np.testing.assert_allclose(one, exact, 1e-4, 1e-4)
        # LLVM may fuse a product and a sum in one cut of a loop and not in another, as it does with AVX2
        np.testing.assert_allclose(three, one, rtol=2e-6, atol=1e-6)


def test_a_product_does_not_overwrite_what_it_reads(back_end):
    start = np.eye(40)[::-1] + np.eye(40, k=1)  # more rows and columns than a tile has
    w = Variable(start)

    @function
    def step(x):
        w.assign(w @ w)
        return reduce_sum(x)

    step(X)
    assert (w.numpy() == np.linalg.matrix_power(start, 2)).all()
    step.over(X, [[0], [1]])
    assert (w.numpy() == np.linalg.matrix_power(start, 8)).all()


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), KeyboardInterrupt(), None], ids=repr)
def test_a_thread_that_does_not_come_is_not_waited_for(error, monkeypatch):
    """The system has no threads left, Ctrl-C comes just before one is started, or it comes when everything is done."""
    on_threads(monkeypatch, 3)
    w, late = Variable(np.ones((4, 3))), []

    def start(call, args):
        if error:
            raise error
        late.append(threading.Thread(target=call, args=args))

    @function
    def step(x):
        w.assign(w + x @ w)
        return reduce_sum(w)

    def call(how, *args):
        with pytest.raises(KeyboardInterrupt) if type(error) is KeyboardInterrupt else contextlib.nullcontext():
            how(*args)

    rows, expected = np.arange(16.0).reshape(4, 4) / 16.0, np.ones((4, 3))
    monkeypatch.setattr(fused_threads, "_thread", SimpleNamespace(start_new_thread=start))
    for calls in range(1, 4):
        call(step, rows)
        call(step.over, rows, [range(4)] * 2)
        for _ in range(3):
            expected += rows @ expected
        while late:
            late.pop().start()
        np.testing.assert_allclose(w.numpy(), expected, 1e-14, err_msg=f"{calls}")
    assert kinds(step) == {"FusedProgram"}


def test_several_threads_call_a_program_of_several_threads(monkeypatch):
    on_threads(monkeypatch, 3)
    w, x = Variable(np.zeros((300, 300))), constant(np.ones((300, 300)))

    @function
    def step(x):
        w.assign(w + x)
        return reduce_sum(w)

    with ThreadPoolExecutor(4) as callers:
        list(callers.map(lambda _: [step(x) for _ in range(20)], range(4)))
    assert (w.numpy() == 80.0).all()
