"""Models by Keras' rules: a subclass, which may have a `build` and steps of its own, a graph of layers, or layers in a row."""

import contextlib
import functools
import io
import operator
import sys

import numpy as np

from levels import high_level
from levels.low_level import METHODS, Operators
from levels.mid_level import OPTIMIZERS, WIDER
from levels.support.locks import once
from levels_more.checks import takes
from levels_more.high_level import functional
from levels_more.high_level.data_adapter import alone, as_list
from levels_more.high_level.fit import distinct, spelled
from levels_more.high_level.serialization import CLASSES
from levels_more.low_level.ops import reshape
from levels_more.saving import model as saving
from levels_more.tensorflow import constraints, keras_optimizers, keras_steps
from levels_more.tensorflow.keras_callbacks import teller, tests_told
from levels_more.tensorflow.keras_layers import LAYERS, Input, Layer
from levels_more.tensorflow.keras_losses import LOSSES, chosen, no_loss
from levels_more.tensorflow.keras_metrics import METRICS, CompileMetrics, Metric, losses_of, of_outputs
from levels_more.tensorflow.nested import each_leaf, leaves, numbers
from levels_more.tensorflow.variables import WatchingTape

REGISTERED = {}  # classes and functions of the reader's that load_model knows


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
        names = [place.layer.name for place in vars(self).get("outputs", ())]
        metrics, weighted = (of_outputs(given, names) for given in (metrics, weighted_metrics))
        for metric in weighted:
            metric.weighted = True
        if isinstance(optimizer, str):
            optimizer = keras_optimizers.BY_NAME.get(spelled("optimizer", OPTIMIZERS, optimizer), optimizer)
        losses = no_loss if loss is None else each_leaf(loss, chosen)
        optimizer = optimizer() if isinstance(optimizer, type) else optimizer
        super().compile(optimizer, losses, metrics + weighted, **weights)
        if len(names) > 1:
            self.training.metrics = losses_of(self.training, names) + self.training.metrics
            self.training.names = distinct(["loss", *(metric.name for metric in self.training.metrics)])

    @property
    def optimizer(self):
        """What `compile` chose, or the one that was assigned."""
        return self.own or self.training.optimizer

    @optimizer.setter
    def optimizer(self, value):
        self.own = value

    metrics_names = property(lambda self: self.training.names)
    input_shape = property(lambda self: alone([place.shape for place in self.inputs]), doc="Of any number of rows.")

    @property
    def output_shape(self):
        """Of any number of rows, (None, …); before anything was given, or said of its inputs, there is none: ValueError."""
        return alone([place.shape for place in self.outputs])

    @output_shape.setter
    def output_shape(self, value):
        vars(self)["output_shape"] = value

    def summary(self, line_length=None, positions=None, print_fn=None, expand_nested=False, show_trainable=False):
        """Print the layers; `print_fn` is given each line, if there is one. The others change nothing here."""
        with io.StringIO() if print_fn else contextlib.nullcontext(sys.stdout) as text:
            with contextlib.redirect_stdout(text):
                METHODS["Model.summary"](self)
            for line in text.getvalue().splitlines() if print_fn else ():
                print_fn(line)

    @property
    def metrics(self):
        """The mean loss, the metrics that `compile` chose, and those that are attributes of the model. Yours to override."""
        chosen = [self.tracker] if self.chosen else []
        chosen += [CompileMetrics(self)] if self.chosen and self.training.metrics else []
        return chosen + [each for each in [*vars(self).values()] if isinstance(each, Metric) and each not in chosen]

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
        if self.training.losses != [no_loss]:
            return self.training.summed(self, *self.matched(y, y_pred, sample_weight))
        return functools.reduce(operator.add, self.losses) if self.losses else no_loss(y, y_pred)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Let the metrics that `compile` chose take in y_true and y_pred [batch, …]; {name: result} of all. Yours to override."""
        if y is not None and self.training.metrics:
            self.training.count(*self.matched(y, y_pred, sample_weight))
        return self.get_metrics_result()

    def get_metrics_result(self):
        """{name: result} of all metrics."""
        found = {}
        for metric in self.metrics:
            result = metric.result()
            found |= result if isinstance(result, dict) else {metric.name: result}
        return found

    def matched(self, y, y_pred, weight):
        """(targets, answers, weights), a list of each, for all outputs: y_true and y_pred [batch, …]."""
        y, y_pred, _ = self.training.matched(y, y_pred)
        return y, y_pred, [weight] * len(y) if isinstance(weight, Operators | None) else [*weight]

    def by_data(self, step, data, history):
        """A pass of a step that takes data alone. Returns what it told last, {name: number}."""
        return keras_steps.one_pass(self, step, data, history)

    def fit(self, x=None, y=None, batch_size=None, *args, callbacks=None, **options):
        """That of levels, of arrays x, y or a Dataset; a callback hears of validation, too, if it has methods for it."""
        if not takes(self.train_step, 2):  # it is of the reader's, and takes data
            own_test = not takes(self.test_step, 2)
            x, options = keras_steps.prepared(self, x, y, batch_size, own_test, options)
            y = None
        elif not keras_steps.is_data(x):
            keras_steps.check_steps(x, batch_size, options)
        options.setdefault("validation_batch_size", batch_size or 32)
        for callback in as_list(callbacks or ()):
            callback.params = keras_steps.params(x, batch_size, args, options)
        self.training.tests = tests_told(self, callbacks)
        try:
            return super().fit(x, y, batch_size, *args, callbacks=callbacks, **options)
        finally:
            self.training.tests = None

    def evaluate(self, x=None, y=None, batch_size=None, *args, callbacks=None, return_dict=False, **options):
        """That of levels, of arrays x, y or a Dataset, of which callbacks hear."""
        if not takes(self.test_step, 2):
            weight, steps = (options.pop(name, None) for name in ("sample_weight", "steps"))
            x, y = keras_steps.elements(self, x, y, weight, batch_size, steps), None
        self.training.tests = tests_told(self, callbacks)
        try:
            logs = super().evaluate(x, y, batch_size or 32, *args, return_dict=True, **options)
        finally:
            self.training.tests = None
        return logs if return_dict else alone([*logs.values()])

    def predict(self, x, batch_size=32, verbose=0, steps=None, callbacks=None):
        """What the model gives for all rows x [rows, …]: an array, or a list of them. Callbacks hear of each batch of an array."""
        tell = teller(self, callbacks)
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


@once
def _graph_of(kind):
    """A class of the reader's whose objects are made of inputs and outputs."""
    return type(kind.__name__, (kind, Functional), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def register_keras_serializable(package="Custom", name=None):
    """Decorates a class or a function of yours, which `load_model` then knows."""
    return lambda kind: REGISTERED.setdefault(kind.__name__, kind)


def load_model(filepath, custom_objects=None, compile=True):
    """The model that `save` wrote."""
    return saving.load_model(filepath, REGISTERED | (custom_objects or {}))


for table in (LAYERS, LOSSES, METRICS, keras_optimizers.OPTIMIZERS, constraints.CONSTRAINTS):
    CLASSES.update({f"keras.{name}": kind for name, kind in table.items() if isinstance(kind, type)})
CLASSES.update({f"keras.{kind.__name__}": kind for kind in (Functional, Sequential)})
