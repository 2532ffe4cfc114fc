"""Where a reader stopped, what stood then, and how its state comes back in seconds.

On the reader's desk every cell that runs is noted, the last one of each notebook. `python3 -m course resume` tells it with three
ideas, and asks for its state. The next first cell of that notebook then runs again what ran up to there, in silence.
What only times, draws or asks is left out; of such a cell those statements run that give a name which is read later.
"""

import ast
import contextlib
import hashlib
import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from course.builder.cells import BuildError, blank_in, title
from course.builder.files import replace
from course.builder.names import MINE, ROOT, core_of, names_in, trail_in
from course.builder.notebooks import from_text, read_notebook
from course.builder.session import RAN, WRITTEN

# in `mine`: the last cell of each notebook; what to bring back
STOPPED, ASKED = ".course/stopped.json", ".course/resume.json"
STOP = re.compile(r"\*\*A good place to stop\.\*\*\s+(.+?)(?:\n\s*\n|\Z)", re.DOTALL)
TIMED = "nbval-ignore-output"  # the tag of a cell whose output is another one each time
LEFT_OUT = (
    "figures.",
    "widgets.",
    "great.",
    "tour.",
    "drawing.",
    "page.",
    "compare.",
    "checks.",
    "exercises.",
    "build.",
)
LEFT_OUT += "trail.", "timeit.", "time."


class Stop(NamedTuple):
    """Where a reader stopped: in a notebook, after the cell of that number, counted from 0."""

    name: str
    cell: int
    when: datetime


# Noted while the reader works.


def note(name: str, cell_id: str | None, source: str, root: Path = ROOT) -> None:
    """This cell ran last. A full disk only costs the place."""
    path = root / MINE / STOPPED
    noted = {"cell": cell_id, "source": hash_of(source), "when": datetime.now().isoformat(timespec="seconds")}
    others = {other: each for other, each in held(path).items() if other != name}
    with contextlib.suppress(OSError):
        replace(root, {path: json.dumps(others | {name: noted}, indent=1)})  # the newest stands last


def hash_of(source: str) -> str:
    return hashlib.sha256(source.strip().encode()).hexdigest()


def held(path: Path) -> dict:
    """What a file of ours holds; nothing where it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def stopped(root: Path = ROOT) -> Stop | None:
    """Where the reader ran a cell last, of all notebooks; None where that is not known, or not there any more."""
    for name, each in reversed(held(root / MINE / STOPPED).items()):
        with contextlib.suppress(BuildError, LookupError, ValueError, TypeError):
            cells = read_notebook(root, name, MINE).cells
            same = [k for k, cell in enumerate(cells) if cell.get("id") == each["cell"]]
            same += [k for k, cell in enumerate(cells) if hash_of(cell.source) == each["source"]]
            if same:
                return Stop(name, same[0], datetime.fromisoformat(each["when"]))
    return None


# What stood then.


def ideas(root: Path, stop: Stop) -> list[str]:
    """Three sentences: what stood at the last stopping points, up to where the reader stopped."""
    found = told(read_notebook(root, stop.name, MINE).cells[: stop.cell + 1])
    way = trail_in(root) if stop.name in trail_in(root) else names_in(root)
    for name in reversed([each for each in way if each < core_under(root, stop.name)]):
        if len(found) >= 3:
            break
        found = told(from_text(root, name).cells) + found
    return found[-3:]


def core_under(root: Path, name: str) -> str:
    """A notebook of the trail or of the five itself; of another one the core after the one that it branches off from."""
    if name in trail_in(root) + names_in(root):
        return name
    return name.split("/")[-1][:2] + "~"


def told(cells: list) -> list[str]:
    """What stands at a notebook's stopping points, without the questions that lead on. Other sentences lean on their page."""
    found = [each for cell in cells if cell.cell_type == "markdown" for each in STOP.findall(cell.source)]
    return [re.sub(r"(?<=[.!]) [^.!]*\?$", "", plain(" ".join(each.split()))) for each in found]


def plain(text: str) -> str:
    """Markdown as a terminal shows it: words without stars, links without addresses."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return re.sub(r"(?<![\w*])(\*\*?)(?=\S)([^*`]+?)(?<=\S)\1(?![\w*])", r"\2", text)


def heading(cells: list, number: int) -> str:
    """The title of the section in which a cell stands."""
    found = [m for cell in cells[: number + 1] if cell.cell_type == "markdown" for m in HEADINGS.findall(cell.source)]
    return re.sub(r" \((\d+ min)?(, )?(optional)?\)$", "", found[-1]) if found else ""


HEADINGS = re.compile(r"^##+ (.+)$", re.MULTILINE)


# The state comes back, in the reader's kernel.


def bring_back(name: str, root: Path = ROOT) -> bool:
    """If `course resume` asked for it: run what ran in this notebook before, up to where the reader stopped, in silence.

    Returns whether it did.
    """
    path = root / MINE / ASKED
    if not path.exists() or held(path).get("name") != name:
        return False
    path.unlink(missing_ok=True)
    stop = stopped(root)
    if stop is None or stop.name != name:
        return False
    from IPython import get_ipython
    from IPython.utils.capture import capture_output

    shell, cells, began = get_ipython(), read_notebook(root, name, MINE).cells, time.perf_counter()
    ran, left = 0, 0
    for number, source in again(cells, stop.cell):
        if not source:
            left += 1
            continue
        cell = cells[number]
        with capture_output():
            error = run_silently(shell, name, cell, source)
        if error:
            print(f"{title(number + 1, cell.source)} fails ({type(error).__name__}: {error}): go on from there.")
            return True
        if cell.get("id"):
            RAN[cell.id] = cell.source
        ran += 1
    seconds = time.perf_counter() - began
    where = heading(cells, stop.cell)
    print(f"Brought back in {seconds:.1f} s: {ran} cells, without {left} that only time, draw or ask.")
    print(f"Go on in “{where}”, after {title(stop.cell + 1, cells[stop.cell].source)}.")
    return True


def run_silently(shell, name: str, cell, source: str) -> BaseException | None:
    """Run a cell of this notebook again. Returns its error; of a blank none, for the course's own stands there then."""
    result = shell.run_cell(source, silent=True)
    if key := blank_in(cell.source):
        from course.practice.exercises.blanks import try_blank

        WRITTEN[key] = cell.source
        try_blank(cell.source, core_of(name), key, result.success)
        return result.error_before_exec
    return result.error_before_exec or result.error_in_exec


def again(cells: list, last: int) -> list[tuple[int, str]]:
    """(number, what to run again) of the code cells behind the first one, up to the last that ran; "" for nothing.

    A name is needed if a later cell reads it before another one gives it anew.
    """
    code = [k for k, cell in enumerate(cells) if cell.cell_type == "code"][1:]
    trees, needed, plan = {k: parsed(cells[k].source) for k in code}, set(), []
    for k in reversed(code):
        tree, part = trees[k], cells[k].source
        if k <= last and tree is not None and is_left_out(cells[k], tree):
            kept, inner = [], set(needed)
            for statement in reversed(tree.body):
                if bound(statement) & inner:
                    inner |= read(statement)
                    kept.insert(0, statement)
            part, tree = "\n".join(map(ast.unparse, kept)), ast.Module(kept, [])
        if tree is not None:
            needed = (needed - bound(tree)) | read(tree)
        if k <= last:
            plan.insert(0, (k, part))
    return plan


def parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:  # a command of IPython, or a mistake that is shown
        return None


def is_left_out(cell, tree: ast.Module) -> bool:
    """Whether a cell times, draws, asks or builds."""
    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    drawn = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("course.figures", "course.practice"))
        for alias in node.names
    }
    return TIMED in cell.metadata.get("tags", []) or any(
        call.startswith(LEFT_OUT) or call.split(".")[0] in drawn for call in calls
    )


def bound(tree: ast.AST) -> set[str]:
    """The names that a statement gives at the top level."""
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


def read(tree: ast.AST) -> set[str]:
    """The names that a statement reads, inside functions too."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


# The command.


def follows(root: Path, name: str) -> str:
    """The notebook after this one: the trail, then the five. After the last of them, and beside them, itself."""
    way = trail_in(root) + names_in(root)
    at = way.index(name) + 1 if name in way else len(way)
    return way[at] if at < len(way) else name


def next_step(root: Path) -> str:
    """What the reader goes on with, in a line."""
    stop = stopped(root)
    if stop is None:
        return f"Next: {MINE}/{(trail_in(root) + names_in(root))[0]}.ipynb, with `python3 -m course lab --trail`."
    if at_the_end(root, stop):
        name = follows(root, stop.name)
        if name == stop.name:
            return f"You have been through {MINE}/{name}.ipynb; {MINE}/map.md shows what branches off."
        return f"Next: {MINE}/{name}.ipynb, with `python3 -m course resume`."
    return f"Next: on in {MINE}/{stop.name}.ipynb, with `python3 -m course resume`."


def at_the_end(root: Path, stop: Stop) -> bool:
    """Whether the cell that ran last is a notebook's last one."""
    cells = read_notebook(root, stop.name, MINE).cells
    return stop.cell == [k for k, cell in enumerate(cells) if cell.cell_type == "code"][-1]


def main(root: Path = ROOT) -> tuple[str, str]:
    """What to tell the reader who comes back, and the notebook to open. Asks for the state if there is one to bring back."""
    stop = stopped(root)
    path = root / MINE / ASKED
    path.unlink(missing_ok=True)
    if stop is None:
        name = (trail_in(root) + names_in(root))[0]
        return "No cell has run on your desk yet: here is the beginning.", name
    cells = read_notebook(root, stop.name, MINE).cells
    lines = [f"You stopped in {MINE}/{stop.name}.ipynb, {ago(stop.when)}, in “{heading(cells, stop.cell)}”:"]
    found = ideas(root, stop)
    lines.append(f"cell {stop.cell + 1} of {len(cells)}." + " What stands:" * bool(found))
    lines += [f"  - {idea}" for idea in found]
    if at_the_end(root, stop):
        name = follows(root, stop.name)
        news = "Next" if name != stop.name else "That was the last one"
        return "\n".join([*lines, f"You have been through it. {news}: {MINE}/{name}.ipynb"]), name
    replace(root, {path: json.dumps({"name": stop.name})})
    lines.append("Run its first cell: what ran up to there runs again, without what times, draws or asks.")
    return "\n".join(lines), stop.name


def ago(when: datetime) -> str:
    """How long ago that was, in words."""
    days = (datetime.now().date() - when.date()).days
    return f"{days} days ago" if days > 1 else "yesterday" if days == 1 else f"today at {when:%H:%M}"
