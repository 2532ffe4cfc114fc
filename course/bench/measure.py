"""`levels`, measured against what a reader would use instead: `python3 -m course bench`.

Each library works in a process of its own, run by the Python that has it (`worker.py`), and first shows that it
computes the same. Then all take turns; medians are compared. What is not there, or does something else, is told, not timed.
"""

import datetime
import functools
import hashlib
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from course import tasks
from course.bench import machines
from course.bench.worker import Work
from course.setup.arguments import SECTIONS, parser

ROOT = Path(__file__).resolve().parents[2]
FOLDER, PEERS = Path(__file__).resolve().parent, ROOT / ".course" / "peers"
SCRIPTS = "formulas.py", "peers/*.py", "worker.py"  # those that measure
LIBRARIES = {  # what `--peer` installs; nothing: it is here
    "levels": [],
    "numpy": [],
    "sklearn": [],
    "torch": ["torch", "numpy"],
    "tensorflow": ["tensorflow"],
    "jax": ["jax"],
    "tinygrad": ["tinygrad", "numpy"],
    "micrograd": ["micrograd", "numpy"],
}
ONLY_PROGRAMS = {
    "torchkeras": [
        "torchkeras",
        "torch",
        "accelerate",
        "pandas",
        "scikit-learn",
        "matplotlib",
        "torchmetrics",
        "ipython",
    ]  # fmt: skip
}  # not timed
APIS = "by hand", "eager", "step", "epoch", "fit", "again", "kernel"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC")
TOLERANCE = 5e-4  # of the way that the weights went, in float32 against float64
LOOSE = {("tensorflow", "Keras fit"): 2e-3}  # its Adam takes 1 - 0.999ᵗ from a power in float32, and loses digits
PATIENCE = 600  # seconds for an answer, torch.compile's too; who takes longer is ended
EPOCHS = 600  # the most in one call


class Pace(NamedTuple):
    """How long to measure."""

    rounds: int
    seconds: float  # of a round, at least
    limit: float  # what takes longer for an epoch is not timed


FULL, QUICK, GROWTH = Pace(7, 0.1, 3.0), Pace(3, 0.02, 3.0), Pace(3, 0.05, 5.0)

# What is to be done ---------------------------------------------------------------------------------------------------


SLOW = {"torch": "torch.compile", "tinygrad": "lazy"}  # half a minute until they begin: not for --quick
GROWING = {  # who takes part in growth and start: one mode for each way to write it
    "levels": ["3 eager", "3 function.over", "5 fit"],
    "numpy": ["in place"],
    "torch": ["eager"],
    "jax": ["lax.scan"],
    "tensorflow": ["Keras fit"],
}


class Case(NamedTuple):
    """One thing to measure. The cases of a family differ in their size;"""

    section: str
    family: str
    size: Any
    make: Any  # make() -> Work
    threads: int = 1
    modes: Any = {}  # library: those that take part, where they are not all


def of_task(task, batch, optimizer, dtype="f4", rows=None):
    """One of the course's two tasks, or the first rows of it."""
    x, y, *weights = (a.astype(dtype) for a in (task.x[:rows], task.y[:rows], *task.weights))
    loss = "bce" if len(weights) > 2 else "mse"
    return Work(x, y, weights, tasks.shuffled(len(x), 1), loss, optimizer, task.learning_rate, batch)


def of_net(rows, sizes, batch, loss, optimizer, rate):
    """A net of that many inputs and units, on rows of normal numbers. An epoch that is compared has 10,000 rows at most."""
    rng = np.random.default_rng(1)
    weights = []
    for inputs, units in itertools.pairwise(sizes):
        weights += [np.float32(math.sqrt(2 / inputs)) * rng.standard_normal((inputs, units), "f4")]
        weights += [np.zeros((1, units), "f4")]
    x = rng.standard_normal((rows, sizes[0]), "f4")
    if loss == "cross_entropy":
        y = np.eye(sizes[-1], dtype="f4")[rng.integers(0, sizes[-1], rows)]
    else:
        y = np.float32((x * x).sum(axis=1, keepdims=True) > sizes[0])
    return Work(x, y, weights, rng.permutation(rows)[:10_000], loss, optimizer, rate, batch)


def of_op(op, size):
    """One op on arrays of so many numbers, or on matrices of so many rows and columns."""
    rng = np.random.default_rng(1)
    x, y = (rng.random((size, size) if op == "matmul" else size, "f4") for _ in "xy")
    return Work(x, y, [], np.arange(1), op)


def only(**modes):
    """These modes of these libraries, and none of the others."""
    return dict.fromkeys(LIBRARIES, []) | modes


WIDE = only(levels=["1", "2", "3 eager", "3 function", "3 function.over"], numpy=["naive", "in place"])  # in float64
AGAIN = only(levels=["5 fit again"], tensorflow=["Keras fit again"], sklearn=["MLP fit again"])


def cases():
    """All there is to measure."""
    for name, batch, optimizer in (("linear", 10, "sgd"), *itertools.product(["rings"], [100, 10], ["sgd", "adam"])):
        title = f"{name}, batch {batch}, {optimizer.upper() if optimizer == 'sgd' else 'Adam'}"
        yield Case("training", title, "", lambda f=name, b=batch, o=optimizer: of_task(getattr(tasks, f)(), b, o))
    title = "rings in float64, batch 100, SGD"
    yield Case("training", title, "", lambda: of_task(tasks.rings(), 100, "sgd", "f8"), 1, WIDE)
    title = "rings, four steps, each fit a new one"
    yield Case("training", title, "", lambda: of_task(tasks.rings(), 100, "sgd", rows=400), 1, AGAIN)
    title = "8-16-16-4, batch 32, Adam"
    yield Case("training", title, "", lambda: of_net(3200, (8, 16, 16, 4), 32, "cross_entropy", "adam", 0.001))
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        title = f"784-512-512-10, batch 256, Adam, {threads} thread{'s' * (threads > 1)}"
        yield Case("training", title, "", lambda: of_net(2560, (784, 512, 512, 10), 256, "cross_entropy", "adam", 0.001), threads)  # fmt: skip
    for op, sizes in (
        *((op, (100, 10_000, 10**6, 10**7)) for op in ("add", "exp", "sum")),
        ("matmul", (32, 128, 512, 1024)),
    ):
        for size in sizes:
            yield Case("kernels", op, size, lambda op=op, n=size: of_op(op, n))
    for power in range(2, 8):
        yield Case(
            "growth",
            "rows",
            10**power,
            lambda n=10**power: of_net(n, (2, 4, 8, 1), 100, "bce", "sgd", 0.01)._replace(drawn=True),
            1,
            GROWING,
        )
    for width in (4, 16, 64, 256, 1024, 4096):
        yield Case(
            "growth", "width", width, lambda n=width: of_net(400, (16, n, n, 1), 100, "bce", "sgd", 0.01), 1, GROWING
        )
    for depth in (1, 4, 16, 64):
        yield Case(
            "growth",
            "depth",
            depth,
            lambda n=depth: of_net(400, (16, *[16] * n, 1), 100, "bce", "sgd", 0.01),
            1,
            GROWING,
        )


def traffic(work):
    """The flops and bytes of a step: each number read and written once, though a cache may hold it."""
    size, word = work.x.size, work.x.itemsize
    if not work.weights:
        flops = {"add": size, "exp": 10 * size, "sum": size, "matmul": 2 * size * len(work.x)}[work.loss]
        return flops, word * size * {"add": 3, "exp": 2, "sum": 1, "matmul": 3}[work.loss]
    products, parameters = sum(w.size for w in work.weights[::2]), sum(w.size for w in work.weights)
    flops = 2 * work.batch * (3 * products - work.weights[0].size)  # forward, and two products backward but for x
    rows = work.batch * (work.x.shape[1] + work.y.shape[1])
    return flops, word * (rows + parameters * (2 if work.optimizer == "sgd" else 6))


def limit(work, threads):
    """The least seconds of a step, by level 1's cost model, with the bandwidth of a memory as large as what is moved."""
    from levels.hardware import measure_reading, pool

    cpu, (flops, nbytes) = pool()["cpu:0"], traffic(work)
    near = 2 ** min(28, max(14, 2 * round(math.log2(nbytes) / 2)))
    if near not in cpu.measured:
        cpu.measured[near] = measure_reading(cpu, near)
    launches = work.batch / len(work.x) if work.weights else 1
    return launches * cpu.launch_time + max(flops / (threads * cpu.peak), nbytes / cpu.measured[near])


# The libraries --------------------------------------------------------------------------------------------------------


CACHES = {  # where libraries keep what they compiled: folders of ours, empty at first
    "LEVELS_CACHE": "levels",
    "NUMBA_CACHE_DIR": "numba",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TRITON_CACHE_DIR": "triton",
    "JAX_COMPILATION_CACHE_DIR": "jax",
    "CACHEDB": "tinygrad.db",
    "XDG_CACHE_HOME": "other",
}
KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def python_of(library, given):
    """The Python that has a library: one that was given, that of `--peer`, or this one."""
    made = PEERS / library / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return given.get(library) or (str(made) if made.exists() else sys.executable)


def command(library, python, *more):
    return [python, str(FOLDER / "worker.py"), library, *more]


def environment(threads, own, **more):
    """The environment of a worker: so many threads, in whatever way a library is told of them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    kept |= dict.fromkeys(THREADS, str(threads)) | {"KERAS_BACKEND": "tensorflow", "PYTHONDONTWRITEBYTECODE": "1"}
    if threads == 1:
        kept["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    caches = {name: str(ROOT / ".course" / "bench" / place) for name, place in CACHES.items()}
    return caches | kept | KEEP_ALL | ({"PYTHONPATH": str(ROOT)} if own else {}) | more


class Peer:
    """A library in its process."""

    def __init__(self, library, python, threads=1):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.library, self.python, self.threads, self.gone = library, python, threads, ""  # gone: why there is no more
        self.process = subprocess.Popen(
            command(library, python), env=environment(threads, python == sys.executable), **options
        )

    @functools.cached_property
    def about(self):
        """What it is called, its version, bytes and modes; or that it is not there."""
        return self.answer()

    @property
    def modes(self):
        return self.about["modes"]

    def answer(self):
        begun, late = time.perf_counter(), threading.Timer(PATIENCE, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        if line:
            return json.loads(line)
        ended = f"its process ended ({self.process.wait()})"
        self.gone = f"gave no answer within {PATIENCE} s" if time.perf_counter() - begun >= PATIENCE else ended
        return {"skipped": self.gone}

    def ask(self, *request):
        """The answer of the library, which has said what it is by then. One whose process has ended skips everything."""
        if "skipped" in self.about or self.gone:
            return {"skipped": "its process has ended"}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # then there is no answer to read either
            pass
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def install(library):
    """Make `.course/peers/LIBRARY`."""
    packages = {name: listed for name, listed in (LIBRARIES | ONLY_PROGRAMS).items() if listed}
    if library not in packages:
        raise SystemExit(f"--peer {library}: there are {', '.join(packages)}")
    folder, uv = str(PEERS / library), shutil.which("uv")
    python = python_of(library, {}) if (PEERS / library).exists() else None
    if python is None:
        subprocess.run([uv, "venv", folder] if uv else [sys.executable, "-m", "venv", folder], check=True, cwd=ROOT)
        python = python_of(library, {})
    pip = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    subprocess.run([*pip, *packages[library]], check=True, cwd=ROOT)


# Measuring ------------------------------------------------------------------------------------------------------------


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
    """How far the results are from the reference, as a share of the way from the start to there; or the losses' share."""

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
    work._replace(x=work.x.astype("f8"), y=work.y.astype("f8"), weights=[w.astype("f8") for w in work.weights]).save(
        wide
    )
    kind, least, steps = "naive" if work.weights else "kernel", limit(work, case.threads), len(work.x) // work.batch
    reference = peers["numpy"].ask("make", kind, wide)
    if "skipped" in reference:
        raise RuntimeError(f"{case.family}: NumPy, which says what is right, failed: {reference['skipped']}")
    peers["numpy"].ask("drop", reference["made"])
    results, running = [], []
    for peer in peers.values():
        for mode, api in peer.modes.items():
            wanted = case.modes.get(peer.library, [mode] * (api != "again"))  # those are for a case that names them
            if (api == "kernel") == bool(work.weights) or mode not in wanted:
                continue
            about = case, peer.about["name"], mode, api
            made = peer.ask("make", mode, file)
            if "skipped" in made:
                results.append(Result(*about, [], least, math.nan, made["skipped"]))
                continue
            result = Result(*about, [], least, apart(made["result"], reference["result"], work.weights))
            epoch = made["seconds"] * (len(work.x) / len(work.order) if work.weights else 1)
            if result.apart > LOOSE.get((peer.library, mode), TOLERANCE):
                why = f"computes something else: {result.apart:.1g} of the way apart after an epoch"
            elif epoch > pace.limit:
                why = f"an epoch would take {epoch:.0f} s"
            else:
                running.append((peer, made["made"], calibrated(peer, made["made"], api, pace), result))
                continue
            peer.ask("drop", made["made"])
            results.append(result._replace(why=why))
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


def calibrated(peer, key, api, pace):
    """How many epochs a round takes: a power of four, until it is long enough; for `fit`, whose call has a cost, five times so."""
    epochs, most, least = 1, 10**7 if api == "kernel" else EPOCHS, pace.seconds * (5 if api == "fit" else 1)

    def seconds():
        return peer.ask("time", key, epochs).get("seconds", math.inf)

    while epochs < most and min(seconds(), seconds()) < least:  # the lesser of two: one may have met a busy moment
        epochs = min(4 * epochs, most)
    return epochs


def first_epoch(peer, mode, file, caches):
    """{"import": s, "first": s, "memory": bytes} of a fresh process. None where it fails, or loses our patience."""
    folders = {name: str(Path(caches) / folder) for name, folder in CACHES.items()}
    options = {"env": environment(1, peer.python == sys.executable, **folders), "timeout": PATIENCE}
    try:
        done = subprocess.run(
            command(peer.library, peer.python, mode, file), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options
        )
    except subprocess.TimeoutExpired:  # (by then it is ended)
        print(f"{peer.library} {mode}: gave no answer within {PATIENCE} s", flush=True)
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
            cold, kept = ({what: statistics.median(r[k][what] or math.nan for r in runs) for what in runs[0][k]} for k in (0, 1))  # fmt: skip
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


# What is told ---------------------------------------------------------------------------------------------------------


def table(head, rows):
    """A table in Markdown whose columns are aligned in plain text too; what is no text stands at the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [False] + [True] * (len(head) - 1)
    lines = ["| " + " | ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)) + " |" for row in cells]  # fmt: skip
    rule = "|" + "|".join("-" * (w + 1) + (":" if r else "-") for w, r in zip(widths, right, strict=True)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def number(value):
    """Three digits, and no exponent."""
    if not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{round(value, 2 - math.floor(math.log10(value))) if value > 0 else 0:,.{min(digits, 4)}f}"


def quickest(results):
    return min(results, key=lambda result: result.median, default=None)


def of_levels(results, library="levels"):
    return [result for result in results if (result.library == "levels") == (library == "levels")]


def headline(results):
    """A line for each way to write each training: `levels` and the quickest other, and how far from the limit."""
    rows = []
    for (family, _), group in grouped(results, "training"):
        for api in APIS[:-1]:
            same = [result for result in group if result.api == api]
            own, other = quickest(of_levels(same)), quickest(of_levels(same, "others"))
            if own and other:
                ratio = f"{number(other.median / own.median)}{'' if own.median <= other.median else ' **behind**'}"
                times = number(1e6 * own.median), other.name, number(1e6 * other.median)
                rows.append((f"{family}: {api}", own.name, *times, ratio, number(own.median / own.limit)))
    return table(("", "levels", "µs a step", "quickest other", "µs a step", "its time / ours", "ours / limit"), rows)


def grouped(results, section):
    """((family, size), the results that were timed), in order."""
    groups = {}
    for result in results:
        if result.case.section == section and result.seconds:
            groups.setdefault((result.case.family, result.case.size), []).append(result)
    return groups.items()


def training_table(group):
    """All modes of one training, from the quickest on, in each way to write it."""
    rows = []
    for result in sorted(group, key=lambda result: (APIS.index(result.api), result.median)):
        own = quickest(of_levels([other for other in group if other.api == result.api]))
        low, high = (number(1e6 * t) for t in result.spread())
        beside = number(result.median / own.median) if own else "–"
        name = f"**levels {result.mode}**" if result.library == "levels" else result.name
        over = number(result.median / result.limit)
        rows.append((f"{name}", result.api, number(1e6 * result.median), f"{low} to {high}", beside, over, f"{result.apart:.0e}"))  # fmt: skip
    return table(("", "written", "µs a step", "a tenth is outside of", "of levels", "of the limit", "apart"), rows)


def sizes_table(results, section, family):
    """Modes in rows, sizes in columns: µs."""
    groups = {size: group for (name, size), group in grouped(results, section) if name == family}
    names = dict.fromkeys(full_name(result) for group in groups.values() for result in group)
    times = {(full_name(r), size): number(1e6 * r.median) for size, group in groups.items() for r in group}
    rows = [(name, *(times.get((name, size), "–") for size in groups)) for name in names]
    if groups:
        rows.append(("the limit", *(number(1e6 * group[0].limit) for group in groups.values())))
    return table((f"{family}, µs", *(f"{size:,}" for size in groups)), rows)


def full_name(result):
    return f"levels {result.mode}" if result.library == "levels" else result.name


def machine():
    """The processor, the system, and how busy it is."""
    from levels.hardware import amount, pool

    cpu, name = pool()["cpu:0"], platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if line.startswith("model name")), name)
    busy = f"; load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    speed = f"one core: {amount(cpu.peak, 'flop/s')}, {amount(cpu.bandwidth, 'B/s')} from memory"
    return f"{name}, {os.cpu_count()} CPUs ({speed}), {platform.system()}, Python {platform.python_version()}{busy}"


def made_by():
    """A line that names the scripts that measure, by a hash: a test asks for new results once they have changed."""
    scripts = sorted(path.relative_to(FOLDER).as_posix() for pattern in SCRIPTS for path in FOLDER.glob(pattern))
    texts = [[name, (FOLDER / name).read_text(encoding="utf-8")] for name in scripts]
    return f"<!-- measured by the scripts {hashlib.sha256(json.dumps(texts).encode()).hexdigest()} -->"


def report(results, began, here, versions, start_rows=(), notebooks=None, ranks=()):
    """The whole page in Markdown."""
    parts = ["# Results", f"{began}. {here}.\n\n{versions}.", "What is measured, and how: see [README.md](README.md)."]
    if grouped(results, "training"):
        parts += ["## Training", headline(results)]
        parts += [f"### {family}\n\n{training_table(group)}" for (family, _), group in grouped(results, "training")]
    for section, title in (("kernels", "## Kernels"), ("growth", "## Growth: µs a step")):
        families = dict.fromkeys(family for (family, _), _ in grouped(results, section))
        parts += [title] * bool(families) + [sizes_table(results, section, family) for family in families]
    if start_rows:
        head = "", "import, s", "first epoch, s", "with all kept, s", "memory, MB", "installed, MB"
        rows = [(n, *map(number, times), *(number(b / 1e6) for b in sizes)) for n, *times, sizes in ((*r[:4], r[4:]) for r in start_rows)]  # fmt: skip
        parts += ["## The start: one epoch of the rings, Adam, in a fresh process", table(head, rows)]
    if ranks:
        head = "SGD", "ranks", "levels, µs a step", "PyTorch, µs a step", "its time / ours", "losses apart"
        rows = [(name, n, number(1e6 * a), number(1e6 * b), number(c), f"{d:.0e}") for name, n, a, b, c, d in ranks]
        parts += ["## Several machines: processes on this computer", table(head, rows)]
    if notebooks:
        rows = [(name, f"{seconds:.0f}") for name, seconds in {**notebooks, "all": sum(notebooks.values())}.items()]
        parts += ["## The course", table(("notebook", "s"), rows)]
    if skipped := not_timed(results):
        parts += ["## Not timed", "\n".join(skipped)]
    parts.append(made_by())
    return "\n\n".join(parts) + "\n"


def not_timed(results):
    """A line for each mode and reason, with all the cases that it is about."""
    found = {}
    for result in results:
        if result.why:
            size = f" {result.case.size:,}" if result.case.size else ""
            found.setdefault((full_name(result), result.why), []).append(f"{result.case.family}{size}")
    return [f"- {name}: {why} ({'; '.join(about)})" for (name, why), about in found.items()]


# The command ----------------------------------------------------------------------------------------------------------


def open_peers(libraries, given, threads, heard):
    """{library: Peer} of those that are there; `heard` is told of those that are not."""
    peers, begun = {}, {library: Peer(library, python_of(library, given), threads) for library in libraries}
    for library, peer in begun.items():
        if "skipped" in peer.about:
            peer.close()
            cure = f"; python3 -m course bench --peer {library}" if LIBRARIES[library] else ""
            heard(f"{library}: skipped ({peer.about['skipped']}{cure})")
        else:
            peers[library] = peer
    return peers


def main(argv):
    """`python3 -m course bench`: levels beside NumPy, PyTorch, TensorFlow, JAX and others, each where it is installed."""
    options = parser("bench").parse_args(argv)
    if options.peer:
        return install(options.peer)
    given = dict(text.partition("=")[::2] for text in options.python)
    for name in given:
        if name not in LIBRARIES:
            raise SystemExit(f"--python {name}: there are {', '.join(LIBRARIES)}")
    wanted = options.sections or (["training"] if options.quick else SECTIONS)
    if not any(case.section in wanted and options.only in case.family for case in cases()):
        names = dict.fromkeys(case.family for case in cases() if case.section in wanted)
        raise SystemExit(
            f"--only {options.only}: nothing that is measured has this in its name. There are: {'; '.join(names)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        page, results = run(wanted, options, given, folder)
    print(f"\n{page}")
    if not options.quick:
        from course.figures.bench_figures import raced

        (FOLDER / "results.md").write_text(page, encoding="utf-8")
        if any(result.case.section == "training" and result.seconds for result in results):
            (FOLDER / "results.png").write_bytes(raced(results).png)
    return 0


def run(wanted, options, given, folder):
    """Measure: the page, and the results."""
    start = time.perf_counter()
    began, here, results, start_rows = f"{datetime.date.today():%d %B %Y}", machine(), [], ()
    chosen = [case for case in cases() if case.section in wanted and options.only in case.family]
    if options.quick:
        chosen = [case for case in chosen if case.threads == 1 and "rings, batch 10," not in case.family]
    for threads in sorted({case.threads for case in chosen} | {1}):
        peers = open_peers(LIBRARIES, given, threads, print if threads == 1 else lambda line: None)
        for library, mode in SLOW.items() if options.quick else ():
            if library in peers:
                print(f"{library} {peers[library].modes.pop(mode) and mode}: left out of --quick")
        if threads == 1:
            about = [peer.about for peer in peers.values()]
        try:
            for case in (case for case in chosen if case.threads == threads):
                growing = case.section == "growth"
                pace = QUICK if options.quick else GROWTH if growing else FULL
                found = measure(case, {k: p for k, p in peers.items() if not growing or k in GROWING}, pace, folder)
                results += found
                told = quickest([result for result in found if result.seconds])
                best = f"{full_name(told)}, {number(1e6 * told.median)} µs" if told else "nobody"
                print(
                    f"{time.perf_counter() - start:5.0f} s  {case.family} {case.size}: quickest of {len(found)}: {best}",
                    flush=True,
                )
            if threads == 1 and "start" in wanted:
                start_rows = starts(peers, 1 if options.quick else 3, folder)
        except KeyboardInterrupt:
            print("stopped: what was measured by then is told", flush=True)
            wanted, chosen = [], []
        finally:
            for peer in peers.values():
                peer.close()
    versions = ", ".join(f"{a['name']} {a['version']}".strip() for a in about)
    ranks = several(given, 1 if options.quick else 5, folder) if "machines" in wanted else ()
    notebooks = whole_course() if "course" in wanted else None
    return report(results, began, here, versions, start_rows, notebooks, ranks), results
