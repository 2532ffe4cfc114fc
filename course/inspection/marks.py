"""A task, its lines sorted by what they do: the parts of a step that all levels name by the same marks.

The five `tasks.py` and `reference.py` bear them: `# model`, `# forward`, `# loss`, `# backward`, `# update`. Levels are
laid beside each other by mark, not by text.
"""

import ast
import inspect
import re
import textwrap
from typing import NamedTuple

from course.builder.cells import MARKER, code_of

MARKS = ("model", "forward", "loss", "backward", "update")
AROUND = "around"  # what bears no mark: the rows of a batch, the loop, the answer
MARK = re.compile(rf" *# ((?:{'|'.join(MARKS)})(?:, (?:{'|'.join(MARKS)}))*)$", re.MULTILINE)


class Step(NamedTuple):
    """A statement, and the functions that it is the first to name, each of them a list of steps."""

    text: str
    opens: tuple = ()

    def is_call(self):
        """Whether it only calls one function of the task's own, and perhaps gives names to what that returns."""
        try:
            (statement,) = ast.parse(self.text).body
        except (SyntaxError, ValueError):  # a head without its block
            return False
        return len(self.opens) == 1 and isinstance(getattr(statement, "value", None), ast.Call)

    def lines(self, deep=0):
        """All its lines, with those of what it opens: (how many functions deep, line)."""
        yield from ((deep, line) for line in self.text.splitlines())
        for step in (step for steps in self.opens for step in steps):
            yield from step.lines(deep + 1)


def read(task):
    """{mark: [Step]} of a task function. Each line of code of it, and of all that it calls in its room, stands once.

    A mark holds to the next one, to a line without code, or to the end of the block, and on into the functions called
    there that bear marks themselves. A line with several marks stands under the first, and the others are empty. What
    has no mark stands under AROUND. Functions called check_… are left out. Raises ValueError where a mark stands twice.
    """
    return Reader(task.__module__, functions_of(task), task.__name__).found


def read_program(name, text):
    """{mark: [Step]} of a whole program, as `read` finds them in a function."""
    return Reader(name, {name: text}, name).found


class Source(NamedTuple):
    """A function, or a whole program, as it is written."""

    node: ast.FunctionDef | ast.Module
    code: dict  # the number of a line: the line
    reads: set  # the names that are not its own

    def text(self, statement):
        return self.between(first_line(statement), statement.end_lineno)

    def head(self, statement):
        """The lines above the block of a statement that has one. (A program has none.)"""
        if isinstance(statement, ast.Module):
            return ""
        return self.between(first_line(statement), first_line(statement.body[0]) - 1)

    def between(self, first, last):
        return "\n".join(line for n, line in self.code.items() if first <= n <= last)

    def names(self, statement):
        """The names in a statement that are not the function's own, in the order of reading."""
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id in self.reads)
        return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def whole(tree, name):
    """The function of this name where the text is one; else the program itself."""
    return tree.body[0] if getattr(tree.body[0], "name", None) == name else tree


def first_line(statement):
    return min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))


class Reader:
    """The way through a task: what is found, which functions nothing has named yet, and which come next."""

    def __init__(self, place, texts, start):
        self.place, self.found, self.around = place, {}, []  # around: (text, the names in it)
        texts = {name: text for name, text in texts.items() if not name.startswith("check_")}
        self.closed = {n: Source(whole(ast.parse(t), n), code_of(t), names_read(t)) for n, t in texts.items()}
        self.leading = {name for name, text in texts.items() if MARK.search(text)}  # to marks
        for _ in texts:
            self.leading |= {name for name, source in self.closed.items() if source.reads & self.leading}
        self.ahead = [(self.closed.pop(start), AROUND)]
        while self.ahead:
            source, mark = self.ahead.pop(0)
            self.around.append((source.head(source.node), ()))
            self.block(source, source.node.body, mark)
        around = [
            Step(text, self.opens(names)) for text, names in self.around if text
        ]  # at last: marked lines come first
        around += [step for name in [*self.closed] for step in self.open(name)]
        self.found = {mark: self.found[mark] for mark in MARKS if mark in self.found} | {AROUND: around}

    def block(self, source, body, mark):
        """Sort the statements of a block that begins under this mark."""
        end = first_line(body[0]) - 1
        for statement in body:
            if first_line(statement) > end + 1:
                mark = AROUND
            end, text = statement.end_lineno, source.text(statement)
            head = source.head(statement) if hasattr(statement, "body") else text
            if own := MARK.search(head):
                mark = self.begin(own[1], statement.col_offset)
                self.put(mark, source, statement)
            elif MARK.search(text):
                self.around.append((head, ()))
                self.block(source, statement.body, AROUND)
                mark = AROUND
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
                self.put(AROUND, source, statement)  # it only hands on what a mark has named
            elif isinstance(statement, ast.FunctionDef):
                self.closed[statement.name] = source._replace(node=statement)
            elif text:
                self.put(mark, source, statement)

    def begin(self, marks, indent):
        """Open the bands of these marks, and leave a comment where they stood."""
        self.around.append((f"{' ' * indent}# {marks}", ()))
        first, *others = marks.split(", ")
        for mark in (first, *others):
            if mark in self.found:
                raise ValueError(f"{self.place}: the mark # {mark} stands twice")
            self.found[mark] = []
        return first

    def put(self, mark, source, statement):
        text, names = MARK.sub("", source.text(statement)), source.names(statement)
        for name in names:
            if name in self.closed and name in self.leading:
                self.ahead.append((self.closed.pop(name), mark))
        if mark == AROUND:
            self.around.append((text, names))
        else:
            self.found[mark].append(Step(textwrap.dedent(text), self.opens(names)))

    def opens(self, names):
        return tuple(self.open(name) for name in names if name in self.closed)

    def open(self, name):
        """A function as steps: its head, and each statement with what that opens in turn."""
        source = self.closed.pop(name)
        steps = [Step(source.head(source.node))]
        steps += [Step(source.text(line), self.opens(source.names(line))) for line in source.node.body]
        column = source.node.col_offset
        return [Step("\n".join(t[column:] for t in text.splitlines()), opens) for text, opens in steps if text]


def functions_of(task):
    """The sources of a task function and of those it names, in its room or its level's formulas: {name: source}."""
    module, sources, waiting = inspect.getmodule(task), {}, [task.__name__]
    room = room_of(task)
    formulas = re.sub(r"\w+$", "formulas", room or "")
    while waiting:
        name = waiting.pop()
        if name not in sources:
            sources[name] = inspect.getsource(getattr(module, name))
            named = {n: inspect.unwrap(getattr(module, n, print)) for n in sorted(names_read(sources[name]))}
            waiting += [n for n, f in named.items() if inspect.isfunction(f) and room_of(f) in (room, formulas)]
    return sources


def room_of(function):
    """The module of a function; in a notebook the room that its cell names, and "" where the cell names none."""
    if function.__module__ != "__main__":
        return function.__module__
    try:
        marker = MARKER.match(inspect.findsource(function)[0][0])
    except OSError:  # made by a program, in no cell
        return None
    return marker[1] if marker else ""


def names_read(source):
    """The names that this source reads and does not bind itself."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in names} - bound
