"""Figures with controls that work without a kernel: a small set of pictures of each is drawn when the site is built.

The drawing functions are the same as in the notebooks. The notebooks themselves are not executed.
"""

import functools
import html
import itertools
import json
from typing import NamedTuple

import numpy as np

from course.reader import compare, figures, tasks
from course.reader.figures import race
from course.reader.words import spelled


class Alive(NamedTuple):
    """A figure: the function that draws it, {control: its values}, and {control: its initial value}."""

    draw: object
    controls: dict
    start: dict


def step_cost():
    """The net of notebook 01, with the speeds of the machine that builds the site."""
    from levels.hardware import pool
    from levels.hardware.tasks import net_row
    from levels.support.measure import lane_peak

    cpu = pool()["cpu:0"]
    flops = compare.operations(compare.program_of(net_row, tasks.rings()))

    def draw(batch, launches):
        return figures.step_cost(lane_peak(), cpu.bandwidth, cpu.launch_time, flops, 32, batch, launches)

    batches = [10**k * m for k in range(5) for m in (1, 3)] + [100_000]
    launches = [0.001, 0.1, 1, 2, 5, 10, 20, 50, 100]
    return Alive(draw, {"batch": batches, "launches": launches}, {"batch": 100, "launches": 50})


def loop_order():
    steps = [0, 1, 2, 3, 4, 5, 8, 16, 64, 128, 256, 303, 512]  # a selection of the 512
    return Alive(figures.loop_order, {"order": figures.ORDERS, "step": steps}, {"order": "ijk", "step": 303})


def tape():
    from levels.low_level import constant
    from levels.low_level.autodiff import VJPS, GradientTape

    walk = figures.walk_of_squared_error(GradientTape, constant, VJPS, x=3.0, w=2.0, b=1.0, y=5.0)
    controls = {"step": range(5), "bump": ["w", "x", "b", "y"]}
    return Alive(functools.partial(figures.tape_backwards, walk), controls, {"step": 1, "bump": "w"})


def optimizer_race():
    from levels.mid_level.optimizers import SGD, Adam

    birds = tasks.read("penguins.csv", ("bill_depth_mm", "body_mass_g"), (str, str))
    depths, masses = np.hsplit(np.array([bird for bird in birds if "NA" not in bird], float), 2)
    inputs = {"raw": depths, "standardised": tasks.standardise(depths, depths)[0]}

    def draw(columns, rate):
        x = inputs[columns]
        y = masses / 1000
        return race.drawn(columns, rate, x, y, {"SGD": descent(SGD(rate), x, y), "Adam": descent(Adam(rate), x, y)})

    rates = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1]
    return Alive(draw, {"columns": [*inputs], "rate": rates}, {"columns": "raw", "rate": 0.002})


def descent(optimizer, x, y, updates=1000):
    """Fit a line to x and y from w = b = 0, with all rows in each step: (losses[updates + 1], path[updates + 1, 2])."""
    from levels.low_level import GradientTape, Variable, constant, function, reduce_mean

    w, b = Variable(np.zeros((1, 1))), Variable(np.zeros((1, 1)))

    @function
    def step(x, y):
        here = constant(w), constant(b)
        with GradientTape() as tape:
            error = x @ w + b - y
            loss = reduce_mean(error * error)
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
        return loss, *here

    losses, *path = step.over(x, y, np.tile(np.arange(len(x)), (updates + 1, 1)))
    return losses.numpy(), np.column_stack([each.numpy() for each in path])


FIGURES = {  # {the beginning of a figure's text in a notebook: the function that makes its moving form}
    "A training step of the DNN, predicted": step_cost,
    "The lines that a matrix product loads": loop_order,
    "The tape, backwards": tape,
    "The optimizer race: SGD and Adam on": optimizer_race,
}


def moving(words, folder, here):
    """HTML of the moving figure whose text begins these words; "" if there is none.

    It writes the pictures to folder/frames. `here` is the relative path from the page to that folder."""
    make = next((make for start, make in FIGURES.items() if words.startswith(start)), None)
    if make is None:
        return ""
    figure = make()
    frames = {}
    (folder / "frames" / make.__name__).mkdir(parents=True)
    for key in itertools.product(*(range(len(values)) for values in figure.controls.values())):
        chosen = {name: values[k] for (name, values), k in zip(figure.controls.items(), key, strict=True)}
        picture = figure.draw(**chosen)
        name = f"frames/{make.__name__}/{'-'.join(map(str, key))}.png"
        (folder / name).write_bytes(picture.png)
        frames[",".join(map(str, key))] = [here + name, picture.text]
    controls = {name: [spelled(value) for value in values] for name, values in figure.controls.items()}
    start = [list(values).index(figure.start[name]) for name, values in figure.controls.items()]
    first, text = frames[",".join(map(str, start))]
    told = json.dumps({"controls": controls, "start": start, "frames": frames}).replace("<", "\\u003c")
    picture = f'<img src="{first}" alt="{html.escape(text)}">'
    return f'<div class="alive"><script type="application/json">{told}</script>{picture}</div>'
