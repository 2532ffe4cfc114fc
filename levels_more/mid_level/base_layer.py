"""What all layers of this package can do: hear of a training, take several inputs, and tell what they are made of."""

import functools
import inspect
import threading

import numpy as np

from levels import mid_level
from levels.low_level import Operators, Tensor, as_tensor
from levels.support.checks import flag, known
from levels_more.checks import as_python
from levels_more.compiler.dependencies import of_levels
from levels_more.low_level.module import Module
from levels_more.mid_level.initializers import INITIALIZERS


class _Training(threading.local):
    now = False  # whether layers are called in order to be trained, in each thread


TRAINING = _Training()


class Beside(list):
    """Tensors that lie side by side, and the layers of feature columns that read them: each takes `of(layer)`, its own."""

    def __init__(self, readers, tensors):
        super().__init__(tensors)
        self.readers = readers

    def of(self, layer):
        """Those of a layer. Raises ValueError for one that is no part of the model."""
        first = 0
        for reader in self.readers:
            if reader is layer:
                return self[first : first + len(layer.columns)]
            first += len(reader.columns)
        raise ValueError(f"{layer.name} is no part of the model that got these columns; keep it in an attribute")


def _several(x):
    """([their shapes], [their Specs]) of a list or a dict of tensors or arrays. Of one input nothing."""
    parts = [*x.values()] if isinstance(x, dict) else x
    if not isinstance(parts, (list, tuple)) or not parts or not isinstance(parts[0], (Operators, np.ndarray)):
        return ()
    specs = [as_tensor(part).spec for part in parts]
    return [spec.shape for spec in specs], specs


_takes_training = functools.cache(lambda call: "training" in inspect.signature(call).parameters)


class Layer(mid_level.Layer, Module):
    """A part of a model: write `call(x)`, or `call(x, training)`, and `build(shape)` where it needs variables.

    It is called on an array, on a list or a dict of arrays, on an `Input`, on columns with names; and, by training=True, as
    part of a training, which the layers inside hear of until the call ends.
    """

    hears_training = True

    def check_model(self, model):
        """Raise TypeError for a model of the core, which would not say whether it is trained, nor add penalties to its loss."""
        if not isinstance(model, Layer):
            told = f"{type(self).__name__} is a layer of levels_more, and {type(model).__name__} a model of levels"
            raise TypeError(f"{told}; take the model from levels_more.high_level")

    def starting(self, initializer, shape):
        """The numbers of an initializer, [*shape], in its dtype."""
        return super().starting(known("initializer", INITIALIZERS, initializer), shape)

    def run(self, x, training=None):
        """What `call` gives for what the layer is called on. Raises TypeError for columns that nothing reads."""
        if isinstance(x, (Operators, np.ndarray)):
            return self._heard(training, x)
        x = self.ordered(x) if isinstance(x, dict) else x
        if hasattr(x, "keys") and not all(isinstance(column, Operators) for _, column in x.items()):
            from levels_more.high_level.data_adapter import beside  # level 5 is not there yet when level 4 is imported

            x = beside(self, x)
        first = x[0] if isinstance(x, (list, tuple)) and x else x
        array = isinstance(first, (Operators, np.ndarray))
        if not array and hasattr(first, "through"):  # no numbers yet: level 5 notes down the call
            return first.through(self, x, training)
        if isinstance(x, dict):
            if of_levels(type(self).call) and not hasattr(type(self), "fit"):
                cure = "a DenseFeatures before it reads columns, or a call of yours"
                raise TypeError(f"{self.name}: got columns {', '.join(map(str, x))}; expected an array; {cure}")
            self.input_names = [*x]
        several = array and first is not x and not isinstance(x, Beside)
        return self._heard(training, [*map(as_tensor, x)] if several else x, *_several(x))

    def ordered(self, given):
        """Inputs {name: rows}, as `call` takes them: a graph of level 5 makes a list of them."""
        return given

    def _heard(self, training, *given):
        """`_run`, with all layers inside told whether it is part of a training. None: as it was."""
        if training is None:
            return self._run(*given)
        training = training if type(training) is bool else flag(f"{self.name}: training", training)
        before, TRAINING.now = TRAINING.now, training
        try:
            return self._run(*given)
        finally:
            TRAINING.now = before

    def _run(self, x, shape=None, specs=()):
        """What `call` gives, after `build` on the first call. What came and went is noted. Several inputs come with `specs`."""
        if not specs:
            x = x if type(x) is Tensor else as_tensor(x)
            specs = [x.spec]
        if not self.built:
            self.build_for(specs[0].shape if shape is None else shape, specs[0].dtype)
        asks = _takes_training(getattr(type(self), "call", len))
        y = self.call(x, training=TRAINING.now) if asks else self.call(x)
        self.input_specs, self.output_shape = specs, y.spec.shape if isinstance(y, Operators) else None
        return y

    def add_loss(self, loss):
        """Not here: a call leaves nothing behind that the next one would have to forget. Raises NotImplementedError."""
        cure = "in call write self.penalties = [lambda: value]: functions whose results are added to the loss"
        raise NotImplementedError(f"{self.name}: there is no add_loss; {cure}")

    @property
    def losses(self):
        """What this layer and those inside want added to the loss."""
        return [
            penalty() for part in self.named(mid_level.Layer).values() for penalty in vars(part).get("penalties", ())
        ]

    weights = property(lambda self: self.variables, doc="Keras' name of its variables.")
    trainable_weights = property(lambda self: self.trainable_variables, doc="Keras' name of its trainable variables.")

    @property
    def non_trainable_variables(self):
        """The variables that no training changes."""
        trained = {*self.trainable_variables}
        return [v for v in self.variables if v not in trained]

    non_trainable_weights = property(lambda self: self.non_trainable_variables, doc="Keras' name of them.")

    def count_params(self):
        """How many numbers its variables hold."""
        return self.count()

    def get_config(self):
        """{name: the argument that it was made with}: `type(layer)(**layer.get_config())` makes one like it.

        There is no `from_config`: a class is called with its arguments.
        """
        return config_of(self, self.again)

    @property
    def output(self):
        """What it gives: a place for numbers. Raises ValueError, see `one_call`."""
        return one_call(self)

    @property
    def input(self):
        """What it is called on: a place for numbers, or a list of them. Raises ValueError, see `one_call`."""
        found = one_call(self).inputs
        return found[0] if len(found) == 1 else found


def config_of(part, made):
    """{name: argument} of the call that made a part, a `functools.partial`."""
    bound = inspect.signature(type(part).__init__).bind(part, *made.args, **made.keywords)
    kinds = {name: parameter.kind for name, parameter in bound.signature.parameters.items()}
    found = {}
    for name, value in [*bound.arguments.items()][1:]:
        found |= value if kinds[name] is inspect.Parameter.VAR_KEYWORD else {name: value}
    return {name: as_python(value) for name, value in found.items()}


def one_call(layer):
    """The call of this layer on places for numbers. Raises ValueError where there was none, or more than one."""
    calls = vars(layer).get("calls", ())
    if len(calls) != 1:
        cure = "put Input(shape) in front of it" if not calls else "keep what each of these calls gave"
        raise ValueError(f"{layer.name} was called on an Input {len(calls)} times; {cure}")
    return calls[0]
