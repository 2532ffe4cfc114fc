"""A notebook is one namespace, a level is a folder of rooms: `export` turns the first into the second.

A code cell whose first line is `#| export ROOM` belongs to `levels/LEVEL/ROOM.py`. Its lines are kept as they stand,
comments and all; only its imports move to the top. Every import between rooms is written here: a name that a room uses
and does not define comes from the room that defines it, from an import in any cell, or from Python itself. That is
sound only if a name means one thing in the whole notebook, so whatever would give it a second meaning is an error.
"""

import ast
import builtins
import copy
import keyword
import re
import symtable
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from course.builder import blanks

MARKER = re.compile(r"#\|\s*export\s+(\w+)(?:\s+blank\s+([A-Za-z]\w*))?\s*")  # room, the key of a blank
OF_THE_CORE = re.compile(r"#\|\s*blank\s+([A-Za-z]\w*)\s*")  # on the trail: a blank that its core has, too
BUILTINS = set(dir(builtins)) - {"display", "get_ipython"}  # these two are IPython's: a built level has to do without
NOT_HANDED_ON = (ast.For, ast.While, ast.With, ast.Try)  # they define loop variables, libraries that may be missing
WIDTH = 120

# What `levels/__init__.py` is. Nothing else in `levels` is not of a notebook.
LEVELS = '''"""Five levels, one answer: a small deep-learning framework, from machine instructions up to `model.fit`.

These levels are the core, and stand alone. `levels_more`, where it is there, adds to them: rows to their tables, and names
to their fronts. It is asked for what is missing, so nothing waits for it before.
"""

import functools
import importlib.util
import os
import sys
from inspect import ismodule


@functools.cache
def more(what, name):
    """The module of `levels_more` that has entered its row `name` in the table `what`, or that adds this name to a front.

    None where there is no such row, no `levels_more`, or the variable LEVELS_CORE in the environment.
    """
    if os.environ.get("LEVELS_CORE") or not importlib.util.find_spec("levels_more"):
        return None
    return importlib.import_module("levels_more").enter(what, name)


def plugged(front):
    """A module's `__getattr__` and `__dir__` (PEP 562), and its `__all__`: what it lacks is looked up in `levels_more`."""
    names = sorted(n for n, x in vars(sys.modules[front]).items() if n[0] != "_" and n != "plugged" and not ismodule(x))

    def find(name):
        module = None if name.startswith("_") else more(front, name)
        if module is None:
            raise AttributeError(f"module {front!r} has no attribute {name!r}", name=name)
        return getattr(module, name, module)  # a name of the module, or the module itself: mid_level.metrics

    return find, lambda: names, names
'''
PLUG = "__getattr__, __dir__, __all__ = plugged(__name__)  # what is missing here is looked up in levels_more"
PLUGGED = {"nn", "layers", "losses", "optimizers", "data"}  # rooms that end in this line, as each front does

PARAGRAPHS = "# fmt: off\n# isort: skip_file"  # its lists of names are filled like paragraphs


class BuildError(Exception):
    """What is wrong, where, and what to do. That is all a reader needs: a notebook shows no traceback of it."""

    def _render_traceback_(self) -> list[str]:
        return [f"BuildError: {self}"]


def blank_in(source: str) -> str:
    """The key of the blank in a cell, or nothing."""
    first = source.split("\n")[0]
    if marker := MARKER.fullmatch(first):
        return marker[2] or ""
    marker = OF_THE_CORE.fullmatch(first)
    return marker[1] if marker else ""


def read_text(path: Path) -> str:
    """A notebook's text. Raises BuildError where a merge was not brought to an end, which would pass for odd code."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"(<{7}|>{7}|[|]{7})( |$)", line):
            raise BuildError(
                f"{'/'.join(path.parts[-3:])}, line {number}: holds a merge conflict: resolve it, then try again"
            )
    return text


class File(NamedTuple):
    """A file of a level: its text, and for each line the number of the cell it comes from (0: the exporter)."""

    text: str
    cells: list[int]


class Import(NamedTuple):
    """One imported name: `import name as alias`, or `from module import name as alias`."""

    module: str
    name: str
    alias: str


PLUGGED_BY = Import("levels", "plugged", "")


@dataclass
class Cell:
    """A code cell, numbered from 1 among all cells of its notebook, with its top-level statements."""

    notebook: str
    number: int
    source: str
    room: str = ""
    blank: str = ""  # the key of the function that a reader may fill in
    body: list[ast.stmt] = field(default_factory=list)

    def __str__(self) -> str:
        return title(self.number, self.source)

    def error(self, message: str) -> BuildError:
        return BuildError(f"{self.notebook}.ipynb, {self}: {message}")


def title(number: int, source: str) -> str:
    """How messages name a cell: by its number, and by its first line of code, because Lab shows no numbers."""
    lines = [line.strip() for line in source.split("\n") if line.strip()] or [""]
    first = next((line for line in lines if not line.startswith("#")), lines[0])
    return f"{f'cell {number}' if number else 'a new cell'} (`{first if len(first) <= 60 else first[:57] + '...'}`)"


def export(notebook, name: str) -> dict[str, File]:
    """The files of the level that the notebook called `name` builds: {"__init__.py": File, "tensors.py": File, …}.

    Raises BuildError, naming cell and name, where a name is undefined, defined twice, rebound, or used from a room that
    opens later, and where a cell holds what a module cannot.
    """
    cells = [read(cell.source, name, n) for n, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"]
    exported = [cell for cell in cells if cell.room]
    if not exported:
        raise BuildError(f"{name}.ipynb: no cell begins with `#| export ROOM`, so there is nothing to build")
    namespace = Namespace(cells)
    needs = {cell.room: set() for cell in exported}
    for cell in exported:
        if cell.room in namespace.public or keyword.iskeyword(cell.room) or cell.room.startswith("__"):
            raise cell.error(f"no room can be called {cell.room}: that name has a meaning, and would hide the room")
        for statement in cell.body:
            if not is_import(statement):
                needs[cell.room] |= namespace.imports_for(statement, cell)
    note = f"# Built from {name}.ipynb: edit there, then run its last cell."
    files = {"__init__.py": front(notebook, note, {n: namespace.homes[n].room for n in namespace.public})}
    for room in needs:
        files[f"{room}.py"] = module(
            [cell for cell in exported if cell.room == room], note, needs[room], room in PLUGGED
        )
    return files


def read(source: str, notebook: str, number: int) -> Cell:
    """One code cell, parsed. A plain cell that is not plain Python (a deliberate error, say) has no statements."""
    cell = Cell(notebook, number, source.replace("\r\n", "\n"))
    if marker := MARKER.fullmatch(cell.source.split("\n")[0]):
        cell.room, cell.blank = marker[1], marker[2] or ""
        if cell.blank:
            try:
                cell.source = blanks.in_place(cell.source, notebook, cell.blank)
            except LookupError as error:
                raise cell.error(str(error)) from None
    elif re.search(r"^#\|\s*export\b", cell.source, re.MULTILINE):
        raise cell.error(
            "`#| export ROOM` stands alone on the first line of a cell (perhaps with `blank KEY` at its end)"
        )
    try:
        cell.body = ast.parse(cell.source).body
        if cell.room:  # finds what the parser lets pass, such as `return` outside a function
            compile(cell.source, str(cell), "exec", dont_inherit=True)
    except SyntaxError as error:
        if cell.room:
            what = f"line {error.lineno}: {error.msg}. An exported cell holds plain Python (no % or ! commands)"
            raise cell.error(what) from None
        try:  # its imports count, whatever commands stand between them
            cell.body = ast.parse(re.sub(r"^(\s*)[%!].*", r"\1pass", cell.source, flags=re.MULTILINE)).body
        except SyntaxError:
            return cell
    if cell.room:
        for position, statement in enumerate(cell.body):
            fit_for_module(statement, cell, position)
    return cell


def fit_for_module(statement: ast.stmt, cell: Cell, position: int) -> None:
    """Raise BuildError for what may stand in a notebook but not in a module."""
    line = f"line {statement.lineno}"
    if position and cell.body[position - 1].end_lineno == statement.lineno:
        raise cell.error(f"{line}: two statements on one line; write one a line")
    member = statement if isinstance(statement, ast.ImportFrom) else None
    if member and (member.level or member.module == "__future__" or member.names[0].name == "*"):
        raise cell.error(f"{line}: import libraries and lower levels, name by name (rooms are found by themselves)")
    if isinstance(statement, ast.Expr) and not (position == 0 and is_text(statement)):
        called = getattr(getattr(statement.value, "func", None), "id", "")  # other calls may register something
        if not isinstance(statement.value, ast.Call) or called in ("print", "display"):
            raise cell.error(f"{line} only shows something: move it to a cell that is not exported")


def is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


# Names: what a statement defines and uses, and what the notebook means by each name.


@dataclass
class Names:
    """The names a statement defines, those it needs from around it, those it may need, and those it rebinds.

    It may need what a class body both reads and assigns (`matmul = matmul`), and what an annotation in quotes names.
    """

    defines: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    may_need: set[str] = field(default_factory=set)
    rebinds: set[str] = field(default_factory=set)


class Scoped(ast.NodeTransformer):
    """Turn comprehensions into generators: since 3.12, `symtable` counts the variables of the former as the module's."""

    def visit_ListComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_DictComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)

    visit_SetComp = visit_ListComp


def names_of(statement: ast.stmt) -> Names:
    names = Names()
    for node in ast.walk(statement):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for quoted in ast.walk(annotation) if annotation else ():
                if isinstance(quoted, ast.Constant) and isinstance(quoted.value, str):
                    names.may_need |= set(re.findall(r"\b[A-Za-z_]\w*", quoted.value))
    scoped = Scoped().visit(copy.deepcopy(statement))
    top = symtable.symtable(ast.unparse(scoped), "cell", "exec")
    tables = [top]
    for table in tables:  # grows as it is walked
        tables += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if table is top and bound:
                names.defines.add(name)
            elif symbol.is_referenced() and (table is top or symbol.is_global()):
                names.needs.add(name)
            elif symbol.is_referenced() and table.get_type() == "class" and symbol.is_local():
                names.may_need.add(name)
            if symbol.is_declared_global() and bound:
                names.rebinds.add(name)
    return names


class Namespace:
    """What the names of a notebook mean: the cell that defines each, or the imports that bring it."""

    def __init__(self, cells: list[Cell]):
        self.rooms = list(dict.fromkeys(cell.room for cell in cells if cell.room))
        self.homes: dict[str, Cell] = {}
        self.imports: dict[str, dict[Import, Cell]] = {}
        self.plain: dict[str, Cell] = {}  # defined in cells that are not exported
        self.public: set[str] = set()  # handed on by the level
        for cell in cells:
            for statement in cell.body:
                if is_import(statement):
                    for alias in statement.names:
                        entry = Import(getattr(statement, "module", "") or "", alias.name, alias.asname or "")
                        self.imports.setdefault((entry.alias or entry.name).split(".")[0], {}).setdefault(entry, cell)
                elif cell.room:
                    self.define(statement, cell)
                else:
                    self.plain |= dict.fromkeys(names_of(statement).defines, cell)
        for name in sorted(self.homes.keys() & self.imports.keys()):
            raise self.homes[name].error(f"{name} is imported too, in {self.where_imported(name)}: rename one of them")

    def define(self, statement: ast.stmt, cell: Cell) -> None:
        names = names_of(statement)
        for name in sorted(names.rebinds | names.defines - {"_"}):
            if name in names.rebinds or name in self.homes:
                how = "by `global`" if name in names.rebinds else f"after {self.homes[name]}"
                cure = f"give each its own name, or change a container ({name.upper()} = []) instead"
                raise cell.error(f"{name} is bound again, {how}, and other rooms would keep the old one: {cure}")
            self.homes[name] = cell
        if not isinstance(statement, NOT_HANDED_ON):
            self.public |= {name for name in names.defines if not name.startswith("_")}

    def imports_for(self, statement: ast.stmt, cell: Cell) -> set[Import]:
        """The imports that a statement asks for in its room. Raises BuildError where there can be none."""
        names, found = names_of(statement), set()
        for name in sorted(names.needs | names.may_need):
            home = self.homes.get(name)
            if home and self.rooms.index(home.room) < self.rooms.index(cell.room):
                found.add(Import(f".{home.room}", name, ""))
            elif home and home.room != cell.room and name in names.needs:
                what = f"{name} is used here in room {cell.room}, but {home} defines it in {home.room}"
                raise cell.error(
                    f"{what}, which opens later: move one of them, or fill a container of the earlier room"
                )
            elif not home and name in self.imports:
                found |= self.imported(name, cell)
            elif not home and name in names.needs and name not in BUILTINS | {"_"}:
                hint = f"; {self.plain[name]} does, but is not exported" if name in self.plain else ""
                raise cell.error(f"{name} is undefined: no exported cell defines it and no cell imports it{hint}")
        return found

    def imported(self, name: str, cell: Cell) -> set[Import]:
        found = self.imports[name]
        if len(found) > 1 and any(entry.module or entry.alias for entry in found):  # `import a.b`, `import a.c` is fine
            raise cell.error(f"{name} is used here and imported in different ways, in {self.where_imported(name)}")
        for entry in found:
            if (entry.module or entry.name).split(".")[0] == "course":
                raise cell.error(f"{name} is imported from course, which no level may use: levels stand alone")
        return set(found)

    def where_imported(self, name: str) -> str:
        return " and ".join(str(cell) for cell in self.imports[name].values())


# Writing: laid out so that `ruff format` and `ruff check --select I` find nothing to change.


def module(cells: list[Cell], note: str, needs: set[Import], plugged: bool) -> File:
    """One room: its docstring, the note, its imports, then everything else as it stands in the cells."""
    text, blocks = [], []
    needs = needs | {PLUGGED_BY} if plugged else needs
    for cell in cells:
        lines = [(line, cell.number) for line in cell.source.split("\n")]
        moved = {1}
        for statement in cell.body:
            span = range(statement.lineno, statement.end_lineno + 1)
            if is_text(statement) and cell is not cells[0]:
                raise cell.error("only the first cell of a room may begin with a docstring; make this one a comment")
            if is_text(statement):
                text = [*(lines[n - 1] for n in span), ("", 0)]
            if is_import(statement) or is_text(statement):
                moved |= set(span)
        blocks.append([])
        for n, line in enumerate(lines, 1):
            if n in moved:
                blocks.append([])
            elif line[0].strip() or blocks[-1]:
                blocks[-1].append(line)
    text += [(line, 0) for line in [note, *import_lines(needs, bracket)]]
    gap = 1
    for block in filter(None, blocks):
        while not block[-1][0].strip():
            block.pop()
        code = next((line for line, _ in block if line[:1].strip("# ")), "")
        # two blank lines around a definition, but only one between the imports and anything else
        text += [("", 0)] * max(gap, 2 if re.match(r"@|(def|class|async)\b", code) else 1) + block
        gap = 2
    text += [("", 0), ("", 0), (PLUG, 0)] * plugged
    return File("".join(f"{line}\n" for line, _ in text), [number for _, number in text])


def front(notebook, note: str, public: dict[str, str]) -> File:
    """The level's `__init__.py`: it hands on the public names of all rooms.

    Its docstring is the notebook's title, the first line of its first cell of prose.
    """
    prose = "".join([cell.source.strip() for cell in notebook.cells if cell.cell_type == "markdown"][:1])
    doc = re.sub(r"^#+\s*|[*`\\\"]", "", prose.split("\n")[0]).strip() or "A level"
    needs = {Import(f".{room}", name, "") for name, room in public.items()} | {PLUGGED_BY}
    lines = [f'"""{doc}"""' if doc[-1] in ".!?" else f'"""{doc}."""', "", note, PARAGRAPHS]
    lines += [*import_lines(needs, paragraph), "", PLUG]
    return File("".join(f"{line}\n" for line in lines), [0] * len(lines))


def import_lines(needs: set[Import], laid_out) -> list[str]:
    """Import statements in ruff's order, in four sections: Python, libraries, levels, rooms. A blank line before each.

    `laid_out`: `bracket` or `paragraph`.
    """
    statements, merged = set(), {}
    for module, name, alias in needs:
        section = 3 if module.startswith(".") else section_of((module or name).split(".")[0])
        tail = f" as {alias}" if alias else ""
        if not module:
            statements.add((section, 0, natural(name), (), (f"import {name}{tail}",)))
        elif alias:
            statements.add((section, 1, natural(module), (member(name), True), (f"from {module} import {name}{tail}",)))
        else:
            merged.setdefault((section, module), []).append(name)
    for (section, module), names in merged.items():
        names.sort(key=member)
        lines = laid_out(f"from {module} import ", names)
        statements.add((section, 1, natural(module), (member(names[0]), False), tuple(lines)))
    lines, last = [], None
    for section, _, _, _, statement in sorted(statements):
        lines += [""] * (section != last) + list(statement)
        last = section
    return lines


def section_of(library: str) -> int:
    return 2 if library == "levels" else 0 if library in sys.stdlib_module_names else 1


def bracket(start: str, items: list[str]) -> list[str]:
    """`start` and the items on one line where they fit, else one item a line."""
    line = start + ", ".join(items)
    return [line] if len(line) <= WIDTH else [start + "(", *(f"    {item}," for item in items), ")"]


def paragraph(start: str, items: list[str]) -> list[str]:
    """`start` and the items on one line where they fit, else filled like a paragraph."""
    lines = textwrap.wrap(", ".join(items), WIDTH - 5, break_long_words=False, break_on_hyphens=False)
    line = start + ", ".join(items)
    return [line] if len(line) <= WIDTH else [start + "(", *(f"    {line}" for line in lines), ")"]


def natural(name: str) -> tuple:
    """Sorts float8 before float16, and capitals with small letters."""
    return tuple((48, int(p)) if p.isdigit() else (ord(p), 0) for p in re.findall(r"\d+|\D", name.lower())), name


def member(name: str) -> tuple:
    """Sorts constants before classes before functions."""
    return 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2, natural(name)


def code_of(text: str) -> dict[int, str]:
    """The lines of code in a file by their numbers: those neither blank nor comment nor docstring."""
    texts = [node for node in ast.walk(ast.parse(text)) if is_text(node)]
    prose = {line for node in texts for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(text.split("\n"), 1)
    return {n: line for n, line in lines if n not in prose and line.strip()[:1] not in ("", "#")}


def code_lines(text: str) -> int:
    return len(code_of(text))
