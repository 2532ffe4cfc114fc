"""Programs that a command starts: a step of a setup, shown as it goes and explained where it fails; a lock; the end."""

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


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


def machine(version):
    """What a package must fit, in words."""
    return f"{platform.system()} {platform.machine()}, Python {version}"


CAUSES = {  # what an installer says, and what it means; the first that fits is told
    r"network (is|was) disabled": "uv is set to use no network.\n"
    "Unset UV_OFFLINE, or make a wheelhouse on another computer.",
    r"no space left|disk quota|not enough space": "the disk is full.",
    r"name resolution|getaddrinfo|new connection|connection (refused|reset)|dns error|unreachable|timed out"
    r"|connect error|error sending request|proxyerror|remote end closed": "the package index cannot be reached.\n"
    "Check the network. Behind a proxy, set HTTPS_PROXY.",
    r"certificate": "the certificate of the package index was not accepted."
    " Is there a proxy or a virus scanner in between?",
    r"do not match the hashes|hash mismatch": "a downloaded file does not match its hash in the lock. Try again.",
    r"no matching distribution|no wheels|no usable wheels": "a package has no ready-made build for this machine: "
    f"{machine(platform.python_version())}.",
}


def cause(output, status):
    if os.environ.get("PIP_NO_INDEX") and re.search("no matching distribution", output, re.I):
        return "pip is set to use no network.\nUnset PIP_NO_INDEX, or make a wheelhouse on another computer."
    told = [meaning for pattern, meaning in CAUSES.items() if re.search(pattern, output, re.I)]
    return told[0] if told else f"the installer ended with status {status}."
