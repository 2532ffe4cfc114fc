# %% [markdown]
# # 03 more · A graph that is always recording
#
# **In this notebook a program written for PyTorch runs on the tape that you built, with only one line changed.**
#
# It needs notebook 03: the tape and the walk back. It takes apart `levels_more/torch/graph.py`, the file that the
# rest of `levels_more/torch` builds on. Nothing is exported here.

# %%
from course import build, figures, programs
from course.reader import checks
from course.reader.figures import page
from course.reader.inspection import framework_programs
from levels_more.torch import graph

build.watch("more/03_torch")
figures.you_are_here(3)

# %% [markdown]
# ## The program that opened notebook 03 (2 min)
#
# Notebook 03 began with this program, but could not run it yet:

# %%
framework_programs.here("torch", "low", "linear")

# %% [markdown]
# Here it runs. Beside its losses we print those that PyTorch gave for the same data, the same starting weights and the
# same batches:

# %%
stored = programs.program("torch", "low", "linear")
ours = programs.run(programs.here(stored.text))
for step in (1, 100, 200):
    print(f"step {step:3}   PyTorch {stored.losses[step - 1]:.10f}   here {ours[step - 1]:.10f}")

# %% [markdown]
# Look for the tape in this program. There is no `with` block around the forward pass, and `backward()` gets no list of
# variables. Yet afterwards the gradients are in the weights. So something must be recording all the time. What is it,
# and where does it keep the record?
#
# ## A tape that stays open (5 min)
#
# The simplest way to record always is to open a tape and leave it open.

# %%
from levels_more.low_level import GradientTape, backward_pass, constant

always = GradientTape(persistent=True)
always.__enter__()  # what `with` calls at its beginning

x, w, b, y = (constant(value, "f8") for value in (3.0, 2.0, 1.0, 5.0))
error = x * w + b - y
loss = error * error
records = list(always.records)
dw, db = backward_pass(records, loss, [w, b])
print(f"dw {float(dw)}, db {float(db)}, from {len(records)} records")

# %% [markdown]
# The gradient is 12, as in notebook 03 by hand. So the idea works. What is wrong with it?

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-torch-records",
    "The tape stays open for 100 more predictions `x * w + b`, whose gradients are not needed. How many records does "
    "it hold then?",
    choices=["4, those of the loss", "204", "more than 204"],
)

# %%
for _ in range(100):
    x * w + b
print(len(always.records), "records")
always.__exit__()  # what `with` calls at its end

# %%
checks.answer_to("03-torch-records")

# %% [markdown]
# ## Each result keeps its piece (6 min)
#
# So we cut the tape into pieces. Each function gets a tape of its own, which is closed as soon as the function returns.
# The *result* keeps the piece that was recorded: the records, and the tensors that the function was called with. When
# the result is no longer needed, Python deletes it, and the piece with it. The program never has to say when to stop
# recording.

# %%
import operator


class Recorded:
    def __init__(self, held, records=(), parents=()):
        self.held = held
        self.records = records
        self.parents = parents

    def __add__(self, other):
        return recorded(operator.add, self, other)

    def __sub__(self, other):
        return recorded(operator.sub, self, other)

    def __mul__(self, other):
        return recorded(operator.mul, self, other)


def recorded(function, *parents):
    with GradientTape() as tape:
        held = function(*[parent.held for parent in parents])
    return Recorded(held, tape.records, parents)


# %%
x, w, b, y = (Recorded(constant(value, "f8")) for value in (3.0, 2.0, 1.0, 5.0))
error = x * w + b - y
loss = error * error
[op for op, *_ in error.records], [op for op, *_ in loss.records]

# %% [markdown]
# `error` holds the one op that made it. `loss` holds the one op that made it from `error`. PyTorch calls such a piece
# `grad_fn`.
#
# To walk back we need a single list again, in which the op that makes a tensor comes before the ops that read it. So
# each result is entered after everything that it was made from:


# %%
def in_order(result, found):
    """Enter the result into `found`, after everything that it was made from."""
    if result not in found:
        for parent in result.parents:
            in_order(parent, found)
        found[result] = True
    return found


def pieces(result):
    return [record for each in in_order(result, {}) for record in each.records]


# %%
print([op for op, *_ in pieces(loss)])
dw, db = backward_pass(pieces(loss), loss.held, [w.held, b.held])
print(f"dw {float(dw)}, db {float(db)}")

# %% [markdown]
# These are the same four ops in the same order, and the gradient is 12 again. **A graph that is always recording is a
# tape that is always open**, cut into pieces that the results keep. The walk back is that of notebook 03. It does not
# notice the cuts.
#
# ## Which tensors get a gradient (7 min)
#
# `loss.backward()` gets no list of variables. So each tensor has a flag, `requires_grad`, which says whether it needs a
# gradient. A result gets the flag if any of its inputs has it. Only then does it keep a piece of the tape. `backward`
# stores the gradient in the tensor's `grad`.


# %%
def recorded(function, *parents):
    if not any(parent.requires_grad for parent in parents):
        return Wanting(function(*[parent.held for parent in parents]))
    with GradientTape() as tape:
        held = function(*[parent.held for parent in parents])
    return Wanting(held, tape.records, parents, requires_grad=True)


class Wanting(Recorded):
    def __init__(self, held, records=(), parents=(), requires_grad=False):
        super().__init__(held, records, parents)
        self.requires_grad = requires_grad
        self.grad = None

    def backward(self):
        leaves = [x for x in in_order(self, {}) if x.requires_grad and not x.parents]
        found = backward_pass(pieces(self), self.held, [x.held for x in leaves])
        for x, dx in zip(leaves, found, strict=True):
            x.grad = dx if x.grad is None else x.grad + dx


# %%
x, y = Wanting(constant(3.0, "f8")), Wanting(constant(5.0, "f8"))
w, b = (Wanting(constant(value, "f8"), requires_grad=True) for value in (2.0, 1.0))
error = x * w + b - y
(error * error).backward()
print("w.grad", float(w.grad), " b.grad", float(b.grad), " x.grad", x.grad, " x * y keeps", len((x * y).records))

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-torch-again",
    "The same loss is computed again, and `backward` is called again. What is `w.grad` now?",
    slider=(0, 48, 6),
)

# %%
error = x * w + b - y
(error * error).backward()
float(w.grad)

# %%
checks.answer_to("03-torch-again")

# %% [markdown]
# ## A step must not be recorded (6 min)
#
# Now we train: the new `w` is `w` minus a little of its gradient. If we write this like any other line, the step is
# recorded, too:

# %%
w.grad = None
for step in range(3):
    error = x * w + b - y
    loss = error * error
    loss.backward()
    slope = None if w.grad is None else float(w.grad)
    print(f"step {step}: {len(pieces(loss))} records, w.grad {slope}")
    if w.grad is not None:
        w = w - Wanting(constant(0.01, "f8")) * Wanting(w.grad)

# %% [markdown]
# After one step `w` is no longer a starting tensor but a result, made from the old `w`. The list is longer, and the
# gradient goes to the old `w`, which the program has no name for any more. Two things are missing: a switch that stops
# the recording, and a way to put new numbers into the *same* tensor. PyTorch spells them `with torch.no_grad():` and `w
# -= …`.

# %%
import contextlib

listening = [True]


@contextlib.contextmanager
def no_grad():
    before = listening[0]
    listening[0] = False
    try:
        yield
    finally:  # also after an error; inside another such block, recording stays off
        listening[0] = before


class InPlace(Wanting):
    def __isub__(self, other):
        if listening[0] and self.requires_grad:
            raise RuntimeError("w -= … would be recorded; write it inside `with no_grad():`")
        self.held = self.held - other.held
        return self


# %%
w = InPlace(constant(2.0, "f8"), requires_grad=True)
rate = Wanting(constant(0.01, "f8"))
for step in range(3):
    error = x * w + b - y
    loss = error * error
    loss.backward()
    print(f"step {step}: {len(pieces(loss))} records, w {float(w.held):.4f}, loss {float(loss.held):.4f}")
    with no_grad():
        w -= rate * Wanting(w.grad)
    w.grad = None

# %% [markdown]
# Now there are four records in each step, and the loss falls. Earlier records keep the old numbers, because a tensor of
# level 3 never changes: `held` only refers to a new tensor.
#
# **A good place to stop.** Your graph is always recorded, is walked back by `backward`, and trains.
#
# ## The version in the library (6 min)
#
# `levels_more/torch/graph.py` is a more robust version of these lines. Our `recorded` is called `record_function`
# there, and a piece is a `Node`. The list is made by a loop. Our `in_order` calls itself for each parent, so a graph
# of some thousand ops would be too deep for Python. The pieces are numbered as they are made. So a piece always has a
# higher number than the pieces it was made from, and the numbers give the order.

# %%
page.source(graph.Node, graph._history)

# %% [markdown]
# What does `records is None` mean? After one walk back, the pieces are deleted, and with them the tensors of the
# forward pass, because most programs never walk the graph again. (PyTorch deletes only the tensors that were saved for
# the way back. A graph that saved none, such as that of `(a + 1).sum()`, can therefore be walked twice there.) A
# program that walks the graph again must say so beforehand:

# %%
import levels_more.torch as torch

w = torch.tensor(2.0, requires_grad=True)
loss = (3.0 * w - 1.0) ** 2
loss.backward(retain_graph=True)
loss.backward()
print("w.grad", w.grad.item())
try:
    loss.backward()
except RuntimeError as error:
    print(error)

# %% [markdown]
# The step outside `no_grad`, which went wrong without an error above, now raises one:

# %%
try:
    w -= 0.1 * w.grad
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Two tensors, one memory (5 min)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "03-torch-view",
    "`a` holds four zeros, and `b = a.view(2, 2)` is a view of it. Then `b[0, 0] = 7.0` is set. What does `a` hold?",
    choices=["four zeros: a tensor never changes", "a 7 and three zeros", "an error"],
)

# %%
a = torch.zeros(4)
b = a.view(2, 2)
b[0, 0] = 7.0
a

# %%
checks.answer_to("03-torch-view")

# %% [markdown]
# Changing tensors in place has a price. The framework must know which tensors share memory, and a gradient that needs
# the old numbers must not read the new ones. PyTorch counts the changes of each tensor. If a gradient needs numbers
# that are gone, it raises an error ("modified by an inplace operation"). `levels_more.torch` raises one, too, if they
# were the numbers of a weight. Of any other tensor it keeps the old numbers for the gradient. Level 3 pays no such
# price, because it never changes a tensor: an assignment makes the variable refer to a new one. (In TensorFlow and JAX,
# too, a tensor never changes.)
#
# ## What else differs (3 min)
#
# | | PyTorch and `levels_more.torch` | levels 3 and 4 |
# |---|---|---|
# | what records | every function of a tensor that requires a gradient | a tape, while it is open |
# | gradients | are added up in `grad` | are returned |
# | a step | `w -= …` under `no_grad` | `w.assign(…)` |
# | two dtypes in one op | are allowed, by three rules | are refused, except for Python's numbers |
# | 1. an integer and a float | the result is a float: int64 · 0.5 is float32 | |
# | 2. only one tensor has dimensions | its dtype wins: float32 [n] · float64 [] is float32 | |
# | 3. otherwise | the wider dtype wins: float32 [n] · float64 [n] is float64 | |
# | the weight of a layer | [out, in], `x @ weight.T + bias` | [in, out], `x @ kernel + bias` |
# | its first numbers | random, within ±1 / √in, the bias too | random, within Glorot's range; the bias is 0 |
# | a loss is called with | (prediction, truth) | (truth, prediction) |
#
# The last three rows are about layers and losses, which level 4 adds. Here is the layer of `levels_more.torch`:

# %%
linear = torch.nn.Linear(4, 3)
x = torch.ones(2, 4)
print(tuple(linear.weight.shape), torch.allclose(linear(x), x @ linear.weight.T + linear.bias))

# %% [markdown]
# `levels_more.torch` has the names that small programs use. A name that is missing raises an error that says so.
# `course.where` shows where a name of PyTorch is defined here, and what it is built on:

# %%
import course

try:
    torch.nn.LSTM
except AttributeError as error:
    print(error)
course.where("torch.randn")

# %% [markdown]
# ## What it costs (5 min)
#
# Recording always takes time, because each function opens a tape and each result gets a node. We measure the same step
# op by op in both spellings, and compiled on level 3:

# %%
import timeit

from course import tasks
from levels_more.low_level import Variable, function, gather, reduce_mean

task = tasks.linear()
w, b = map(Variable, task.weights)
rows, target = (gather(constant(part), task.batches[0]) for part in (task.x, task.y))


def step(rows, target):
    with GradientTape() as tape:
        error = rows @ w + b - target
        loss = reduce_mean(error * error)
    for variable, dw in zip((w, b), tape.gradient(loss, [w, b]), strict=True):
        variable.assign(variable - task.learning_rate * dw)
    return loss


# %%
weights = [torch.tensor(weight, requires_grad=True) for weight in task.weights]
x, y = (torch.tensor(part.numpy()) for part in (rows, target))


def torch_step():
    error = x @ weights[0] + weights[1] - y
    (error * error).mean().backward()
    with torch.no_grad():
        for weight in weights:
            weight -= task.learning_rate * weight.grad
            weight.grad = None


# %% tags=["nbval-ignore-output"]
compiled = function(step)
for name, run in {
    "PyTorch's spelling": torch_step,
    "level 3, a tape": lambda: step(rows, target),
    "level 3, compiled": lambda: compiled(rows, target),
}.items():
    print(f"{name:20} {min(timeit.repeat(run, number=200, repeat=3)) / 200 * 1e6:6.1f} µs a step")

# %% [markdown]
# PyTorch itself records in the same way, but in C++. Its `torch.compile` makes one program of several ops, as our
# `function` does, and for the same reason. But it does not trace as our `function` does: it reads the function's
# bytecode. Three things differ (in PyTorch 2.14):
#
# - A `print` ends one graph, and the next one begins after it. So it runs in every call.
# - PyTorch checks the Python values that the function reads, such as a global number. If one has changed, it compiles
#   again.
# - After a second size it leaves the size open: the sizes 10 to 14 take two compilations. A global float is left open
#   after its second value, too.
#
# ## Without a check (1 min)
#
# - In the program at the beginning, print `loss.grad_fn` before and after `backward`. What has been deleted?
# - Remove the `if` from `in_order`. Which loss shows that a piece is then walked twice? (One in which two paths lead
#   to the same tensor.)
# - Take a PyTorch program of your own for a small net, and change its import. Which names are missing?
