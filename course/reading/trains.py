"""What a browser needs to train by the course's own programs: each as WebAssembly, and the arrays on which it works.

A page gets the place of a button (`place`), and beside the pages lies one file (`held`) that is read when it is pressed.
"""

import base64
import functools
import importlib
import json
import struct
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from course import tasks

TEMPLATE = Path(__file__).resolve().parent / "prose" / "train.html"
FOLDER = "programs"  # of the site: there lies the file
RATES = {
    "linear_regression": (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03),
    "dnn_classifier": (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
}
BATCHES = {  # each divides the number of rows
    "linear_regression": (1, 2, 5, 10, 20, 50, 100, 200, 400),
    "dnn_classifier": (10, 20, 50, 100, 200, 500, 1000, 2000, 4000),
}
NAMES = {"linear_regression": "the line", "dnn_classifier": "the two rings"}
LOSSES = {"linear_regression": "mean squared error", "dnn_classifier": "binary cross-entropy"}


class Training(NamedTuple):
    """A program of a level that trains a task, and what a call of it is given."""

    program: object  # levels.hardware.Program
    arrays: dict  # {name: an array}, in the order of the program
    numbers: dict  # {name: a size or a number}
    losses: str  # the name of the array that it fills with losses
    record: np.ndarray  # the losses that it ends up with here


def of_hardware(name):
    """Level 1's program for a task: batch, steps and learning rate are words of the call."""
    from levels.hardware import tasks as level

    task = tasks.FOR[name]()
    program = {"linear_regression": level.line_program, "dnn_classifier": level.net_program}[name]
    weights = ["w", "b"] if len(task.weights) == 2 else ["w1", "b1", "w2", "b2", "w3", "b3"]
    batches = np.asarray(task.batches, np.int64)
    arrays = {"x": task.x, "y": task.y, **dict(zip(weights, task.weights, strict=True))}
    arrays |= {"batches": batches, "losses": np.zeros(len(batches))}
    numbers = {"rows": len(task.x), "steps": len(batches), "batch": batches.shape[1], "rate": task.learning_rate}
    made = program(task.x.dtype, tuple(w.shape for w in task.weights))
    fit = getattr(level, name)(task.x, task.y, task.weights, task.batches, task.learning_rate)
    return Training(made, arrays, numbers, "losses", fit.losses)


def of_rows(level, name):
    """The program by rows that a `function` of level 3 or above compiles for a task: batch and rate stand in it."""
    from levels.low_level.functions import BACK_ENDS
    from levels.low_level.row_program import RowProgram

    task, made = tasks.FOR[name](), []

    def kept(graph, batch, over):
        program = RowProgram(graph, batch, over)
        made.append((program, [v.numpy() for v in program.variables]))  # before it has trained them
        return program

    BACK_ENDS.insert(0, (kept, lambda graph: 0))
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


LEVELS = {1: of_hardware, 3: lambda name: of_rows("low_level", name), 5: lambda name: of_rows("high_level", name)}


@functools.cache
def trainings():
    """{task: {level: its Training}}: each has been trained here once."""
    return {name: {level: of(name) for level, of in LEVELS.items()} for name in tasks.FOR}


def given_for(training, steps=None):
    """What a call of its program takes, for all steps or for the first ones: buffers with these arrays, and numbers."""
    from levels.hardware import pool

    cpu, given = pool()["cpu:0"], {}
    for name, array in training.program.arrays.items():
        content = np.ascontiguousarray(training.arrays[name])
        if steps and "steps" in array.shape:
            content = content[:steps]
        given[name] = cpu.put(content.reshape([*content.shape, *[1] * len(array.shape)][: len(array.shape)]))
    for name, kind in training.program.words.items():
        if kind not in ("ptr", "i64"):
            given[name] = training.numbers[name]
    return given


def microseconds(training, steps=400, repeats=5):
    """The time of a step here, as machine code: the least of a few runs of 0.05 s each, without what others compute."""
    run = training.program.bind(**given_for(training, steps))
    times = []
    for _ in range(repeats):
        calls, start = 0, time.thread_time()
        while time.thread_time() - start < 0.05:
            run()
            calls += 1
        times.append((time.thread_time() - start) / (calls * steps) * 1e6)
    return min(times)


@functools.cache
def told():
    """What the page knows before its button is pressed, as JSON; among it the times of a step here."""
    tasks_told = {}
    for name, levels in trainings().items():
        training = levels[1]
        numbers, record = training.numbers, training.record
        tasks_told[name] = {
            "rows": numbers["rows"],
            "epochs": numbers["steps"] * numbers["batch"] // numbers["rows"],
            "rate": numbers["rate"],
            "batch": numbers["batch"],
            "rates": RATES[name],
            "batches": BATCHES[name],
            "name": NAMES[name],
            "loss": LOSSES[name],
            "span": [record.min(), record.max()],
            "record": struct.pack(">d", record[-1]).hex(),
            "times": {level: round(microseconds(each), 3) for level, each in levels.items()},
        }
    return json.dumps(tasks_told)


def place(here):
    """HTML of the button, and of what it fills. `here` leads from the page to the site's top."""
    page = TEMPLATE.read_text(encoding="utf-8").replace("{{told}}", told())
    return page.replace("{{file}}", f"{here}{FOLDER}/programs.js").replace("{{here}}", here)


def held():
    """The file: a script that holds data, starting weights and programs, in base64. The order of the rows is not in it."""
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
    """What a word of the call stands for: the name of what the page knows itself, or an array of starting values."""
    array = training.arrays.get(word)
    if array is None or word == "batches":
        return word
    if word == training.losses:
        return "losses"
    if array is task.x:
        return "x"
    if array is task.y:
        return "y"
    if array.shape == () and array == task.learning_rate:  # level 5 keeps it in memory
        return "rate"
    return encoded(array)


def encoded(array):
    """An array of float64 in base64, row by row."""
    return base64.b64encode(np.ascontiguousarray(array, "<f8").tobytes()).decode()
