"""What makes `fit` wide, polite and quick: several inputs and outputs, metrics, a bar, Ctrl-C, steps that stay compiled."""

import math
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np

from levels.hardware import check_finite, flag
from levels.high_level import Callback, Model, batches_of, dtype_for, epoch_loss, loops, prepared
from levels.low_level import METHODS, Operators, as_tensor, constant, function, reshape
from levels.mid_level import LOSSES, METRICS, WIDER, Dataset, Layer, Loss, at_least, known, positive
from levels_more.reading import of_levels
from levels_more.retracing import Kept

PIECE_SECONDS = 0.05  # that a call with several steps takes


def as_list(x):
    """A list of what may stand alone: of one array, or of several."""
    return list(x) if isinstance(x, (list, tuple)) else [x]


def alone(values):
    """The only one of several, or all."""
    return values[0] if len(values) == 1 else values


def made(what, table, name):
    """A new object of the class with this name in a table. An object of your own stays as it is."""
    found = known(what, table, name)
    return found() if isinstance(name, (str, type)) else found


class Training(loops.Training):
    """Several losses, one for each output, or one for all; metrics of the first output; programs that are kept.

    Raises TypeError for None, and ValueError for a name that nobody has, and for no loss.
    """

    def __init__(self, optimizer, loss, metrics=None):
        first, *others = as_list(loss) or [""]  # a name that nobody has
        super().__init__(optimizer, first)
        self.losses += [made("loss", LOSSES, each) for each in others]
        self.metrics = [made("metric", METRICS, each) for each in as_list(metrics or [])]
        self.programs = {}  # (step, inputs) -> its function
        self.pace, self.watch = 1, None  # steps in a call, see `pieces`; who listens while `train` runs

    def __getstate__(self):
        """What a copy begins with: all but the programs, which are of this model's variables."""
        return vars(self) | {"programs": {}, "watch": None}

    def loss(self, model, y, predicted):
        """The losses of all outputs and the penalties of all layers, added up. The metrics take the batch in."""
        y, predicted = as_list(y), as_list(predicted)
        losses = self.losses * len(predicted) if len(self.losses) == 1 else self.losses
        if not len(losses) == len(y) == len(predicted):
            raise ValueError(f"{len(predicted)} outputs, with {len(y)} targets and {len(losses)} losses")
        y = [y_as(loss, *pair) for loss, *pair in zip(losses, y, predicted, strict=True)]
        for metric in self.metrics:
            metric.update_state(y[0], predicted[0])
        first, *others = [loss(*pair) for loss, *pair in zip(losses, y, predicted, strict=True)] + model.losses
        return sum(others, first)

    def step_program(self, step, inputs, look=True):
        """step(x, y) as a `Kept` function of single arrays: so many inputs, the others are targets. Made once.

        If we look, it is traced anew where something that its trace has read has changed since.
        """
        if (step, inputs) not in self.programs:
            kept = Kept(step.__self__, lambda *rows: step(alone(rows[:inputs]), alone(rows[inputs:])))
            self.programs[step, inputs] = kept
        kept = self.programs[step, inputs]
        return kept.current() if look else kept

    def pieces(self, step, data, one_by_one, look):
        """Go through the data, for a twentieth of a second in each call. Yields (losses, how many rows each step had).

        The first call is one step; from the time that it takes follows the length of the next. Data that is not in
        memory comes batch by batch, and each batch is a call.
        """
        if not data.in_memory:
            for x, y in data:
                x = inputs_of(step.__self__, x)
                rows = [*x, *targets_of(step.__self__, y, x)]
                yield self.step_program(step, len(x), look)(*rows).numpy().reshape(1), [len(rows[0])]
            return
        (x, y), batches = data.rows()
        rows, done = [*as_list(x), *as_list(y)], 0
        program = self.step_program(step, len(as_list(x)), look)
        while done < len(batches):
            part = batches[done : done + (1 if one_by_one else self.pace)]
            begun = time.perf_counter()
            losses = program.over(*rows, part).numpy()
            self.pace = max(1, int(PIECE_SECONDS * len(part) / (time.perf_counter() - begun)))
            done += len(part)
            yield losses, [len(batch) for batch in part]

    def one_pass(self, step, data, history=None):
        """Go through the data; a history keeps the losses. Returns {"loss": the mean over all rows, each metric}."""
        losses, sizes, watch = [], [], self.watch
        step = step.__wrapped__  # `step_program` makes a `function` that is kept
        for metric in self.metrics:
            metric.reset_state()
        look = history is None or not history.passes  # once a training: what changes later is heard by the next one
        for piece, rows in self.pieces(step, data, history is not None and watch.each, look):
            losses.append(piece)
            sizes += rows
            if history is not None:
                history.passes.append(piece)
                watch.on_piece_end(piece, len(history.passes) - 1)
            if watch is not None:
                watch.heed()
        if not sizes:
            raise ValueError("the dataset gave no batch")
        # added up here: the same, however it was cut into pieces
        loss = epoch_loss(np.concatenate(losses), sizes)
        return {"loss": loss} | {metric.name: metric.result() for metric in self.metrics}


def run_training(model, data, epochs, verbose, callbacks, validation=None):
    """Train for so many epochs, with a bar; Ctrl-C waits for the end of a piece. Returns the History.

    data, validation: Datasets of batches, the second or None; verbose: 0 hides the bar. Raises KeyboardInterrupt, with the
    weights of the last whole step, and TypeError for callbacks that are none.
    """
    callbacks, training = as_list(callbacks), model.training
    with noted_interrupts() as pressed, progress(data, epochs, verbose) as bar:
        training.watch = Watch(pressed, bar, callbacks)
        attach(callbacks, model)
        first = [] if validation is None else [HeldOut(model, validation)]
        try:
            return loops.run_training(model, data, epochs, [*first, *callbacks, training.watch])
        finally:
            training.watch = None


class HeldOut(Callback):
    """The first listener of each training that has rows to validate: adds what they come to, {"val_loss": …}."""

    def __init__(self, model, data):
        self.step, self.data = function(model.test_step), data

    def on_epoch_end(self, epoch, logs):
        tried = self.model.training.one_pass(self.step, self.data)
        logs.update({f"val_{name}": value for name, value in tried.items()})


class Watch(Callback):
    """The last listener of each training: moves the bar, tells of each step, and looks whether Ctrl-C was pressed."""

    def __init__(self, pressed, bar, callbacks):
        self.pressed, self.bar, self.callbacks = pressed, bar, callbacks
        self.each = any(getattr(callback, "on_train_batch_end", None) for callback in callbacks)

    def heed(self):
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self.pressed:
            raise KeyboardInterrupt("fit was stopped; the model has its weights, model.history the losses so far")

    def on_piece_end(self, losses, step):
        """After each call, with its losses [steps]. Where somebody wants to hear of each step, it was one."""
        self.bar.update(len(losses))
        for callback in self.callbacks if self.each else ():
            if callback.on_train_batch_end:
                callback.on_train_batch_end(step, {"loss": float(losses[0])})

    def on_epoch_end(self, epoch, logs):
        self.bar.set_postfix(logs, refresh=False)
        self.heed()


def attach(callbacks, model):
    """Tell each callback whose training it is. Raises TypeError for what is none, and for a method that nobody calls."""
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(f"callbacks hold {callback!r}; expected objects, such as EarlyStopping()")
        for name in dir(callback):
            if name.startswith("on_") and not hasattr(Callback, name):
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


def progress(data, epochs, verbose):
    """A bar for so many passes over the data. Nobody sees it where `verbose` is 0."""
    from tqdm.auto import tqdm  # here, because it takes its time to load

    return tqdm(total=epochs * len(data) if data.in_memory else None, unit=" steps", disable=not verbose)


# Methods of a model: arrays in, several of them too.


def arrays_of(x):
    """One array, or a list of arrays, as a list of NumPy arrays. A list of numbers is one array."""
    several = isinstance(x, (list, tuple)) and any(isinstance(a, (np.ndarray, Operators)) for a in x)
    return [a if isinstance(a, np.ndarray) else constant(a).numpy() for a in (x if several else [x])]


def inputs_of(model, x):
    """One array, or a list of arrays, as tensors in the model's dtype. Whole numbers stay where the model may want some."""
    x = arrays_of(x)
    whole = any(a.dtype.kind in "iu" for a in x) and takes_whole(model)
    dtype = dtype_for(model, next((a for a in x if a.dtype.kind == "f"), None))
    return [as_rows(a, dtype, whole) for a in x]


def takes_whole(model):
    """Whether a model may want whole numbers: for an `Embedding`, or for a `call` that the reader wrote."""
    return not of_levels(type(model).call) or any(vars(type(part)).get("whole") for part in model.named(Layer).values())


def targets_of(model, y, x):
    """One array, or a list of arrays, as tensors: of the dtype of tensors x, or whole where a loss wants numbers of classes."""
    y, losses = arrays_of(y), model.training.losses
    dtype = next((a.dtype for a in x if a.dtype.kind == "f"), None) or dtype_for(model, None)
    kinds = [getattr(loss, "classes", False) for loss in losses * len(y)] + [False] * len(y)
    return [as_rows(a, None if kind else dtype, kind) for a, kind in zip(y, kinds, strict=False)]


def as_rows(array, dtype, whole):
    """An array as a tensor of that dtype; whole numbers, where they stay, of int64."""
    return constant(array.astype(np.int64)) if whole and array.dtype.kind in "iu" else constant(array, dtype)


def y_as(loss, y, predicted):
    """Targets [rows] as [rows, 1] where the model gives that, as in Keras: nothing is broadcast. Numbers of classes stay."""
    y = as_tensor(y)
    single = y.spec.shape == predicted.spec.shape[:-1] and predicted.spec.shape[-1:] == (1,)
    return reshape(y, (-1, *predicted.spec.shape[1:])) if single and not getattr(loss, "classes", False) else y


def prepared_rows(model, x, y):
    """As `prepared` in the core, for lists of arrays, too, of several inputs and outputs; each loss looks at its own.

    Raises ValueError where a loss has no meaning for the targets, or for what the model gives for the first rows.
    """
    x = inputs_of(model, x)
    y = targets_of(model, y, x)
    for name, arrays in (("x", x), ("y", y)):
        for array in arrays:
            check_finite(name, array.numpy())
    rows = Dataset.from_tensor_slices((alone(tuple(x)), alone(tuple(y)))).arrays  # as many in each
    losses = (model.training.losses * len(y))[: len(y)]
    asked = [getattr(loss, "probabilities", False) for loss in losses]
    given = as_list(outputs_of(model, [a.numpy()[:32] for a in x], 32)) if any(asked) else y
    for loss, target, answer, probabilities in zip(losses, y, given, asked, strict=False):
        if isinstance(loss, Loss) and not loss.classes:
            loss.check(target, target)
        if probabilities:
            answer = constant(answer)
            loss.check(y_as(loss, constant(target.numpy()[:32]), answer), answer)
    return rows


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
    seed=None,
):
    """Train on arrays x, y or on a Dataset of batches, with a bar; returns a History. A seed repeats the order of rows.

    Rows to validate are the last share of x and y, or `validation_data`, (x, y) or a Dataset. Raises TypeError, ValueError.
    """
    verbose = flag("fit: verbose", bool(verbose) if type(verbose) is int else verbose)
    if positive("fit: validation_split", validation_split, zero=True) and validation_data is None:
        x, y, validation_data = parted(x, y, validation_split)
    data = batches_of(model, x, y, batch_size, flag("fit: shuffle", shuffle), seed)
    validation = None if validation_data is None else batches_of(model, validation_data)
    return run_training(model, data, at_least(0, "epochs", epochs), verbose, callbacks or (), validation)


def evaluate_model(model, x, y=None, batch_size=1024, return_dict=False):
    """The mean loss over all rows; with metrics a list, the loss first, as in Keras; or {name: number}, if asked for."""
    logs = model.training.one_pass(function(model.test_step), batches_of(model, x, y, batch_size))
    return logs if flag("evaluate: return_dict", return_dict) else alone([*logs.values()])


def parted(x, y, share):
    """The rows of arrays x, y: (x, y, (x, y)), all but the last, and this share of them, the last.

    Raises TypeError for a Dataset and for a missing y, ValueError where a part is empty.
    """
    if isinstance(x, Dataset):
        raise TypeError("validation_split needs arrays x and y; beside a Dataset give validation_data")
    if y is None:
        raise TypeError("y is missing: give x and y, or a Dataset of batches (x, y)")
    x, y = arrays_of(x), arrays_of(y)
    last = int(len(x[0]) * share)
    kept = len(x[0]) - last
    if not 0 < last < len(x[0]):
        raise ValueError(f"validation_split {share} leaves {kept} to train on and {last} to validate")
    first, then = ([[a[part] for a in arrays] for arrays in (x, y)] for part in (slice(kept), slice(kept, None)))
    return alone(first[0]), alone(first[1]), (alone(then[0]), alone(then[1]))


def outputs_of(model, x, batch_size):
    """What the model gives for the rows of a list of NumPy arrays: a NumPy array, or a list of them."""
    if vars(model).get("predictor") is None:
        model.predictor = Kept(model, lambda *rows: model(alone(rows)))
    program = model.predictor.current()
    starts = range(0, max(1, len(x[0])), batch_size)  # no rows are one empty batch
    parts = [as_list(program(*(a[k : k + batch_size] for a in x))) for k in starts]
    return alone([np.concatenate([part.numpy() for part in outputs]) for outputs in zip(*parts, strict=True)])


def predict(model, x, batch_size=1024):
    """What the model gives for all rows of x, an array or a list of them: a NumPy array, or a list of them."""
    return outputs_of(model, [a.numpy() for a in inputs_of(model, x)], at_least(1, "predict: batch_size", batch_size))


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
