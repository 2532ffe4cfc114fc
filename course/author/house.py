"""The maps of the packages and of `course`: each room, its size, and the rooms that it imports, found in its imports.

python3 -m course.author.house           print them
python3 -m course.author.house --write   write them into CONTRIBUTING.md
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
FENCE = "```text\n"  # the line before the map in the page
LEVELS = "hardware", "kernels", "low_level", "mid_level", "high_level"
ROOMS = {  # each package's rooms; which may import which, import-linter holds
    "levels": ("support", *LEVELS),
    "levels_more": (
        "hardware",
        "kernels",
        "low_level",
        "compiler",
        "mid_level",
        "high_level",
        "saving",
        "distributed",
        "torch",
        "tensorflow",
        "torchmetrics",
        "torchkeras",
    ),
}


def room_of(module):
    """The first two parts of a module's name: its room, "levels_more.mid_level", or itself, "levels_more.checks"."""
    package, *rest = module.split(".")
    return ".".join([package, *rest[:1]])


def imports_of(path, root=ROOT):
    """[(imported module, names)] of a file's imports from the two packages."""
    here = path.relative_to(root).with_suffix("").parts
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = list(here[: len(here) - node.level]) if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            found.append((module, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
    return [each for each in found if each[0].split(".")[0] in ROOMS]


def arrows(root=ROOT):
    """{room: the rooms that it imports}.

    The `__init__.py` of each level is left out, because it re-exports names of other rooms.
    """
    found = defaultdict(set)
    for package in ROOMS:
        fronts = {root / package / level / "__init__.py" for level in LEVELS}
        for path in {*(root / package).rglob("*.py")} - fronts:
            here = room_of(".".join(path.relative_to(root).with_suffix("").parts))
            for module, names in imports_of(path, root):
                targets = [module]
                if module in ROOMS:
                    targets = [f"{module}.{name}" for name in names if (root / module / name).is_dir()] or [module]
                found[here] |= {*map(room_of, targets)} - {here}
    return found


def draw(root=ROOT):
    """The map as text: one line per room, the lowest first."""
    leads = arrows(root)
    lines = []
    for package, rooms in ROOMS.items():
        lines += [package, *(_line(root, package, room, leads[f"{package}.{room}"]) for room in rooms)]
    return "\n".join(lines) + "\n"


def _line(root, package, room, leads):
    """The line of a room: its number of files, their lines of text, and the rooms of both packages that it imports."""
    files = sorted((root / package / room).rglob("*.py"))
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    beneath = [each for each in ROOMS[package] if f"{package}.{each}" in leads]
    other = [f"levels.{each}" for each in ROOMS["levels"] if package != "levels" and f"levels.{each}" in leads]
    return f"  {room:17} {len(files):3} files {count:6,} lines   imports {' '.join(beneath + other) or 'nothing'}"


DOORS = "terminal", "reader", "author", "teacher"  # the parts of `course`, the lowest first


def course_arrows(root=ROOT):
    """{room of `course`: the rooms that it imports}; a room is a folder or a file behind a door: "reader.checks"."""
    found = {}
    for door in DOORS:
        for path in sorted((root / "course" / door).rglob("*.py")):
            parts = path.relative_to(root / "course").with_suffix("").parts
            here = ".".join(parts[:2])
            if parts[1] == "__init__":
                continue
            found.setdefault(here, set())
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course."):
                    modules = [f"{node.module}.{alias.name}" for alias in node.names]
                    found[here] |= {".".join(module.split(".")[1:3]) for module in modules} - {here}
    return found


def draw_course(root=ROOT):
    """The map of `course` as text: for each door its rooms, each after those that it imports."""
    leads = course_arrows(root)
    lines = []
    for door in DOORS:
        lines.append(door)
        waiting = [room for room in leads if room.startswith(door + ".")]
        while waiting:  # ends, because no two rooms import each other
            room = next(each for each in waiting if not leads[each] & {*waiting})
            waiting.remove(room)
            lines.append(_line_of_course(root, room, leads[room]))
    return "\n".join(lines) + "\n"


def _line_of_course(root, room, leads):
    """The line of a room: its files, their lines, the rooms of its own door that it imports, and the other doors."""
    door, name = room.split(".")
    folder = root / "course" / door / name
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    own = sorted(each.split(".")[1] for each in leads if each.startswith(door + "."))
    other = [each for each in DOORS if each != door and any(lead.startswith(each + ".") for lead in leads)]
    imports = " ".join(own + [f"({each})" for each in other]) or "nothing"
    return f"  {name:12} {len(files):3} file{'s' if len(files) > 1 else ' '} {count:6,} lines   imports {imports}"


def in_page(text, number=1):
    """The map in the text of a page: the first of the packages, the second of `course`."""
    return text.split(FENCE)[number].split("```")[0]


def with_maps(text, *maps):
    """The text of a page with these maps in place of its own. Raises ValueError unless it has one place for each."""
    before, *parts = text.split(FENCE)
    drawn = [made + part[part.index("```") :] for made, part in zip(maps, parts, strict=True)]
    return FENCE.join([before, *drawn])


if __name__ == "__main__":
    maps = draw(), draw_course()
    if "--write" in sys.argv:
        PAGE.write_text(with_maps(PAGE.read_text(encoding="utf-8"), *maps), encoding="utf-8")
    print("\n".join(maps), end="")
