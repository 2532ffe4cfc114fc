"""Estimate the minutes of a notebook: words / 100 + new lines of code / 8 + 3.5 for each thing to do: a prediction, a
figure to move, a function to write, a comparison of levels, a walk through them.

`python3 -m course build --minutes` shows it by sections, and writes it beside the headings of the texts. The three
constants are fitted to the times of four readers, on the texts that they read. Measured, and counted by the rule:

    trail 142 and 152, counted 145 and 139
    01 115 and 119, counted 117 and 112; 02 107 and 114, counted 116 and 120
    03 129, counted 112; 04 108, counted 115; 05 109, counted 120

All but 03 lie within a tenth, and 03 is 13 % off. With the best constants that a search found, one of these nine times
is still 10.7 % off.

A line over 88 characters counts as two. Text in <details> does not count. In a new version of a function, only changed
lines count as new. A function that the reader writes at the depth *most*, instead of reading it, takes 2 minutes and
1.5 for each of its lines. Three readers took 229 minutes for 23 such functions of 118 lines.
"""

import ast
import re
from pathlib import Path
from typing import NamedTuple

from course.reader.files import replace
from course.reader.notebooks.blanks import function_of, names_in
from course.reader.notebooks.cells import BuildError, blank_in, code_of, first_line, most_in, read_text
from course.reader.notebooks.names import text_path, trail_in
from course.reader.notebooks.stored import from_text

# words and lines per minute, and the characters of a line that counts once
WORDS = 100
LINES = 8
WIDTH = 88
HEADING = re.compile(r"## (.+?)(?:(?: \(|（)(?:(\d+) (?:min|分钟))?(?:, )?(optional)?[)）])?")
# Sections of optional work.
UNTIMED = re.compile(r"Exercises|More of the same kind|Where to go from here|Build|\d\d-\d+ · .*")
SHOWS = ("page.source",)  # calls that show the source of their arguments
MOVES = "checks.predict", "widgets.explore", "compare.side_by_side", "walk.down"
TELLS = "checks.answer_to("  # the cell that tells an answer: its time is that of the question
DO = 3.5  # minutes for each thing to do
# at the depth *most*: minutes to write a function, and for each of its lines
WRITE = 2
WRITE_LINE = 1.5


class Section(NamedTuple):
    """A section of a notebook: its title, the minutes in its heading (0: none), and counts of what to read and do."""

    title: str
    promised: int
    optional: bool
    words: int = 0
    lines: int = 0
    moves: int = 0  # predictions, interactive figures, comparisons of levels and walks through them
    blanks: int = 0
    folded: int = 0  # lines of code in collapsed cells
    writes: tuple[str, ...] = ()  # the functions that a reader writes at the depth *most*
    more: float = 0.0  # the additional minutes at that depth

    @property
    def minutes(self) -> float:
        read = self.words / WORDS + (self.lines + self.folded) / LINES
        return read + DO * (self.moves + self.blanks)

    @property
    def rounded(self) -> int:
        return max(1, round(self.minutes))

    @property
    def at_most(self) -> float:
        """The section's minutes at the depth *most*."""
        return self.minutes + self.more

    @property
    def timed(self) -> bool:
        return not self.optional and not UNTIMED.fullmatch(self.title)

    def with_more(self, **more) -> "Section":
        return self._replace(**{name: getattr(self, name) + count for name, count in more.items()})


def sections(cells: list, root: Path) -> list[Section]:
    """Return the sections of a notebook's cells. The first, without a title, is the part before the first heading."""
    found = [Section("", 0, False)]
    reader = Reader(root)
    for cell in cells:
        if cell.cell_type == "code":
            found[-1] = found[-1].with_more(**reader.counted(cell))
            continue
        first, *rest = re.split(r"^(?=## )", unfolded(cell.source), flags=re.MULTILINE)
        found[-1] = found[-1].with_more(words=words(first))
        for part in rest:
            title, promised, optional = HEADING.fullmatch(part.split("\n")[0]).groups()
            found.append(Section(title, int(promised or 0), bool(optional), words=words(part)))
    return found


def total(found: list[Section]) -> float:
    """Return the minutes of a notebook, without its optional and its untimed sections."""
    return sum(section.minutes for section in found if section.timed)


def unfolded(text: str) -> str:
    """Return Markdown without its code blocks and its <details> elements."""
    return re.sub(r"^```.*?^```|^<details>.*?</details>", "", text, flags=re.MULTILINE | re.DOTALL)


def words(text: str) -> int:
    """Return the number of words in Markdown, without headings, code blocks and addresses."""
    text = re.sub(r"^#.*$", "", unfolded(text), flags=re.MULTILINE)
    return len([word for word in re.sub(r"\]\([^)]*\)", "]", text).split() if re.search(r"\w", word)])


def length(lines) -> int:
    return sum(1 + (len(line) > WIDTH) for line in lines)


class Reader:
    """Counts the code cells of a notebook in order, and records which definitions it has already shown."""

    def __init__(self, root: Path):
        self.root = root
        self.seen = {}  # {name of a function or class: the lines of its last version}
        self.imported = {}  # {name: its full name, such as "levels_more.hardware.gpu.device.launch_kernel"}

    def counted(self, cell) -> dict[str, int]:
        """Return the counts that a code cell adds to its section."""
        if key := blank_in(cell.source):
            return {"blanks": 1, "writes": (key,)}
        if cell.source.startswith(TELLS):
            return {}
        more = self.written_at_most(cell.source)
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:  # an IPython command, or a deliberate mistake
            return {"lines": length(cell.source.strip().split("\n"))}
        self.remember_imports(tree)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        moves = sum(ast.unparse(call.func) in MOVES for call in calls)
        lines = length(self.new_lines(cell.source, tree))
        shown = sum(self.source(each) for call in calls if ast.unparse(call.func) in SHOWS for each in call.args)
        if "hide-input" in cell.metadata.get("tags", []):
            return {"moves": moves, "lines": shown, "folded": 0 if moves else lines} | more
        return {"moves": moves, "lines": shown + lines} | more

    def written_at_most(self, source: str) -> dict:
        """Return what a cell adds if its function is a blank at the depth *most*."""
        key = most_in(source)
        if not key:
            return {}
        function = function_of(source, key, names_in(ast.parse(source).body))
        count = len(code_of(ast.unparse(function))) - 1
        return {"writes": (key,), "more": WRITE + (WRITE_LINE - 1 / LINES) * count}

    def new_lines(self, source: str, tree: ast.Module) -> list[str]:
        """Return the lines of code in a cell, without those in the previous version of the same function or class."""
        lines = code_of(source)
        old = set()
        for statement in tree.body:
            name = getattr(statement, "name", None)
            if name:
                held = {n for n in lines if statement.lineno <= n <= statement.end_lineno}
                old |= {n for n in held if lines[n] in self.seen.get(name, ())}
                self.seen[name] = {lines[n] for n in held}
        return [line for n, line in lines.items() if n not in old]

    def remember_imports(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                self.imported |= {each.asname: each.name for each in node.names if each.asname}

    def source(self, node: ast.expr) -> int:
        """Return the line count of the function or class that an expression names; 0 if the notebook has shown it."""
        first, *rest = ast.unparse(node).removesuffix(".__wrapped__").split(".")
        if first in self.seen:
            return 0
        package, *path = [*self.imported.get(first, first).split("."), *rest]
        folder = self.root / package
        while path and (folder / path[0]).is_dir():
            folder /= path.pop(0)
        files = sorted(folder.glob("*.py"))  # an `__init__.py` may import from any of them
        if path and folder / f"{path[0]}.py" in files:
            files = [folder / f"{path.pop(0)}.py"]
        if package == "levels_more":  # its `__init__.py` files also import from `levels` and other rooms
            files += sorted((self.root / "levels").rglob("*.py")) + sorted((self.root / package).rglob("*.py"))
        for file in files:
            if lines := lines_of(file.read_text(encoding="utf-8"), path):
                return length(lines)
        raise BuildError(f"{ast.unparse(node)}: no function or class is called so in {folder.relative_to(self.root)}")


def lines_of(text: str, names: list[str]) -> list[str]:
    """Return the lines of code of `f`, or of `C.f`, in a module's text; [] if it is not there."""
    statement = ast.parse(text)
    for name in names:
        statement = next((each for each in statement.body if getattr(each, "name", None) == name), None)
        if statement is None:
            return []
    if not names:
        return list(code_of(text).values())
    return [line for n, line in code_of(text).items() if first_line(statement) <= n <= statement.end_lineno]


def broken(found: list[Section]) -> list[str]:
    """Return a message for each heading whose minutes differ from the count."""
    kept = [each for each in found[1:] if not UNTIMED.fullmatch(each.title) and each.promised != each.rounded]
    return [
        f"{each.title}: {each.rounded} min are counted, the heading says {each.promised or 'none'}" for each in kept
    ]


def written(text: str, found: list[Section]) -> str:
    """Return a notebook's text with the counted minutes in its headings."""
    rest = iter(found[1:])

    def heading(match: re.Match) -> str:
        section = next(rest)
        if UNTIMED.fullmatch(section.title):
            return match[0]
        return f"# ## {section.title} ({section.rounded} min{', optional' * section.optional})"

    return re.sub(r"^# ## .+$", heading, text, flags=re.MULTILINE)


def table(name: str, found: list[Section]) -> str:
    """Return a table of the counts and minutes of a notebook's sections."""
    lines = [f"{name:<46} words lines moves blanks folded minutes"]
    for each in found:
        title = each.title + " (optional)" * each.optional + " (untimed)" * bool(UNTIMED.fullmatch(each.title))
        counts = f"{each.words:>5} {each.lines:>5} {each.moves:>5} {each.blanks:>6} {each.folded:>6}"
        lines.append(f"  {title:<44} {counts} {each.minutes:>7.1f}")
    folded = sum(each.folded for each in found if each.timed)
    return "\n".join(
        [*lines, f"  {'in all, without what is optional or untimed':<67} {folded:>6} {total(found):>7.1f}"]
    )


def write(root: Path, names: list[str]) -> None:
    """Write the minutes of these notebooks into their headings, and print the table of each."""
    for name in names:
        path = text_path(root, name)
        found = sections(from_text(root, name).cells, root)
        print(table(name, found))
        replace(root, {path: written(read_text(path), found)})


def minutes_of(root: Path, name: str) -> int:
    """Return a notebook's counted minutes, without optional sections, rounded once (headings round each section)."""
    return round(total(sections(from_text(root, name).cells, root)))


def trail_takes(root: Path) -> int:
    """Return the minutes of the whole trail, the sum of those in its rows."""
    return sum(minutes_of(root, name) for name in trail_in(root))
