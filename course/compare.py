"""The levels beside each other: what each one costs for the same answer."""

import ast
import inspect
import statistics
import time


def lines(*functions):
    """Lines of code of these functions: no blank line, no comment, no docstring."""
    text = "\n".join(inspect.getsource(function) for function in functions)
    skipped = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            skipped.update(range(node.lineno, node.end_lineno + 1))
    numbered = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in skipped for n, line in numbered)


def microseconds(train, task, steps=1000, repeats=5):
    """The median time of a step, over runs of that many steps."""
    task, times = task._replace(batches=task.batches[:steps]), []
    for _ in range(repeats):
        start = time.perf_counter()
        train(task.x, task.y, task.weights, task.batches, task.learning_rate)
        times.append(time.perf_counter() - start)
    return statistics.median(times) / len(task.batches) * 1e6


def cost(train, task, launches, nbytes, predicted):
    """Print what one step costs: launches, bytes, microseconds predicted (`predicted` is in seconds) and measured."""
    measured = microseconds(train, task)
    print("launches a step   bytes a step   µs predicted   µs measured")
    print(f"{launches:15.4g}   {nbytes:12,.0f}   {predicted * 1e6:12.3g}   {measured:11.3g}")
