"""The logits that Keras keeps: from what a sigmoid or softmax gave, a cross-entropy takes its input back.

So a model that is certain and wrong has a large loss, with a slope. The logits belong to the tensor that an activation
of a layer gave ("sigmoid", "softmax"), and a tensor made from it has none. In a traced function, as in `fit`, they also
belong to the result of `tf.nn.sigmoid` and `tf.nn.softmax`, for the loss that fits. The result of a `tf.function` has
none. (Keras 3.15.1 on TensorFlow 2.21.0.)
"""

import weakref

from levels.low_level import Symbol, Tensor
from levels_more.low_level import nn

_KEPT = {}  # id of a tensor -> (a weak reference to it, its logits or None)


def keep(y, logits):
    """Note which logits belong to a tensor. Return the tensor."""
    key = id(y)
    _KEPT[key] = weakref.ref(y, lambda _: _KEPT.pop(key, None)), logits
    return y


def without(result):
    """Note that no logits belong to a tensor, or to those in a list, tuple or dict. Return what was given."""
    for part in result.values() if isinstance(result, dict) else result if isinstance(result, list | tuple) else ():
        without(part)
    return keep(result, None) if isinstance(result, Tensor) else result


def bend(activation, logits):
    """Return activation(logits). For the activations that Keras calls sigmoid and softmax, keep the logits."""
    y = activation(logits)
    return keep(y, logits) if activation is nn.sigmoid or activation is nn.softmax else y


def logits_of(y, op):
    """Return the logits that belong to a tensor, or None. `op`: the op that counts in a traced function."""
    if id(y) in _KEPT:
        return _KEPT[id(y)][1]
    return Symbol(y.trace, y.node.inputs[0]) if type(y) is Symbol and y.node.op == op else None
