"""What a kernel reads is watched in a walk that is a program, and in an optimizer's step."""

import sys

import numpy as np

from levels_more.compiler.eager import backward
from levels_more.kernels import use
from levels_more.low_level import GradientTape, Variable, constant
from levels_more.mid_level import SGD

FACTOR = 1.0


def test_what_a_kernel_reads_is_watched_in_a_walk_and_in_a_step(monkeypatch):
    here = sys.modules[__name__]
    w, optimizer = Variable(np.array([1.0])), SGD(0.5)
    with use("multiply", "cpu", lambda x, y: x * y * FACTOR):
        for _ in range(backward._SELDOM + 3):
            with GradientTape() as tape:
                y = w * 6.0
            (dw,) = tape.gradient(y, [w])
            optimizer.apply_gradients([(constant(np.array([0.0])), w)])
        monkeypatch.setattr(here, "FACTOR", 2.0)
        with GradientTape() as tape:
            y = w * 6.0
        assert dw.numpy() == 6.0 and tape.gradient(y, [w])[0].numpy() == 12.0
        optimizer.apply_gradients([(constant(np.array([1.0])), w)])
        assert w.numpy() == 0.0  # by the rate 0.5, twice
