"""A tensor that remembers what it was made from, so that a graph is always being recorded: PyTorch's way.

On level 3 a tape is open in a `with` block. Here every function runs under a tape of its own, and its result keeps what
that tape wrote down. `backward` puts the pieces one behind the other, and walks back over them as over any tape.
"""

import contextlib
import functools
import itertools
import math
import threading

from levels.low_level import VJPS, GradientTape, Operators, made_from, quickest_walk
from levels_more.checks import as_python, expect
from levels_more.torch.storage import Viewing


class _Recording(threading.local):
    on = True


_RECORDING = _Recording()


class set_grad_enabled:
    """From now on, or in this `with` block, results of this thread remember what they were made from, or do not."""

    def __init__(self, on):
        self.before, _RECORDING.on = _RECORDING.on, bool(on)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _RECORDING.on = self.before


@contextlib.contextmanager
def _grad_mode(on):
    with set_grad_enabled(on):
        yield


def grad_mode(on, function=None):
    """The same in a `with` block, or in each call of the function that it decorates."""
    return _grad_mode(on) if function is None else _grad_mode(on)(function)


def recording():
    """Whether results of this thread remember now what they were made from."""
    return _RECORDING.on


_NUMBERS = itertools.count()


class Node:
    """What a tape wrote down while one function ran, and what that was called with: pairs (numbers, its node)."""

    def __init__(self, name, records=(), parents=(), leaf=None):
        self.name, self.records, self.parents = name, records, parents
        self.number = next(_NUMBERS)  # a node is younger than those that it was made from
        self.leaf = leaf  # the tensor whose numbers begin here

    def __repr__(self):
        return f"<{self.name.strip('_').title().replace('_', '')}Backward0>"


def noted(value, parents, records):
    """An argument as `levels` takes it; that it was recorded is noted, and that its numbers were changed since."""
    if isinstance(value, Viewing):
        held = value.named()
        if value.node is not None:
            parents.append((held, value.node))
            if value.node.leaf is None and held is not value.known:
                records.append(("broadcast_to", (value.known,), {"shape": held.shape}, held))
        return held
    if type(value) in (list, tuple):
        return type(value)(noted(x, parents, records) for x in value)
    return as_python(value)  # of NumPy a number is one of Python, as in PyTorch


def _given(result, kind, node):
    """What `levels` returns, as recorded tensors. Only floats remember."""
    if isinstance(result, list | tuple):
        return getattr(type(result), "_make", type(result))([_given(each, kind, node) for each in result])
    made = isinstance(result, Operators)
    return kind(result, node=node if made and result.dtype.kind == "f" else None) if made else result


class OperandError(RuntimeError, TypeError):
    """Operands that a function does not take: PyTorch's RuntimeError, and the TypeError of `levels`."""


class ShapeError(RuntimeError, ValueError):
    """Operands of shapes, or with numbers, that do not fit: a RuntimeError for PyTorch's readers, as well."""


def record_function(name, function, kind, view=None):
    """A function of `levels`, for recorded tensors: it runs under a tape, whose lines its results, of that kind, keep.

    `view(x, *args)` says whether they are views of the first argument, which look at the same memory. Raises what
    the function raises, a TypeError as OperandError, a ValueError as ShapeError.
    """

    @functools.wraps(function, updated=())
    def run(*args, out=None, inplace=False, **options):
        parents, before = [], []
        given = [noted(x, parents, before) for x in args]
        how = {key: noted(x, parents, before) for key, x in options.items()}
        with GradientTape() if _RECORDING.on and parents else contextlib.nullcontext() as tape:
            try:
                result = function(*given, **how)
            except (TypeError, ValueError) as error:
                raise (OperandError if isinstance(error, TypeError) else ShapeError)(*error.args) from None
        if args and isinstance(args[0], Viewing) and result is given[0]:
            return args[0]  # nothing was to be done
        result = _given(result, kind, tape and Node(name, before + tape.records, parents))
        if view and view(*args, **options):
            if isinstance(result, Viewing):
                result.look_through(args[0], lambda x: run(x, *args[1:], **options))
            for k, part in enumerate(result if isinstance(result, tuple) else ()):
                part.look_through(args[0], lambda x, k=k: run(x, *args[1:], **options)[k])
        out = args[0] if inplace else out
        return result if out is None else out.set(result, name)

    run.__name__ = name
    return run


def _history(node):
    """All nodes behind this one, each after those that it was made from."""
    found, waiting = set(), [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            if node.records is None:
                raise RuntimeError("backward: this graph was walked before; backward(retain_graph=True) keeps it")
            found.add(node)
            waiting += [parent for _, parent in node.parents]
    return sorted(found, key=lambda node: node.number)


# ops whose rules read no input, so that a backward pass does not mind what it holds by then
_READS_NO_INPUT = {
    *("add", "subtract", "negative", "reduce_sum", "reduce_mean", "spread", "broadcast_to", "reshape", "transpose"),
    *("concat", "slice", "cast", "exp", "sqrt", "relu", "sigmoid", "tanh"),
}
_VIEWS = "transpose", "reshape", "broadcast_to", "slice"


def _check_unmodified(made, records):
    """Raise RuntimeError where a leaf, one of these pairs (numbers, node), was modified since a rule is to read it."""
    changed = {held for held, node in made if node.leaf is not None and node.leaf.named() is not held}
    if not changed:
        return
    needed = made_from([held for held, node in made if node.leaf is not None], records)
    for op, read, _, y in records:
        if op in _VIEWS and read[0] in changed:  # it looks at the same memory
            changed.add(y)
        for k, x in enumerate(read) if op not in _READS_NO_INPUT else ():
            if x in changed and (len(read) == 1 or not needed.isdisjoint(read[:k] + read[k + 1 :])):
                told = f"backward: a tensor of shape {x.shape} that the gradient of {op} reads was modified since"
                raise RuntimeError(f"{told}, in place or by a step of an optimizer; compute the loss anew")


def gradients(target, weight=None, inputs=None, keep=False, create=False):
    """Pairs (x, its gradient), for these inputs or the leaves, of Σ target·weight; None for one number.

    With `create` they remember as well. Raises RuntimeError where nothing was recorded, or the graph is walked a second
    time, or there are several numbers without weights, TypeError for what is no recorded tensor.
    """
    expect(isinstance(target, Viewing), "backward: the loss", target, "a tensor")
    if target.node is None or weight is None and math.prod(target.shape) != 1:
        why = f"its shape is {target.shape}" if target.node else "it was made from nothing that requires_grad"
        raise RuntimeError(f"backward: {why}; expected one recorded number, or a gradient in the tensor's shape")
    if weight is not None:
        with set_grad_enabled(True):
            target = (target * weight).sum()
    nodes, last = _history(target.node), target.named()
    made = [(last, target.node), *(pair for node in nodes for pair in node.parents)]
    _check_unmodified(made, [record for node in nodes for record in node.records])
    leaves = {held: node.leaf for held, node in made if node.leaf is not None}
    if inputs is not None:
        wanted = {x.known: x for x in inputs if x.node and x.node.leaf is None}
        leaves = {held: x for held, x in leaves.items() if any(x is y for y in inputs)} | wanted
    records, used = [record for node in nodes for record in node.records], {last}
    for op, read, _, y in reversed(records):
        if y in used:
            rules = VJPS.get(op, itertools.repeat(True))
            used.update(x for x, rule in zip(read, rules, strict=False) if rule)
    sources = [held for held in leaves if held in used]
    with GradientTape() if create else contextlib.nullcontext() as tape:
        found = quickest_walk(records, last, sources)
    for node in () if keep or create else nodes:
        node.records = None if node.leaf is None else ()
    node = Node("walk_back", tape.records, [(last, target.node)]) if create else None
    return [(leaves[held], leaves[held].of(dx, node)) for held, dx in zip(sources, found, strict=True)]


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """The gradients of one number, or of Σ outputs·grad_outputs: a tuple in the shapes of the inputs.

    With `create_graph` they remember as well, for gradients of their own. Raises what `gradients` raises,
    and RuntimeError for an input that had no part, unless `allow_unused` gives None for it.
    """
    inputs = [*inputs] if isinstance(inputs, list | tuple) else [inputs]
    found = {}
    for x, dx in gradients(outputs, grad_outputs, inputs, bool(retain_graph), create_graph):
        found[x] = found[x] + dx if x in found else dx
    if len(found) < len({*inputs}) and not allow_unused:
        raise RuntimeError("grad: an input had no part in the output; allow_unused=True gives None for it")
    return tuple(found.get(x) for x in inputs)
