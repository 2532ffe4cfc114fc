"""The Place of each name: the section that teaches it, and the file and lines in which it is defined."""

import ast
import functools
import html
import re
from pathlib import Path
from typing import NamedTuple

from course.reader.figures import LEVELS
from course.reader.notebooks.cells import first_line
from course.reader.notebooks.names import ROOT
from course.reader.notebooks.running import HOME, WATCHED
from course.reader.notebooks.stored import hash_of

CELL = re.compile(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", re.MULTILINE)
HEADING = re.compile(r"^# (#{2,3}) (.*)$", re.MULTILINE)

MORE = "levels_more"


class Place(NamedTuple):
    """Where a name is defined."""

    name: str  # "Dense", or "Model.fit"
    level: str  # "mid_level", or "levels_more"
    room: str  # "layers"
    notebook: str  # "04_mid_level", or "more/05_saving"; "" if no notebook shows it
    heading: str  # "A part owns its variables (12 min)"
    part: str  # the subheading under it, "" if there is none
    source: str
    first: int  # first line in the built file; 0 before the level is built
    last: int
    adds_to: str = ""  # if in levels_more: the level that it extends
    library: str = ""  # the folder of a name that the level only hands on, such as levels/support

    file = property(lambda self: f"{self.library or 'levels/' * (self.level != MORE) + self.level}/{self.room}.py")

    title = property(lambda self: self.heading.split(" (")[0])

    @property
    def section(self):
        return ", ".join(filter(None, (self.notebook, self.heading, self.part)))

    @property
    def lines(self):
        span = f", line {self.first}" if self.first == self.last else f", lines {self.first} to {self.last}"
        return self.file + span * bool(self.first)

    def link(self, text):
        """The text as a link to the section. Its address is relative to the running notebook."""
        if not self.notebook:
            return f'<span title="{self.lines}">{html.escape(text)}</span>'
        anchor = f"#{html.escape((self.part or self.heading).replace(' ', '-'))}" * bool(self.heading)
        up = "../" * sum(name.count("/") for name in WATCHED)
        return f'<a href="{up}{self.notebook}.ipynb{anchor}" title="{self.lines}">{html.escape(text)}</a>'


# rooms with other frameworks' spellings: for their names `where` shows the definition in `levels` instead
SPELLINGS = {"torch", "tensorflow", "torchkeras", "torchmetrics", "missing"}


def places(root=ROOT):
    """The Place of every name of `levels_more`, then of every name of the core."""
    return places_of_more(root) + places_of_core(root)


def places_of_core(root=ROOT):
    """The Place of every name of `levels/support` that a level hands on, then of every name that the notebooks export.

    Names in classes are included. The notebooks are in the course's order. Lines refer to the `levels` that this kernel
    runs, which may be the reader's own.
    """
    found = handed_on(root)
    home = HOME[0] if root == ROOT else root
    for path in sorted(root.glob("notebooks/text/*.py")):
        level = path.stem.split("_", 1)[1]
        heading = ["", ""]
        for sort, source in CELL.findall(path.read_text(encoding="utf-8")):
            if marker := re.match(r"#\| export (\w+)", source):
                file = home / "levels" / level / f"{marker[1]}.py"
                text = file.read_text(encoding="utf-8") if file.exists() else ""
                for name, what, *_ in definitions_in(source):
                    place = name, level, marker[1], path.stem, *heading
                    found.append(Place(*place, *in_built(text, name, what)))
            elif "[markdown]" in sort:
                for hashes, title in HEADING.findall(source):
                    heading = [title, ""] if hashes == "##" else [heading[0], title]
    return found


def cell_of(place, root=ROOT):
    """The id of the cell that defines a Place's name, as `course.reader.notebooks.stored` computes it."""
    text = (root / "notebooks" / "text" / f"{place.notebook}.py").read_text(encoding="utf-8")
    cells = [source.strip() for _, source in CELL.findall(text) if source.startswith(f"#| export {place.room}")]
    head = place.source.split("\n")[0]  # for a blank, only the built file has the rest
    source = next((cell for cell in reversed(cells) if place.source in cell), None)
    source = source or next(cell for cell in reversed(cells) if head in cell)
    return hash_of("code", source)[:8]


def places_of_more(root):
    """The Place of every name in the modules of `levels_more`, with the notebook that shows it, if one does.

    A module extends the level whose front (`__init__.py` in levels_more) imports from it; otherwise the highest level
    that it imports, directly or through other modules of `levels_more`.
    """
    files = {path.relative_to(root / MORE).with_suffix(""): path for path in (root / MORE).rglob("[a-z]*.py")}
    own = sorted(module for module in files if module.parts[0] not in SPELLINGS)
    texts = {".".join(module.parts): files[module].read_text(encoding="utf-8") for module in own}

    @functools.cache
    def height(module):
        imported = re.findall(r"^from (levels|levels_more)\.([\w.]+)", texts.get(module, ""), re.MULTILINE)
        beneath = [name.split(".")[0] for package, name in imported if package == "levels"]
        heights = [LEVELS.index(name) for name in beneath if name in LEVELS]
        return max(heights + [height(name) for package, name in imported if package == MORE], default=0)

    found = []
    shown = shown_by_notebooks(root)
    fronts = {module: front.split(".")[1] for front, module in front_modules(root) if front.startswith("levels.")}
    for module, text in texts.items():
        adds_to = fronts.get(module) or LEVELS[height(module)]
        room = module.replace(".", "/")
        for name, *definition in definitions_in(text):
            where = shown.get((module, name.split(".")[0]), ("", ""))
            found.append(Place(name, MORE, room, *where, "", *definition, adds_to))
    return found


def handed_on(root):
    """The Place of every name of `levels/support` that a level hands on, in the core or in `levels_more`."""
    found = []
    known = set()
    for package, level in [(package, level) for level in LEVELS for package in ("levels", MORE)]:
        front = root / package / level / "__init__.py"
        for statement in ast.parse(front.read_text(encoding="utf-8")).body if front.exists() else ():
            library, _, room = (getattr(statement, "module", None) or "").rpartition(".")
            if library != "levels.support" or room == "fronts":  # (what says of a missing name where it is)
                continue
            names = {each.name for each in statement.names if each.asname is None} - known
            known |= {*names} if package == MORE else set()
            for file, text in with_imported(root / "levels" / "support", room).items():
                for name, *definition in definitions_in(text):
                    if name in names:
                        place = MORE if package == MORE else level, file, "", "", "", *definition
                        found.append(Place(name, *place, level * (package == MORE), "levels/support"))
    return found


def with_imported(folder, room):
    """{room: text} of a file of `levels/support`, and of the files there from which it imports names."""
    text = (folder / f"{room}.py").read_text(encoding="utf-8")
    imported = re.findall(r"^from \.(\w+) import", text, re.MULTILINE)
    return {room: text} | {other: (folder / f"{other}.py").read_text(encoding="utf-8") for other in imported}


def shown_by_notebooks(root):
    """{(module of `levels_more`, name): (notebook, heading)} of what notebooks in `more` show with `page.source`."""
    shown = {}
    for path in sorted(root.glob("notebooks/more/text/*.py")):
        heading = ""
        text = path.read_text(encoding="utf-8")
        imports = re.findall(r"^from levels_more\.([\w.]+) import (\([^)]*\)|.*)", text, re.MULTILINE)
        homes = {name: module for module, names in imports for name in re.findall(r"\w+", names)}
        for title, names in re.findall(r"^# ## (.*)$|page\.source\(([^)]*)\)", text, re.MULTILINE):
            heading = title or heading
            for name in re.findall(r"\w+", names):
                shown.setdefault((homes.get(name), name), (f"more/{path.stem}", heading))
    return shown


def front_modules(root=ROOT):
    """(level, module) for each module of `levels_more` from which the front of a level re-exports names.

    Other modules contain the rules of one framework, for its spelling.
    """
    found = []
    for level in LEVELS:
        file = root / MORE / level / "__init__.py"
        for statement in ast.parse(file.read_text(encoding="utf-8")).body if file.exists() else ():
            if isinstance(statement, ast.ImportFrom) and statement.module.startswith(f"{MORE}."):
                found.append((f"levels.{level}", statement.module.removeprefix(f"{MORE}.")))
    return found


@functools.cache
def definitions_in(source):
    """[(name, source, first line, last line)] of all definitions."""
    lines = source.split("\n")
    found = []
    for statement in ast.parse(source).body:
        inner = [(f"{statement.name}.", each) for each in statement.body] if isinstance(statement, ast.ClassDef) else []
        for prefix, each in [("", statement), *inner]:
            first = first_line(each)
            for name in names_of(each):
                found.append((prefix + name, "\n".join(lines[first - 1 : each.end_lineno]), first, each.end_lineno))
    return found


def in_built(text, name, what):
    """(source, first line, last line) of a definition in the built file, which has the functions of blanks."""
    same = [each for other, *each in definitions_in(text) if other == name]
    return next((each for each in same if each[0] == what), (same or [(what, 0, 0)])[0])


def names_of(statement):
    """The names that a statement defines: a function, a class, variables, or an op, as in `scalar("add")(…)`."""
    if hasattr(statement, "name"):
        marks = [ast.unparse(each) for each in getattr(statement, "decorator_list", ())]
        ops = [op for mark in marks for op in re.findall(r"^scalar\('(\w+)'", mark)]
        return [*dict.fromkeys([*ops, statement.name])]
    if isinstance(statement, ast.Expr):
        called = getattr(statement.value, "func", ast.Pass())
        return [node.value for node in ast.walk(called) if isinstance(node, ast.Constant)][:1]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def place_of(code, index):
    """The Place of a code object, found by file and line, or by name in the last level that has it; None if none."""
    file = Path(code.co_filename).as_posix()
    built = [p for p in index if file.endswith(f"/{p.file}")]
    inside = [p for p in built if p.first <= code.co_firstlineno <= p.last]
    inside = inside or [p for p in index if p.name == code.co_qualname][-1:]
    return min(inside, key=lambda p: p.last - p.first, default=None)
