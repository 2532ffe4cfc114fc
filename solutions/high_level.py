"""Solutions to the exercises of notebook 05. The level's names are at hand, as in the notebook."""

import itertools
import random

import numpy as np

from levels.high_level import *
from levels.mid_level import SGD, Dense  # noqa: F401
from levels_more.low_level import GradientTape, constant, reduce_mean, reduce_sum, softmax  # noqa: F401

# 05-1


def fit_until(model, x, y, bound, most):
    for epoch in range(most):
        history = model.fit(x, y, batch_size=10, shuffle=False, verbose=0)
        if history.history["loss"][0] < bound:
            return epoch + 1
    return most


def in_one_call(model, x, y, bound, most):
    class Stop(Callback):
        def on_epoch_end(self, epoch, logs):
            self.model.stop_training = logs["loss"] < bound

    history = model.fit(x, y, batch_size=10, epochs=most, shuffle=False, verbose=0, callbacks=[Stop()])
    return len(history.history["loss"])


def last_step(model, x, y, bound, most):
    for epoch in range(most):
        history = model.fit(x, y, batch_size=10, shuffle=False, verbose=0)
        if history.losses[-1] < bound:
            return epoch + 1
    return most


def from_zero(model, x, y, bound, most):
    for epoch in range(most):
        history = model.fit(x, y, batch_size=10, shuffle=False, verbose=0)
        if history.history["loss"][0] < bound:
            return epoch
    return most


def evaluated(model, x, y, bound, most):
    for epoch in range(most):
        model.fit(x, y, batch_size=10, shuffle=False, verbose=0)
        if model.evaluate(x, y) < bound:
            return epoch + 1
    return most


def counted_afterwards(model, x, y, bound, most):
    losses = model.fit(x, y, batch_size=10, epochs=most, shuffle=False, verbose=0).history["loss"]
    return next((epoch for epoch, loss in enumerate(losses, 1) if loss < bound), most)


def without_end(model, x, y, bound, most):
    for epoch in range(99):
        history = model.fit(x, y, batch_size=10, shuffle=False, verbose=0)
        if history.history["loss"][0] < bound:
            return epoch + 1
    return most


def begun_anew(model, x, y, bound, most):
    start = model.get_weights()
    for epochs in range(1, most + 1):
        model.set_weights(start)
        history = model.fit(x, y, batch_size=10, epochs=epochs, shuffle=False, verbose=0)
        if history.history["loss"][-1] < bound:
            return epochs
    return most


# 05-2


class Averaged(Callback):
    def on_train_begin(self):
        self.seen = []

    def on_epoch_end(self, epoch, logs):
        self.seen.append(self.model.get_weights())

    def on_train_end(self):
        if self.seen:
            self.model.set_weights([np.mean(values, axis=0) for values in zip(*self.seen, strict=True)])


class RunningMean(Callback):
    def on_train_begin(self):
        self.mean, self.count = None, 0

    def on_epoch_end(self, epoch, logs):
        now, self.count = self.model.get_weights(), self.count + 1
        self.mean = [m + (w - m) / self.count for m, w in zip(self.mean or now, now, strict=True)]

    def on_train_end(self):
        if self.count:
            self.model.set_weights(self.mean)


class NeverForgets(Callback):
    def __init__(self):
        self.seen = []

    def on_epoch_end(self, epoch, logs):
        self.seen.append(self.model.get_weights())

    def on_train_end(self):
        self.model.set_weights([np.mean(values, axis=0) for values in zip(*self.seen, strict=True)])


class WithTheStart(Averaged):
    def on_train_begin(self):
        self.seen = [self.model.get_weights()]


class EachEpoch(Averaged):
    def on_epoch_end(self, epoch, logs):
        self.seen.append(self.model.get_weights())
        self.on_train_end()


class Halves(Averaged):
    def on_epoch_end(self, epoch, logs):
        now = self.model.get_weights()
        self.seen = [[(a + b) / 2 for a, b in zip(self.seen[0], now, strict=True)] if self.seen else now]


class AtLeastOneEpoch(Averaged):
    def on_train_end(self):
        self.model.set_weights([np.mean(values, axis=0) for values in zip(*self.seen, strict=True)])


class BeforeEachEpoch(Averaged):
    def on_epoch_begin(self, epoch):
        self.seen.append(self.model.get_weights())

    def on_epoch_end(self, epoch, logs):
        pass


# 05-3


def dead_units(model, x):
    dead = []
    for layer in model.layers:
        x = layer(x).numpy()
        dead.append(int((x == 0).all(axis=0).sum()))
    return dead


def counted_by_numpy(model, x):
    passed = itertools.accumulate(model.layers, lambda values, layer: layer(values), initial=x)
    return [values.shape[1] - np.count_nonzero(values.numpy().any(axis=0)) for values in list(passed)[1:]]


def for_one_row(model, x):
    dead = []
    for layer in model.layers:
        x = layer(x).numpy()
        dead.append(int((x == 0).any(axis=0).sum()))
    return dead


def over_the_units(model, x):
    dead = []
    for layer in model.layers:
        x = layer(x).numpy()
        dead.append(int((x == 0).all(axis=1).sum()))
    return dead


def never_passed_on(model, x):
    return [int((layer(x).numpy() == 0).all(axis=0).sum()) for layer in model.layers]


def by_the_first_row(model, x):
    return dead_units(model, x[:1])


def zeros_of_it(model, x):
    dead = []
    for layer in model.layers:
        x = layer(x).numpy()
        dead.append(int((x == 0).sum()))
    return dead


def without_the_last(model, x):
    return dead_units(model, x)[:-1]


# 05-4


def held_out(x, y, share, seed):
    rows = np.random.default_rng(seed).permutation(len(x))
    test, train = np.split(rows, [int(len(x) * share)])
    return x[train], y[train], x[test], y[test]


def chosen(x, y, share, seed):
    count, test = len(x), np.zeros(len(x), bool)
    test[np.random.RandomState(seed).choice(count, int(count * share), replace=False)] = True
    return [x[~test], y[~test], x[test], y[test]]


def ranked(x, y, share, seed):
    draw = random.Random(seed)
    rows, last = sorted(range(len(x)), key=lambda row: draw.random()), int(len(x) * share)
    return x[rows[last:]], y[rows[last:]], x[rows[:last]], y[rows[:last]]


def a_block(x, y, share, seed):
    last = int(len(x) * share)
    rows = np.roll(np.arange(len(x)), np.random.default_rng(seed).integers(len(x)))
    return x[rows[last:]], y[rows[last:]], x[rows[:last]], y[rows[:last]]


def every_so_many_from_anywhere(x, y, share, seed):
    begin = np.random.default_rng(seed).integers(len(x))
    test = (begin + np.arange(int(len(x) * share)) * int(1 / share)) % len(x)
    return np.delete(x, test, axis=0), np.delete(y, test, axis=0), x[test], y[test]


def blocks_of_two(x, y, share, seed):
    rows = np.random.default_rng(seed).permutation(np.arange(len(x)).reshape(-1, 2)).ravel()
    test, train = np.split(rows, [int(len(x) * share)])
    return x[train], y[train], x[test], y[test]


def apart(x, y, share, seed):
    draw, last = np.random.default_rng(seed), int(len(x) * share)
    x, y = draw.permutation(x), draw.permutation(y)
    return x[last:], y[last:], x[:last], y[:last]


def drawn_twice(x, y, share, seed):
    rows = np.random.default_rng(seed).integers(len(x), size=len(x))
    test, train = np.split(rows, [int(len(x) * share)])
    return x[train], y[train], x[test], y[test]


def in_both(x, y, share, seed):
    rows = np.random.default_rng(seed).permutation(len(x))
    test, train = rows[: int(len(x) * share)], rows[: len(x) - int(len(x) * share)]
    return x[train], y[train], x[test], y[test]


def without_seed(x, y, share, seed):
    return held_out(x, y, share, 0)


def other_share(x, y, share, seed):
    rows = np.random.default_rng(seed).permutation(len(x))
    train, test = np.split(rows, [int(len(x) * share)])
    return x[train], y[train], x[test], y[test]


def in_place(x, y, share, seed):
    for array in (x, y):
        np.random.default_rng(seed).shuffle(array)
    last = int(len(x) * share)
    return x[last:], y[last:], x[:last], y[:last]


# 05-5


def softmax_rule(dy, y, x):
    return y * (dy - reduce_sum(dy * y, axis=-1, keepdims=True))


def apart_then_joined(dy, y, x):
    own = dy * y
    return own - y * reduce_sum(own, axis=-1, keepdims=True)


def from_x(dy, y, x):
    again = softmax(x)
    return again * (dy - reduce_sum(again * dy, axis=-1, keepdims=True))


def like_sigmoid(dy, y, x):
    return dy * y * (1.0 - y)


def over_the_columns(dy, y, x):
    return y * (dy - reduce_sum(dy * y, axis=0, keepdims=True))


def over_all(dy, y, x):
    return y * (dy - reduce_sum(dy * y))


def of_dy_alone(dy, y, x):
    return y * (dy - reduce_sum(dy, axis=-1, keepdims=True))


def without_y(dy, y, x):
    return dy - reduce_sum(dy * y, axis=-1, keepdims=True)


def unheard(dy, y, x):
    dy, y = dy.numpy(), y.numpy()
    return constant(y * (dy - (dy * y).sum(axis=-1, keepdims=True)), y.dtype)


# 05-6


def patch_places(height, width, size):
    corners = (width * np.arange(height - size + 1)[:, None] + np.arange(width - size + 1)).reshape(-1, 1)
    window = (width * np.arange(size)[:, None] + np.arange(size)).reshape(1, -1)
    return corners + window


def by_windows(height, width, size):
    picture = np.arange(height * width).reshape(height, width)
    return np.lib.stride_tricks.sliding_window_view(picture, (size, size)).reshape(-1, size * size).copy()


def by_loops(height, width, size):
    corners = itertools.product(range(height - size + 1), range(width - size + 1))
    return np.array([[(i + a) * width + j + b for a in range(size) for b in range(size)] for i, j in corners])


def down_the_columns(height, width, size):
    corners = itertools.product(range(width - size + 1), range(height - size + 1))
    return np.array([[(i + a) * width + j + b for a in range(size) for b in range(size)] for j, i in corners])


def window_turned(height, width, size):
    corners = itertools.product(range(height - size + 1), range(width - size + 1))
    return np.array([[(i + a) * width + j + b for b in range(size) for a in range(size)] for i, j in corners])


def height_for_width(height, width, size):
    corners = itertools.product(range(height - size + 1), range(width - size + 1))
    return np.array([[(i + a) * height + j + b for a in range(size) for b in range(size)] for i, j in corners])


def one_position_less(height, width, size):
    corners = itertools.product(range(max(1, height - size)), range(max(1, width - size)))
    return np.array([[(i + a) * width + j + b for a in range(size) for b in range(size)] for i, j in corners])


def apart_windows(height, width, size):
    corners = itertools.product(range(0, height - size + 1, size), range(0, width - size + 1, size))
    return np.array([[(i + a) * width + j + b for a in range(size) for b in range(size)] for i, j in corners])


def as_floats(height, width, size):
    return patch_places(height, width, size).astype(float)


SOLUTIONS = {
    "05-1": fit_until,
    "05-2": Averaged,
    "05-3": dead_units,
    "05-4": held_out,
    "05-5": softmax_rule,
    "05-6": patch_places,
}
ALSO_RIGHT = {
    "05-1": {"in one call": in_one_call},
    "05-2": {"a running mean": RunningMean},
    "05-3": {"counted by NumPy": counted_by_numpy},
    "05-4": {"chosen without replacement": chosen, "ranked by draws": ranked},
    "05-5": {"each share first": apart_then_joined, "softmax once more": from_x},
    "05-6": {"NumPy's windows": by_windows, "four loops": by_loops},
}


WRONG = {
    "05-1": {
        "the last step's loss": last_step,
        "off by one": from_zero,
        "the loss of other weights": evaluated,
        "trains on": counted_afterwards,
        "no end": without_end,
        "begins anew, and its optimizer does not": begun_anew,
    },
    "05-2": {
        "right only for the first training": NeverForgets,
        "the start counts": WithTheStart,
        "the training is changed": EachEpoch,
        "right only for two epochs": Halves,
        "right only after an epoch": AtLeastOneEpoch,
        "off by one": BeforeEachEpoch,
    },
    "05-3": {
        "0 for one row": for_one_row,
        "right only for square output": over_the_units,
        "each layer gets x": never_passed_on,
        "the first row": by_the_first_row,
        "each 0": zeros_of_it,
        "off by one": without_the_last,
    },
    "05-4": {
        "x and y apart": apart,
        "with replacement": drawn_twice,
        "in both parts": in_both,
        "ignores the seed": without_seed,
        "the share is trained on": other_share,
        "changes its argument": in_place,
        "every so many, from anywhere": every_so_many_from_anywhere,
        "a block": a_block,
        "blocks of two": blocks_of_two,
    },
    "05-5": {
        "as of a sigmoid": like_sigmoid,
        "the sum over columns": over_the_columns,
        "one sum for all rows": over_all,
        "the sum of dy": of_dy_alone,
        "without y": without_y,
        "no op": unheard,
    },
    "05-6": {
        "down the columns": down_the_columns,
        "the window turned": window_turned,
        "height for width": height_for_width,
        "one position less": one_position_less,
        "windows apart": apart_windows,
        "floats": as_floats,
    },
}
