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


def imported_in_functions(path):
    """The modules that functions of a file import."""
    functions = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)
    ]
    found = set()
    for node in (each for function in functions for each in ast.walk(function)):
        if isinstance(node, ast.ImportFrom):
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_a_function_imports_nothing_that_could_be_imported_at_the_top():
    late = set()
    for path in sorted((ROOT / "course").rglob("*.py")):
        name = path.relative_to(ROOT / "course").as_posix()
        for module in imported_in_functions(path) - NOT_EVERYWHERE if name not in OWN else ():
            if module.split(".")[0] not in LEVELS | HEAVY:
                late.add((name, module))
    assert late == set()
