"""Runs several short epochs in one call if nothing happens between them, before the training loop asks for them.

Measured in float32: the time of 100 epochs of `fit`, over that of a loop of `function.over`, each with its row orders:

    task, batch, optimizer    epoch by epoch  ahead
    rings, 100, SGD                     1.48   1.15
    rings, 100, Adam                    1.35   1.07
    rings, 10, SGD                      1.37   1.07
    linear, 10, SGD                     2.35   1.16
    linear, 30, SGD                     1.67   1.11  (the last batch is shorter)
"""

import time
from array import array
from collections import deque

import numpy as np

from levels.high_level import epoch_loss
from levels_more.compiler.eager import ACCELERATION

_NUMBERS = 2**16  # row numbers in one call, at most: so they stay in the cache


class LookAhead:
    """Runs epochs of a training on rows in memory. `done` holds the losses that the loop has not asked for yet.

    If a loss is not finite, the variables are restored and the epochs are run one by one, so that the training ends
    after the first epoch that went wrong.
    """

    def __init__(self, rows, size, epochs):
        self.rows, self.size, self.epochs = rows, int(size), epochs
        self.done = deque()
        self.orders = []
        self.single = not ACCELERATION.on  # whether epochs are run one by one
        whole, left = divmod(len(rows), self.size)  # full batches, and the rows of a shorter last one
        self.full = whole * self.size
        self.sizes = array("q", [self.size] * whole + [left] * (left > 0))

    def may(self, steps_per_call):
        """Whether the next epoch has run already, has its order, or is short enough for one call of so many steps."""
        return self.done or self.orders or steps_per_call >= len(self.sizes)

    def epoch(self, program, training, history):
        """(the losses [steps] of the next epoch of `program`, a cached function; how many rows each step had)"""
        while not self.done:
            self.go(program, training, self.epochs - len(history.epochs))
        return self.done.popleft(), self.sizes

    def go(self, program, training, left):
        """Run as many of the `left` epochs as one call may take."""
        count = max(1, min(left, training.steps_per_call // len(self.sizes), _NUMBERS // len(self.rows)))
        count = 1 if self.single or self.full < len(self.rows) else count
        while len(self.orders) < count:
            self.orders.append(self.rows.make())
        orders = np.concatenate(self.orders[:count]) if count > 1 else self.orders[0]
        begun = time.perf_counter()
        updated = {v for made, _ in program.programs.values() for v in made.graph.updates} if count > 1 else ()
        before = {v: v.read_value() for v in updated}
        parts = [orders[: count * self.full].reshape(-1, self.size), orders[None, count * self.full :]]
        losses = [self.over(program, part) for part in parts if part.size]
        losses = np.concatenate(losses) if len(losses) > 1 else losses[0]
        if count > 1 and not np.isfinite(np.dot(losses, np.full(len(losses), float(self.size)))):
            self.single = True
            for variable, value in before.items():
                variable.set_value(value)
        else:
            training.timed(len(losses), begun)
            del self.orders[:count]
            self.done.extend(losses.reshape(count, -1))

    def over(self, program, batches):
        """The losses of steps on these batches [steps, batch]: `function.over`, without its checks of row numbers."""
        arrays = self.rows.arrays
        batches = np.ascontiguousarray(batches, np.int64)
        signature = tuple([x.device.spec((batches.shape[1], *x.spec.shape[1:]), x.spec.dtype) for x in arrays])
        made, _ = program.program(signature, signature, True)
        return made.over(arrays, batches)[0].numpy()

    def tell(self, history):
        """Add the epochs that ran ahead to the history of a loop that has ended, because the weights include them."""
        while self.done:
            history.passes.append(self.done.popleft())
            history.epochs.append({"loss": epoch_loss(history.passes[-1], self.sizes)})
