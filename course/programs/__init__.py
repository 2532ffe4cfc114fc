"""The two tasks as TensorFlow's and PyTorch's readers write them: programs that also run on `levels_more`.

    python3 -m course programs           run all on levels_more, and tell how far they are from the stored losses
    python3 -m course programs --real    run all on the real libraries, and store their losses

Each is a whole program, FRAMEWORK/API_TASK.py, which trains on the data, weights and batches of `course.tasks` in float64
and ends with a list `losses`. Only its lines that import another library change.
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from course.setup import files
from course.setup.arguments import parser

FOLDER = Path(__file__).resolve().parent
STORED = FOLDER / "losses.json"  # {name: {"losses", "version", "digest"}}
FRAMEWORKS = {"tf": "tensorflow", "torch": "torch", "torchkeras": "torchkeras"}  # short name: library
ALIKE = 1e-5  # how far from the stored losses a program may be
IMPORT = re.compile(rf"^(\s*)(import|from) ({'|'.join(FRAMEWORKS.values())})\b(?P<rest>.*)$", re.MULTILINE)
WORKER = "from course import programs; programs.answer()"

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUTF8": "1"}


class Program(NamedTuple):
    """A program as it is written for its library, and what that gave."""

    framework: str  # "tf", "torch" or "torchkeras"
    api: str  # "low", "mid" or "high"
    task: str  # "linear" or "rings"
    name: str  # "tensorflow/low_linear.py"
    text: str
    losses: list  # of the first 200 steps; of torchkeras a table of epochs, column by column
    version: str  # of the library that gave them
    digest: str  # of the text that gave them


def program(framework, api, task):
    """The Program of this framework, API and task. Raises LookupError where there is none."""
    found = {tuple(each[:3]): each for each in programs()}
    if (framework, api, task) not in found:
        raise LookupError(f"there is no program {framework} {api} {task}: there are {', '.join(map(' '.join, found))}")
    return found[framework, api, task]


def programs(*frameworks):
    """All programs, or those of these frameworks."""
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for framework in frameworks or FRAMEWORKS:
        for path in sorted((FOLDER / FRAMEWORKS[framework]).glob("*.py")):
            (api, task), name = path.stem.split("_"), f"{path.parent.name}/{path.name}"
            known = stored.get(name, {"losses": [], "version": "", "digest": ""})
            yield Program(framework, api, task, name, path.read_text(encoding="utf-8"), **known)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def here(text):
    """The text of a program with its imports changed, so that it runs on `levels_more`; nothing else in it changes."""

    def changed(line):
        space, how, library, rest = line.groups()
        bound = f" as {library}" if how == "import" and not rest else ""  # `import torch` binds that name
        return f"{space}{how} levels_more.{library}{bound}{rest}"

    return IMPORT.sub(changed, text)


def run(text, name="program"):
    """The losses of a program. What it prints is dropped, and what it saves goes into a folder that is deleted."""
    space = {"__name__": name}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, name, "exec"), space)
    return [float(loss) for loss in space["losses"]]


def distance(losses, stored):
    """The largest distance between two lists of losses; infinite where one is longer, or where one is no number."""
    if not stored or len(losses) != len(stored):
        return math.inf
    return max(gap if (gap := abs(a - b)) < math.inf else math.inf for a, b in zip(losses, stored, strict=True))


def ask(each, library, python=sys.executable):
    """{"losses", "version"} of a program that this Python runs, in a process of its own; {"skipped": why} where that fails.

    A program that sets a default, such as a dtype, sets it for nobody else.
    """
    from course import bench

    text = here(each.text) if library == "levels_more" else each.text
    environment = bench.environment(1, own=True, **QUIET)
    done = subprocess.run(
        [python, "-c", WORKER, each.name, library],
        input=text, env=environment, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    if done.returncode:
        return {"skipped": (done.stderr.strip() or f"it ended with {done.returncode}").splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def answer():
    """What `ask` asks for, from the text of a program, as JSON."""
    name, library = sys.argv[1:]
    losses = run(sys.stdin.read(), name)
    version = getattr(sys.modules.get(library), "__version__", "")
    print(json.dumps({"losses": losses, "version": version.partition("+")[0]}))  # not for which GPU it was made


def ask_all(asked, library_of, python_of):
    """(Program, what `ask` gives) of each, several at a time."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        answers = threads.map(lambda each: ask(each, library_of(each), python_of(each)), asked)
        return list(zip(asked, answers, strict=True))


def store(given):
    """Run all programs on the real libraries and store their losses; those of a library that is not here stay."""
    from course import bench

    def library_of(each):
        return FRAMEWORKS[each.framework]

    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for each, told in ask_all([*programs()], library_of, lambda each: bench.python_of(library_of(each), given)):
        if "skipped" in told:
            print(f"{each.name}: skipped ({told['skipped']}; python3 -m course bench --peer {library_of(each)})")
        else:
            stored[each.name] = told | {"digest": digest(each.text)}
    files.write(STORED, json.dumps(dict(sorted(stored.items())), indent=0) + "\n")


def main(argv):
    """`python3 -m course programs`: each on levels_more, beside what the real library gave."""
    options = parser("programs").parse_args(argv)
    if options.real:
        store(dict(text.partition("=")[::2] for text in options.python))
    far = 0.0
    for each, told in ask_all([*programs()], lambda each: "levels_more", lambda each: sys.executable):
        apart = distance(told.get("losses", ()), each.losses)
        far = max(far, apart)
        beside = f"{FRAMEWORKS[each.framework]} {each.version}"
        print(f"{each.name:26}", told.get("skipped") or f"{len(each.losses)} losses, {apart:.1e} from {beside}")
    print(f"largest distance {far:.1e}, asked {ALIKE:.0e}")
    return int(far > ALIKE)
