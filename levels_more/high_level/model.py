"""Models with their own training loop, as in Keras: `fit` with callbacks and validation, graphs of layers, saving."""

import os
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from levels import high_level, mid_level
from levels.low_level import Operators, Tensor, Variable, as_tensor
from levels.mid_level import Layer as CoreLayer
from levels.support.checks import check_bool, check_int
from levels.support.tracebacks import short
from levels.support.trainings import check_parts, uncompiled
from levels_more.checks import expect, several
from levels_more.compiler.eager.tapes import GradientTape
from levels_more.high_level.functional import Placeholder, Placeholders, dry_run, in_order
from levels_more.high_level.loop import Fit, Pass
from levels_more.high_level.outputs import by_output, print_summary
from levels_more.high_level.program import predictions
from levels_more.high_level.progress import verbosity
from levels_more.high_level.rows import (
    as_list,
    batches_to_check,
    batches_to_fit,
    batches_to_predict,
    column_tensors,
    unwrap_single,
    validation_share,
)
from levels_more.high_level.training import Training
from levels_more.low_level.autodiff import leading_to
from levels_more.mid_level.base_layer import Layer
from levels_more.mid_level.names import numbered
from levels_more.mid_level.notes import note, noted
from levels_more.missing import lacking

SAVERS = {}  # "save" -> function(model, …): methods that levels_more.saving adds


@lacking("to_json", "get_layer", "pop", "inputs", "outputs", "train_on_batch", "test_on_batch", "predict_on_batch")
class Model(high_level.Model, Layer):
    """A layer that trains itself: write `call(x)`. Or Model(inputs, outputs): the graph of layers between these."""

    chosen = None  # the `Training` that `compile` made
    steps = None  # for a graph: its calls, each after the calls that it needs

    def __init__(
        self, inputs: Placeholders | None = None, outputs: Placeholders | None = None, name: str | None = None
    ):
        graph = inputs is not None or outputs is not None
        if graph and name is None and type(self).__name__ == "Model":
            name = numbered("functional")  # as in Keras
        super().__init__(name=name)
        if graph:
            self.draw(as_list(inputs), as_list(outputs))

    def draw(self, inputs, outputs):
        """Make the model a graph from these inputs to these outputs. Raises TypeError for anything but placeholders."""
        for place in inputs + outputs:
            expect(isinstance(place, Placeholder), "Model", place, "an Input, or what a layer gives for one")
        expect(inputs and outputs, "Model", (inputs, outputs), "one input and one output, or more")
        self.inputs = inputs
        self.outputs = outputs
        note(self, input_specs=[x.spec for x in inputs])
        self.steps = in_order(outputs, inputs)
        self.layers = [*dict.fromkeys(step.layer for step in self.steps)]

    def ordered(self, given):
        """The values of {name of an Input: …} or {name of an output's layer: …}, a list in the order of the graph.

        Without a graph the dict is returned as it is. Raises ValueError for other names.
        """
        if self.steps is None:
            return given
        names = [place.name for place in self.inputs], [place.layer and place.layer.name for place in self.outputs]
        for each in names:
            if len({*each}) == len(each) and {*each} == {*given}:
                return [given[name] for name in each]
        told = " or ".join(", ".join(each) for each in names if None not in each)
        raise ValueError(
            f"{self.name}: got {', '.join(map(str, given))}; its inputs and outputs are {told}, each by its name"
        )

    training = property(lambda self: self.chosen or uncompiled(self, None, None), doc="The `Training` of `compile`.")
    optimizer = property(lambda self: self.training.optimizer)

    def loss(self, y, predicted) -> Tensor:
        """The loss of a batch: of all outputs, with the weights of rows and the penalties. It updates the metrics."""
        return self.training.loss(self, y, predicted)

    @short
    def __call__(self, x, training=None):
        """As the call of any layer, but columns with names (a dict, a DataFrame) become tensors first."""
        if training:
            check_parts(self, self.named(CoreLayer).values())
        if not isinstance(x, (Operators, np.ndarray)):
            x = self.ordered(x) if isinstance(x, dict) else x
            if hasattr(x, "keys") and not all(isinstance(column, Operators) for _, column in x.items()):
                x = column_tensors(self, x)
        return super().__call__(x, training)

    def call(self, x):
        """The outputs of a graph for tensors x [batch, …]: its layers are called one after the other.

        Raises NotImplementedError if the model is no graph: then a subclass has to write `call`.
        """
        if self.steps is None:
            write = "write one, or make it by Model(inputs, outputs)"
            cure = "rename its `forward`" if hasattr(self, "forward") else write
            raise NotImplementedError(f"{type(self).__name__} has no call; {cure}: `def call(self, x):`")
        values = dict(zip(self.inputs, as_list(x), strict=True))
        for step in self.steps:
            values[step] = step.layer(unwrap_single([values[x] for x in step.inputs]), step.training)
        return unwrap_single([values[y] for y in self.outputs])

    def compile(
        self,
        optimizer: str | mid_level.optimizers.Optimizer = "rmsprop",
        loss: str | Callable | Sequence | dict | None = "mse",
        metrics: Sequence | dict | None = (),
        loss_weights: Sequence[float] | dict[str, float] | None = None,
    ) -> None:
        """Choose how to train, by names or objects. loss: one, or a list with one for each output, which may be None.

        metrics: a list for the only output, or with a list for each output; or None. For a graph, each of these may
        also be a dict {name of an output's layer: …}. Each loss is multiplied by its weight. Raises ValueError for
        other names, and if there are not as many weights as outputs.
        """
        for name, given in (("loss", loss), ("loss_weights", loss_weights)):
            if isinstance(given, dict) and not self.steps:
                raise ValueError(
                    f"compile: {name} is a dict, which is for a graph, Model(inputs, outputs); give a list"
                )
        loss, shares = (self.ordered(each) if isinstance(each, dict) else each for each in (loss, loss_weights))
        metrics = by_output(self, metrics) if isinstance(metrics, dict) else metrics
        if shares is not None:
            shares = [*several("compile: loss_weights", shares)]
            outputs = len(self.outputs) if self.steps else None
            if len(shares) != (outputs or len(shares)):
                raise ValueError(f"compile: {len(shares)} loss_weights for {outputs} outputs")
        self.chosen = Training(optimizer, loss, metrics, *[] if shares is None else [shares])

    @short
    def fit(
        self,
        x,
        y=None,
        batch_size: int = 32,
        epochs: int = 1,
        verbose: int | str = 1,
        callbacks: high_level.Callback | Sequence[high_level.Callback] | None = None,
        validation_split: float = 0.0,
        validation_data=None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: "ArrayLike | None" = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int = 1024,
        seed: int | None = None,
    ) -> high_level.History:
        """Train on arrays x, y or on a Dataset of batches; returns a History. The same seed gives the same row orders.

        x: an array, a list, a DataFrame, a dict, or batches (x, y[, sample_weight]). `epochs`: the last one's number.
        `sample_weight` or `class_weight` {class: weight} multiplies the loss of a row. Raises TypeError, ValueError.
        """
        verbose, shuffle = verbosity(verbose), check_bool("fit: shuffle", shuffle)
        share = validation_share(validation_split, validation_data)
        first = check_int(0, "initial_epoch", initial_epoch)
        epochs = max(0, check_int(0, "epochs", epochs) - first)
        sizes = batch_size, validation_batch_size
        order = shuffle, seed, first
        data, held = batches_to_fit(self, x, y, (sample_weight, class_weight), share, sizes, steps_per_epoch, order)
        if validation_data is not None:
            steps = validation_steps, "validation_steps"
            held = batches_to_check(self, validation_data, None, None, validation_batch_size, *steps)
        return Fit(self, data, epochs, first, verbose, callbacks, held).train()

    @short
    def evaluate(
        self,
        x,
        y=None,
        batch_size: int = 1024,
        verbose: int | str = 0,
        sample_weight: "ArrayLike | None" = None,
        steps: int | None = None,
        return_dict: bool = False,
    ) -> float | list[float] | dict[str, float]:
        """The mean loss over all rows. With metrics, as in Keras, a list with the loss first; or {name: number}.

        `sample_weight` weighs the loss, not the metrics. `verbose` is accepted as in Keras, but nothing is shown.
        """
        data = batches_to_check(self, x, y, sample_weight, batch_size, steps)
        logs = Pass(self.test_step, data).run()
        return_dict = check_bool("evaluate: return_dict", return_dict)
        return self.in_order(logs) if return_dict else unwrap_single([*logs.values()])

    def in_order(self, logs) -> dict[str, float]:
        """The numbers {name: number} of an epoch as a history orders them. Subclasses may sort them."""
        return logs

    @short
    def predict(
        self, x, batch_size: int = 1024, verbose: int | str = 0, steps: int | None = None
    ) -> np.ndarray | list[np.ndarray]:
        """The model's outputs for all rows of x: a NumPy array, or a list of them. From a Dataset of (x, y) it uses x.

        `verbose` is accepted as in Keras, but nothing is shown. Raises ValueError if there is no batch.
        """
        batches = batches_to_predict(self, x, check_int(1, "predict: batch_size", batch_size), steps)
        found = [
            [part.numpy() for part in parts] for parts in zip(*map(as_list, predictions(self, batches)), strict=True)
        ]
        if not found:
            raise ValueError("predict: the dataset gave no batch")
        return unwrap_single([np.concatenate(parts) if len(parts) > 1 else parts[0] for parts in found])

    def train_step(self, x, y) -> Tensor:
        """Train on a batch, and return the loss. Override it for your own step.

        A variable on which the loss does not depend stays as it is, with a warning, as in Keras. Raises ValueError if
        the loss depends on no variable.
        """
        with GradientTape() as tape:
            loss = self.loss(y, self(x, training=True))
        reached = leading_to(tape.records, as_tensor(loss))
        variables = self.trainable_variables
        unused = {v for v in variables if tape.variables.get(v) not in reached}
        if len(unused) == len(variables):
            told = "the loss depends on no variable" if variables else "there is no variable"
            raise ValueError(f"{self.name} has no variable to train: {told} that is trainable")
        if unused:
            names = ", ".join(path for path, v in self.named(Variable).items() if v in unused)
            warnings.warn(f"{self.name}: the loss does not depend on {names}, which will not be trained", stacklevel=2)
            variables = [v for v in variables if v not in unused]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def test_step(self, x, y) -> Tensor:
        """The loss on one batch, for `evaluate` and for validation. Subclasses may override it, like `train_step`."""
        return self.loss(y, self(x))

    def summary(self) -> None:
        """Print the layers, their latest output shapes, and how many numbers their variables hold."""
        print_summary(self)

    def outer_layers(self) -> list[CoreLayer]:
        """The list of its layers, without the layers inside other layers."""
        found = self.named(CoreLayer)
        return [part for path, part in found.items() if path and not any(p and path.startswith(f"{p}.") for p in found)]

    @property
    def layers(self) -> list[CoreLayer]:
        """The list of layers that it was made of or, if it was made of none, its `outer_layers`."""
        return vars(self)["layers"] if "layers" in vars(self) else self.outer_layers()

    @layers.setter
    def layers(self, layers):
        vars(self)["layers"] = layers

    def save(self, path: str | os.PathLike) -> None:
        """Save the model to a folder that `load_model` reads. See `levels_more.saving.model.save`."""
        SAVERS["save"](self, path)

    def save_weights(self, filepath: str | os.PathLike) -> None:
        """Write the numbers of all variables to one file. Raises ValueError for a model without variables."""
        SAVERS["save_weights"](self, filepath)

    def load_weights(self, filepath: str | os.PathLike) -> None:
        """Read the numbers that `save_weights` wrote. Raises FileNotFoundError, ValueError if the variables differ."""
        SAVERS["load_weights"](self, filepath)

    def export(self, path: str | os.PathLike, format: str = "onnx") -> None:
        """Write the computation of `predict` as an ONNX file. See `levels_more.saving.onnx.export`."""
        SAVERS["export"](self, path, format)

    def save_pretrained(self, save_directory: str | os.PathLike, data=None, metrics=None, license=None) -> None:
        """Save the model to a folder in the layout of a hub. See `levels_more.saving.hub.save_pretrained`."""
        SAVERS["save_pretrained"](self, save_directory, data, metrics, license)

    def push_to_hub(self, repo_id: str, **options) -> str:
        """Upload the model to a repository on the hub. See `levels_more.saving.hub.push_to_hub`."""
        return SAVERS["push_to_hub"](self, repo_id, **options)


class Sequential(high_level.Sequential, Model):
    """Layers in a row, each called on the output of the one before. An `Input` may come first."""

    layers: list[CoreLayer]

    def __init__(self, layers: Sequence[CoreLayer | Placeholder] = (), name: str | None = None):
        super().__init__(layers, name)

    def add(self, layer: CoreLayer | Placeholder) -> None:
        """Add a layer at the end. After an `Input` it is built at once. Raises TypeError for anything but a layer."""
        if isinstance(layer, Placeholder) and not self.layers:
            note(self, first=layer)  # the Input
            return
        if not isinstance(layer, CoreLayer):
            raise TypeError(f"Sequential: {layer!r:.60} is no layer")
        super().add(layer)
        if noted(self, "first") is not None:
            dry_run(self, [noted(self, "first").spec])
