"""Training data for the net that generates text: sentences of the course, `data/prose.txt`, as integers."""

import random
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parents[2] / "data" / "prose.txt"


def read():
    """Return (training text, held-out text) in lower case. The last of every ten sentences is held out."""
    lines = FILE.read_text(encoding="utf-8").lower().splitlines(keepends=True)
    held = lines[9::10]
    return "".join(line for n, line in enumerate(lines) if n % 10 != 9), "".join(held)


def codes(text, characters):
    """Return the index of each character in `characters`: int64 [len(text)]. Raises KeyError for other characters."""
    place = {character: n for n, character in enumerate(characters)}
    return np.array([place[character] for character in text])


def windows(numbers, width):
    """Return x, y, int64 [n, width]: all windows of `width` numbers, and for each number in them the next one."""
    stretches = np.lib.stride_tricks.sliding_window_view(numbers, width + 1)
    return stretches[:, :-1].copy(), stretches[:, 1:].copy()


def starting_weights(shapes, seed=0):
    """Return float64 arrays of these shapes, uniform in ±√(6 / (inputs + units)); biases (one row) are zero."""
    draw = random.Random(seed).random
    found = []
    for shape in shapes:
        limit = 0.0 if shape[0] == 1 else (6.0 / sum(shape)) ** 0.5
        found.append(np.array([[limit * (2.0 * draw() - 1.0) for _ in range(shape[1])] for _ in range(shape[0])]))
    return found


def batches(count, steps, batch, seed=0):
    """Return random indices of windows, below `count`: int64 [steps, batch]."""
    draw = random.Random(seed).random
    return np.array([[int(count * draw()) for _ in range(batch)] for _ in range(steps)])
