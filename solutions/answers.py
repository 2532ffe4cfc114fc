"""What readers may fill into the blanks: {key: right bodies, bodies that are right with other bits, and wrong ones}.

Each is the body of the function, without its first line and its docstring; of a wrong one, with what its message says.
"""

from typing import NamedTuple


class Answers(NamedTuple):
    right: list[str]  # two or more, with the record's bits
    wrong: dict[str, str]  # {a body: what the message must hold}, five or more
    other_bits: list[str] = []  # right, and not to the last bit


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
            "de = error * g\nreturn [value * de for value in row], de": "g = 0.1: de 0.4, yours 0.2",
            "de = 2.0 * error\nreturn [value * de for value in row], de": "g = 0.1: de 0.4, yours 4",
            "de = error * error * error * g\nreturn [value * de for value in row], de": "yours",
            "de = -2.0 * error * g\nreturn [value * de for value in row], de": "g = 0.1: de 0.4, yours -0.4",
            "de = g * error + g * error\nreturn row, de": "g = 0.1: dw",
            "de = g * error + g * error\nreturn [value * error for value in row], de": "g = 0.1: dw",
            "de = 2.0 * float(error) * g\nreturn [value * de for value in row], de": "on registers",
        },
    ),
    "01-subtract": Answers(
        right=[
            'instruction = "fsub"\nreturn arithmetic(instruction, x, y)',
            'return arithmetic("f" + "sub", x, y)',
        ],
        wrong={
            'return arithmetic("fsub", y, x)': "5 - 3: 2, yours -2",
            'return arithmetic("fadd", x, y)': "5 - 3: 2, yours 8",
            'return arithmetic("fdiv", x, y)': "5 - 3: 2, yours 1.66",
            "return x": "5 - 3: 2, yours 5",
            'return arithmetic("sub", x, y)': "raises",
            'arithmetic("fsub", x, y)': "raises",
        },
    ),
    "01-flat": Answers(
        right=["return column + width * row", "start = row * width\nreturn start + column"],
        wrong={
            "return row + width * column": "x[1, 2] of width 3: 5, yours 7",
            "return row + column": "x[1, 2] of width 3: 5, yours 3",
            "return row * width": "x[1, 2] of width 3: 5, yours 3",
            "return row * (width + column)": "yours",
            "return row * width + column + 1": "x[1, 2] of width 3: 5, yours 6",
            "return int(row) * int(width) + int(column)": "on registers",
        },
    ),
    "01-descend": Answers(
        right=["step = learning_rate * slope\nreturn w - step", "return w - slope * learning_rate"],
        wrong={
            "return w + learning_rate * slope": "learning_rate = 0.5: 0, yours 2",
            "return w - slope": "learning_rate = 0.5: 0, yours -1",
            "return learning_rate * slope": "learning_rate = 0.5: 0, yours 1",
            "return w - learning_rate": "learning_rate = 0.5: 0, yours 0.5",
            "return w * (1.0 - learning_rate * slope)": "yours",
            "return float(w) - learning_rate * slope": "on registers",
        },
    ),
    "01-through_relu": Answers(
        right=[
            "return [select(h[k] <= 0.0, 0.0, dot(d, w[k])) for k in range(len(h))]",
            """
slopes = []
for output, row in zip(h, w):
    slope = 0.0
    for dj, weight in zip(d, row):
        slope = slope + dj * weight
    slopes.append(select(output > 0.0, slope, 0.0))
return slopes
""",
        ],
        other_bits=[
            "return [select(h[k] <= 0.0, 0.0, dot(d[::-1], w[k][::-1])) for k in range(len(h))]",
        ],
        wrong={
            "return [dot(d, row) for row in w]": "d = [2.0], h = [1.0, 0.0], w = [[3.0], [5.0]]: [6.0, 0.0], yours [6.0, 10.0]",
            "return [select(output <= 0.0, 0.0, d[0]) for output in h]": "[6.0, 0.0], yours [2.0, 0.0]",
            "return [select(output <= 0.0, 0.0, d[0] * row[0]) for output, row in zip(h, w)]": "that feed",
            "return [0.0 if output <= 0.0 else dot(d, row) for output, row in zip(h, w)]": "in a program",
            "return [select(output <= 0.0, dot(d, row), 0.0) for output, row in zip(h, w)]": "[6.0, 0.0], yours [0.0, 10.0]",
            "return [select(output <= 0.0, 0.0, dot(d, row) / len(d)) for output, row in zip(h, w)]": "that feed",
            "[select(output <= 0.0, 0.0, dot(d, row)) for output, row in zip(h, w)]": "yours None (is there a `return`",
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
            "return dx": "a gradient of shape (10, 4), an input of shape (1, 4): (1, 4), yours (10, 4)",
            'return apply("reduce_sum", dx, axis=0, keepdims=True)': "(3, 4), yours (1, 4)",
            'return apply("reduce_sum", dx, axis=0, keepdims=False)': "(1, 4), yours (4,)",
            'return apply("reduce_mean", dx, axis=0, keepdims=True)': "yours",
            """
for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape)):
    if have != wanted:
        dx = apply("reduce_sum", dx, axis=axis, keepdims=True)
return dx
""": "an input of shape (4,)",
            """
extra = len(dx.spec.shape) - len(shape)
return apply("reduce_sum", dx, axis=tuple(range(extra)), keepdims=False) if extra else dx
""": "(1, 4), yours (10, 4)",
            "return dx.numpy().sum(axis=0, keepdims=True)": "Tensor, yours float64[1, 4]",
        },
    ),
    "03-write_down": Answers(
        right=["records.append((op, inputs, attrs, y))", "records += [(op, inputs, attrs, y)]"],
        wrong={
            "records.append(op)": "after add the ops of the records are",
            "records.append((inputs, op, attrs, y))": "yours",
            "records.insert(0, (op, inputs, attrs, y))": "after multiply, add, exp",
            "records = records + [(op, inputs, attrs, y)]": "'add', yours 'none'",
            "return (op, inputs, attrs, y)": "'add', yours 'none'",
            "records.append((op, inputs, y))": "a record holds",
        },
    ),
    "03-times_back": Answers(
        right=["return dy * other", "return other * dy"],
        wrong={
            "return dy": "3.0, yours 1.0",
            "return other": "yours",
            "return dy + other": "3.0, yours 4.0",
            "return dy / other": "yours",
            "return dy * other * other": "3.0, yours 9.0",
            "dy * other": "None",
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
        wrong={
            "gradients[x] = share": "x gets 2.0 and 2.0: x has: 4, yours 2",
            "gradients[x] = gradients[x] + share": "KeyError",
            "gradients.setdefault(x, share)": "4, yours 2",
            "gradients[x] = share + share": "2, yours 4",
            "gradients = {x: share}": "yours None",
            """
for each in gradients:
    gradients[each] = gradients[each] + share
gradients.setdefault(x, share)
""": "another tensor has: 5, yours 7",
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
needed = set(wanted)
for node in nodes:
    if node in needed:
        needed.update(node.inputs)
return [node for node in nodes if node in needed]
""": "of x, exp, add, mean, wanted mean: left are: 'x add mean', yours 'add mean'",
            """
needed = set(wanted)
for node in reversed(nodes):
    if node in needed:
        needed.update(node.inputs)
return list(reversed([node for node in nodes if node in needed]))
""": "yours",
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
}
