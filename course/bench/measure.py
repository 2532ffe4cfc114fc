"""Measuring: each mode of each library does the same work, in turns."""

import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course import tasks
from course.bench import libraries, machines
from course.bench.cases import GROWING, Case, limit, of_net, of_task
from course.bench.libraries import CACHES, ROOT, command, environment, python_of

TOLERANCE = 5e-4  # of the way that the weights went, in float32 against float64
LOOSE = {("tensorflow", "Keras fit"): 2e-3}  # its Adam takes 1 - 0.999ᵗ from a power in float32, and loses digits
EPOCHS = 600  # the most in one call


class Pace(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float  # of a round, at least
    limit: float  # what takes longer for an epoch is not timed


FULL, QUICK, GROWTH = Pace(7, 0.1, 3.0), Pace(3, 0.02, 3.0), Pace(3, 0.05, 5.0)


class Result(NamedTuple):
    """How long a mode of a library took for a case, or why it was not timed."""

    case: Case
    library: str
    mode: str
    api: str
    seconds: Any  # of a step, one number a round
    limit: float
    apart: float  # from the reference
    why: str = ""

    name = property(lambda self: self.mode if self.library == "levels" else f"{self.library} {self.mode}")
    median = property(lambda self: statistics.median(self.seconds))

    def spread(self):
        """The lowest and the highest tenth of the rounds, in the unit of the median."""
        return np.quantile(self.seconds, (0.1, 0.9))


def apart(result, reference, start):
    """How far the results are from the reference, as a share of the way from the start; or the losses' share."""

    def flat(arrays):
        return np.concatenate([np.ravel(a).astype("f8") for a in arrays]) if arrays else 0.0

    ours, theirs = (np.load(path) for path in (result, reference))
    with ours, theirs:
        names = [name for name in theirs.files if name != "loss"]
        a, b = (flat([file[name] for name in names]) for file in (ours, theirs))
        if np.shape(a) != np.shape(b):
            return math.inf
        way = np.linalg.norm(b - flat(start))
        losses = abs(ours["loss"] - theirs["loss"]) / max(abs(theirs["loss"]), 1e-30)
        distance = float(max(np.linalg.norm(a - b) / way, losses))
        return distance if math.isfinite(distance) else math.inf


def measure(case, peers, pace, folder):
    """A Result for each mode of each library, all in turns."""
    work, file, wide = case.make(), str(Path(folder) / "work.npz"), str(Path(folder) / "reference.npz")
    work.save(file)
    x, y, *weights = (each.astype("f8") for each in (work.x, work.y, *work.weights))
    work._replace(x=x, y=y, weights=weights).save(wide)
    reference = peers["numpy"].ask("make", "naive" if work.weights else "kernel", wide)
    if "skipped" in reference:
        raise RuntimeError(f"{case.family}: NumPy, which says what is right, failed: {reference['skipped']}")
    peers["numpy"].ask("drop", reference["made"])
    results, running, steps = [], [], len(work.x) // work.batch
    for peer in peers.values():
        for mode, api in peer.modes.items():
            wanted = case.modes.get(peer.library, [mode] * (api != "again"))  # those are for a case that names them
            if (api == "kernel") == bool(work.weights) or mode not in wanted:
                continue
            result, key = tried(case, work, peer, mode, file, reference["result"], pace)
            if result.why:
                results.append(result)
            else:
                running.append((peer, key, calibrated(peer, key, api, pace), result))
    for _ in range(pace.rounds):
        for peer, key, epochs, result in running:
            if "seconds" in (told := peer.ask("time", key, epochs)):
                result.seconds.append(told["seconds"] / epochs / (steps if work.weights else 1))
    for peer, key, _, result in running:
        peer.ask("drop", key)
        results.append(result if result.seconds else result._replace(why=peer.gone or "failed while it was timed"))
    for path in Path(folder).glob("*.npz"):
        path.unlink()
    return results


def tried(case, work, peer, mode, file, reference, pace):
    """A Result without times of a mode that did the work once, and the key of what it made; or why it is not timed."""
    about, least = (case, peer.about["name"], mode, peer.modes[mode]), limit(work, case.threads)
    made = peer.ask("make", mode, file)
    if "skipped" in made:
        return Result(*about, [], least, math.nan, made["skipped"]), None
    result = Result(*about, [], least, apart(made["result"], reference, work.weights))
    epoch = made["seconds"] * (len(work.x) / len(work.order) if work.weights else 1)
    if result.apart > LOOSE.get((peer.library, mode), TOLERANCE):
        result = result._replace(why=f"computes something else: {result.apart:.1g} of the way apart after an epoch")
    elif epoch > pace.limit:
        result = result._replace(why=f"an epoch would take {epoch:.0f} s")
    if result.why:
        peer.ask("drop", made["made"])
    return result, made["made"]


def calibrated(peer, key, api, pace):
    """How many epochs a round takes: a power of four, until it is long enough; five times that for a call of `fit`."""
    epochs, most, least = 1, 10**7 if api == "kernel" else EPOCHS, pace.seconds * (5 if api == "fit" else 1)

    def seconds():
        return peer.ask("time", key, epochs).get("seconds", math.inf)

    while epochs < most and min(seconds(), seconds()) < least:  # the lesser of two: one may have met a busy moment
        epochs = min(4 * epochs, most)
    return epochs


def first_epoch(peer, mode, file, caches):
    """{"import": s, "first": s, "memory": bytes} of a fresh process. None where it fails, or loses our patience."""
    folders = {name: str(Path(caches) / folder) for name, folder in CACHES.items()}
    options = {"env": environment(1, **folders), "timeout": libraries.PATIENCE}
    try:
        done = subprocess.run(
            command(peer.library, peer.python, mode, file), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options
        )
    except subprocess.TimeoutExpired:  # (by then it is ended)
        print(f"{peer.library} {mode}: gave no answer within {libraries.PATIENCE} s", flush=True)
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def starts(peers, repeats, folder):
    """What a process needs until its first epoch of the rings is done, by Adam, with nothing kept and with all kept."""
    file = str(Path(folder) / "start.npz")
    of_task(tasks.rings(), 100, "adam").save(file)
    modes = [(peers[name], mode) for name in GROWING if name in peers for mode in GROWING[name]]
    found = {}
    for _, (peer, mode) in itertools.product(range(repeats), modes):
        if found.get((peer, mode), ...) is None:
            continue
        with tempfile.TemporaryDirectory(dir=folder) as caches:
            both = [first_epoch(peer, mode, file, caches) for _ in ("cold", "kept")]
        if None in both:
            found[peer, mode] = None  # it cannot do this work
        else:
            found.setdefault((peer, mode), []).append(both)
    rows = []
    for (peer, mode), runs in found.items():
        if runs:
            cold, kept = (
                {what: statistics.median(each[what] or math.nan for each in same) for what in same[0]}
                for same in zip(*runs, strict=True)
            )
            name = f"levels {mode}" if peer.library == "levels" else f"{peer.about['name']} {mode}"
            rows.append((name, kept["import"], cold["first"], kept["first"], kept["memory"], peer.about["bytes"]))
    return rows


def whole_course():
    """What `course run` says of each notebook."""
    run = subprocess.run([sys.executable, "-m", "course", "run"], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    lines = [line.split(" ran in ") for line in run.stdout.splitlines() if " ran in " in line]
    return {name.strip(): float(text.split()[0]) for name, text in lines}


def several(given, repeats, folder):
    """The rows of `machines.measured`, on rings and on the large net; none where something is missing, or fails."""
    python = python_of("torch", given)
    nets = {"rings, batch 100": (of_task(tasks.rings(), 100, "sgd"), 25)}
    nets["784-512-512-10, batch 256"] = of_net(2560, (784, 512, 512, 10), 256, "cross_entropy", "sgd", 0.05), 10
    works = {name: work._replace(order=np.tile(work.order, epochs)) for name, (work, epochs) in nets.items()}
    try:
        if not (why := machines.missing(python)):
            return machines.measured(works, python, environment, repeats, folder)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:  # the rest of the page is not lost for it
        why = error
    print(f"machines: skipped ({why})")
    return []
