"""Compiles ahead, in the background, what a reader's first eager steps would wait for: the kernels of both tasks.

With no kernel kept a first eager epoch of the rings takes 7 s on a quiet machine, with all of them kept 0.6 s.
"""

import os
import subprocess
import sys
from pathlib import Path

CORE = "LEVELS_CORE"  # an environment variable: set, `levels` have nothing of `levels_more`


def begin(root: Path) -> subprocess.Popen:
    """Begin, in a process that says nothing and lets all others go first."""
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    polite = getattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0)  # on Windows
    return subprocess.Popen([sys.executable, "-m", "course.setup.ahead"], cwd=root, creationflags=polite, **quiet)


def compile_kernels() -> None:
    """Run a step of each task, op by op, in both dtypes, on levels 2 to 5: what is compiled is kept."""
    from course import tasks
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


def main(arguments: list[str]) -> None:
    """First as the core's notebooks will ask for them, then with `levels_more`, each in a process of its own."""
    if arguments:
        return compile_kernels()
    if hasattr(os, "nice"):
        os.nice(10)
    for core in ({CORE: "1"}, {}):
        environment = {name: value for name, value in os.environ.items() if name != CORE} | core
        subprocess.run([sys.executable, "-m", "course.setup.ahead", "now"], env=environment)


if __name__ == "__main__":
    main(sys.argv[1:])
