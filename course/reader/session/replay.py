"""Restore the state of a notebook: its first cell silently runs the cells again up to where the reader stopped.

Cells that only time, draw or ask are left out, except the statements in them that assign a name which is read later.
"""

import ast
import re
import time
from pathlib import Path

from course.reader.exercises.blanks import try_blank
from course.reader.language import say
from course.reader.notebooks.cells import blank_in, title
from course.reader.notebooks.names import MINE, ROOT, core_of
from course.reader.notebooks.running import RAN, WRITTEN
from course.reader.notebooks.stored import read_notebook
from course.reader.session.stops import ASKED, heading, last_stop, read_json

TIMED = "nbval-ignore-output"  # the tag of a cell whose output differs from run to run
OFFERED = re.compile(r"course\.reader(\.figures.*)?")  # the modules from which a notebook imports such names
LEFT_OUT = (
    "figures.",
    "widgets.",
    "tour.",
    "walk.",
    "drawing.",
    "page.",
    "compare.",
    "checks.",
    "exercises.",
    "build.",
    "trail.",
    "timeit.",
    "time.",
)


def restore_state(name: str, root: Path = ROOT) -> bool:
    """If `course resume` asked for it, silently run the cells of this notebook again up to where the reader stopped.

    Returns whether it did.
    """
    path = root / MINE / ASKED
    if not path.exists() or read_json(path).get("name") != name:
        return False
    path.unlink(missing_ok=True)
    stop = last_stop(root)
    if stop is None or stop.name != name:
        return False
    from IPython import get_ipython
    from IPython.utils.capture import capture_output

    shell = get_ipython()
    cells = read_notebook(root, name, MINE).cells
    began = time.perf_counter()
    ran = 0
    left = 0
    for number, source in cells_to_rerun(cells, stop.cell):
        if not source:
            left += 1
            continue
        cell = cells[number]
        with capture_output():
            error = run_silently(shell, name, cell, source)
        if error:
            print(f"{title(number + 1, cell.source)} fails ({type(error).__name__}: {error}). Continue from there.")
            return True
        if cell.get("id"):
            RAN[cell.id] = cell.source
        ran += 1
    seconds = time.perf_counter() - began
    where = heading(cells, stop.cell)
    print(
        say(
            "Restored in {seconds} s: {ran} cells ran again, without {left} that only measure time, draw or ask.",
            seconds=f"{seconds:.1f}",
            ran=ran,
            left=left,
        )
    )
    after = title(stop.cell + 1, cells[stop.cell].source)
    print(say("Continue in the section “{where}”, after {after}.", where=where, after=after))
    return True


def run_silently(shell, name: str, cell, source: str) -> BaseException | None:
    """Run a cell again and return its error. A blank that fails while it runs gives none: the course's replaces it."""
    result = shell.run_cell(source, silent=True)
    if key := blank_in(cell.source):
        WRITTEN[key] = cell.source
        try_blank(cell.source, core_of(name), key, result.success)
        return result.error_before_exec
    return result.error_before_exec or result.error_in_exec


def cells_to_rerun(cells: list, last: int) -> list[tuple[int, str]]:
    """[(number, source to run)] of the code cells after the first one, up to cell `last`; the source "" runs nothing.

    In a left-out cell, a statement still runs if later code reads a name that it assigns, before assigning it again.
    """
    code = [k for k, cell in enumerate(cells) if cell.cell_type == "code"][1:]
    trees = {k: parsed(cells[k].source) for k in code}
    needed = set()
    plan = []
    for k in reversed(code):
        tree = trees[k]
        part = cells[k].source
        if k <= last and tree is not None and is_left_out(cells[k], tree):
            kept = []
            inner = set(needed)
            for statement in reversed(tree.body):
                if names_assigned(statement) & inner:
                    inner |= names_read(statement)
                    kept.insert(0, statement)
            part = "\n".join(map(ast.unparse, kept))
            tree = ast.Module(kept, [])
        if tree is not None:
            needed = (needed - names_assigned(tree)) | names_read(tree)
        if k <= last:
            plan.insert(0, (k, part))
    return plan


def parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:  # an IPython command, or a syntax error that the notebook shows
        return None


def is_left_out(cell, tree: ast.Module) -> bool:
    """Whether a cell times, draws, asks or builds."""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    drawn = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and OFFERED.fullmatch(node.module or "")
        for alias in node.names
    }
    return TIMED in cell.metadata.get("tags", []) or any(
        call.startswith(LEFT_OUT) or call.split(".")[0] in drawn for call in calls
    )


def names_assigned(tree: ast.AST) -> set[str]:
    """The names that a statement, or a module, assigns, defines or imports at the top level."""
    found = set()
    for node in tree.body if isinstance(tree, ast.Module) else [tree]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
            continue
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.add(each.id)
            elif isinstance(each, ast.alias):
                found.add((each.asname or each.name).split(".")[0])
    return found


def names_read(tree: ast.AST) -> set[str]:
    """The names that a statement, or a module, reads, also inside functions."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
