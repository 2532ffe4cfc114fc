"""Make `.venv`, or update it to its lock, after a check that nothing needed for it is missing."""

import contextlib
import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from course.author.setup import environment
from course.author.setup.environment import CORE, PYTHON, STAMP, TEST, VENV, fitting, version_text
from course.author.setup.wheelhouse import from_wheelhouse
from course.terminal.stage import ROOT, fail, stage, try_lock


@contextlib.contextmanager
def one_at_a_time():
    """Hold the lock for making `.venv`; a second command waits. The system releases the lock when the process ends."""
    folder = os.path.join(ROOT, ".course")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "setup.lock"), "a") as file:
        if not try_lock(file):
            print("Another command is setting up .venv: waiting until it is done", flush=True)
        while not try_lock(file):
            time.sleep(0.2)
        os.set_inheritable(file.fileno(), True)  # an installer may outlive a killed command, and still write
        yield


def make(lock):
    """Make `.venv`, or update a complete one to its lock. The stamp is removed first and written last."""
    uv = shutil.which("uv")
    stamp = environment.finished()
    if stamp and stamp["installer"] == "uv" and not uv:
        stamp = None  # an environment made by uv has no pip for an update
    gone = environment.gone(stamp) if stamp else []
    if "pip" in gone:
        stamp = None
    if stamp and TEST in stamp["locks"]:
        lock = TEST  # the packages that `test` added are kept, and updated too
    megabytes = environment.MEGABYTES[lock]
    check_machine(uv, megabytes - (environment.MEGABYTES[CORE] if stamp else 0))
    installer = "uv" if uv else "pip"
    began = time.time()
    if stamp and gone:
        few = ", ".join(gone[:3]) + f" and {len(gone) - 3} more" * (len(gone) > 3)
        print(f"Repairing .venv with {installer}: {few} {'are' if gone[1:] else 'is'} missing in it", flush=True)
    elif stamp and lock not in stamp["locks"]:
        print(f"Adding the packages of the tests to .venv, with {installer} (once)", flush=True)
    elif stamp:
        print(f"Bringing .venv up to date with {installer}: the course needs other packages now", flush=True)
    else:
        print(f"Setting up .venv with {installer} (once; about {megabytes} MB)", flush=True)
    if stamp:
        os.remove(STAMP)
    else:
        remove_venv()
        make_empty(uv, began)
    version, packages = install(uv, lock, "" if stamp else "step 2 of 2, ", began, anew=bool(stamp and gone))
    locks = {name: environment.digest(name) for name in ([CORE, TEST] if lock == TEST else [CORE])}
    made = {"root": environment.as_written(ROOT), "python": version, "installer": installer, "locks": locks}
    made["packages"] = os.path.relpath(packages, VENV)
    made["installed"] = environment.installed(packages)
    with open(STAMP, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)


def make_empty(uv, began):
    """Make a `.venv` without packages."""
    # The base Python, because this one may be in the environment that was just removed.
    python = getattr(sys, "_base_executable", None) or sys.executable
    # If this Python does not fit, uv looks for one that does, and downloads it if necessary.
    low, (_, high) = environment.PYTHONS
    wanted = python if fitting() else f">={version_text(low)},<3.{high + 1}"
    by_uv = [uv, "venv", "--no-project", "--python", wanted, VENV]
    stage("making .venv", by_uv if uv else [python, "-m", "venv", VENV], "step 1 of 2, ", began)


def install(uv, lock, step, began, anew=False):
    """Install the packages of a lock, and make the course importable.

    anew: also those that are there already. Returns the Python version of `.venv`, and the folder of its packages.
    """
    question = "import sys, sysconfig; print(*sys.version_info[:2], sep='.'); print(sysconfig.get_path('purelib'))"
    answer = subprocess.check_output([PYTHON, "-c", question], universal_newlines=True, cwd=ROOT)
    version, packages = answer.splitlines()
    # The lock names every package, so there is nothing to resolve, and only wheels are installed. Bytecode is not
    # compiled: most modules are never imported, and Python compiles the others on import. (By default, uv does not.)
    command = [uv, "pip", "install", "--python", PYTHON] if uv else [PYTHON, "-m", "pip", "install", "--no-compile"]
    command += ["--no-deps", "--only-binary", ":all:"] + from_wheelhouse(version)
    if anew:
        command.append("--reinstall" if uv else "--force-reinstall")
    stage("installing packages", command + ["-r", os.path.join(ROOT, lock)], step, began)
    # With this file, notebooks and scripts in any folder can import `levels` and `course`. The path is relative, and so
    # ASCII: Python before 3.13 reads it in the locale's encoding, which under LC_ALL=C has no accented letters.
    with open(os.path.join(packages, "levels-course.pth"), "w", encoding="ascii") as file:
        file.write(os.path.relpath(ROOT, packages) + "\n")
    return version, packages


def remove_venv():
    try:
        if os.path.lexists(VENV):
            shutil.rmtree(VENV)
    except OSError as error:
        fail(
            f"The old .venv cannot be removed ({error}).\n"
            "Close the programs that use it (Jupyter, an editor), or delete it yourself."
        )


def check_machine(uv, megabytes):
    """Exit with a message if the Python version, `ensurepip` (both only without uv) or disk space does not suffice."""
    if not uv and not fitting():
        fail(wrong_python())
    if not uv and importlib.util.find_spec("ensurepip") is None:
        python = f"python{version_text(sys.version_info)}-venv"
        cure = f"Install uv, which does not need it; or, on Debian and Ubuntu:  sudo apt install {python}"
        fail(f"This Python cannot make environments: its module ensurepip is missing.\n{cure}")
    free = shutil.disk_usage(ROOT).free // 10**6
    if free < megabytes:
        fail(f"Not enough disk space: .venv needs about {megabytes} MB, and {free} MB are free in {ROOT}")


def check_writable():
    """Exit with a message if the course's folder is not writable."""
    try:
        with tempfile.TemporaryFile(dir=ROOT):
            pass
    except OSError as error:
        cure = "Copy the course to a folder of your own, and start it there."
        fail(f"This folder cannot be written to ({error.strerror}): {ROOT}\n{cure}")


def wrong_python():
    low, high = map(version_text, environment.PYTHONS)
    fault = "old" if sys.version_info[:2] < environment.PYTHONS[0] else "new: some packages have no build for it yet"
    python = fitting_command()
    cure = f"Run it with  {again(python)}" if python else "Install one of these versions, or uv, which downloads one"
    return f"Python {platform.python_version()} is too {fault}.\nThe course runs on Python {low} to {high}. {cure}"


def fitting_command():
    """Return the command of the newest supported Python, such as ["python3.12"], or None if there is none.

    Each command is tried, because one that exists may not run (pyenv has one for every Python that it knows of).
    """
    versions = [f"3.{minor}" for minor in range(environment.PYTHONS[1][1], environment.PYTHONS[0][1] - 1, -1)]
    commands = [["py", "-" + version] for version in versions] if os.name == "nt" else []
    commands += [["python" + version] for version in versions] + [["python3"], ["python"]]
    question = ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 10, "universal_newlines": True}
    for name, *more in commands:
        program = shutil.which(name)
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            if program and subprocess.check_output([program] + more + question, **pipes).strip() in versions:
                return [name] + more
    return None


def again(python):
    """Return the command that the user entered, with another Python."""
    course = ["-m", "course"] if sys.modules["__main__"].__package__ else sys.argv[:1]
    words = python + course + sys.argv[1:]
    return subprocess.list2cmdline(words) if os.name == "nt" else " ".join(map(shlex.quote, words))
