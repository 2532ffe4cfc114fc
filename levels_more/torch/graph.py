"""PyTorch's autograd: each result keeps the records of its own computation, so that a graph is always being recorded.

On level 3 a tape is open in a `with` block. Here each function of a tensor that requires a gradient runs under its own
tape, and the result keeps the records. `backward` joins them in order, and walks back over them as over one tape.
"""

import contextlib
import functools
import itertools
import math

from levels.low_level import Operators, reachable
from levels_more.checks import as_python, expect
from levels_more.compiler.eager.tapes import GradientTape, quickest_walk
from levels_more.low_level.autodiff import leading_to
from levels_more.missing import named_call
from levels_more.torch.grad_mode import enable_grad, recording
from levels_more.torch.storage import Viewing

_NUMBERS = itertools.count()
RENAMED = {"dim": "axis", "keepdim": "keepdims", "other": "y"}  # PyTorch's arguments -> ours


class Node:
    """A node of the graph: the records of one function call, and its inputs as pairs (tensor of `levels`, its node)."""

    def __init__(self, name, records=(), parents=(), leaf=None):
        self.name = name
        self.records = records
        self.parents = parents
        self.number = next(_NUMBERS)  # higher than those of its parents
        self.leaf = leaf  # the recorded tensor, if this is the node of a leaf

    def __repr__(self):
        return f"<{self.name.strip('_').title().replace('_', '')}Backward0>"


def noted(value, parents, records):
    """Return an argument as `levels` takes it. Append its node to `parents`, and to `records` a record, if needed."""
    if isinstance(value, Viewing):
        held = value.named()
        if value.node is not None:
            parents.append((held, value.node))
            if value.node.leaf is None and held is not value.known:  # changed since: hand its gradient to `known`
                records.append(("broadcast_to", (value.known,), {"shape": held.shape}, held))
        return held
    if type(value) in (list, tuple):
        return type(value)(noted(x, parents, records) for x in value)
    return as_python(value)  # NumPy scalars count as Python numbers, as in PyTorch


def _given(result, kind, node):
    """Return a result of `levels` with its tensors as recorded tensors of class `kind`. Only floats get the node."""
    if isinstance(result, list | tuple):
        return getattr(type(result), "_make", type(result))([_given(each, kind, node) for each in result])
    made = isinstance(result, Operators)
    return kind(result, node=node if made and result.dtype.kind == "f" else None) if made else result


class OperandError(RuntimeError, TypeError):
    """Operands of a wrong kind: a RuntimeError, as in PyTorch, and a TypeError, as in `levels`."""


class ShapeError(RuntimeError, ValueError):
    """Operands whose shapes or numbers do not fit: a RuntimeError, as in PyTorch, and a ValueError, as in `levels`."""


def record_function(name, function, kind, view=None):
    """Return a version of a function of `levels` for recorded tensors. It runs under a tape; results keep the records.

    kind: the class of the results. `view(x, *args)`: whether they are views, which share the memory of x, the first
    argument. It raises what the function raises, but a TypeError as OperandError, and a ValueError as ShapeError.
    """

    @functools.wraps(function, updated=())
    def run(*args, inplace=False, **options):
        parents = []
        before = []
        given = [noted(x, parents, before) for x in args]
        how = {key: noted(x, parents, before) for key, x in options.items()}
        with GradientTape() if recording() and parents else contextlib.nullcontext() as tape:
            try:
                result = function(*given, **how)
            except (TypeError, ValueError) as error:
                told = named_call(error, name, function, {ours: theirs for theirs, ours in RENAMED.items()}) or error
                raise (OperandError if isinstance(error, TypeError) else ShapeError)(*told.args) from None
        if args and isinstance(args[0], Viewing) and result is given[0]:
            return args[0]  # the function returned its argument unchanged
        result = _given(result, kind, tape and Node(name, before + tape.records, parents))
        if view and view(*args, **options):
            result.become_view(args[0], lambda x: run(x, *args[1:], **options))
        return args[0].set(result, name) if inplace else result

    run.__name__ = name
    return run


def _history(node):
    """Return this node and its ancestors, each after its parents. Raises RuntimeError if a walk freed the graph."""
    found = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            if node.records is None:
                raise RuntimeError("backward: this graph was walked before; backward(retain_graph=True) keeps it")
            found.add(node)
            waiting += [parent for _, parent in node.parents]
    return sorted(found, key=lambda node: node.number)


_VIEWS = "transpose", "reshape", "broadcast_to", "slice"
_LINEAR = "add", "subtract", "negative", "reduce_sum", "reduce_mean", "broadcast_divide", "spread", "concat", "cast"
_BY_RESULT = "exp", "sqrt", "relu", "sigmoid", "tanh"  # their gradient rules read the result
# the gradient rules of these read no input, so that an input may be modified before the backward pass
_READS_NO_INPUT = {*_VIEWS, *_LINEAR, *_BY_RESULT}


def _check_unmodified(made, records):
    """Raise RuntimeError if a gradient rule reads a leaf of `made`, pairs (tensor, node), that was modified since."""
    changed = {held for held, node in made if node.leaf is not None and node.leaf.named() is not held}
    if not changed:
        return
    needed = reachable([held for held, node in made if node.leaf is not None], records)
    for op, read, _, y in records:
        if op in _VIEWS and read[0] in changed:  # it shares the memory
            changed.add(y)
        for k, x in enumerate(read) if op not in _READS_NO_INPUT else ():
            if x in changed and (len(read) == 1 or not needed.isdisjoint(read[:k] + read[k + 1 :])):
                told = f"backward: a tensor of shape {x.shape} that the gradient of {op} reads was modified since"
                raise RuntimeError(f"{told}, in place or by a step of an optimizer; compute the loss again")


def gradients(target, weight=None, inputs=None, keep=False, create=False):
    """Return pairs (x, its gradient of Σ target·weight), for those inputs, or all leaves, that the target depends on.

    weight: None for a target of one number. `create` records the gradients, too. `keep` and `create` keep the graph for
    another walk. Raises TypeError unless the target is a recorded tensor. Raises RuntimeError if it was not recorded,
    has several numbers and no weight, or was walked before, or if a leaf that a rule reads was modified since.
    """
    expect(isinstance(target, Viewing), "backward: the loss", target, "a tensor")
    if target.node is None or weight is None and math.prod(target.shape) != 1:
        why = f"its shape is {target.shape}" if target.node else "it was made from nothing that requires_grad"
        raise RuntimeError(f"backward: {why}; expected one recorded number, or a gradient in the tensor's shape")
    if weight is not None:
        with enable_grad():
            target = (target * weight).sum()
    nodes, last = _history(target.node), target.named()
    made = [(last, target.node), *(pair for node in nodes for pair in node.parents)]
    records = [record for node in nodes for record in node.records]
    _check_unmodified(made, records)
    leaves = {held: node.leaf for held, node in made if node.leaf is not None}
    if inputs is not None:
        wanted = {x.known: x for x in inputs if x.node and x.node.leaf is None}
        leaves = {held: x for held, x in leaves.items() if any(x is y for y in inputs)} | wanted
    used = leading_to(records, last)
    sources = [held for held in leaves if held in used]
    with GradientTape() if create else contextlib.nullcontext() as tape:
        found = quickest_walk(records, last, sources)
    for node in () if keep or create else nodes:
        node.records = None if node.leaf is None else ()
    node = Node("backward_pass", tape.records, [(last, target.node)]) if create else None
    return [(leaves[held], leaves[held].of(dx, node)) for held, dx in zip(sources, found, strict=True)]


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False):
    """Return the gradients of one number, or of Σ outputs·grad_outputs: a tuple with the shapes of the inputs.

    `create_graph` records them as well, for second derivatives. Raises what `gradients` raises, and RuntimeError for
    an input on which the outputs do not depend, unless `allow_unused` is set: then its gradient is None.
    """
    inputs = [*inputs] if isinstance(inputs, list | tuple) else [inputs]
    found = {}
    for x, dx in gradients(outputs, grad_outputs, inputs, bool(retain_graph), create_graph):
        found[x] = found[x] + dx if x in found else dx
    if len(found) < len({*inputs}) and not allow_unused:
        raise RuntimeError("grad: an input had no part in the output; allow_unused=True gives None for it")
    return tuple(found.get(x) for x in inputs)
