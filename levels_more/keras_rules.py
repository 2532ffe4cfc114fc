"""Layers, models, losses, metrics and optimizers by Keras' rules, where these differ from those of levels 4 and 5.

A layer computes in float32 unless told otherwise, a bias is [units], what a metric gives is a tensor, Adam's ε is larger.
"""

import functools
import math
import operator

import numpy as np

from levels import high_level, mid_level
from levels.low_level import METHODS, Operators, Variable, as_tensor, cast, constant, exp, reduce_mean, reshape, sqrt
from levels.mid_level import INITIALIZERS, OPTIMIZERS, WIDER, known
from levels_more import (
    constraints,
    counts,
    functional,
    keras_steps,
    layers,
    losses,
    more_layers,
    more_losses,
    more_optimizers,
    optimizers,
    saving,
)
from levels_more.checks import dtype_of, takes
from levels_more.fitting import made, spelled
from levels_more.inputs import alone, as_list
from levels_more.metrics import snake_case
from levels_more.nested import Later, each_leaf, leaves, numbers, traced
from levels_more.parts import get_config
from levels_more.watching import Assigned, WatchingTape

REGISTERED = {}  # classes and functions of the reader's that load_model knows
FLOAT = ["float32"]  # what layers compute in that do not say it


def set_floatx(dtype):
    """Layers made from now on compute in this dtype, "float32" or "float64"."""
    FLOAT[0] = str(dtype_of("set_floatx: dtype", dtype, "float32 float64"))


def _fitting(x, dtype):
    """Floats x in a layer's dtype; lists of tensors, and what stands for numbers, as they are."""
    if isinstance(x, dict):
        return {name: _fitting(each, dtype) for name, each in x.items()}
    if isinstance(x, (list, tuple)) and len(x):
        several = isinstance(x[0], (Operators, np.ndarray, functional.Placeholder))
        return [_fitting(each, dtype) for each in x] if several else _fitting(constant(list(x)), dtype)
    x = numbers(x) if isinstance(x, np.ndarray) and x.dtype.kind in "iuf" else x
    return cast(x, dtype) if isinstance(x, Operators) and x.dtype.kind == "f" and x.dtype != dtype else x


def Input(shape=None, batch_size=None, dtype=None, name=None, input_shape=None):
    """A place for rows of that shape [sizes], in the dtype of layers unless one is said."""
    return functional.Input(tuple(input_shape if shape is None else shape), dtype or FLOAT[0], name)


class Layer(mid_level.Layer):
    """A layer of Keras: it has a dtype, float32 unless said, and takes floats in it."""

    def __init__(self, *args, dtype=None, trainable=True, input_shape=None, input_dim=None, **options):
        super().__init__(*args, **options)
        self.dtype, self.input_size = np.dtype(dtype or FLOAT[0]), (input_dim,) if input_dim else input_shape
        if not trainable:  # True would thaw the parts that a model is made of
            self.trainable = False

    def __call__(self, inputs, training=None):
        """What `call` gives for inputs [batch, …]."""
        before = vars(self).get("penalties", ())
        kept = [penalty for penalty in before if not hasattr(penalty, "of_call")]
        if len(kept) < len(before):  # another list would have a step traced anew
            self.penalties = kept
        return super().__call__(_fitting(inputs, self.dtype or FLOAT[0]), training)

    def build(self, input_shape):
        super().build(tuple(input_shape))

    def add_weight(self, shape=(), initializer=None, dtype=None, trainable=True, regularizer=None, name=None):
        """A new variable of this shape, in the layer's dtype, with a penalty where a regularizer is given."""
        found = super().add_weight(tuple(shape), initializer or "glorot_uniform", trainable)
        found = Assigned(found.newest(), trainable, name, dtype)
        if regularizer is not None:
            self.penalties = [*vars(self).get("penalties", ()), lambda: regularizer(found)]
        return found

    def add_loss(self, loss):
        """Add a number to what is minimised, until the layer is called again."""
        kept = lambda: loss  # noqa: E731
        kept.of_call = True
        vars(self).setdefault("penalties", []).append(kept)

    def set_weights(self, weights):
        """Give all variables these arrays, in their dtypes. Raises ValueError where one of them does not fit."""
        given = [*weights]
        dtypes = [v.dtype for v in self.variables] if len(given) == len(self.variables) else [None] * len(given)
        super().set_weights([np.asarray(w, dtype) for w, dtype in zip(given, dtypes, strict=True)])

    def get_config(self):
        """{name: the argument that it was made with}"""
        return get_config(self)

    @classmethod
    def from_config(cls, config):
        """A layer of these arguments."""
        return cls(**config)


class Dense(Layer, layers.Dense):
    """activation(x[batch, inputs] @ kernel[inputs, units] + bias[units]); constraints hold after each step of an optimizer."""

    def __init__(self, *args, kernel_constraint=None, bias_constraint=None, **options):
        super().__init__(*args, **options)
        given = kernel_constraint, bias_constraint
        self.constraints = [each and known("constraint", constraints.WORDS, each) for each in given]

    def build(self, input_shape):
        super().build(input_shape)
        if self.use_bias:
            self.bias = self.add_weight((self.units,), self.initializers[1], name="bias")
        for variable, constraint in zip((self.kernel, self.bias), self.constraints, strict=True):
            if constraint:
                variable.constraint = constraint() if isinstance(constraint, type) else constraint


class Dropout(Layer, layers.Dropout):
    """That of levels; its random state is none of the layer's weights."""

    def __init__(self, rate, seed=None, **options):
        super().__init__(rate, seed=seed, **options)
        self.state = _State(self.state, trainable=False)


class _State(Variable):
    apart = True  # for `Module.named`: no weight


class Model(Layer, high_level.Model):
    """A model of Keras: a subclass, which may have a `build` of its own, or Model(inputs, outputs)."""

    means_by_batch = True  # a callback hears the mean loss of the epoch so far, not that of the step

    def __init__(self, *args, **options):
        if not isinstance(self, Functional) and (len(args) > 1 or "outputs" in options):  # a graph of a class of yours
            self.__class__ = _graph_of(type(self))
            return Functional.__init__(self, *args, **options)
        super().__init__(*args, **options)
        self.own, self.built = None, type(self).build is Model.build
        self.tracker = METRICS["Mean"]("loss")

    def build(self, input_shape):
        """Make all variables: a row of zeros [rows, …] goes through."""
        self.built = True
        high_level.Model.build(self, tuple(input_shape), self.dtype)

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        metrics=(),
        loss_weights=None,
        weighted_metrics=(),
        run_eagerly=None,
        jit_compile=None,
    ):
        """Choose how to train, by names or objects; `weighted_metrics` heed weights of rows. The last two change nothing here."""
        weights = {} if loss_weights is None else {"loss_weights": loss_weights}
        metrics, weighted = ([_called(each) for each in as_list(given or ())] for given in (metrics, weighted_metrics))
        for metric in weighted:
            metric.weighted = True
        found = (
            KERAS.get(spelled("optimizer", OPTIMIZERS, optimizer), optimizer)
            if isinstance(optimizer, str)
            else optimizer
        )
        losses = _no_loss if loss is None else each_leaf(loss, _chosen)
        super().compile(found() if isinstance(found, type) else found, losses, metrics + weighted, **weights)

    @property
    def optimizer(self):
        """What `compile` chose, or the one that was assigned."""
        return self.own or self.training.optimizer

    @optimizer.setter
    def optimizer(self, value):
        self.own = value

    metrics_names = property(lambda self: self.training.names)

    @property
    def metrics(self):
        """The mean loss, the metrics that `compile` chose, and those that are attributes of the model. Yours to override."""
        chosen = [self.tracker, *self.training.metrics] if self.chosen else []
        return chosen + [each for each in vars(self).values() if isinstance(each, Metric) and each not in chosen]

    def reset_metrics(self):
        """Let all metrics forget all batches."""
        for metric in self.metrics:
            metric.reset_state()

    def train_step(self, *data):
        """One step on data, (x, y) or (x, y, sample_weight). Yours to override: def train_step(self, data), which gives a dict."""
        if len(data) == 2:  # as level 5 calls it
            return super().train_step(*data)
        x, y, weight = keras_steps.unpack_x_y_sample_weight(*data)
        with WatchingTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weight)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return self._counted(x, y, y_pred, weight, loss)

    def test_step(self, *data):
        """The loss and the metrics of data, (x, y) or (x, y, sample_weight). Yours to override, like `train_step`."""
        if len(data) == 2:
            return METHODS["Model.test_step"](self, *data)
        x, y, weight = keras_steps.unpack_x_y_sample_weight(*data)
        y_pred = self(x, training=False)
        return self._counted(x, y, y_pred, weight, self.compute_loss(x, y, y_pred, weight, False))

    def _counted(self, x, y, y_pred, weight, loss):
        rows = len(leaves(x)[0])
        self.tracker.update_state(loss, sample_weight=[float(rows)])
        return self.compute_metrics(x, y, y_pred, weight)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss that `compile` chose, of y_true and y_pred [batch, …], and the penalties of all layers. Yours to override.

        Raises ValueError where there is neither.
        """
        if self.training.losses != [_no_loss]:
            return self.training.summed(self, *self._matched(y, y_pred, sample_weight))
        return functools.reduce(operator.add, self.losses) if self.losses else _no_loss(y, y_pred)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Let the metrics that `compile` chose take in y_true and y_pred [batch, …]; {name: result} of all. Yours to override."""
        if y is not None and self.training.metrics:
            self.training.count(*self._matched(y, y_pred, sample_weight))
        return self.get_metrics_result()

    def get_metrics_result(self):
        """{name: result} of all metrics."""
        return {metric.name: metric.result() for metric in self.metrics}

    def _matched(self, y, y_pred, weight):
        y, y_pred, _ = self.training.matched(y, y_pred)
        return y, y_pred, [weight] * len(y) if isinstance(weight, Operators | None) else [*weight]

    def by_data(self, step, data, history):
        """A pass of a step that takes data alone. Returns what it told last, {name: number}."""
        return keras_steps.one_pass(self, step, data, history)

    def fit(self, x=None, y=None, batch_size=None, *args, callbacks=None, **options):
        """That of levels, of arrays x, y or a Dataset; a callback hears of validation and prediction, too, if it has methods for it."""
        if not takes(self.train_step, 2):  # it is of the reader's, and takes data
            own_test = not takes(self.test_step, 2)
            x, options = keras_steps.prepared(self, x, y, batch_size, own_test, options)
            y = None
        elif not keras_steps.is_data(x):
            keras_steps.check_steps(x, batch_size, options)
        heard = [Heard(callback) if _hears_more(callback) else callback for callback in as_list(callbacks or ())]
        return super().fit(x, y, batch_size, *args, callbacks=heard, **options)

    def evaluate(self, x=None, y=None, batch_size=None, *args, callbacks=None, return_dict=False, **options):
        """That of levels, of arrays x, y or a Dataset, between on_test_begin and on_test_end of the callbacks."""
        tell = _teller(self, callbacks)
        tell("on_test_begin", {})
        if not takes(self.test_step, 2):
            weight, steps = (options.pop(name, None) for name in ("sample_weight", "steps"))
            x, y = keras_steps.elements(self, x, y, weight, batch_size, steps), None
        logs = super().evaluate(x, y, batch_size or 1024, *args, return_dict=True, **options)
        tell("on_test_end", logs)
        return logs if return_dict else alone([*logs.values()])

    def predict(self, x, batch_size=32, verbose=0, steps=None, callbacks=None):
        """What the model gives for all rows x [rows, …]: an array, or a list of them. Callbacks hear of each batch of an array."""
        tell = _teller(self, callbacks)
        tell("on_predict_begin", {})
        if callbacks and isinstance(x, (np.ndarray, Operators)):
            parts = []
            for batch, first in enumerate(range(0, len(x), batch_size)):
                tell("on_predict_batch_begin", batch, {})
                parts.append(super().predict(x[first : first + batch_size], batch_size))
                tell("on_predict_batch_end", batch, {"outputs": parts[-1]})
            found = [np.concatenate(each) for each in zip(*map(as_list, parts), strict=True)]
            found = alone(found)
        else:
            found = super().predict(x, batch_size, verbose, steps)
        tell("on_predict_end", {})
        return found


_TOLD_HERE = "on_test_begin on_test_end on_predict_begin on_predict_end on_predict_batch_begin on_predict_batch_end"


def _hears_more(callback):
    return any(hasattr(callback, event) for event in _TOLD_HERE.split())


def _teller(model, callbacks):
    """A function that tells an event to all callbacks that have a method for it."""

    def tell(event, *given):
        for callback in as_list(callbacks or ()):
            callback.model = model
            getattr(callback, event, lambda *_: None)(*given)

    return tell


class Heard(high_level.Callback):
    """Tells a callback what `fit` tells, and before the end of an epoch that there was a validation. Raises TypeError where
    the callback has a method that nobody calls."""

    def __init__(self, callback):
        self.callback = callback
        for event in [name for name in dir(callback) if name.startswith("on_")]:
            if not hasattr(high_level.Callback, event) and event not in _TOLD_HERE.split():
                raise TypeError(f"{type(callback).__name__}: nobody calls {event}")
        if callback.on_train_batch_end:
            self.on_train_batch_end = callback.on_train_batch_end

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "model":
            self.callback.model = value

    def _on(self, event, *given):
        method = getattr(self.callback, event)
        method(*given[: None if takes(method, len(given)) else -1])

    def on_train_begin(self, logs):
        self._on("on_train_begin", logs)

    def on_epoch_begin(self, epoch, logs):
        self._on("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch, logs):
        held = {name.removeprefix("val_"): value for name, value in logs.items() if name.startswith("val_")}
        if held:
            tell = _teller(self.model, self.callback)
            tell("on_test_begin", {})
            tell("on_test_end", held)
        self._on("on_epoch_end", epoch, logs)

    def on_train_end(self, logs):
        self._on("on_train_end", logs)


class History(high_level.Callback):
    """Keeps what each epoch told: `history`, {name: [a number for each epoch]}, and `epoch`, their numbers."""

    def on_train_begin(self):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs):
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)


def _no_loss(y_true, y_pred):
    """What stands where `compile` was given no loss. Raises ValueError."""
    raise ValueError('there is no loss: say it, as in model.compile(optimizer, loss="mse"), or override train_step')


def _chosen(loss):
    """A loss by its name, or a function of yours, as Keras calls it: with y_true in the shape and dtype of y_pred."""
    if isinstance(loss, str):
        return WORDS[loss.lower()]() if loss.lower() in WORDS else loss
    if isinstance(loss, mid_level.Loss) or not callable(loss):
        return loss
    return functools.wraps(loss)(lambda y_true, y_pred: loss(*_alike(y_true, y_pred)))


def _called(metric):
    """A metric that was asked for by name has that name."""
    if isinstance(metric, str):
        word = spelled("metric", mid_level.METRICS, metric)
        return (
            METRICS_BY_NAME[word](name=metric) if word in METRICS_BY_NAME else made("metric", mid_level.METRICS, word)
        )
    return metric


def _columns(place, x):
    """Numbers x [batch] as [batch, 1] where the place is for a column."""
    one = isinstance(x, (Operators, np.ndarray)) and len(x.shape) == 1 and len(place.spec.shape) == 2
    return reshape(numbers(x), (-1, 1)) if one else x


class Functional(Model, functional.Functional):
    """A graph of layers, from inputs to outputs; with outputs in a dict, by the names of their layers, `predict` gives one.

    Raises ValueError where the dict has other names.
    """

    def __init__(self, inputs, outputs, name=None):
        self.output_names = sorted(outputs) if isinstance(outputs, dict) else None  # in Keras' order
        places = [outputs[name] for name in self.output_names] if self.output_names else outputs
        super().__init__([*inputs.values()] if isinstance(inputs, dict) else inputs, places, name)
        if self.output_names not in (None, [place.layer.name for place in self.outputs]):
            told = [place.layer.name for place in self.outputs]
            raise ValueError(f"Model: outputs are called {self.output_names}, their layers {told}; give them one name")

    def __call__(self, inputs, training=None):
        """What the outputs are for inputs [batch, …]."""
        return super().__call__(_columns(self.inputs[0], inputs), training)

    def predict(self, x, *args, **options):
        """What the model gives for all rows x [rows, …]: an array, a list or a dict of them."""
        found = super().predict(x, *args, **options)
        return dict(zip(self.output_names, as_list(found), strict=True)) if self.output_names else found


class Sequential(Model, high_level.Sequential):
    """Layers in a row. A first layer with an `input_shape` builds the model."""

    def __init__(self, layers=None, **options):
        super().__init__(layers or (), **options)

    def __call__(self, inputs, training=None):
        """What the last layer gives for inputs [batch, …]."""
        return super().__call__(_columns(self.place, inputs) if self.place else inputs, training)

    def add(self, layer):
        """One more layer at the end."""
        if not self.layers and getattr(layer, "input_size", None):
            super().add(Input(layer.input_size))
        super().add(layer)


WIDER[Model] = Functional


@functools.cache
def _graph_of(kind):
    """A class of the reader's whose objects are made of inputs and outputs."""
    return type(kind.__name__, (kind, Functional), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _alike(y_true, y_pred):
    """y_true [batch] as [batch, 1] where y_pred is; floats in the dtype of y_pred."""
    y_pred = as_tensor(y_pred)
    y_true = numbers(y_true)
    y_true = reshape(y_true, y_pred.shape) if (*y_true.shape, 1) == y_pred.shape else y_true
    return cast(y_true, y_pred.dtype) if y_true.dtype.kind == "f" else y_true, y_pred


class Loss(losses.Reduced):
    """The mean of what `call(y_true, y_pred)` gives, or as `reduction` says."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(*_alike(y_true, y_pred), sample_weight)


class Metric(mid_level.Metric):
    """Sums over all batches; `result` is a tensor."""

    def __init__(self, *args, dtype=None, **options):
        super().__init__(*args, **options)

    def result(self):
        """The metric over all batches since the last `reset_state`, a tensor. A traced function may give it back, no more."""
        if traced():
            return Later(self.result, self.variables)
        return constant(np.asarray(super().result(), FLOAT[0]))

    def __call__(self, *args, **options):
        """Add a batch, and give the result."""
        self.update_state(*args, **options)
        return self.result()

    def reset_state(self):
        """Forget all batches."""
        for variable in self.variables:
            variable.assign(np.zeros(variable.shape, variable.dtype))

    def reset_states(self):
        """The same, as it was called before."""
        self.reset_state()


class Optimizer(mid_level.Optimizer):
    """Changes variables by their gradients; where there is None, the variable stays."""

    iterations = constant(0)  # until there are variables

    learning_rate = property(
        lambda self: self.rate if callable(self.rate) or isinstance(self.rate, Variable) else constant(self.rate),
        lambda self, value: mid_level.Optimizer.learning_rate.fset(
            self, float(value) if isinstance(value, Operators) else value
        ),
    )
    lr = learning_rate

    def apply_gradients(self, grads_and_vars):
        """Update by pairs (gradient, variable). Raises ValueError where there is no gradient at all."""
        pairs = [(dw, w) for dw, w in grads_and_vars if dw is not None]
        if not pairs:
            raise ValueError("apply_gradients: there is no gradient; does the loss depend on these variables?")
        super().apply_gradients(pairs)
        for _, w in pairs:
            if getattr(w, "constraint", None):
                w.assign(w.constraint(w))

    def minimize(self, loss, var_list, tape=None):
        """Update these variables by the gradients of loss(), a function without arguments, or of a tensor that the tape knows."""
        if tape is None:
            with WatchingTape() as tape:
                loss = loss()
        self.apply_gradients(zip(tape.gradient(loss, [*var_list]), var_list, strict=True))

    def apply(self, grads, trainable_variables):
        """Update by gradients and their variables."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))


class Adam(Optimizer, optimizers.Adam):
    """That of levels, with ε added to √v before the correction, as in Keras (Kingma and Ba, 2015, before section 2.1)."""

    def update(self, rate, dw, w, m, v):
        (b1, b2), t = self.betas, self.iterations
        m, v = b1 * m + (1.0 - b1) * dw, b2 * v + (1.0 - b2) * (dw * dw)
        c1, c2 = 1.0 - exp(t * math.log(b1)), 1.0 - exp(t * math.log(b2))
        return w - rate * sqrt(c2) / c1 * m / (sqrt(v) + self.epsilon), m, v


def of_keras(base, *kinds):
    """{name: a class by these rules}, each made of a base of this file and a class of levels."""
    found = {}
    for kind in kinds:
        bases = (kind, base) if base is Adam else (base, kind)
        found[kind.__name__] = type(kind.__name__, bases, {"__doc__": kind.__doc__, "__module__": __name__})
    return found


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """The share of each row's numbers, y_true and y_pred [batch, …], that are on one side of the threshold."""
    y_true, y_pred = _alike(y_true, y_pred)
    return reduce_mean(cast(cast(y_pred > threshold, y_pred.dtype) == cast(y_true, y_pred.dtype), "float32"), -1)


def draw(name, shape, first=None, second=None, *, value=0.0, mean=0.0, stddev=0.05, minval=-0.05, maxval=0.05):
    """Numbers [as many as the shape has] for starting weights, by the name of an initializer and Keras' arguments of it."""
    if name == "constant":
        return np.broadcast_to(np.asarray(value if first is None else first), shape).ravel()
    if name == "identity":
        return (1.0 if first is None else first) * np.eye(*shape).ravel()
    values = np.array(known("initializer", INITIALIZERS, name)(shape))
    if name == "random_uniform":
        low, high = minval if first is None else first, maxval if second is None else second
        return low + (high - low) * (values + 0.05) / 0.1
    if name in ("random_normal", "truncated_normal"):
        return (mean if first is None else first) + values * ((stddev if second is None else second) / 0.05)
    return values


def bent(name):
    """An activation by name, as a layer's class."""
    return lambda **options: LAYERS["Activation"](name, **options)


def drawn_by(name):
    """An initializer: called with Keras' arguments of it, it gives a function of a shape, whose numbers are a tensor."""

    def make(*given, seed=None, **options):
        def drawn(shape, dtype=None):
            return numbers(np.reshape(draw(name, tuple(shape), *given, **options), tuple(shape)), dtype or FLOAT[0])

        return drawn

    return make


def metric_of(kind):
    """The metric of a loss: its mean over all samples."""
    return lambda name=None, dtype=None, **options: METRICS["MeanLoss"](kind(**options), name)


def register_keras_serializable(package="Custom", name=None):
    """Decorates a class or a function of yours, which `load_model` then knows."""
    return lambda kind: REGISTERED.setdefault(kind.__name__, kind)


def load_model(filepath, custom_objects=None, compile=True):
    """The model that `save` wrote."""
    return saving.load_model(filepath, REGISTERED | (custom_objects or {}))


def rows_of(kind):
    """A loss as a function of y_true and y_pred [batch, …], which gives a number for each sample."""
    return lambda y_true, y_pred, **options: kind(**options).each(*_alike(y_true, y_pred))


def _own(module, kind):
    """The classes of that kind that a module defines."""
    of_module = (each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__)
    return [each for each in of_module if isinstance(each, type) and issubclass(each, kind) and each.__name__[0] != "_"]


_PLAIN = (
    "Activation Add Average BatchNormalization Concatenate DenseFeatures Embedding Flatten Lambda LayerNormalization "
)
_PLAIN += "LeakyReLU Maximum Minimum Multiply Normalization Rescaling Reshape Subtract"
_LOSSES = "Huber MeanAbsoluteError MeanSquaredError SparseCategoricalCrossentropy"
_METRICS = "Accuracy BinaryAccuracy CategoricalAccuracy Mean Precision R2Score Recall RootMeanSquaredError "
_METRICS += "SparseCategoricalAccuracy MeanLoss"
LAYERS = {"Layer": Layer, "Dense": Dense, "Dropout": Dropout}
LAYERS |= {name: bent(name.lower()) for name in ("ReLU", "Softmax")}
LAYERS |= of_keras(Layer, *(getattr(mid_level, name) for name in _PLAIN.split()), *_own(more_layers, mid_level.Layer))
LOSSES = {"Loss": Loss} | of_keras(
    Loss, *(getattr(losses, name) for name in _LOSSES.split()), *_own(more_losses, mid_level.Loss)
)
METRICS = {"Metric": Metric} | of_keras(
    Metric, *(getattr(mid_level, name) for name in _METRICS.split()), *_own(counts, mid_level.Metric)
)
OPTIMIZERS_OF_KERAS = {"Optimizer": Optimizer, "Adam": Adam} | of_keras(Adam, optimizers.AdamW)
OPTIMIZERS_OF_KERAS |= of_keras(Optimizer, optimizers.SGD, optimizers.RMSprop, optimizers.Adagrad)
OPTIMIZERS_OF_KERAS |= of_keras(Optimizer, more_optimizers.Nadam, more_optimizers.Adamax, more_optimizers.Adadelta)
for name, kind in constraints.CONSTRAINTS.items():
    saving.CLASSES[f"keras.{name}"] = kind
KERAS = {name.lower(): kind for name, kind in OPTIMIZERS_OF_KERAS.items()}  # as `compile` is told them
for kinds in (LAYERS, LOSSES, METRICS, OPTIMIZERS_OF_KERAS):
    saving.CLASSES.update({f"keras.{name}": kind for name, kind in kinds.items()})
saving.CLASSES.update({f"keras.{kind.__name__}": kind for kind in (Functional, Sequential)})
WORDS = {snake_case(name): kind for name, kind in LOSSES.items()}  # as `compile` is told them
_SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
          "msle": "mean_squared_logarithmic_error", "kld": "kl_divergence", "logcosh": "log_cosh"}  # fmt: skip
WORDS |= {short: WORDS[name] for short, name in _SHORT.items()}
LOSSES |= {snake_case(name): rows_of(kind) for name, kind in LOSSES.items() if name != "Loss"}
LOSSES |= {short: LOSSES[name] for short, name in _SHORT.items()}
METRICS |= {name: metric_of(kind) for name, kind in LOSSES.items() if isinstance(kind, type) and kind is not Loss}
METRICS |= {name: rows for name, rows in LOSSES.items() if not isinstance(rows, type)} | {
    "binary_accuracy": binary_accuracy
}
METRICS_BY_NAME = {snake_case(name): kind for name, kind in METRICS.items() if name[:1].isupper()}
METRICS_BY_NAME |= of_keras(Metric, mid_level.AccuracyByShape)
METRICS_BY_NAME |= {short: METRICS_BY_NAME[name] for short, name in _SHORT.items()}
METRICS_BY_NAME |= dict.fromkeys(("acc", "accuracy"), METRICS_BY_NAME.pop("AccuracyByShape"))
_DRAWN = "constant glorot_normal glorot_uniform he_normal he_uniform identity lecun_normal lecun_uniform ones random_normal random_uniform truncated_normal zeros"
DRAWERS = {name: drawn_by(name) for name in _DRAWN.split()}
DRAWERS |= {name.title().replace("_", ""): drawer for name, drawer in DRAWERS.items()}
