"""A graph, as the program that it stands for: a line for each op."""


def listed(graph) -> str:
    """The ops of a graph, one a line: `t3 = add(t2, b)  (10, 1)`, its name, what it reads, the shape of its result."""
    names, lines = {}, []
    for node in graph.ops:
        for x in (*node.inputs, node):
            names.setdefault(x, leaf_name(x) or f"t{len(lines)}")
        given = [*map(names.get, node.inputs), *(f"{k}={v}" for k, v in node.attrs.items())]
        lines.append(f"{names[node]:>4} = {node.op}({', '.join(given)})".ljust(56) + f" {node.spec.shape}")
    return "\n".join(lines)


def leaf_name(node) -> str | None:
    """What a leaf is called: the name of a variable, x0 for the first argument, its number. None for others."""
    of = node.attrs.get("of")
    if node.op in ("variable", "input"):
        return of.name if node.op == "variable" else f"x{of}"
    return str(of.numpy()) if node.op == "constant" and not node.spec.shape else None
