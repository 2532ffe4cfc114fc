"""Run chapter 3 of two books as it is printed, statement by statement, and count the statements that run.

    git clone https://github.com/lyhue1991/eat_tensorflow2_in_30_days
    git clone https://github.com/lyhue1991/eat_pytorch_in_20_days
    python3 -m course programs --books .                              on levels_more
    python3 -m course programs --books . --real --python torchkeras=PYTHON --python tensorflow=PYTHON

With `--real` they also run on the real libraries, and the counts are stored in books.json. Nothing of the books' text
is stored. Their code cells run as they are, with three changes: the import lines name `levels_more`; the lines of
IPython, such as `%matplotlib inline`, are left out; and a call that names its number of epochs gets at most 4. A
statement that fails is counted, and the next one runs.

The PyTorch book's code asks for NumPy, pandas, matplotlib, torchkeras and torchmetrics, that of TensorFlow's for NumPy,
pandas, matplotlib and TensorFlow.
"""

import ast
import contextlib
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

from course.author.bench.libraries import python_of
from course.author.programs.processes import as_they_end, in_process
from course.reader import files
from course.reader.programs import BESIDE, FOLDER, here, version_of

STORED = FOLDER / "books.json"
BOOKS = {  # library: (the book, the pattern of the file of a section)
    "torchkeras": ("eat pytorch in 20 days", "3-{},*.ipynb"),
    "tensorflow": ("eat tensorflow2 in 30 days", "english/Chapter3-{}.md"),
}
MOST_EPOCHS = 4  # for each call that names its number of epochs
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IPYTHON = re.compile(r"^[%!].*$", re.MULTILINE)
WORKER = "from course.author.programs import books; books.answer()"


class Section(NamedTuple):
    """A section of a book: 3-1, 3-2 or 3-3."""

    library: str  # the one that it is written for, a key of BOOKS
    name: str  # "3-1"
    file: Path


def sections(folder):
    """Return the sections of all clones that are this folder or lie in it. Raises SystemExit if there is none."""
    folder = Path(folder)
    places = [folder, *sorted(place for place in folder.glob("*") if place.is_dir())]
    found = []
    for library, (_, pattern) in BOOKS.items():
        for place in places:
            files_of = [(k, [*place.glob(pattern.format(k))]) for k in (1, 2, 3)]
            found += [Section(library, f"3-{k}", file) for k, some in files_of for file in some]
    if not found:
        addresses = " and ".join(f"https://github.com/lyhue1991/{b[0].replace(' ', '_')}" for b in BOOKS.values())
        raise SystemExit(f"{folder} holds no clone of the books: `git clone` {addresses} into it")
    return found


def cells(file):
    """Return the texts of the code cells of a notebook, or of the Python blocks of a Markdown page."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return FENCE.findall(text)
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def edition(file):
    """Return "2024-09-11 (commit 9e48ab69)", the last commit that changed this file; "" if it is in no clone."""
    ask = ["git", "-C", str(file.parent), "log", "-1", "--format=%cs (commit %h)", "--abbrev=8", "--", file.name]
    with contextlib.suppress(OSError):
        return subprocess.run(ask, capture_output=True, text=True).stdout.strip()
    return ""


class Changes(ast.NodeTransformer):
    """What is changed in the book's statements: the number of epochs, and imports if `spelled`."""

    def __init__(self, spelled):
        self.spelled = spelled

    def visit_Import(self, node):
        return ast.parse(here(ast.unparse(node))).body if self.spelled else node

    visit_ImportFrom = visit_Import

    def visit_keyword(self, node):
        if node.arg == "epochs" and isinstance(node.value, ast.Constant):
            node.value.value = min(node.value.value, MOST_EPOCHS)
        return node


def count(texts, spelled):
    """Run the statements of these cells in one namespace. Return {"statements": their number, "failed": […]}.

    failed: "cell 22: NameError: …" for each that failed; cells are counted from 1.
    """
    space = {"__name__": "__main__"}
    told = {"statements": 0, "failed": []}
    for number, text in enumerate(texts, 1):
        text = IPYTHON.sub("", text)
        name = f"cell {number}"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name  # `tf.function` reads its source
        for statement in ast.parse(text, name).body:
            changed = ast.Module([*as_list(Changes(spelled).visit(statement))], [])
            told["statements"] += 1
            try:
                exec(compile(ast.fix_missing_locations(changed), name, "exec"), space)
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                told["failed"].append(f"{name}: {type(error).__name__}: {lines[0]:.150}")
    return told


def as_list(found):
    return found if isinstance(found, list) else [found]


def answer():
    """Print the JSON that `compare` reads. The cells are read from stdin as JSON, the library from the arguments."""
    library, spelled = sys.argv[1], sys.argv[2] == "levels_more"
    warnings.simplefilter("ignore")
    os.environ["MPLBACKEND"] = "agg"
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        os.chdir(folder)
        told = count(json.load(sys.stdin), spelled)
        os.chdir(before)
    if not spelled:
        told["version"] = " with ".join(f"{name} {version_of(name)}" for name in (library, BESIDE[library]))
    print(json.dumps(told))


def compare(folder, given=None):
    """Run all sections on levels_more and, if `given` holds Pythons, on the real libraries, too. Return the status."""
    found = sections(folder)
    homes = ["levels_more"] if given is None else ["levels_more", "real"]
    asked = [(section, home) for section in found for home in homes]

    def run(pair):
        section, home = pair
        python = sys.executable if home == "levels_more" else python_of(section.library, given)
        start = time.perf_counter()
        told = in_process(WORKER, json.dumps(cells(section.file)), python, section.library, home)
        return told | {"seconds": round(time.perf_counter() - start)}

    results = {}
    for (section, home), told in as_they_end(run, asked):
        results.setdefault(section, {})[home] = told
        print(f"{BOOKS[section.library][0]} {section.name} on {told.get('version', home)}:", line_of(told), flush=True)
    for home in homes:
        print(f"on {home}:", total([each[home] for each in results.values()]))
    skipped = any("skipped" in told for each in results.values() for told in each.values())
    if given is not None and not skipped:
        rows = {f"{section.library} {section.name}": row_of(section, results[section]) for section in found}
        files.write(STORED, json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return int(skipped)


def line_of(told):
    if "skipped" in told:
        return told["skipped"]
    ran = told["statements"] - len(told["failed"])
    return "\n    ".join([f"{ran} of {told['statements']} statements run, {told['seconds']} s", *told["failed"]])


def total(results):
    """Return "649 of 653 statements run"; sections that did not run at all are not counted."""
    results = [told for told in results if "skipped" not in told]
    statements = sum(told["statements"] for told in results)
    return f"{statements - sum(len(told['failed']) for told in results)} of {statements} statements run"


def table(stored):
    """Return the rows of the page's table: section, last commit, statements, and those that fail here and there."""
    rows = []
    for name, each in stored.items():
        library, section = name.split()
        failed = [len(each[home]["failed"]) for home in ("levels_more", "real")]
        here_and_there = " | ".join(f"all but {number}" if number else "all" for number in failed)
        first = f"{BOOKS[library][0]} {section} | {each['edition']} | {each['levels_more']['statements']}"
        rows.append(f"| {first} | {here_and_there} |")
    return rows


def row_of(section, results):
    """Return what is stored of a section: counts, errors and versions."""
    kept = {home: {k: v for k, v in told.items() if k != "seconds"} for home, told in results.items()}
    return {"edition": edition(section.file), **kept}
