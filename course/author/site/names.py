"""The API pages: the names of `levels` and `levels_more` with docstrings and links to the notebooks that have them.

The files are parsed, not imported: no level needs to be built, and decorators do not matter.
"""

import ast
import json
import re

from docutils.nodes import make_id

from course.author import house
from course.reader.figures import LEVELS
from course.reader.inspection.framework_names import NOTEBOOKS
from course.reader.inspection.source_index import MORE, definitions_in, places_of_more
from course.reader.notebooks.names import ROOT

INDEX = """# The names

This is what each level exports, with the cell in which it is written. Then follows what `levels_more` adds to that level,
with the notebook that explains it. An added name is imported from its level, as in `levels_more.high_level.EarlyStopping`.
A name without a link is in no notebook.

```{{toctree}}
:maxdepth: 1

{}
```
"""


def pages(root=ROOT):
    """{page: its text}: an index, two pages per level (its own names, added names), one for other frameworks' names."""
    found = {}
    leads = written(root) | explained(root)
    above = {place.room: place.adds_to for place in places_of_more(root)}  # {module: the level that it extends}
    for number, level in enumerate(LEVELS, 1):
        own = sorted((root / "levels" / level).glob("[a-z]*.py"))
        added = [root / MORE / f"{module}.py" for module in sorted(above) if above[module] == level]
        found[level] = page(f"{number} · levels.{level}", root, own, leads)
        found[f"{level}_more"] = page(f"{number} · what levels_more adds", root, added, leads)
    files = {path: path.relative_to(root / MORE).with_suffix("").as_posix() for path in (root / MORE).rglob("*.py")}
    others = [path for path in sorted(files) if files[path] not in above]
    found["frameworks"] = page("TensorFlow, PyTorch, torchkeras", root, others, leads)
    return {"index": INDEX.format("\n".join(found)), **found}


def page(title, root, paths, leads):
    return f"# {title}\n\n" + "\n".join(section(path, path.relative_to(root), leads) for path in paths)


def section(path, file, leads):
    """The names of a file: functions and classes with their docstrings, then the other values."""
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = [f".. py:module:: {module}", "", *restructured(ast.get_docstring(tree))]
    defined = {node.name: node for node in tree.body if told(node)}
    for name, node in defined.items():
        lines += entry(node, "function", leads.get(f"{module}.{name}") or leads.get(module))
    values = {name: leads.get(f"{module}.{name}") or leads.get(module) for node in tree.body for name in assigned(node)}
    links = [f"`{name} <{lead[1]}>`__" if lead else f"``{name}``" for name, lead in values.items()]
    lines += [f"Tables and values: {', '.join(links)}.", ""] * bool(links)
    return "\n".join([f"## {module.removeprefix('levels.').split('.', 1)[-1]}", "", "```{eval-rst}", *lines, "```", ""])


def told(node):
    """Whether this is a public function or class with a docstring (the result is truthy)."""
    kinds = ast.FunctionDef | ast.ClassDef
    return isinstance(node, kinds) and not node.name.startswith("_") and ast.get_docstring(node)


def assigned(node):
    """The public names that an assignment statement binds."""
    ends = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [each.id for end in ends for each in ast.walk(end) if isinstance(each, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def entry(node, kind, lead=None):
    """A function or a class as reStructuredText: signature, docstring, link, and methods."""
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    if isinstance(node, ast.ClassDef):
        kind = "class"
    elif kind == "method" and marks & {"property", "functools.cached_property"}:
        kind = "property"
    lines = restructured(ast.get_docstring(node))
    lines += [f"`{lead[0]} <{lead[1]}>`__", ""] if lead else []
    for each in node.body if kind == "class" else ():
        lines += entry(each, "method") if told(each) else []
    called = "" if kind == "property" else f"({arguments(node)})"
    return [f".. py:{kind}:: {node.name}{called}", "", *(f"   {line}".rstrip() for line in lines)]


def arguments(node):
    """The parameters of a function without `self`; of a class, those of `__init__`, or else its fields."""
    if isinstance(node, ast.FunctionDef):
        return ast.unparse(node.args).removeprefix("self, ").removeprefix("self")
    makers = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    fields = [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
    return arguments(makers[0]) if makers else ", ".join(fields)


def restructured(text):
    """A docstring of ours, plain text with `code`, as reStructuredText lines. Indented lines become literal blocks."""
    lines = []
    for paragraph in re.split(r"\n\s*\n", (text or "").strip("\n")):
        rows = paragraph.split("\n")
        first = next((k for k, row in enumerate(rows) if row.startswith("  ")), len(rows))
        parts = re.split(r"`([^`]+)`", " ".join(rows[:first]))
        plain = [rf"\ ``{part}``\ " if k % 2 else re.sub(r"([\\*`|_])", r"\\\1", part) for k, part in enumerate(parts)]
        lines += ["".join(plain).strip(), ""]
        if first < len(rows):
            lines += ["::", "", *("    " + row for row in rows[first:]), ""]
    return lines


def written(root=ROOT):
    """{"levels.hardware.assembler.Assembler": (link text, address)}: the cell that defines each name of `levels`."""
    found = {}
    for path in sorted(root.glob("notebooks/*.ipynb")):
        level = path.stem.split("_", 1)[1]
        words = f"Written in {path.stem.replace('_', ' ')}"
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1):
            if room := exported(cell):
                for name, *_ in definitions_in("".join(cell["source"])):
                    found[f"levels.{level}.{room}.{name}"] = words, f"../notebooks/{path.stem}.html#cell-{number}"
    return found


def exported(cell):
    """The room that a cell is exported to, or None."""
    found = re.match(r"#\| export (\w+)", "".join(cell["source"])) if cell["cell_type"] == "code" else None
    return found and found[1]


def explained(root=ROOT):
    """{"levels_more.mid_level.layers.Dropout": (link text, address)}: for a module or a name, the section that shows it."""
    shown = {}
    for path in sorted(root.glob("notebooks/more/text/*.py")):
        shown = dict.fromkeys(imported(path, root), f"more/{path.stem}") | shown
    shown |= NOTEBOOKS
    found = {}
    for path in sorted((root / MORE).rglob("*.py")):
        module = path.relative_to(root).with_suffix("").parts
        whole = ".".join(module).removesuffix(".__init__")
        if notebook := shown.get(whole.partition(".")[2]) or shown.get(module[1]):
            found[whole] = lead(notebook)
    for place in places_of_more(root):
        if place.notebook:
            found[f"{MORE}.{place.room.replace('/', '.')}.{place.name}"] = lead(place.notebook, place.heading)
    return found


def imported(path, root=ROOT):
    """The modules of `levels_more` that a file imports, in order of import, as "mid_level.layers"."""
    found = []
    for module, names in house.imports_of(path, root):
        package, _, rest = module.partition(".")
        if package == MORE:
            found += [".".join(filter(None, [rest, name])) for name in ("", *names)]
    return [name for name in found if (root / MORE / f"{name.replace('.', '/')}.py").exists() or name in NOTEBOOKS]


def lead(notebook, heading=""):
    anchor = f"#{make_id(heading)}" if heading else ""
    return f"Explained in {notebook.replace('_', ' ')}", f"../notebooks/{notebook}.html{anchor}"
