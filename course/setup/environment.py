"""Is there an environment? `.venv`, finished here from the lock as it is now; or an activated one with all packages."""

import hashlib
import json
import os
import re
import sys

from course.setup.stage import ROOT, fail

PYTHONS = (3, 11), (3, 14)  # the oldest and the newest that every package has a ready-made build for
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
STAMP = os.path.join(VENV, "course-stamp.json")
CORE, TEST = "requirements.lock", "requirements-test.lock"  # the second contains the first, in the same versions
MEGABYTES = {CORE: 540, TEST: 1240}  # what .venv takes, with some air
CONDA = {"huggingface-hub": "huggingface_hub", "playwright": "playwright-python"}  # other names in conda-forge


def ready(lock):
    """Whether `.venv` was finished, here, from the lock as it is now. A few file reads, no process."""
    stamp = finished()
    return stamp is not None and stamp["locks"].get(lock) == digest(lock)


def finished():
    """The stamp of a `.venv` that was finished here, maybe from older locks; None where there is none."""
    try:
        with open(STAMP, encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None  # never made, or half made: the stamp is written last
    if stamp["root"] != as_written(ROOT) or not os.path.exists(PYTHON):
        return None  # the folder was moved or copied, or the Python beneath was removed
    if inside() and stamp["python"] != version_text(sys.version_info):
        return None  # the system's python3 is another one now, and sees none of the packages
    return stamp


def as_written(path):
    """A path in the same letters in every locale: where LC_ALL=C knows no accents, Python has stand-ins for bytes."""
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
    """Whether an environment other than `.venv` is active and has the packages of the course: it is used as it is."""
    conda = os.environ.get("CONDA_PREFIX")
    activated = sys.prefix != sys.base_prefix or (conda and os.path.realpath(conda) == os.path.realpath(sys.prefix))
    return bool(activated) and not inside() and fitting() and not lacking(CORE)


def lacking(lock):
    """What pyproject.toml asks for, as the lock does, and this environment has not, or not within its bounds."""
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
    """What an activated environment lacks for a command, and the command that adds it."""
    names = [re.split("[<>=]", line)[0] for line in missing]
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        wanted = [CONDA.get(name, name) + line[len(name) :] for name, line in zip(names, missing, strict=True)]
        command, leave = ["conda", "install", "--channel", "conda-forge"], "conda deactivate"
    else:
        wanted, command, leave = missing, ["python", "-m", "pip", "install"], "deactivate"
    words = " ".join(command + ['"' + line + '"' for line in wanted])
    return (
        f"The activated environment {sys.prefix} lacks {', '.join(names)}. This command adds them:\n\n{words}\n\n"
        f"Or leave that environment (`{leave}`). Then the course makes its own, .venv, which has everything."
    )


def within(version, requirement):
    """Whether a version lies in a requirement of the form name>=low,<high, the only one in pyproject.toml's lists."""

    def numbers(text):
        return [int(part) for part in re.match(r"\d+(\.\d+)*", text).group().split(".")]

    low, high = re.search(">=(.+),<(.+)", requirement).groups()
    return numbers(low) <= numbers(version) < numbers(high)
