"""Training in the browser with the course's own programs: each program as WebAssembly, and the arrays it works on.

A page gets a button (`place`). One file next to the pages (`programs_file`) is loaded when the button is pressed.
"""

import base64
import functools
import importlib
import json
import re
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course.author.site import stored_run
from course.reader import compare, tasks
from course.reader.language import later, say
from course.reader.notebooks.names import ROOT

TEMPLATE = Path(__file__).resolve().parent / "pages" / "train.html"
FOLDER = "programs"  # the folder of that file on the site
RATES = {
    "linear_regression": (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03),
    "dnn_classifier": (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
}
BATCHES = {  # each divides the number of rows
    "linear_regression": (1, 2, 5, 10, 20, 50, 100, 200, 400),
    "dnn_classifier": (10, 20, 50, 100, 200, 500, 1000, 2000, 4000),
}
NAMES = {"linear_regression": later("the line"), "dnn_classifier": later("the two rings")}
LOSSES = {"linear_regression": later("mean squared error"), "dnn_classifier": later("binary cross-entropy")}


class Training(NamedTuple):
    """A program of a level that trains a task, and the arguments of a call of it."""

    program: object  # levels.hardware.Program
    arrays: dict  # {name: array}, in the order of the program
    numbers: dict  # {name: size or number}
    losses: str  # the name of the array in which it stores the losses
    record: np.ndarray  # the losses of a training on this machine


def of_hardware(name):
    """Level 1's program for a task. Batch size, steps and learning rate are arguments of the call."""
    from levels.hardware import tasks as level

    task = tasks.FOR[name]()
    one_row = {"linear_regression": level.line_row, "dnn_classifier": level.net_row}[name]
    weights = [f"w{k}" for k in range(len(task.weights))]
    batches = np.asarray(task.batches, np.int64)
    arrays = {"x": task.x, "y": task.y, **dict(zip(weights, task.weights, strict=True))}
    arrays |= {"batches": batches, "losses": np.zeros(len(batches))}
    numbers = {"rows": len(task.x), "steps": len(batches), "batch": batches.shape[1], "rate": task.learning_rate}
    made = compare.program_of(one_row, task)
    fit = getattr(level, name)(task.x, task.y, task.weights, task.batches, task.learning_rate)
    return Training(made, arrays, numbers, "losses", fit.losses)


def of_rows(level, name):
    """The row program over batches that a level compiles for a task. It fixes the batch and, on level 3, the rate."""
    from levels.low_level.functions import BACK_ENDS
    from levels.low_level.row_program import RowProgram

    task = tasks.FOR[name]()
    made = []

    def kept(graph, batch, over):
        program = RowProgram(graph, batch, over)
        if over:  # `fit` looks at one prediction first, which is a program too
            before = [v.numpy() for v in program.variables]  # the initial values, copied before training
            made.append((program, before))
        return program

    BACK_ENDS.insert(0, kept)
    try:
        train = getattr(importlib.import_module(f"levels.{level}"), name)
        fit = train(task.x, task.y, task.weights, task.batches, task.learning_rate)
    finally:
        BACK_ENDS.pop(0)
    ((program, variables),) = made
    batches = np.asarray(task.batches, np.int64)
    held = [np.zeros(len(batches)), *((task.x, task.y)[k] for k in program.inputs), *variables]
    names = [name for name in program.program.arrays if name != "batches"]
    arrays = {"batches": batches, **dict(zip(names, held, strict=True))}
    numbers = {"rows": len(task.x), "steps": len(batches)}
    return Training(program.program, arrays, numbers, names[0], fit.losses)


# Level 2 has no program of a whole training: in each step Python calls small programs. The page says so.
LEVELS = {
    1: of_hardware,
    3: lambda name: of_rows("low_level", name),
    4: lambda name: of_rows("mid_level", name),
    5: lambda name: of_rows("high_level", name),
}


@functools.cache
def trainings():
    """{task: {level: its Training}}. Each is trained here once."""
    return {name: {level: of(name) for level, of in LEVELS.items()} for name in tasks.FOR}


def given_for(training, steps=None):
    """The arguments of a call of its program for all steps, or the first `steps`: {name: buffer or number}."""
    from levels.hardware import pool

    cpu = pool()["cpu:0"]
    given = {}
    for name, array in training.program.arrays.items():
        content = np.ascontiguousarray(training.arrays[name])
        if steps and "steps" in array.shape:
            content = content[:steps]
        given[name] = cpu.put(content.reshape([*content.shape, *[1] * len(array.shape)][: len(array.shape)]))
    for name, kind in training.program.words.items():
        if kind not in ("ptr", "i64"):
            given[name] = training.numbers[name]
    return given


def told():
    """The data that a page has before its button is pressed, as JSON: also the times of a step in the stored run."""
    tasks_told = {}
    for name, levels in trainings().items():
        training = levels[1]
        numbers = training.numbers
        record = training.record
        tasks_told[name] = {
            "rows": numbers["rows"],
            "epochs": numbers["steps"] * numbers["batch"] // numbers["rows"],
            "rate": numbers["rate"],
            "batch": numbers["batch"],
            "rates": RATES[name],
            "batches": BATCHES[name],
            "name": say(NAMES[name]),
            "loss": say(LOSSES[name]),
            "span": [record.min(), record.max()],
            "record": struct.pack(">d", record[-1]).hex(),
            "times": stored_run.times(ROOT, name),
        }
    return json.dumps(tasks_told)


def place(here):
    """HTML of the button and its output area, in the language that is spoken.

    here: the relative path from the page to the site's root.
    """
    page = re.sub(r"\{\{_(.*?)\}\}", lambda found: say(found[1]), TEMPLATE.read_text(encoding="utf-8"))
    page = page.replace("{where}", stored_run.where(ROOT) or say("Measured when notebook 5 was last built."))
    return page.replace("{{told}}", told()).replace("{{file}}", f"{here}{FOLDER}/programs.js").replace("{{here}}", here)


def programs_file():
    """The file: a script with data, initial weights and programs in base64, without the batches (the row order)."""
    from levels_more.hardware.targets import compiled_for

    kept = {}
    for name, levels in trainings().items():
        task = tasks.FOR[name]()
        programs = {}
        for level, training in levels.items():
            code = compiled_for(training.program, "wasm32")
            words = [(kind, content(word, training, task)) for word, kind in training.program.words.items()]
            programs[level] = {"code": base64.b64encode(code).decode(), "words": words}
        kept[name] = {"x": encoded(task.x), "y": encoded(task.y), "programs": programs}
    return f"var PROGRAMS = {json.dumps(kept)};\n"


def content(word, training, task):
    """The content of one argument of the call: a name, if the page supplies the value, or an encoded initial array."""
    array = training.arrays.get(word)
    if array is None or word == "batches":
        return word
    if word == training.losses:
        return "losses"
    if array is task.x:
        return "x"
    if array is task.y:
        return "y"
    if array.shape == () and array == task.learning_rate:  # levels 4 and 5 pass the learning rate as an array
        return "rate"
    return encoded(array)


def encoded(array):
    """An array as little-endian float64 in base64, in row-major order."""
    return base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode()
