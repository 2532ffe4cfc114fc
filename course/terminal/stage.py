"""Run programs for a command: setup steps, with their progress. Also a file lock."""

import os
import shutil
import subprocess
import sys
import threading
import time

from course.terminal.causes import cause

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def fail(message):
    sys.exit(message)  # to stderr, with status 1


def hand_over(command):
    """Run another program and return its exit status. On POSIX systems, it replaces this process instead."""
    sys.stdout.flush()
    if os.name == "posix":
        os.execv(command[0], command)
    process = subprocess.Popen(command)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass  # the other program receives Ctrl-C too, and handles it


def try_lock(file):
    """Try to lock an open file. Returns False if another process has the lock, otherwise True."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # another process has it (the errors of POSIX and of Windows)
        return False
    except OSError:
        pass  # a file system without locks, perhaps on a network
    return True


def stage(title, command, step="", began=None):
    """Run one step of the setup and show its progress. If it fails, exit with a message that names the cause.

    step: text for its number, if there are several steps; began: the start time for the clock shown (default: now).
    """
    # Whatever the user's pip configuration says, pip must not ask anything or install outside .venv.
    quiet = {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    # In ROOT, because `-m pip` would import modules from the current folder. The lock file's descriptor is inherited.
    place = {"cwd": ROOT, "env": {**os.environ, **quiet}, "close_fds": False}
    process = subprocess.Popen(command, universal_newlines=True, errors="replace", **pipes, **place)
    lines, started, shown = [], began or time.time(), 0
    reader = threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True)
    reader.start()
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((100, 24)).columns - 1
    try:
        while reader.is_alive():
            reader.join(0.2)
            seconds = time.time() - started
            news = f"  {seconds:3.0f} s  {step}{title}  {''.join(lines[-1:]).strip()}"[:width]
            if terminal:  # one line, overwritten each time
                print("\r" + news.ljust(width), end="", flush=True)
            elif seconds > shown + 15 and reader.is_alive():  # a log: a line every 15 s
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
