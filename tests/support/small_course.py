"""A small course: the door `python3 -m course`, and locks that name one tiny wheel, so that a `.venv` is made in seconds."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile

from course.author.build import ROOT

# What `python3 -m course` needs before there is an environment.
FILES = (
    *("__init__", "__main__", "commands", "author/__init__"),
    *(f"author/setup/{name}" for name in ("__init__", "environment", "making", "wheelhouse")),
    *(f"terminal/{name}" for name in ("__init__", "arguments", "causes", "kinds", "stage")),
)
LOCKS = ("requirements.lock", "requirements-test.lock")
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)
WHEEL = "tiny-1.0-py3-none-any.whl"


def made(root):
    """Make it in this folder. The wheel lies beside the locks."""
    (root / "course" / "author" / "setup").mkdir(parents=True)
    (root / "course" / "terminal").mkdir()
    for name in (*(f"course/{name}.py" for name in FILES), "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    with zipfile.ZipFile(root / WHEEL, "w") as wheel:
        wheel.writestr("tiny.py", "answer = 42\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256((root / WHEEL).read_bytes()).hexdigest()
    for lock in LOCKS:
        (root / lock).write_text(f"./{WHEEL} --hash=sha256:{digest}\n", encoding="utf-8")
    return root


def open_door(root, *arguments, change="", path="", python=BASE_PYTHON, flags=("-I", "-S"), **environment):
    """Run the door with the standard library alone; `change` is code that alters its constants first."""
    program = f"""
import os, sys
sys.path.insert(0, {str(root)!r})
import course.__main__ as door
from course import commands
from course.author.setup import environment, making
from course.terminal import stage
{change}
sys.exit(door.main({list(arguments)!r}))
"""
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
    home = {"HOME": str(root.parent), "USERPROFILE": str(root.parent), "PATH": path, "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        [python, *flags, "-c", program],
        env={**kept, **home, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
