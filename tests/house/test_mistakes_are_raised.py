"""A back end says with NoProgram what it cannot build. Any other error is a mistake, and it is raised: none makes a step slow."""

import numpy as np
import pytest

from levels.low_level import row_program
from levels_more import tensorflow as tf
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend
from levels_more.compiler.fused.backend import FusedProgram
from levels_more.compiler.fused.replay import FusedReplay
from levels_more.kernels import KERNELS, use
from levels_more.low_level import (
    BACK_ENDS,
    GradientTape,
    NoProgram,
    Replay,
    Tensor,
    Variable,
    apply,
    constant,
    function,
    nn,
    reduce_sum,
)

MISTAKES = pytest.mark.parametrize("mistake", [AttributeError("x"), TypeError("x")])


def raising(error):
    """A function that raises this error, whatever it is given."""

    def run(*_, **__):
        raise error

    return run


def program_of(python, *args):
    """The program that `function` makes of this, for these arguments."""
    made = function(python)
    made(*args)
    ((program, _),) = made.programs.values()
    return program


@MISTAKES
@pytest.mark.parametrize("back_end", [backend.FusedProgram, row_program.RowProgram, FusedReplay])
def test_a_mistake_in_a_back_end_is_raised(back_end, mistake, monkeypatch):
    monkeypatch.setattr(back_end, "__init__", raising(mistake))
    monkeypatch.setattr("levels.low_level.functions.BACK_ENDS", [back_end, *BACK_ENDS])
    with pytest.raises(type(mistake)):
        function(lambda x: nn.relu(x * 2.0) + 1.0)(np.ones((3, 2), "f4"))


def walked(x, times=1):
    """The gradient of Σ relu(x·x), a tensor; after eight times by a program."""
    for _ in range(times):
        with GradientTape() as tape:
            y = reduce_sum(nn.relu(x * x))
        dx = tape.gradient(y, x)
    return dx


@MISTAKES
def test_a_mistake_in_the_program_of_a_walk_is_raised(mistake, monkeypatch):
    monkeypatch.setattr(backward, "_WALKS", {})
    x = Variable(np.full((3, 7), 2.0))
    walked(x, 8)
    monkeypatch.setattr(FusedProgram, "__init__", raising(mistake))
    with pytest.raises(type(mistake)):
        walked(x)


def test_a_walk_that_is_no_program_goes_op_by_op(monkeypatch):
    monkeypatch.setattr(backward, "_WALKS", {})
    x = Variable(np.full((3, 5), 2.0))
    for error in (NoProgram("none"), ValueError("refused"), TypeError("its numbers are not known")):
        with monkeypatch.context() as patch:
            patch.setattr(backward.Function, "traced", raising(error))
            assert (walked(x, 12).numpy() == 4.0).all()
        backward._WALKS.clear()


@MISTAKES
def test_a_mistake_in_a_small_kernel_is_raised(mistake, monkeypatch):
    monkeypatch.setattr(small_ops, "LoopWriter", raising(mistake))
    monkeypatch.setattr(small_ops, "_LOOPS", {})
    x = np.ones((3, 11, 13))
    with pytest.raises(type(mistake)):
        apply("multiply", x, 3.0 * x)


def test_what_the_assembler_has_no_instruction_for_is_left_to_its_kernel():
    x = constant(np.full((2, 3), 3.0, "f4"))
    assert (apply("power", x, 2.0).numpy() == 9.0).all()
    program = program_of(lambda x: nn.relu(x * 2.0) ** (x * 0.5), x)
    assert isinstance(program, Replay) and "power" in program.why


def test_a_scalar_function_that_asks_for_the_number_is_left_to_its_kernel():
    """An `if` is no instruction. The kernel has it, and the graph is replayed."""
    plain = KERNELS["relu", "cpu"]
    try:
        use("relu", "cpu", lambda x: x if x > 0.0 else 0.0)
        x = np.array([[-1.0, 2.0]])
        assert function(lambda x: nn.relu(x) * 2.0)(x).numpy().tolist() == [[0.0, 4.0]]
    finally:
        use("relu", "cpu", plain)


@pytest.mark.parametrize(
    "python, args",
    [
        (lambda: constant(np.ones((2, 2))) * 2.0, ()),
        (lambda x: x * 2.0 + 1.0, (np.float32(3.0),)),
        (lambda x: (x * 2.0 + 1.0) * x, (np.ones((0, 3)),)),
        (lambda x: x + np.ones((5, 2)), (np.ones((5, 2)),)),
    ],
)
def test_odd_graphs_find_a_program(python, args):
    """No rows, no axes, nothing in it, and rows beside as many of a constant: each back end says so with NoProgram."""
    found, expected = (
        program_of(python, *args).run([constant(x) for x in args])[0].numpy(),
        python(*map(constant, args)),
    )
    np.testing.assert_array_equal(found, expected.numpy())


@MISTAKES
def test_a_mistake_behind_a_function_of_tensorflow_is_raised(mistake, monkeypatch):
    monkeypatch.setattr("levels.low_level.functions._program_of", raising(mistake))
    with pytest.raises(type(mistake)):
        tf.function(lambda x: x * 2.0)(tf.constant([1.0, 2.0]))


def test_a_function_of_tensorflow_that_needs_the_numbers_runs_op_by_op():
    calls = []

    @tf.function
    def size(x):
        calls.append(type(x))
        return x if float(x) > 0.0 else -x

    assert [size(tf.constant(x)).numpy() for x in (-2.0, 3.0)] == [2.0, 3.0]
    assert calls[-1] is Tensor and size.eager
