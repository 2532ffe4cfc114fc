# %% [markdown]
# # 03 more · A graph that is always recording
#
# **In this notebook a program written for PyTorch runs on the tape that you built, and one line of it has changed.**
#
# It needs notebook 03: the tape and the walk back. It takes `levels_more/torch/recording.py` apart, on which
# `levels_more/torch` stands.
# Nothing is exported here.

# %%
from course import build, figures, programs
from course.figures import page
from course.inspection import framework_programs
from course.practice import checks
from levels_more.torch import recording

build.watch("more/03_torch")
figures.you_are_here(3)

# %% [markdown]
# ## The program at the door of 03 (2 min)
#
# Notebook 03 began with this program, and it could not run there yet:

# %%
framework_programs.here("torch", "low", "linear")

# %% [markdown]
# Here it runs. Beside its losses stand those that PyTorch gave for the same data, the same starting weights and the same batches:

# %%
door = programs.program("torch", "low", "linear")
ours = programs.run(programs.here(door.text))
for step in (1, 100, 200):
    print(f"step {step:3}   PyTorch {door.losses[step - 1]:.10f}   here {ours[step - 1]:.10f}")

# %% [markdown]
# Look for the tape in it. There is no `with` block around the forward pass, no list of variables in `backward()`, and the
# gradients lie in the weights afterwards. So somebody writes down all the time. Who, and where does he keep it?
#
# ## A tape that nobody closes (4 min)
#
# The shortest way to a graph that is always recorded: open a tape, and leave it open.

# %%
from levels_more.low_level import GradientTape, constant, walk_back

always = GradientTape(persistent=True)
always.__enter__()  # what `with` calls at its beginning

x, w, b, y = (constant(value, "f8") for value in (3.0, 2.0, 1.0, 5.0))
error = x * w + b - y
loss = error * error
records = list(always.records)
dw, db = walk_back(records, loss, [w, b])
print(f"dw {float(dw)}, db {float(db)}, from {len(records)} records")

# %% [markdown]
# 12, as in notebook 03 by hand. That was all there is to the idea. What is wrong with it?

# %% tags=["hide-input"]
checks.predict(
    "The tape stays open for 100 more predictions `x * w + b`, of which nobody wants a gradient. How many records does it hold then?",
    choices=["4, those of the loss", "204", "more than 204"],
    answer="more than 204",
    because="4 of the loss, 200 of the predictions, and those of the walk back, whose rules pass the door as well. The tape "
    "cannot know which of them somebody will ask for. So it keeps all, and with them every tensor there ever was.",
)

# %%
for _ in range(100):
    x * w + b
print(len(always.records), "records")
always.__exit__()  # what `with` calls at its end

# %% [markdown]
# ## Each result keeps its piece (6 min)
#
# So cut the tape. Each function gets a tape of its own, closed as soon as it returns, and its *result* keeps the piece that was
# written: the records, and the numbers that the function was called with. If nobody needs the result any more, Python forgets
# it, and the piece with it. Nobody has to say when to stop.

# %%
import operator


class Recorded:
    def __init__(self, held, records=(), parents=()):
        self.held, self.records, self.parents = held, records, parents

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
# `error` holds the one op that made it, and `loss` the one that made it from `error`. PyTorch calls such a piece `grad_fn`.
#
# To walk back we want one list again, in which whatever makes a tensor stands before what reads it. A result comes after all
# that it was made from:


# %%
def made_from(result, found):
    """Enter the result into `found`, after all that it was made from."""
    if result not in found:
        for parent in result.parents:
            made_from(parent, found)
        found[result] = True
    return found


def pieces(result):
    return [record for each in made_from(result, {}) for record in each.records]


# %%
print([op for op, *_ in pieces(loss)])
dw, db = walk_back(pieces(loss), loss.held, [w.held, b.held])
print(f"dw {float(dw)}, db {float(db)}")

# %% [markdown]
# The same four ops in the same order, and 12. **A graph that is always recording is a tape that is always open**, cut into
# pieces that lie with the results. The walk back is the one of notebook 03; it never hears of the cuts.
#
# ## Nobody names the weights (5 min)
#
# `loss.backward()` gets no list of variables. So a tensor says itself that it wants a gradient, `requires_grad`. What was made
# from such a tensor remembers, what was made from others need not, and the gradient is left in `grad`, where one lies already
# added to it.


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
        self.requires_grad, self.grad = requires_grad, None

    def backward(self):
        leaves = [x for x in made_from(self, {}) if x.requires_grad and not x.parents]
        found = walk_back(pieces(self), self.held, [x.held for x in leaves])
        for x, dx in zip(leaves, found, strict=True):
            x.grad = dx if x.grad is None else x.grad + dx


# %%
x, y = Wanting(constant(3.0, "f8")), Wanting(constant(5.0, "f8"))
w, b = (Wanting(constant(value, "f8"), requires_grad=True) for value in (2.0, 1.0))
error = x * w + b - y
(error * error).backward()
print("w.grad", float(w.grad), " b.grad", float(b.grad), " x.grad", x.grad, " x * y keeps", len((x * y).records))

# %% tags=["hide-input"]
checks.predict(
    "The same loss is computed again, and `backward` is called again. What is `w.grad` now?",
    24,
    slider=(0, 48, 6),
    because="""It is added to the 12 that lies there. Losses of several parts of a batch can share a step that way. Between two
    steps somebody must put it back to zero: that is what `zero_grad` is for.""",
)

# %%
error = x * w + b - y
(error * error).backward()
float(w.grad)

# %% [markdown]
# ## A step is no part of the loss (6 min)
#
# Now train: `w` minus a little of its gradient. Written like any other line, the step is recorded, too:

# %%
w.grad = None
for step in range(3):
    error = x * w + b - y
    loss = error * error
    loss.backward()
    print(f"step {step}: {len(pieces(loss))} records, w.grad {w.grad and float(w.grad)}")
    w = w - Wanting(constant(0.01, "f8")) * Wanting(w.grad) if w.grad else w

# %% [markdown]
# After one step `w` is no beginning any more but a result, made from the old `w`. The list has become longer, and the gradient
# goes to a `w` that nobody holds. Two things are missing: a switch that stops the recording, and a way to put new numbers into
# the *same* tensor. PyTorch spells them `with torch.no_grad():` and `w -= …`.

# %%
import contextlib

listening = [True]


@contextlib.contextmanager
def no_grad():
    listening[0] = False
    yield
    listening[0] = True


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
# Four records in each step, and the loss falls. What was recorded before keeps the old numbers, for a tensor of level 3 never
# changes: `held` only names another one.
#
# **A good place to stop.** A graph is always recorded, walked back when somebody asks, and trains.
#
# ## The kept one (6 min)
#
# `levels_more/torch/recording.py` is these lines, hardened. Our `recorded` is called `record_function` there, a piece is a `Node`,
# and the
# list comes from a loop: `made_from` calls itself for each parent, and a graph of some thousand ops would be too deep for Python.
# Pieces are numbered as they are made. So each is younger than those that it was made from, and the numbers put them in order.

# %%
page.source(recording.Node, recording._history)

# %% [markdown]
# `records is None`? A graph is walked once. Then its pieces are let go, and with them the tensors of the forward pass, because most
# programs never walk it again. (PyTorch frees only the tensors that were saved for the way back, so it lets a graph that saved none,
# such as that of `(a + 1).sum()`, be walked twice.) A program that walks it again says so beforehand:

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
# And the step outside of `no_grad`, which went wrong without a word above:

# %%
try:
    w -= 0.1 * w.grad
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Two tensors, one memory (3 min)

# %% tags=["hide-input"]
checks.predict(
    "`a` holds four zeros, and `b = a.view(2, 2)` is another look at it. Then `b[0, 0] = 7.0`. What does `a` hold?",
    choices=["four zeros: a tensor never changes", "a 7 and three zeros", "an error"],
    answer="a 7 and three zeros",
    because="In PyTorch a view shares the memory of what it looks at. On level 3 a tensor never changes, so there it would be "
    "four zeros. A program that was written for PyTorch may count on the 7, so the spelling keeps track of who looks at what.",
)

# %%
a = torch.zeros(4)
b = a.view(2, 2)
b[0, 0] = 7.0
a

# %% [markdown]
# That is the price of changing things in place: it has to be known which tensors share memory, and a gradient that needs the old
# numbers must not read the new ones. PyTorch counts the changes of each tensor, and raises an error where a gradient needs numbers
# that are gone ("modified by an inplace operation"). This spelling keeps the old numbers and computes with them, without an error.
# Level 3 pays nothing for that, because it never changes a tensor: an assignment names another one. (TensorFlow made the same
# choice. JAX, too.)
#
# ## What else differs (3 min)
#
# | | PyTorch, and its spelling here | level 3 |
# |---|---|---|
# | who writes down | every function of what requires a gradient | a tape, while it is open |
# | gradients | lie in `grad`, added up | are handed out |
# | a step | `w -= …` under `no_grad` | `w.assign(…)` |
# | two dtypes in one op | the kind decides (int64 · 0.5 is float32), then whether a tensor has dimensions (float32 [n] · float64 [] is float32), then the width | are refused, but for numbers of Python |
# | the weight of a layer | [out, in], `x @ weight.T + bias` | [in, out], `x @ kernel + bias` |
# | where it starts | within 1 / √in, the bias too | Glorot's range, the bias 0 |
# | a loss is called with | (prediction, truth) | (truth, prediction) |
#
# The last three are those of level 4's layers and losses. Here is the layer:

# %%
linear = torch.nn.Linear(4, 3)
x = torch.ones(2, 4)
print(tuple(linear.weight.shape), torch.allclose(linear(x), x @ linear.weight.T + linear.bias))

# %% [markdown]
# The names are those of small programs. What is missing says so, and `course.where` leads from a name of PyTorch's to its line here
# and to what that stands on:

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
# A tape for each function, a node for each result: always recording takes time. The same step, op by op in both spellings, and
# compiled on level 3:

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
# PyTorch itself does the same in C++, and its `torch.compile` traces, like our `function`, for the same reason.
#
# ## Without a check (1 min)
#
# - Print `loss.grad_fn` in the program of the door, before and after `backward`. What has been let go?
# - In `made_from`, leave out the `if`. Which loss shows that a piece would be walked twice? (One with two roads to the same tensor.)
# - Take a program of your own for a small net. Change its import. What does it lack?
