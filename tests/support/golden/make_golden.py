"""Makes golden.json: what Keras and PyTorch compute, for `tests/levels/mid_level/test_mid_level.py` to hold against level 4.

    pip install tensorflow-cpu torch
    python3 tests/support/golden/make_golden.py

A case names a class and its arguments, as Keras and level 4 spell them, then the inputs, then the results in float64 and in
float32. Everything comes from Keras on TensorFlow (on PyTorch, Keras rounds float64 to float32) but the optimizers Adam and
AdamW: Keras adds epsilon before the bias correction, and level 4 adds it after, as PyTorch does and as the paper has it.

Where Keras rounds an argument to float32 on its way to a float64, the arguments here are such that it changes nothing, as
0.875. And its sparse categorical cross-entropy of probabilities that are cut off differs by 1e-7 between TensorFlow and
PyTorch, so there is no case of that.
"""

import hashlib
import json
import os
import platform
from pathlib import Path

os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")

import torch._dynamo  # before tensorflow, which it else crashes with  # isort: skip

import keras
import numpy as np
import tensorflow as tf

FILE = Path(__file__).with_name("golden.json")
DTYPES = "float64", "float32"
random = np.random.RandomState(7)  # its numbers never change


def drawn(*shape):
    """Normal numbers with few digits, so that a float32 of them is near."""
    return random.standard_normal(shape).round(3)


def chances(*shape):
    return random.uniform(0.02, 0.98, shape).round(3)


def plain(x):
    """Arrays and tensors as lists of Python's floats, each with as many digits as tell it from its neighbours."""
    if isinstance(x, dict):
        return {name: plain(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(value) for value in x]
    if isinstance(x, tf.IndexedSlices):  # the gradient of a table
        x = tf.convert_to_tensor(x)
    if isinstance(x, (tf.Tensor, tf.Variable, torch.Tensor, keras.Variable)):
        x = x.detach().numpy() if isinstance(x, torch.Tensor) else x.numpy()
    if isinstance(x, np.ndarray) and x.ndim:
        return [plain(value) for value in x]
    if isinstance(x, (np.generic, np.ndarray)):
        return int(x) if x.dtype.kind == "i" else float(str(x))  # of a float32 no more digits than it has
    return x


def typed(values, dtype):
    """Floats in that dtype; whole numbers stay what they are."""
    array = np.asarray(values)
    return array.astype(dtype) if array.dtype.kind == "f" else array


def weight_of(case, dtype):
    return None if case["sample_weight"] is None else typed(case["sample_weight"], dtype)


# Each function below takes a case and a dtype and gives the results of the case in that dtype.


def layer(case, dtype):
    """Outputs and state of one call after the other; then the gradients of Σ dy·y in the last one, penalties included."""
    given, results = dict(case["arguments"]), []
    if "kernel_regularizer" in given:
        name, amount = given["kernel_regularizer"]
        given["kernel_regularizer"] = getattr(keras.regularizers, name)(amount)
    made = getattr(keras.layers, case["class"])(**given, dtype=dtype)
    for n, call in enumerate(case["calls"]):
        inputs = [tf.constant(typed(x, dtype)) for x in call["inputs"]]
        x = inputs if case["class"] == "Concatenate" else inputs[0]
        if n == 0:
            made(x)
            if case["weights"]:
                made.set_weights([typed(w, dtype) for w in case["weights"]])
        with tf.GradientTape() as tape:
            tape.watch([x for x in inputs if x.dtype.is_floating])
            y = made(x, **{"training": call["training"]} if case["class"] == "BatchNormalization" else {})
            total = tf.reduce_sum(y * typed(case["dy"], dtype)) if n == len(case["calls"]) - 1 else 0.0
            total = sum(made.losses, total)
        results.append(plain({"y": y, "state": made.non_trainable_variables}))
    asked = [x for x in inputs if x.dtype.is_floating], [v.value for v in made.trainable_variables]
    gradients = dict(zip(("inputs", "weights"), tape.gradient(total, asked), strict=True))
    return plain({"calls": results, "penalties": made.losses, "gradients": gradients})


def loss(case, dtype):
    y_pred = tf.constant(typed(case["y_pred"], dtype))
    made = getattr(keras.losses, case["class"])(**case["arguments"], dtype=dtype)
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        value = made(typed(case["y_true"], dtype), y_pred, weight_of(case, dtype))
    return plain({"loss": value, "gradient": tape.gradient(value, y_pred)})


def metric(case, dtype):
    """The result after each update."""
    made, results = getattr(keras.metrics, case["class"])(**case["arguments"], dtype=dtype), []
    for update in case["updates"]:
        made.update_state(*(typed(x, dtype) for x in update["inputs"]), sample_weight=weight_of(update, dtype))
        results.append(made.result())
    return plain(results)


def objective(w, b, x, y, mean, total):
    """What is to become small: squares that two variables share unevenly, and a little that is not square."""
    error = x @ w + b - y
    return mean(error * error) + 0.1 * total(w * w * w * w)


def optimizer(case, dtype):
    """The two variables after some of the steps."""
    x, y, w, b = (typed(PROBLEM[name], dtype) for name in "xywb")
    run, results = (torch_steps if case["from"] == "torch" else keras_steps), {}
    for step, variables in enumerate(run(case, x, y, w, b), 1):
        if step in (1, 10, 100):
            results[str(step)] = plain(variables)
    return results


def keras_steps(case, x, y, w, b):
    variables, options = [keras.Variable(value, dtype=value.dtype.name) for value in (w, b)], dict(case["arguments"])
    if isinstance(options["learning_rate"], list):
        name, given = options["learning_rate"]
        rates = {name: w.dtype.type(value) if isinstance(value, float) else value for name, value in given.items()}
        options["learning_rate"] = getattr(keras.optimizers.schedules, name)(**rates)
    made = getattr(keras.optimizers, case["class"])(**options)
    for _ in range(100):
        with tf.GradientTape() as tape:
            value = objective(*(v.value for v in variables), x, y, tf.reduce_mean, tf.reduce_sum)
        made.apply(tape.gradient(value, [v.value for v in variables]), variables)
        yield variables


def torch_steps(case, x, y, w, b):
    x, y = torch.tensor(x), torch.tensor(y)
    variables = [torch.tensor(value, requires_grad=True) for value in (w, b)]
    made = getattr(torch.optim, case["class"])(variables, **case["torch"])
    for _ in range(100):
        made.zero_grad()
        objective(*variables, x, y, torch.mean, torch.sum).backward()
        made.step()
        yield variables


PROBLEM = {
    "x": (drawn(8, 3) * [1.0, 3.0, 0.3]).round(3),
    "y": drawn(8, 2),
    "w": drawn(3, 2),
    "b": drawn(1, 2),
}


def layers():
    x = drawn(4, 3)
    for name in ("linear", "relu", "sigmoid", "tanh", "softmax"):
        yield "Dense", {"units": 5, "activation": name}, [drawn(3, 5), drawn(5)], [[x]], (4, 5)
    yield "Dense", {"units": 2, "use_bias": False}, [drawn(3, 2)], [[x]], (4, 2)
    for penalty in (["L1", 0.125], ["L2", 0.25]):
        yield "Dense", {"units": 2, "kernel_regularizer": penalty}, [drawn(3, 2), drawn(2)], [[x]], (4, 2)
    yield "Activation", {"activation": "tanh"}, [], [[x]], (4, 3)
    yield "Flatten", {}, [], [[drawn(3, 2, 2)]], (3, 4)
    yield "Concatenate", {}, [], [[drawn(3, 2), drawn(3, 4)]], (3, 6)
    yield "Concatenate", {"axis": 1}, [], [[drawn(2, 2, 3), drawn(2, 1, 3)]], (2, 3, 3)
    ids = np.array([[0, 3], [3, 4], [1, 3]])
    yield "Embedding", {"input_dim": 5, "output_dim": 3}, [drawn(5, 3)], [[ids]], (3, 2, 3)
    start = [chances(3), drawn(3), drawn(3), chances(3)]
    yield "BatchNormalization", {}, start, [[x]], (4, 3)
    several = [[drawn(6, 3) * 3.0 + 1.0] for _ in range(4)]
    yield "BatchNormalization", {"momentum": 0.9, "epsilon": 0.01}, start, several, (6, 3)
    yield "BatchNormalization", {}, start, [[drawn(4, 2, 3)], [drawn(4, 2, 3)]], (4, 2, 3)


def layer_cases():
    for name, given, weights, inputs, shape in layers():
        for last in (False, True) if name == "BatchNormalization" else (False,):
            flags = [name == "BatchNormalization"] * (len(inputs) - 1) + [last]
            calls = [{"inputs": x, "training": flag} for x, flag in zip(inputs, flags, strict=True)]
            yield {"class": name, "arguments": given, "weights": weights, "calls": calls, "dy": drawn(*shape)}


def losses():
    """(class, arguments, y_true, y_pred)"""
    y, z = drawn(5, 2), drawn(5, 2)
    z[0, 0] = y[0, 0]  # an error of 0
    for name in ("MeanSquaredError", "MeanAbsoluteError"):
        yield name, {}, y, z
    labels = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.3, 1.0]).reshape(8, 1)
    yield "BinaryCrossentropy", {}, labels, chances(8, 1)
    certain = np.array([0.0, 1.0, 0.0, 1.0, 1e-9, 0.5, 1e-6, 0.999]).reshape(8, 1)
    yield "BinaryCrossentropy", {}, labels, certain
    extreme = np.array([-50.0, 50.0, -800.0, 800.0, 0.0, 1e-3, -30.0, 20.0]).reshape(8, 1)
    yield "BinaryCrossentropy", {"from_logits": True}, labels, drawn(8, 1)
    yield "BinaryCrossentropy", {"from_logits": True}, labels, extreme
    yield "BinaryCrossentropy", {"from_logits": True}, 1.0 - labels, -extreme[::-1].copy()
    rows = np.eye(3)[[0, 2, 1, 1]]
    rows[3] = [0.2, 0.5, 0.3]
    share = chances(4, 3)
    share = (share / share.sum(1, keepdims=True)).round(3)  # some rows are a little more or less than 1
    sure = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.3, 0.3, 0.3], [0.0, 1e-9, 1.0]])
    far = np.array([[50.0, -50.0, 0.0], [800.0, -800.0, 0.0], [-800.0, 800.0, 800.0], [1000.0, 1000.0, 1000.0]])
    yield "CategoricalCrossentropy", {}, rows, share
    yield "CategoricalCrossentropy", {}, rows, sure
    yield "SparseCategoricalCrossentropy", {}, np.array([0, 2, 1, 1]), share
    for z in (drawn(4, 3), far):
        yield "CategoricalCrossentropy", {"from_logits": True}, rows, z
        yield "SparseCategoricalCrossentropy", {"from_logits": True}, np.array([0, 2, 1, 1]), z


def loss_cases():
    for name, given, y_true, y_pred in losses():
        for weight in (None, chances(len(y_pred)) * 2.0):
            case = {"class": name, "arguments": given, "y_true": y_true, "y_pred": y_pred, "sample_weight": weight}
            yield case


def updates(*names, weighted=False, rows=(5, 3, 1, 8)):
    """Batches of different sizes, the inputs named by what they hold, with or without weights."""
    for n in rows:
        kinds = {
            "numbers": lambda n: drawn(n, 2),
            "values": lambda n: drawn(n),
            "chances": lambda n: chances(n, 1),
            "labels": lambda n: (random.uniform(size=(n, 1)) < 0.5).astype(float),
            "classes": lambda n: random.randint(0, 3, n),
            "rows": lambda n: np.eye(3)[random.randint(0, 3, n)],
            "shares": lambda n: chances(n, 3),
        }
        inputs = [kinds[name](n) for name in names]
        yield {"inputs": inputs, "sample_weight": chances(n) * 3.0 if weighted else None}


def metric_cases():
    table = [
        ("Mean", {}, ["values"]),
        ("MeanSquaredError", {}, ["numbers", "numbers"]),
        ("MeanAbsoluteError", {}, ["numbers", "numbers"]),
        ("BinaryCrossentropy", {}, ["labels", "chances"]),
        ("BinaryAccuracy", {}, ["labels", "chances"]),
        ("BinaryAccuracy", {"threshold": 0.3}, ["labels", "chances"]),
        ("CategoricalAccuracy", {}, ["rows", "shares"]),
        ("SparseCategoricalAccuracy", {}, ["classes", "shares"]),
        ("Precision", {}, ["labels", "chances"]),
        ("Precision", {"thresholds": 0.6}, ["labels", "chances"]),
        ("Recall", {}, ["labels", "chances"]),
        ("Recall", {"thresholds": 0.6}, ["labels", "chances"]),
        ("AUC", {}, ["labels", "chances"]),
        ("AUC", {"num_thresholds": 7}, ["labels", "chances"]),
        ("AUC", {"curve": "PR"}, ["labels", "chances"]),
        ("AUC", {"num_thresholds": 7, "curve": "PR"}, ["labels", "chances"]),
        ("R2Score", {}, ["numbers", "numbers"]),
    ]
    for name, given, inputs in table:
        for weighted in (False, True):
            rows = (5, 3, 4, 8) if name == "R2Score" else (5, 3, 1, 8)
            batches = list(updates(*inputs, weighted=weighted, rows=rows))
            yield {"class": name, "arguments": given, "updates": batches}


def optimizer_cases():
    decay = ["ExponentialDecay", {"initial_learning_rate": 0.0625, "decay_steps": 20, "decay_rate": 0.75}]
    stairs = ["PiecewiseConstantDecay", {"boundaries": [4, 30], "values": [0.03125, 0.0625, 0.0078125]}]
    for rate in (0.02, decay, stairs):
        yield {"class": "SGD", "arguments": {"learning_rate": rate}}
    for more in (
        {"momentum": 0.875},
        {"momentum": 0.875, "nesterov": True},
        {"clipnorm": 0.5},
        {"global_clipnorm": 0.5},
    ):
        yield {"class": "SGD", "arguments": {"learning_rate": 0.01, **more}}
    yield {"class": "SGD", "arguments": {"learning_rate": 0.01, "momentum": 0.5, "global_clipnorm": 0.3}}
    for more in ({}, {"rho": 0.7, "epsilon": 1e-3}, {"clipnorm": 0.2}, {"global_clipnorm": 0.2}):
        yield {"class": "RMSprop", "arguments": {"learning_rate": 0.005, **more}}
    yield {
        "class": "RMSprop",
        "arguments": {"learning_rate": [decay[0], {**decay[1], "initial_learning_rate": 0.0078125}]},
    }
    for given in ({"learning_rate": 0.01}, {"learning_rate": 0.01, "beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-3}):
        betas = given.get("beta_1", 0.9), given.get("beta_2", 0.999)
        same = {"lr": given["learning_rate"], "betas": betas, "eps": given.get("epsilon", 1e-7)}
        yield {"class": "Adam", "arguments": given, "from": "torch", "torch": same}
        yield {"class": "AdamW", "arguments": given, "from": "torch", "torch": {**same, "weight_decay": 0.004}}
        strong = {**same, "weight_decay": 0.3}
        yield {"class": "AdamW", "arguments": {**given, "weight_decay": 0.3}, "from": "torch", "torch": strong}


KINDS = {
    "layers": (layer, layer_cases),
    "losses": (loss, loss_cases),
    "metrics": (metric, metric_cases),
    "optimizers": (optimizer, optimizer_cases),
}

if __name__ == "__main__":
    versions = {
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    script = hashlib.sha256(Path(__file__).read_bytes().replace(b"\r\n", b"\n")).hexdigest()  # a test compares
    lines = [f'"script": "{script}"', f'"versions": {json.dumps({**versions, "python": platform.python_version()})}']
    lines.append(f'"problem": {json.dumps(plain(PROBLEM))}')
    for kind, (compute, cases) in KINDS.items():
        rows = []
        for case in cases():
            case = {"from": "keras", **case}
            results = {}
            for dtype in DTYPES:
                keras.config.set_floatx(dtype)
                results[dtype] = compute(case, dtype)
            case.pop("torch", None)
            rows.append(json.dumps(plain(case) | results, allow_nan=False, separators=(",", ":")))
        lines.append(f'"{kind}": [\n' + ",\n".join(rows) + "\n]")
        print(len(rows), kind)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")
    print(f"{FILE.stat().st_size / 1000:.0f} kB")
