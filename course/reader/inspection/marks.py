"""Sort the lines of a task function by the part of a step that they belong to, as named by marks.

A mark is a comment in the five `tasks.py` and in `reference.py`: `# model`, `# forward`, `# loss`, `# backward` or
`# update`. The side-by-side pages align the levels by mark.
"""

import ast
import inspect
import re
import textwrap
from typing import NamedTuple

from course.reader.language import later
from course.reader.notebooks.cells import MARKER, code_of, first_line

MARKS = (later("model"), later("forward"), later("loss"), later("backward"), later("update"))
AROUND = "around"  # code without a mark: the rows of a batch, the loop, the answer
MARK = re.compile(rf" *# ((?:{'|'.join(MARKS)})(?:, (?:{'|'.join(MARKS)}))*)$", re.MULTILINE)


class Step(NamedTuple):
    """A statement, and the functions that it is the first to name, each as a list of steps."""

    text: str
    opens: tuple = ()

    def is_call(self):
        """Whether the statement only calls one function that it opens, with or without assigning the result."""
        try:
            (statement,) = ast.parse(self.text).body
        except (SyntaxError, ValueError):  # the head of a block without its body
            return False
        return len(self.opens) == 1 and isinstance(getattr(statement, "value", None), ast.Call)

    def lines(self, deep=0):
        """Yield (call depth, line) for all its lines, then for those of the functions that it opens."""
        yield from ((deep, line) for line in self.text.splitlines())
        for step in (step for steps in self.opens for step in steps):
            yield from step.lines(deep + 1)


def read(task):
    """{mark: [Step]} of a task function. It has each line of the function, and of those it uses in its room, once.

    A mark applies up to the next mark, a line without code or the end of the block, and also in called functions that
    have marks themselves. A line with several marks is listed under the first one, and the others are empty. AROUND
    has the lines without a mark. Functions named check_… are left out. Raises ValueError if a mark occurs twice.
    """
    return Reader(task.__module__, functions_of(task), task.__name__).found


def line_counts(code):
    """(the number of lines under the five marks, the number of lines of the functions that these lines call).

    Lines AROUND the marks are not counted: they check and copy the arguments, go through the batches and hand out the
    result, and a level with longer code for that does not say more about a step. A blank line, a comment and a
    docstring are no lines of code.
    """
    steps = [step for mark in MARKS for step in code.get(mark, ())]
    own = sum(len(step.text.splitlines()) for step in steps)
    return own, sum(1 for step in steps for _ in step.lines()) - own


def read_program(name, text):
    """{mark: [Step]} of a whole program, as `read` returns it for a function."""
    return Reader(name, {name: text}, name).found


class Source(NamedTuple):
    """The source of a function or of a whole program."""

    node: ast.FunctionDef | ast.Module
    code: dict  # {line number: line}
    reads: set  # the names that it reads and does not bind

    def text(self, statement):
        return self.between(first_line(statement), statement.end_lineno)

    def head(self, statement):
        """The lines of a compound statement before its body; "" for a program."""
        if isinstance(statement, ast.Module):
            return ""
        return self.between(first_line(statement), first_line(statement.body[0]) - 1)

    def between(self, first, last):
        return "\n".join(line for n, line in self.code.items() if first <= n <= last)

    def names(self, statement):
        """The names in a statement that the function does not bind, in source order."""
        nodes = (node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id in self.reads)
        return [node.id for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset))]


def whole(tree, name):
    """The first statement if it defines this name; otherwise the tree of the whole program."""
    return tree.body[0] if getattr(tree.body[0], "name", None) == name else tree


class Reader:
    """Reads a task. found: the result. closed: the functions not named so far. ahead: those to read next."""

    def __init__(self, place, texts, start):
        # around: (text, the names in it)
        self.place = place
        self.found = {}
        self.around = []
        texts = {name: text for name, text in texts.items() if not name.startswith("check_")}
        self.closed = {n: Source(whole(ast.parse(t), n), code_of(t), names_read(t)) for n, t in texts.items()}
        self.leading = {name for name, text in texts.items() if MARK.search(text)}  # with marks, or calling such
        for _ in texts:
            self.leading |= {name for name, source in self.closed.items() if source.reads & self.leading}
        self.ahead = [(self.closed.pop(start), AROUND)]
        while self.ahead:
            source, mark = self.ahead.pop(0)
            self.around.append((source.head(source.node), ()))
            self.block(source, source.node.body, mark)
        around = [
            Step(text, self.opens(names)) for text, names in self.around if text
        ]  # last, because marked lines open functions first
        around += [step for name in [*self.closed] for step in self.open(name)]
        self.found = {mark: self.found[mark] for mark in MARKS if mark in self.found} | {AROUND: around}

    def block(self, source, body, mark):
        """Sort the statements of a block that begins under this mark."""
        end = first_line(body[0]) - 1
        for statement in body:
            if first_line(statement) > end + 1:
                mark = AROUND
            end = statement.end_lineno
            text = source.text(statement)
            head = source.head(statement) if hasattr(statement, "body") else text
            if own := MARK.search(head):
                mark = self.begin(own[1], statement.col_offset)
                self.put(mark, source, statement)
            elif MARK.search(text):
                self.around.append((head, ()))
                self.block(source, statement.body, AROUND)
                mark = AROUND
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Name):
                self.put(AROUND, source, statement)  # it only returns what a marked line has computed
            elif isinstance(statement, ast.FunctionDef):
                self.closed[statement.name] = source._replace(node=statement)
            elif text:
                self.put(mark, source, statement)

    def begin(self, marks, indent):
        """Start the lists of these marks, leave a comment in AROUND where they were, and return the first mark."""
        self.around.append((f"{' ' * indent}# {marks}", ()))
        first, *others = marks.split(", ")
        for mark in (first, *others):
            if mark in self.found:
                raise ValueError(f"{self.place}: the mark # {mark} stands twice")
            self.found[mark] = []
        return first

    def put(self, mark, source, statement):
        text = MARK.sub("", source.text(statement))
        names = source.names(statement)
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
        """A function as steps: its head, then each statement with the functions that it opens."""
        source = self.closed.pop(name)
        steps = [Step(source.head(source.node))]
        steps += [Step(source.text(line), self.opens(source.names(line))) for line in source.node.body]
        column = source.node.col_offset
        return [Step("\n".join(t[column:] for t in text.splitlines()), opens) for text, opens in steps if text]


def functions_of(task):
    """{name: source} of a task function and the functions that it names, directly or not, in its room or `formulas`."""
    module = inspect.getmodule(task)
    sources = {}
    waiting = [task.__name__]
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
    """A function's module; in a notebook, the room of its cell, "" without a room, None if it is not from a cell."""
    if function.__module__ != "__main__":
        return function.__module__
    try:
        marker = MARKER.match(inspect.findsource(function)[0][0])
    except OSError:  # generated code, from no cell
        return None
    return marker[1] if marker else ""


def names_read(source):
    """The names that this source reads and does not bind."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in names} - bound
