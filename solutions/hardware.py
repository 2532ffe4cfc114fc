"""Solutions to the exercises of notebook 01. The level's names are at hand, as in the notebook."""

import math

import numpy as np

from levels.hardware import *
from levels_more.hardware.gpu.device import cuda, launch_kernel  # noqa: F401 (the second is how the check runs them)

# 01-1


def sum_in_pairs(x):
    while len(x) > 1:
        even = len(x) // 2 * 2
        x = np.concatenate([x[0:even:2] + x[1:even:2], x[even:]])
    return x[0]


def by_recursion(x):
    if len(x) == 1:
        return x[0]
    even = len(x) // 2 * 2
    return by_recursion(np.append(x[:even].reshape(-1, 2).sum(axis=1), x[even:]))


def from_left_to_right(x):
    return np.cumsum(x)[-1]


def odd_one_lost(x):
    while len(x) > 1:
        x = x[0 : len(x) // 2 * 2 : 2] + x[1::2]
    return x[0]


def in_float64(x):
    return np.float32(np.sum(x, dtype="f8"))


def halves(x):
    while len(x) > 1:
        half = len(x) // 2
        x = np.concatenate([x[:half] + x[half : 2 * half], x[2 * half :]])
    return x[0]


def in_python(x):
    x = x.tolist()
    while len(x) > 1:
        x = [sum(x[k : k + 2]) for k in range(0, len(x), 2)]
    return x[0]


# 01-2


def centre(a, x, y):
    for k in range(x.shape[1]):
        total = a.sum()
        with a.loop("rows") as r:
            total += a.load(x, r, k)
        mean = total.total() / a.count("rows")
        with a.loop("rows") as r:
            a.store(a.load(x, r, k) - mean, y, r, k)


def columns_side_by_side(a, x, y):
    columns = range(x.shape[1])
    totals = [a.sum() for _ in columns]
    with a.loop("rows") as r:
        for k in columns:
            totals[k] += a.load(x, r, k)
    means = [total.total() / a.count("rows") for total in totals]
    with a.loop("rows") as r:
        for k in columns:
            a.store(a.load(x, r, k) - means[k], y, r, k)


def by_columns_count(a, x, y):
    for k in range(x.shape[1]):
        total = a.sum()
        with a.loop("rows") as r:
            total += a.load(x, r, k)
        mean = total.total() / float(x.shape[1])
        with a.loop("rows") as r:
            a.store(a.load(x, r, k) - mean, y, r, k)


def of_each_row(a, x, y):
    with a.loop("rows") as r:
        total = 0.0
        for k in range(x.shape[1]):
            total = total + a.load(x, r, k)
        for k in range(x.shape[1]):
            a.store(a.load(x, r, k) - total / float(x.shape[1]), y, r, k)


def in_one_loop(a, x, y):
    for k in range(x.shape[1]):
        total = a.sum()
        with a.loop("rows") as r:
            v = a.load(x, r, k)
            total += v
            a.store(v - total.total() / a.count("rows"), y, r, k)


def times_one_over_n(a, x, y):
    for k in range(x.shape[1]):
        total = a.sum()
        with a.loop("rows") as r:
            total += a.load(x, r, k)
        mean = total.total() * (1.0 / a.count("rows"))
        with a.loop("rows") as r:
            a.store(a.load(x, r, k) - mean, y, r, k)


def two_columns(a, x, y):
    for k in range(2):
        total = a.sum()
        with a.loop("rows") as r:
            total += a.load(x, r, k)
        mean = total.total() / a.count("rows")
        with a.loop("rows") as r:
            a.store(a.load(x, r, k) - mean, y, r, k)


def loop_left_open(a, x, y):
    a.loop("rows").__enter__()


# 01-3


def lines_touched(count, step, itemsize):
    return len({k * step * itemsize // 64 for k in range(count)})


def told_apart_by_numpy(count, step, itemsize):
    return np.unique(np.arange(count) * (step * itemsize) // 64).size


def without_step(count, step, itemsize):
    return math.ceil(count * itemsize / 64)


def whole_stretch(count, step, itemsize):
    return math.ceil(count * step * itemsize / 64)


def rounded_down(count, step, itemsize):
    return (count - 1) * step * itemsize // 64


def all_between(count, step, itemsize):
    return (count - 1) * step * itemsize // 64 + 1


def for_float32_only(count, step, itemsize):
    return len({k * step * 4 // 64 for k in range(count)})


# 01-4


def slopes(loss, w):
    found = np.empty_like(w)
    for at in np.ndindex(w.shape):
        up, down = w.copy(), w.copy()
        up[at] += 1e-6
        down[at] -= 1e-6
        found[at] = (loss(up) - loss(down)) / 2e-6
    return found


def put_back(loss, w):
    w, found = w.copy(), []
    for k in range(w.shape[0]):
        for j in range(w.shape[1]):
            old, ends = w[k, j], []
            for nudge in (1e-4, -1e-4):
                w[k, j] = old + nudge
                ends.append(loss(w))
            w[k, j] = old
            found.append((ends[0] - ends[1]) / 2e-4)
    return np.array(found).reshape(w.shape)


def upwards_only(loss, w):
    found = np.empty_like(w)
    for at in np.ndindex(w.shape):
        up = w.copy()
        up[at] += 1e-6
        found[at] = (loss(up) - loss(w)) / 1e-6
    return found


def not_put_back(loss, w):
    found = np.empty_like(w)
    for at in np.ndindex(w.shape):
        w[at] += 1e-6
        up = loss(w)
        w[at] -= 2e-6
        found[at] = (up - loss(w)) / 2e-6
    return found


def one_nudge(loss, w):
    return 2.0 * slopes(loss, w)


def transposed(loss, w):
    return slopes(loss, w).T.copy()


def square_only(loss, w):
    found = np.empty_like(w)
    for k in range(len(w)):
        for j in range(len(w)):
            up, down = w.copy(), w.copy()
            up[k, j] += 1e-6
            down[k, j] -= 1e-6
            found[k, j] = (loss(up) - loss(down)) / 2e-6
    return found


# 01-5


def highest_rate(x):
    return 1.0 / np.mean(x * x)


def in_plain_python(x):
    return len(x) / sum(each * each for each in x.tolist())


def twice_as_high(x):
    return float(2.0 / np.mean(x * x))


def of_the_mean(x):
    return float(1.0 / np.mean(x) ** 2)


def for_standardised(x):
    return 1.0


def of_the_sum(x):
    return float(1.0 / np.sum(x * x))


def of_the_spread(x):
    return float(1.0 / np.var(x)) if len(x) > 1 else 1.0


# 01-6


def turn(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    number = x[i - t + (t + 1) % n]
    cuda.syncthreads()
    x[i] = number


def by_shared_memory(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    block = cuda.shared.array(64, np.float32)
    block[t] = x[i]
    cuda.syncthreads()
    x[i] = block[(t + 1) % n]


def in_a_hurry(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    x[i] = x[i - t + (t + 1) % n]


def barrier_before(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    cuda.syncthreads()
    x[i] = x[i - t + (t + 1) % n]


def barrier_for_some(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    number = x[i - t + (t + 1) % n]
    if t > 0:
        cuda.syncthreads()
    x[i] = number


def the_other_way(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    number = x[i - t + (t - 1) % n]
    cuda.syncthreads()
    x[i] = number


def over_the_end(x):
    i = cuda.grid(1)
    number = x[(i + 1) % x.size]
    cuda.syncthreads()
    x[i] = number


def last_one_stays(x):
    i, t, n = cuda.grid(1), cuda.threadIdx.x, cuda.blockDim.x
    number = x[i + 1] if t < n - 1 else x[i]
    cuda.syncthreads()
    x[i] = number


SOLUTIONS = {
    "01-1": sum_in_pairs,
    "01-2": centre,
    "01-3": lines_touched,
    "01-4": slopes,
    "01-5": highest_rate,
    "01-6": turn,
}
ALSO_RIGHT = {
    "01-1": {"by recursion": by_recursion},
    "01-2": {"the columns side by side": columns_side_by_side},
    "01-3": {"NumPy tells them apart": told_apart_by_numpy},
    "01-4": {"two loops, and what was nudged is put back": put_back},
    "01-5": {"in plain Python": in_plain_python},
    "01-6": {"through shared memory": by_shared_memory},
}


WRONG = {
    "01-1": {
        "adds from left to right": from_left_to_right,
        "right only for powers of two": odd_one_lost,
        "ignores the dtype": in_float64,
        "pairs the halves": halves,
        "gives Python's float": in_python,
    },
    "01-2": {
        "right only for square x": by_columns_count,
        "means of the rows": of_each_row,
        "the sum has not ended": in_one_loop,
        "multiplies by 1/n": times_one_over_n,
        "right only for two columns": two_columns,
        "a loop has not ended": loop_left_open,
    },
    "01-3": {
        "ignores the step": without_step,
        "right only where the stretch fills its lines": whole_stretch,
        "off by one": rounded_down,
        "right only for small steps": all_between,
        "ignores the dtype": for_float32_only,
    },
    "01-4": {
        "one side": upwards_only,
        "changes the weights": not_put_back,
        "a factor of two": one_nudge,
        "right only for symmetric input": transposed,
        "right only for square input": square_only,
    },
    "01-5": {
        "a factor of two": twice_as_high,
        "the square of the mean": of_the_mean,
        "right only for standardised x": for_standardised,
        "sum, not mean": of_the_sum,
        "right only where the mean is 0": of_the_spread,
    },
    "01-6": {
        "no barrier": in_a_hurry,
        "a barrier at the wrong place": barrier_before,
        "a barrier that one thread leaves out": barrier_for_some,
        "the other way": the_other_way,
        "right only for one block": over_the_end,
        "off by one": last_one_stays,
    },
}
