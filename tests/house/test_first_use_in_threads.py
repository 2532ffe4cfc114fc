"""What is used for the first time, in a fresh process, by six threads at once: no crash, and the numbers that one thread finds."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import first_uses
import numpy as np
import pytest
from fresh import printed

from levels_more.hardware.locks import once
from levels_more.kernels import PLANS, launch, planned
from levels_more.low_level import constant

THREADS = 6


@pytest.mark.filterwarnings("ignore:.*epochs")  # few are enough here
def test_six_threads_find_what_one_finds(tmp_path):
    told = printed(first_uses.__file__, THREADS, cwd=tmp_path)
    together = json.loads(told.splitlines()[-1])
    assert len(together) > 60
    for what, use in first_uses.uses():
        if what not in together:  # an op that another test has brought
            continue
        (wanted,) = first_uses.at_once(use, 1)
        assert isinstance(wanted, list), wanted  # else it is the text of an error
        for numbers in together[what]:
            assert isinstance(numbers, list), f"{what}: {numbers}"
            # in float32 a program may round a·b + c once, and how often a tape was met decides whether there is one
            np.testing.assert_allclose(numbers, wanted, 1e-5, 1e-6, err_msg=what)


def test_what_is_kept_is_made_once():
    made = []

    @once
    def half(x):
        time.sleep(0.05)
        made.append(x)
        return [x / 2 if x < 2 else half(x - 2)]  # it may need itself

    with ThreadPoolExecutor(THREADS) as threads:
        results = [*threads.map(half, [3] * THREADS)]
    assert sorted(made) == [1, 3] and all(each is results[0] for each in results)
    with pytest.raises(TypeError):
        half("no number")
    with pytest.raises(TypeError):  # what failed is tried again
        half("no number")


def test_a_plan_is_lowered_once(monkeypatch):
    PLANS.clear()
    x, lowered = constant(np.ones(5)), []
    plan = planned("add", (x, x), {})
    lower = plan.lower

    def slowly():
        time.sleep(0.05)
        lowered.append(1)
        return lower()

    monkeypatch.setattr(plan, "lower", slowly)
    with ThreadPoolExecutor(THREADS) as threads:
        results = [*threads.map(lambda _: launch("add", None, x, x).numpy().tolist(), range(THREADS))]
    assert results == [[2.0] * 5] * THREADS and len(lowered) == 1
