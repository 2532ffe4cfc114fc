"""The server's separate environment, `.course/serving`, which is made at the first use."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from course.terminal.stage import stage, try_lock

ROOT = Path(__file__).resolve().parents[3]
LOCK = Path(__file__).with_name("requirements.lock")
NEWEST = 3, 13  # the newest Python that KServe supports
MEGABYTES = 400  # the size of its environment, without .venv


class ServingError(Exception):
    """An error in serving. Its message is one sentence."""


def place():
    """Return the environment's folder: that of COURSE_SERVING, or one in the course's folder."""
    return Path(os.path.expanduser(os.environ.get("COURSE_SERVING") or ROOT / ".course" / "serving"))


def python():
    return place() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ready():
    """Return whether the environment is complete and matches the current lock."""
    stamp = place() / "course-stamp"
    return python().exists() and stamp.exists() and stamp.read_text() == digest()


def digest():
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def set_up():
    """Make the environment if it is not ready. Raises ServingError, with the cause, if that fails."""
    try:
        if not ready():
            make()
    except SystemExit as error:  # raised by a step of the setup; it must not end a notebook's kernel
        raise ServingError(str(error)) from error


def make():
    """Make the environment, or remake it if its lock has changed. The stamp is written last."""
    ROOT.joinpath(".course").mkdir(exist_ok=True)
    with open(ROOT / ".course" / "serving.lock", "a") as file:
        while not try_lock(file):
            time.sleep(0.2)
        if ready():
            return  # another process has made it
        print(f"Setting up {place()}, the server's own environment (once; about {MEGABYTES} MB)", flush=True)
        uv = shutil.which("uv")
        base = base_python()
        shutil.rmtree(place(), ignore_errors=True)
        venv = [uv, "venv", "--no-project", "--python", base] if uv else [base, "-m", "venv"]
        stage("making the environment", [*venv, str(place())])
        pip = [str(python()), "-m", "pip", "install", "--no-compile"]
        pip = [uv, "pip", "install", "--python", str(python())] if uv else pip
        stage("installing the server", [*pip, "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)])
        (place() / "course-stamp").write_text(digest())


def base_python():
    """Return a Python that KServe runs on: this, one that uv finds, or one on PATH. Raises ServingError."""
    if sys.version_info[:2] <= NEWEST:
        return getattr(sys, "_base_executable", None) or sys.executable
    if shutil.which("uv"):
        return "{}.{}".format(*NEWEST)
    for minor in range(NEWEST[1], 10, -1):
        found = shutil.which(f"python3.{minor}")
        if found and not subprocess.run([found, "-c", "import ensurepip"], capture_output=True).returncode:
            return found
    here = "{}.{}".format(*sys.version_info)
    raise ServingError(
        f"KServe runs on Python 3.11 to 3.13, and this is {here}: also install one of these versions, or uv"
    )
