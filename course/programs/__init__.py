"""The two tasks as TensorFlow's and PyTorch's readers write them: programs that also run on `levels_more`.

    python3 -m course programs           run all on levels_more, and tell how far they are from the stored losses
    python3 -m course programs --real    run all on the real libraries, and store their losses
    python3 -m course programs --places  look in the real libraries for the places that the notebooks name

Each is a whole program, FRAMEWORK/API_TASK.py, which trains on the data, weights and batches of `course.tasks` in
float64 and ends with a list `losses`. Only its lines that import another library change.

The one in text/ is the net of the notebook more/05_text, which writes. Its data is `course.data.prose`.

The twelve in chapter3/ are those of chapter 3 of two books by lyhue1991, "eat tensorflow2 in 30 days" and "eat pytorch
in 20 days": 3-1 low, 3-2 mid, 3-3 high, two tasks each, written again with their calls, for their number of epochs.
Here their rows are those of `course.tasks`, NumPy draws the order of the rows, and float64 takes the place of float32,
so that two libraries can be compared at all. Their `losses` are those that they print on the way; the last is that of
the last epoch. The real library of chapter3/torchkeras/high_rings.py is torchkeras 3.2 on pytorch_lightning 1.9, since
torchkeras 3.9 dropped LightModel; all others of torchkeras stop on 3.2, and keep what 4 gave:

    python3 -m course programs --real --python torchkeras=PYTHON   with torchkeras 3.2.3,
        pytorch_lightning 1.9.5, torchmetrics 0.11.4, torch 2.5.1, numpy 1.26, pandas 2.2
"""

import contextlib
import hashlib
import io
import json
import math
import os
import re
import runpy
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
CHAPTER3 = FOLDER / "chapter3"
TEXT = FOLDER / "text"  # the net that writes, of the notebook more/05_text
ALIKE = 1e-5  # how far from the stored losses a program may be
# The same of the last loss of a program of chapter 3, as a share of it. After up to 200,000 steps eleven of them are
# within 1e-12. The twelfth is TensorFlow's high_linear: Keras rounds the betas of its "adam" to float32, and the last
# loss moves by 4e-8 of itself. A formula that differs is far outside: Keras 2, which adds 1e-7 inside of its
# logarithms, by 2e-4.
NEAR = 1e-6
SPELLED = *FRAMEWORKS.values(), "pytorch_lightning", "torchmetrics"  # the libraries whose names levels_more has
IMPORT = re.compile(rf"^(\s*)(import|from) ({'|'.join(SPELLED)})\b(?P<rest>.*)$", re.MULTILINE)
WORKER = "from course import programs; programs.answer()"

QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUTF8": "1"}


class Program(NamedTuple):
    """A program as it is written for its library, and what that gave."""

    framework: str  # "tf", "torch" or "torchkeras"
    api: str  # "low", "mid" or "high"
    task: str  # "linear" or "rings"
    name: str  # "tensorflow/low_linear.py", or "chapter3/tensorflow/low_linear.py"
    text: str
    losses: list  # of the first 200 steps; of torchkeras a table of epochs, column by column; of chapter 3 of all steps
    version: str  # of the library that gave them
    digest: str  # of the text that gave them


def program(framework, api, task):
    """The Program of this framework, API and task. Raises LookupError where there is none."""
    found = {tuple(each[:3]): each for each in programs()}
    if (framework, api, task) not in found:
        raise LookupError(f"there is no program {framework} {api} {task}: there are {', '.join(map(' '.join, found))}")
    return found[framework, api, task]


def programs(*frameworks, folder=FOLDER):
    """All programs of the first 200 steps, or those of these frameworks; with another folder those in it."""
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for framework in frameworks or FRAMEWORKS:
        for path in sorted((folder / FRAMEWORKS[framework]).glob("*.py")):
            api, task = path.stem.split("_")
            name = path.relative_to(FOLDER).as_posix()
            known = stored.get(name, {"losses": [], "version": "", "digest": ""})
            yield Program(framework, api, task, name, path.read_text(encoding="utf-8"), **known)


def every():
    """All programs, that of the net that writes and those of chapter 3 behind the others."""
    return [*programs(), *programs(folder=TEXT), *programs(folder=CHAPTER3)]


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
    """The losses of a program. What it prints is dropped, and what it saves goes into a folder that is deleted.

    It runs as a file there, since `tf.function` reads the source of what it compiles.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / Path(name).with_suffix(".py").name
        file.write_text(text, encoding="utf-8")
        space = runpy.run_path(str(file), run_name=file.stem)
    return [float(loss) for loss in space["losses"]]


def distance(losses, stored):
    """The largest distance between two lists of losses; infinite where one is longer, or where one is no number."""
    if not stored or len(losses) != len(stored):
        return math.inf
    return max(gap if (gap := abs(a - b)) < math.inf else math.inf for a, b in zip(losses, stored, strict=True))


def last_apart(losses, stored):
    """How far the last of these losses is from the last of those, as a share; infinite where their numbers differ."""
    apart = distance(losses, stored)
    return apart if apart == math.inf else abs(losses[-1] - stored[-1]) / abs(stored[-1])


def ask(each, library, python=sys.executable):
    """{"losses", "version"} of a program that this Python runs, in its own process; {"skipped": why} where that fails.

    A program that sets a default, such as a dtype, sets it for nobody else.
    """
    from course.bench.libraries import environment

    text = here(each.text) if library == "levels_more" else each.text
    command, pipes = [python, "-c", WORKER, each.name, library], {"capture_output": True, "encoding": "utf-8"}
    done = subprocess.run(command, input=text, env=environment(1, **QUIET), **pipes)
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
    from course.bench.libraries import python_of

    def library_of(each):
        return FRAMEWORKS[each.framework]

    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for each, told in ask_all(every(), library_of, lambda each: python_of(library_of(each), given)):
        if "skipped" in told:
            print(f"{each.name}: skipped ({told['skipped']}; python3 -m course bench --peer {library_of(each)})")
        else:
            stored[each.name] = told | {"digest": digest(each.text)}
    files.write(STORED, json.dumps(dict(sorted(stored.items())), indent=0) + "\n")


def main(argv):
    """`python3 -m course programs`: each on levels_more, beside what the real library gave."""
    options = parser("programs").parse_args(argv)
    given = dict(text.partition("=")[::2] for text in options.python)
    if options.places:
        from course.programs.places import check

        return check(given)
    if options.real:
        store(given)
    far = shares = 0.0
    for each, told in ask_all(every(), lambda each: "levels_more", lambda each: sys.executable):
        losses, beside = told.get("losses", ()), f"{FRAMEWORKS[each.framework]} {each.version}"
        if each.name.startswith(CHAPTER3.name):
            apart = last_apart(losses, each.losses)
            shares = max(shares, apart)
            row = losses and f"last loss {losses[-1]:.12g}, a share of {apart:.1e} from {beside}"
        else:
            apart = distance(losses, each.losses)
            far = max(far, apart)
            row = f"{len(each.losses)} losses, {apart:.1e} from {beside}"
        print(f"{each.name:37}", told.get("skipped") or row)
    print(f"largest distance {far:.1e}, asked {ALIKE:.0e}; of chapter 3 a share of {shares:.1e}, asked {NEAR:.0e}")
    return int(far > ALIKE or shares > NEAR)
