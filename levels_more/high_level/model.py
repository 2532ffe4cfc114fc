"""Models that own their training loop, with all that Keras' have: `fit` with company, a graph of layers, saving."""

import math

import numpy as np

from levels import high_level
from levels.low_level import function
from levels.mid_level import Layer as CoreLayer
from levels.support.checks import at_least, flag, positive
from levels_more.checks import as_python, expect, several
from levels_more.high_level import introspection
from levels_more.high_level.data_adapter import (
    Packing,
    alone,
    answers,
    as_data,
    as_list,
    batches_for,
    given_batches,
    inputs_of,
    is_data,
    parted,
    rows_for,
)
from levels_more.high_level.fit import run_training
from levels_more.high_level.functional import Input, Placeholder, dry_run, in_order
from levels_more.high_level.multi_epoch import Ahead
from levels_more.high_level.progress import tested
from levels_more.high_level.training import Training
from levels_more.mid_level.base_layer import Layer, config_of, one_call

_ALL = 2**31  # more rows than any batch has


class Model(high_level.Model, Layer):
    """A layer that trains itself: write `call(x)`. Or Model(inputs, outputs): a graph of layers, from `Input`s to what they gave."""

    steps = None  # of a graph its calls, each after those that it needs

    def __init__(self, inputs=None, outputs=None, name=None):
        super().__init__(name=name)
        if inputs is not None or outputs is not None:
            self.draw(as_list(inputs), as_list(outputs))

    def draw(self, inputs, outputs):
        """Make it a graph, from these inputs to these outputs. Raises TypeError for what is no place for numbers."""
        for place in inputs + outputs:
            expect(isinstance(place, Placeholder), "Model", place, "an Input, or what a layer gives for one")
        expect(inputs and outputs, "Model", (inputs, outputs), "one input and one output, or more")
        self.inputs, self.outputs = inputs, outputs
        self.input_specs = [x.spec for x in inputs]
        self.steps = in_order(outputs, inputs)
        self.layers = [*dict.fromkeys(step.layer for step in self.steps)]

    def ordered(self, given):
        """Of inputs {the name of an Input: rows}, or of anything {the name of an output's layer: …}: a list, as the graph has them.

        What is no graph takes them as they are. Raises ValueError where the names are others.
        """
        if self.steps is None:
            return given
        names = [place.name for place in self.inputs], [place.layer and place.layer.name for place in self.outputs]
        for each in names:
            if len({*each}) == len(each) and {*each} == {*given}:
                return [given[name] for name in each]
        told = " or ".join(", ".join(map(str, each)) for each in names)
        raise ValueError(
            f"{self.name}: got {', '.join(map(str, given))}; its inputs and outputs are {told}, each by its name"
        )

    def call(self, x):
        """What a graph gives for tensors x [batch, …]: the calls of its layers, one after the other. A class of yours writes its own.

        Raises NotImplementedError for what is neither.
        """
        if self.steps is None:
            raise NotImplementedError(f"{self.name}: write call(self, x), or make it by Model(inputs, outputs)")
        values = dict(zip(self.inputs, as_list(x), strict=True))
        for step in self.steps:
            values[step] = step.layer(alone([values[x] for x in step.inputs]), step.training)
        return alone([values[y] for y in self.outputs])

    def compile(self, optimizer="rmsprop", loss="mse", metrics=(), loss_weights=None):
        """Choose how to train, by names or objects; None is no metric. loss: one, or a list with one for each output.

        Of a graph also {the name of an output's layer: loss}; loss_weights say how much each counts. Raises ValueError for
        other names, and for more weights or fewer than outputs.
        """
        loss, shares = (self.ordered(each) if isinstance(each, dict) else each for each in (loss, loss_weights))
        if shares is not None:
            shares, outputs = [*several("compile: loss_weights", shares)], len(self.outputs) if self.steps else None
            if len(shares) != (outputs or len(shares)):
                raise ValueError(f"compile: {len(shares)} loss_weights for {outputs} outputs")
        self.chosen = Training(optimizer, loss, metrics, *[] if shares is None else [shares])

    def fit(
        self,
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
            data = batches_for(self, as_data(x, *steps), y, sample_weight, class_weight)
        else:
            rows, packing = rows_for(self, x, y, sample_weight, class_weight)
            if share and validation_data is None:
                form, (rows, held) = packing, parted(rows, share)
                if class_weight is not None:  # it is for training: rows to validate count alike, as in Keras
                    own, form = rows_for(self, x, y, sample_weight)
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
            held = given_batches(self, validation_data, None, None, *others)
        return run_training(self, data, epochs, verbose, () if callbacks is None else callbacks, held, first, ahead)

    def evaluate(self, x, y=None, batch_size=1024, verbose=0, sample_weight=None, steps=None, return_dict=False):
        """The mean loss over all rows; with metrics a list, the loss first, as in Keras; or {name: number}, if asked for.

        `sample_weight` weighs the loss, not the metrics. `verbose` is Keras': here nothing is shown.
        """
        data = given_batches(self, x, y, sample_weight, batch_size, steps)
        logs = tested(self, function(self.test_step), data)
        return logs if flag("evaluate: return_dict", return_dict) else alone([*logs.values()])

    def predict(self, x, batch_size=1024, verbose=0, steps=None):
        """What the self gives for all rows of x: a NumPy array, or a list of them. Of a Dataset of (x, y) it takes x.

        `verbose` is Keras': here nothing is shown.
        """
        size = at_least(1, "predict: batch_size", batch_size)
        if is_data(x):
            elements = as_data(x, steps, "steps", True)
            given = (inputs_of(self, element[0] if isinstance(element, tuple) else element) for element in elements)
            batches = ((rows, Packing(len(rows), 0, 0, *form)) for rows, *form in given)
        else:
            rows, *form = inputs_of(self, x)
            packing, batches = Packing(len(rows), 0, 0, *form), [rows]
            if (count := len(rows[0])) > size:
                arrays = [row.numpy() for row in rows]
                batches = ([a[k : k + size] for a in arrays] for k in range(0, count, size))
            batches = ((batch, packing) for batch in batches)
        outputs = zip(*map(as_list, answers(self, batches)), strict=True)
        found = [[part.numpy() for part in parts] for parts in outputs]
        return alone([np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in found])

    def test_step(self, x, y):
        """The loss on one batch, for `evaluate` and for rows to validate. Yours to override, like `train_step`."""
        return self.training.loss(self, y, self(x))

    def on_batch(self, step, x, y, return_dict):
        """One step on all rows x [rows, …], y: the loss, a float; with metrics a list, the loss first; or {name: number}."""
        logs = self.training.one_pass(function(step), given_batches(self, x, y, None, _ALL, None))
        return logs if flag("return_dict", return_dict) else alone([*logs.values()])

    def train_on_batch(self, x, y=None, return_dict=False):
        """Train by one step on all these rows: the loss before it, and metrics of this batch alone.

        Raises what `fit` raises for x and y.
        """
        return self.on_batch(self.train_step, x, y, return_dict)

    def test_on_batch(self, x, y=None, return_dict=False):
        """The loss on all these rows at once, and metrics of this batch alone. Raises what `fit` raises for x and y."""
        return self.on_batch(self.test_step, x, y, return_dict)

    def predict_on_batch(self, x):
        """What the model gives for all these rows at once, a NumPy array."""
        return self.predict(x, _ALL)

    def summary(self):
        """Print the layers, the shapes that they gave last, and how many numbers their variables hold."""
        found = self.named(CoreLayer)
        top = [part for path, part in found.items() if path and not any(p and path.startswith(f"{p}.") for p in found)]
        rows = [("layer", "output shape", "parameters")]
        for part in top:
            shape = vars(part).get("output_shape") and str((None, *part.output_shape[1:]))
            rows.append((f"{part.name} ({type(part).__name__})", shape or "not built", f"{part.count():,}"))
        rows.append(("total", "", f"{self.count():,}"))
        rows.append(("trained", "", f"{sum(math.prod(v.shape) for v in self.trainable_variables):,}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for a, b, c in rows:
            print(f"{a:{widths[0]}}   {b:{widths[1]}}   {c:>{widths[2]}}")

    @property
    def layers(self):
        """Its layers [a list], none that is inside another."""
        return introspection.layers_of(self)

    @layers.setter
    def layers(self, layers):
        vars(self)["layers"] = layers

    def get_layer(self, name=None, index=None):
        """The layer of that name, or with that number. Raises ValueError where there is none, or several of that name."""
        return introspection.get_layer(self, name, index)

    def get_config(self):
        """{name: the argument that it was made with}, as of any layer; of a Sequential the layers that it has now."""
        return config_of(self, introspection.made_again(self))

    @property
    def output(self):
        """What it gives: a place for numbers, or a list of them. Raises ValueError, see `one_call`."""
        return alone(self.outputs if hasattr(self, "outputs") else [one_call(self)])

    @property
    def input(self):
        """What it is called on: a place for numbers, or a list of them. Raises ValueError, see `one_call`."""
        return alone(self.inputs if hasattr(self, "inputs") else one_call(self).inputs)

    def to_json(self):
        """A text of its layers, without its weights, for `model_from_json`. Raises ValueError for what no text can hold."""
        from levels_more.high_level.serialization import to_json

        return to_json(self)

    def save(self, path):
        """Make a folder of that name, which `load_model` reads: see `levels_more.saving.model.save`, which says what is raised."""
        from levels_more.saving.model import save

        save(self, path)

    def save_weights(self, filepath):
        """Write the numbers of all variables to one file. Raises ValueError for a model without variables."""
        from levels_more.saving.model import save_weights

        save_weights(self, filepath)

    def load_weights(self, filepath):
        """Give all variables the numbers that `save_weights` wrote. Raises FileNotFoundError, and ValueError for others."""
        from levels_more.saving.model import load_weights

        load_weights(self, filepath)

    def export(self, path, format="onnx"):
        """Write what it predicts as an ONNX file: see `levels_more.saving.onnx.export`, which says what is raised."""
        from levels_more.saving.onnx import export

        export(self, path, format)

    def save_pretrained(self, save_directory, data=None, metrics=None, license=None):
        """Make a folder as a hub has it: see `levels_more.saving.hub.save_pretrained`, which says what is raised."""
        from levels_more.saving.hub import save_pretrained

        save_pretrained(self, save_directory, data, metrics, license)

    def push_to_hub(self, repo_id, **options):
        """Put it into a repository on the hub: see `levels_more.saving.hub.push_to_hub`, which says what is raised."""
        from levels_more.saving.hub import push_to_hub

        return push_to_hub(self, repo_id, **options)


class Sequential(high_level.Sequential, Model):
    """Layers in a row, each called on what the one before gave; an `Input` may stand in front. Raises TypeError for others."""

    def __init__(self, layers=(), name=None):
        self.place = self.end = None  # the Input in front, and what the last layer gives for it
        super().__init__(layers, name)

    def add(self, layer):
        """One more layer at the end, which builds it where there is an `Input`. Raises TypeError for what is none."""
        if isinstance(layer, Placeholder) and not self.layers:
            self.begin(layer)
            return
        if not isinstance(layer, CoreLayer):
            raise TypeError(f"Sequential: {layer!r:.60} is no layer")
        super().add(layer)
        if self.place is not None:
            self.end = self.end.through(layer, self.end)
            dry_run(self, [self.place.spec])

    def begin(self, place):
        """Build it: its rows are like that place's, an Input."""
        self.place = self.end = place
        for layer in self.layers:
            self.end = self.end.through(layer, self.end)
        dry_run(self, [place.spec])

    def pop(self):
        """Take the last layer away, and return it. Raises ValueError where there is none."""
        if not self.layers:
            raise ValueError(f"{self.name} has no layer left")
        layer = self.layers.pop()
        if self.place is not None:
            self.begin(self.place)  # its outputs are others now
        return layer

    @property
    def inputs(self):
        """The `Input` in front of it, or one like the rows that it was called on. Raises ValueError before both."""
        if self.place is None:
            if vars(self).get("input_specs") is None:
                raise ValueError(f"{self.name}: nobody knows its inputs yet; put Input(shape) in front of its layers")
            (spec,) = self.input_specs
            self.begin(Input(spec.shape[1:], spec.dtype.name))
        return [self.place]

    @property
    def outputs(self):
        """What it gives for its `Input`, a list of one."""
        return [self.end] if self.inputs else []
