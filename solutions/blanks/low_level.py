"""The blanks of notebook 03."""


def hand_on(gradients, x, share):
    """Give the tensor x its share of a gradient. What x has from other ops already stays: shares are added up."""
    gradients[x] = gradients[x] + share if x in gradients else share


def unbroadcast(dx, shape):
    """dx summed over the axes in which an input of this shape was repeated."""
    extra = len(dx.spec.shape) - len(shape)
    if extra:
        dx = reduce_sum(dx, axis=tuple(range(extra)))
    for axis, (have, wanted) in enumerate(zip(dx.spec.shape, shape, strict=True)):
        if have != wanted:
            dx = reduce_sum(dx, axis=axis, keepdims=True)
    return dx


def needed_by(nodes, wanted):
    """Those of the nodes that these wanted ones need, themselves included, in the same order."""
    needed = set(wanted)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in nodes if node in needed]
