# %% [markdown]
# # 05 more · Your ops write text
#
# **In this notebook your tensors, your tape and your `fit` train a net that writes: a small transformer, from a table
# of counts to two blocks of attention.**
#
# You need the five notebooks for this. Nothing is exported. All is computed in float64 and in a fixed order, so your
# losses and your text are those printed here, to the last letter.
#
# Its last exercise uses scikit-learn, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_text", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import math
import random
import timeit

import numpy as np

from course import programs
from course.reader import checks, prose
from course.reader.figures import page
from levels_more.hardware import pool, seconds
from levels_more.high_level import Sequential
from levels_more.kernels import batched_matmul, counted, launch, matmul_ikj, use
from levels_more.low_level import (
    VJPS,
    GradientTape,
    apply,
    constant,
    eager,
    function,
    reduce_sum,
    softmax,
    take,
)
from levels_more.mid_level import RANDOM, Adam, Dense, Embedding, Flatten, Layer, SparseCategoricalCrossentropy

# %% [markdown]
# ## A table that counts (8 min)
#
# Our text is a copy of this course's prose: 613 sentences from the five notebooks, in small letters. (The copy stays as
# it is when the notebooks change.) Every tenth sentence is held out, and no training sees it.

# %%
train, held = prose.read()
characters = sorted({*train, *held})
kinds = len(characters)
print(train[:152])
print(f"{len(train):,} characters to train on, {len(held):,} held out, {kinds} different ones")

# %% [markdown]
# How likely is it that an `e` follows an `h`? We count the pairs. Row a, column b of the table is how often b follows
# a. Divided by its sum, a row becomes the **shares** of the characters that come next. (The 0.1 keeps a pair that never
# occurred possible.)

# %%
numbers, unseen = (prose.codes(text, characters) for text in (train, held))
counts = np.full((kinds, kinds), 0.1)
np.add.at(counts, (numbers[:-1], numbers[1:]), 1)
table = counts / counts.sum(axis=1, keepdims=True)
print(f"after an h comes an e with the share {table[characters.index('h'), characters.index('e')]:.2f}")

# %% [markdown]
# To write, we draw the next character by these shares, again and again. Python promises that a seed gives the same
# draws for ever.


# %%
def write(shares_after, length=75):
    """A line for each of three seeds: characters drawn from what `shares_after(text)` gives."""
    for seed in range(3):
        draw, text = random.Random(seed).random, "\n"
        while len(text) <= length:
            # the first character at which the running sum of the shares passes the draw
            place = np.searchsorted(np.cumsum(shares_after(text)), draw(), side="right")
            text += characters[min(place, kinds - 1)]
        print(text[1:].replace("\n", " / ")[:88])


write(lambda text: table[characters.index(text[-1])])

# %% [markdown]
# A table of pairs already writes in the rhythm of English. (A slash is the end of a line.) How good is it? As in
# notebook 04, the loss is the mean of -log p, where p is the share that the model gave to the right answer.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-text-pairs",
    "A model that gives all 34 characters the same probability has the loss log 34 = 3.53. What is the loss of the table on sentences "
    "that it has not counted?",
    choices=["3.4: one character says little", "about 2.3", "below 1: English is regular"],
)


# %%
def loss_of_table(numbers):
    return -np.log(table[numbers[:-1], numbers[1:]]).mean()


print(f"loss {loss_of_table(numbers):.4f}, held out {loss_of_table(unseen):.4f}")

# %%
checks.answer_to("05-text-pairs")

# %% [markdown]
# ## The same table, learned (4 min)
#
# A net can find that table by itself. Each character gets a row of 32 trained numbers, its **embedding**. A `Dense` turns
# them into 34 numbers, one for each character that may come next. Then **softmax** makes shares of these: it takes the
# exponential of each, and divides by the sum of all exponentials. The loss does this itself (`from_logits=True`), so the
# net ends with the `Dense`.
#
# Each of `rows` is a window of 32 characters, as numbers. Its targets are the same window one character further on, so a
# window asks 32 questions.

# %%
rows, targets = prose.windows(numbers, 32)
held_out = prose.windows(unseen, 32)
print(rows.shape, "".join(characters[n] for n in rows[0]), "->", "".join(characters[n] for n in targets[0]))


# %%
def train_on_text(layers, seed=0, steps=2000):
    """A net of these layers, made from that seed, after so many steps of eight windows each."""
    RANDOM.seed(seed)
    net = Sequential(layers())
    net.compile(Adam(0.005), SparseCategoricalCrossentropy(from_logits=True))
    net.fit(rows, targets, batch_size=8, steps_per_epoch=steps, verbose=0, seed=seed)
    return net


def shares_of(net, sharper=1.0):
    """What `write` asks: the shares of the next character, after the last 32 of a text."""

    def shares_after(text):
        known = text[-32:]
        window = np.zeros((1, 32), int)
        window[0, : len(known)] = prose.codes(known, characters)  # behind them are zeros
        return softmax(sharper * net(constant(window)))[0, len(known) - 1].numpy()

    return shares_after


# %%
def embedded():
    return [Embedding(kinds, 32, dtype="float64"), Dense(kinds)]


pairs = train_on_text(embedded)
print(f"held out {pairs.evaluate(*held_out):.4f}")
write(shares_of(pairs))

# %% [markdown]
# The loss is nearly that of the table, and with the same draws the text is much like the one above. That is all that one
# character tells. To do better, the net has to look back.
#
# ## One head, by hand (7 min)
#
# In **attention** ([Vaswani et al., 2017](https://arxiv.org/abs/1706.03762)) each place of a window may take something
# from the other places. h holds a row of 32 numbers for each place. Three trained matrices make three rows of it:
#
# - h @ wq, the **queries**: what each place looks for,
# - h @ wk, the **keys**: what each place has to offer,
# - h @ wv, the **values**: what it gives.
#
# The product of a query and a key is a **score**. Softmax turns the scores of a place into shares. The place multiplies
# each value by its share, and adds up. A fourth matrix, wo, mixes the result. So a **head** is a softmax and six
# products: five times `@`, and once `"matmul"` by its name, because this product takes the keys transposed. Here is a
# head for ten places, with matrices drawn at random:

# %%
draw = np.random.default_rng(0)
h, wq, wk, wv, wo = (constant(draw.normal(size=(n, 32)) / 6) for n in (10, 32, 32, 32, 32))


def head(h, wq, wk, wv, wo):
    """h[…, t, d] -> […, t, d]: each of t places takes something from every place."""
    scores = apply("matmul", h @ wq, h @ wk, transpose_w=True) / math.sqrt(32)  # [t, t]
    return softmax(scores) @ (h @ wv) @ wo


head(h, wq, wk, wv, wo).shape

# %% [markdown]
# A score is a sum of 32 products. If these vary independently, the sum varies √32 times as much as one of them. So it is
# divided by √32. Otherwise softmax would give nearly everything to one place.
#
# The tape knows the rule of a product. For softmax the rule is yours to write.
#
# ### 05-5 · The rule of softmax
#
# Here y = softmax(x) along the last axis, and dy is the gradient of the result. In a row, each x moves every y:
# ∂yᵢ/∂xⱼ = yᵢ·(1 - yᵢ) if i = j, else -yᵢ·yⱼ. So dxⱼ = Σᵢ dyᵢ·∂yᵢ/∂xⱼ becomes
#
# $$dx_j = y_j \cdot \Bigl(dy_j - \sum_i dy_i \cdot y_i\Bigr)$$
#
# (About 2 lines. Hint: `reduce_sum(…, axis=-1, keepdims=True)`.)

# %%
from course.reader import exercises

exercises.begin("05-5")


def softmax_rule(dy, y, x):
    """The gradient of softmax, from that of its result: dy, y and x are [..., n]."""
    return ...


exercises.check("05-5", softmax_rule)

# %% [markdown]
# If your rule is right, the rest of this notebook runs on it. (It may round in another place than the course's, and your
# text may then differ from ours.) If not, it runs on the course's. A row of the table of notebook 03 is all that it takes:

# %%
if exercises.verdict("05-5", softmax_rule).state == "right":
    VJPS["softmax"] = (softmax_rule,)

# %% [markdown]
# Then we nudge, as ever. All inputs of the head move a little in a random direction. How much does the sum of the squared
# results grow? We compare the tape's answer with that of two calls.


# %%
def nudged(f, inputs, step=1e-5):
    """The slope of f in a random direction: by the tape, and by a nudge to both sides."""
    moves = [np.random.default_rng(1).normal(size=x.shape) for x in inputs]
    with GradientTape() as tape:
        y = f(*inputs)
        total = reduce_sum(y * y)
    by_tape = sum((dx.numpy() * move).sum() for dx, move in zip(tape.gradient(total, inputs), moves))
    up, down = ([x + constant(sign * step * move) for x, move in zip(inputs, moves)] for sign in (1, -1))
    by_nudge = (f(*up).numpy() ** 2).sum() - (f(*down).numpy() ** 2).sum()
    return by_tape, by_nudge / (2 * step)


print("by the tape {:.4f}, nudged {:.4f}".format(*nudged(head, [h, wq, wk, wv, wo])))

# %% [markdown]
# ## Eight windows at once (2 min)
#
# `fit` gives us eight windows at a time, so h gets three axes: [windows, places, numbers]. In the core a product takes two
# axes. In `levels_more` the same op takes more: the last two axes are a matrix, and the earlier ones number the matrices.

# %%
windows = constant(draw.normal(size=(8, 10, 32)))
together = head(windows, wq, wk, wv, wo)
apart = [head(windows[n], wq, wk, wv, wo).numpy() for n in range(8)]
print(together.shape, bool((together.numpy() == apart).all()))
print("by the tape {:.4f}, nudged {:.4f}".format(*nudged(head, [windows, wq, wk, wv, wo])))

# %% [markdown]
# The same numbers, to the last bit. The rule is that of notebook 03; `transpose_x` and `transpose_w` now swap the last two
# axes. Here `wq` meets eight matrices, so its gradient is the sum over all eight, as that of the bias was a sum over all
# rows. The kernel is a loop around the one you know:

# %%
page.source(batched_matmul.matmul_batch)

# %% [markdown]
# **A good place to stop.** A head is six products and a softmax, and its gradient is right; next, it is trained.
#
# ## A head is trained (10 min)
#
# Now the head becomes a layer. It knows characters, but not where they stand. So another layer adds a trained row for
# each place of the window. The result of the head is added to what it reads (a **residual connection**), as in
# *more/05_functional*.


# %%
class Positions(Layer):
    def build(self, shape):
        self.places = self.add_weight(shape[-2:], "random_uniform")

    def call(self, h):
        return h + self.places


class Attention(Layer):
    """h + a head of h. It is told which function computes the head."""

    def __init__(self, head):
        super().__init__()
        self.head = head

    def build(self, shape):
        self.matrices = [self.add_weight((shape[-1], shape[-1])) for _ in range(4)]

    def call(self, h):
        return h + self.head(h, *self.matrices)


def one_head():
    return [Embedding(kinds, 32, dtype="float64"), Positions(), Attention(head), Dense(kinds)]


# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-text-one-head",
    "The table of pairs has a loss of 2.28. What is the loss of the net with one head, after 2,000 steps, on the held-out sentences?",
    choices=["about 2.2", "about 2.0", "about 0.1"],
)

# %%
cheating = train_on_text(one_head)
print(f"held out {cheating.evaluate(*held_out):.4f}")
write(shares_of(cheating))

# %%
checks.answer_to("05-text-one-head")

# %% [markdown]
# The loss is tiny, and what it writes is worthless. When it writes, there is no next character to copy: behind the last
# one stand zeros, and 0 is the end of a line. A low loss on held-out data was no proof.
#
# The **causal mask** forbids looking ahead. To each score of a later place it adds -10⁹. The exponential of that is
# exactly 0, so the share is 0, and so is its gradient.

# %%
mask = constant(np.where(np.tril(np.ones((32, 32))), 0.0, -1e9))


def masked_head(h, wq, wk, wv, wo):
    """h[…, t, d] -> […, t, d]: each of t places takes something from itself and from those before it."""
    scores = apply("matmul", h @ wq, h @ wk, transpose_w=True) / math.sqrt(32) + mask  # [t, t]
    return softmax(scores) @ (h @ wv) @ wo


def one_masked_head():
    return [Embedding(kinds, 32, dtype="float64"), Positions(), Attention(masked_head), Dense(kinds)]


single = train_on_text(one_masked_head)
print(f"held out {single.evaluate(*held_out):.4f}")
write(shares_of(single))

# %% [markdown]
# Short words appear. What does this head look at? Here are the shares that it gives in the first window:

# %%
embedding, positions, attention, _ = single.layers
wq, wk, wv, wo = attention.matrices
inside = positions(embedding(rows[:1]))
shares = softmax(apply("matmul", inside @ wq, inside @ wk, transpose_w=True) / math.sqrt(32) + mask)
figures.attention(shares.numpy()[0, :20, :20], train[:20])

# %% [markdown]
# Each row belongs to one character. Its squares show what the character takes from each of the others: the darker, the
# more. Most characters take from themselves and from the one or two before. The `h` of "each", for instance, takes most
# from the `a`.
#
# ## Two blocks, and `fit` (6 min)
#
# A **block** of a transformer is a head and a small net of two `Dense`, each added to what it reads. We take two of them.
# (Larger ones also have several heads side by side, and a layer norm before each part. Ours learns without.)


# %%
class Block(Layer):
    """A head, and then a net 32-64-32 at each place; each is added to what it reads."""

    def __init__(self):
        super().__init__()
        self.attention = Attention(masked_head)
        self.up = Dense(64, "relu")
        self.down = Dense(32)

    def call(self, h):
        h = self.attention(h)
        return h + self.down(self.up(h))


def transformer():
    return [Embedding(kinds, 32, dtype="float64"), Positions(), Block(), Block(), Dense(kinds)]


# %%
writer = train_on_text(transformer)
print(f"{writer.count_params():,} numbers, held out {writer.evaluate(*held_out):.4f}")
write(shares_of(writer))

# %% [markdown]
# How much of that is luck? Two other starts:

# %%
for seed in (1, 2):
    other = train_on_text(transformer, seed)
    print(f"seed {seed}, held out {other.evaluate(*held_out):.4f}")
    write(shares_of(other))

# %% [markdown]
# The three differ by less than 0.1. One head alone was about 0.3 worse. So the start matters less than what we added.
# Here are the losses on the training windows:

# %%
nets = {"pairs": pairs, "a head": single, "two blocks": writer}
losses = {name: net.history.losses for name, net in nets.items()}
figures.stages(losses, math.log(kinds))

# %% [markdown]
# With two blocks the loss still falls. So the writer trains on, for 6,000 more steps. We can also make it surer: if the 34
# numbers of the last `Dense` are doubled before softmax, the likely characters become likelier still. (The inverse of this
# factor is called the **temperature**: here it is 0.5.)

# %%
writer.fit(rows, targets, batch_size=8, epochs=3, steps_per_epoch=2000, verbose=0, seed=1)
print(f"training {writer.history.losses[-1000:].mean():.4f}, held out {writer.evaluate(*held_out):.4f}")
write(shares_of(writer))
print("surer:")
write(shares_of(writer, sharper=2.0))

# %% [markdown]
# Now most of its words exist, and most of the others could. Nobody told it what a word is. Made surer, it writes more
# words that exist, and repeats itself. Its loss is a little lower on the sentences that it was trained on, so it begins to
# know them by heart. But it has no idea what it says: 32,000 characters are far too few for that, and
# so are 20,000 numbers. Large language models are nets of this kind with more of everything. They read pieces of words,
# called **tokens**, instead of letters.
#
# **A good place to stop.** A transformer learns on your ops; next come your kernel, your formula and PyTorch.
#
# ## On your own kernel (2 min)
#
# In notebook 02 the product is three loops, `matmul_ikj`. If you filled that blank, they are yours. `my_matmul` calls
# them, and `use` puts it in the place of the course's quicker kernel. All levels above run on it, and `fit` trains the
# transformer.

# %%
page.source(matmul_ikj)


# %%
def my_matmul(out, x, w):
    matmul_ikj(out, x, w)


with use("matmul", "cpu", my_matmul):
    mine = train_on_text(transformer, steps=100)
first = losses["two blocks"][:100]
print(f"loss {mine.history.losses[0]:.4f} -> {mine.history.losses[-1]:.4f}")
print("the same losses, to the last bit:", bool((mine.history.losses == first).all()))

# %% [markdown]
# A product of many matrices launches your kernel once for each of them.
#
# ## What a step costs (8 min)
#
# The formula of notebook 01 says: launches · time of a launch + max(operations / peak, bytes / bandwidth). We run a step
# op by op, and count all three. Nearly all operations are in the products: 2 · rows · inputs · units in each. A product
# on the way forward needs two more of the same size on the way back.

# %%
per_block = 4 * 256 * 32 * 32  # wq, wk, wv and wo, for 8 windows of 32 places
per_block += 2 * 8 * 32 * 32 * 32  # the scores, and the values that are taken
per_block += 2 * 256 * 32 * 64  # the two Dense
operations = 3 * 2 * (2 * per_block + 256 * 32 * kinds)

batch = constant(rows[:8]), constant(targets[:8])
step = function(lambda x, y: writer.train_step(x, y))


def op_by_op():
    with eager():
        step(*batch)


step(*batch)  # traces the step
op_by_op()  # plans its ops
launches, nbytes = counted(op_by_op)
print(f"{launches} launches, {operations / 1e6:.1f} million operations, {nbytes / 1e6:.1f} MB")

# %% [markdown]
# The peak that notebook 01 measured is that of float32. A register holds half as many float64, so their peak is half.

# %%
cpu = pool()["cpu:0"]
one, out = constant(np.ones(1)), cpu.alloc((1,), "f8")
per_launch = min(timeit.repeat(lambda: launch("add", out, one, one), number=1000, repeat=7)) / 1000
parts = {
    "launches": launches * per_launch,
    "operations": 2 * cpu.roofline(operations, 0),
    "bytes": cpu.roofline(0, nbytes),
}
print(", ".join(f"{name} {1e3 * part:.2f} ms" for name, part in parts.items()))
predicted = parts["launches"] + max(parts["operations"], parts["bytes"])
print(f"predicted {1e3 * predicted:.2f} ms, measured {1e3 * seconds(op_by_op, repeats=30):.2f} ms")

# %% [markdown]
# Such a prediction is rough. Most of these bytes come from the caches, which are quicker than memory. But no product runs
# at the peak, and the exponentials of softmax take time, too. What it does tell: the launches, which were nearly all of the
# line's time, are the smaller part here.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-text-compiled",
    "Op by op, a step of the line takes several hundred times as long as in a compiled training. How is it for this step?",
    choices=["about 100 times as long", "about 10 times as long", "about 3 times as long"],
)

# %%
print(f"compiled, measured {1e3 * seconds(lambda: step(*batch), repeats=30):.2f} ms")

# %%
checks.answer_to("05-text-compiled")

# %% [markdown]
# ## Beside PyTorch (4 min)
#
# `course/reader/programs/text/torch/low_characters.py` is this net in PyTorch. It starts from stored weights. PyTorch 2.13 ran
# it for 200 steps, and the losses are stored, too. Here is ours, from the same weights and on the same windows:

# %%
(theirs,) = programs.programs("torch", folder=programs.TEXT)
net = Sequential(transformer())
net(constant(rows[:8]))
net.set_weights(prose.starting_weights([w.shape for w in net.variables]))
net.compile(Adam(0.005), SparseCategoricalCrossentropy(from_logits=True))
order = prose.batches(len(rows), 200, 8).ravel()
net.fit(rows[order], targets[order], batch_size=8, shuffle=False, verbose=0)
print(f"ours {net.history.losses[-1]:.6f}, PyTorch's {theirs.losses[-1]:.6f}")
print("apart by less than 1e-5:", programs.distance(net.history.losses, theirs.losses) < 1e-5)

# %% [markdown]
# `python3 -m course programs` runs the file itself on `levels_more.torch`, with its import changed, and prints how far
# its losses are from PyTorch's.
#
# And the time? On one thread of one computer (an AMD EPYC with registers of 16 numbers, November 2026), a step took
# this many milliseconds of the processor (medians, in turns). PyTorch's Adam was its fused one.
#
# | | levels, op by op | levels, compiled | PyTorch, eager | PyTorch, `torch.compile` | PyTorch's faster / levels, compiled |
# |---|--:|--:|--:|--:|--:|
# | this net, float32 | 1.9 | 0.58 | 2.3 | 2.5 | 4.0 |
# | this net, float64 | 2.3 | 0.88 | 3.4 | 3.5 | 3.8 |
# | 256 numbers a place, 32 windows, float32 | 38 | 33 | 77 | 87 | 2.4 |
# | 256 numbers a place, 32 windows, float64 | 89 | 83 | 162 | 171 | 1.9 |
#
# For a small net the calls between the programs count, and ours is one call. For a large one only the products count.
# In float32, ours reached 240 Gflop/s there, of the 274 that level 1 measured, and PyTorch's library 112. It depends on
# the processor: with programs for registers of 8 numbers, the step took 57 ms, and PyTorch's was 1.3 times as long. In
# float64 PyTorch's products use fused multiply-adds, which round once instead of twice. `levels` uses none, so its bits
# are the same on every machine.
#
# ## A recurrence is a loop (1 min)
#
# Earlier nets read a text from left to right, and kept a state: hₜ = tanh(xₜ·W + hₜ₋₁·U), a **recurrence**
# ([Elman, 1990](https://doi.org/10.1207/s15516709cog1402_1)). It needs no new op. In Python it is a loop over the places,
# and the tape unrolls it: it writes down each turn. The walk back goes through all turns in reverse, and adds up the
# gradients of W and U, which each turn used. (This is called backpropagation through time.) In each turn the gradient
# is multiplied by U and by the slope of tanh. So over many turns it vanishes, or grows without bounds ([Bengio et al.,
# 1994](https://doi.org/10.1109/72.279181)). A head reaches every earlier place of its window in one step.
#
# ## Exercises (10 min)
#
# ### 05-6 · A convolution is a product
#
# A **convolution** moves a small window over a picture. At each position it multiplies the pixels under the window by
# weights, and adds. If the pixels under each position stood in a row, that would be one product: patches[positions,
# size·size] @ weights[size·size, filters]. So only the places of these pixels are needed. A picture is stored as one row
# of height · width pixels, row after row.
#
# ```
#   a picture, 3 x 4      windows of 2 x 2       patch_places(3, 4, 2)
#    0  1  2  3           0  1    1  2           [[0, 1, 4, 5],
#    4  5  6  7           4  5    5  6   …        [1, 2, 5, 6],
#    8  9 10 11                                   …
# ```
#
# The positions go along the rows of the picture, and so do the pixels of a window. The result is int64. (About 3 lines.
# Hints: there are `height - size + 1` positions down. A window's places are its corner's place plus `width * a + b`.
# `np.arange(n)[:, None]` is a column.)

# %%
from course.reader import exercises

exercises.begin("05-6")


def patch_places(height, width, size):
    """int64 [positions, size·size]: the places of the pixels under a window of size x size, at each position."""
    return ...


exercises.check("05-6", patch_places)

# %% [markdown]
# Here is the layer. `take` picks pixels by number, [batch, positions, 9], and a product does the rest. Both have their
# rules, so the layer has a gradient. (While your function is blank, NumPy finds the places.)

# %%
from sklearn.datasets import load_digits

picture = np.arange(64).reshape(8, 8)
places = np.lib.stride_tricks.sliding_window_view(picture, (3, 3)).reshape(36, 9)
if exercises.verdict("05-6", patch_places).state == "right":
    places = patch_places(8, 8, 3)


class Convolution(Layer):
    """x[batch, 64] -> [batch, 36, filters]: windows of 3 x 3, then relu."""

    def build(self, shape):
        self.dense = Dense(8, "relu")

    def call(self, x):
        return self.dense(take(x, places, axis=1))


digits = load_digits()
x, y = digits.data / 16, digits.target
test = np.arange(len(x)) % 5 == 4

# %% [markdown]
# We train it on the 1,797 digits of 8 x 8 pixels that scikit-learn ships. Every fifth one is held out.

# %%
for name, first in {"a Dense alone": [], "with the convolution": [Convolution(), Flatten()]}.items():
    RANDOM.seed(0)
    net = Sequential([*first, Dense(10)])
    net.compile(Adam(0.01), SparseCategoricalCrossentropy(from_logits=True), ["accuracy"])
    net.fit(x[~test], y[~test], epochs=30, verbose=0, seed=0)
    print(f"{name}: {net.count_params():,} numbers, {net.evaluate(x[test], y[test])[1]:.1%} right")

# %% [markdown]
# The windows help: pixels that are neighbours belong together, and a `Dense` alone does not know which are neighbours.
#
# ## Where to go from here
#
# - Write with your own text: put it into `train`, and count again.
# - *more/02_matmul* makes the product as quick as the machine, and *more/03_fused* tells how a step becomes programs.
# - Karpathy's [nanoGPT](https://github.com/karpathy/nanoGPT) is such a net in PyTorch, with all that ours leaves out.
