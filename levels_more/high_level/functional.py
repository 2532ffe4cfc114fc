"""A model as a graph of layers: say what flows where, with something that stands for the numbers to come."""

from levels.hardware import PLACE
from levels.high_level import Model, Training
from levels.low_level import METHODS, trace
from levels.mid_level import WIDER, Layer, Made
from levels_more.checks import dtype_of, expect, several, sizes, word
from levels_more.high_level.data_adapter import alone, as_list
from levels_more.mid_level.merging import Arithmetic, sides


def dry_run(layer, specs):
    """Call a layer on symbols: this builds it, and runs nothing. Returns the symbols that it gives."""
    return trace(lambda *x: layer(alone(x)), specs)[1]


def spec_of(shape, dtype):
    """The Spec of a batch of rows of this shape: two of them stand for any number."""
    return PLACE.device.spec(
        (2, *sizes("Input: shape", several("Input: shape", shape, "a tuple of sizes"))), dtype_of("Input: dtype", dtype)
    )


class Placeholder(Made):
    """What a layer will be given, or give, once there are numbers: `layer` is None for an `Input`."""

    def through(self, layer, inputs, training=None):
        """The layer, called on placeholders."""
        return Call(layer, inputs, *[] if training is None else [training])

    shape = property(lambda self: (None, *self.spec.shape[1:]), doc="Of any number of rows.")
    dtype = property(lambda self: self.spec.dtype)
    __add__, __radd__ = sides("add")  # each makes a layer, and calls it
    __sub__, __rsub__ = sides("subtract")
    __mul__, __rmul__ = sides("multiply")
    __truediv__, __rtruediv__ = sides("divide")
    __matmul__, __rmatmul__ = sides("matmul")
    __pow__, __rpow__ = sides("power")
    __array_ufunc__ = None  # NumPy's arrays leave `array + place` to the place

    def __neg__(self):
        return Arithmetic("negative")(self)

    def __repr__(self):
        return f"{type(self).__name__} of shape {self.shape}"


class Input(Placeholder):
    """A place for rows of that shape. By its name it is given rows in a dict, {name: rows}."""

    def __init__(self, shape, dtype="float32", name=None):
        self.spec, self.layer = spec_of(shape, dtype), None
        self.name = None if name is None else word("Input: name", name)


class Call(Placeholder):
    """What a layer gives when it is called on these placeholders. That builds the layer, and runs nothing."""

    def __init__(self, layer, inputs, training=None):
        self.layer, self.inputs, self.training = layer, as_list(inputs), training
        self.spec = dry_run(layer, [x.spec for x in self.inputs]).spec
        vars(layer).setdefault("calls", []).append(self)  # for `layer.output`


def begin(model, part):
    """Build a Sequential that has an `Input` in front of its layers; `part` came last. Raises TypeError for what is none."""
    if not isinstance(part, (Placeholder, Layer)):
        raise TypeError(f"Sequential: {part!r:.60} is no layer")
    if isinstance(part, Placeholder):
        model.place = model.end = part
    for layer in model.layers if part is model.place else [part]:
        model.end = layer(model.end)
    dry_run(model, [model.place.spec])


def in_order(outputs, inputs):
    """The calls that lead from the inputs to the outputs, each after those that it needs."""
    order = []

    def visit(y):
        if y in inputs or y in order:
            return
        if y.layer is None:
            raise ValueError(f"Model: an output needs {y!r}, which is not among the inputs")
        for x in y.inputs:
            visit(x)
        order.append(y)

    for y in outputs:
        visit(y)
    return order


class Functional(Model):
    """A graph of layers, from inputs to outputs."""

    def __init__(self, inputs, outputs, name=None):
        super().__init__(name)
        self.inputs, self.outputs = as_list(inputs), as_list(outputs)
        for place in self.inputs + self.outputs:
            expect(isinstance(place, Placeholder), "Model", place, "an Input, or what a layer gives for one")
        expect(self.inputs and self.outputs, "Model", (inputs, outputs), "one input and one output, or more")
        self.input_specs = [x.spec for x in self.inputs]
        self.steps = in_order(self.outputs, self.inputs)
        self.layers = [*dict.fromkeys(step.layer for step in self.steps)]

    def ordered(self, given):
        """Of inputs {the name of an Input: rows}, or of anything {the name of an output's layer: …}: a list, as the model has them.

        Raises ValueError where the names are others.
        """
        names = [place.name for place in self.inputs], [place.layer and place.layer.name for place in self.outputs]
        for each in names:
            if len({*each}) == len(each) and {*each} == {*given}:
                return [given[name] for name in each]
        told = " or ".join(", ".join(map(str, each)) for each in names)
        raise ValueError(
            f"{self.name}: got {', '.join(map(str, given))}; its inputs and outputs are {told}, each by its name"
        )

    def compile(self, optimizer="rmsprop", loss="mse", metrics=(), loss_weights=None):
        """As for any model; a loss for each output, in a list or {the name of its layer: loss}, and how much each counts.

        Raises ValueError for other names, and for more weights or fewer than outputs.
        """
        loss, shares = (self.ordered(each) if isinstance(each, dict) else each for each in (loss, loss_weights))
        if shares is not None and len(several("compile: loss_weights", shares)) != len(self.outputs):
            raise ValueError(f"compile: {len(shares)} loss_weights for {len(self.outputs)} outputs")
        self.chosen = Training(optimizer, loss, metrics, *[] if shares is None else [[*shares]])

    def call(self, x):
        values = dict(zip(self.inputs, as_list(x), strict=True))
        for step in self.steps:
            values[step] = step.layer(alone([values[x] for x in step.inputs]), step.training)
        return alone([values[y] for y in self.outputs])


METHODS["Model.begin"] = begin
WIDER[Model] = Functional
