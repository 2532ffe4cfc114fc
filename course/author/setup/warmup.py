"""Compile the kernels of both tasks in the background, so that a reader's first eager steps need not wait for them.

The core notebooks use only numba's kernels. If none is cached, their first eager epoch of the rings takes 7 s on an
idle machine; if all are cached, 0.6 s. (With `levels_more`, small kernels are programs of level 1, which are ready in
half a second.)
"""

import os
import subprocess
import sys
from pathlib import Path


def begin(root: Path) -> subprocess.Popen:
    """Start compiling in a process without output and with low priority. Returns the process."""
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    polite = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)  # on Windows
    return subprocess.Popen(
        [sys.executable, "-m", "course.author.setup.warmup"], cwd=root, creationflags=polite, **quiet
    )


def compile_kernels() -> None:
    """Run a step of each task, op by op, in both dtypes, on levels 2 to 5. The compiled kernels are cached."""
    from course.reader import tasks
    from levels import kernels, low_level
    from levels.high_level import Sequential
    from levels.kernels import tasks as launched  # noqa: F401 (a room is an attribute once it was imported)
    from levels.low_level import tasks as eagerly  # noqa: F401
    from levels.mid_level import SGD, Adam, Dense

    for task, name, loss in (
        (tasks.linear(), "linear_regression", "mse"),
        (tasks.rings(), "dnn_classifier", "binary_crossentropy"),
    ):
        for dtype in ("f4", "f8"):
            x, y, *weights = (a.astype(dtype) for a in (task.x, task.y, *task.weights))
            with low_level.eager():
                for level in (kernels, low_level):
                    getattr(level.tasks, name)(x, y, weights, task.batches[:1]).predict(x)
            for optimizer in (SGD(), Adam()):
                *hidden, last = weights[::2]
                layers = [*(Dense(w.shape[1], "relu") for w in hidden), Dense(1, "sigmoid" if hidden else None)]
                model = Sequential(layers)
                model.compile(optimizer, loss)
                model.train_step(*(low_level.constant(a[task.batches[0]]) for a in (x, y)))


def main() -> None:
    """Compile the kernels that the core notebooks use, with low priority."""
    if hasattr(os, "nice"):
        os.nice(10)
    compile_kernels()


if __name__ == "__main__":
    main()
