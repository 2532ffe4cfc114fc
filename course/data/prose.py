"""Sentences of the course, `data/prose.txt`, as whole numbers: what a net that writes is trained on."""

import random
from pathlib import Path

import numpy as np

FILE = Path(__file__).resolve().parents[2] / "data" / "prose.txt"


def read():
    """(text to train on, held-out text) in small letters: of each ten sentences the last one is held out."""
    lines = FILE.read_text(encoding="utf-8").lower().splitlines(keepends=True)
    held = lines[9::10]
    return "".join(line for n, line in enumerate(lines) if n % 10 != 9), "".join(held)


def codes(text, characters):
    """int64 [len(text)]: the place of each character among `characters`."""
    place = {character: n for n, character in enumerate(characters)}
    return np.array([place[character] for character in text])


def windows(numbers, width):
    """x, y [n, width], int64: each stretch of so many numbers, and the same one further on: for each number the next."""
    stretches = np.lib.stride_tricks.sliding_window_view(numbers, width + 1)
    return stretches[:, :-1].copy(), stretches[:, 1:].copy()


def starting_weights(shapes, seed=0):
    """float64 arrays, uniform in ±√(6 / (inputs + units)); what has one row is a bias, and zero."""
    draw = random.Random(seed).random
    found = []
    for shape in shapes:
        limit = 0.0 if shape[0] == 1 else (6.0 / sum(shape)) ** 0.5
        found.append(np.array([[limit * (2.0 * draw() - 1.0) for _ in range(shape[1])] for _ in range(shape[0])]))
    return found


def batches(count, steps, batch, seed=0):
    """int64 [steps, batch]: numbers of windows, below `count`, drawn at random."""
    draw = random.Random(seed).random
    return np.array([[int(count * draw()) for _ in range(batch)] for _ in range(steps)])
