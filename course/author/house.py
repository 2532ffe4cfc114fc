"""The maps of the packages and of `course`: each room, its size, and the rooms that it imports, found in its imports.

python3 -m course.author.house           print them
python3 -m course.author.house --write   write them into CONTRIBUTING.md
"""

import ast
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
FENCE = "```text\n"  # the line before a map in the page
LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"
MAPS = (  # the parts of each map, the lowest first; a room is a folder or a file in a part
    ("levels", "levels_more"),
    ("course.terminal", "course.reader", "course.author", "course.teacher"),
)
PARTS = [part for parts in MAPS for part in parts]
FRONTS = [f"{package}.{level}" for package in MAPS[0] for level in LEVELS]  # they hand on names of other rooms


def imports_of(path, root=ROOT):
    """[(imported module, names)] of a file's imports."""
    package = ".".join(path.relative_to(root).parent.parts)
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            found.append((module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
    return found


def files_of(room, root=ROOT):
    """The files of a room, of "levels.hardware" or "course.reader.checks"."""
    folder = root.joinpath(*room.split("."))
    return sorted(folder.rglob("*.py")) or [folder.with_suffix(".py")]


def rooms_in(part, root=ROOT):
    """The rooms of a part, in the order of the alphabet."""
    folder = root.joinpath(*part.split("."))
    paths = [path for path in sorted(folder.iterdir()) if path.suffix == ".py" or any(path.glob("*.py"))]
    return [f"{part}.{path.stem}" for path in paths if path.stem != "__init__"]


def arrows(root=ROOT):
    """{room: the rooms that it imports}."""
    rooms = [room for part in PARTS for room in rooms_in(part, root)]
    found = {}
    for room in rooms:
        fronts = [root.joinpath(*room.split("."), "__init__.py")] if room in FRONTS else []
        imports = [each for path in files_of(room, root) if path not in fronts for each in imports_of(path, root)]
        names = {f"{name}." for module, names in imports for name in (module, *(f"{module}.{each}" for each in names))}
        found[room] = {each for each in rooms if each != room and any(name.startswith(f"{each}.") for name in names)}
    return found


def draw(parts, leads, root=ROOT):
    """A map as text: for each part its rooms, each after those that it imports."""
    lines = []
    for part in parts:
        lines.append(part.removeprefix("course."))
        waiting = rooms_in(part, root)
        while waiting:  # ends, because no two rooms import each other
            room = next(each for each in waiting if not leads[each] & {*waiting})
            waiting.remove(room)
            lines.append(line_of(room, part, leads[room], root))
    return "\n".join(lines) + "\n"


def line_of(room, part, leads, root):
    """The line of a room: its files, their lines, the rooms of its own part that it imports, and the other parts."""
    files = files_of(room, root)
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    own = sorted(each.removeprefix(f"{part}.") for each in leads if each.startswith(f"{part}."))
    other = [each for each in PARTS if each != part and any(lead.startswith(f"{each}.") for lead in leads)]
    imports = " ".join(own + [f"({each.removeprefix('course.')})" for each in other]) or "nothing"
    name = room.removeprefix(f"{part}.")
    return f"  {name:12} {len(files):3} file{'s' if len(files) > 1 else ' '} {count:6,} lines   imports {imports}"


def with_maps(text, root=ROOT):
    """The text of a page with the maps in place of its own. Raises ValueError unless it has one place for each."""
    leads = arrows(root)
    before, *rest = text.split(FENCE)
    drawn = [draw(parts, leads, root) + after[after.index("```") :] for parts, after in zip(MAPS, rest, strict=True)]
    return FENCE.join([before, *drawn])


if __name__ == "__main__":
    page = with_maps(PAGE.read_text(encoding="utf-8"))
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    print(*(after.split("```")[0] for after in page.split(FENCE)[1:]), sep="\n", end="")
