"""no_grad, enable_grad, inference_mode and set_grad_enabled: in `with` blocks and as decorators, as in PyTorch 2.13."""

import threading

import pytest

from levels_more import torch

W = torch.ones(2, requires_grad=True)
OFF = (torch.no_grad, torch.no_grad(), torch.inference_mode, torch.inference_mode(), torch.inference_mode(True))


def recorded():
    return (W * 2).requires_grad


@pytest.fixture(autouse=True)
def recording_is_on_before_and_after():
    assert torch.is_grad_enabled()
    yield
    assert torch.is_grad_enabled()


@pytest.mark.quick
@pytest.mark.parametrize("mode", OFF)
def test_a_generator_runs_without_recording_and_its_caller_with_it(mode):
    def rows():
        for _ in range(2):
            yield recorded()

    for inside in mode(rows)():
        assert not inside and recorded()
    with torch.no_grad():
        assert [*torch.enable_grad(rows)()] == [True, True] and not recorded()


def test_a_decorated_generator_is_sent_values_thrown_errors_and_closed():
    told = []

    @torch.no_grad()
    def echo():
        """Echo."""
        given = None
        try:
            while given != "end":
                try:
                    given = yield given, recorded()
                except KeyError as error:
                    given = str(error)
            return "returned"
        finally:
            told.append(recorded())

    one = echo()
    assert echo.__doc__ == "Echo." and next(one) == (None, False) and one.send(3) == (3, False)
    assert one.throw(KeyError(5)) == ("5", False)
    with pytest.raises(StopIteration, match="returned"):
        one.send("end")
    other = echo()
    next(other)
    with pytest.raises(ValueError, match="mine"):
        other.throw(ValueError("mine"))
    third = echo()
    next(third)
    third.close()
    assert told == [False] * 3


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
        @torch.inference_mode()
        def look(self):
            return recorded()

        @torch.enable_grad()
        def learn(self):
            return recorded()

    assert bare(1, y=2) == (False, 3) and bare.__name__ == "bare"
    with torch.no_grad():
        assert not Net().look() and Net().learn() and not recorded()


@pytest.mark.quick
def test_set_grad_enabled_is_a_switch_a_block_and_a_decorator():
    switch = torch.set_grad_enabled(False)
    assert not recorded()
    with switch:
        assert not recorded()
    assert recorded()
    with switch:
        assert not recorded()
    quiet = torch.set_grad_enabled(False)(recorded)
    assert recorded() and not quiet() and recorded()
    with torch.no_grad():
        assert not quiet() and not recorded() and torch.set_grad_enabled(True)(recorded)()
        with torch.inference_mode(False):
            assert recorded()
        with torch.inference_mode(), torch.inference_mode(False):
            assert recorded()
    with pytest.raises(TypeError, match="set_grad_enabled is None; expected True or False"):
        torch.set_grad_enabled(None)


def test_what_cannot_be_decorated_is_refused_and_a_class_is_warned_of():
    async def work():
        return recorded()

    async def rows():
        yield recorded()

    for function in (work, rows):
        for mode in (torch.no_grad, torch.no_grad(), torch.inference_mode(), torch.enable_grad):
            with pytest.raises(TypeError, match=f"{function.__name__} is an async function.*without `await`"):
                mode(function)
    for wrong in (3, True, "off"):
        with pytest.raises(TypeError, match=f"no_grad is {wrong!r}; expected nothing, as in `with torch.no_grad"):
            torch.no_grad(wrong)
    with pytest.warns(FutureWarning, match="no_grad: Net is a class; decorate its methods"):

        @torch.no_grad()
        class Net:
            def __init__(self):
                self.seen = recorded()

    assert Net().seen is False
