"""The two tasks as usual TensorFlow and PyTorch programs, which also run on `levels_more`.

Each is a complete program, FRAMEWORK/API_TASK.py, which trains on the data, weights and batches of `course.tasks` in
float64 and ends with a list `losses`. To run it on `levels_more`, only its import lines are changed.

The program in text/ is the net of the notebook more/05_text, which generates text. Its data is `course.reader.prose`.

The twelve in chapter3/ are those of chapter 3 of two books by lyhue1991, "eat tensorflow2 in 30 days" and "eat pytorch
in 20 days": 3-1 low, 3-2 mid, 3-3 high, two tasks each, rewritten with the calls and numbers of epochs of the EDITIONS.
(The PyTorch book has had its numbers of epochs in 3-1 since 2022-08-27, and torchkeras' KerasModel in both halves of
3-3 since 2023-08-02.) To make libraries comparable, they use the rows of `course.tasks`, an order of the rows drawn by
NumPy, and float64 instead of float32. Their `losses` are those that they print during training; the last is that of the
last epoch.
"""

import contextlib
import hashlib
import io
import json
import math
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
STORED = FOLDER / "losses.json"  # {name: {"losses", "version", "beside", "digest", "edition"}}
FRAMEWORKS = {"tf": "tensorflow", "torch": "torch", "torchkeras": "torchkeras"}  # short name: library
BESIDE = {"tensorflow": "keras", "torchkeras": "torch"}  # library: another one, whose version also matters
EDITIONS = {"tf": "2020-05-07 (commit 679a597f)", "torch": "2024-09-11 (commit 9e48ab69)"}  # of chapter 3 of two books
EDITIONS["torchkeras"] = EDITIONS["torch"]
CHAPTER3 = FOLDER / "chapter3"
TEXT = FOLDER / "text"  # the net of the notebook more/05_text, which generates text
ALIKE = 1e-5  # the largest distance allowed from the stored losses
# The largest relative distance of the last loss of a program of chapter 3. After up to 24,000 steps, eleven programs
# are within 1e-12. The twelfth is TensorFlow's high_linear: Keras rounds the betas of its "adam" to float32, which
# changes the last loss by a relative 4e-8. Different formulas change it far more: Keras 2, which adds 1e-7 inside its
# logarithms, by 2e-4.
NEAR = 1e-6
SPELLED = *FRAMEWORKS.values(), "torchmetrics"  # the libraries whose names levels_more has
IMPORT = re.compile(rf"^(\s*)(import|from) ({'|'.join(SPELLED)})\b(?P<rest>.*)$", re.MULTILINE)


class Program(NamedTuple):
    """A program as it is written for its library, and the losses that the library gave."""

    framework: str  # "tf", "torch" or "torchkeras"
    api: str  # "low", "mid" or "high"
    task: str  # "linear" or "rings"
    name: str  # "tensorflow/low_linear.py", or "chapter3/tensorflow/low_linear.py"
    text: str
    losses: list  # of the first 200 steps; of torchkeras the columns of a table of epochs; of chapter 3 of all steps
    version: str  # of the library that gave them
    digest: str  # of the text that gave them
    beside: str = ""  # another library that took part, and its version: "keras 3.15.1"
    edition: str = ""  # of the book whose calls it has, for those of chapter 3


def program(framework, api, task):
    """Return the Program of this framework, API and task. Raises LookupError if there is none."""
    found = {tuple(each[:3]): each for each in programs()}
    if (framework, api, task) not in found:
        raise LookupError(f"there is no program {framework} {api} {task}: there are {', '.join(map(' '.join, found))}")
    return found[framework, api, task]


def programs(*frameworks, folder=FOLDER):
    """Yield the programs in `folder`, by default those of the first 200 steps, of all frameworks or only of these."""
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for framework in frameworks or FRAMEWORKS:
        for path in sorted((folder / FRAMEWORKS[framework]).glob("*.py")):
            api, task = path.stem.split("_")
            name = path.relative_to(FOLDER).as_posix()
            known = stored.get(name, {"losses": [], "version": "", "digest": ""})
            yield Program(framework, api, task, name, path.read_text(encoding="utf-8"), **known)


def every():
    """Return all programs; the one that generates text and those of chapter 3 come last."""
    return [*programs(), *programs(folder=TEXT), *programs(folder=CHAPTER3)]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def here(text):
    """Return the text of a program with only its imports changed, so that it runs on `levels_more`."""

    def changed(line):
        space, how, library, rest = line.groups()
        alone = not rest.partition("#")[0].strip()
        bound = f" as {library}" if how == "import" and alone else ""  # `import torch` binds that name
        return f"{space}{how} levels_more.{library}{bound}{rest}"

    return IMPORT.sub(changed, text)


def run(text, name="program"):
    """Run a program and return its losses. Its output is discarded, and its working folder is deleted afterwards.

    It runs as a file in that folder, since `tf.function` reads the source of the functions that it compiles.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        file = Path(folder) / Path(name).with_suffix(".py").name
        file.write_text(text, encoding="utf-8")
        space = runpy.run_path(str(file), run_name=file.stem)
    return [float(loss) for loss in space["losses"]]


def distance(losses, stored):
    """Return the largest distance between two lists of losses; infinity if lengths differ or a loss is not finite."""
    if not stored or len(losses) != len(stored):
        return math.inf
    return max(gap if (gap := abs(a - b)) < math.inf else math.inf for a, b in zip(losses, stored, strict=True))


def last_apart(losses, stored):
    """Return the relative distance of the last losses; infinity if `distance` is, for instance if lengths differ."""
    apart = distance(losses, stored)
    return apart if apart == math.inf else abs(losses[-1] - stored[-1]) / abs(stored[-1])


def version_of(library):
    """Return the version of a library that this process has imported, "" if there is none."""
    version = getattr(sys.modules.get(library), "__version__", "")
    return version.partition("+")[0]  # without the build, such as "+cu121"


def answer():
    """Print the JSON that `ask` reads. The program is read from stdin, its name and library from the arguments."""
    name, library = sys.argv[1:]
    losses = run(sys.stdin.read(), name)
    other = BESIDE.get(library)
    beside = f"{other} {version_of(other)}" if other else ""
    print(json.dumps({"losses": losses, "version": version_of(library), "beside": beside}))
