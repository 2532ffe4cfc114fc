"""Things that a process uses for the first time: `python tests/support/first_uses.py THREADS`, so many threads at once.

Prints {what: the numbers that each thread found, or its error}, as JSON. tests/house/test_first_use_in_threads.py compares them
with what one thread finds.
"""

import json
import sys
import traceback

import numpy as np
from at_once import in_threads

X = np.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = (X.sum(axis=1, keepdims=True) > 0.1) * 1.0
CLASSES = np.arange(8) % 2
BATCHES = np.arange(8).reshape(4, 2)


def of_kernels():
    """Level 1: a program. Level 2: a launch of each op that has trials."""
    from levels.kernels.tasks import linear_regression
    from levels_more.compiler.eager import small_ops  # noqa: F401
    from levels_more.hardware import Assembler, exp, pool
    from levels_more.kernels import (
        ELEMENTWISE,
        KERNELS,
        UPDATES,
        elementwise,  # noqa: F401
        launch,
    )
    from levels_more.kernels.verify import cases_of, drawn
    from levels_more.low_level import Tensor  # noqa: F401 (with it come the ops of `levels_more`)

    cpu = pool()["cpu:0"]

    def program():
        a = Assembler("twice", np.float64)
        x, out = a.array("x", "n"), a.array("out", "n")
        with a.loop("n") as i:
            a.store(exp(a.load(x, i)) * 2.0, out, i)
        given, result = cpu.put(X.reshape(-1)), cpu.alloc((24,), "f8")
        a.assemble()(x=given, out=result)
        return result.numpy()

    def launched(op):
        draw, results = np.random.default_rng(1), []
        for inputs, attrs in cases_of(op)[:2]:
            arrays = [drawn(draw, what, np.dtype("f8")) for what in inputs]
            buffers = [cpu.put(array) for array in arrays]
            with np.errstate(all="ignore"):
                out = launch(op, *buffers, **attrs) if op in UPDATES else launch(op, None, *buffers, **attrs)
            results.append(out.numpy())
        return results

    yield "program", program
    yield "task", lambda: linear_regression(X, Y, [np.ones((3, 1)), np.zeros((1, 1))], BATCHES).losses
    for op in sorted({op for op, kind in KERNELS if kind == "cpu"}):
        try:
            cases_of(op)
        except KeyError:
            continue
        if "f" in ELEMENTWISE.get(op, ("f",))[0]:
            yield f"launch of {op}", lambda op=op: launched(op)


def of_tensors():
    """Level 3: the door, tapes, functions, `over`, and what joins several ops."""
    from levels_more import low_level
    from levels_more.low_level import GradientTape, Variable, constant, function, reduce_sum

    shared = Variable(np.ones((3, 1)))
    one_for_all = function(lambda x: reduce_sum(low_level.nn.sigmoid(x @ shared)))

    def eager_ops():
        x = constant(X)
        return [float(reduce_sum(x[:n] * 2.0 + 1.0)) for n in range(1, 8)]

    def loss_of(w, x):
        return low_level.reduce_mean(low_level.nn.relu(x @ w) + low_level.exp(x @ w * 0.1))

    def tapes():
        w, x, seen = Variable(np.ones((3, 2))), constant(X), []
        for _ in range(12):  # from the ninth on, the walk back is one program
            with GradientTape() as tape:
                loss = loss_of(w, x)
            slope = tape.gradient(loss, w)
            w.assign(w - 0.1 * slope)
            seen.append(slope.numpy())
        return seen

    def stepping(w):
        @function
        def step(x):
            with GradientTape() as tape:
                loss = loss_of(w, x)
            w.assign(w - 0.1 * tape.gradient(loss, w))
            return loss

        return step

    def steps():
        w = Variable(np.ones((3, 2)))
        step = stepping(w)
        return [float(step(constant(X[rows]))) for rows in BATCHES] + w.numpy().tolist()

    def over():
        w = Variable(np.ones((3, 2), "f4"))
        return stepping(w).over(X.astype("f4"), BATCHES), w.numpy()

    def undecorated():
        with low_level.eager():
            return steps()

    yield "eager", eager_ops
    yield "tapes", tapes
    yield "function", steps
    yield "over", over
    yield "one function for all", lambda: one_for_all(constant(X))
    yield "undecorated", undecorated
    yield "gather", lambda: low_level.gather(constant(X), constant(np.array([1, 5])))


def of_models():
    """Level 5: fit, evaluate and predict, of a model for each thread and of one for all; an estimator."""
    from levels_more.high_level import DNNClassifier, Input, LinearRegressor, Sequential
    from levels_more.mid_level import Dense

    def model(*how, units=1, activation="sigmoid", **options):
        made = Sequential(
            [Dense(4, "relu", kernel_initializer="ones"), Dense(units, activation, kernel_initializer="ones")]
        )
        made.compile(*how, **options)
        return made

    def fitted(x, *how, y=Y, **options):
        net = model(*how, **options)
        history = net.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
        return [*history.losses, *net.evaluate(x, y, verbose=0, return_dict=True).values(), *net.predict(x, verbose=0)]

    shared, functional = model("sgd", "binary_crossentropy"), Input((3,))
    yield "predict, one for all", lambda: shared.predict(X, verbose=0)
    yield "evaluate, one for all", lambda: shared.evaluate(X, Y, verbose=0)
    yield "fit", lambda: fitted(X, "adam", "binary_crossentropy", metrics=["accuracy"])
    yield "fit in float32", lambda: fitted(X.astype("f4"), "sgd", "mse", activation=None)
    yield (
        "fit on classes",
        lambda: fitted(X, "adam", "sparse_categorical_crossentropy", y=CLASSES, units=2, activation="softmax"),
    )
    yield "functional", lambda: Dense(2, kernel_initializer="ones")(functional).shape[-1]
    yield "LinearRegressor", lambda: LinearRegressor(random_state=1, epochs=3).fit(X, Y[:, 0]).predict(X)
    yield "DNNClassifier", lambda: DNNClassifier((4,), random_state=1, epochs=3).fit(X, CLASSES).predict_proba(X)


def uses():
    """Yield (what, the function that uses it): models first, whose kernels and programs nothing has asked for by then."""
    yield from of_models()
    yield from of_tensors()
    yield from of_kernels()


def numbers(result):
    """All numbers of an array, of a tensor, or of a list of such, in one list."""
    if isinstance(result, (list, tuple)):
        return [number for part in result for number in numbers(part)]
    return np.asarray(result, np.float64).reshape(-1).tolist()


def at_once(use, threads):
    """What so many threads find that begin together."""

    def find(_):
        try:
            return numbers(use())
        except Exception:
            return traceback.format_exc()

    return in_threads(find, threads)


if __name__ == "__main__":
    sys.setswitchinterval(1e-5)  # threads take turns often
    print(json.dumps({name: at_once(use, int(sys.argv[1])) for name, use in uses()}))
