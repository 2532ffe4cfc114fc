"""Several processes, started for real: the same bits on any number of ranks, and what happens where one of them does
not come.
"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from ranks import ran, started, there, told

from course import build
from levels_more.distributed import (
    World,
    all_gather,
    all_reduce,
    backend,
    broadcast,
    collectives,
    world,
)
from levels_more.distributed.partition import shares, spread
from levels_more.high_level import Sequential
from levels_more.kernels import use
from levels_more.low_level import (
    GradientTape,
    Variable,
    apply,
    concat,
    constant,
    exp,
    function,
    nn,
    reduce_mean,
    reduce_sum,
    reshape,
    trace,
)
from levels_more.mid_level import Dense

NETS = """
    import hashlib
    import numpy as np
    from course.reader.tasks import rings
    from levels_more.distributed import DistributedDataParallel, world
    from levels_more.high_level import Sequential
    from levels_more.mid_level import SGD, Adam, BatchNormalization, Dense, Dropout, Embedding, Flatten

    draw, task = np.random.default_rng(0), rings()
    classes = draw.integers(0, 10, 180)
    words = draw.integers(0, 9, (120, 3))
    small = lambda: Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    wide = lambda: Sequential([Dense(512, "relu"), Dense(512, "relu"), Dense(10, "softmax")])
    parts = lambda: Sequential([Dense(8), BatchNormalization(), Dropout(0.5, seed=3), Dense(1, "sigmoid")])
    text = lambda: Sequential([Embedding(9, 4, dtype="float64"), Flatten(), Dense(1, "sigmoid")])
    images = draw.standard_normal((180, 784)), np.eye(10)[classes]
    points = task.x[:1000], task.y[:1000]
    sentences = words, (words.sum(1) > 12)[:, None] * 1.0

    # name: a net, an optimizer, a loss, x and y, rows in a batch
    CASES = {
        "rings, SGD": (small, SGD(0.01), "binary_crossentropy", points, 100),
        "rings, Adam, an uneven batch": (small, Adam(0.01), "binary_crossentropy", points, 37),
        "784-512-512-10, SGD": (wide, SGD(0.01), "categorical_crossentropy", images, 60),
        "sums in the middle, and what is drawn": (parts, Adam(0.01), "binary_crossentropy", points, 64),
        "rows by number": (text, SGD(0.1), "binary_crossentropy", sentences, 32),
        "fewer rows than ranks": (small, SGD(0.01), "mse", (task.x[:13], task.y[:13]), 3),
    }

    def train(name, dtype, model=lambda net: net):
        make, optimizer, loss, (x, y), batch = CASES[name]
        net = make()
        x = x.astype(dtype) if x.dtype.kind == "f" else x
        net.build((None, *x.shape[1:]), dtype if x.dtype.kind == "f" else x.dtype)
        draw = np.random.default_rng(1)
        weights = net.get_weights()
        for k, w in enumerate(weights):
            if w.dtype.kind != "i" and w.ndim == 2:
                weights[k] = draw.normal(0, w.shape[0] ** -0.5, w.shape).astype(w.dtype)
        net.set_weights(weights)
        model = model(net)
        model.compile(optimizer.recreate(), loss, metrics=["accuracy"])
        history = model.fit(x, y.astype(dtype), batch_size=batch, epochs=2, seed=5, verbose=0, validation_split=0.2)
        return net, history, model.evaluate(x, y.astype(dtype)), model.predict(x)

    def digest(net, history, loss, answers):
        numbers = [*net.get_weights(), history.losses, np.array([*history.history.values()]), np.array(loss), answers]
        return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in numbers)).hexdigest()[:16]
"""

BITS = (
    NETS
    + """
    share = DistributedDataParallel if world().comm else lambda net: net
    digests = [f"{name}: {digest(*train(name, 'float64', share))}" for name in CASES]
    _, history, *_ = train("784-512-512-10, SGD", "float32", share)
    if world().rank == 0:
        print(*digests, *history.losses, sep="\\n")
"""
)


@pytest.fixture(scope="module")
def plain():
    return ran(BITS, None).splitlines()


@there
@pytest.mark.parametrize("ranks", [3, pytest.param(4, marks=pytest.mark.weekly)])
def test_any_number_of_ranks_gives_the_bits_of_one_process_and_float32_stays_near(ranks, plain, tell):
    begun = time.perf_counter()
    found = ran(BITS, ranks).splitlines()
    tell("machines: the same bits", f"{ranks} ranks, 7 trainings {time.perf_counter() - begun:>7.1f} s")
    assert found[:6] == plain[:6]
    one, several = (np.array(lines[6:], float) for lines in (plain, found))
    assert one.shape == several.shape == (6,) and (abs(one - several) <= 1e-4 * np.maximum(1, one)).all()


# A rank dies, hangs, or does something else.

GOES_ON = """
    import hashlib, os, sys, time
    from pathlib import Path
    from course.reader.tasks import rings
    from levels_more.high_level import Callback, ModelCheckpoint, Sequential
    from levels_more.distributed import DistributedDataParallel, world
    from levels_more.saving import load_model
    from levels_more.mid_level import Adam, Dense

    folder, epochs, pause = Path(sys.argv[1]), 6, float(sys.argv[2])
    task, saved = rings(), folder / "net"
    (folder / f"{world().rank}.pid").write_text(str(os.getpid()))
    if saved.exists():
        net = load_model(saved)
    else:
        net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
        net.build((None, 2), "float64")
        net.set_weights(task.weights)
        net.compile(Adam(0.01), "binary_crossentropy")
    done = int(net.optimizer.iterations.numpy()) // 40 if saved.exists() else 0

    class Says(Callback):
        def on_epoch_end(self, epoch, logs):
            print("epoch", epoch, flush=True)
            time.sleep(pause)

    model = DistributedDataParallel(net)
    told = [ModelCheckpoint(saved), Says()]
    model.fit(task.x, task.y, batch_size=100, epochs=epochs, initial_epoch=done, seed=7, verbose=0, callbacks=told)
    if world().rank == 0:
        print(done, hashlib.sha256(b"".join(w.tobytes() for w in net.get_weights())).hexdigest())
"""


def until(process, line):
    """Read what a process prints, up to this line."""
    for text in process.stdout:
        if text.strip() == line:
            return
    raise AssertionError(f"it ended before {line!r}: {process.stderr.read()}")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return ran(GOES_ON, None, tmp_path_factory.mktemp("undisturbed"), 0).split("\n")[-2].split()


@there
def test_a_rank_dies_and_another_number_of_ranks_goes_on_with_the_same_bits(undisturbed, tmp_path, tell):
    process = started(GOES_ON, 3, tmp_path, 0.2)
    until(process, "epoch 2")
    os.kill(int((tmp_path / "2.pid").read_text()), signal.SIGKILL)
    begun = time.perf_counter()
    status, _, errors = told(process)
    seconds = time.perf_counter() - begun
    tell("machines: a rank dies", f"mpiexec ends in {seconds:.1f} s, with status {status}")
    assert status != 0, errors
    done, goes_on = ran(GOES_ON, 2, tmp_path, 0).split("\n")[-2].split()
    assert done in ("2", "3"), "it went on from the last whole epoch"
    assert ["0", goes_on] == undisturbed


def test_without_mpi_a_sentence_says_how_to_install_it():
    hidden = "import sys; sys.modules['mpi4py'] = None; "
    alone = "from levels_more.distributed import DistributedDataParallel\n"
    alone += "from levels_more.high_level import Sequential\n"
    alone += "from levels_more.mid_level import Dense; m = DistributedDataParallel(Sequential([Dense(1)])); "
    alone += "m.compile('sgd', 'mse'); m.fit([[1.0], [2.0]], [[1.0], [2.0]], verbose=0); print(m)"
    here = {name: value for name, value in build.environment(build.ROOT).items() if name not in collectives.STARTED}
    for more, expected in (({}, "rank 0 of 1"), ({"PMI_RANK": "0"}, collectives.INSTALL)):
        command = [sys.executable, "-c", hidden + alone]
        result = subprocess.run(command, env=here | more, capture_output=True, text=True, timeout=60)
        assert expected in result.stdout + result.stderr


COMMON = """
    import tempfile
    import time
    import numpy as np
    from levels_more.distributed import DistributedDataParallel, all_reduce, time_limit, world
    from levels_more.high_level import LambdaCallback, Sequential
    from levels_more.low_level import GradientTape
    from levels_more.mid_level import L2, Dataset, Dense
    model = DistributedDataParallel(Sequential([Dense(1)]))
    model.compile("sgd", "mse")
"""
WRONG = {  # what a rank may do -> the rest of the script, and what is said of it
    "it hangs": (
        """
        time_limit(1.0)
        if world().rank == 1:
            time.sleep(60)
        all_reduce(1.0)
        """,
        r"rank 0 has waited 1 s for the others in all_reduce: one of them hangs",
    ),
    "it has an error": (
        """
        if world().rank == 1:
            raise ValueError("my own")
        all_reduce(1.0)
        """,
        r"ValueError: my own\nrank 1 has ended by this error, and with it all ranks",
    ),
    "it has other data": (
        """
        x = np.arange(8.0)[:, None] + world().rank
        model.fit(x, x, verbose=0)
        """,
        r"rank \d has other rows than the ranks \[\d\]; give all ranks the same data",
    ),
    "rank 0 saves, and the others do not": (
        """
        model = DistributedDataParallel(Sequential([Dense(1)]))
        model.predict(np.ones((8, 1)))
        if world().rank == 0:
            model.save(tempfile.mkdtemp())
        model.predict(np.ones((8, 1)))
        """,
        r"rank 1 is in fit, evaluate or predict, and rank 0 in save; call fit, evaluate, predict and save on all ranks",
    ),
    "a training loop whose gradients nobody adds up": (
        """
        with GradientTape() as tape:
            DistributedDataParallel(Sequential([Dense(1)]))(np.ones((8, 1)))
        """,
        r"this tape's gradients are not summed over the ranks; write a train_step",
    ),
    "a callback fails on rank 0": (
        """
        def full(epoch, logs):
            raise OSError("the disk is full")
        x = [[1.0], [2.0]]
        model.fit(x, x, verbose=0, callbacks=[LambdaCallback(on_epoch_end=full)])
        """,
        r"OSError: the disk is full",
    ),
}


@there
@pytest.mark.parametrize("what", WRONG)
def test_all_ranks_end_and_say_why_where(what):
    script, expected = WRONG[what]
    status, _, errors = told(started(textwrap.dedent(COMMON) + textwrap.dedent(script), 2))
    assert status != 0 and re.search(expected, errors), errors


@there
def test_an_interrupt_ends_all_ranks_behind_one_step_and_what_catches_it_goes_on(tmp_path):
    """Ctrl-C comes to a rank at any step. Were it heeded there, the others would wait in the next one."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import numpy as np
        from levels_more.distributed import DistributedDataParallel
        from levels_more.high_level import LambdaCallback, Sequential
        from levels_more.mid_level import Dense

        net = Sequential([Dense(1)])
        model = DistributedDataParallel(net, timeout=20.0)
        model.compile("adam", "mse")
        x = np.ones((9000, 1), "f4")
        told = LambdaCallback(on_epoch_begin=lambda epoch: print("epoch", epoch, flush=True))
        try:
            model.fit(x, x, batch_size=3, epochs=1000, verbose=0, callbacks=[told])
        except KeyboardInterrupt:
            model.save(sys.argv[1])
            steps = int(net.optimizer.iterations.numpy())
            print(f"caught {steps % 3000} {len(model.history.losses) % 3000}\\n", end="")
        """)
    )
    command = [sys.executable, "-m", "levels_more.distributed.launch", "3", str(script), str(tmp_path / "net")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    here = build.environment(build.ROOT) | {"NUMBA_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=here, start_new_session=True, **pipes)
    until(process, "epoch 1")
    time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    status, out, errors = told(process, 60)
    assert status == 0 and out.count("caught 0 0\n") == 3, out + errors
    assert (tmp_path / "net").is_dir()


# What callbacks do on rank 0, all ranks do; a model that is asked there asks nobody.


@there
def test_callbacks_on_rank_0_change_all_ranks(tmp_path):
    script = """
        import sys
        import numpy as np
        from levels_more.high_level import Callback, EarlyStopping, LearningRateScheduler, Sequential
        from levels_more.distributed import DistributedDataParallel, world
        from levels_more.mid_level import Adam, Dense

        class Mine(Callback):
            def on_train_batch_end(self, step, logs):
                heard.append(step)

            def on_epoch_end(self, epoch, logs):
                logs["asked"] = float(self.model.predict(x[:1])[0, 0])
                if epoch == 1:
                    self.model.set_weights([w * 0.5 for w in self.model.get_weights()])
                self.model.stop_training = epoch == 3

        heard, x = [], np.linspace(-1.0, 1.0, 30)[:, None]
        model = DistributedDataParallel(Sequential([Dense(1)]))
        model.compile(Adam(0.1), "mse")
        best = EarlyStopping("loss", mode="max", restore_best_weights=True)
        told = [Mine(), LearningRateScheduler(lambda epoch, rate: rate / 2), best]
        history = model.fit(x, 3.0 * x, epochs=9, batch_size=10, verbose=1, seed=1, callbacks=told[:2])
        again = model.fit(x, 3.0 * x, epochs=9, batch_size=10, verbose=0, seed=1, callbacks=told[2:])
        model.trainable = False
        assert model.module.trainable_variables == []
        model.save(sys.argv[1])
        line = repr((len(heard), history.history, again.history, model.get_weights(), model.optimizer.learning_rate))
        lines = world().comm.gather(line) if world().comm else [line]
        if world().rank == 0:
            assert {line.replace("(0,", "(12,", 1) for line in lines} == {lines[0]}, lines
            print(lines[0])
    """
    by_itself = script.replace("DistributedDataParallel(Seq", "(Seq").replace("model.module", "model")
    alone = ran(by_itself, None, tmp_path / "alone")
    several = ran(script, 3, tmp_path / "several")
    last = alone.splitlines()[-1]  # before it a line for each epoch, for no bar can move here
    assert several == alone and last.startswith("(12,") and "'asked': [" in last
    assert (tmp_path / "several").is_dir() and (tmp_path / "alone").is_dir()


@there
def test_collectives_and_their_gradients():
    out = ran(
        """
        import numpy as np
        from levels_more.low_level import GradientTape, Variable, function, reduce_sum
        from levels_more.distributed import all_gather, all_reduce, broadcast, world
        from levels_more.mid_level import Dataset

        rank, size = world()[:2]
        for dtype in ("float32", "float64", "int64"):
            x = (np.arange(4) + 10 * rank).astype(dtype)
            assert all_gather(x[: rank + 1]).numpy().tolist() == [10 * r + k for r in range(size) for k in range(r + 1)]
            assert all_reduce(x).numpy().tolist() == [sum(10 * r + k for r in range(size)) for k in range(4)]
            assert broadcast(x, 1).numpy().tolist() == [10, 11, 12, 13]
        tiny = np.array([0.1, 0.2, 0.3][rank])
        assert all_reduce(tiny).numpy() == ((0.0 + 0.1) + 0.2) + 0.3, "from rank 0 up"
        v = Variable(np.full((2, 2), 1.0 + rank))
        weights = np.arange(12.0).reshape(6, 2)
        for collective, seed, expected in (
            (all_gather, weights, weights[2 * rank : 2 * rank + 2]),
            (all_reduce, weights[:2], weights[:2]),
            (lambda v: broadcast(v, 2), weights[:2], weights[:2] * (rank == 2)),
        ):
            def slope():
                with GradientTape() as tape:
                    y = reduce_sum(collective(v) * seed)
                return tape.gradient(y, v)
            for run in (slope, function(slope)):
                assert (run().numpy() == expected).all()
        parts = Dataset.from_tensor_slices((np.arange(10.0),)).shard(size, rank)
        seen = all_gather(np.concatenate([x for x, in parts.batch(2)])).numpy()
        assert sorted(seen) == [*range(10)] and len(parts) == (4 if rank == 0 else 3)
        print("ok")
        """,
        3,
    )
    assert out.count("ok") == 3, out


# In one process: what is said of a graph, and of one rank.


def spread_out(step, *arrays, ranks=2, rank=0):
    """The ops of a step's graph, cut for one of several ranks: [(op, shape), …]"""
    specs = [constant(array).spec for array in arrays]
    graph = spread(trace(step, specs)[0], len(arrays[0]), World(rank, ranks))
    return [(node.op, node.spec.shape) for node in graph.ops]


X = np.arange(40.0).reshape(10, 4)
W = constant(np.ones((4, 3)))


@pytest.mark.parametrize(
    "step, expected",
    [
        (lambda x: x @ W, [("slice", (5, 4)), ("matmul", (5, 3)), ("all_gather", (10, 3))]),
        (
            lambda x: nn.softmax(reduce_sum(x, 1)),
            [("slice", (5, 4)), ("reduce_sum", (5,)), ("all_gather", (10,)), ("softmax", (10,))],
        ),
        (lambda x: reduce_sum(x, 0), [("reduce_sum", (4,))]),
        (
            lambda x: concat([x, constant(X)], 1),
            [("slice", (5, 4)), ("slice", (5, 4)), ("concat", (5, 8)), ("all_gather", (10, 8))],
        ),
        (lambda x: x + constant(X), [("slice", (5, 4)), ("slice", (5, 4)), ("add", (5, 4)), ("all_gather", (10, 4))]),
        (
            lambda x: reshape(x, (10, 2, 2)) @ constant(np.ones((10, 2, 2))),
            [("slice", (5, 4)), ("reshape", (5, 2, 2)), ("all_gather", (10, 2, 2)), ("matmul", (10, 2, 2))],
        ),
    ],
    ids=lambda x: "",
)
def test_what_goes_row_by_row_is_shared_and_all_else_is_done_whole(step, expected):
    assert spread_out(step, X) == expected


def test_sums_of_float32_are_added_up_and_those_of_float64_are_made_of_all_rows():
    def step(x):
        return reduce_mean(x * x)

    ops = [op for op, _ in spread_out(step, X.astype("f4"))]
    assert ops == ["slice", "multiply", "reduce_mean", "multiply", "all_reduce"]
    assert [op for op, _ in spread_out(step, X)] == ["slice", "multiply", "all_gather", "reduce_mean"]


def summand(step, x, ranks, rank):
    """What this rank adds to the sum of all ranks, in a step on the batch x that ends in one sum."""
    found = {}
    for node in spread(trace(step, [constant(x).spec])[0], len(x), World(rank, ranks)).nodes:
        if node.op == "all_reduce":
            return found[node.inputs[0]].numpy()
        if node.op in ("input", "constant"):
            found[node] = constant(x) if node.op == "input" else node.source
        else:
            found[node] = apply(node.op, *(found[each] for each in node.inputs), **node.attrs)


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
@pytest.mark.parametrize("reduce", [reduce_mean, reduce_sum])
def test_each_row_counts_once_whatever_the_shares(reduce, ranks):
    """Of ten rows, three ranks have 3, 3 and 4. The mean is that of all rows, not of the ranks' means."""
    x = (X**2).astype("f4")
    total = sum(summand(lambda x: reduce(x * x), x, ranks, rank) for rank in range(ranks))
    assert total == pytest.approx(float(reduce(constant(x * x))), rel=1e-6)


@pytest.mark.quick
@pytest.mark.parametrize("batch, ranks", [(10, 3), (7, 7), (5, 4), (2, 3), (1000, 16)])
def test_shares_are_all_rows_once_and_differ_by_one_at_most(batch, ranks):
    ends = shares(batch, ranks)
    counts = np.diff(ends)
    assert ends[0] == 0 and ends[-1] == batch and counts.max() - counts.min() <= 1
    x = np.ones((batch, 2))
    ops = [spread_out(lambda x: exp(x), x, ranks=ranks, rank=rank) for rank in range(ranks)]
    if batch < ranks:
        assert ops == [[("exp", (batch, 2))]] * ranks
    else:
        assert [shape for found in ops for op, shape in found if op == "exp"] == [(count, 2) for count in counts]


def test_ranks_whose_shares_differ_by_a_row_send_the_same_messages():
    """Rows of 15 and 16 times 4,096 bytes: one is below LARGE, one is not."""
    w = Variable(np.ones((4, 512)))

    def step(x):
        y = x @ w
        return reduce_sum(exp(y)) + reduce_sum(x * x)

    graph = trace(step, [constant(np.ones((31, 4))).spec])[0]
    parts = [backend.StagedProgram(spread(graph, 31, World(rank, 2)), 31).parts for rank in (0, 1)]
    first, second = ([[(m.op, type(m)) for m in messages] for _, _, messages in each] for each in parts)
    assert first == second and any(first)


def test_one_rank_is_its_own_world():
    assert world() == World(0, 1)
    x = constant(np.arange(6.0).reshape(3, 2))
    for collective in (all_gather, all_reduce, broadcast):
        assert (collective(x).numpy() == x.numpy()).all()
        assert (function(collective)(x).numpy() == x.numpy()).all()
        v = Variable(x)
        with GradientTape() as tape:
            y = reduce_sum(collective(v) * x)
        assert (tape.gradient(y, v).numpy() == x.numpy()).all()
    with use("all_reduce", "cpu", lambda out, x: out.__setitem__(..., x)):
        assert all_reduce(2.0).numpy() == 2.0


def test_a_seed_and_initial_epoch_go_on_as_they_would_have():
    def trained(*parts):
        net = Sequential([Dense(3, "relu"), Dense(1)])
        net.build((None, 4), "float64")
        net.set_weights([np.full(w.shape, 0.1) for w in net.get_weights()])
        net.compile("sgd", "mse")
        for first, last in parts:
            net.fit(X / 40, X[:, :1] / 40, batch_size=3, initial_epoch=first, epochs=last, seed=4, verbose=0)
        return b"".join(w.tobytes() for w in net.get_weights())

    assert trained((0, 5)) == trained((0, 2), (2, 5)) != trained((0, 2), (0, 3))
