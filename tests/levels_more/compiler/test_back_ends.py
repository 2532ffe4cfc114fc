"""Which back end a small net gets: no Python may lose one without a word."""

import numpy as np
import pytest
from back_ends import kinds

from levels_more.compiler.eager import backward
from levels_more.compiler.eager.small_ops import ProgramPlan
from levels_more.kernels import PLANS
from levels_more.low_level import GradientTape, constant, function
from levels_more.mid_level import SGD, Adam, BinaryCrossentropy, Dense
from levels_more.mid_level.notes import noted

pytestmark = pytest.mark.versions


def stepping(dtype, optimizer):
    """A step of the net 2-4-8-1, and rows for it."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(20, 2)).astype(dtype)
    y = (x[:, :1] > 0.0).astype(dtype)
    net, loss = [Dense(4, "relu"), Dense(8, "relu"), Dense(1)], BinaryCrossentropy(from_logits=True)

    def step(rows, target):
        with GradientTape() as tape:
            for layer in net:
                rows = layer(rows)
            value = loss(target, rows)
        variables = [v for layer in net for v in layer.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        return value

    return step, constant(x), constant(y)


@pytest.mark.parametrize(
    "make, dtype, back_end",
    [
        (SGD, "f4", "RowProgram"),
        (SGD, "f8", "FusedProgram"),
        (Adam, "f4", "FusedProgram"),
        (Adam, "f8", "FusedProgram"),
    ],
)
def test_a_step(make, dtype, back_end):
    step, x, y = stepping(dtype, make())
    compiled = function(step)
    for _ in range(3):
        compiled(x, y)
    assert kinds(compiled) == {back_end}
    compiled.over(x, y, np.arange(20).reshape(4, 5))
    assert kinds(compiled) == {back_end}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("make", [SGD, Adam])
def test_a_loop_op_by_op(make, dtype):
    """The walk back is a program, so is the optimizer's step, and each small launch runs a program of the assembler."""
    backward._WALKS.clear(), PLANS.clear()
    optimizer = make()
    step, x, y = stepping(dtype, optimizer)
    for _ in range(12):
        step(x, y)
    walked = [walk for walk in backward._WALKS.values() if type(walk) is not int]
    assert [kinds(walk) for walk in walked] == [{"RowProgram" if dtype == "f4" else "FusedProgram"}]
    assert kinds(noted(optimizer, "program")) == {"FusedProgram"}
    launched = {plan.op: plan for plan in PLANS.values() if plan.launches and plan.op in ("matmul", "add", "relu")}
    assert all(isinstance(plan, ProgramPlan) and plan.pack for plan in launched.values()), launched
