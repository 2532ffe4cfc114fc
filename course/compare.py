"""The levels beside each other: the same task's code in columns, and what each level costs for the same answer."""

import ast
import html
import inspect
import re
import statistics
import textwrap
import time

from course.rooms import code_lines

MARKS = ("forward", "loss", "backward", "update")
MARK = re.compile(rf"\s*# ((?:{'|'.join(MARKS)})(?:, (?:{'|'.join(MARKS)}))*)$")


def functions_of(task):
    """The source of a task function, and of the functions of its module that it names, as {name: source}."""
    module, sources, waiting = inspect.getmodule(task), {}, [task.__name__]
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = inspect.getsource(getattr(module, name))
            names = {node.id for node in ast.walk(ast.parse(sources[name])) if isinstance(node, ast.Name)}
            named = {n: inspect.unwrap(getattr(module, n, print)) for n in sorted(names)}
            waiting += [n for n, f in named.items() if inspect.isfunction(f) and f.__module__ == task.__module__]
    return sources


def parts(task):
    """{mark: the lines from that mark to the next}; a mark that one line shares with others holds it once, first."""
    found = {}
    for source in functions_of(task).values():
        current, depth = None, 0
        for line in source.splitlines():
            mark, indent = MARK.search(line), len(line) - len(line.lstrip())
            if mark:
                current, depth = mark[1].split(", ")[0], indent
                for name in mark[1].split(", "):
                    if name in found:
                        raise ValueError(f"{task.__module__}: the mark # {name} stands twice")
                    found[name] = []
            elif not line.strip() or indent < depth:
                current = None
            if current:
                found[current].append(MARK.sub("", line))
    return {mark: textwrap.dedent("\n".join(found[mark])) for mark in found}


class Columns:
    """A table of code: a row for each mark, a column for each level."""

    def __init__(self, columns):
        self.columns = columns  # {level: {mark: code}}

    def __repr__(self):
        lines = []
        for mark in MARKS:
            for level, code in self.columns.items():
                if text := code.get(mark, ""):
                    lines += [f"{mark} · {level}", textwrap.indent(text, "    ")]
        return "\n".join(lines)

    def _repr_html_(self):
        style = "text-align:left;vertical-align:top;border-top:1px solid #ccc;padding:2px 8px"
        pre = "font-size:11px;margin:0;background:none;white-space:pre"
        head = "".join(f"<th style='{style}'>{level}</th>" for level in self.columns)
        rows = "".join(
            f"<tr><th style='{style}'>{mark}</th>"
            + "".join(
                f"<td style='{style}'><pre style='{pre}'>{html.escape(code.get(mark, ''))}</pre></td>"
                for code in self.columns.values()
            )
            + "</tr>"
            for mark in MARKS
        )
        return f"<div style='overflow-x:auto'><table><tr><th style='{style}'></th>{head}</tr>{rows}</table></div>"


def side_by_side(*tasks):
    """The lines that matter of one task on several levels, aligned by their marks: pass each level's task function."""
    names = [task.__module__.split(".")[1] if "." in task.__module__ else "here" for task in tasks]
    return Columns({name: parts(task) for name, task in zip(names, tasks, strict=True)})


def lines(*functions):
    """Lines of code of these functions: no blank line, no comment, no docstring."""
    return sum(code_lines(textwrap.dedent(inspect.getsource(function))) for function in functions)


def microseconds(train, task, steps=1000, repeats=5):
    """The median time of a step, over runs of that many steps."""
    task, times = task._replace(batches=task.batches[:steps]), []
    for _ in range(repeats):
        start = time.perf_counter()
        train(task.x, task.y, task.weights, task.batches, task.learning_rate)
        times.append(time.perf_counter() - start)
    return statistics.median(times) / len(task.batches) * 1e6


def cost(train, task, launches, nbytes, predicted, steps=1000):
    """Print what one step costs: launches, bytes, microseconds predicted (`predicted` is in seconds) and measured."""
    measured = microseconds(train, task, steps)
    print("launches a step   bytes a step   µs predicted   µs measured")
    print(f"{launches:15.4g}   {nbytes:12,.0f}   {predicted * 1e6:12.3g}   {measured:11.3g}")
