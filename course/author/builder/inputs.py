"""The inputs that decide a notebook's outputs. A notebook is stale if their content, not their times, changed."""

import ast
import functools
import importlib.util
import re
from pathlib import Path

from course import OFFERED
from course.author.builder.files import SUPPORT
from course.reader.language import SHOWN, po_path
from course.reader.notebooks import answers, blanks
from course.reader.notebooks.cells import blank_in, read
from course.reader.notebooks.names import all_in, core_of, language_of, level_of, more_in, names_in, text_path
from course.reader.notebooks.stored import essence, hash_of

# The packages that a notebook may import besides the levels beneath it. (`data` contains no modules.)
PACKAGES = ("course", "solutions", "levels_more")


def inputs_of(root: Path, name: str, text) -> str:
    """Return a hash of all inputs of a notebook: its text, the levels and headings beneath, and the files that it uses.

    For a notebook in `more`, all levels and all modules of `levels_more` count as used. Of the answers to predictions,
    those to its own questions count. For a notebook in another language, what code shows in that language counts.
    """
    texts = {other: source_of(text_path(root, other)) for other in all_in(root)}
    beneath = [other for other in names_in(root) if other < name]
    headings = [re.findall(r"^# #+ .*$", texts[other], re.MULTILINE) for other in beneath]  # `where` shows them
    cells = [read(cell.source, name, n) for n, cell in enumerate(text.cells, 1) if cell.cell_type == "code"]
    modules = {path for other in beneath for path in (root / "levels" / level_of(other)).glob("*.py")}
    modules |= {*(root / SUPPORT).glob("*.py")}
    modules |= {*root.glob("levels_more/**/*.py")} if name in more_in(root) else set()
    modules |= imported_by(root, ast.Module([statement for cell in cells for statement in cell.body], []), modules)
    sources = [*(cell.source for cell in cells), *map(source_of, modules)]
    paths = modules | named_by(root, sources, list(texts.values()))
    files = [(p.relative_to(root).as_posix(), p.read_bytes().replace(b"\r\n", b"\n").hex()) for p in paths]
    keys = [(cell.source, blank_in(cell.source)) for cell in text.cells if cell.cell_type == "code"]
    fillings = [blanks.in_place(source, core_of(name), key) for source, key in keys if key]
    kept = answers.kept(root / answers.FOLDER)
    told = {key: kept.get(key) for source, _ in keys for key in answers.keys_in(source)}
    shown = [source_of(po_path(root, language, SHOWN)) for language in [language_of(name)] if language]
    return hash_of(essence(text), headings, sorted(files), told, *fillings, *shown)


def imported_by(root: Path, tree: ast.AST, modules: set[Path]) -> set[Path]:
    """Return the modules of PACKAGES that this tree and these modules import, also in functions, directly or not."""
    found = set()
    asked = set()
    waiting = imports_in(tree, "").union(*(imports_of(root, path) for path in modules))
    while waiting:
        asked |= waiting
        parts = [names for names in (module.split(".") for module in waiting) if names[0] in PACKAGES]
        places = {root.joinpath(*names[:depth]) for names in parts for depth in range(1, len(names) + 1)}
        files = {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
        new = {file for file in files - found if file.is_file()}  # others are names in a module
        found |= new
        waiting = set().union(*(imports_of(root, path) for path in new)) - asked
    return found


def imports_of(root: Path, path: Path) -> set[str]:
    return imports_in_source(source_of(path), ".".join(path.relative_to(root).parent.parts))


@functools.cache  # most modules are parsed again for the next notebook
def imports_in_source(source: str, package: str) -> set[str]:
    try:
        return imports_in(ast.parse(source), package)
    except SyntaxError:  # perhaps in a reader's own level; importing it shows the error
        return set()


def imports_in(tree: ast.AST, package: str) -> set[str]:
    """Return the modules, and the names in modules, that a tree in this package imports."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found |= {f"{home}.{alias.name}" for alias in node.names}
            if home == "course":
                found |= {OFFERED[alias.name] for alias in node.names if alias.name in OFFERED}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "course":
            found |= {OFFERED[node.attr]} if node.attr in OFFERED else set()
    return found


PAGES = "course", "author", "site", "pages"  # what the site shows decides no output of a notebook


def named_by(root: Path, sources: list[str], texts: list[str]) -> set[Path]:
    """Return the files in data/ and PACKAGES, but modules, whose name or folder is quoted in one of these sources.

    A file that no source or text of the project names is included too, because any module may read it. The pages of the
    site are left out.
    """
    every = [source_of(path) for package in (*PACKAGES, "levels") for path in root.glob(f"{package}/**/*.py")] + texts
    found = set()
    for folder in (root / part for part in ("data", *PACKAGES)):
        for path in {*folder.rglob("*")} - {*(root / answers.FOLDER).rglob("*")} - {*root.joinpath(*PAGES).rglob("*")}:
            beside = next((p for p in path.parents if p > folder and (p / "__init__.py").exists()), folder)
            within = path.relative_to(beside).parts
            if path.is_file() and path.suffix != ".py" and not any(part.startswith((".", "__")) for part in within):
                parts = within[0], within[-1]
                if any(quotes(s, *parts) for s in sources) or not any(quotes(s, *parts) for s in every):
                    found.add(path)
    return found


@functools.cache  # the next notebook asks the same of most sources
def quotes(source: str, *parts: str) -> bool:
    """Return whether a source has one of these parts of a path between quotes or slashes."""
    return any(re.search(rf"""["'/]{re.escape(part)}["'/]""", source) for part in parts)


def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def stale(root: Path, name: str, text, notebook) -> str:
    """Return why a notebook must be executed again, or ""."""
    if essence(notebook) != essence(text):
        return "its cells differ from its text"
    if notebook.metadata.get("course", {}).get("inputs") != inputs_of(root, name, text):
        return "its text, a level beneath, or what it uses of course/ or data/ changed since it ran"
    return ""
