"""The process that a student's code runs in."""

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

from course.builder.names import ROOT

START_TIMEOUT = 180  # for Python to start, and for the notebook's imports: a busy computer is no student's fault
LARGEST_ANSWER = 8 << 20  # bytes of an answer
KEPT_VARIABLES = re.compile(  # of the teacher's environment variables: no password is among these
    r"PATH|LANG|LC_\w+|LD_LIBRARY_PATH|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|PATHEXT"
    r"|PROCESSOR_\w+|NUMBER_OF_PROCESSORS|(OMP|OPENBLAS|MKL|NUMBA)_\w+"
)
UNASKED = "it gives an answer to another question"


class ProcessEnded(BaseException):
    """A process that says no more, or nothing that can be heeded; the text says why.

    It is no Exception: a check that asks does not take it for a result that cannot be compared.
    """


class Process:
    """A student's code, at the other end of two pipes. What comes from there is believed to be data, no more."""

    def __init__(self, level: str, copy: Path, hidden: Path):
        home = copy.parent / "home"
        home.mkdir(exist_ok=True)
        places = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "IPYTHONDIR"), home)
        places |= {"PYTHONPATH": copy, "LEVELS_CACHE": home / "programs"}
        own = {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"} | {key: str(place) for key, place in places.items()}
        command = [
            sys.executable,
            "-m",
            "course.practice.sandbox.isolation",
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
        with contextlib.suppress(ProcessEnded):  # else the first request tells why
            # Said before anything of the student's has run.
            self.protections = self.exchange(START_TIMEOUT, START_TIMEOUT, b"")

    def ask(self, seconds: float, *what, limit: float = 0):
        """The answer to a request (`worker`). Raises ProcessEnded."""
        number = secrets.token_hex(8)  # nobody can answer before he is asked
        match self.exchange(seconds, limit or seconds, json.dumps([number, *what]).encode() + b"\n"):
            case [str() as said, answer] if said == number:
                return answer
        raise ProcessEnded(UNASKED)

    def exchange(self, seconds: float, limit: float, line: bytes):
        """Write a line, read a line, and wait no longer than so many seconds, whatever the other end does."""
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
        """End the process, and what it started."""
        self.process.terminate()  # on Linux the guards of `isolation` end all that is left
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL) if os.name == "posix" else self.process.kill()
        self.process.wait()
        self.talk.join(1)
        if not self.talk.is_alive():  # else somebody who got away holds the pipe, and closing it would wait for him
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.stdout.close()


def readable(hidden: Path) -> list[str]:
    """What may be read, on Linux: Python, its packages, and all that lies beside the course, `hidden` and the home."""
    away = [Path(each).resolve() for each in (ROOT, hidden, Path.home(), tempfile.gettempdir())]

    def beside(folder: Path):
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if any(path in each.parents for each in away):
                    yield from beside(path)
                elif path not in away and not path.is_symlink():  # it may lead back
                    yield str(path)

    own = [sys.prefix, sys.base_prefix, site.getusersitepackages()]
    return [*own, *beside(Path("/"))] if sys.platform == "linux" else []
