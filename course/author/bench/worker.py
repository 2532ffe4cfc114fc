"""One library's side of `python3 -m course bench`, run by the Python that has that library; it needs NumPy, and no other package.

A request is a line of JSON, and so is the answer:
    ["make", mode, file]    train a new model for one epoch in a given order -> {"made": key, "seconds": of a second such epoch}
    ["time", key, epochs]   train it for so many epochs, each in a new order -> {"seconds": all of it, shuffles too, unless `drawn`}
    ["drop", key]           forget it
In answer to a request that cannot be met: {"skipped": why}. What the library prints goes to stderr. To time a first epoch in a
process of its own: python -m course.author.bench.worker LIBRARY MODE FILE.
"""

import sys
import time

BEGUN = time.perf_counter()  # before anything is imported: see `once`
# ruff: noqa: E402

import importlib
import json
import os

import numpy as np

from course.author.bench.work import load, seconds


class Worker:
    """Answers requests about the modes of one peer."""

    def __init__(self, peer):
        self.modes, self.made = peer.MODES, {}

    def make(self, mode, file):
        work = load(file)
        trainer = self.modes[mode][1](work)
        losses = trainer.epoch(work.order)
        result = {f"w{k}": np.asarray(w) for k, w in enumerate(trainer.weights())}
        np.savez(f"{file}.{len(self.made)}.npz", loss=np.mean(losses), **result)
        key = len(self.made)
        self.made[key] = trainer, work
        return {"made": key, "result": f"{file}.{key}.npz", "seconds": seconds(trainer.epoch, work.order)}

    def time(self, key, epochs):
        trainer, work = self.made[key]
        return {"seconds": trainer.train(work, epochs)}

    def drop(self, key):
        self.made[key] = None
        return {}

    def answer(self, verb, *args):
        try:
            return {"make": self.make, "time": self.time, "drop": self.drop}[verb](*args)
        except NotImplementedError as error:
            return {"skipped": str(error)}
        except Exception as error:  # a peer may fail in any way: the others go on
            return {
                "skipped": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"[:200]
            }


def peak_memory():
    """The most bytes that this process held, None where the system does not say."""
    if os.path.exists("/proc/self/status"):  # Linux, where getrusage would tell of the process that started this one
        with open("/proc/self/status") as status:
            return next((1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM")), None)
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def once(peer, mode, file):
    """What a fresh process needs until its first epoch is done."""
    imported = time.perf_counter() - BEGUN
    work = load(file)
    first = seconds(lambda: peer.MODES[mode][1](work).epoch(work.order))
    return {"import": imported, "first": first, "memory": peak_memory()}


def installed(names):
    """The bytes of these distributions and of all that they need."""
    import re
    from importlib import metadata

    waiting, sizes = list(names), {}
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            parts = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # needed elsewhere only, or installed under another name
            continue
        if name not in sizes:
            paths = (path.locate() for path in parts.files or ())
            sizes[name] = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
            waiting += [re.match(r"[\w.-]+", line)[0] for line in parts.requires or () if "extra ==" not in line]
    return sum(sizes.values())


def main(library, *rest):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-int(os.environ["OMP_NUM_THREADS"]) :])

    def say(answer):
        print(json.dumps(answer), file=out, flush=True)

    try:
        peer = importlib.import_module(f"course.author.bench.peers.{library}")
    except ImportError as error:
        return say({"skipped": str(error)})
    if rest:
        return say(once(peer, *rest))
    version, size = peer.VERSION, installed(peer.PACKAGES)
    say({"name": peer.NAME, "version": version, "bytes": size, "modes": {m: api for m, (api, _) in peer.MODES.items()}})
    worker = Worker(peer)
    for line in sys.stdin:
        say(worker.answer(*json.loads(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
