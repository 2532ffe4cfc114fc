"""The training loop: passes over data, and epochs of them, with callbacks, validation, a progress bar and Ctrl-C."""

import math
import time
from array import array
from collections import deque
from contextlib import nullcontext
from itertools import chain

import numpy as np

from levels.high_level import Callback, epoch_loss, loops
from levels.low_level import DOOR
from levels_more.high_level.listeners import BEGIN, END, RUNNING, CallbackList, attach
from levels_more.high_level.outputs import PASSES, give_back, states_of
from levels_more.high_level.program import GRAPH_TRANSFORM, check_fits_losses, step_program
from levels_more.high_level.progress import hold_interrupts, progress, shows_bars
from levels_more.high_level.rows import as_list, check_numbers, pack, parts_of
from levels_more.mid_level.stages import cut

_NUMBERS = 2**16  # row numbers in one call that looks ahead, at most: so they stay in the cache


class Pass:
    """Goes through data with a method step(x, y) of a model, such as `test_step`. It owns what this needs."""

    every_step = False  # whether each step is a call
    ahead = None  # a LookAhead
    passes = 0  # how many are done

    def __init__(self, step, data):
        self.model = step.__self__
        self.training = self.model.training
        self.step = step
        self.data = data
        if data.arrays is not None and not data.fits:
            check_fits_losses(self.model, self.training, data.arrays, data.layout)

    def looks(self):
        """Whether something that the step reads can have changed since the last call."""
        return True

    def on_call_begin(self):
        """Called before each call of the program."""

    def on_call_end(self, losses, rows):
        """Called after each call, with its losses [steps] and numbers of rows. Returns whether the pass ends here."""
        if RUNNING.fits:  # a callback of a training evaluates a model
            RUNNING.fits[-1].check_interrupt()

    def calls(self):
        """Go through the data in calls of a twentieth of a second. Yields (losses, numbers of rows) of a call's steps.

        The first call of a program is one step, and the time that a call takes sets the number of steps of the next.
        With `every_step`, or for data that is not in memory, each batch is a call.
        """
        data = self.data
        if data.arrays is None:
            yield from self.calls_by_batch()
            return
        looks = self.looks()
        self.program = step_program(self.training, self.step, data.layout, looks)
        if self.ahead is not None and not looks and self.ahead.may(self.program.steps_per_call):
            yield self.ahead.epoch(self.program)
            return
        for part in cut(data.order.iterate(), lambda: 1 if self.every_step else self.program.steps_per_call):
            if self.every_step:
                self.on_call_begin()
                self.program = step_program(self.training, self.step, data.layout, self.looks())
            begun = time.perf_counter()
            losses = self.program.over(*data.arrays, part).numpy()
            self.program.take_time(len(part), begun)
            yield losses, [len(batch) for batch in part]

    def calls_by_batch(self):
        """As `calls`, for data that is packed and checked batch by batch. A generator may change what a layer reads."""
        for number, element in enumerate(self.data.order):
            shared = GRAPH_TRANSFORM.rows  # of all ranks, of which this one may have none
            rows, layout = pack(self.model, *parts_of(element), self.data.class_weight, least=shared is None)
            if number:
                self.training.check_targets(rows[layout.inputs : layout.inputs + layout.targets])
            else:
                check_fits_losses(self.model, self.training, check_numbers(rows, layout), layout)
            self.on_call_begin()
            losses = step_program(self.training, self.step, layout)(*rows).numpy().reshape(1)
            yield losses, [len(rows[0]) if shared is None else shared]

    def run(self):
        """Go through the data once. Returns {"loss": the mean over all rows, each metric}.

        Raises ValueError for data without a batch.
        """
        counted = self.training.counted
        states = states_of(counted.all) if PASSES.get() else None  # then a callback evaluates the model after a batch
        outside = PASSES.set(PASSES.get() + 1)
        try:
            for metric in counted.all:
                metric.reset_state()
            losses, sizes = self.losses_and_sizes()
            if not sizes:
                cure = "; a generator is used up after a pass: give a Dataset, or epochs=1"
                raise ValueError("the dataset gave no batch" + cure * bool(self.passes))
            self.passes += 1
            return counted.logs(epoch_loss(losses, sizes))
        finally:
            PASSES.reset(outside)
            if states is not None:
                give_back(counted.all, states)

    def losses_and_sizes(self):
        """Go through the data. Returns the loss of each step, and how many rows it had."""
        losses = []
        sizes = []
        for piece, rows in self.calls():
            losses.append(piece)
            sizes.append(rows)
            if self.on_call_end(piece, rows):
                break
        if len(losses) == 1:
            return losses[0], sizes[0]
        return np.concatenate(losses or [[]]), [*chain(*sizes)]  # one sum, whatever the length of the calls


class Validation(Callback):
    """The first callback of a training with validation data: adds its loss and metrics to the logs, {"val_loss": …}."""

    def __init__(self, model, data):
        self.going = Pass(model.test_step, data)

    def on_epoch_end(self, epoch, logs):
        found = self.model.in_order(logs | {f"val_{name}": value for name, value in self.going.run().items()})
        logs.clear()
        logs.update(found)


class Fit(Pass, Callback):
    """A training: passes with `train_step`, and all that belongs to them. It is the last of its own callbacks.

    data, validation: Batches, the second or None; first: the number of the first epoch, for callbacks; verbose: 1 shows
    the bar, 2 (or 1 if no bar can be shown) prints a line for each epoch. Raises TypeError for anything but callbacks.
    """

    def __init__(self, model, data, epochs, first=0, verbose=1, callbacks=None, validation=None):
        super().__init__(model.train_step, data)
        self.epochs = epochs
        self.first = first
        self.verbose = verbose
        self.callbacks = [] if callbacks is None else as_list(callbacks)
        self.before = [] if validation is None else [Validation(model, validation)]  # what runs before the callbacks
        self.pressed = []  # an entry for each Ctrl-C
        self.bar = None
        self.lines = verbose == 2 or (verbose == 1 and not shows_bars())
        steps = None if math.isnan(data.order.length) else len(data.order)
        self.params = {"verbose": verbose, "epochs": first + epochs, "steps": steps}
        attach(self.callbacks, model, self.params)
        self.told = CallbackList(model, self.callbacks, first)
        self.every_step = self.told.hears_batches
        self.ahead = LookAhead(self, data) if self.may_look_ahead() else None

    def may_look_ahead(self):
        """Whether nothing happens between two epochs, so that several may run in one call."""
        asked = self.callbacks or self.before or self.training.counted.all
        changed = GRAPH_TRANSFORM.change or DOOR.top is not DOOR.bottom
        return self.epochs > 1 and self.data.numbers is not None and not asked and not changed

    def train(self):
        """Train for all epochs, and return the History.

        Ctrl-C raises KeyboardInterrupt at the end of a call: the model has the weights of the last whole step.
        """
        model = self.model
        outer = model.history, model.stop_training
        heard = [*self.before, *[self.told] * bool(self.callbacks), self]
        shown = self.verbose and not self.lines
        bar = progress(self.data, self.epochs) if shown else nullcontext()
        with hold_interrupts() as self.pressed, bar as self.bar:
            RUNNING.fits.append(self)
            try:
                return loops.run_training(model, self.data, self.epochs, heard, one_pass=self.run)
            finally:
                if self.ahead is not None:
                    self.ahead.hand_over()
                model.history.params = self.params
                model.history.epoch = [*range(self.first, self.first + len(model.history.epochs))]  # as in Keras
                RUNNING.fits.pop()
                if any(fit.model is model for fit in RUNNING.fits):  # a callback of its training called this `fit`
                    model.history, model.stop_training = outer

    def run(self, *_):
        """As in `Pass`; the history gets the losses. Raises RuntimeError if a callback has called `compile`."""
        if self.model.training is not self.training:
            raise RuntimeError("fit: a callback has compiled the model anew; call compile before fit, or after it")
        logs = super().run()
        self.training.check_steps()
        return self.model.in_order(logs)

    def looks(self):
        return self.told.runs_code_of_the_readers or not self.passes

    def check_interrupt(self):
        """Raise KeyboardInterrupt if Ctrl-C was pressed, once the history has all steps that changed the weights."""
        if self.pressed and not (self.ahead is not None and self.ahead.done):
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def on_epoch_begin(self, epoch):
        self.steps = self.total = self.rows = 0  # of this epoch: steps so far, the sum of their losses over all rows
        self.name = f"Epoch {self.first + epoch + 1}/{self.first + self.epochs}"
        if self.bar is not None:
            self.bar.set_description(self.name, refresh=False)

    def on_call_begin(self):
        """Call `on_train_batch_begin` of the callbacks, before each step, if one of them has a method for batches."""
        if self.every_step:
            self.told.tell(BEGIN, self.steps, logs={})

    def on_call_end(self, losses, rows):
        """Move the bar and call `on_train_batch_end`, after each call with its losses [steps] and numbers of rows.

        If a callback has a method for batches, each call is one step. Steps count from 0 in each epoch, as in Keras.
        The logs hold the step's loss, or the epoch's mean so far if the model has `means_by_batch`, and the metrics so
        far. Returns True if such a callback has set `stop_training`.
        """
        self.model.history.passes.append(losses)
        if self.bar is not None:
            self.bar.update(len(losses))
        if self.every_step:
            self.total, self.rows = self.total + float(np.dot(losses, rows)), self.rows + sum(rows)
            mean = getattr(self.model, "means_by_batch", False)
            logs = self.training.counted.logs(self.total / self.rows if mean else float(losses[0]))
            self.told.tell(END, self.steps, logs=logs)
        self.steps += len(losses)
        self.check_interrupt()
        return self.every_step and self.model.stop_training

    def on_epoch_end(self, epoch, logs):
        if self.bar is not None:
            self.bar.set_postfix(logs, refresh=False)
        if self.lines:
            print(f"{self.name}: {self.model.history.last}")
        self.check_interrupt()


class LookAhead:
    """Runs several short epochs of a training in one call, before the loop asks for them. `done` holds their losses.

    It stays for these rows of the bench, which take so many times as long without it: "linear, batch 10, SGD: fit" 2.4,
    "rings, batch 10, SGD: fit" 1.45, "rings, batch 100, SGD: fit" 1.31, "rings, batch 100, Adam: fit" 1.26.

    If a loss is not finite, the variables are restored and the epochs are run one by one, so that the training ends
    after the first epoch that went wrong.
    """

    def __init__(self, fit, data):
        self.fit = fit
        self.data = data
        self.done = deque()
        self.orders = []
        self.single = False  # whether epochs are run one by one
        whole, left = divmod(len(data.numbers), data.size)  # full batches, and the rows of a shorter last one
        self.full = whole * data.size
        self.sizes = array("q", [data.size] * whole + [left] * (left > 0))

    def may(self, steps_per_call):
        """Whether the next epoch has run already, has its order, or is short enough for one call of so many steps."""
        return self.done or self.orders or steps_per_call >= len(self.sizes)

    def epoch(self, program):
        """(the losses [steps] of the next epoch of a StepProgram; how many rows each step had)"""
        while not self.done:
            self.run(program, self.fit.epochs - len(self.fit.model.history.epochs))
        return self.done.popleft(), self.sizes

    def run(self, program, left):
        """Run as many of the `left` epochs as one call may take."""
        size = self.data.size
        count = max(1, min(left, program.steps_per_call // len(self.sizes), _NUMBERS // len(self.data.numbers)))
        count = 1 if self.single or self.full < len(self.data.numbers) else count
        while len(self.orders) < count:
            self.orders.append(self.data.numbers.make())
        orders = np.concatenate(self.orders[:count]) if count > 1 else self.orders[0]
        begun = time.perf_counter()
        updated = {v for each, _ in program.programs.values() for v in each.graph.updates} if count > 1 else ()
        before = {v: v.read_value() for v in updated}
        parts = [orders[: count * self.full].reshape(-1, size), orders[None, count * self.full :]]
        losses = [program.over(*self.data.arrays, part).numpy() for part in parts if part.size]
        losses = np.concatenate(losses) if len(losses) > 1 else losses[0]
        if count > 1 and not np.isfinite(np.dot(losses, np.full(len(losses), float(size)))):
            self.single = True
            for variable, value in before.items():
                variable.set_value(value)
        else:
            program.take_time(len(losses), begun)
            del self.orders[:count]
            self.done.extend(losses.reshape(count, -1))

    def hand_over(self):
        """Add the epochs that ran ahead to the history of a loop that has ended, because the weights include them."""
        history = self.fit.model.history
        while self.done:
            history.passes.append(self.done.popleft())
            history.epochs.append({"loss": epoch_loss(history.passes[-1], self.sizes)})
