# %% [markdown]
# # 05 more · Several machines
#
# **In this notebook several processes train one net, one of them is killed, and no bit of the result changes.**
#
# It needs notebook 05 (`fit`), and from 03 the door, the rules and the traced graph. It takes
# `levels_more/distributed/collectives.py` and its
# neighbours apart. Nothing is exported.
#
# It uses MPI, ipyparallel and safetensors, which `python3 -m course setup` adds. (On Windows MPI has to be added by hand:
# `.venv\Scripts\python -m pip install mpi4py impi-rt ipyparallel`.)

# %%
from course import build, figures

build.watch("more/05_machines", "mpi4py", "ipyparallel", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
import hashlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from course import tasks
from course.figures import machine, page
from course.inspection.graphs import listed
from course.practice import checks
from levels_more.distributed import World, collectives, launch, partition
from levels_more.kernels import KERNELS
from levels_more.low_level import VJPS, GradientTape, Variable, reduce_mean, trace
from levels_more.mid_level import Adam
from levels_more.saving import load_model

# What the processes find, they find by these: the programs beside this Python, and the modules that this kernel sees.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder, task = Path(place.name), tasks.rings()
x, y = task.x, task.y


def digest(arrays):
    """Sixteen digits that change with any bit of these arrays."""
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()[:16]


# %% [markdown]
# ## One program, run twice (3 min)
#
# A computer has one memory, a cluster has many. Processes that share no memory are the same case, so two of them on your own
# computer can stand for two machines. **MPI** (message passing interface, [1994](https://www.mpi-forum.org/docs/)) is how
# they find each other. It starts one program several times and numbers the processes: these are the **ranks**.
#
# ipyparallel starts them from a notebook. A function that we `apply` then runs in all of them.

# %%
import ipyparallel


def start(count):
    """So many ranks: (their cluster, all of them together)."""
    cluster = ipyparallel.Cluster(engines="mpi", n=count, log_level=logging.ERROR)
    return cluster, cluster.start_and_connect_sync()[:]


# %% tags=["nbval-ignore-output"]
cluster, ranks = start(2)


# %%
def meet():
    from levels_more.distributed import all_reduce, world

    rank, size, *_ = world()
    return f"rank {rank} of {size} has {10.0 + rank} and gets {all_reduce(10.0 + rank).numpy()}"


print(*ranks.apply_sync(meet), sep="\n")

# %% [markdown]
# Both came with a number of their own, both left with the sum. Such an op is a **collective**: all ranks call it, and
# it ends when all have come.
#
# ## A collective is a kernel (4 min)
#
# What is new in our house? A row of the table, on level 2:

# %%
print([row for row in repr(KERNELS).splitlines() if row.split()[0] in collectives.COLLECTIVES])
page.source(collectives.all_reduce_kernel)

# %% [markdown]
# One line calls MPI. Only float64 is done by hand: MPI may add in any order, and floats tell orders apart. Ours begins at
# rank 0, always.
#
# And a row of level 3's table, for the way back. All ranks have a part of one computation, with one loss *L*. From
# y = x₀ + x₁ follows ∂L/∂x₀ = ∂L/∂y. So the rule hands on what it gets. Who gathers rows gets back his own rows:

# %%
print(VJPS["all_reduce"][0](7.0, None, None))  # dy, y, x -> the gradient of x
page.source(collectives.rows_back)

# %% [markdown]
# ## A step by hand (6 min)
#
# Two ranks, a line, and ten rows. Each rank takes five of them (`shard`, as in tf.data, deals them out like cards), works out its
# gradient, and the gradients are added up. A mean over ten rows is half the sum of two means over five.


# %%
def by_hand():
    from course import tasks
    from levels_more.distributed import all_reduce, world
    from levels_more.low_level import GradientTape, Variable, reduce_mean
    from levels_more.mid_level import Dataset

    line, (rank, size, *_) = tasks.linear(), world()
    w = Variable(line.weights[0])
    ten = Dataset.from_tensor_slices((line.x[:10], line.y[:10]))
    (mine,) = ten.shard(size, rank).batch(5)
    with GradientTape() as tape:
        error = mine[0] @ w - mine[1]
        loss = reduce_mean(error * error)
    return all_reduce(tape.gradient(loss, w)).numpy() / size


for rank, dw in enumerate(ranks.apply_sync(by_hand)):
    print("rank", rank, *map(float.hex, dw.ravel().tolist()))

# %% tags=["hide-input"]
checks.predict(
    "Now one process does the ten rows at once, in float64. Does it get the same gradient?",
    choices=["yes, every bit", "up to the last digits", "half of it"],
    answer="up to the last digits",
    because="The same ten terms are added, but in another order: first within a rank, then across. Each addition rounds, so "
    "other orders end in other last bits. Both are right, to fifteen digits.",
)

# %%
line = tasks.linear()
w = Variable(line.weights[0])
with GradientTape() as tape:
    error = line.x[:10] @ w - line.y[:10]
    loss = reduce_mean(error * error)
print("alone ", *map(float.hex, tape.gradient(loss, w).numpy().ravel().tolist()))

# %% [markdown]
# This is how nearly everybody trains on several machines: **data parallel**, gradients added up. It has a price. The number
# of ranks is now part of the result: train on four instead of two, and you get another net. A bug that shows on
# eight machines may not show on one.
#
# ## Gather rows, not gradients (6 min)
#
# Can it be had without? A gradient is a sum over rows. If every rank has *all rows* of what is added, and adds them in
# their order, the number of ranks leaves no trace. The rows, in turn, are cheap to split: what happens to one row in a matrix
# product, a bias or a relu has nothing to do with the others.
#
# So we sort the ops of a step. What goes **row by row** is shared out. A **sum over rows** is done by everybody, on rows that
# were gathered. What is neither, such as a new weight, is done by everybody too. Level 3 has written the whole step down as a
# graph. We only have to go through it once:

# %%
page.source(partition.Partitioner.enter)

# %% [markdown]
# The table `BY_ROWS` says of each op when it goes row by row. An op that nobody entered there is done whole: slow, never
# wrong. Here is the step of a line, first as it is, then for rank 0 of 2:

# %%
w = Variable(line.weights[0], name="w")


def step(rows, target):
    with GradientTape() as tape:
        error = rows @ w - target
        loss = reduce_mean(error * error)
    w.assign(w - 0.01 * tape.gradient(loss, w))
    return loss


ten_rows = [array.device.spec((10, *array.shape[1:]), array.dtype) for array in map(Variable, (line.x, line.y))]
graph = trace(step, ten_rows)[0]
print(listed(graph))

# %%
print(listed(partition.spread(graph, 10, World(0, 2))))

# %% [markdown]
# Five rows go through the ops. Two gathers bring ten together: the squares, for the loss, and what the gradient is made of. The
# product that gives the gradient is done by both ranks. That is the price: of a layer's three products, one is not shared.
#
# All of a stage that has to travel travels in one message, for a message costs more than its bytes, as we shall see.
#
# ## fit, on any number of ranks (6 min)
#
# On level 5 all this is one line. `DistributedDataParallel` is PyTorch's name; `compile` and `fit` stay as they are. All ranks
# are given all rows, without `shard`: of each batch, `fit` takes a rank's share. (Ranks that were given different rows are told so.)

# %%
program = """
from course import tasks
from levels_more.distributed import DistributedDataParallel
from levels_more.high_level import Sequential
from levels_more.mid_level import Adam, Dense

task = tasks.rings()
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
net.build((None, 2), "float64")
net.set_weights(task.weights)
net.compile(Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
model = DistributedDataParallel(net)
history = model.fit(task.x, task.y, batch_size=100, epochs=3, seed=7, verbose=0)
weights = net.get_weights()
"""
ranks.execute(program, block=True)
for rank, weights in enumerate(ranks["weights"]):
    print("rank", rank, digest(weights))

# %% tags=["hide-input"]
checks.predict(
    "One process, without MPI, trains the same net on the same batches. Which of its weights differ?",
    choices=["none", "a few, in their last bits", "all, in their last bits"],
    answer="none",
    because="Each rank added the same rows in the same order as one process does. That holds for any number of ranks, also "
    "where a batch does not divide, and for the accuracy as well.",
)

# %%
alone = {}
exec(program, alone)
print("alone ", digest(alone["weights"]))
print("the same losses, too:", (ranks["history"][0].losses == alone["history"].losses).all())
print("the same accuracies: ", ranks["history"][1].history["accuracy"] == alone["history"].history["accuracy"])

# %% [markdown]
# The program ran as it stands: with MPI on two ranks, here in this kernel on none. In a terminal it is
# `mpiexec -n 4 python train.py`, or `python -m levels_more.distributed.launch 4 train.py`, which finds the `mpiexec` beside
# its Python.
#
# In float32 the dtype decides otherwise, as in the whole course: there each rank adds its own rows, and the sums are added up.
# That is less to compute, and the last bits depend on the number of ranks.
#
# **A good place to stop.** Several processes give the bits of one.
#
# ## What a message costs (13 min)
#
# So far nobody asked whether it pays. On level 1 we measured what a load costs: some time before it starts, then so many
# bytes a second. A message is the same, with larger numbers.

# %% tags=["nbval-ignore-output"]
measure = '''
import statistics
from levels_more.distributed import all_reduce
from levels_more.low_level import constant

def seconds(nbytes):
    """Of an all_reduce of so many bytes, the median of several."""
    array, times = constant(np.ones(nbytes // 4, "f4")), []
    for _ in range(15):
        begun = time.perf_counter()
        all_reduce(array)
        times.append(time.perf_counter() - begun)
    return statistics.median(times)

sizes = [4 * 4**k for k in range(11)]
times = [seconds(size) for size in sizes]
'''
ranks.execute("import time; import numpy as np" + measure, block=True)
sizes, times = ranks["sizes"][0], ranks["times"][0]
latency = float(min(times))
beyond = [
    max(seconds - latency, 1e-9) for seconds in times[-4:]
]  # on a busy machine a long message may be the quickest
bandwidth = float(np.median(np.array(sizes[-4:]) / beyond))
print(f"latency {1e6 * latency:.0f} µs, bandwidth {bandwidth / 1e9:.2f} GB/s")

# %% tags=["nbval-ignore-output"]
machine.messages(sizes, times, latency, bandwidth)

# %% [markdown]
# Short messages all cost the same: the latency. So seven gradients in seven messages cost seven times as much as in one.
#
# How do *n* ranks add arrays of *b* bytes? In a **ring**: each passes a piece on to its neighbour, n − 1 times until every
# piece is summed, and n − 1 times until everybody has all sums. Each of these 2(n − 1) messages has b/n bytes:
#
# $$t = 2(n-1)\cdot\text{latency} + 2\,\frac{n-1}{n}\cdot\frac{b}{\text{bandwidth}}$$
#
# However many ranks there are, nobody sends more than 2b. (We have measured two ranks, where the formula is 2 latencies and b
# bytes: so our two numbers hold the factors already.) For a step comes the work, shared by *n*:


# %%
def ring(ranks, nbytes, latency, bandwidth):
    """Seconds that so many ranks take to add up arrays of so many bytes; latency of one message, in seconds."""
    return 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * nbytes / bandwidth


def step_time(ranks, work, nbytes, latency, bandwidth):
    """Seconds of a step: `work` seconds, shared out, and the sum of the gradients."""
    return work / ranks + (ring(ranks, nbytes, latency, bandwidth) if ranks > 1 else 0.0)


# %% tags=["hide-input"]
checks.predict(
    "A step of the rings' net takes a few µs in one process, and its 61 weights are 244 bytes. What do two ranks make of these microseconds?",
    choices=["half of it", "the same", "several times as long"],
    answer="several times as long",
    because="There is a microsecond or two to be won, and a message alone costs several. To this comes the Python between our programs and MPI. "
    "Two ranks on one computer lose to one, by far, wherever a step is shorter than a message.",
)

# %%
steps = folder / "steps.py"
steps.write_text("""
import json, sys, time
import numpy as np
from levels_more.distributed import DistributedDataParallel
from levels_more.high_level import Sequential
from levels_more.distributed import world
from levels_more.mid_level import SGD, Dense

widths, batch = json.loads(sys.argv[1]), 256
x, y = (np.random.default_rng(0).normal(size=(2048, n)).astype("f4") for n in (widths[0], widths[-1]))
net = Sequential([*(Dense(n, "relu") for n in widths[1:-1]), Dense(widths[-1])])
net.compile(SGD(0.001), "mse")
model = DistributedDataParallel(net) if world().comm.size > 1 else net
model.fit(x, y, batch_size=batch, verbose=0)
begun = time.perf_counter()
model.fit(x, y, batch_size=batch, epochs=5, verbose=0)
if world().rank == 0:
    print((time.perf_counter() - begun) / 40)
""")


def measured(ranks, widths):
    """Seconds of a step of this net in so many ranks, each with one thread."""
    command = [launch.mpiexec(), "-n", str(ranks), sys.executable, str(steps), str(widths)]
    here = os.environ | {"NUMBA_NUM_THREADS": "1"}
    return float(subprocess.run(command, env=here, capture_output=True, text=True, check=True).stdout)


# %% [markdown]
# Each net runs in 1, 2 and 4 ranks of one thread. The prediction knows how many cores your computer has to share the work.

# %% tags=["nbval-ignore-output"]
for widths in ([2, 4, 8, 1], [784, 512, 512, 10]):
    nbytes, one = 4 * sum((p + 1) * q for p, q in zip(widths, widths[1:])), measured(1, widths)
    print(f"{'-'.join(map(str, widths))}: one process {1e6 * one:.0f} µs")
    for n in (2, 4):
        work = one * n / min(n, os.cpu_count())
        predicted = step_time(n, work, nbytes, latency / 2, bandwidth)
        print(f"   {n} ranks: predicted {1e6 * predicted:6.0f} µs, measured {1e6 * measured(n, widths):6.0f} µs")

# %% [markdown]
# The small net loses, and by more than predicted: the formula knows the message, not the Python around it. For the large one it
# depends on your computer: the formula gives two ranks two computers, yours gives them one, whose cores and whose way to memory
# they share. And all have one thread here. A process alone that gives its products to all cores is ahead of two ranks with both
# nets (*course/bench/results.md*, beside PyTorch's).
#
# What two ranks on one computer are good for is to try, at your desk, what will run on a hundred machines.
#
# ## A rank dies (9 min)
#
# On a thousand machines, one fails every day. What then? First a training that saves itself after each epoch, with a little
# pause so that we can come between.

# %%
goes_on = f"""
from pathlib import Path
from levels_more.high_level import LambdaCallback, ModelCheckpoint
from levels_more.saving import load_model

saved, epochs = Path({str(folder)!r}, "net"), 6
if saved.exists():
    net = load_model(saved)
    model = DistributedDataParallel(net)
    done = int(net.optimizer.iterations.numpy()) // 40
else:
    net.set_weights(task.weights)
    net.compile(Adam(0.01), "binary_crossentropy")
    done = 0
told = [ModelCheckpoint(saved), LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(pause))]
model.fit(task.x, task.y, epochs=epochs, initial_epoch=done, batch_size=100, seed=7, verbose=0, callbacks=told)
weights = net.get_weights()
"""
ranks.execute("import time, os; pause = 1.0", block=True)
numbers = ranks.apply_sync(os.getpid)
work = ranks.execute(goes_on)
while not (folder / "net" / "weights.safetensors").exists():
    time.sleep(0.05)
print("the first epoch is saved, and the training goes on")

# %% [markdown]
# Callbacks run on rank 0 alone, or two ranks would write one file. What they change there, such as the rate or the end, holds
# for all. Now we kill rank 1, in the hardest way there is:

# %% tags=["nbval-ignore-output"]
os.kill(numbers[1], signal.SIGKILL)
began = time.perf_counter()
try:
    work.get(timeout=60)
except Exception as error:
    print(f"{type(error).__name__} after {time.perf_counter() - began:.1f} s")

# %% [markdown]
# MPI has noticed, and ended all ranks: half a training is worth nothing. (A rank that only *hangs* is worse, because it looks
# alive. There the others have a limit: who waits longer than five minutes for somebody says so and ends. `timeout=` sets it.
# Ctrl-C in a terminal is gentler: all ranks stop behind the same epoch. Pressed twice, it ends them at once.)
#
# What is left of the training?

# %%
left = load_model(folder / "net")
done = int(left.optimizer.iterations.numpy())
print("whole epochs, of 40 steps:", done > 0 and done % 40 == 0)

# %% [markdown]
# Whole epochs, and Adam's memory with them. **Your turn.** The cluster is gone; start another one, with *three* ranks if
# you like, and let it go on. `seed` gives the third epoch the order that it would have had.

# %% tags=["nbval-ignore-output"]
cluster.stop_cluster_sync()
cluster, ranks = start(3)

# %%
ranks.execute(program.split("model =")[0] + "import time; pause = 0.0", block=True)
ranks.execute(goes_on, block=True)
for rank, weights in enumerate(ranks["weights"]):
    print("rank", rank, digest(weights))

# %% [markdown]
# And a training that nobody disturbed, of six epochs in one process:

# %%
net = alone["net"]
net.set_weights(task.weights)
net.compile(Adam(0.01), "binary_crossentropy")
net.fit(x, y, batch_size=100, epochs=6, seed=7, verbose=0)
print("alone ", digest(net.get_weights()))

# %% [markdown]
# Two ranks began, one was killed, three went on, and it cannot be seen in a single bit.
#
# ## A thousand machines, on paper (4 min)
#
# The formula needs only other numbers. Let a machine take 0.1 s for its step, 10 million weights be 40 MB, and
# a network have 20 µs and 10 GB/s. We leave the batch as it is, 8,192 rows, and share it out:

# %%
machines_then = [1, 4, 16, 64, 256, 1000]
network = {"nbytes": 40e6, "latency": 20e-6, "bandwidth": 10e9}
for n in machines_then:
    fixed = step_time(n, 0.1, **network)
    grown = step_time(n, 0.1 * n, **network)
    print(
        f"{n:5} machines: {0.1 / fixed:5.1f} times as quick; with {n:4} times the batch {0.1 * n / grown:6.1f} times the rows a second"
    )

# %%
machine.many(machines_then, lambda n: step_time(n, 0.1, **network), lambda n: step_time(n, 0.1 * n, **network) / n)

# %% [markdown]
# With the batch fixed, it stops to pay at about 64 machines, which are eight times as quick as one. Then the step is nearly all
# message, and a ring's latency grows with each machine: a thousand are twice as quick as one.
# (That is why large clusters add in trees and in groups, not in one ring.)
#
# Let the batch grow with the machines, and each keeps its 0.1 s of work. This is how it is done. But it is
# no longer the same training: fewer, larger steps. A larger rate makes up for it up to some batch
# ([Goyal et al., 2017](https://arxiv.org/abs/1706.02677), 8,192 images), and not beyond
# ([Shallue et al., 2019](https://arxiv.org/abs/1811.03600)). Hiding messages behind work helps, too: the sum of the last layer can
# travel while the first one's gradient is computed, as PyTorch's do. (Ours wait until their stage is done.)
#
# The commands, then. On one computer, on a cluster that SLURM manages, and on Kubernetes with the MPI Operator:
#
# ```
# python -m levels_more.distributed.launch 4 train.py  # or mpiexec -n 4
#
# srun --nodes=25 --ntasks-per-node=4 --mpi=pmi2 python train.py   # SLURM: 100 ranks
#
# apiVersion: kubeflow.org/v2beta1   # Kubernetes: kubectl apply -f train.yaml
# kind: MPIJob
# metadata: {name: rings}
# spec:
#   slotsPerWorker: 4
#   mpiImplementation: MPICH
#   mpiReplicaSpecs:
#     Launcher:
#       replicas: 1
#       template: {spec: {containers: [{name: mpi, image: levels,
#         command: [mpiexec, -n, "100", python, train.py]}]}}
#     Worker:
#       replicas: 25
#       template: {spec: {containers: [{name: mpi, image: levels}]}}
# ```
#
# None of these two clusters was at hand: they are on paper, from their manuals. `train.py` is the program above.
#
# ## The same in two frameworks (1 min)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | start | `TF_CONFIG` in each machine's environment | `torchrun --nproc-per-node 4 train.py` | `mpiexec -n 4 python train.py` |
# | the model | made inside `MultiWorkerMirroredStrategy().scope()` | `DistributedDataParallel(model)` | `DistributedDataParallel(model)` |
# | a collective | `tf.distribute.get_replica_context().all_reduce` | `torch.distributed.all_reduce` | `all_reduce` |
# | a part of the data | `dataset.shard(n, i)` | `DistributedSampler` | `dataset.shard(n, i)`; `fit` needs none |
# | sums in an order of their own | no | no | float64: gathered rows |

# %% tags=["nbval-ignore-output"]
cluster.stop_cluster_sync()

# %% [markdown]
# ## Exercises (10 min, optional)
#
# - Start four ranks and train the rings in float32. How far are the weights from those of two ranks?
# - Let rank 1 have other data (`task.x + world().rank`). Who notices, and when?
# - Enter an op of your own by `@scalar`, and use it in a layer. Does `spread` share it out? Then one that turns the order of
#   the rows around.
