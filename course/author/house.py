"""The map of the packages: each room, its size, and the rooms that it imports, found in its import statements.

python3 -m course.author.house           print it
python3 -m course.author.house --write   write it into CONTRIBUTING.md
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


def in_page(text):
    """The map in the text of a page."""
    return text.split(FENCE)[1].split("```")[0]


if __name__ == "__main__":
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(FENCE)
        PAGE.write_text(before + FENCE + draw() + rest[rest.index("```") :], encoding="utf-8")
    print(draw(), end="")
