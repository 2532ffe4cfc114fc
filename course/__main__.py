"""The entry point of the course: `python3 -m course COMMAND` sets up the environment, then runs COMMAND.

It uses only the standard library and the syntax of Python 3.7, because it starts on any Python: it makes `.venv`, or
says what is missing for that, and runs itself again in `.venv`, where the packages are installed.
"""

import os
import sys

if __name__ == "__main__":
    # Python puts the current folder, or course/, first on sys.path. A file there may have the name of any module.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) not in (here, os.getcwd())]
    sys.path.insert(0, os.path.dirname(here))

import difflib
import signal

from course.author.setup.environment import PYTHON, active, incomplete, inside, lacking, ready
from course.author.setup.making import check_writable, make, one_at_a_time
from course.commands import COMMANDS, JUPYTER, help_text
from course.terminal.arguments import HANDED_ON, check_arguments
from course.terminal.stage import ROOT, fail, hand_over


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    name = arguments[0]
    rest = arguments[1:]
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, 1, 0.4)
        hint = f"Did you mean  python3 -m course {near[0]}" if near else f"There are: {', '.join(COMMANDS)}"
        fail(f"There is no command {name!r}. {hint}")
    rest = check_arguments(name, rest)  # raises SystemExit for --help and wrong arguments
    command, lock = COMMANDS[name]
    if name != "progress":  # it only reads
        check_writable()
    os.environ.setdefault("LEVELS_CACHE", os.path.join(ROOT, ".course", "programs"))  # compiled programs are kept here
    if not at_home(lock):
        return hand_over([PYTHON, os.path.join(ROOT, "course")] + arguments)
    if name in JUPYTER:
        from course.author.setup.homes import settle

        told = settle(ROOT)
        if told:
            print(told, flush=True)
    if name in HANDED_ON:
        rest = [whole(argument) for argument in rest]
        os.chdir(ROOT)
    return command(rest)


def at_home(lock):
    """Return whether this process has the packages of a lock. If not, `.venv` has them; it is made if necessary."""
    theirs = active()
    if theirs and lacking(lock):
        if not ready(lock):
            fail(incomplete(lacking(lock)))
        theirs = False  # the course's own environment is there, and has what is missing
    if theirs:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
        return True
    # Packages of another project, perhaps in other versions, would take precedence over those of `.venv`.
    foreign = os.environ.pop("PYTHONPATH", None)
    complete = ready(lock)
    if not complete:
        check_writable()
        with one_at_a_time():
            if not ready(lock):  # otherwise another process has made it
                make(lock)
    return complete and inside() and not foreign


def whole(argument):
    """Return an absolute path for an existing file argument, because programs are started in the course's folder."""
    path, colons, test = argument.partition("::")
    is_path = os.path.basename(path) != path or os.path.splitext(path)[1]
    return os.path.abspath(path) + colons + test if is_path and os.path.exists(path) else argument


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # handled as Ctrl-C, so that no pip keeps running
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The same command starts again, and clears up what is half done.")
