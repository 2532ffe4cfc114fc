"""no_grad and enable_grad: in `with` blocks and as decorators, as in PyTorch 2.13."""

import threading

import pytest

from levels_more import torch
from levels_more.torch.grad_mode import recording

W = torch.ones(2, requires_grad=True)


def recorded():
    return (W * 2).requires_grad


@pytest.fixture(autouse=True)
def recording_is_on_before_and_after():
    assert recording()
    yield
    assert recording()


@pytest.mark.quick
def test_one_object_serves_several_blocks_also_nested_and_in_threads():
    quiet = torch.no_grad()
    for _ in range(2):
        with quiet:
            with quiet:
                assert not recorded()
            assert not recorded()
        assert recorded()
    seen = []
    with quiet:
        threads = [threading.Thread(target=lambda: seen.append(recorded())) for _ in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
    assert seen == [True, True]


def test_blocks_of_generators_that_close_in_another_order_leave_recording_on():
    def paused():
        with torch.no_grad():
            yield recorded()

    one, other = paused(), paused()
    assert (next(one), next(other)) == (False, False)
    assert [*one] == [*other] == []


def test_functions_and_methods_are_decorated_with_and_without_brackets():
    @torch.no_grad
    def bare(x, *, y=0):
        return recorded(), x + y

    class Net:
        @torch.no_grad()
        def look(self):
            return recorded()

        @torch.enable_grad()
        def learn(self):
            return recorded()

    assert bare(1, y=2) == (False, 3) and bare.__name__ == "bare"
    with torch.no_grad():
        assert not Net().look() and Net().learn() and not recorded()
