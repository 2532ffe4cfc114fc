"""What makes `fit` wide, polite and quick: several inputs and outputs, metrics, a bar, Ctrl-C, steps that stay compiled."""

import math
import signal
import threading
import time
from contextlib import contextmanager, nullcontext
from itertools import chain

import numpy as np

from levels import more
from levels.high_level import Callback, Model, epoch_loss, loops, prepared
from levels.low_level import DOOR, METHODS, RUN, as_tensor, function, reduce_mean
from levels.mid_level import LOSSES, OPTIMIZERS, WIDER, Layer, Loss, at_least, known, positive
from levels.support.checks import flag
from levels_more.checks import as_python, takes
from levels_more.high_level.data_adapter import (
    Packing,
    alone,
    answers,
    as_data,
    as_list,
    batches_for,
    checked,
    given_batches,
    inputs_of,
    is_data,
    laid_out,
    parted,
    parts_of,
    rows_for,
    y_as,
)
from levels_more.high_level.multi_epoch import Ahead
from levels_more.high_level.recompile import WAY, Kept
from levels_more.mid_level import metrics
from levels_more.mid_level.dataset import cut, in_rows
from levels_more.mid_level.losses import weighted
from levels_more.mid_level.metrics import METRICS, heed_logits

PIECE_SECONDS = 0.05  # that a call with several steps takes
BEGIN = "on_train_batch_begin"  # what a callback may hear, too: that a step begins


def spelled(what, table, name):
    """The row of a table that Keras' name of a class stands for, such as "auc" for "AUC"; any other name as it is."""
    words = (name, metrics.snake_case(name), name.lower()) if isinstance(name, str) else ()
    return next((word for word in words if word in table or more(what, word)), name)


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    name = spelled(what, table, name)
    if what == "metric" and callable(name) and not isinstance(name, type) and not hasattr(name, "update_state"):
        return metrics.MeanLoss(name) if isinstance(name, Loss) else metrics.Calculated(name)
    found = known(what, table, name)
    found = found() if isinstance(name, (str, type)) else found
    if what == "metric" and isinstance(name, str):
        found.by_name = True
    return found


def distinct(names):
    """These names, each once: a second `precision` is `precision_1`, as in Keras."""
    found = []
    for name in names:
        numbered = (f"{name}_{k}" for k in range(1, len(names) + 1))
        found.append(name if name not in found else next(other for other in numbered if other not in found))
    return found


def loss_of(loss, y, predicted, weight):
    """What a loss, or a function of yours, gives for a batch: the mean over its rows, each times its weight.

    Raises ValueError for weights where a function gives one number for the batch.
    """
    if isinstance(loss, Loss):
        return loss(y, predicted, weight)
    each = as_tensor(loss(y, predicted))
    if weight is not None:
        if not each.spec.shape:
            cure = "with sample_weight or class_weight it has to give one for each row"
            raise ValueError(f"{getattr(loss, '__name__', 'the loss')}: it gives one number for the batch; {cure}")
        each = weighted(loss, each, weight)
    return reduce_mean(each) if each.spec.shape else each


class Training(loops.Training):
    """Several losses, one for each output, or one for all, each times one of the `loss_weights`; metrics of the first output;
    programs that are kept.

    Raises TypeError for None, and ValueError for a name that nobody has, and for no loss.
    """

    def __init__(self, optimizer, loss, metrics=(), loss_weights=None):
        first, *others = as_list(loss) or [""]  # a name that nobody has
        super().__init__(spelled("optimizer", OPTIMIZERS, optimizer), spelled("loss", LOSSES, first))
        self.losses += [made("loss", LOSSES, each) for each in others]
        self.metrics = [made("metric", METRICS, each) for each in as_list([] if metrics is None else metrics)]
        heed_logits(self.metrics, self.losses)
        self.loss_weights = loss_weights
        if loss_weights is not None:
            name = "compile: one of the loss_weights"
            self.loss_weights = [positive(name, weight, zero=True) for weight in loss_weights]
        self.names = distinct(["loss", *(metric.name for metric in self.metrics)])
        self.programs = {}  # (step, packing) -> its function
        self.row_weights = []  # of the rows of the batch that is traced
        self.rows_weighed = False  # whether a loss has heard of them
        self.pace, self.watch = 1, None  # steps in a call, see `pieces`; who listens while `train` runs
        self.tests = None  # who listens to steps of a test: see `Watch.on_step_begin`, `on_piece_end`

    def __getstate__(self):
        """What a copy begins with: all but the programs, which are of this model's variables."""
        return vars(self) | {"programs": {}, "watch": None, "tests": None}

    def loss(self, model, y, predicted):
        """The losses of all outputs and the penalties of all layers, added up. The metrics take the batch in."""
        y, predicted, weights = self.matched(y, predicted)
        self.count(y, predicted, weights)
        return self.summed(model, y, predicted, weights)

    def matched(self, y, predicted):
        """(targets, answers, weights of rows or None), a list of each, for all outputs. Raises ValueError for others than there are."""
        y, predicted = as_list(y), as_list(predicted)
        losses = self.losses_of(predicted)
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        y = [y_as(loss, *pair) for loss, *pair in zip(losses, y, predicted, strict=True)]
        weights = self.row_weights or [None]
        return y, predicted, weights * len(y) if len(weights) == 1 else weights

    def losses_of(self, outputs):
        """A loss for each of these outputs."""
        return self.losses * len(outputs) if len(self.losses) == 1 else self.losses

    def count(self, y, predicted, weights):
        """Let the metrics take in the first output, or that which they are of, predicted for targets y [batch, …]."""
        for metric in self.metrics:
            k = getattr(metric, "output", 0)
            heeds = weights[k] is not None and getattr(metric, "weighted", False)
            metric.update_state(y[k], predicted[k], *[weights[k]] if heeds else ())

    def summed(self, model, y, predicted, weights):
        """The losses of all outputs, predicted for targets y [batch, …], and the penalties of all layers, added up."""
        self.rows_weighed = True
        each = [loss_of(*terms) for terms in zip(self.losses_of(predicted), y, predicted, weights, strict=True)]
        if self.loss_weights is not None:
            each = [weight * loss for weight, loss in zip(self.loss_weights, each, strict=True)]
        first, *others = each + model.losses
        return sum(others, first)

    def on_rows(self, step, packing, rows):
        """step(x, y) on the arrays of a batch. Raises ValueError for a step of yours that does not heed their weights."""
        x, y, self.row_weights = packing.unpacked(rows)
        try:
            result = step(x, y)
            if self.row_weights and not self.rows_weighed:
                cure = "call self.training.loss(self, y, predicted), which does"
                raise ValueError(f"{step.__qualname__} does not heed the weights of rows; {cure}")
            return result
        finally:
            self.row_weights, self.rows_weighed = [], False

    def step_program(self, step, packing, look=True):
        """step(x, y) as a `Kept` function of arrays that lie side by side. Made once.

        If we look, it is traced anew where something that its trace has read has changed since.
        """
        if (step, packing) not in self.programs:
            if not takes(step, 2):
                cure = f"write def {step.__name__}(self, x, y), and return the loss, one number"
                raise TypeError(f"{step.__qualname__}: fit calls it with a batch's x and y; {cure}")
            kept = Kept(step.__self__, lambda *rows: self.on_rows(step, packing, rows))
            self.programs[step, packing] = kept
        kept = self.programs[step, packing]
        return kept.current() if look else kept

    def pieces(self, step, data, listener, look):
        """Go through the data, for a twentieth of a second in each call. Yields (losses, how many rows each step had).

        A listener hears of each step before it begins; then each call is one.

        The first call is one step; from the time that it takes follows the length of the next. Data that is not in
        memory comes batch by batch, and each batch is a call.
        """
        if data.packing is None:
            for element in data:
                rows, packing = laid_out(step.__self__, *parts_of(element), data.class_weight)
                if listener:
                    listener.on_step_begin()
                yield self.step_program(step, packing, look)(*rows).numpy().reshape(1), [len(rows[0])]
            return
        program = self.step_program(step, data.packing, look)
        ahead = None if look or self.watch is None else self.watch.ahead
        if ahead and ahead.may(self.pace):
            yield ahead.epoch(program, self, step.__self__.history)
            return
        for part in cut(data.each(), lambda: 1 if listener else self.pace):
            if listener:
                listener.on_step_begin()
            begun = time.perf_counter()
            losses = program.over(*data.arrays, part).numpy()
            self.timed(len(part), begun)
            yield losses, [len(batch) for batch in part]

    def timed(self, steps, begun):
        """Note the pace: so many steps took the time since then."""
        self.pace = max(1, int(PIECE_SECONDS * steps / (time.perf_counter() - begun)))

    def one_pass(self, step, data, history=None):
        """Go through the data; a history keeps the losses. Returns {"loss": the mean over all rows, each metric}."""
        if hasattr(type(step.__wrapped__.__self__), "by_data") and not takes(step.__wrapped__, 2):  # a step of Keras
            return step.__wrapped__.__self__.by_data(step, data, history)
        losses, sizes, watch = [], [], self.watch
        step = step.__wrapped__  # `step_program` makes a `function` that is kept
        for metric in self.metrics:
            metric.reset_state()
        look = history is None or not history.passes  # once a training: what changes later is heard by the next one
        listener = self.tests if history is None else watch if watch.each else None
        for piece, rows in self.pieces(step, data, listener, look):
            losses.append(piece)
            sizes.append(rows)
            if history is not None:
                history.passes.append(piece)
                watch.on_piece_end(piece, rows)
            elif listener:
                listener.on_piece_end(piece, rows)
            if watch is not None:
                watch.heed()
        if not sizes:
            raise ValueError("the dataset gave no batch")
        if len(losses) > 1:  # added up here: the same, however it was cut into pieces
            losses, sizes = [np.concatenate(losses)], [[*chain(*sizes)]]
        loss = epoch_loss(losses[0], sizes[0])
        return dict(zip(self.names, [loss, *(float(metric.result()) for metric in self.metrics)], strict=True))


def run_training(model, data, epochs, verbose, callbacks, validation=None, first=0, ahead=None):
    """Train for so many epochs, with a bar; Ctrl-C waits for the end of a piece. Returns the History.

    data, validation: Datasets of batches, the second or None; verbose: 1 shows the bar, 2 a line for each epoch; first: the
    number of the first epoch, for callbacks; ahead: an `Ahead`, where an epoch may be done before the loop begins it. Raises
    KeyboardInterrupt, with the weights of the last whole step, and TypeError for callbacks that are none.
    """
    callbacks, training = as_list(callbacks), model.training
    held = [] if validation is None else [HeldOut(model, validation)]
    with noted_interrupts() as pressed, progress(data, epochs) if verbose == 1 else nullcontext() as bar:
        if callbacks or held or training.metrics or WAY.change or DOOR.stands is not RUN:
            ahead = None
        training.watch = Watch(pressed, bar, callbacks, ahead)
        attach(callbacks, model)
        told = [Told(model, callbacks, first)] if callbacks else []
        try:
            return loops.run_training(model, data, epochs, [*held, *told, training.watch], verbose == 2)
        finally:
            if ahead:
                ahead.tell(model.history)
            model.history.params = {"epochs": first + epochs, "verbose": verbose}
            model.history.epoch = [*range(first, first + len(model.history.epochs))]  # Keras' numbers of them
            training.watch = None


def tested(model, step, data):
    """A pass of a test over the data, which `training.tests` hears of, if somebody is there: {name: number}."""
    listener = model.training.tests
    if listener:
        listener.on_test_begin()
    logs = model.training.one_pass(step, data)
    if listener:
        listener.on_test_end(logs)
    return logs


class HeldOut(Callback):
    """The first listener of each training that has rows to validate: adds what they come to, {"val_loss": …}."""

    def __init__(self, model, data):
        self.step, self.data = function(model.test_step), data

    def on_epoch_end(self, epoch, logs):
        tried = tested(self.model, self.step, self.data)
        logs.update({f"val_{name}": value for name, value in tried.items()})


class Told(Callback):
    """Tells callbacks what it hears, with epochs that count from a number on, and `logs` where they take some, as in Keras."""

    def __init__(self, model, callbacks, first):
        self.model, self.callbacks, self.first = model, callbacks, first

    def tell(self, event, *given, logs):
        """Call this method of each callback: with logs, {name: number}, if it takes them."""
        for callback in self.callbacks:
            method = getattr(callback, event)
            method(*given, *[logs] * takes(method, len(given) + 1))

    def on_train_begin(self):
        self.tell("on_train_begin", logs={})

    def on_epoch_begin(self, epoch):
        self.tell("on_epoch_begin", self.first + epoch, logs={})

    def on_epoch_end(self, epoch, logs):
        self.tell("on_epoch_end", self.first + epoch, logs=logs)

    def on_train_end(self):
        self.tell("on_train_end", logs=dict(self.model.history.epochs[-1]) if self.model.history.epochs else {})


class Watch(Callback):
    """The last listener of each training: moves the bar, tells of each step, and looks whether Ctrl-C was pressed."""

    def __init__(self, pressed, bar, callbacks, ahead):
        self.pressed, self.bar, self.callbacks = pressed, bar, callbacks
        self.ahead, self.step = ahead, 0
        self.each = any(
            getattr(callback, name, None) for callback in callbacks for name in (BEGIN, "on_train_batch_end")
        )

    def heed(self):
        """Raise KeyboardInterrupt if Ctrl-C was pressed; the history has what the weights have."""
        if self.pressed and not (self.ahead and self.ahead.done):
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def on_epoch_begin(self, epoch):
        self.step = self.total = self.rows = 0

    def on_step_begin(self):
        """Before each step, where somebody wants to hear of each."""
        for callback in self.callbacks:
            if getattr(callback, BEGIN, None):
                getattr(callback, BEGIN)(self.step, *[{}] * takes(getattr(callback, BEGIN), 2))

    def on_piece_end(self, losses, rows):
        """After each call, with its losses [steps], and how many rows each had. Where somebody wants to hear of each, it was one.

        Steps count from 0 in each epoch, as in Keras; the loss is that of the step, or, where the model says so, the mean of
        the epoch so far, as Keras tells it. Metrics are those of the epoch so far.
        """
        if self.bar is not None:
            self.bar.update(len(losses))
        if self.each:
            self.total, self.rows = self.total + float(np.dot(losses, rows)), self.rows + sum(rows)
        for callback in self.callbacks if self.each else ():
            if callback.on_train_batch_end:
                mean = getattr(callback.model, "means_by_batch", False)
                logs = {"loss": self.total / self.rows if mean else float(losses[0])}
                logs |= {metric.name: float(metric.result()) for metric in callback.model.training.metrics}
                callback.on_train_batch_end(self.step, logs)
        self.step += len(losses)

    def on_epoch_end(self, epoch, logs):
        if self.bar is not None:
            self.bar.set_postfix(logs, refresh=False)
        self.heed()


def attach(callbacks, model):
    """Tell each callback whose training it is. Raises TypeError for what is none, and for a method that nobody calls."""
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if (
                name.startswith("on_")
                and not hasattr(Callback, name)
                and name not in {BEGIN, *getattr(callback, "hears", ())}
            ):
                heard = ", ".join(each for each in dir(Callback) if each.startswith("on_"))
                raise TypeError(f"{type(callback).__name__}: nobody calls {name}; a callback hears {heard}")
        callback.model = model


@contextmanager
def noted_interrupts():
    """Inside this `with` block Ctrl-C fills the list that it gives, and no more. (Only the main thread gets any.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


def progress(data, epochs):
    """A bar for so many passes over the data."""
    from tqdm.auto import tqdm  # here, because it takes its time to load

    return tqdm(total=epochs * len(data) if data.packing else None, unit=" steps")


# Methods of a model: arrays in, several of them too.


def prepared_rows(model, x, y):
    """As `prepared` in the core, for all that `fit` takes: (x, y) as the model and its losses want them.

    Raises ValueError where a loss has no meaning for the targets, or for what the model gives for the first rows.
    """
    rows, packing = laid_out(model, x, y)
    return packing.unpacked(checked(model, in_rows(rows)[0], packing))[:2]


def fit_model(
    model,
    x,
    y=None,
    batch_size=32,
    epochs=1,
    verbose=1,
    callbacks=None,
    validation_split=0.0,
    validation_data=None,
    shuffle=True,
    class_weight=None,
    sample_weight=None,
    initial_epoch=0,
    steps_per_epoch=None,
    validation_steps=None,
    validation_batch_size=1024,
    seed=None,
):
    """Train on arrays x, y or on a Dataset of batches, with a bar; returns a History. A seed repeats the orders of rows.

    x: an array, a list of them, a DataFrame, a dict of columns; or batches (x, y) or (x, y, sample_weight). A row's loss
    counts `sample_weight` [rows] times, or as often as `class_weight`, {class: weight}, says; the sum is divided by the number
    of rows, as in Keras. Rows to validate are the last share of x and y, or `validation_data`. With `steps_per_epoch` an epoch
    is that many batches, and the next one goes on behind them. `epochs` is the number of the last one, as in Keras: with
    `initial_epoch` there are fewer, in the orders that a seed gives epochs of that number. Raises TypeError, ValueError.
    """
    if type(verbose) is not int:
        verbose = as_python(verbose)
    if type(verbose) is not int:
        verbose = int(verbose == "auto" or flag("fit: verbose", verbose))
    shuffle, share = flag("fit: shuffle", shuffle), positive("fit: validation_split", validation_split, zero=True)
    held, steps, ahead = None, (steps_per_epoch, "steps_per_epoch"), None
    first = at_least(0, "initial_epoch", initial_epoch)
    epochs = max(0, at_least(0, "epochs", epochs) - first)
    if is_data(x):
        if share and validation_data is None:
            raise TypeError("validation_split needs arrays x and y; beside a Dataset give validation_data")
        data = batches_for(model, as_data(x, *steps), y, sample_weight, class_weight)
    else:
        rows, packing = rows_for(model, x, y, sample_weight, class_weight)
        if share and validation_data is None:
            form, (rows, held) = packing, parted(rows, share)
            if class_weight is not None:  # it is for training: rows to validate count alike, as in Keras
                own, form = rows_for(model, x, y, sample_weight)
                held = parted(own, share)[1]
            held = held.batch(validation_batch_size)
            held.packing = form
        rows = rows.shuffle(len(rows), seed) if shuffle else rows
        for _ in range(first if shuffle else 0):  # the orders of the epochs before: a seed goes on behind them
            rows.make()
        size = 32 if batch_size is None else batch_size
        data = as_data(rows.batch(size), *steps)
        data.packing, ahead = packing, Ahead(rows, size, epochs) if epochs > 1 and steps_per_epoch is None else None
    if validation_data is not None:
        others = validation_batch_size, validation_steps, "validation_steps"
        held = given_batches(model, validation_data, None, None, *others)
    return run_training(model, data, epochs, verbose, () if callbacks is None else callbacks, held, first, ahead)


def evaluate_model(model, x, y=None, batch_size=1024, verbose=0, sample_weight=None, steps=None, return_dict=False):
    """The mean loss over all rows; with metrics a list, the loss first, as in Keras; or {name: number}, if asked for.

    `sample_weight` weighs the loss, not the metrics. `verbose` is Keras': here nothing is shown.
    """
    data = given_batches(model, x, y, sample_weight, batch_size, steps)
    logs = tested(model, function(model.test_step), data)
    return logs if flag("evaluate: return_dict", return_dict) else alone([*logs.values()])


def predict(model, x, batch_size=1024, verbose=0, steps=None):
    """What the model gives for all rows of x: a NumPy array, or a list of them. Of a Dataset of (x, y) it takes x.

    `verbose` is Keras': here nothing is shown.
    """
    size = at_least(1, "predict: batch_size", batch_size)
    if is_data(x):
        elements = as_data(x, steps, "steps", True)
        given = (inputs_of(model, element[0] if isinstance(element, tuple) else element) for element in elements)
        batches = ((rows, Packing(len(rows), 0, 0, *form)) for rows, *form in given)
    else:
        rows, *form = inputs_of(model, x)
        packing, batches = Packing(len(rows), 0, 0, *form), [rows]
        if (count := len(rows[0])) > size:
            arrays = [row.numpy() for row in rows]
            batches = ([a[k : k + size] for a in arrays] for k in range(0, count, size))
        batches = ((batch, packing) for batch in batches)
    outputs = zip(*map(as_list, answers(model, batches)), strict=True)
    found = [[part.numpy() for part in parts] for parts in outputs]
    return alone([np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in found])


def test_step(model, x, y):
    """The loss on one batch, for `evaluate` and for rows to validate. Yours to override, like `train_step`."""
    return model.training.loss(model, y, model(x))


def summary(model):
    """Print the layers, the shapes that they gave last, and how many numbers their variables hold."""
    found = model.named(Layer)
    top = [part for path, part in found.items() if path and not any(p and path.startswith(f"{p}.") for p in found)]
    rows = [("layer", "output shape", "parameters")]
    for part in top:
        shape = vars(part).get("output_shape") and str((None, *part.output_shape[1:]))
        rows.append((f"{part.name} ({type(part).__name__})", shape or "not built", f"{part.count():,}"))
    rows.append(("total", "", f"{model.count():,}"))
    rows.append(("trained", "", f"{sum(math.prod(v.shape) for v in model.trainable_variables):,}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for a, b, c in rows:
        print(f"{a:{widths[0]}}   {b:{widths[1]}}   {c:>{widths[2]}}")


WIDER.update({loops.Training: Training, prepared.__wrapped__: prepared_rows})
WIDER.update(
    {
        own.__wrapped__: wide
        for own, wide in ((Model.fit, fit_model), (Model.evaluate, evaluate_model), (Model.predict, predict))
    }
)
METHODS.update({"Model.summary": summary, "Model.test_step": test_step})
