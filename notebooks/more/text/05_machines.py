# %% [markdown]
# # 05 more · Several machines
#
# **In this notebook several processes train one net, one of them is killed, and no bit of the result changes.**
#
# You need notebook 05 (`fit`) for this, and `apply`, the gradient rules and the traced graph of notebook 03. The code
# is that of `levels_more/distributed/`. Nothing is exported.
#
# It uses MPI, ipyparallel and safetensors, which `python3 -m course setup` adds. (On Windows MPI has to be added by
# hand: `.venv\Scripts\python -m pip install mpi4py impi-rt ipyparallel`.)

# %%
from course import build, figures

build.watch("more/05_machines", "mpi4py", "ipyparallel", "safetensors")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
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
from course.reader import checks
from course.reader.figures import machine, page
from course.reader.inspection.graphs import listed
from levels_more.distributed import World, collectives, launch, partition
from levels_more.kernels import KERNELS
from levels_more.low_level import VJPS, GradientTape, Variable, reduce_mean, trace
from levels_more.mid_level import Adam
from levels_more.saving import load_model

# The processes must find the programs beside this Python, and the modules of this kernel.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder, task = Path(place.name), tasks.rings()
x, y = task.x, task.y


def digest(arrays):
    """Sixteen digits that change if any bit of these arrays changes."""
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()[:16]


# %% [markdown]
# ## One program, run twice (3 min)
#
# A computer has one memory; a cluster has many. Processes that share no memory are in the same situation, so two
# processes on your own computer can stand for two machines. With **MPI** (message passing interface,
# [1994](https://www.mpi-forum.org/docs/)) they find each other. It starts one program several times and numbers the
# processes. These numbers are the **ranks**, and so the processes themselves are called ranks, too.
#
# ipyparallel starts the ranks from a notebook. A function that we `apply` then runs in all of them.

# %%
import ipyparallel


def start(count):
    """Start so many ranks. Return their cluster, and a view of all of them."""
    cluster = ipyparallel.Cluster(engines="mpi", n=count, log_level=logging.ERROR)
    cluster.start_cluster_sync()
    client = cluster.connect_client_sync()
    client.wait_for_engines(count, timeout=60, interactive=False)  # without a bar of its progress
    return cluster, client[:]


# %% tags=["nbval-ignore-output"]
cluster, ranks = start(2)


# %%
def meet():
    from levels_more.distributed import all_reduce, world

    rank, size, *_ = world()
    return f"rank {rank} of {size} has {10.0 + rank} and gets {all_reduce(10.0 + rank).numpy()}"


print(*ranks.apply_sync(meet), sep="\n")

# %% [markdown]
# Each rank called `all_reduce` with its own number, and each got the sum. Such an op is a **collective**: all ranks
# call it, and it returns when all have called it.
#
# ## A collective is a kernel (3 min)
#
# What does `levels` need for that? A row in the table of level 2:

# %%
print([row for row in repr(KERNELS).splitlines() if row.split()[0] in collectives.COLLECTIVES])
page.source(collectives.all_reduce_kernel)

# %% [markdown]
# One line calls MPI. Only float64 is added by our own code. MPI may add in any order, and in floating point the order
# matters. Ours always starts at rank 0.
#
# It also needs a row in level 3's table of gradient rules. All ranks compute parts of one loss *L*. From y = x₀ + x₁
# follows ∂L/∂x₀ = ∂L/∂y, so the rule for `all_reduce` passes the gradient on unchanged. (The rule for `all_gather`,
# which collects rows, gives each rank the gradient of its own rows.)

# %%
print(VJPS["all_reduce"][0](7.0, None, None))  # dy, y, x -> the gradient of x

# %% [markdown]
# ## A step by hand (7 min)
#
# Two ranks fit a line to ten rows. Each rank takes five of the rows (`shard`, as in tf.data, deals them out like cards)
# and computes its gradient. Then the gradients are added. The mean over ten rows is half the sum of the two means over
# five.


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
# a question: run me
checks.predict(
    "05-machines-gradient",
    "Now one process computes with all ten rows at once, in float64. Does it get the same gradient?",
    choices=["yes, in every bit", "yes, except for the last digits", "no, half of it"],
)

# %%
line = tasks.linear()
w = Variable(line.weights[0])
with GradientTape() as tape:
    error = line.x[:10] @ w - line.y[:10]
    loss = reduce_mean(error * error)
print("alone ", *map(float.hex, tape.gradient(loss, w).numpy().ravel().tolist()))

# %%
checks.answer_to("05-machines-gradient")

# %% [markdown]
# This is the usual way to train on several machines: **data parallel**, with summed gradients. But the result now
# depends on the number of ranks: train on four instead of two, and you get another net. A bug that shows on eight
# machines may not show on one.
#
# ## Gather rows, not gradients (7 min)
#
# Can we avoid that? A gradient is a sum over rows. If every rank has *all rows* of that sum and adds them in order, the
# result does not depend on the number of ranks. The rows themselves are cheap to split: in a matrix product, a bias or
# a relu, each row is computed independently of the others.
#
# So we sort the ops of a step. Ops that work **row by row** are split among the ranks. A **sum over rows** is done by
# every rank, on gathered rows. Everything else, such as the new weight, is done by every rank, too. Level 3 has
# recorded the whole step as a graph, so we only have to walk through it once:

# %%
page.source(partition.Partitioner.enter)

# %% [markdown]
# The table `BY_ROWS` says for each op when it works row by row. An op that is not in the table is done whole by every
# rank: that is slow, but never wrong. Here is the step of a line, first as recorded, then for rank 0 of 2:

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
# Most ops now work on five rows. Two gathers make ten of them: one for the loss, and one for the gradient. Both ranks
# then compute the product that gives the gradient. That is the price: of the three products of a layer, one is not
# split.
#
# All data that a stage has to send goes into one message, because the fixed cost of a message is larger than that of
# its bytes, as we shall see.
#
# ## fit, on any number of ranks (8 min)
#
# On level 5, all of this is one line. `DistributedDataParallel` is PyTorch's name; `compile` and `fit` stay the same.
# Each rank is given all rows, without `shard`, and `fit` takes the rank's share of each batch. (If ranks are given
# different arrays, `fit` raises an error.)

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
# a question: run me
checks.predict(
    "05-machines-weights",
    "One process, without MPI, trains the same net on the same batches. Which of its weights differ?",
    choices=["none", "a few, in their last bits", "all, in their last bits"],
)

# %%
alone = {}
exec(program, alone)
print("alone ", digest(alone["weights"]))
print("the same losses, too:", (ranks["history"][0].losses == alone["history"].losses).all())
print("the same accuracies: ", ranks["history"][1].history["accuracy"] == alone["history"].history["accuracy"])

# %%
checks.answer_to("05-machines-weights")

# %% [markdown]
# The same program ran with MPI on two ranks, and in this kernel without MPI. In a terminal the command is `mpiexec -n 4
# python train.py`, or `python -m levels_more.distributed.launch 4 train.py`, which finds the `mpiexec` of its own
# Python.
#
# In float32 the course accepts other last bits in exchange for speed. Each rank adds its own rows, and then the sums
# are added. That is less work, but the last bits depend on the number of ranks.
#
# ## More rows than one machine holds (5 min)
#
# Where bits are given up anyway, no rank needs all rows. In float32 `fit` also takes a `Dataset` of a rank's own rows:
# a `shard`, an array that only this rank has read, a `np.memmap`, or a generator. The k-th batches of all ranks are one
# batch together. If the rows of a rank are used up, it takes part with a batch of no rows, until all have none.

# %%
sharded = """
from course import tasks
from levels_more.distributed import DistributedDataParallel, world
from levels_more.high_level import Sequential
from levels_more.mid_level import Adam, Dataset, Dense

rank, size = world().rank, world().size
task = tasks.rings()
mine = task.x.astype("f4")[rank::size], task.y.astype("f4")[rank::size]
own = Dataset.from_tensor_slices(mine).batch(100 // size)
single = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
single.build((None, 2), "float32")
single.set_weights([weight.astype("f4") for weight in task.weights])
single.compile(Adam(0.01), "binary_crossentropy")
losses = DistributedDataParallel(single).fit(own, epochs=3, verbose=0).losses
count = len(mine[0])
"""
ranks.execute(sharded, block=True)
by_itself = {}
exec(sharded, by_itself)
here, there = by_itself["losses"], ranks["losses"][0]
print("rows of each rank:", ranks["count"], "of", by_itself["count"])
print("steps:", len(here), "and", len(there))
print("losses of two ranks within 1e-5 of those of one process:", np.allclose(here, there, 1e-5, 0))

# %% [markdown]
# Before the first step, the ranks compare their first batches. If the columns or dtypes differ, or two ranks have the
# same rows, `fit` says so. In float64 it refuses: there each rank has to add all rows, in their order.
#
# Other systems have such a line, too. Under `torchrun`, each process gives its `DataLoader` a `DistributedSampler`. In
# Ray Train, a worker asks for [`ray.train.get_dataset_shard`
# ](https://docs.ray.io/en/latest/train/api/doc/ray.train.get_dataset_shard.html). SLURM deals out no rows: `srun`
# starts the processes, and `SLURM_PROCID` is the rank with which each opens its own file.
#
# **A good place to stop.** Several processes compute the same bits as one.
#
# ## What a message costs (14 min)
#
# Does it pay? On level 1 we measured the cost of a load: a fixed time before it starts, and then a number of bytes per
# second. A message has the same two costs, only larger.

# %% tags=["nbval-ignore-output"]
measure = '''
import statistics
from levels_more.distributed import all_reduce
from levels_more.low_level import constant

def seconds(nbytes):
    """The median time of several all_reduces of so many bytes."""
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
beyond = [max(seconds - latency, 1e-9) for seconds in times[-4:]]  # on a busy machine a long message may be quickest
bandwidth = float(np.median(np.array(sizes[-4:]) / beyond))
print(f"latency {1e6 * latency:.0f} µs, bandwidth {bandwidth / 1e9:.2f} GB/s")

# %% tags=["nbval-ignore-output"]
machine.messages(sizes, times, latency, bandwidth)

# %% [markdown]
# All short messages cost the same: the latency. So seven gradients in seven messages cost seven times as much as in
# one.
#
# How do *n* ranks add arrays of *b* bytes? In a **ring**, each rank passes a piece on to its neighbour. After n − 1
# messages each piece is summed, and after another n − 1 all ranks have all sums. Each of these 2(n − 1) messages has
# b/n bytes:
#
# $$t = 2(n-1)\cdot\text{latency} + 2\,\frac{n-1}{n}\cdot\frac{b}{\text{bandwidth}}$$
#
# No rank sends more than 2b, however many ranks there are. (We measured two ranks, for which the formula is 2 latencies
# and b bytes, so our two numbers already include these factors.) The time of a step also includes the work, split among
# *n* ranks:


# %%
def ring(ranks, nbytes, latency, bandwidth):
    """The seconds in which so many ranks add arrays of so many bytes; latency is that of one message, in seconds."""
    return 2 * (ranks - 1) * latency + 2 * (ranks - 1) / ranks * nbytes / bandwidth


def step_time(ranks, work, nbytes, latency, bandwidth):
    """The seconds of a step: `work` seconds, split among the ranks, and the sum of the gradients."""
    return work / ranks + (ring(ranks, nbytes, latency, bandwidth) if ranks > 1 else 0.0)


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-machines-two-ranks",
    "A step of the rings' net is short, and its 61 weights are 244 bytes. How long does the step take on two ranks?",
    choices=["half as long", "as long", "several times as long"],
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
    """The seconds of a step of this net on so many ranks, each with one thread."""
    command = [launch.mpiexec(), "-n", str(ranks), sys.executable, str(steps), str(widths)]
    here = os.environ | {"NUMBA_NUM_THREADS": "1"}
    return float(subprocess.run(command, env=here, capture_output=True, text=True, check=True).stdout)


# %% [markdown]
# Each net runs on 1, 2 and 4 ranks with one thread each. The prediction takes into account how many cores your computer
# has for the work.

# %% tags=["nbval-ignore-output"]
for widths in ([2, 4, 8, 1], [784, 512, 512, 10]):
    nbytes, one = 4 * sum((p + 1) * q for p, q in zip(widths, widths[1:])), measured(1, widths)
    print(f"{'-'.join(map(str, widths))}: one process {1e6 * one:.0f} µs")
    for n in (2, 4):
        work = one * n / min(n, os.cpu_count())
        predicted = step_time(n, work, nbytes, latency / 2, bandwidth)
        print(f"   {n} ranks: predicted {1e6 * predicted:6.0f} µs, measured {1e6 * measured(n, widths):6.0f} µs")

# %%
checks.answer_to("05-machines-two-ranks")

# %% [markdown]
# The small net becomes far slower than predicted: the formula includes the message, but not the Python code around it.
# For the large net it depends on your computer. The formula assumes one computer per rank, but your ranks share the
# cores and the memory of one. Each rank has only one thread here. A single process that uses all cores is quicker than
# two ranks for both nets. (`python3 -m course bench machines` measures that, beside PyTorch.)
#
# So two ranks on one computer do not save time. They let you test, at your desk, what will run on a hundred machines.
#
# ## A rank dies (8 min)
#
# On a thousand machines, a failure is an everyday event. How can a training survive it? First we need a training that
# saves itself after each epoch. It pauses a little there, so that we have time to interrupt it.

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
# Callbacks run on rank 0 only; otherwise two ranks would write the same file. If a callback changes the rate or stops
# the training, all ranks follow. Now we kill rank 1, without any warning:

# %% tags=["nbval-ignore-output"]
os.kill(numbers[1], getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows has no SIGKILL
began = time.perf_counter()
try:
    work.get(timeout=60)
except Exception as error:
    print(f"{type(error).__name__} after {time.perf_counter() - began:.1f} s")

# %% [markdown]
# MPI has noticed, and ended all ranks, because half a training is useless. (A rank that only *hangs* is worse, because
# it seems to be alive. If a rank waits for another longer than five minutes, it reports that and ends; `timeout=` sets
# this limit. Ctrl-C in a terminal stops all ranks after the same epoch. A second Ctrl-C ends them at once.)
#
# What is left of the training?

# %%
left = load_model(folder / "net")
done = int(left.optimizer.iterations.numpy())
print("whole epochs, of 40 steps:", done > 0 and done % 40 == 0)

# %% [markdown]
# The file holds complete epochs, and the moments of Adam. **Your turn.** The cluster is gone. Start another one, with
# *three* ranks if you like, and let the training go on. `seed` gives each epoch the order of rows that it would have
# had.

# %% tags=["nbval-ignore-output"]
cluster.stop_cluster_sync()
cluster, ranks = start(3)

# %%
ranks.execute(program.split("model =")[0] + "import time; pause = 0.0", block=True)
ranks.execute(goes_on, block=True)
for rank, weights in enumerate(ranks["weights"]):
    print("rank", rank, digest(weights))

# %% [markdown]
# For comparison, here is an uninterrupted training of six epochs in one process:

# %%
net = alone["net"]
net.set_weights(task.weights)
net.compile(Adam(0.01), "binary_crossentropy")
net.fit(x, y, batch_size=100, epochs=6, seed=7, verbose=0)
print("alone ", digest(net.get_weights()))

# %% [markdown]
# Two ranks began, one was killed, three finished the training, and the result is the same in every bit.
#
# ## A thousand machines, on paper (5 min)
#
# The formula also predicts a large cluster. Let a step take 0.1 s on one machine, let 10 million weights take 40 MB,
# and let the network have a latency of 20 µs and a bandwidth of 10 GB/s. We keep the batch of 8,192 rows and split it
# among the machines:

# %%
machines_then = [1, 4, 16, 64, 256, 1000]
network = {"nbytes": 40e6, "latency": 20e-6, "bandwidth": 10e9}
for n in machines_then:
    fixed = step_time(n, 0.1, **network)
    grown = step_time(n, 0.1 * n, **network)
    print(f"{n:5} machines: {0.1 / fixed:5.1f} times as quick;", end=" ")
    print(f"with {n:4} times the batch {0.1 * n / grown:6.1f} times the rows/s")

# %%
machine.many(machines_then, lambda n: step_time(n, 0.1, **network), lambda n: step_time(n, 0.1 * n, **network) / n)

# %% [markdown]
# With a fixed batch, more than about 64 machines do not help; these are eight times as quick as one. Beyond that,
# nearly all of a step is communication, and the latency of a ring grows with each machine: a thousand machines are only
# twice as quick as one. (That is why large clusters add in trees and in groups, and not in one ring.)
#
# If the batch grows with the number of machines, each machine keeps its 0.1 s of work. That is the usual practice, but
# it is another training, with fewer and larger steps. A larger rate makes up for that up to a certain batch size
# ([Goyal et al., 2017](https://arxiv.org/abs/1706.02677), 8,192 images), but not beyond ([Shallue et al.,
# 2019](https://arxiv.org/abs/1811.03600)). It also helps to send messages during the computation. PyTorch sends the
# gradients of the last layer while it computes those of the first. (Ours are sent at the end of a stage.)
#
# Here are the commands: for one computer, for a cluster that SLURM manages, and for Kubernetes with the MPI Operator:
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
# We had neither of the two clusters at hand, so these two commands follow their manuals and have not been run.
# `train.py` is the program above.
#
# But it has run on two computers, as far as MPI can see: on Linux, in two network namespaces with a link of their own
# (`course/author/two_computers.sh`, with MPICH 5.0.2). After three epochs in float64, the weights had the digest of one
# process, and 1.3 MB had gone over the link. When the link was cut, MPI said nothing. Rank 0 ended after its `timeout`
# with "has waited 10 s for the others in all_gather". `mpiexec` itself still waited for the other computer, so a
# scheduler should have a time limit of its own.
#
# ## The same in two frameworks (1 min)
#
# | | TensorFlow | PyTorch | here |
# |---|---|---|---|
# | start | `TF_CONFIG` in the environment of each machine | `torchrun --nproc-per-node 4 train.py` | `mpiexec -n 4 python train.py` |
# | the model | made in a `MultiWorkerMirroredStrategy` | `DistributedDataParallel` | `DistributedDataParallel` |
# | a collective | `ReplicaContext.all_reduce` | `torch.distributed.all_reduce` | `all_reduce` |
# | a share of the data | `dataset.shard(n, i)` | `DistributedSampler` | float32: `dataset.shard(n, i)`; float64: all rows |
# | the same bits for any number of ranks | no | no | float64: by gathered rows |

# %% tags=["nbval-ignore-output"]
cluster.stop_cluster_sync()

# %% [markdown]
# ## Exercises (10 min, optional)
#
# - Start four ranks and train the rings in float32. How far are the weights from those of two ranks?
# - Give rank 1 other data (`task.x + world().rank`). What detects the difference, and when?
# - Add an op of your own with `@scalar`, and use it in a layer. Does `spread` split it? Then try an op that reverses the
#   order of the rows.
