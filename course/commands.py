"""The functions of the commands of `python3 -m course`. The arguments are defined in `arguments.py`."""

import os
import platform
import sys
import webbrowser

from course.author.setup.environment import CORE, MEGABYTES, TEST
from course.author.setup.wheelhouse import wheelhouse
from course.terminal.arguments import COMMANDS as HELP
from course.terminal.stage import fail, hand_over


def lab(arguments):
    from course.author.setup import depth, warmup, workspace
    from course.reader.language import speaking
    from course.reader.notebooks import names
    from course.reader.notebooks.cells import BuildError

    if "--answers" in arguments:
        os.environ["COURSE_ANSWERS"] = "1"
    trail = "--trail" in arguments
    hidden = True if "--class" in arguments else False if "--no-class" in arguments else None
    only_desk = "--desk" in arguments
    own = "--answers", "--trail", "--class", "--no-class", "--desk"
    arguments, written = without_option([each for each in arguments if each not in own], "--write")
    arguments, language = without_option(arguments, "--language")
    try:
        depth.choose(names.ROOT, written, hidden, language)
        language = names.language_in(names.ROOT)
        with speaking(language):
            for line in workspace.open_desk(names.ROOT):
                print(line, flush=True)
    except BuildError as error:
        fail(str(error))
    if only_desk:
        return 0
    warmup.begin(names.ROOT)
    with speaking(language):
        return open_lab(arguments, names.trail_in(names.ROOT, language)[0] if trail else None)


def without_option(arguments, name):
    """Return the arguments without this option, and its value, or "" if it is not given."""
    rest = []
    value = ""
    waiting = iter(arguments)
    for each in waiting:
        if each == name:
            value = next(waiting, "")
        elif each.startswith(name + "="):
            value = each.partition("=")[2]
        else:
            rest.append(each)
    return rest, value


def resume(arguments):
    from course.author.setup import workspace
    from course.reader.language import speaking
    from course.reader.notebooks import names
    from course.reader.notebooks.cells import BuildError
    from course.reader.session import resume

    with speaking(names.language_in(names.ROOT)):
        try:
            lines = workspace.open_desk(names.ROOT)
            told, opened = resume.main(names.ROOT)
        except BuildError as error:
            fail(str(error))
        print("\n".join([*lines, told]), flush=True)
        return open_lab(arguments, opened)


def open_lab(arguments, opened):
    """Open JupyterLab on the desk. If it runs already, open that one: in two servers, a file would have two editors."""
    from course.author.setup import lab as jupyterlab
    from course.author.setup import workspace
    from course.reader.language import say
    from course.reader.notebooks import names

    desk = names.ROOT / names.MINE
    server = jupyterlab.running(desk) or jupyterlab.started_elsewhere(names.ROOT, desk)
    if server is None or "--help" in arguments:
        return hand_over(workspace.lab_command(names.ROOT, arguments, opened))
    address = jupyterlab.address(server["url"], workspace.page_of(opened), server["token"])
    print(say("JupyterLab is already open in this folder: {address}", address=address))
    if "--no-browser" not in arguments and workspace.has_browser():
        webbrowser.open(address)
    return 0


SELECTIONS = {"--all": ["-m", "not weekly"], "--weekly": ["-m", "weekly"]}  # of `test`


def test(arguments):
    """Run a two-minute sample of the tests; with other arguments, the tests that they select.

    --all runs all tests but the weekly ones, --weekly runs these, and both together run every test. A file or a test
    that is named runs whatever its mark.
    The tests run in parallel, because half of them wait for a program. A process without tests takes over another's.
    If a test file is named, one process is used, which starts sooner. The user's options come last and take precedence.
    """
    if not arguments:
        print(
            "Testing both models on all five levels, the five notebooks and the trail, and a sample of all other tests"
        )
        arguments = ["-m", "quick"]
    asked = [option for option in SELECTIONS if option in arguments]
    arguments = [argument for argument in arguments if argument not in SELECTIONS]
    named = any(argument.split("::")[0].endswith(".py") for argument in arguments)
    alone = named or any(argument.endswith("no:xdist") for argument in arguments)
    if len(asked) == 1 and not named:
        arguments = SELECTIONS[asked[0]] + arguments
    side_by_side = ["--numprocesses=logical", "--maxprocesses=4", "--dist=worksteal"]
    return hand_over([sys.executable, "-m", "pytest"] + ([] if alone else side_by_side) + arguments)


def browser_test(arguments):
    from course.author.setup.browser import main

    return main(arguments)


def setup(arguments):
    print(f"Ready: Python {platform.python_version()} in {sys.prefix}")
    return 0


def build(arguments):
    from course.author.builder.cli import main

    return main(arguments)


def progress(arguments):
    from course.reader.language import speaking
    from course.reader.notebooks import names
    from course.reader.notebooks.cells import BuildError
    from course.reader.session.table import table

    try:
        with speaking(names.language_in(names.ROOT)):
            print(table())
    except BuildError as error:
        fail(str(error))
    return 0


def keeping(command):
    def keep(arguments):
        from course.author.setup.reset import main

        return main(command, arguments)

    return keep


def beat(arguments):
    from course.teacher.grading.beat import main

    return main(arguments)


def grade(arguments):
    from course.teacher.grading.whole_class import main

    return main(arguments)


def bench(arguments):
    from course.author.bench.cli import main

    return main(arguments)


def serve(arguments):
    from course.reader.serving import main

    return main(arguments)


def site(arguments):
    from course.author.site import main

    return main(arguments)


def programs(arguments):
    from course.author.programs.cli import main

    return main(arguments)


JUPYTER = "lab", "resume", "test", "browser-test", "build", "programs"  # those that start notebooks or kernels
COMMANDS = {  # name: (its function, the lock it needs); the arguments are in course/terminal/arguments.py
    "lab": (lab, CORE),
    "test": (test, TEST),
    "browser-test": (browser_test, TEST),
    "setup": (setup, TEST),
    "build": (build, TEST),
    "bench": (bench, TEST),
    "serve": (serve, TEST),
    "programs": (programs, TEST),
    "site": (site, TEST),
    "progress": (progress, CORE),
    "resume": (resume, CORE),
    "reset": (keeping("reset"), CORE),
    "catch-up": (keeping("catch-up"), CORE),
    "undo": (keeping("undo"), CORE),
    "beat": (beat, CORE),
    "grade": (grade, TEST),  # exercises in more/ are graded too
    "wheelhouse": (wheelhouse, CORE),
}
READERS = "lab", "resume", "progress", "reset", "catch-up", "undo", "test", "setup"  # others: building and teaching


def help_text():
    def lines(names):
        return "\n".join(f"  {name:13} {HELP[name][0]}" for name in names)

    return f"""usage: python3 -m course COMMAND [ARGUMENT ...]

To read and work:
{lines(READERS)}

To build, measure, serve and grade:
{lines(name for name in COMMANDS if name not in READERS)}

`python3 -m course COMMAND --help` shows the arguments of a command. In another folder, type
`python3 path/to/course COMMAND`.
The first command makes .venv in this folder, with uv if it is installed, otherwise with venv and pip. This takes about
{MEGABYTES[CORE]} MB, once. Some notebooks in more/, the tests and the site need more packages
({MEGABYTES[TEST]} MB in all). `setup` adds them, and so does the first command that needs them. Deleting .venv is
always safe.
If an activated environment (conda or venv) already has the packages of pyproject.toml, the course uses it instead."""
