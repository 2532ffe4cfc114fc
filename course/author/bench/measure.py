"""Measure: each mode of each library does the same work, in turns."""

import itertools
import json
import math
import os
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course.author.bench import libraries, machines
from course.author.bench.cases import GROWING, Case, limit, of_net, of_task
from course.author.bench.libraries import CACHES, command, environment, python_of
from course.reader import tasks

TOLERANCE = 5e-4  # largest distance of float32 from float64, relative to the change of the weights
LOOSE = {("tensorflow", "Keras fit"): 2e-3}  # its Adam computes 1 - 0.999ᵗ from a power in float32, and loses digits
EPOCHS = 600  # the maximum in one call


class Pace(NamedTuple):
    """Settings for how long to measure."""

    rounds: int
    seconds: float  # of a round, at least
    limit: float  # a mode whose epoch takes longer is not timed


FULL, QUICK, GROWTH = Pace(7, 0.1, 3.0), Pace(3, 0.02, 3.0), Pace(3, 0.05, 5.0)


class Result(NamedTuple):
    """The times of a mode of a library for a case, or why it was not timed."""

    case: Case
    library: str
    mode: str
    api: str
    seconds: Any  # list: seconds per step in each round
    limit: float
    apart: float  # from the reference
    why: str = ""

    name = property(lambda self: self.mode if self.library == "levels" else f"{self.library} {self.mode}")
    median = property(lambda self: statistics.median(self.seconds))

    def spread(self):
        """Return the 0.1 and 0.9 quantiles of the rounds, in the unit of the median."""
        return np.quantile(self.seconds, (0.1, 0.9))


def apart(result, reference, start):
    """Return the distance from the reference, relative to its distance from `start`; or the losses', if greater."""

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
    """Return a Result for each mode of each library, timed in turns. Raises RuntimeError if NumPy's reference fails."""
    work, file, wide = case.make(), str(Path(folder) / "work.npz"), str(Path(folder) / "reference.npz")
    work.save(file)
    x, y, *weights = (each.astype("f8") for each in (work.x, work.y, *work.weights))
    work._replace(x=x, y=y, weights=weights).save(wide)
    reference = peers["numpy"].ask("make", "naive" if work.weights else "kernel", wide)
    if "skipped" in reference:
        raise RuntimeError(f"{case.family}: NumPy, which says what is right, failed: {reference['skipped']}")
    peers["numpy"].ask("drop", reference["made"])
    results = []
    running = []
    steps = len(work.x) // work.batch
    for peer in peers.values():
        for mode, api in peer.modes.items():
            wanted = case.modes.get(peer.library, [mode] * (api != "again"))  # "again" only if the case names it
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
    """Let a mode do the work once. Returns (a Result without times, but with `why` if it is not timed, the key)."""
    about = (case, peer.about["name"], mode, peer.modes[mode])
    least = limit(work, case.threads)
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
    """Return the epochs of a round: a power of four, until it takes `pace.seconds`, or five times as long for `fit`."""
    epochs = 1
    most = 10**7 if api == "kernel" else EPOCHS
    least = pace.seconds * (5 if api == "fit" else 1)

    def seconds():
        return peer.ask("time", key, epochs).get("seconds", math.inf)

    while epochs < most and min(seconds(), seconds()) < least:  # the lesser, as one may meet other load
        epochs = min(4 * epochs, most)
    return epochs


def first_epoch(peer, mode, file, caches):
    """Return {"import": s, "first": s, "memory": bytes} of a fresh process, or None if it fails or times out."""
    folders = {name: str(Path(caches) / folder) for name, folder in CACHES.items()}
    options = {"env": environment(1, **folders), "timeout": libraries.PATIENCE}
    try:
        done = subprocess.run(
            command(peer.library, peer.python, mode, file), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options
        )
    except subprocess.TimeoutExpired:  # the process has been killed
        print(f"{peer.library} {mode}: gave no answer within {libraries.PATIENCE} s", flush=True)
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def starts(peers, repeats, folder):
    """Return rows with the start of a process: the time of its first epoch (rings, Adam) with empty and full caches."""
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


# a fresh process that trains the line and prints its loss: what it is called -> its library and program in peers/cold/
COLD = {
    "levels 3": ("levels", "level_3"),
    "levels 5": ("levels", "level_5"),
    "levels 5, levels_more": ("levels", "level_5_more"),
    "scikit-learn MLP": ("sklearn", "sklearn"),
    "PyTorch": ("torch", "torch"),
    "JAX": ("jax", "jax"),
    "Keras": ("tensorflow", "tensorflow"),
}
SAME = 1e-4  # the largest relative distance of a loss from that of level 3: some compute in float32


def processor_seconds(command, env):
    """Return (the processor seconds of a command, all its threads and children, the last line that it prints)."""
    import resource  # not on Windows

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    options = {"env": env, "timeout": libraries.PATIENCE, "text": True, "check": True}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)
    return spent() - before, done.stdout.strip().split("\n")[-1]


def colds(pythons, repeats, folder):
    """Return [(name, processor seconds in each repeat)] of COLD, in turns, for libraries of {library: its Python}.

    A first run fills the caches. What fails, or prints another loss, is named and left out. On Windows there is none.
    """
    if os.name == "nt":
        return []
    kept = {name: str(Path(folder) / place) for name, place in CACHES.items()}
    env = environment(1, **kept, PYTHONDONTWRITEBYTECODE="")
    data = str(tasks.DATA / "linear.csv")
    programs = Path(__file__).with_name("peers") / "cold"
    found = {name: [] for name, (library, _) in COLD.items() if library in pythons}
    loss = None
    for repeat, name in itertools.product(range(repeats + 1), [*found]):
        library, program = COLD[name]
        if name not in found:
            continue
        try:
            spent, printed = processor_seconds([pythons[library], str(programs / f"{program}.py"), data], env)
            loss = loss or float(printed)
            if not math.isclose(float(printed), loss, rel_tol=SAME):
                raise ValueError(f"the loss is {printed}, and that of {next(iter(found))} is {loss}")
        except (subprocess.SubprocessError, ValueError) as why:
            print(f"{name}: left out of the cold start ({why})", flush=True)
            del found[name]
            continue
        if repeat:
            found[name].append(spent)
    return [*found.items()]


def several(given, repeats, folder):
    """Return the rows of `machines.measured` for rings and the large net, or [] if something is missing or fails."""
    python = python_of("torch", given)
    nets = {"rings, batch 100": (of_task(tasks.rings(), 100, "sgd"), 25)}
    nets["784-512-512-10, batch 256"] = of_net(2560, (784, 512, 512, 10), 256, "cross_entropy", "sgd", 0.05), 10
    works = {name: work._replace(order=np.tile(work.order, epochs)) for name, (work, epochs) in nets.items()}
    try:
        if not (why := machines.missing(python)):
            return machines.measured(works, python, environment, repeats, folder)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:  # the rest of the page is still reported
        why = error
    print(f"machines: skipped ({why})")
    return []
