"""The base class of this package's layers: it passes on whether a call is for training, and takes several inputs."""

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from levels import mid_level
from levels.low_level import Operators, Tensor, Variable, as_tensor
from levels.support.checks import check_bool, lookup
from levels.support.tracebacks import short
from levels_more.checks import as_int64
from levels_more.compiler.reads import of_levels
from levels_more.low_level.module import Module
from levels_more.mid_level.initializers import INITIALIZERS
from levels_more.mid_level.names import numbered, snake_case
from levels_more.mid_level.notes import note
from levels_more.missing import lacking, refuse_arguments


class _Training(threading.local):
    now = False  # whether the current call is for training, separately in each thread


TRAINING = _Training()


Output = TypeVar("Output", covariant=True)


class Recorder(Protocol[Output]):
    """Something on which a layer can be called without numbers: it records the call, as a placeholder of level 5."""

    def through(self, layer, inputs, training=None) -> Output:
        """Return what stands for the layer's output."""


class ColumnTensors(list):
    """A list of tensors for several layers of feature columns. `of(layer)` gives those of one layer."""

    def __init__(self, column_layers, tensors):
        super().__init__(tensors)
        self.column_layers = column_layers

    def of(self, layer):
        """Return the tensors of this layer. Raises ValueError if the layer is not part of the model."""
        first = 0
        for reader in self.column_layers:
            if reader is layer:
                return self[first : first + len(layer.columns)]
            first += len(reader.columns)
        raise ValueError(f"{layer.name} is no part of the model that got these columns; keep it in an attribute")


def own_tensors(layer, features):
    """Return the tensors of a `DenseFeatures`: its part of a model's columns, or those that it encodes from a dict."""
    if isinstance(features, ColumnTensors):
        return features.of(layer)
    if isinstance(features, Operators):  # of a single column
        return [features]
    return features if isinstance(features, (list, tuple)) else layer.encode(features)


def _several(x):
    """Return ([shapes], [Specs]) of a list or a dict of tensors or arrays; () for a single input."""
    parts = [*x.values()] if isinstance(x, dict) else x
    if not isinstance(parts, (list, tuple)) or not parts or not isinstance(parts[0], (Operators, np.ndarray)):
        return ()
    specs = [as_tensor(part).spec for part in parts]
    return [spec.shape for spec in specs], specs


_takes_training = functools.cache(lambda call: "training" in inspect.signature(call).parameters)


def mark(part, trainable):
    """Set `trainable` of a layer, of this package or of the core, and not of those inside."""
    setattr(part, "trainable_flag" if isinstance(part, Layer) else "trainable", trainable)


def freeze(layer, value):
    """Set `trainable` of a layer and of all layers inside to True or False. Raises TypeError for other values.

    As in the core, what holds a layer decides: one that is trainable inside a frozen one is not trained.
    """
    for part in layer.named(mid_level.Layer).values():
        mark(part, check_bool(f"{layer.name}: trainable", value))


@lacking("get_config", "input", "output")
class Layer(mid_level.Layer, Module):
    """A part of a model: write `call(x)`, or `call(x, training)`, and `build(shape)` if it needs variables.

    A layer can be called on an array, a list or a dict of arrays, an `Input`, or named columns. `training=True` also
    applies to the layers inside, until the call ends.
    """

    def __init__(self, name: str | None = None, dtype: str | np.dtype | type | None = None, **unknown):
        refuse_arguments(type(self).__name__, unknown, type(self))
        super().__init__(numbered(snake_case(type(self).__name__)) if name is None else name, dtype)

    name: str
    trainable_variables: list[Variable]
    whole = False  # whether the inputs are integers, of any of NumPy's integer dtypes
    hears_training = True
    trainable_flag = True
    trainable = property(
        lambda self: self.trainable_flag, freeze, doc="Whether training changes its variables; see `freeze`."
    )
    penalties = ()  # functions without arguments, whose results are added to the loss

    def check_model(self, model):
        """Raise TypeError for a model of the core: it neither passes on `training` nor adds penalties to the loss."""
        if not isinstance(model, Layer):
            told = f"{type(self).__name__} is a layer of levels_more, and {type(model).__name__} a model of levels"
            raise TypeError(f"{told}; take the model from levels_more.high_level")

    def add_weight(
        self,
        shape: Sequence[int],
        initializer: str | Callable = "glorot_uniform",
        trainable: bool = True,
        name: str | None = None,
    ) -> Variable:
        """Make a variable of this shape, in the layer's dtype. (Keras' argument `name` is ignored.)"""
        return super().add_weight(shape, lookup("initializer", INITIALIZERS, initializer), trainable)

    @overload
    def __call__(self, x: Recorder[Output] | Sequence[Recorder[Output]], training: bool | None = None) -> Output: ...

    @overload
    def __call__(self, x: "ArrayLike | dict", training: bool | None = None) -> Tensor: ...

    @short
    def __call__(self, x, training=None):
        """Return what `call` gives for x. Raises TypeError if x is a dict of columns and `call` cannot read columns."""
        if isinstance(x, (Operators, np.ndarray)):
            narrow = self.whole and isinstance(x, np.ndarray) and x.dtype.kind in "iu"
            return self._with_training(training, as_int64(x) if narrow else x)
        first = x[0] if isinstance(x, (list, tuple)) and x else x
        array = isinstance(first, (Operators, np.ndarray))
        if not array and hasattr(first, "through"):  # a placeholder of level 5, which records the call
            return first.through(self, x, training)
        if isinstance(x, dict):
            if of_levels(type(self).call) and not hasattr(type(self), "fit"):
                cure = "a DenseFeatures before it reads columns, or a call of yours"
                raise TypeError(f"{self.name}: got columns {', '.join(map(str, x))}; expected an array; {cure}")
            note(self, input_names=[*x])
            x = {name: as_tensor(part) for name, part in x.items()}
        several = array and first is not x and not isinstance(x, ColumnTensors)
        return self._with_training(training, [*map(as_tensor, x)] if several else x, *_several(x))

    def _with_training(self, training, *given):
        """Call `_run` with this `training` for all layers inside. None keeps the value of the surrounding call."""
        if training is None:
            return self._run(*given)
        training = training if type(training) is bool else check_bool(f"{self.name}: training", training)
        before = TRAINING.now
        TRAINING.now = training
        try:
            return self._run(*given)
        finally:
            TRAINING.now = before

    def _run(self, x, shape=None, specs=()):
        """Return what `call` gives, after `build` on the first call. Store the inputs' Specs (`specs` if several)."""
        if not specs:
            x = x if type(x) is Tensor else as_tensor(x)
            specs = [x.spec]
        if not self.built:
            self.build_for(specs[0].shape if shape is None else shape, specs[0].dtype)
        asks = _takes_training(getattr(type(self), "call", len))
        y = self.call(x, training=TRAINING.now) if asks else self.call(x)
        note(self, input_specs=specs, output_shape=y.spec.shape if isinstance(y, Operators) else None)
        return y

    def add_loss(self, loss):
        """Raise NotImplementedError: a call stores no losses, which the next call would have to clear."""
        cure = "in call write self.penalties = [lambda: value]: functions whose results are added to the loss"
        raise NotImplementedError(f"{self.name}: there is no add_loss; {cure}")

    @property
    def losses(self) -> list[Tensor]:
        """The values of the penalties of this layer and of those inside, which are added to the loss."""
        parts = self.named(mid_level.Layer).values()
        return [penalty() for part in parts for penalty in getattr(part, "penalties", ())]

    weights = property(lambda self: self.variables, doc="Keras' name for `variables`.")
    trainable_weights = property(lambda self: self.trainable_variables, doc="Keras' name for `trainable_variables`.")

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The variables that training does not change."""
        trained = {*self.trainable_variables}
        return [v for v in self.variables if v not in trained]

    non_trainable_weights = property(lambda self: self.non_trainable_variables, doc="Keras' name for the same.")

    def count_params(self) -> int:
        """How many numbers its variables hold."""
        return self.count()
