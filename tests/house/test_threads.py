"""Any number of threads, processes and copies: a program is safe to call, and what stands at the door belongs to a thread."""

import copy
import gc
import multiprocessing
import os
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from at_once import THREADS, in_threads

from levels.support.storage import LockAll, pinned_address
from levels_more import low_level
from levels_more.compiler.fused.backend import FusedProgram
from levels_more.hardware import Buffer, Device, pool
from levels_more.high_level import Input, Sequential
from levels_more.low_level import DOOR, GradientTape, Tensor, Variable, constant, function, reduce_sum, relu
from levels_more.mid_level import layers, optimizers

CPU = pool()["cpu:0"]
BACK_ENDS = {
    "RowProgram": [low_level.RowProgram],
    "FusedProgram": [FusedProgram],
    "Replay": [],
}


@pytest.fixture(params=BACK_ENDS)
def back_end(request, monkeypatch):
    monkeypatch.setattr("levels.low_level.functions.BACK_ENDS", BACK_ENDS[request.param])
    return request.param


@pytest.fixture
def calls(request):
    """How often each thread calls."""
    return request.config.option.calls


@pytest.fixture(autouse=True)
def often():
    """Threads take turns as often as Python can, so that what two of them do meets."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


X = np.random.default_rng(25).standard_normal((40, 3))
ROWS, ANSWERS = X.astype("f4"), (X[:, :1] > 0).astype("f4")  # for models, whose weights are float32
W, V = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5], [-0.75, 1.5, 1.0]]), np.array([[1.0], [-2.0], [0.5]])


def net(x, w, v):
    """A number for each row."""
    return low_level.exp(relu(x @ w) @ v * 0.1)


def test_one_function_called_by_all(calls, back_end):
    """Each thread has rows of its own, and gets the answer for them."""
    w, v = Variable(W), Variable(V)
    compiled = function(lambda x: net(x, w, v))
    inputs = [constant(X[5 * k : 5 * k + 5]) for k in range(THREADS)]
    expected = [net(x, constant(W), constant(V)).numpy() for x in inputs]

    def work(k):
        return all(np.array_equal(compiled(inputs[k]).numpy(), expected[k]) for _ in range(calls))

    assert all(in_threads(work))
    assert {type(program).__name__ for program, _ in compiled.programs.values()} == {back_end} and compiled.traces == 1


def test_a_function_that_changes_a_variable_counts_every_call(calls, back_end):
    count = Variable(np.zeros((1, 1)))

    @function
    def step(x):
        count.assign(count + 1.0)
        return reduce_sum(x) + count

    seen = in_threads(lambda k: [float(step(constant(X[:4] * 0.0))) for _ in range(calls)])
    assert float(count) == THREADS * calls
    assert sorted(number for numbers in seen for number in numbers) == [n + 1.0 for n in range(THREADS * calls)]


def test_eight_functions(calls, back_end):
    """Each trains a model of its own, step by step and over all batches."""
    batches = np.arange(40).reshape(8, 5)

    def work(k):
        w, v, learning_rate = Variable(W), Variable(V), 0.001 * (k + 1)

        @function
        def step(x):
            with GradientTape() as tape:
                loss = low_level.reduce_mean(net(x, w, v))
            for variable, change in zip((w, v), tape.gradient(loss, [w, v]), strict=True):
                variable.assign(variable - learning_rate * change)
            return loss

        losses = []
        for _ in range(-(-calls // 9)):  # of eight calls, and one of `over`
            losses += [float(step(constant(X[batch]))) for batch in batches]
            losses += step.over(X, batches).numpy().tolist()
        return losses, w.numpy().tolist(), v.numpy().tolist()

    together = in_threads(work)
    assert together == [work(k) for k in range(THREADS)]


def test_eight_functions_of_the_same_variables(calls, back_end):
    """All read them, for the first time at once, and one thread assigns again and again."""
    w, v, inputs = Variable(W), Variable(V), constant(X)
    values = [constant(V * (k + 1)) for k in range(4)]
    allowed = [net(inputs, constant(W), value).numpy().tobytes() for value in values]
    v.assign(values[0])
    compiled = [function(lambda x: net(x, w, v)) for _ in range(THREADS)]

    def work(k):
        if k:
            return all(compiled[k](inputs).numpy().tobytes() in allowed for _ in range(calls))
        for n in range(calls):
            v.assign(values[n % 4])
        return v.value.numpy().tolist() == values[(calls - 1) % 4].numpy().tolist()

    assert all(in_threads(work))
    assert compiled[1](inputs).numpy().tobytes() == allowed[(calls - 1) % 4]


def test_programs_take_the_locks_of_variables_in_one_order():
    """Who holds a variable waits for later ones only, so that no two programs wait for each other."""
    first, second = Variable(1.0), Variable(2.0)
    for variables in ([first, second], [second, first]):
        assert LockAll(variables).locks == [first.lock, second.lock]


def test_an_assignment_is_not_lost(monkeypatch):
    """One thread copies the numbers to where a program may overwrite them; meanwhile another assigns."""
    v, copied = Variable(np.zeros(3)), threading.Event()
    halve = function(lambda x: v.assign(v * 0.5 + reduce_sum(x)))
    halve(X)
    assert v.numpy().shape == (3,)  # somebody has read it: the next call copies
    begin, ones = Tensor.__init__, constant(np.ones(3))

    def slowly(self, spec, data=None, source=None):
        begin(self, spec, data, source)
        if data is not None and source is None:
            copied.set()
            time.sleep(0.05)

    rows = constant(X)
    with monkeypatch.context() as patch:
        patch.setattr(Buffer, "__init__", slowly)
        caller = threading.Thread(target=lambda: halve(rows))
        caller.start()
        assert copied.wait(60)
        v.assign(ones)
        caller.join()
    assert v.numpy().tolist() == [1.0] * 3


def test_a_home_is_found_once(calls):
    """All programs have the address of one."""

    def finds(v):
        with LockAll([v]):
            return pinned_address(v)

    for _ in range(max(20, calls // 20)):
        v = Variable(np.zeros(20_000))
        homes = in_threads(lambda k, v=v: finds(v))
        assert {*homes} == {v.pinned}


def test_who_waited_for_a_turn_looks_again():
    """Meanwhile another tensor may have been assigned."""
    v, seven = Variable(np.zeros(3)), constant(np.full(3, 7.0))

    def finds():
        with LockAll([v]):
            pinned_address(v)

    with v.lock:
        other = threading.Thread(target=finds)
        other.start()
        time.sleep(0.1)  # now it waits
        v.current = seven
    other.join()
    assert v.pinned and v.current is not seven and v.numpy().tolist() == [7.0] * 3


def test_who_has_read_a_variable_keeps_what_he_read(back_end):
    """A program overwrites the numbers of a variable only where nobody has seen them."""
    v = Variable(np.zeros(3))
    adds = function(lambda x: v.assign(v + reduce_sum(x)))
    ones, seen = constant(np.ones(1)), []
    for n in range(4):
        seen.append(v.value)
        adds(ones)
        adds(ones)
        assert [x.numpy()[0] for x in seen] == [2.0 * k for k in range(n + 1)]


def small_model(epochs=0):
    model = Sequential([Input((3,)), layers.Dense(4, activation="relu"), layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer="adam", loss="binary_crossentropy")
    if epochs:
        model.fit(ROWS, ANSWERS, epochs=epochs, batch_size=8, verbose=0, seed=1)
    return model


def test_predict(calls):
    model = small_model()
    expected = [model.predict(ROWS[:n]) for n in range(1, THREADS + 1)]
    model = pickle.loads(pickle.dumps(model))

    def work(k):
        return all(np.array_equal(model.predict(ROWS[: k + 1]), expected[k]) for _ in range(calls))

    assert all(in_threads(work))


def test_tapes(calls):
    w = Variable(W)

    def work(k):
        x, seen = constant(X[k : k + 5]), set()
        for _ in range(calls):
            with GradientTape() as tape:
                loss = reduce_sum(relu(x @ w) ** 2)
            assert len(tape.records) == 4
            seen.add(tape.gradient(loss, w).numpy().tobytes())
        return seen

    assert in_threads(work) == [work(k) for k in range(THREADS)]


def test_who_traces_does_not_disturb_who_computes(calls):
    """Recording, tracing and `eager` are a matter of one thread."""
    w, done = Variable(W), threading.Event()

    def traces():
        try:
            for n in range(max(20, calls // 50)):
                step = function(lambda x, n=n: reduce_sum(relu(x @ w)) * float(n))
                step.over(X, [[0, 1], [2, 3]])
                with low_level.eager():
                    step(constant(X))
        finally:
            done.set()

    def computes(k):
        x, kinds = constant(X), set()
        while not done.is_set():
            if k % 2:
                with GradientTape() as tape:
                    loss = reduce_sum(relu(x @ w))
                kinds.add(type(tape.gradient(loss, w)))
            kinds.update((type(x @ w), type(w.value), type(x * 2.0)))
            assert DOOR.top is DOOR.bottom
        return kinds

    results = in_threads(lambda k: computes(k) if k else traces())
    assert set().union(*results[1:]) == {Tensor} and low_level.Symbol not in set().union(*results[1:])


def test_where_numbers_are_placed_is_a_matter_of_one_thread(calls):
    pool(cpus=2)

    def work(k):
        seen = set()
        for _ in range(calls):
            with low_level.device(f"cpu:{k % 2}"):
                seen.add(constant(1.0).device.name)
            seen.add(constant(1.0).device.name + " outside")
        return sorted(seen)

    assert in_threads(work) == [sorted([f"cpu:{k % 2}", "cpu:0 outside"]) for k in range(THREADS)]


def test_being_trained_is_a_matter_of_one_thread(calls):
    drop, x = layers.Dropout(0.5), constant(np.ones((4, 4), "f4"))

    def work(k):
        kept = [(drop(x, training=k % 2 == 0).numpy() == 1.0).all() for _ in range(calls)]
        return all(kept) if k % 2 else not all(kept)

    assert all(in_threads(work))


def test_memory_that_has_two_names_counts_once():
    place = Device("cpu:9", None, simulated=True)
    x = low_level.as_tensor(place.put(np.ones(100), Tensor))
    v = Variable(x)
    v.assign(x)
    assert place.used == 800 and (v.value.numpy() == 1.0).all()
    del x
    assert place.used == 800
    del v
    assert place.used == 0


def test_used_stays_true(calls, back_end):
    """Every byte that is counted is given back."""
    w = Variable(W)
    step = function(lambda x: (w.assign(w * 0.5), reduce_sum(x @ w))[1])

    def work(k):
        for n in range(max(10, calls // 10)):
            step(X[:5])
            step.over(X, [[0, 1], [2, 3]])
            w.assign(W)
            copy.deepcopy(w), constant(X) * 2.0
            if n % 7 == 0:
                w.numpy()

    used = []
    for _ in range(3):
        in_threads(work)
        gc.collect()
        used.append(CPU.used)
    assert used[1] == used[2] > 0


# Processes.
def results_here():
    """What a process computes that begins with everything of its parent (fork), or with nothing (spawn)."""
    w, x = Variable(W), constant(X)
    with GradientTape() as tape:
        loss = reduce_sum(relu(x @ w))
    step = function(lambda x: net(x, w, constant(V)))
    large = constant(np.ones((300, 300))) @ constant(np.ones((300, 200)))  # shared by threads, where there are several
    model = small_model()
    model.set_weights([np.full(each.shape, 0.1, "f4") for each in model.get_weights()])
    return [
        tape.gradient(loss, w).numpy().tolist(),
        step(x).numpy().tolist(),
        float(reduce_sum(large)),
        model.predict(ROWS).tolist(),
    ]


def result_of_process(method):
    with multiprocessing.get_context(method).Pool(1) as processes:
        return processes.apply_async(results_here).get(timeout=120)


@pytest.mark.parametrize("method", sorted({*multiprocessing.get_all_start_methods()} - {"fork"}))
def test_processes(method):
    expected = results_here()
    assert result_of_process(method) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_others_compute():
    """A lock that another thread held when the process was copied is held for ever there: none may be of use to all.

    (LLVM's own is one: a process must not be forked while another thread compiles.)
    """
    expected, done, w = results_here(), threading.Event(), Variable(W)
    step = function(lambda x: (w.assign(w * 0.999), net(x, w, constant(V)))[1])

    def work():
        step(constant(X)), w.numpy(), step.over(X, [[0], [1]])

    def works():
        while not done.is_set():
            work()

    work()
    threads = [threading.Thread(target=works) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert result_of_process("fork") == expected
            time.sleep(0.01)
    finally:
        done.set()
        for thread in threads:
            thread.join()


# Copies.
WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


@pytest.mark.parametrize("way", WAYS)
def test_copies_of_tensors_and_variables(way):
    w = Variable(W, name="w", trainable=False)
    function(lambda x: w.assign(w * 2.0))(X)  # a program has its numbers now
    for x in (constant(X), constant(X[:0]), constant(np.arange(3)), constant(3.0), w):
        again = WAYS[way](x)
        assert type(again) is type(x) and again.numpy().tolist() == x.numpy().tolist() and again.spec is x.spec
    again = WAYS[way](w)
    assert (again.name, again.trainable) == ("w", False)
    again.assign(again * 0.0)
    assert w.numpy().tolist() == (W * 2.0).tolist() and again.numpy().tolist() == (W * 0.0).tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("epochs", [0, 2])
def test_copies_of_models_train_alone(way, epochs):
    """The copy goes on where the model is, and neither changes the other."""
    model, how = small_model(epochs), {"epochs": 2, "batch_size": 8, "verbose": 0, "seed": 2}
    model.predict(ROWS), model.evaluate(ROWS, ANSWERS)
    before = [w.tolist() for w in model.get_weights()]
    again = WAYS[way](model)
    assert [w.tolist() for w in again.get_weights()] == before
    ours = again.fit(ROWS, ANSWERS, **how).history["loss"]
    assert [w.tolist() for w in model.get_weights()] == before != [w.tolist() for w in again.get_weights()]
    assert model.fit(ROWS, ANSWERS, **how).history["loss"] == ours
    assert again.predict(ROWS).tolist() == model.predict(ROWS).tolist()


@pytest.mark.parametrize("way", [way for way in WAYS if way != "copy"])
def test_copies_of_an_optimizer_and_its_variables(way):
    """Together they go on; an optimizer alone says whose it is."""
    optimizer, w = optimizers.Adam(0.1), Variable(W)
    optimizer.apply_gradients([(constant(W), w)])
    again, u = WAYS[way]((optimizer, w))
    again.apply_gradients([(constant(W), u)])
    assert not np.array_equal(u.numpy(), w.numpy())
    optimizer.apply_gradients([(constant(W), w)])
    assert np.array_equal(u.numpy(), w.numpy())
    with pytest.raises(ValueError, match="built for other variables"):
        WAYS[way](optimizer).apply_gradients([(constant(W), w)])
    fresh = WAYS[way](optimizers.SGD(0.5))
    fresh.apply_gradients([(constant(W), w)])
    assert fresh.learning_rate == 0.5


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_be_copied_says_so(way):
    with GradientTape() as tape:
        for thing, why in ((tape, "a tape"), (function(lambda x: x), "a function")):
            with pytest.raises(TypeError, match=f"{why} cannot be copied: ") as error:
                WAYS[way](thing)
            assert len(str(error.value).splitlines()) == 1
