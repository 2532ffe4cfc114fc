"""The door to the course: `python3 -m course COMMAND` sets everything up, then does what COMMAND says.

It starts with the standard library alone, on whatever Python the reader has (its grammar is that of Python 3.7): it
makes `.venv`, says plainly what is missing where it cannot, and runs itself again inside. Packages exist only there.
"""

import os
import sys

if __name__ == "__main__":
    # Python looked first where the reader stands, or in course/ itself. A file there may be called like any module.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) not in (here, os.getcwd())]
    sys.path.insert(0, os.path.dirname(here))

import contextlib
import difflib
import hashlib
import importlib.util
import json
import platform
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import webbrowser

from course.setup.arguments import COMMANDS as HELP
from course.setup.arguments import HANDED_ON, checked, parser

PYTHONS = (3, 11), (3, 14)  # the oldest and the newest that every package has a ready-made build for

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
STAMP = os.path.join(VENV, "course-stamp.json")
LIST = "course-wheels.json"  # in a wheelhouse: what its packages are for
CORE, TEST = "requirements.lock", "requirements-test.lock"  # the second contains the first, in the same versions
MEGABYTES = {CORE: 540, TEST: 1240}  # what .venv takes, with some air
CONDA = {"huggingface-hub": "huggingface_hub", "playwright": "playwright-python"}  # other names in conda-forge


# The commands ---------------------------------------------------------------------------------------------------------


def lab(arguments):
    from course import build
    from course.builder.cells import BuildError
    from course.setup import ahead, desk

    if "--answers" in arguments:
        os.environ["COURSE_ANSWERS"] = "1"
    opened = build.trail_in(build.ROOT)[0] if "--trail" in arguments else None
    arguments = [each for each in arguments if each not in ("--answers", "--trail")]
    try:
        for line in desk.open_desk(build.ROOT):
            print(line, flush=True)
    except BuildError as error:
        fail(str(error))
    ahead.begin(build.ROOT)
    return open_lab(arguments, opened)


def resume(arguments):
    from course import build
    from course.builder.cells import BuildError
    from course.practice import resuming
    from course.setup import desk

    try:
        lines = [] if "--tell" in arguments else desk.open_desk(build.ROOT)
        told, opened = resuming.main(build.ROOT)
    except BuildError as error:
        fail(str(error))
    print("\n".join([*lines, told]), flush=True)
    return 0 if "--tell" in arguments else open_lab(arguments, opened)


def open_lab(arguments, opened):
    """JupyterLab on the desk. Where it runs there already, its address: in a second one a file would have two editors."""
    from course import build
    from course.setup import desk
    from course.setup import lab as jupyterlab

    server = jupyterlab.running(build.ROOT / build.MINE)
    if server is None or "--help" in arguments:
        return hand_over(desk.lab_command(build.ROOT, arguments, opened))
    address = jupyterlab.address(server["url"], desk.page_of(opened), server["token"])
    print(f"JupyterLab is open on this folder already: {address}")
    if "--no-browser" not in arguments and desk.has_browser():
        webbrowser.open(address)
    return 0


def test(arguments):
    """A sample in three minutes; with --all every test; with other arguments what these select.

    The tests run side by side: half of them wait for a program. A process that runs out of tests takes over another's.
    Where the reader names a test, one process is sooner ready; options of his own have the last word.
    """
    if not arguments:
        print("Both models on all five levels, the five notebooks and the trail, and a sample of all other tests")
        arguments = ["-m", "quick"]
    arguments = [argument for argument in arguments if argument != "--all"]
    named = any(argument.split("::")[0].endswith(".py") for argument in arguments)
    alone = named or any(argument.endswith("no:xdist") for argument in arguments)
    side_by_side = ["--numprocesses=logical", "--maxprocesses=4", "--dist=worksteal"]
    return hand_over([sys.executable, "-m", "pytest"] + ([] if alone else side_by_side) + arguments)


def browser_test(arguments):
    from course.setup.browser import main

    return main(arguments)


def setup(arguments):
    print(f"Ready: Python {platform.python_version()} in {sys.prefix}")
    return 0


def build(arguments):
    from course.builder.cli import main

    return main(arguments)


def run(arguments):
    from course.builder.cli import run

    return run(arguments)


def progress(arguments):
    from course.builder.cells import BuildError
    from course.practice.progress import table

    try:
        print(table())
    except BuildError as error:
        fail(str(error))
    return 0


def keeping(command):
    def keep(arguments):
        from course.setup.keeping import main

        return main(command, arguments)

    return keep


def grade(arguments):
    from course.practice.grading import main

    return main(arguments)


def bench(arguments):
    from course.bench import main

    return main(arguments)


def serve(arguments):
    from course.serving import main

    return main(arguments)


def site(arguments):
    from course.reading import main

    return main(arguments)


def programs(arguments):
    from course.programs import main

    return main(arguments)


def wheelhouse(arguments):
    """Download the locked packages, for computers that have no network. Its list goes first and comes back last."""
    folder = os.path.abspath(parser("wheelhouse").parse_args(arguments).folder or os.path.join(ROOT, "wheelhouse"))
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif uv:
        pip = [uv, "tool", "run", "--python", sys.executable, "pip"]
    else:
        fail("Packages are downloaded with pip or uv, and neither is here: install uv, or delete .venv and run setup.")
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(os.path.join(folder, LIST)):
        os.remove(os.path.join(folder, LIST))
    print(f"Downloading all packages for {machine(version_text(sys.version_info))} (about 360 MB)", flush=True)
    download = ["download", "--no-deps", "--only-binary", ":all:", "--dest", folder]
    stage("downloading packages", pip + download + ["-r", os.path.join(ROOT, TEST)])
    with open(os.path.join(folder, LIST), "w", encoding="utf-8") as file:
        json.dump({"system": machine(version_text(sys.version_info)), "lock": digest(TEST)}, file, indent=1)
    print(f"{folder} is complete. Setup uses it where it lies in the course's folder as `wheelhouse`,")
    print("or where the environment variable COURSE_WHEELHOUSE names it. Python itself must be there already.")
    return 0


JUPYTER = "lab", "resume", "test", "browser-test", "build", "run", "programs"  # what starts notebooks, or their kernels

COMMANDS = {  # name: (what it does, the lock it needs); what it takes stands in course/setup/arguments.py
    "lab": (lab, CORE),
    "test": (test, TEST),
    "browser-test": (browser_test, TEST),
    "setup": (setup, TEST),
    "build": (build, TEST),
    "run": (run, TEST),
    "bench": (bench, TEST),
    "serve": (serve, TEST),
    "programs": (programs, TEST),
    "site": (site, TEST),
    "progress": (progress, CORE),
    "resume": (resume, CORE),
    "reset": (keeping("reset"), CORE),
    "catch-up": (keeping("catch-up"), CORE),
    "undo": (keeping("undo"), CORE),
    "grade": (grade, TEST),  # exercises of more/ are graded, too
    "wheelhouse": (wheelhouse, CORE),
}


READERS = "lab", "resume", "progress", "reset", "catch-up", "undo", "test", "setup"  # the other ones are a builder's


def help_text():
    def lines(names):
        return "\n".join(f"  {name:13} {HELP[name][0]}" for name in names)

    return f"""usage: python3 -m course COMMAND [ARGUMENT ...]

To read and work:
{lines(READERS)}

To build, measure, serve and grade:
{lines(name for name in COMMANDS if name not in READERS)}

`python3 -m course COMMAND --help` tells what a command takes. It works from any folder: `python3 path/to/course COMMAND`.
The first command makes .venv in this folder, with uv where it is installed, else with venv and pip: about
{MEGABYTES[CORE]} MB, once. What some notebooks in more/, the tests and the site need besides, `setup` adds ({MEGABYTES[TEST]} MB in all),
or the first command that needs it. Later ones start at once. Deleting .venv is always safe.
An activated environment (conda or venv) that already has the packages of pyproject.toml is used as it is."""


# Is there an environment? ---------------------------------------------------------------------------------------------


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
    """A path in the same letters in every locale: where LC_ALL=C knows no accents, Python has stand-ins for their bytes."""
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
    """Whether an environment other than `.venv` is activated, and has the packages of the course: it is used as it is."""
    conda = os.environ.get("CONDA_PREFIX")
    activated = sys.prefix != sys.base_prefix or (conda and os.path.realpath(conda) == os.path.realpath(sys.prefix))
    return bool(activated) and not inside() and fitting() and not lacking(CORE)


def lacking(lock):
    """What pyproject.toml asks for and this environment has not, or not within its bounds: what the lock is made from."""
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
        f"The activated environment {sys.prefix} lacks {', '.join(names)}. This adds what is missing:\n\n{words}\n\n"
        f"Or leave that environment (`{leave}`): then the course makes one of its own, .venv, which has everything."
    )


def within(version, requirement):
    """Whether a version lies in a requirement of the form name>=low,<high, the only one in pyproject.toml's lists."""

    def numbers(text):
        return [int(part) for part in re.match(r"\d+(\.\d+)*", text).group().split(".")]

    low, high = re.search(">=(.+),<(.+)", requirement).groups()
    return numbers(low) <= numbers(version) < numbers(high)


# Making one -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def one_at_a_time():
    """Of two commands that want to make `.venv`, the second waits. The system frees the lock of a process that ends."""
    folder = os.path.join(ROOT, ".course")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "setup.lock"), "a") as file:
        if not held(file):
            print("Another command is setting up .venv: waiting until it is done", flush=True)
        while not held(file):
            time.sleep(0.2)
        os.set_inheritable(file.fileno(), True)  # an installer may outlive a command that is killed, and still write
        yield


def held(file):
    """Whether this process now has the lock on an open file."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # another process has it: POSIX says so in one way, Windows in the other
        return False
    except OSError:
        pass  # a disk that knows no locks, on a network maybe
    return True


def make(lock):
    """Make `.venv`, or bring a finished one up to its lock. The stamp goes first and comes back last."""
    uv, stamp = shutil.which("uv"), finished()
    if stamp and stamp["installer"] == "uv" and not uv:
        stamp = None  # an environment made by uv holds no pip to go on with
    if stamp and TEST in stamp["locks"]:
        lock = TEST  # what `test` added stays, and stays fitting
    check_machine(uv, MEGABYTES[lock] - (MEGABYTES[CORE] if stamp else 0))
    installer, began = "uv" if uv else "pip", time.time()
    if stamp and lock not in stamp["locks"]:
        print(f"Adding to .venv what the tests need, with {installer} (once)", flush=True)
    elif stamp:
        print(f"Bringing .venv up to date with {installer}: the course needs other packages now", flush=True)
    else:
        print(f"Setting up .venv with {installer} (once; about {MEGABYTES[lock]} MB)", flush=True)
    if stamp:
        os.remove(STAMP)
    else:
        remove_venv()
        # The Python beneath, because this one may lie in the very environment that was just removed.
        python = getattr(sys, "_base_executable", None) or sys.executable
        any_fitting = (
            f">={version_text(PYTHONS[0])},<3.{PYTHONS[1][1] + 1}"  # uv looks for one, and fetches it if need be
        )
        by_uv = [uv, "venv", "--no-project", "--python", python if fitting() else any_fitting, VENV]
        stage("making .venv", by_uv if uv else [python, "-m", "venv", VENV], "step 1 of 2, ", began)
    question = "import sys, sysconfig; print(*sys.version_info[:2], sep='.'); print(sysconfig.get_path('purelib'))"
    answer = subprocess.check_output([PYTHON, "-c", question], universal_newlines=True, cwd=ROOT)
    version, packages = answer.splitlines()
    # The lock names every package, so nothing is left to resolve; and nothing is compiled on the reader's machine. Nor into
    # bytecode: most of what is installed is never imported, and what is, Python compiles then. uv does not by itself.
    install = [uv, "pip", "install", "--python", PYTHON] if uv else [PYTHON, "-m", "pip", "install", "--no-compile"]
    install += ["--no-deps", "--only-binary", ":all:"] + from_wheelhouse(version)
    step = "" if stamp else "step 2 of 2, "
    stage("installing packages", install + ["-r", os.path.join(ROOT, lock)], step, began, counted(packages))
    # Every notebook and script finds `levels` and `course`, wherever it runs. The line is relative, so it is ASCII: Python
    # before 3.13 reads it in the locale's encoding, and LC_ALL=C has no letter with an accent.
    with open(os.path.join(packages, "levels-course.pth"), "w", encoding="ascii") as file:
        file.write(os.path.relpath(ROOT, packages) + "\n")
    locks = {name: digest(name) for name in ([CORE, TEST] if lock == TEST else [CORE])}
    with open(STAMP, "w", encoding="utf-8") as file:
        json.dump({"root": as_written(ROOT), "python": version, "installer": installer, "locks": locks}, file, indent=1)


def from_wheelhouse(version):
    """The installer's options where the packages lie in a wheelhouse that fits this Python; else none, and why not."""
    folder = os.environ.get("COURSE_WHEELHOUSE") or os.path.join(ROOT, "wheelhouse")
    try:
        with open(os.path.join(folder, LIST), encoding="utf-8") as file:
            made = json.load(file)
    except (OSError, ValueError):
        if os.path.isdir(folder) or "COURSE_WHEELHOUSE" in os.environ:
            print(f"{folder} is not used: no finished wheelhouse", flush=True)
        return []
    here = {"system": machine(version), "lock": digest(TEST)}
    if made != here:
        what = made.get("system") if made.get("system") != here["system"] else "another version of the course"
        print(f"{folder} is not used: it is for {what}, and this is {here['system']}", flush=True)
        return []
    print(f"Packages come from {folder}, none from the network", flush=True)
    return ["--no-index", "--find-links", folder]


def machine(version):
    """What a package must fit, in words."""
    return f"{platform.system()} {platform.machine()}, Python {version}"


def remove_venv():
    try:
        if os.path.lexists(VENV):
            shutil.rmtree(VENV)
    except OSError as error:
        fail(
            f"The old .venv cannot be removed ({error}).\nStop what uses it (Jupyter, an editor), or delete it yourself."
        )


def check_machine(uv, megabytes):
    """Whatever can be seen to be missing is told before anything is made."""
    if not uv and not fitting():
        fail(wrong_python())
    if not uv and importlib.util.find_spec("ensurepip") is None:
        fail("This Python cannot make environments: its module ensurepip is missing.\nInstall it:  " + ensurepip_cure())
    free = shutil.disk_usage(ROOT).free // 10**6
    if free < megabytes:
        fail(f"Not enough disk space: .venv needs about {megabytes} MB, and {free} MB are free in {ROOT}")


def check_writable():
    """Whatever would be written later on, it is told now where nothing can be."""
    try:
        with tempfile.TemporaryFile(dir=ROOT):
            pass
    except OSError as error:
        cure = "Copy the course to one that can be, and start it there."
        fail(f"This folder cannot be written to ({error.strerror}): {ROOT}\n{cure}")


def wrong_python():
    low, high = map(version_text, PYTHONS)
    fault = "old" if sys.version_info[:2] < PYTHONS[0] else "new: some packages have no build for it yet"
    python = fitting_command()
    cure = f"Run it with  {again(python)}" if python else "Install one of them, or uv, which fetches one by itself"
    return f"Python {platform.python_version()} is too {fault}.\nThe course runs on Python {low} to {high}. {cure}"


def fitting_command():
    """The newest Python that the course runs on, as a command, such as ["python3.12"]; None where there is none.

    Each is tried: that a command is there does not mean that it runs (pyenv has one for every Python it knows of).
    """
    versions = [f"3.{minor}" for minor in range(PYTHONS[1][1], PYTHONS[0][1] - 1, -1)]
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
    """The command that the reader gave, with another Python."""
    course = ["-m", "course"] if __package__ else sys.argv[:1]
    words = python + course + sys.argv[1:]
    return subprocess.list2cmdline(words) if os.name == "nt" else " ".join(map(shlex.quote, words))


def ensurepip_cure():
    """The command that installs `ensurepip` on this system."""
    try:
        with open("/etc/os-release", encoding="utf-8") as file:
            system = " ".join(re.findall(r"^ID(?:_LIKE)?=(.*)", file.read(), re.M))
    except OSError:
        system = ""
    if "debian" in system or "ubuntu" in system:
        return f"sudo apt install python{version_text(sys.version_info)}-venv   (or install uv)"
    if "fedora" in system or "rhel" in system:
        return "sudo dnf install python3-libs   (or install uv)"
    return "uv, which does not need it; or a Python that has it, as from python.org"


def counted(packages):
    """A function that tells how far pip is with its last and longest part, in which it says nothing, as "61 of 104"."""

    def installed():
        return {name for name in os.listdir(packages) if name.endswith(".dist-info")}

    before = installed()

    def how_far(lines):
        for line in lines[-3:]:
            if line.startswith("Installing collected packages:"):
                return f"{len(installed() - before)} of {line.count(',') + 1}"
        return ""

    return how_far


def stage(title, command, step="", began=None, how_far=lambda lines: ""):
    """Run one step of the setup, showing how far it is; where it fails, say why and stop.

    step: which one it is, if there are several; began: when the clock that is shown began to run, if that was not now;
    how_far(lines): what to show beside the title in place of the last line that it has printed, or nothing.
    """
    # Nothing may be asked, and nothing may go past .venv, however the reader's pip is set.
    quiet = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    # In the course's folder: `-m pip` would import what lies where the reader stands. With the lock, which is a file.
    place = {"cwd": ROOT, "env": {**os.environ, **quiet}, "close_fds": False}
    process = subprocess.Popen(command, universal_newlines=True, errors="replace", **place, **pipes)
    lines, started, shown = [], began or time.time(), 0
    reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
    reader.start()
    terminal, width = sys.stdout.isatty(), shutil.get_terminal_size((100, 24)).columns - 1
    try:
        while reader.is_alive():
            reader.join(0.2)
            seconds = time.time() - started
            news = f"  {seconds:3.0f} s  {step}{title}  {how_far(lines) or ''.join(lines[-1:]).strip()}"[:width]
            if terminal:  # one line, written over
                print("\r" + news.ljust(width), end="", flush=True)
            elif seconds > shown + 15 and reader.is_alive():  # a log: a line now and then
                print(news, flush=True)
                shown = seconds
    except KeyboardInterrupt:
        process.terminate()
        raise
    finally:
        status = process.wait()
        print("\r" + " " * width + "\r" if terminal else "", end="")
    if status:
        tail = "\n".join("  " + line.rstrip()[:160] for line in lines[-12:])
        fail(f"{tail}\n\nStopped while {title}: {cause(''.join(lines), status)}")
    print(f"  {time.time() - started:3.0f} s  {step}{title}: done", flush=True)


CAUSES = {  # what an installer says, and what it means; the first that fits is told
    r"network (is|was) disabled": "uv was told to use no network.\nUnset UV_OFFLINE, or make a wheelhouse on another computer.",
    r"no space left|disk quota|not enough space": "the disk is full.",
    r"name resolution|getaddrinfo|new connection|connection (refused|reset)|dns error|unreachable|timed out"
    r"|connect error|error sending request|proxyerror|remote end closed": "the package index cannot be reached.\n"
    "Is there a network? Is there a proxy that pip or uv must be told of?",
    r"certificate": "the package index could not be trusted (its certificate). Is a proxy or a virus scanner in between?",
    r"do not match the hashes|hash mismatch": "a downloaded file is not the one that the lock names. Try once more.",
    r"no matching distribution|no wheels|no usable wheels": "a package has no ready-made build for this machine: "
    f"{machine(platform.python_version())}.",
}


def cause(output, status):
    if os.environ.get("PIP_NO_INDEX") and re.search("no matching distribution", output, re.I):
        return "pip was told to use no network.\nUnset PIP_NO_INDEX, or make a wheelhouse on another computer."
    told = [meaning for pattern, meaning in CAUSES.items() if re.search(pattern, output, re.I)]
    return told[0] if told else f"the installer ended with status {status}."


# The door -------------------------------------------------------------------------------------------------------------


def fail(message):
    sys.exit(message)  # to stderr, with status 1


def hand_over(command):
    """Go on as another program, its exit status ours. Where the system can, this process becomes that program."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # Ctrl-C reached the other program too: it answers


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.4)
        hint = f"Did you mean  python3 -m course {near[0]}" if near else f"There are: {', '.join(COMMANDS)}"
        fail(f"There is no command {name!r}. {hint}")
    rest = checked(name, rest)  # help, and arguments that it does not take, end here
    command, lock = COMMANDS[name]
    if name != "progress":  # which only reads
        check_writable()
    os.environ.setdefault("LEVELS_CACHE", os.path.join(ROOT, ".course", "programs"))  # what is compiled stays here
    theirs = active()
    if theirs and lacking(lock):
        if not ready(lock):
            fail(incomplete(lacking(lock)))
        theirs = False  # the course's own environment is there, and has what is missing
    if theirs:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    else:
        # Another project's packages, of another version maybe, would come before those of `.venv`.
        foreign = os.environ.pop("PYTHONPATH", None)
        complete = ready(lock)
        if not complete:
            check_writable()
            with one_at_a_time():
                if not ready(lock):  # else somebody else has made it
                    make(lock)
        if not complete or not inside() or foreign:
            return hand_over([PYTHON, os.path.join(ROOT, "course")] + arguments)
    if name in JUPYTER:
        from course.setup.homes import settle

        told = settle(ROOT)
        if told:
            print(told, flush=True)
    if name in HANDED_ON:
        rest = [whole(argument) for argument in rest]
        os.chdir(ROOT)
    return command(rest)


def whole(argument):
    """A path as the reader gave it, from where he stands, for a program that is started in the course's folder."""
    path, colons, test = argument.partition("::")
    is_path = os.path.basename(path) != path or os.path.splitext(path)[1]
    return os.path.abspath(path) + colons + test if is_path and os.path.exists(path) else argument


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being ended is being interrupted: no pip is left behind
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command starts again, and clears up what is half done.")
