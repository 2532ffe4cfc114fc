"""The process in which a student's code runs, as the grading process sees it."""

import contextlib
import json
import os
import queue
import re
import secrets
import signal
import site
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from course.reader.notebooks.names import ROOT

START_TIMEOUT = 180  # seconds for Python's start and the notebook's imports, also on a busy computer
LARGEST_ANSWER = 8 << 20  # bytes of an answer
KEPT_VARIABLES = re.compile(  # the teacher's environment variables that are passed on; none holds a password
    r"PATH|LANG|LC_\w+|LD_LIBRARY_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT"
    r"|PROCESSOR_\w+|NUMBER_OF_PROCESSORS|(OMP|OPENBLAS|MKL|NUMBA)_\w+"
)
UNASKED = "it gives an answer to another question"


class ProcessEnded(BaseException):
    """The process has ended, takes too long, or gives an invalid answer; the text says which.

    It is no Exception, so that no `except Exception` in a check treats it as a result that cannot be compared.
    """


class Process:
    """A student's code in another process, reached by two pipes. What comes from there is treated as data only."""

    def __init__(self, level: str, copy: Path, hidden: Path):
        home = copy.parent / "home"
        home.mkdir(exist_ok=True)
        places = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "IPYTHONDIR"), home)
        places |= {"PYTHONPATH": copy, "LEVELS_CACHE": home / "programs"}
        own = {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"} | {key: str(place) for key, place in places.items()}
        command = [
            sys.executable,
            "-m",
            "course.teacher.sandbox.isolation",
            level,
            str(home),
            str(copy),
            *readable(hidden),
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        kept = {key: value for key, value in os.environ.items() if KEPT_VARIABLES.fullmatch(key)}
        self.process = subprocess.Popen(command, cwd=home, env=kept | own, start_new_session=True, **pipes)
        self.talk = None
        self.protections = []
        with contextlib.suppress(ProcessEnded):  # the first request raises the reason
            # The process sends this before any of the student's code has run.
            self.protections = self.exchange(START_TIMEOUT, START_TIMEOUT, b"")

    def ask(self, seconds: float, *what, limit: float = 0):
        """The answer to a request (`worker`). Raises ProcessEnded. limit: the seconds that its message names."""
        number = secrets.token_hex(8)  # unpredictable: no answer can be written before its request
        match self.exchange(seconds, limit or seconds, json.dumps([number, *what]).encode() + b"\n"):
            case [str() as said, answer] if said == number:
                return answer
        raise ProcessEnded(UNASKED)

    def exchange(self, seconds: float, limit: float, line: bytes):
        """Write a line, and return the JSON of the answer. Raises ProcessEnded if none comes within these seconds."""
        answers = queue.Queue()

        def talk():
            try:
                self.process.stdin.write(line)
                self.process.stdin.flush()
                answers.put(self.process.stdout.readline(LARGEST_ANSWER))
            except (OSError, ValueError):
                answers.put(b"")

        self.talk = threading.Thread(target=talk, daemon=True)
        self.talk.start()
        try:
            answer = answers.get(timeout=max(0.0, seconds))
        except queue.Empty:
            raise ProcessEnded(f"it takes more than {limit:g} s") from None
        if not answer:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise ProcessEnded(f"it ends the process (status {self.process.wait(5)})")
            raise ProcessEnded("it gives no answer any more")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise ProcessEnded(UNASKED) from None

    def end(self) -> None:
        """End the process, and all that it started."""
        self.process.terminate()  # on Linux the guards of `isolation` end all that is left
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL) if os.name == "posix" else self.process.kill()
        self.process.wait()
        self.talk.join(1)
        if not self.talk.is_alive():  # otherwise an escaped process holds the pipe, and closing it would block
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.stdout.close()


def readable(hidden: Path) -> list[str]:
    """The readable paths on Linux: Python, and all but the course, `hidden`, the home and the temporary folder."""
    away = [Path(each).resolve() for each in (ROOT, hidden, Path.home(), tempfile.gettempdir())]

    def beside(folder: Path):
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if any(path in each.parents for each in away):
                    yield from beside(path)
                elif path not in away and not path.is_symlink():  # a link may lead back
                    yield str(path)

    own = [sys.prefix, sys.base_prefix, site.getusersitepackages()]
    return [*own, *beside(Path("/"))] if sys.platform == "linux" else []
