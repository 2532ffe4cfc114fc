"""The door `python3 -m course`: what it makes, when it makes it again, what it says; and the files it stands on.

The door is run as a reader's computer would run it: by the Python beneath the environment, without site-packages, in a
small copy of the project whose locks name one tiny wheel, so that a whole `.venv` is made in seconds, without a network.
"""

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
import small_course
import yaml
from jupytext.config import load_jupytext_config
from small_course import BASE_PYTHON, FILES, LOCKS, open_door

from course import __main__ as the_door
from course import commands
from course.author.build import ROOT
from course.author.setup import environment
from course.terminal import causes
from course.terminal.arguments import check_arguments

pytestmark = pytest.mark.versions

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
UV = shutil.which("uv")


@pytest.fixture
def copy(tmp_path):
    return small_course.made(tmp_path / "a course")  # a blank in the path is a trap of its own


def assert_refused(done, *words):
    """One message, status 1, no traceback."""
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


# What it says ---------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_help_needs_the_standard_library_alone():
    done = open_door(ROOT, "--help")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    rows = [next(line for line in lines if line.startswith(f"  {name} ")) for name in commands.COMMANDS]
    assert len({re.match(r"  \S+ +", row).end() for row in rows}) == 1, "the lines of help are not aligned"
    assert done.stdout == open_door(ROOT).stdout  # no command at all asks for help


@pytest.mark.parametrize("name, arguments", [*((name, ["--help"]) for name in commands.COMMANDS), ("lab", ["x", "-h"])])
def test_help_shows_help_and_does_nothing_else(copy, name, arguments):
    before = sorted(copy.rglob("*"))
    done = open_door(copy, name, *arguments, flags=("-I", "-S", "-B"))
    assert done.returncode == 0, done
    assert done.stdout.startswith(f"usage: python3 -m course {name} [-h]") and done.stderr == ""
    assert sorted(copy.rglob("*")) == before


NEEDED = {"grade": 1, "reset": 1, "catch-up": 1, "beat": 2}  # how many arguments a command does not run without
STRICT = [name for name in commands.COMMANDS if not name.endswith("test")]
PORTS = ("lab", "0"), ("lab", "8888.0"), ("lab", ""), ("resume", "65536"), ("serve", "-1")
WRONG = [(name, ["here"] * NEEDED.get(name, 0) + ["-x"], "unrecognized arguments: -x") for name in STRICT]
WRONG += [(name, [f"--port={port}"], "a port is a whole number from 1 to 65535") for name, port in PORTS]
WRONG += [("bench", ["numpy"], "there is no section numpy: there are training, kernels")]


@pytest.mark.parametrize("name, arguments, said", WRONG)
def test_a_wrong_argument_is_refused_before_anything_is_made(copy, name, arguments, said):
    before = sorted(copy.rglob("*"))
    done = open_door(copy, name, *arguments, flags=("-I", "-S", "-B"))
    assert done.returncode == 2 and said in done.stderr, done
    assert sorted(copy.rglob("*")) == before


def test_what_is_handed_on_to_another_program():
    """`lab` hands on what it knows and what follows `--`; `test` everything, for pytest refuses what it does not know."""
    for own in (["--no-browser", "--port=1"], ["--port", "65535"]):
        assert check_arguments("lab", [*own, "--", "--x=1", "--"]) == [*own, "--x=1", "--"]
    for given in ([], ["tests/test_x.py", "-k", "y"], ["--numprocesses=2", "-x"]):
        assert check_arguments("test", given) == check_arguments("browser-test", given) == given
    assert check_arguments("test", ["--", "--help"]) == ["--help"]


@pytest.mark.quick
@pytest.mark.parametrize("name", [f"course/{name}.py" for name in FILES])
def test_an_old_python_can_read_it(name):
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"), feature_version=(3, 6))
    newer = {"text", "capture_output"}  # arguments of `subprocess` that Python 3.6 does not know
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "subprocess" in ast.unparse(node.func)]
    assert not newer & {each.arg for call in calls for each in call.keywords}
    assert not newer & {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}, "for **"


def python(version):
    """A Python of that version, if there is one on this computer."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.10"])
def test_an_old_python_is_told_so_in_a_sentence(copy, version):
    old = python(version)
    if old is None or subprocess.run([old, "--version"], capture_output=True).returncode:
        pytest.skip(f"no Python {version} here")
    commands = copy.parent / "commands"
    commands.mkdir()
    if os.name == "posix":
        script(commands / "python3", "echo 3.11")  # it is tried, and suggested
    path = {"PATH": str(commands)}
    done = subprocess.run([old, "-B", "-m", "course", "lab"], cwd=copy, env=path, capture_output=True, text=True)
    assert_refused(done, f"Python {version}", "is too old", "The course runs on Python 3.11 to 3.14")


def test_no_room_is_called_like_a_module_of_python():
    """`python3 path/to/course` looks in course/ first."""
    rooms = {path.stem for path in (ROOT / "course").iterdir()}
    assert "reader" in rooms and not rooms & sys.stdlib_module_names


@pytest.mark.quick
def test_unknown_command_names_the_nearest():
    assert_refused(open_door(ROOT, "tset"), "tset", "course test")
    assert_refused(open_door(ROOT, "xyzzy"), "xyzzy", *commands.COMMANDS)


HOPELESS = {  # what is changed: the words of the message
    "environment.PYTHONS = (3, 98), (3, 99)": ("too old", "3.98", "3.99", "uv"),
    "environment.PYTHONS = (3, 1), (3, 2)": ("too new", "3.1", "3.2", "uv"),
    "sys.modules['ensurepip'] = None": ("ensurepip", "uv"),
    "environment.MEGABYTES = dict.fromkeys(environment.MEGABYTES, 10**9)": ("disk", f"{10**9} MB", "MB are free"),
}


@pytest.mark.parametrize("change", HOPELESS)
def test_what_no_setup_can_overcome_is_seen_before_anything_is_made(copy, change):
    assert_refused(open_door(copy, "lab", change=change), *HOPELESS[change])
    assert not (copy / ".venv").exists()


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="scripts that stand for a Python")
@pytest.mark.parametrize("called", [("-m", "course"), ("a course/course",)])
def test_the_python_that_is_suggested_runs(copy, called):
    """The newest that fits, tried, in the words that the reader used."""
    door = copy / "course" / "author" / "setup" / "environment.py"
    door.write_text(re.sub(r"^PYTHONS = .*", "PYTHONS = (3, 1), (3, 4)", door.read_text(), flags=re.MULTILINE))
    commands = copy.parent / "commands"
    commands.mkdir()
    script(commands / "python3.4", "echo 'pyenv: python3.4: command not found' >&2; exit 127")
    script(commands / "python3.3", "echo 3.14")  # it is not what it is called
    script(commands / "python3.1", "echo 3.1")

    def suggested():
        environment = {"PATH": f"{commands}:/bin:/usr/bin", "PYTHONPATH": str(copy)}
        command = [BASE_PYTHON, *called, "test", "tests/a b.py", "-k", "x"]
        return subprocess.run(command, cwd=copy.parent, env=environment, capture_output=True, text=True)

    course = "-m course" if called[0] == "-m" else "'a course/course'"
    assert_refused(suggested(), "too new", f"Run it with  python3.1 {course} test 'tests/a b.py' -k x\n")
    for name in ("python3.1", "python3.4"):
        script(commands / name, "exit 127")
    script(commands / "python3", "echo 3.14")
    assert_refused(suggested(), "Install one of these versions")


def test_missing_lock(copy):
    (copy / "requirements.lock").unlink()
    stamp(copy, {"requirements.lock": "x"})
    assert_refused(open_door(copy, "lab"), "requirements.lock")


@pytest.mark.parametrize(
    "output, word",
    [
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "cannot be reached"),
        ("error: Failed to fetch\n  cause: dns error", "cannot be reached"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED]", "certificate"),
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because numba==0.1 has no wheels with a matching\n"
            "      platform tag (e.g., `manylinux_2_36_x86_64`) and you require numba==0.1, we can conclude",
            "numba 0.1 has no ready-made build for this machine: ",
        ),
        ("Because numba==0.1 has no usable wheels and you require", "numba 0.1 has no ready-made build"),
        (
            "╰─▶ Because the current Python version (3.11.7) does not satisfy\n      Python>=3.20 and numba==0.1 depends on"
            "\n      Python>=3.20, we can conclude that",
            "numba 0.1 has no ready-made build",
        ),
        (
            "╰─▶ Because anyio was not found in the package registry and you\n    require anyio==4.9.0, we can conclude",
            "the package index that is set here does not have anyio: ",
        ),
        ("╰─▶ Because there is no version of anyio==4.9.0 and you require", "does not have anyio 4.9.0: is it"),
        ("ERROR: No matching distribution found for tiny==2.0", "tiny 2.0 has no ready-made build for this machine: "),
        ("ERROR: No matching distribution found for tiny==2.0", "does not have tiny 2.0: is it a mirror"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "hash in the lock"),
        ("hint: Packages were unavailable because the network was disabled.", "Unset UV_OFFLINE"),
        ("something new", "status 3"),
    ],
)
def test_an_installers_failure_is_told_in_plain_words(output, word, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    assert word in causes.cause(output, 3)


@pytest.mark.parametrize(
    "name, value, told",
    [
        ("HTTPS_PROXY", "http://127.0.0.1:9", "HTTPS_PROXY is set to http://127.0.0.1:9"),
        ("all_proxy", "socks5://me:my@secret@127.0.0.1:9", "all_proxy is set to socks5://127.0.0.1:9"),
        ("HTTPS_PROXY", "", "Behind a proxy, set HTTPS_PROXY."),
    ],
)
def test_a_proxy_that_does_not_answer_is_named_without_its_password(name, value, told, monkeypatch):
    for each in causes.PROXIES:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    found = causes.cause("ProxyError('Cannot connect to proxy.', NewConnectionError: refused", 1)
    assert found.startswith("the package index cannot be reached.\n") and found.endswith(told)


def test_a_pip_that_may_use_no_network_is_told_so(monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert "Unset PIP_NO_INDEX" in causes.cause("ERROR: No matching distribution found for numba==0.1", 1)
    assert "disk is full" in causes.cause("No space left on device", 1)


# What it makes, and when it makes it again ----------------------------------------------------------------------------


def the_python(copy):
    return copy / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def digests(copy, *locks):
    return {lock: hashlib.sha256((copy / lock).read_bytes()).hexdigest() for lock in locks}


def door_of(root, command, change="pass"):
    """A program that opens the door in whatever environment it is run; `change` is code that alters it first."""
    found = f"import sys; sys.path.insert(0, {str(root)!r})"
    return f"{found}; import course.__main__ as door; {change}; door.main([{command!r}])"


def stamp(copy, locks, **changes):
    """Write what a finished setup would have left, without making anything."""
    python = the_python(copy)
    python.parent.mkdir(parents=True, exist_ok=True)
    python.touch()
    python_version = environment.version_text(sys.version_info)
    made = {"root": str(copy), "python": python_version, "installer": "pip", "locks": locks, **changes}
    (copy / ".venv/course-stamp.json").write_text(json.dumps(made), encoding="utf-8")
    return python


def is_ready(root, lock):
    done = open_door(root, change=f"sys.exit(10 + environment.ready({lock!r}))")
    assert done.returncode in (10, 11), done.stderr
    return done.returncode == 11


@pytest.mark.quick
def test_ready_means_finished_here_from_these_locks(copy):
    core = digests(copy, LOCKS[0])
    assert not is_ready(copy, LOCKS[0])
    python = stamp(copy, core)
    assert is_ready(copy, LOCKS[0]) and not is_ready(copy, LOCKS[1])
    stamp(copy, digests(copy, *LOCKS))
    assert is_ready(copy, LOCKS[0]) and is_ready(copy, LOCKS[1])
    stamp(copy, core, root=str(copy.parent))
    assert not is_ready(copy, LOCKS[0]), "the folder was moved"
    stamp(copy, {LOCKS[0]: "another"})
    assert not is_ready(copy, LOCKS[0]), "the lock changed"
    stamp(copy, core)
    python.unlink()
    assert not is_ready(copy, LOCKS[0]), "the Python beneath is gone"
    stamp(copy, core)
    (copy / ".venv/course-stamp.json").write_text('{"root": ', encoding="utf-8")
    assert not is_ready(copy, LOCKS[0]), "the stamp was half written"


@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=pytest.mark.skipif(not UV, reason="no uv"))])
def test_the_whole_of_setup(copy, installer):
    path = os.path.dirname(UV) if installer == "uv" else ""
    python, marker, stamp_file = the_python(copy), copy / ".venv/marker", copy / ".venv/course-stamp.json"

    started = time.perf_counter()  # 1. it is made, first without what the tests need, as by `lab`
    done = open_door(copy, change="os.chdir(door.ROOT); door.make(environment.CORE); sys.exit(0)", path=path)
    making = time.perf_counter() - started
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Setting up .venv with {installer} (once; about ") and stamp_file.exists(), done
    assert re.findall(r"^ +\d+ s  (.*): done$", done.stdout, re.MULTILINE) == [
        "step 1 of 2, making .venv",
        "step 2 of 2, installing packages",
    ]
    question = "import course, tiny; print(course.__file__, tiny.answer)"  # both are found from any folder
    answer = subprocess.run([python, "-E", "-c", question], cwd=copy.parent, capture_output=True, text=True)
    assert answer.stdout.split("__init__.py") == [str(copy / "course") + os.sep, " 42\n"], answer.stderr
    assert [*(copy / ".venv").rglob("tiny.*.pyc")], (
        "what is imported is compiled then, and no installer compiles it before"
    )
    marker.touch()
    done = open_door(copy, "setup", path=path)  # and then the tests' packages are added to what is there
    added = f"Adding the packages of the tests to .venv, with {installer} (once)\n"
    assert done.stdout.startswith(added) and "Ready" in done.stdout and marker.exists(), done

    started = time.perf_counter()  # 2. nothing changed: nothing is made, and no second is lost
    done = open_door(copy, "setup", path=path)
    assert "Setting up" not in done.stdout and "Ready" in done.stdout
    assert time.perf_counter() - started < making

    lock = copy / LOCKS[0]  # 3. a lock changed: the rest stays, what `test` added too
    lock.write_text(lock.read_text() + "# changed\n")
    done = open_door(copy, change="os.chdir(door.ROOT); door.make(environment.CORE); sys.exit(0)", path=path)
    assert "Bringing .venv up to date" in done.stdout and marker.exists(), done.stderr
    assert set(json.loads(stamp_file.read_text())["locks"]) == set(LOCKS)

    good = lock.read_text()  # 4. no network: said plainly, and what is half made does not count
    lock.write_text("tiny==2.0 --hash=sha256:" + "0" * 64 + "\n")
    (copy / LOCKS[1]).write_text(lock.read_text())
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9", "UV_INDEX_URL": "http://127.0.0.1:9"}
    done = open_door(copy, "setup", path=path, PIP_RETRIES="1", UV_HTTP_RETRIES="0", **nowhere)
    assert_refused(done, "cannot be reached")
    assert not stamp_file.exists()

    for name in LOCKS:  # 5. so the next start makes it again from the beginning
        (copy / name).write_text(good)
    done = open_door(copy, "setup", path=path)
    assert done.returncode == 0 and not marker.exists(), done.stderr


def test_what_was_removed_from_the_environment_is_put_back(copy):
    """By hand, or by a virus scanner: one file, or the package with what pip knows of it."""
    assert open_door(copy, "setup").returncode == 0
    (copy / ".venv/marker").touch()
    (installed,) = (copy / ".venv").rglob("tiny.py")
    for what in ("tiny.py", "tiny*"):
        for path in installed.parent.glob(what):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        done = open_door(copy, "setup")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Repairing .venv with pip: tiny is missing in it\n") and "Ready" in done.stdout
        assert installed.exists() and (copy / ".venv/marker").exists()
        done = open_door(copy, "setup")
        assert done.stdout.startswith("Ready"), done
    stamp_file = copy / ".venv/course-stamp.json"
    stamp_file.write_text(json.dumps(json.loads(stamp_file.read_text()) | {"installed": [*"abcde"]}))
    assert "Repairing .venv with pip: a, b, c and 2 more are missing in it\n" in open_door(copy, "setup").stdout


def test_another_projects_pythonpath_does_not_reach_the_environment(copy):
    """Neither pip, which would take its packages for installed ones, nor what the door hands over to."""
    foreign = copy.parent / "foreign"
    (foreign / "tiny-1.0.dist-info").mkdir(parents=True)
    (foreign / "tiny-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    for name in ("tiny", "tomllib", "difflib"):  # the door imports the last one
        (foreign / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    done = open_door(copy, "setup", PYTHONPATH=str(foreign))
    assert done.returncode == 0 and "Ready" in done.stdout, done
    assert list((copy / ".venv").rglob("tiny.py")), "pip took the other one for it"
    (foreign / "difflib.py").unlink()
    shown = 'import os; door.hand_over = lambda command: print("handed over", os.environ.get("PYTHONPATH"))'
    program = door_of(copy, "setup", shown)
    environment = os.environ | {"PYTHONPATH": str(foreign)}
    done = subprocess.run([the_python(copy), "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "handed over None\n", done


def test_a_folder_with_an_accent_in_every_locale(copy):
    """LC_ALL=C knows no accents: Python before 3.13 would not start, and the folder would be another one each time."""
    root = copy.rename(copy.with_name("a coursé"))
    made = []
    for locale, utf8 in (("C", 1), ("C", 0), ("C.UTF-8", 1)):
        environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": str(utf8), "PATH": "", "PYTHONCOERCECLOCALE": "0"}
        environment["PIP_CONFIG_FILE"] = os.devnull
        done = subprocess.run([BASE_PYTHON, str(root / "course"), "setup"], env=environment, capture_output=True)
        assert done.returncode == 0 and b"Ready" in done.stdout, done
        made.append(b"Setting up" in done.stdout)
    assert made == [True, False, False]
    (line,) = next((root / ".venv").rglob("levels-course.pth")).read_text(encoding="ascii").splitlines()
    assert not os.path.isabs(line)


def begun(root):
    """A setup that goes on by itself, once it has said that it begins."""
    process = subprocess.Popen(
        [BASE_PYTHON, "-I", "-S", "-c", door_of(root, "setup")],
        env={name: value for name, value in os.environ.items() if name != "PATH"} | {"PIP_CONFIG_FILE": os.devnull},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert any(line.startswith("Setting up") for line in process.stdout), "it ended before it began"
    return process


def test_a_setup_that_was_killed_blocks_no_other_and_of_two_the_second_waits_for_the_first(copy):
    """After one that was killed the next waits at most for the installer that was left, which would write into its own."""
    with begun(copy) as killed:
        killed.kill()
    with begun(copy) as first:
        second = open_door(copy, "setup")
        assert first.wait() == second.returncode == 0, second
    assert "waiting" in second.stdout and "Ready" in second.stdout
    assert "Setting up" not in second.stdout, "it was made twice"


# Dropping this right makes the system hold the one who runs the tests, where that is root, to what a folder allows.
AS_A_USER = ["setpriv", "--bounding-set=-dac_override"] if os.name == "posix" and os.geteuid() == 0 else []


@pytest.mark.skipif(os.name != "posix" or AS_A_USER and not shutil.which("setpriv"), reason="root may write anywhere")
@pytest.mark.parametrize("name", ["lab", "setup", "build", "undo"])
def test_a_folder_that_cannot_be_written_to(copy, name):
    """It is said at once, where `.venv` is missing and where it is complete."""
    for locks in ({}, digests(copy, *LOCKS)):
        stamp(copy, locks)
        copy.chmod(0o555)
        try:
            command = [*AS_A_USER, BASE_PYTHON, "-I", "-S", "-B", "-c", door_of(copy, name)]
            done = subprocess.run(command, capture_output=True, text=True)
        finally:
            copy.chmod(0o755)
        assert_refused(done, "This folder cannot be written to", str(copy))


def test_it_works_from_a_folder_whose_files_are_called_like_modules(copy):
    """Those of Python, which the door imports, and its own. The first call makes `.venv`, the second finds it."""
    reader = copy.parent
    for name in ("json", "shutil", "difflib", "sysconfig", "pip", "venv", "argparse"):
        (reader / f"{name}.py").write_text("raise SystemExit('the wrong module')")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TEMP", "TMP") if name in os.environ}

    def door(*called, path):
        environment = kept | {"PATH": "", "PYTHONPATH": path, "PIP_CONFIG_FILE": os.devnull}
        command = [BASE_PYTHON, *called, "setup"]
        done = subprocess.run(command, cwd=reader, env=environment, capture_output=True, text=True)
        ready = f"Ready: Python {platform.python_version()} in {copy / '.venv'}\n"
        assert done.returncode == 0 and done.stdout.endswith(ready), done

    door("-m", "course", path=str(copy))
    (reader / "course").mkdir()
    (reader / "course" / "__init__.py").write_text("raise SystemExit('the wrong course')")
    (copy / "course" / "difflib.py").write_text("raise SystemExit('the wrong module')")
    door("a course/course", path="")


def test_paths_are_those_of_the_readers_folder(tmp_path, monkeypatch):
    """They are made whole for pytest and JupyterLab, which are started in the course's folder."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mine.py").touch()
    (tmp_path / "words").touch()
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "tests" / "test_mine.py")
    assert the_door.whole("tests/test_mine.py::test_x") == path + "::test_x"
    assert the_door.whole("tests/test_other.py") == "tests/test_other.py"  # maybe the course's own
    assert the_door.whole("words") == "words"  # as in `-k words`


@pytest.mark.parametrize("system", ["posix", "nt"])
def test_exit_status_is_passed_on(copy, system):
    handed = "sys.exit(door.hand_over([sys.executable, '-c', 'raise SystemExit(7)']))"
    done = open_door(copy, change=f"os.name = {system!r}; {handed}")
    assert done.returncode == 7


GIVEN = {  # what a reader gives to `test`, what pytest gets of it, and whether the tests then run in one process
    "nothing": ([], "-m quick", False),
    "all": (["--all"], "--dist=worksteal -m not weekly", False),
    "all, with an option": (["--all", "-x"], "-m not weekly -x", False),
    "weekly": (["--weekly"], "--dist=worksteal -m weekly", False),
    "every test": (["--weekly", "--all"], "--dist=worksteal", False),  # and no more
    "all of a file": ([__file__, "--all"], f"-m pytest {__file__}", True),  # whatever its tests' marks
    "a word": (["-k", "course", "-x"], "-k course -x", False),  # which is a folder, too
    "a test": ([f"{__file__}::test_it", "-v"], f"-m pytest {__file__}::test_it -v", True),
    "no other processes": (["-p", "no:xdist"], "-m pytest -p no:xdist", True),
}


@pytest.mark.parametrize("given, handed_on, alone", GIVEN.values(), ids=GIVEN)
def test_the_tests_run_side_by_side_unless_some_are_named(given, handed_on, alone, monkeypatch):
    monkeypatch.setattr(commands, "hand_over", " ".join)
    command = commands.test(given)
    assert command.endswith(" " + handed_on)
    assert ("--numprocesses" in command) != alone


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="the tests run in no environment")
def test_an_active_environment_with_everything_is_used_as_it_is(copy):
    done = open_door(copy, "setup", python=sys.executable, flags=())
    assert done.returncode == 0 and sys.prefix in done.stdout, done
    assert not (copy / ".venv").exists()
    project = (copy / "pyproject.toml").read_text(encoding="utf-8")
    (copy / "pyproject.toml").write_text(project.replace('"tqdm>=', '"tqdm>=9'), encoding="utf-8")
    told = "print(environment.lacking(environment.CORE), environment.active())"
    done = open_door(copy, change=told, python=sys.executable, flags=())
    assert done.stdout.startswith("['tqdm>=94.66,<5'] False\n"), "a package outside its bounds"


@pytest.fixture
def lean(copy):
    """A small course whose tests need a package that the active environment, which has all others, has not."""
    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests run in no environment")
    project = (copy / "pyproject.toml").read_text(encoding="utf-8")
    (copy / "pyproject.toml").write_text(project.replace('"onnx>=1', '"onnx>=9'), encoding="utf-8")
    return copy


def test_what_an_active_environment_lacks_is_named_with_the_command_that_adds_it(lean):
    for command in ("test", "setup"):
        done = open_door(lean, command, python=sys.executable, flags=())
        assert_refused(done, f"{sys.prefix} lacks onnx", '\n\npython -m pip install "onnx>=9.20,<2"\n\n')
    assert not (lean / ".venv").exists()
    done = open_door(lean, "progress", python=sys.executable, flags=())
    assert "lacks" not in done.stderr, "a command that needs none of it"


def test_the_courses_own_environment_has_what_an_active_one_lacks(lean):
    stamp(lean, digests(lean, *LOCKS))
    shown = "door.hand_over = lambda command: print(command[0])"
    done = open_door(lean, "test", change=shown, python=sys.executable, flags=())
    assert done.stdout.startswith(str(lean / ".venv")), done


@pytest.mark.quick
def test_in_a_conda_environment_conda_adds_it(tmp_path, monkeypatch):
    (tmp_path / "conda-meta").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    told = environment.incomplete(["onnx>=1.20,<2", "playwright>=1.50,<2"])
    assert 'conda install --channel conda-forge "onnx>=1.20,<2" "playwright-python>=1.50,<2"\n' in told
    assert "lacks onnx, playwright." in told and "`conda deactivate`" in told


@pytest.mark.parametrize("version, inside", [("2.4.6", True), ("2.10", False), ("2.2rc1", True), ("2.1.9", False)])
def test_bounds_are_compared_as_numbers(version, inside):
    assert environment.within(version, "numpy>=2.2,<2.5") == inside


# The files it stands on -----------------------------------------------------------------------------------------------


def locked(name):
    """Package -> (version, how many hashes) of a lock."""
    found, last = {}, None
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if pin := re.match(r"([\w.-]+)==(\S+)", line):
            last = pin[1]
            found[last] = pin[2], 0
        elif "--hash=sha256:" in line:
            found[last] = found[last][0], found[last][1] + 1
    return found


def test_the_test_lock_contains_the_core_lock():
    core, test = map(locked, LOCKS)
    assert len(core) > 50
    assert core.items() <= test.items()
    assert all(hashes > 0 for _, hashes in test.values())


def for_tests(group="test"):
    """What the second lock has beside the course's own: what the tests need, and more/, and the site."""
    lines = PROJECT["dependency-groups"][group]
    included = [line for each in lines if isinstance(each, dict) for line in for_tests(each["include-group"])]
    return [each for each in lines if isinstance(each, str)] + included


def test_the_tests_have_what_the_more_notebooks_and_the_site_need():
    groups = PROJECT["dependency-groups"]
    assert {*groups["more"], *groups["site"]} < {*for_tests()}
    assert not {re.split("[<>=]", line)[0] for line in for_tests()} & {*locked(LOCKS[0])}


@pytest.mark.quick
@pytest.mark.parametrize("lock", LOCKS)
def test_the_locks_fit_pyproject(lock):
    pins = locked(lock)
    wanted = PROJECT["project"]["dependencies"] + for_tests() * (lock == LOCKS[1])
    for line in wanted:
        assert environment.within(pins[re.split("[<>=]", line)[0]][0], line.partition(";")[0]), line


@pytest.mark.quick
def test_conda_and_pip_name_the_same_packages():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    compared = [line for line in for_tests() if re.match("(pytest|nbval)>", line)]
    wanted = [*PROJECT["project"]["dependencies"], *compared, "python" + PROJECT["project"]["requires-python"]]
    assert len(compared) == 2
    assert sorted(line.replace(" ", "") for line in environment["dependencies"]) == sorted(wanted)


def test_pip_installs_every_file_of_the_two_packages():
    told = PROJECT["tool"]["setuptools"]
    assert told["packages"]["find"]["include"] == ["levels*"]
    data = {path for pattern in told["package-data"]["levels_more"] for path in (ROOT / "levels_more").glob(pattern)}
    others = {path for package in ("levels", "levels_more") for path in (ROOT / package).rglob("*") if path.is_file()}
    assert {path for path in others if path.suffix not in (".py", ".pyc")} == data


@pytest.mark.skipif(os.name == "nt", reason="Binder's computers run Linux")
def test_binder_starts_from_the_lock_and_finds_the_course(tmp_path):
    """Its script runs with a Python that only writes down what it is asked for."""
    (minor,) = re.fullmatch(r"python-3\.(\d+)\n", (ROOT / ".binder" / "runtime.txt").read_text()).groups()
    assert environment.PYTHONS[0] <= (3, int(minor)) <= environment.PYTHONS[1]
    after = ROOT / ".binder" / "postBuild"
    assert os.access(after, os.X_OK)
    recorder = tmp_path / "python"
    recorder.write_text(f"#!/bin/bash\nprintf '%s\\0' \"$@\" >> {tmp_path}/asked\nprintf '\\1' >> {tmp_path}/asked\n")
    recorder.chmod(0o755)
    subprocess.run([after], check=True, cwd=ROOT, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    install, find = ((tmp_path / "asked").read_text().split("\0\1")[k].split("\0") for k in (0, 1))
    assert install[:3] == ["-m", "pip", "install"] and {"--no-deps", "--require-hashes"} <= {*install}
    assert install[-2:] == ["-r", LOCKS[0]] and (ROOT / LOCKS[0]).is_file()
    assert find[0] == "-c"
    here = f"import sysconfig\nsysconfig.get_path = lambda name: {str(tmp_path)!r}\n"
    subprocess.run([sys.executable, "-c", here + find[1]], check=True, cwd=ROOT)
    assert (tmp_path / "levels-course.pth").read_text() == str(ROOT)


def test_a_devcontainer_is_set_up_from_the_lock():
    told = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    (minor,) = re.search(r"/python:3\.(\d+)$", told["image"]).groups()
    assert environment.PYTHONS[0] <= (3, int(minor)) <= environment.PYTHONS[1]
    *door, command = told["postCreateCommand"].split()
    assert door == ["python3", "-m", "course"] and command == "setup" and command in commands.COMMANDS
    python = told["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert python == "${containerWorkspaceFolder}/.venv/bin/python"  # where setup installs the packages of the lock


def test_what_colab_lacks_is_asked_for_as_in_pyproject():
    page = (ROOT / "course" / "author" / "site" / "pages" / "elsewhere.md").read_text(encoding="utf-8")
    asked = re.findall(r'"(\w+>[^"]+)"', page)
    assert len(asked) == 4 and set(asked) <= {*PROJECT["project"]["dependencies"]}


def test_the_door_and_pyproject_name_the_same_pythons():
    (_, low), (_, high) = environment.PYTHONS
    assert PROJECT["project"]["requires-python"] == f">=3.{low},<3.{high + 1}"


@pytest.mark.parametrize("name", [*LOCKS, "pyproject.toml", "environment.yml", "jupytext.toml", ".ci/run"])
def test_no_address_and_no_path_of_a_machine(name):
    text = (ROOT / name).read_text(encoding="utf-8").removeprefix("#!/usr/bin/env bash")
    assert not re.findall(
        r"\w+://\S*|--(?:extra-)?index-url|--find-links|(?<![\w.$*}>/])/(?!dev/null)\w+/\S*|[A-Z]:\\", text
    )


def test_a_text_holds_what_its_author_wrote_and_nothing_else(tmp_path):
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    notebook.cells = [nbformat.v4.new_code_cell("1 + 1", metadata={"tags": ["a"], "scrolled": True, "trusted": True})]
    config = load_jupytext_config(str(ROOT / "notebooks" / "01_hardware.ipynb"))
    assert config.default_formats(str(ROOT / "notebooks/01_hardware.ipynb")) is None  # Lab writes no text
    assert jupytext.writes(notebook, "py:percent", config=config) == '# %% tags=["a"]\n1 + 1\n'
