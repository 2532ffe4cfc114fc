"""Tapes that are closed in another order than that in which they were opened, as paused generators close them."""

import itertools
import threading

import numpy as np
import pytest

from levels.low_level import DOOR, GradientTape, Variable, constant, eager, trace


def paused(v, told):
    with GradientTape() as tape:
        yield
        y = v * v
        yield
    told.append(float(tape.gradient(y, v).numpy()))


@pytest.mark.quick
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_each_tape_has_its_slope_and_none_stays_open(order):
    v, told = Variable(np.array(3.0)), []
    tapes = [paused(v, told) for _ in range(3)]
    for tape in tapes * 2:
        next(tape)
    for k in order:
        assert [*tapes[k]] == []
    assert told == [6.0] * 3 and DOOR.top is DOOR.bottom


def test_a_tape_under_another_one_stops_recording_when_it_is_closed():
    first, second = GradientTape(), GradientTape()
    x = constant([2.0])
    first.__enter__(), second.__enter__()
    x * x
    first.__exit__(None, None, None)
    x * x * x
    assert len(first.records) == 1 and len(second.records) == 3 and DOOR.top is second
    with eager():
        second.__exit__(None, None, None)
        assert DOOR.top is not DOOR.bottom
    assert DOOR.top is DOOR.bottom


def test_a_tape_of_another_thread_is_refused_in_words_and_stays_there():
    tape, told = GradientTape(), []

    def close():
        try:
            tape.__exit__(None, None, None)
        except RuntimeError as error:
            told.append(str(error))

    with tape:
        other = threading.Thread(target=close)
        other.start()
        other.join()
        assert DOOR.top is tape
    assert "opened in another thread" in told[0] and DOOR.top is DOOR.bottom
    with (
        GradientTape() as outside,
        pytest.raises(RuntimeError, match="outside of a traced function"),
    ):
        trace(lambda: outside.__exit__(None, None, None), [])
    assert DOOR.top is DOOR.bottom
