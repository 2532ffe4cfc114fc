"""Run programs in processes of their own, several at a time, so that what one sets does not affect another."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from course.author.bench.libraries import environment
from course.reader.programs import here

WORKER = "from course import programs; programs.answer()"
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUTF8": "1"}


def ask(each, library, python=sys.executable):
    """Run a program in a new process of this Python. Returns what `answer` prints, or {"skipped": why} if that fails.

    A default that the program sets, such as a dtype, does not affect other programs.
    """
    text = here(each.text) if library == "levels_more" else each.text
    return in_process(WORKER, text, python, each.name, library)


def in_process(worker, text, python, *args):
    """Return the JSON in the last line that a worker prints, given this text; {"skipped": why} if it fails."""
    pipes = {"capture_output": True, "encoding": "utf-8"}
    done = subprocess.run([python, "-c", worker, *args], input=text, env=environment(1, **QUIET), **pipes)
    if done.returncode:
        return {"skipped": (done.stderr.strip() or f"it ended with {done.returncode}").splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def as_they_end(function, things):
    """Yield (thing, function(thing)) as each ends, running several in parallel."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        running = {threads.submit(function, thing): thing for thing in things}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        finally:
            threads.shutdown(cancel_futures=True)  # after Ctrl-C none is started any more


def ask_all(asked, library_of, python_of):
    """Yield (Program, result of `ask`) as each ends, running several programs in parallel."""
    return as_they_end(lambda each: ask(each, library_of(each), python_of(each)), asked)
