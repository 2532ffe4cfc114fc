"""What readers may fill into the blanks: {key: right bodies, bodies that are right and do not go on, and wrong ones}.

Each is the body of the function, without its first line and its docstring; of a wrong one, with what its message says.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

MOST = Path(__file__).parent / "at_most"
LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"


class Answers(NamedTuple):
    right: list[str]  # two or more, right to the last bit
    wrong: dict[str, str]  # {a body: what the message must hold}, five or more
    other_bits: list[str] = []  # right, but not to the last bit, or not for what comes later


ANSWERS = {
    "01-line_slopes": Answers(
        right=[
            """
de = 2.0 * (g * error)
return [de * value for value in row], de
""",
            """
de = error * g + error * g
dw = []
for value in row:
    dw.append(value * de)
return dw, de
""",
        ],
        other_bits=["return [value * error * 2.0 * g for value in row], 2.0 * error * g"],
        wrong={
            "de = error * g\nreturn [value * de for value in row], de": "g = 0.1: de: expected 0.4, yours is 0.2",
            "de = 2.0 * error\nreturn [value * de for value in row], de": "g = 0.1: de: expected 0.4, yours is 4",
            "de = error * error * error * g\nreturn [value * de for value in row], de": "yours",
            "de = -2.0 * error * g\nreturn [value * de for value in row], de": "g = 0.1: de: expected 0.4, yours is -0.4",
            "de = g * error + g * error\nreturn row, de": "g = 0.1: dw",
            "de = g * error + g * error\nreturn [value * error for value in row], de": "g = 0.1: dw",
            "de = 2.0 * float(error) * g\nreturn [value * de for value in row], de": "on registers",
            "import numpy as np\nde = 2.0 * g * error\nreturn np.array(row) * de, de": "gives float64[2] first; expected a list with one number",
            "de = 2.0 * g * error\nreturn [value * de for value in row] + [de]": "gives one list; expected two things: a list with the slopes of the weights, and `de`",
            "de = 2.0 * g * error\n[value * de for value in row], de": "gives None: is there a `return` in every case?",
        },
    ),
    "01-subtract": Answers(
        right=[
            'instruction = "fsub"\nreturn arithmetic(instruction, x, y)',
            'return arithmetic("f" + "sub", x, y)',
        ],
        other_bits=[
            'return Register(f"fsub double {x.name}, {y.name}")',
            'return Register("fsub double " + x.name + ", " + y.name)',
        ],
        wrong={
            'return arithmetic("fsub", y, x)': "5 - 3: expected 2, yours is -2",
            'return arithmetic("fadd", x, y)': "5 - 3: expected 2, yours is 8",
            'return arithmetic("fdiv", x, y)': "5 - 3: expected 2, yours is 1.66",
            "return x": "5 - 3: expected 2, yours is 5",
            'return Register(f"fsub double {y.name}, {x.name}")': "5 - 3: expected 2, yours is -2",
            'return Register(f"fsub {x.name}, {y.name}")': "is not an instruction on x and y; such an instruction reads `fadd double %x, %y`",
            'return Value(x.a, x.a.write(f"fsub double {x.register}, {y.register}"))': "a register has no `a`",
            "return x - y": "raises",
            'return arithmetic("sub", x, y)': "LLVM has no instruction 'sub' for two floats",
            'arithmetic("fsub", x, y)': "5 - 3: expected 2, yours is None",
        },
    ),
    "01-flat": Answers(
        right=["return column + width * row", "start = row * width\nreturn start + column"],
        wrong={
            "return row + width * column": "x[1, 2] of width 3: expected 5, yours is 7",
            "return row + column": "x[1, 2] of width 3: expected 5, yours is 3",
            "return row * width": "x[1, 2] of width 3: expected 5, yours is 3",
            "return row * (width + column)": "yours",
            "return row * width + column + 1": "x[1, 2] of width 3: expected 5, yours is 6",
            "return int(row) * int(width) + int(column)": "on registers",
        },
    ),
    "01-descend": Answers(
        right=["step = learning_rate * slope\nreturn w - step", "return w - slope * learning_rate"],
        wrong={
            "return w + learning_rate * slope": "learning_rate = 0.5: expected 0, yours is 2",
            "return w - slope": "learning_rate = 0.5: expected 0, yours is -1",
            "return learning_rate * slope": "learning_rate = 0.5: expected 0, yours is 1",
            "return w - learning_rate": "learning_rate = 0.5: expected 0, yours is 0.5",
            "return w * (1.0 - learning_rate * slope)": "yours",
            "return float(w) - learning_rate * slope": "on registers",
        },
    ),
    "01-through_relu": Answers(
        right=[
            "return [select(h[k] <= 0.0, 0.0, dot(d, w[k])) for k in range(len(h))]",
            "return [select(output == 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]",
            """
slopes = []
for output, row in zip(h, w):
    slope = 0.0
    for dj, weight in zip(d, row):
        slope = slope + dj * weight
    slopes.append(select(output <= 0.0, 0.0, slope))
return slopes
""",
        ],
        other_bits=[
            "return [select(h[k] <= 0.0, 0.0, dot(d[::-1], w[k][::-1])) for k in range(len(h))]",
        ],
        wrong={
            "return [dot(d, row) for row in w]": "d = [2.0], h = [1.0, 0.0], w = [[3.0], [5.0]]: expected [6.0, 0.0], yours is [6.0, 10.0]",
            "return [select(output <= 0.0, 0.0, d[0]) for output in h]": "[6.0, 0.0], yours is [2.0, 0.0]",
            "return [select(output <= 0.0, 0.0, d[0] * row[0]) for output, row in zip(h, w)]": "that feed",
            "return [0.0 if output <= 0.0 else dot(d, row) for output, row in zip(h, w)]": "in a program",
            "return [select(output <= 0.0, dot(d, row), 0.0) for output, row in zip(h, w)]": "[6.0, 0.0], yours is [0.0, 10.0]",
            "return [select(output <= 0.0, 0.0, dot(d, row) / len(d)) for output, row in zip(h, w)]": "that feed",
            "[select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]": "yours is None (is there a `return`",
        },
    ),
    "02-planned": Answers(
        right=[
            """
key = _key_of(op, reads, attrs)
found = PLANS.get(key)
if found is None:
    found = PLANS[key] = plan(op, reads, attrs)
return found
""",
            """
try:
    return PLANS[_key_of(op, reads, attrs)]
except KeyError:
    return PLANS.setdefault(_key_of(op, reads, attrs), plan(op, reads, attrs))
""",
        ],
        wrong={
            """
key = _key_of(op, reads, {})
return PLANS.get(key) or PLANS.setdefault(key, plan(op, reads, attrs))
""": "one op over axis 0, over axis 1, over axis 0: plans made: expected 2, yours is 1",
            """
key = (op, *(read.shape for read in reads))
return PLANS.get(key) or PLANS.setdefault(key, plan(op, reads, attrs))
""": "one shape in float64, in float32, in float64: plans made: expected 2, yours is 1",
            """
key = _key_of(op, reads, attrs)
if key not in PLANS:
    PLANS[key] = plan(op, reads, attrs)
""": 'two launches of "add" on one Spec gives None: is there a `return` in every case?',
            "return plan(op, reads, attrs)": 'two launches of "add" on one Spec: plans made: expected 1, yours is 2',
            """
key = _key_of(op, reads, attrs)
found = PLANS.get(key)
if found is None:
    found = plan(op, reads, attrs)
return found
""": "plans made: expected 1, yours is 2",
            "return PLANS[_key_of(op, reads, attrs)]": "raises KeyError",
            """
if op not in PLANS:
    PLANS[op] = plan(op, reads, attrs)
return PLANS[op]
""": "two Specs: plans made: expected 2, yours is 1",
        },
    ),
    "02-relu_grad": Answers(
        right=["return select(y <= 0.0, 0.0 * 1.0, dy)", "cut = y <= 0.0\nreturn select(cut, 0.0, dy)"],
        other_bits=["return select(y <= 0.0, -0.0, dy)", "return 0.0 if y <= 0.0 else dy"],
        wrong={
            "return dy": "dy = 3, y = 0: expected 0, yours is 3",
            "return select(y < 0.0, 0.0, dy)": "dy = 3, y = 0: expected 0, yours is 3",
            "return select(y <= 0.0, dy, 0.0)": "dy = 3, y = 0: expected 0, yours is 3",
            "return select(dy <= 0.0, 0.0, dy)": "dy = 3, y = 0: expected 0, yours is 3",
            "return select(y > 0.0, dy, 0.0)": "dy = 3, y = nan: expected 3, yours is 0",
            "return select(y <= 0.0, 0.0, 1.0)": "dy = 3, y = 2: expected 3, yours is 1",
            "return dy * select(y <= 0.0, 0.0, 1.0)": "dy = nan, y = 0: expected 0, yours is nan",
        },
    ),
    "02-matmul_ikj": Answers(
        right=[
            """
out[:] = 0.0
for i in range(out.shape[0]):
    for k in range(x.shape[1]):
        factor = x[i, k]
        for j in range(out.shape[1]):
            out[i, j] += factor * w[k, j]
""",
            """
out[:] = 0.0
for i in range(len(x)):
    for k in range(len(w)):
        out[i] += x[i, k] * w[k]
""",
            """
for i in range(out.shape[0]):
    for j in range(out.shape[1]):
        out[i, j] = 0.0
    for k in range(x.shape[1]):
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] + x[i, k] * w[k, j]
""",
        ],
        other_bits=[
            """
out[:] = 0.0
for i in range(out.shape[0]):
    for k in range(x.shape[1] - 1, -1, -1):
        for j in range(out.shape[1]):
            out[i, j] += x[i, k] * w[k, j]
"""
        ],
        wrong={
            """
for i in range(out.shape[0]):
    for k in range(x.shape[1]):
        for j in range(out.shape[1]):
            out[i, j] += x[i, k] * w[k, j]
""": "and out holds a 4: at [0, 0]: expected 11, yours is 15",
            """
out[:] = 0.0
for i in range(out.shape[0]):
    for k in range(x.shape[1]):
        for j in range(out.shape[1]):
            out[i, j] = x[i, k] * w[k, j]
""": "11, yours is 8",
            """
out[:] = 0.0
for i in range(out.shape[0]):
    for k in range(out.shape[1]):
        for j in range(out.shape[1]):
            out[i, j] += x[i, k] * w[k, j]
""": "11, yours is 3",
            """
out[:] = 0.0
for i in range(out.shape[0]):
    for k in range(x.shape[1]):
        for j in range(out.shape[1]):
            out[i, j] += x[i, k] * w[j, k]
""": "raises IndexError",
            "out = x @ w": "`out` was not changed: write into it, as in `out[i, j] = …`; `out = …` binds the name anew",
            """
for i in range(out.shape[0]):
    for j in range(out.shape[1]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k] * w[k, j]
        out[i, j] = total
""": "its loops are in another order: of the six numbers of an x of shape (2, 3) it reads 0, 1, 2, 0, 1, 2, 3, 4, …",
            """
out[:] = 0.0
for k in range(x.shape[1]):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += x[i, k] * w[k, j]
""": "it reads 0, 3, 1, 4, 2, 5, …",
            """
for i in range(out.shape[0]):
    for k in range(x.shape[1]):
        for j in range(out.shape[1]):
            if k == 0:
                out[i, j] = 0.0
            out[i, j] += x[i, k] * w[k, j]
""": "x of shape (2, 0) @ w of shape (0, 2), and out holds NaN; float64 numbers, drawn: at [0, 0]: expected 0, yours is nan",
        },
    ),
    "03-unbroadcast": Answers(
        right=[
            """
while len(dx.spec.shape) > len(shape):
    dx = apply("reduce_sum", dx, axis=0, keepdims=False)
for axis, size in enumerate(shape):
    if size < dx.spec.shape[axis]:
        dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
return dx
""",
            """
extra = len(dx.spec.shape) - len(shape)
if extra > 0:
    dx = apply("reduce_sum", dx, axis=tuple(range(extra)), keepdims=False)
for axis in range(len(shape)):
    if shape[axis] == 1 and dx.spec.shape[axis] != 1:
        dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
return dx
""",
        ],
        wrong={
            "return dx": "a gradient of shape (10, 4), an input of shape (1, 4): expected the shape (1, 4), yours is (10, 4)",
            'return apply("reduce_sum", dx, axis=0, keepdims=True)': "expected the shape (3, 4), yours is (1, 4)",
            'return apply("reduce_sum", dx, axis=0, keepdims=False)': "expected the shape (1, 4), yours is (4,)",
            """
for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape)):
    if have != wanted:
        dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
return dx
""": "an input of shape (4,)",
            """
extra = len(dx.spec.shape) - len(shape)
if extra:
    dx = reduce_sum(dx, axis=tuple(range(extra)))
for axis, size in enumerate(shape):
    if size == 1:
        dx = reduce_sum(dx, axis=axis, keepdims=True)
return dx
""": "(3, 1), an input of shape (1, 1): ops that add nothing up: expected 0, yours is 1",
            "return dx.numpy().sum(axis=0, keepdims=True)": "Tensor, yours is float64[1, 4]",
            """
import numpy as np
array = dx.numpy()
extra = array.ndim - len(shape)
axes = [k for k in range(array.ndim) if k < extra or array.shape[k] != shape[k - extra]]
return constant(array.sum(axis=tuple(axes)).reshape(shape)) if axes else dx
""": "was computed without ops, so no tape recorded it",
            """
extra = len(dx.spec.shape) - len(shape)
if extra:
    dx = reduce_sum(dx, axis=tuple(range(extra)))
axes = [k for k, size in enumerate(shape) if size != dx.spec.shape[k]]
return reduce_sum(dx, axis=tuple(axes), keepdims=True) if axes else dx
""": "(1, 3, 1): `reduce_sum` takes neighbouring axes; sum one axis after the other",
            """
extra = len(dx.spec.shape) - len(shape)
if extra:
    dx = reduce_sum(dx, axis=tuple(range(extra)))
for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape)):
    if have != wanted:
        dx = reduce_sum(dx, axis=axis, keepdims=True)
""": "a gradient of shape (10, 4), an input of shape (1, 4): expected Tensor, yours is None (is there a `return` in every case?)",
        },
    ),
    "03-hand_on": Answers(
        right=[
            """
if x in gradients:
    share = gradients[x] + share
gradients[x] = share
""",
            "gradients[x] = share if x not in gradients else gradients[x] + share",
        ],
        other_bits=["gradients[x] = gradients.get(x, 0.0) + share"],
        wrong={
            "gradients[x] = share": "x gets 2.0 and 2.0: expected 4, yours is 2",
            "gradients[x] = gradients[x] + share": "KeyError",
            "gradients.setdefault(x, share)": "4, yours is 2",
            """
if gradients.get(x):
    share = gradients[x] + share
gradients[x] = share
""": "two shares of two numbers each raises ValueError: a tensor of shape (2,) is not one number",
            "gradients[x] = share + share": "2, yours is 4",
            """
if x in gradients:
    share = constant(gradients[x].numpy() + share.numpy())
gradients[x] = share
""": "x gets 2.0 and 2.0: this was computed without ops, so no tape recorded it",
            "gradients = {x: share}": "x gets 2.0: expected 2, yours is 'no gradient'",
            """
for each in gradients:
    gradients[each] = gradients[each] + share
gradients.setdefault(x, share)
""": "another tensor: expected 5, yours is 7",
        },
    ),
    "03-needed_by": Answers(
        right=[
            """
seen, waiting = set(), list(wanted)
while waiting:
    node = waiting.pop()
    if node not in seen:
        seen.add(node)
        waiting.extend(node.inputs)
return [node for node in nodes if node in seen]
""",
            """
keep = list(wanted)
for node in nodes[::-1]:
    if node in keep:
        keep.extend(node.inputs)
return [node for node in nodes if node in keep]
""",
        ],
        wrong={
            "return nodes": "yours",
            "return [node for node in nodes if node in wanted]": "yours",
            """
needed = set()

def visit(node):
    if node not in needed:
        needed.add(node)
        for each in node.inputs:
            visit(each)

for node in wanted:
    visit(node)
return [node for node in nodes if node in needed]
""": "of x and 2,000 nodes, each the sum of the one before it and itself",
            """
for node in reversed(nodes):
    if node in wanted:
        wanted.extend(node.inputs)
return [node for node in nodes if node in wanted]
""": "the call changes its argument `wanted`: work on a copy",
            """
needed = set(wanted)
for node in reversed(nodes):
    if node in needed:
        needed.update(node.inputs)
for node in [*nodes]:
    if node not in needed:
        nodes.remove(node)
return nodes
""": "the call changes its argument `nodes`: work on a copy",
            """
needed = set(wanted)
for node in nodes:
    if node in needed:
        needed.update(node.inputs)
return [node for node in nodes if node in needed]
""": "of x, exp, add, mean, wanted mean: expected 'x add mean', yours is 'add mean'",
            """
needed = set(wanted)
for node in reversed(nodes):
    if node in needed:
        needed.update(node.inputs)
return needed
""": "expected a list of nodes",
            "return [node for node in nodes if node.inputs or node in wanted]": "yours",
        },
    ),
    "04-affine": Answers(
        right=["return bias + x @ kernel", "product = x @ kernel\nreturn product + bias"],
        wrong={
            "return x @ kernel": "at [0, 0]: expected 3.5, yours is 3",
            "return x * kernel + bias": "raises",
            "return kernel @ x + bias": "raises",
            "return x @ (kernel + bias)": "3.5, yours is 4.5",
            "return x @ kernel - bias": "3.5, yours is 2.5",
            "return x @ kernel + bias[0, 0]": "at [0, 1]",
            "import numpy as np\nreturn np.dot(x, kernel) + bias": "variables: its numbers are right, but `x` gets no gradient",
        },
    ),
    "04-squared_error": Answers(
        right=["error = y_true - y_pred\nreturn error * error", "return (y_pred - y_true) * (y_pred - y_true)"],
        other_bits=["return y_pred * y_pred - 2.0 * y_pred * y_true + y_true * y_true"],
        wrong={
            "return y_pred - y_true": "truth [1, 2], guess [1.5, 4]: at [0]: expected 0.25, yours is 0.5",
            "error = y_pred - y_true\nreturn (error * error) / 2.0": "0.25, yours is 0.125",
            "return y_pred * y_pred - y_true * y_true": "0.25, yours is 1.25",
            "error = y_pred + y_true\nreturn error * error": "0.25, yours is 6.25",
            "error = y_pred - y_true\nreturn (error * error).mean()": "yours",
            "import numpy as np\nreturn np.square(y_pred - y_true)": "raises TypeError: np.square takes arrays and got a Tensor: write x * x",
            "return abs(y_pred - y_true)": "0.25, yours is 0.5",
        },
    ),
    "04-cross_entropy": Answers(
        right=[
            "return -((1.0 - y_true) * log(1.0 - p) + y_true * log(p))",
            "right, wrong = y_true * log(p), (1.0 - y_true) * log(1.0 - p)\nreturn -(right + wrong)",
        ],
        other_bits=["return 0.0 - y_true * log(p) / 3.0 * 3.0 - (1.0 - y_true) * log(1.0 - p)"],
        wrong={
            "return y_true * log(p) + (1.0 - y_true) * log(1.0 - p)": "truth 1, p = 0.9: at [0, 0]: expected 0.105361, yours is -0.105361",
            "return -(y_true * log(p))": "truth 0, p = 0.9",
            "return -log(p)": "truth 0, p = 0.9",
            "import numpy as np\nreturn -np.log(p)": "raises TypeError: np.log takes arrays and got a Tensor: write log(x)",
            "return -(y_true * log(1.0 - p) + (1.0 - y_true) * log(p))": "0.105361, yours is 2.30259",
            "return -(log(p) + log(1.0 - p))": "truth 1, p = 0.9",
            "return -(y_true * p + (1.0 - y_true) * (1.0 - p))": "0.105361, yours is -0.9",
            "return -log(p) if float(y_true) else -log(1.0 - p)": "20 drawn rows, float64 raises",
        },
    ),
    "04-descend": Answers(
        right=["return w - dw * rate", "step = rate * dw\nreturn w - step"],
        other_bits=["w -= rate * dw\nreturn w"],
        wrong={
            "return w + rate * dw": "rate = 0.5, dw = 2, w = 1: expected 0, yours is 2",
            "return w - dw": "0, yours is -1",
            "return rate * dw": "0, yours is 1",
            "return w - rate": "0, yours is 0.5",
            "w = w - rate * dw": "yours is None",
            "return dw - rate * w": "0, yours is 1.5",
        },
    ),
    "05-epoch_loss": Answers(
        right=[
            "return dot(losses, rows) / sum(rows)",
            "return float(sum(loss * n for loss, n in zip(losses, rows))) / sum(rows)",
            """
total = 0.0
for k in range(len(rows)):
    total += float(losses[k]) * rows[k]
return total / float(sum(rows))
""",
        ],
        other_bits=[
            "return sum(loss / sum(rows) * n for loss, n in zip(losses.tolist(), rows))",
            "return float((losses * rows).sum()) / sum(rows)",
            "return dot(losses[::-1].tolist(), rows[::-1]) / sum(rows)",
        ],
        wrong={
            "return float(np.mean(losses))": "losses [1, 4] over 30 and 10 rows: expected 1.75, yours is 2.5",
            "return float(np.dot(losses, rows))": "1.75, yours is 70",
            "return float(losses[-1])": "1.75, yours is 4",
            "return float(np.dot(losses, rows)) / len(rows)": "1.75, yours is 35",
            "return float(np.sum(losses)) / sum(rows)": "1.75, yours is 0.125",
            "return float(np.dot(losses, rows)) / max(rows)": "1.75, yours is 2.33333",
        },
    ),
    "05-run_epochs": Answers(
        right=[
            """
for epoch in range(epochs):
    tell("on_epoch_begin", epoch)
    logs = one_pass()
    tell("on_epoch_end", epoch, logs)
    if ended(epoch, logs):
        return
""",
            """
epoch, going = 0, True
while going and epoch < epochs:
    tell("on_epoch_begin", epoch)
    logs = one_pass()
    tell("on_epoch_end", epoch, logs)
    going = not ended(epoch, logs)
    epoch += 1
""",
        ],
        wrong={
            """
for epoch in range(epochs):
    one_pass()
""": "2 epochs: what is heard:",
            """
for epoch in range(1, epochs + 1):
    tell("on_epoch_begin", epoch)
    logs = one_pass()
    tell("on_epoch_end", epoch, logs)
    if ended(epoch, logs):
        break
""": "yours is 'on_epoch_begin 1",
            """
for epoch in range(epochs):
    tell("on_epoch_begin", epoch)
    logs = one_pass()
    tell("on_epoch_end", epoch, logs)
    ended(epoch, logs)
""": "5 epochs, ended after epoch 1: what is heard:",
            """
for epoch in range(epochs):
    tell("on_epoch_begin", epoch)
    logs = one_pass()
    if ended(epoch, logs):
        break
    tell("on_epoch_end", epoch, logs)
""": "2 epochs: what is heard:",
            """
for epoch in range(epochs):
    tell("on_epoch_begin", epoch)
    tell("on_epoch_end", epoch, one_pass())
    if ended(epoch, one_pass()):
        break
""": "2 epochs: what is heard:",
        },
    ),
    "05-ended": Answers(
        right=[
            """
if model.stop_training:
    return True
return not math.isfinite(logs["loss"])
""",
            """
loss = logs["loss"]
lost = loss != loss or abs(loss) == math.inf
return lost or model.stop_training
""",
        ],
        wrong={
            "return model.stop_training": "stop_training False, a loss of inf: expected True, yours is False",
            "return False": "stop_training False, a loss of inf",
            "return not math.isfinite(logs['loss'])": "stop_training True, a loss of 7.0: expected True, yours is False",
            "return model.stop_training and not math.isfinite(logs['loss'])": "stop_training False, a loss of inf",
            "return model.stop_training or math.isfinite(logs['loss'])": "stop_training False, a loss of 7.0",
            "return model.stop_training or math.isnan(logs['loss'])": "stop_training False, a loss of inf",
            """
if not model.stop_training and not math.isfinite(logs["loss"]):
    raise FloatingPointError("lost")
return model.stop_training
""": "raises FloatingPointError",
        },
    ),
}


def at_most() -> dict[str, Answers]:
    """The answers to what is a blank at the depth *most* only, which stand beside its hints."""
    found = {}
    for number, level in enumerate(LEVELS, 1):
        said = tomllib.loads((MOST / f"{level}.toml").read_text(encoding="utf-8"))
        for key, each in said.items():
            wrong = {answer["body"]: answer["says"] for answer in each["wrong"]}
            found[f"{number:02}-{key}"] = Answers(each["right"], wrong, each.get("other_bits", []))
    return found


ANSWERS |= at_most()
