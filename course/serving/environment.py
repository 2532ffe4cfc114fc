"""The server's own environment, `.course/serving`, which the first use makes."""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from course.setup.stage import held, stage

ROOT = Path(__file__).resolve().parents[2]
LOCK = Path(__file__).with_name("requirements.lock")
NEWEST = 3, 13  # the last Python that KServe is made for
MEGABYTES = 400  # of its environment, beside .venv


class ServingError(Exception):
    """What stands in the way, in a sentence."""


def place():
    """Where the environment is: in the course's folder, or where COURSE_SERVING says."""
    return Path(os.environ.get("COURSE_SERVING") or ROOT / ".course" / "serving")


def python():
    return place() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ready():
    """Whether the environment was finished from the lock as it is now."""
    stamp = place() / "course-stamp"
    return python().exists() and stamp.exists() and stamp.read_text() == digest()


def digest():
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def set_up():
    """Make the environment where it is not there. Raises ServingError, which says why that could not be done."""
    try:
        if not ready():
            make()
    except SystemExit as error:  # a step of the setup has said what is wrong; a notebook goes on
        raise ServingError(str(error)) from error


def make():
    """Make the environment, or make it anew where its lock has changed. The stamp is written last."""
    ROOT.joinpath(".course").mkdir(exist_ok=True)
    with open(ROOT / ".course" / "serving.lock", "a") as file:
        while not held(file):
            time.sleep(0.2)
        if ready():
            return  # somebody else has made it
        print(f"Setting up {place()}, the server's own environment (once; about {MEGABYTES} MB)", flush=True)
        uv, base = shutil.which("uv"), base_python()
        shutil.rmtree(place(), ignore_errors=True)
        venv = [uv, "venv", "--no-project", "--python", base] if uv else [base, "-m", "venv"]
        stage("making the environment", [*venv, str(place())])
        pip = [str(python()), "-m", "pip", "install", "--no-compile"]
        pip = [uv, "pip", "install", "--python", str(python())] if uv else pip
        stage("installing the server", [*pip, "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)])
        (place() / "course-stamp").write_text(digest())


def base_python():
    """A Python that KServe runs on: this one, or one that is here. uv finds or fetches one by itself."""
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
