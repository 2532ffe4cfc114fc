"""The blanks of notebook 03."""


def hand_on(gradients, x, share):
    """Give the tensor x its share of a gradient, added to what x has already."""
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
    """The nodes that are wanted, and all that these need, in the order of the list."""
    needed = set(wanted)
    for node in reversed(nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in nodes if node in needed]
