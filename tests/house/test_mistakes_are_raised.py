"""What no program can hold is left to its kernels, and odd graphs find a program."""

import numpy as np
import pytest

from levels_more.low_level import (
    Replay,
    apply,
    constant,
    function,
    nn,
)


def program_of(python, *args):
    """The program that `function` makes of this, for these arguments."""
    made = function(python)
    made(*args)
    ((program, _),) = made.programs.values()
    return program


def test_what_the_assembler_has_no_instruction_for_is_left_to_its_kernel():
    x = constant(np.full((2, 3), 3.0, "f4"))
    assert (apply("power", x, 2.0).numpy() == 9.0).all()
    program = program_of(lambda x: nn.relu(x * 2.0) ** (x * 0.5), x)
    assert isinstance(program, Replay) and "power" in program.why


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
