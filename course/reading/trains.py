"""What a browser needs to train by the course's own programs: each as WebAssembly, and the arrays on which it works."""

import importlib
from typing import NamedTuple

import numpy as np

from course import tasks


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
