"""A wheelhouse: a folder with the locked packages, for computers without a network."""

import importlib.util
import json
import os
import shutil
import sys

from course.author.setup.environment import TEST, digest, version_text
from course.terminal.arguments import parser
from course.terminal.causes import machine
from course.terminal.stage import ROOT, fail, stage

LIST = "course-wheels.json"  # in a wheelhouse: the platform and the lock of its packages


def wheelhouse(arguments):
    """Download the locked packages, for computers without a network. LIST is removed first and written last."""
    folder = os.path.abspath(parser("wheelhouse").parse_args(arguments).folder or os.path.join(ROOT, "wheelhouse"))
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif uv:
        pip = [uv, "tool", "run", "--python", sys.executable, "pip"]
    else:
        fail(
            "Packages are downloaded with pip or uv, and neither is installed: "
            "install uv, or delete .venv and run setup."
        )
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(os.path.join(folder, LIST)):
        os.remove(os.path.join(folder, LIST))
    print(f"Downloading all packages for {machine(version_text(sys.version_info))} (about 360 MB)", flush=True)
    download = ["download", "--no-deps", "--only-binary", ":all:", "--dest", folder]
    stage("downloading packages", pip + download + ["-r", os.path.join(ROOT, TEST)])
    with open(os.path.join(folder, LIST), "w", encoding="utf-8") as file:
        json.dump({"system": machine(version_text(sys.version_info)), "lock": digest(TEST)}, file, indent=1)
    print(f"{folder} is complete. Setup uses it if it is the folder `wheelhouse` in the course's folder,")
    print("or if the environment variable COURSE_WHEELHOUSE holds its path. Python itself must be installed already.")
    return 0


def from_wheelhouse(version):
    """Return the installer's options for a wheelhouse. If it does not fit this Python, says why and returns []."""
    folder = os.path.expanduser(os.environ.get("COURSE_WHEELHOUSE") or os.path.join(ROOT, "wheelhouse"))
    try:
        with open(os.path.join(folder, LIST), encoding="utf-8") as file:
            made = json.load(file)
    except (OSError, ValueError):
        if os.path.isdir(folder) or "COURSE_WHEELHOUSE" in os.environ:
            print(f"{folder} is not used: it is not a complete wheelhouse", flush=True)
        return []
    here = {"system": machine(version), "lock": digest(TEST)}
    if made != here:
        what = made.get("system") if made.get("system") != here["system"] else "another version of the course"
        print(f"{folder} is not used: it is for {what}, and this is {here['system']}", flush=True)
        return []
    print(f"All packages come from {folder}, and none from the network", flush=True)
    return ["--no-index", "--find-links", folder]
