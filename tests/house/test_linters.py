"""Ruff, import-linter and deptry find nothing, by the rules in pyproject.toml: on the desk as in the lint job."""

import subprocess
import sys

import pytest

from course.author.build import ROOT, environment

LINTERS = {  # what runs it; a fault is told on its output
    "ruff check": ["-m", "ruff", "check", "--no-cache"],
    "ruff format": ["-m", "ruff", "format", "--check", "--no-cache"],
    "lint-imports": ["-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"],
    "deptry": ["-m", "deptry", "."],
}


@pytest.mark.parametrize("name", LINTERS)
def test_a_linter_finds_nothing(name):
    command = [sys.executable, *LINTERS[name]]
    done = subprocess.run(command, cwd=ROOT, env=environment(ROOT), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
