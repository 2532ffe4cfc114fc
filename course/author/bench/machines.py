"""Time several processes on this computer: `DistributedDataParallel` under mpiexec, and PyTorch's with gloo.

Both have the same weights, batches and shares of rows, in float32. Each rank runs this file with its library's Python.
The first rank reports the seconds of a step, and the losses, which are compared.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from course.author.bench.work import load

# WARM: steps before the clock starts
RANKS = (1, 2, 4)
WARM = 20
# seconds for a training; the limit for the losses' distance, relative to max(1, loss)
PATIENCE = 300
APART = 1e-3


def by_levels(work, ranks):
    """Return (rank, train(batches) -> losses, start() resets weights, meet() is a barrier, whole(losses) -> array)."""
    from levels_more.distributed import DistributedDataParallel, world
    from levels_more.high_level import Sequential
    from levels_more.mid_level import SGD, Dataset, Dense

    *hidden, last = (w.shape[1] for w in work.weights[::2])
    end = ("sigmoid", "binary_crossentropy") if work.loss == "bce" else ("softmax", "categorical_crossentropy")
    net = Sequential([*(Dense(n, "relu") for n in hidden), Dense(last, end[0])])
    net.build((None, work.x.shape[1]))
    net.set_weights(work.weights)
    model = DistributedDataParallel(net) if ranks > 1 else net
    model.compile(SGD(work.rate), end[1])

    def train(batches):
        return model.fit(Dataset.from_batches(work.x, work.y, batches), verbose=0).losses

    meet = world().comm.Barrier if ranks > 1 else list  # one rank needs no barrier
    return world().rank, train, lambda: net.set_weights(work.weights), meet, np.asarray


def by_torch(work, ranks):
    import torch
    from torch import distributed, nn

    rank, threads = (int(os.environ[name]) for name in ("RANK", "OMP_NUM_THREADS"))
    torch.set_num_threads(threads)
    parts = [part for w in work.weights[::2] for part in (nn.Linear(*w.shape), nn.ReLU())][:-1]
    net = nn.Sequential(*parts, *[nn.Sigmoid()] * (work.loss == "bce"))
    x, y = torch.tensor(work.x), torch.tensor(work.y)
    loss_of = nn.BCELoss() if work.loss == "bce" else nn.CrossEntropyLoss()
    first, last = (work.batch * r // ranks for r in (rank, rank + 1))

    def start():
        with torch.no_grad():
            for variable, w in zip(net.parameters(), work.weights, strict=True):
                variable.copy_(torch.tensor(w.T).reshape(variable.shape))

    def train(batches):
        losses = torch.empty(len(batches))
        for number, own in enumerate(torch.tensor(batches)[:, first:last]):
            optimizer.zero_grad()
            loss = loss_of(model(x[own]), y[own])
            loss.backward()
            optimizer.step()
            losses[number] = loss.detach()
        return losses

    def whole(losses):
        distributed.all_reduce(losses)
        distributed.destroy_process_group()  # otherwise its threads end the process with an error
        return losses.numpy() / ranks

    start()
    model, optimizer = net, torch.optim.SGD(net.parameters(), work.rate)
    if ranks == 1:
        return rank, train, start, list, np.asarray
    distributed.init_process_group("gloo", init_method=os.environ["MEET"], rank=rank, world_size=ranks)
    model = nn.parallel.DistributedDataParallel(net)
    return rank, train, start, distributed.barrier, whole


def main(library, ranks, file):
    """Train as one rank, and print {"seconds": of a step, "losses"} as JSON on rank 0."""
    work = load(file)
    made_by = {"levels": by_levels, "torch": by_torch}[library]
    batches = work.batches(work.order)
    rank, train, start, meet, whole = made_by(work, int(ranks))
    train(batches[:WARM])
    start()
    meet()
    begun = time.perf_counter()
    losses = train(batches)
    meet()
    told = {"seconds": (time.perf_counter() - begun) / len(batches), "losses": whole(losses).tolist()}
    if rank == 0:
        print(json.dumps(told))


def trained(library, python, ranks, file, environment):
    """Train on so many ranks. Returns the first rank's report. Raises RuntimeError with the errors if a rank fails."""
    command = [python, "-m", "course.author.bench.machines", library, str(ranks), file]
    if library == "levels" and ranks > 1:
        from levels_more.distributed.launch import mpiexec

        command = [mpiexec(), "-n", str(ranks), *command]
    environment |= {"MEET": Path(f"{file}.{time.time_ns()}").as_uri()}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    own = [{"RANK": str(rank)} for rank in range(ranks if library == "torch" else 1)]
    made = [subprocess.Popen(command, env=environment | more, **options) for more in own]
    try:
        told = [process.communicate(timeout=PATIENCE) for process in made]
    finally:
        for process in made:
            process.kill()
    if any(process.returncode for process in made):
        raise RuntimeError(f"{library}, {ranks} ranks: {''.join(errors for _, errors in told)[-500:]}")
    return json.loads(told[0][0].splitlines()[-1])


def measured(works, python, environment, repeats, folder):
    """Return a row per net and number of ranks: (name, ranks, our seconds per step, PyTorch's, ratio, losses apart).

    works: {name: Work}; python: PyTorch's; environment(threads) -> dict. Raises RuntimeError if losses differ too much.
    """
    pythons = {"levels": sys.executable, "torch": python}
    rows = []
    for (name, work), ranks in itertools.product(works.items(), RANKS):
        file = str(Path(folder) / "work.npz")
        threads = max(1, (os.cpu_count() or 1) // ranks)
        work.save(file)
        kept = environment(threads)
        both = [[trained(k, p, ranks, file, kept) for k, p in pythons.items()] for _ in range(repeats)]
        times, losses = (np.array([[run[what] for run in pair] for pair in both]) for what in ("seconds", "losses"))
        apart = float((abs(losses[:, 0] - losses[:, 1]) / np.maximum(1.0, losses[:, 1])).max())
        if not apart < APART:
            raise RuntimeError(f"{name}, {ranks} ranks: the losses are {apart:.1g} apart")
        rows.append((name, ranks, *np.median(times, 0), float(np.median(times[:, 1] / times[:, 0])), apart))
    return rows


def missing(python):
    """Return why this cannot be measured, or None."""
    if importlib.util.find_spec("mpi4py") is None:
        return "MPI is not there: pip install mpi4py mpich"
    found = subprocess.run([python, "-c", "import torch.distributed"], stderr=subprocess.DEVNULL)
    return "PyTorch is not there: python3 -m course bench --peer torch" if found.returncode else None


if __name__ == "__main__":
    main(*sys.argv[1:])
