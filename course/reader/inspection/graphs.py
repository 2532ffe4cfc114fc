"""A graph as a program text: a line for each op."""


def listed(graph) -> str:
    """The ops of a graph, one per line, as `t3 = add(t2, b)  (10, 1)`: name, op, inputs and attributes, shape."""
    names = {}
    lines = []
    for node in graph.ops:
        for x in (*node.inputs, node):
            names.setdefault(x, leaf_name(x) or f"t{len(lines)}")
        given = [*map(names.get, node.inputs), *(f"{k}={v}" for k, v in node.attrs.items())]
        lines.append(f"{names[node]:>4} = {node.op}({', '.join(given)})".ljust(56) + f" {node.spec.shape}")
    return "\n".join(lines)


def leaf_name(node) -> str | None:
    """The name of a leaf: a variable's name, x0 for the first argument, or a scalar constant's number. Else None."""
    if node.op == "input":
        return f"x{node.source}"
    if node.op == "variable":
        return node.source.name
    return str(node.source.numpy()) if node.op == "constant" and not node.spec.shape else None
