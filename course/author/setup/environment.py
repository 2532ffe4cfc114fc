"""Find a usable environment: a complete `.venv` that matches the lock, or an activated one with all packages."""

import hashlib
import json
import os
import re
import sys

from course.terminal.stage import ROOT, fail

PYTHONS = (3, 11), (3, 14)  # the oldest and the newest for which every package has a wheel
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
STAMP = os.path.join(VENV, "course-stamp.json")
# the second contains the first, in the same versions
CORE = "requirements.lock"
TEST = "requirements-test.lock"
MEGABYTES = {CORE: 540, TEST: 1240}  # the size of .venv, with some margin
CONDA = {"huggingface-hub": "huggingface_hub", "playwright": "playwright-python"}  # their names in conda-forge


def ready(lock):
    """Return whether `.venv` is complete and matches the current lock. This reads a few files and starts no process."""
    stamp = finished()
    return stamp is not None and stamp["locks"].get(lock) == digest(lock) and not gone(stamp)


def finished():
    """Return the stamp of a `.venv` that was completed here, perhaps from older locks, or None if there is none."""
    try:
        with open(STAMP, encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None  # never made, or incomplete: the stamp is written last
    if stamp["root"] != as_written(ROOT) or not os.path.exists(PYTHON):
        return None  # the folder was moved or copied, or the base Python was removed
    if inside() and stamp["python"] != version_text(sys.version_info):
        return None  # the system's python3 has another version now, and does not find the packages
    return stamp


def installed(packages):
    """Return the modules and packages in a folder of `.venv`, as ["jupyterlab", "numpy", …]."""
    others = re.compile(r".*\.(dist-info|egg-info|pth)|__pycache__")
    return sorted(re.sub(r"\.py$", "", name) for name in os.listdir(packages) if not others.fullmatch(name))


def gone(stamp):
    """Return what setup had installed and is no longer in `.venv`: somebody, or a virus scanner, has removed it."""
    if "installed" not in stamp:  # an older version of the course wrote it
        return []
    packages = os.path.join(VENV, stamp["packages"])
    return sorted({*stamp["installed"]} - {*(installed(packages) if os.path.isdir(packages) else ())})


def as_written(path):
    """Return a path as the same text in every locale: under LC_ALL=C, Python decodes non-ASCII bytes as surrogates."""
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def inside():
    return os.path.realpath(sys.prefix) == os.path.realpath(VENV)


def fitting():
    return PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]


def version_text(version):
    return f"{version[0]}.{version[1]}"


def digest(lock):
    try:
        with open(os.path.join(ROOT, lock), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        return fail(f"{lock} cannot be read ({error.strerror}): this copy of the course is not complete.")


def active():
    """Return whether an environment other than `.venv` is active and has the course's packages (then it is used)."""
    conda = os.environ.get("CONDA_PREFIX")
    activated = sys.prefix != sys.base_prefix or (conda and os.path.realpath(conda) == os.path.realpath(sys.prefix))
    return bool(activated) and not inside() and fitting() and not lacking(CORE)


def lacking(lock):
    """Return the requirements in pyproject.toml, for this lock, that the active environment does not meet."""
    import tomllib
    from importlib.metadata import PackageNotFoundError, version

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    wanted = list(project["project"]["dependencies"])
    waiting = ["test"] if lock == TEST else []
    while waiting:
        for line in project["dependency-groups"][waiting.pop()]:
            if isinstance(line, dict):
                waiting.append(line["include-group"])
            elif os.name != "nt" or "win32" not in line:
                wanted.append(line.partition(";")[0])
    missing = []
    for line in wanted:
        try:
            fits = within(version(re.split("[<>=]", line)[0]), line)
        except PackageNotFoundError:
            fits = False
        if not fits:
            missing.append(line)
    return missing


def incomplete(missing):
    """Return a message: what an activated environment lacks for a command, and how to install it."""
    names = [re.split("[<>=]", line)[0] for line in missing]
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        wanted = [CONDA.get(name, name) + line[len(name) :] for name, line in zip(names, missing, strict=True)]
        command = ["conda", "install", "--channel", "conda-forge"]
        leave = "conda deactivate"
    else:
        wanted = missing
        command = ["python", "-m", "pip", "install"]
        leave = "deactivate"
    words = " ".join(command + ['"' + line + '"' for line in wanted])
    return (
        f"The activated environment {sys.prefix} lacks {', '.join(names)}. This command adds them:\n\n{words}\n\n"
        f"Or leave that environment (`{leave}`). Then the course makes its own, .venv, which has everything."
    )


def within(version, requirement):
    """Return whether a version meets a requirement name>=low,<high, the only form in pyproject.toml's lists."""

    def numbers(text):
        return [int(part) for part in re.match(r"\d+(\.\d+)*", text).group().split(".")]

    low, high = re.search(">=(.+),<(.+)", requirement).groups()
    return numbers(low) <= numbers(version) < numbers(high)
