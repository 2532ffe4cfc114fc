"""Rows that no rank has all of: the losses of one process, what is refused before the first step, and the memory."""

import json
import textwrap

import numpy as np
import pytest
from ranks import ran, started, there, told

from levels_more.mid_level import Dataset

ROWS = 203
BATCH = 20
CUTS = {2: [0, 120, ROWS], 3: [0, 60, 150, ROWS], 4: [0, 40, 60, 130, ROWS]}  # where the rows of each rank end

NET = """
    import json, os, sys
    import numpy as np
    from levels.mid_level import RANDOM
    from levels_more.distributed import DistributedDataParallel, world
    from levels_more.high_level import Callback, Sequential
    from levels_more.mid_level import Adam, BatchNormalization, Dataset, Dense

    draw = np.random.default_rng(0)
    x = draw.normal(size=(203, 4)).astype("f4")
    y = (x @ np.array([[1.0], [2.0], [-1.0], [0.5]], "f4") + draw.normal(size=(203, 1)) / 9).astype("f4")
    RANDOM.seed(1)
    net = Sequential([Dense(8, activation="relu"), BatchNormalization(), Dense(1)])
    net.compile(Adam(0.01), "mse", metrics=["mae"])
    rank, size = world().rank, world().size
    several = DistributedDataParallel(net)
"""
OWN = (
    NET
    + """
    cuts = json.loads(sys.argv[1])
    a, b = cuts[rank], cuts[rank + 1]
    if sys.argv[2] == "generator":
        rows = Dataset.from_generator(lambda: ((x[k : min(k + 20, b)], y[k : min(k + 20, b)]) for k in range(a, b, 20)))
    else:
        rows = Dataset.from_tensor_slices((x[a:b], y[a:b])).batch(20)
    history = several.fit(rows, epochs=3, verbose=0, validation_data=(x[:50], y[:50]))
    found = [list(map(float, history.losses)), history.epochs, several.evaluate(rows)]
    if rank == 0:
        print(json.dumps(found))
"""
)


def of_one_process(ranks):
    """The same training in this process, on the batches of all ranks together."""
    space = {}
    exec(textwrap.dedent(NET), space)
    x, y, net = space["x"], space["y"], space["net"]
    parts = [
        [np.arange(k, min(k + BATCH, b)) for k in range(a, b, BATCH)]
        for a, b in zip(CUTS[ranks], CUTS[ranks][1:], strict=False)
    ]
    steps = max(map(len, parts))
    batches = [np.concatenate([part[k] for part in parts if k < len(part)]) for k in range(steps)]
    rows = Dataset.from_batches(x, y, batches)
    history = net.fit(rows, epochs=3, verbose=0, validation_data=(x[:50], y[:50]))
    return [list(map(float, history.losses)), history.epochs, net.evaluate(rows)]


@there
@pytest.mark.parametrize("ranks, source", [(2, "arrays"), (4, "generator")])
def test_ranks_with_rows_of_their_own_train_as_one_process_does(ranks, source):
    """With parts of unequal length: the last batches have rows of some ranks only. Losses, means, metrics, evaluate."""
    losses, epochs, evaluated = json.loads(ran(OWN, ranks, json.dumps(CUTS[ranks]), source))
    one_losses, one_epochs, one_evaluated = of_one_process(ranks)
    assert len(losses) == len(one_losses)
    np.testing.assert_allclose(losses, one_losses, rtol=1e-5)
    np.testing.assert_allclose(evaluated, one_evaluated, rtol=1e-5)
    for found, expected in zip(epochs, one_epochs, strict=True):
        assert found.keys() == expected.keys() == {"loss", "mae", "val_loss", "val_mae"}
        np.testing.assert_allclose([*found.values()], [*expected.values()], rtol=1e-5)


REFUSED = {
    "same rows": ("(x[:100], y[:100]) if rank else (x[5:], y[5:])", "ValueError: ranks 0 and 1 have"),
    "columns": ("(x[rank * 100 :, : 4 - rank], y[rank * 100 :])", "expected the same columns"),
    "dtypes": ("(x[rank * 100 :].astype('f8' if rank else 'f4'), y[rank * 100 :])", "expected the same columns"),
    "float64": ("(x[rank * 100 :].astype('f8'), y[rank * 100 :])", "TypeError: the ranks have rows of their own"),
}


@there
@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_told_before_the_first_step(what):
    rows, message = REFUSED[what]
    script = (
        NET
        + f"""
    class Told(Callback):
        def on_train_begin(self, logs=None):
            print("a training begins", flush=True)

    rows = Dataset.from_tensor_slices({rows}).batch(20)
    several.fit(rows, epochs=2, verbose=0, callbacks=[Told()])
"""
    )
    status, out, errors = told(started(script, 2))
    assert status and message in errors and "a training begins" not in out, errors


@there
def test_a_rank_without_rows_and_predict_are_refused_and_equal_data_are_shared_out_as_before():
    script = (
        NET
        + """
    rows = Dataset.from_generator(lambda: [(x[:9], y[:9])] * (1 - rank))
    for act in (
        lambda: several.fit(rows, verbose=0),
        lambda: several.predict(Dataset.from_tensor_slices((x, y)).shard(2, rank).batch(20)),
    ):
        try:
            act()
        except (TypeError, ValueError) as error:
            os.write(1, f"{rank} {error}\\n".encode())  # at once: ranks share the output
    whole = several.fit(Dataset.from_generator(lambda: [(x, y)]), epochs=1, verbose=0).losses
    os.write(1, f"{rank} {len(whole)} {float(whole[0])}\\n".encode())
"""
    )
    said = ran(script, 2)
    assert said.count("rank 1 has no rows; give each rank a part of the data, or start fewer ranks") == 2
    assert said.count("predict: the ranks have rows of their own; call predict of model.module, on each rank") == 2
    lines = [line.split() for line in said.splitlines() if line[2:4] == "1 "]
    assert len(lines) == 2 and lines[0][1:] == lines[1][1:]


PEAK = """
    import os, sys
    import numpy as np
    from levels_more.distributed import DistributedDataParallel, world
    from levels_more.high_level import Sequential
    from levels_more.mid_level import SGD, Dataset, Dense

    def private():
        with open("/proc/self/smaps_rollup") as told:
            return sum(int(line.split()[1]) for line in told if line.startswith(("Anonymous:", "Swap:")))

    rank, size = world().rank, world().size
    count, columns = 40_000, 256
    x = np.memmap(sys.argv[1], "f4", "r", 0, (count, columns))
    own = Dataset.from_tensor_slices((x[rank::size], x[rank::size, :1])).batch(100)
    several = DistributedDataParallel(Sequential([Dense(8, activation="relu"), Dense(1)]))
    several.module.compile(SGD(1e-3), "mse")
    several.fit(Dataset.from_tensor_slices((x[rank:400:size], x[rank:400:size, :1])).batch(100), verbose=0)
    before = private()
    several.fit(own, verbose=0)
    os.write(1, f"{rank} {private() - before} {x.nbytes // size // 1024}\\n".encode())  # at once: ranks share the output
"""


@there
@pytest.mark.skipif("not __import__('sys').platform.startswith('linux')", reason="memory is read from /proc")
def test_a_file_is_read_batch_by_batch(tmp_path):
    """What a rank keeps of it in memory of its own is far below its share of the rows."""
    path = tmp_path / "rows"
    np.random.default_rng(0).normal(size=(40_000, 256)).astype("f4").tofile(path)
    lines = [line.split() for line in ran(PEAK, 2, path).splitlines()]
    assert len(lines) == 2
    for _, grown, share in lines:
        assert int(grown) < int(share) / 4, f"{grown} kB of {share} kB"
