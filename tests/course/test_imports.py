"""What notebooks import from the top of `course`, and where its own files import. Who may import whom holds import-linter."""

import ast
import importlib
import re
import subprocess
import sys

import pytest

import course
from course.author.build import ROOT, environment

TEXTS = "\n".join(
    path.read_text(encoding="utf-8")
    for pattern in ("notebooks/**/text/*.py", "course/reader/programs/*/**/*.py")
    for path in sorted(ROOT.glob(pattern))
)


@pytest.mark.parametrize("name", course.OFFERED)
def test_what_is_offered_is_there_and_some_notebook_or_program_takes_it(name):
    module = importlib.import_module(course.OFFERED[name])
    assert getattr(course, name) is (module.where if name == "where" else module)
    assert re.search(rf"^from course import .*\b{name}\b", TEXTS, re.MULTILINE)


def test_what_is_not_offered_is_an_error():
    with pytest.raises(ImportError, match="cannot import name 'setup'"):
        exec("from course import setup")
    assert not hasattr(course, "setup")


def test_nothing_is_loaded_before_it_is_asked_for():
    """`python3 -m course` starts on Pythons that have no packages."""
    program = "import sys, course; print([name for name in sys.modules if name.startswith('course.')])"
    done = subprocess.run([sys.executable, "-c", program], env=environment(ROOT), capture_output=True, text=True)
    assert done.stdout == "[]\n", done


# What a function may import: the levels, which a reader's kernel takes from elsewhere once its notebook is known; packages
# that take long to import, or that not every environment has; modules that not every system or Python has.
LEVELS = {"levels", "levels_more"}
HEAVY = {
    "IPython",
    "PIL",
    "babel",
    "jupytext",
    "jupyter_client",
    "jupyter_core",
    "jupyter_server",
    "llvmlite",
    "nbclient",
    "nbformat",
}
HEAVY |= {"onnx", "playwright", "torch", "tqdm"}
NOT_EVERYWHERE = {"fcntl", "msvcrt", "resource", "tomllib", "importlib.metadata"}
# The command line loads what its command needs. The others stand where they are for a reason that is written there.
OWN = {"__main__.py", "commands.py", "author/setup/warmup.py", "teacher/sandbox/isolation.py", "author/bench/worker.py"}


def imports(path):
    """The modules that a file imports at its top, and those that its functions import."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    late = {node for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) for node in ast.walk(each)}
    found = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found[node in late].add(node.module)
        elif isinstance(node, ast.Import):
            found[node in late].update(alias.name for alias in node.names)
    return found


IMPORTS = {path.relative_to(ROOT / "course").as_posix(): imports(path) for path in (ROOT / "course").rglob("*.py")}


def test_a_function_imports_nothing_that_could_be_imported_at_the_top():
    late = {(name, module) for name, (_, inside) in IMPORTS.items() if name not in OWN for module in inside}
    assert [
        each for each in late if each[1] not in NOT_EVERYWHERE and each[1].split(".")[0] not in LEVELS | HEAVY
    ] == []


def test_the_course_starts_without_levels():
    early = {(name, module) for name, (top, _) in IMPORTS.items() for module in top if module.split(".")[0] in LEVELS}
    assert [name for name, _ in early if not name.startswith("author/bench/peers/")] == []  # each has its own process
