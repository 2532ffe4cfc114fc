"""The cases of the functions of notebook 04 that a reader writes at the depth *most* only."""

import numpy as np

from course.reader.cases import Wrong, cases
from course.reader.cases.drawn import drawn
from course.reader.cases.interpreting import interpreted
from course.reader.cases.mid_level import constant
from course.reader.cases.plain_data import describe


def number(x):
    """A tensor or a variable of shape () as a float; anything else as it is."""
    return float(x) if hasattr(x, "numpy") and not x.shape else x


@cases("04-Layer.__call__")
def layer_run(mine, draw):
    """Which methods run in a call of a layer, and what it returns; then both tasks."""
    with interpreted(), mine.placed("Layer.__call__", "mid_level"):
        from levels.low_level import Variable, function
        from levels.mid_level import Layer

        class Doubled(Layer):
            """A layer that multiplies x by a weight, 2 at first, and notes which of its methods are called."""

            def __init__(self):
                super().__init__()
                self.told = []

            def build(self, shape):
                self.told.append(f"build {shape} {self.dtype}")
                self.weight = self.add_weight((1, 1), lambda shape: [2.0])

            def call(self, x):
                self.told.append(f"call {type(x).__name__}")
                return x * self.weight

        class Built(Doubled):
            """A layer that makes its weight in its constructor, so that there is nothing to build."""

            def __init__(self):
                super().__init__()
                self.weight = self.add_weight((1, 1), lambda shape: [3.0])

        def heard(said, layer, *arguments):
            layer.told.clear()
            value = mine.call(said, layer, *arguments)
            return said, {"what runs": ", ".join(layer.told), "": value}

        layer, x = Doubled(), np.array([[1.0, 2.0], [3.0, 4.0]], "f4")
        yield heard("the first call, of an array of shape (2, 2)", layer, x)
        yield heard("a second call, of an array of shape (1, 3)", layer, np.array([[-0.0, np.inf, np.nan]], "f4"))
        yield heard("a third call, of a tensor", layer, constant(x))
        yield heard("the first call of another layer, of a list", Doubled(), [[1.0, 2.0]])
        yield heard("the first call, of a variable, float64", Doubled(), Variable(draw.normal(size=(1, 3))))
        yield heard("the first call, of an array without rows", Doubled(), np.zeros((0, 2)))
        yield heard("the first call of a layer that is built already", Built(), x)
        yield heard("a call with training = True", Doubled(), x, True)
        told = layer.told
        said = "a call inside a `function`"
        told.clear()
        value = mine.call(said, function(lambda x: layer(x)), constant(x))
        yield said, {"what runs": ", ".join(told), "": value}
    yield "20 steps of both tasks", mine.losses("Layer.__call__", "mid_level")


@cases("04-Loss.__call__")
def loss_call(mine, draw):
    """What losses with different `call` methods return, and what they refuse; then both tasks."""
    with interpreted(), mine.placed("Loss.__call__", "mid_level"):
        from levels.low_level import GradientTape, Variable, constant
        from levels.mid_level import BinaryCrossentropy, Loss, MeanSquaredError

        class Difference(Loss):
            """A loss that notes the types of its arguments."""

            def call(self, y_true, y_pred):
                self.given = f"{type(y_true).__name__} and {type(y_pred).__name__}"
                return y_true - y_pred

        mse = MeanSquaredError()
        bce = BinaryCrossentropy()
        difference = Difference()
        truth = np.array([[1.0], [2.0]])
        guess = np.array([[1.5], [4.0]])
        yield "the squared error of truth [1, 2], guess [1.5, 4]", mine.call("the squared error", mse, truth, guess)
        said = "a loss whose `call` gives y_true - y_pred, of truth [1, 2], guess [1.5, 4]"
        yield (
            said,
            {"": mine.call(said, difference, truth, guess), "`call` is given": getattr(difference, "given", "nothing")},
        )
        said = "the squared error of 100 labels (100,) and predictions (100, 1)"
        yield said, mine.refused(said, ValueError, mse, np.ones(100), np.ones((100, 1)))
        said = "the cross-entropy of a prediction of 1.5"
        yield said, mine.refused(said, ValueError, bce, np.array([[1.0]]), np.array([[1.5]]))
        said = "the squared error of labels that are whole numbers"
        yield said, mine.refused(said, TypeError, mse, truth.astype(int), guess)
        said = "weights of samples"
        yield said, mine.refused(said, NotImplementedError, mse, truth, guess, np.ones(2))
        for shape in ((3, 4), (1, 1), (5, 2)):
            arrays = [draw.uniform(size=shape) for _ in range(2)]
            for kind, made in {"arrays": np.asarray, "tensors": constant}.items():
                said = f"the cross-entropy of {kind} of shape {shape}"
                yield said, mine.call(said, bce, *map(made, arrays))
        said = "float32"
        yield said, mine.call(said, mse, *(each.astype("f4") for each in arrays))
        said = "a prediction that is NaN"
        yield said, mine.call(said, mse, truth, guess * np.nan)
        y_pred = Variable(guess)
        with GradientTape() as tape:
            loss = mine.call("a variable", mse, truth, y_pred)
        yield "the gradient in the guess [1.5, 4]", mine.call("the gradient", tape.gradient, loss, y_pred)
    yield "20 steps of both tasks", mine.losses("Loss.__call__", "mid_level")


@cases("04-Optimizer.apply_gradients")
def apply_gradients(mine, draw):
    """The variables of the model and of the optimizer after some steps; then both tasks."""
    with interpreted(), mine.placed("Optimizer.apply_gradients", "mid_level"):
        from levels.low_level import Variable, function
        from levels.mid_level import SGD, Adam, Optimizer

        class Remembers(Optimizer):
            """An optimizer that keeps the sum of the gradients, the last gradient, and the arguments of `update`."""

            memory = "total", "last"

            def __init__(self, learning_rate):
                super().__init__(learning_rate)
                self.told = []

            def update(self, rate, dw, w, total, last):
                self.told.append([float(each) for each in (self.iterations, rate, dw, w, total, last)])
                return w - rate * dw, total + dw, dw

        def stepped(said, optimizer, start, steps, made=list):
            """The variables and slots after each step. made: converts the pairs for `apply_gradients`."""
            variables = [Variable(np.array(x)) for x in start]
            for k, gradients in enumerate(steps, 1):
                pairs = made(zip(map(constant, gradients), variables, strict=True))
                mine.call(said, optimizer.apply_gradients, pairs)
                now = f"{said}, after step {k}" if len(steps) > 1 else said
                yield now, {f"variable {j}" if len(start) > 1 else "": number(v) for j, v in enumerate(variables)}
                for j, slots in enumerate(optimizer.slots):
                    yield now, {f"{name} of variable {j}": number(slot) for name, slot in slots.items()}
                    yield now, {f"what holds {name} of variable {j}": type(x).__name__ for name, x in slots.items()}
            yield said, {"the number of steps": number(optimizer.iterations)}
            yield said, {"what holds the number of steps": type(optimizer.iterations).__name__}

        yield from stepped("SGD(0.5) with w = 1, dw = 2", SGD(0.5), [1.0], [[2.0]])
        yield from stepped("the pairs come from a `zip`", SGD(0.5), [1.0, 3.0], [[2.0, 4.0], [-1.0, 0.0]], iter)
        keeps = Remembers(0.5)
        yield from stepped("an optimizer with two slots", keeps, [1.0, -1.0], [[2.0, 4.0], [1.0, -3.0], [0.0, -0.0]])
        for k, told in enumerate(keeps.told):
            words = f"an optimizer with two slots, call {k + 1} of `update`"
            yield words, dict(zip(("iterations", "rate", "dw", "w", "total", "last"), told, strict=True))
        shapes = [draw.normal(size=shape) for shape in ((3, 2), (1, 2))]
        yield from stepped("a kernel and a bias", SGD(0.1), shapes, [[draw.normal(size=x.shape) for x in shapes]])
        single = [x.astype("f4") for x in shapes]
        yield from stepped("float32, and a gradient that is NaN", SGD(0.1), single, [[x * np.nan for x in single]])
        w, sgd = Variable(np.array(1.0)), SGD(0.1)
        step = function(lambda: sgd.apply_gradients([(constant(1.0), w)]))
        for rate in (0.1, 0.1, 0.001):
            sgd.learning_rate = rate
            said = f"in a compiled step, rate {rate:g}"
            mine.call(said, step)
            yield said, {"": number(w), "the number of steps": number(sgd.iterations)}
        kept, adam = Variable(np.array(1.0)), Adam(0.1)
        step = function(lambda: adam.apply_gradients([(constant(1.0), kept)]))
        for k in (1, 2, 3):
            said = f"Adam(0.1) in a compiled step, step {k}"
            mine.call(said, step)
            yield said, [kept, *adam.slots[0].values()]
    yield "20 steps of both tasks", mine.losses("Optimizer.apply_gradients", "mid_level")


@cases("04-Adam.update")
def adam_update(mine, draw):
    """The new w, m and v of single steps; then a line that Adam fits, op by op and compiled."""
    with interpreted(), mine.placed("Adam.update", "mid_level"):
        from levels.low_level import GradientTape, Variable, function
        from levels.mid_level import Adam, Dense, MeanSquaredError

        def step(said, optimizer, t, *arrays):
            dw, w, m, v = (constant(x) for x in arrays)
            optimizer.build([Variable(w)])
            optimizer.iterations.assign(optimizer.iterations + float(t))
            found = mine.call(said, optimizer.update, optimizer.rate, dw, w, m, v)
            if not isinstance(found, tuple | list) or len(found) != 3:
                raise Wrong(f"{said}: expected the new w, m and v, yours is {describe(found)}")
            return said, dict(zip("wmv", map(number, found), strict=True))

        said = "β₁ = β₂ = 0.5, ε = 2, rate 0.5, step 1: dw = 2, w = 1, m = v = 0"
        yield step(said, Adam(0.5, 0.5, 0.5, 2.0), 1, 2.0, 1.0, 0.0, 0.0)
        said = "β₁ = 0.5, β₂ = 0.75, ε = 1, rate 1, step 2: dw = -2, w = 0, m = 1, v = 1"
        yield step(said, Adam(1.0, 0.5, 0.75, 1.0), 2, -2.0, 0.0, 1.0, 1.0)
        for dw in (1e-6, 1e6, np.inf):
            yield step(f"Adam(0.001), step 1: dw = {dw:g}, w = m = v = 0", Adam(), 1, dw, 0.0, 0.0, 0.0)
        for t, shape in ((1, (3, 2)), (7, (1, 3)), (1000, (2, 2)), (2, (0,))):
            special = 0.0, -0.0, np.nan
            for said, *arrays, v in drawn(draw, "f8", "f4", special=special, dw=shape, w=shape, m=shape, v=shape):
                yield step(f"Adam(0.1), step {t}, shape {shape}; {said}", Adam(0.1), t, *arrays, v**2)
        x = draw.normal(size=(8, 2))
        y, mse = x @ [[2.0], [-3.0]] + 3.0, MeanSquaredError()
        for compiled in (False, True):
            model, adam = Dense(1), Adam(0.1)
            model(x)
            model.set_weights([np.zeros((2, 1)), np.zeros((1, 1))])

            def fit(x, y, model=model, adam=adam):
                with GradientTape() as tape:
                    loss = mse(y, model(x))
                gradients = tape.gradient(loss, model.variables)
                adam.apply_gradients(zip(gradients, model.variables, strict=True))
                return loss

            said = "20 steps of a line, " + ("compiled" if compiled else "op by op")
            fit = function(fit) if compiled else fit
            losses = [float(mine.call(said, fit, constant(x), constant(y))) for _ in range(20)]
            yield said, {"losses": np.array(losses), "weights": [v.numpy() for v in model.variables]}


@cases("04-Dataset.batch")
def dataset_batch(mine, draw):
    """The row numbers of some passes, and the length of a dataset; then the batches themselves."""
    with interpreted(), mine.placed("Dataset.batch", "mid_level"):
        from levels.low_level import function, reduce_mean
        from levels.mid_level import Dataset

        def batched(said, rows, size, seed=None):
            source = Dataset.from_tensor_slices((np.arange(float(rows)), np.ones((rows, 2))))
            source = source if seed is None else source.shuffle(rows, seed)
            data = mine.call(said, source.batch, size)
            if not isinstance(data, Dataset):
                raise Wrong(f"{said}: expected a Dataset, yours is {describe(data)}")
            return data

        def one_pass(said, data):
            """The row numbers of a pass, such as 0 1 | 2, and the kind of what holds them."""
            made = mine.call(said, data.make)
            parts = (" ".join(map(str, np.asarray(rows).tolist())) for rows in made)
            return {"row numbers": " | ".join(parts), "they are in": describe(made)}

        for rows, size in ((7, 3), (6, 3), (4, 1), (3, 5), (3, 3), (1, 1), (10, 4)):
            said = f"{rows} rows in batches of {size}"
            data = batched(said, rows, size)
            yield said, one_pass(said, data) | {"length": len(data), "it says that it holds batches": data.batches}
            yield f"{said}, a second pass", one_pass(said, data)
        for rows, size in ((5, 2), (6, 2)):
            said = f"{rows} rows, shuffled, in batches of {size}"
            data = batched(said, rows, size, seed=1)
            for k in (1, 2, 3):
                yield f"{said}, pass {k}", one_pass(said, data)
        said = "5 rows in batches of 2: a loop over them"
        data = batched(said, 5, 2)
        for k, batch in enumerate(mine.call(said, list, data), 1):
            yield f"{said}, batch {k}", batch
        said = "batches of batches"
        yield said, mine.refused(said, ValueError, data.batch, 2)
        said = "batches of 0"
        yield said, mine.refused(said, ValueError, Dataset.from_tensor_slices((np.arange(5.0),)).batch, 0)
        said = "50 rows, shuffled, in batches of 20: a compiled pass"
        mean = function(lambda x, y: reduce_mean(x * x))
        arrays, batches = mine.call(said, batched(said, 50, 20, seed=2).rows)
        yield said, mine.call(said, mean.over, *arrays, batches)
