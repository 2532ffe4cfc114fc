"""The libraries: the Python in which each is installed, and its process."""

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PEERS = ROOT / ".course" / "peers"
LIBRARIES = {  # library: the packages that `--peer` installs, [] for the course's own
    "levels": [],
    "numpy": [],
    "sklearn": [],
    "torch": ["torch", "numpy"],
    "tensorflow": ["tensorflow"],
    "jax": ["jax"],
    "tinygrad": ["tinygrad", "numpy"],
    "micrograd": ["micrograd", "numpy"],
}
# libraries for `course programs`, which are not timed
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
    ]
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "NPROC")
PATIENCE = 600  # seconds for an answer, enough for torch.compile; then the process is killed
CACHES = {  # environment variable of a library's compilation cache: its path in our folder of caches
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
    """Return the Python for a library: the one in `given`, the one that `--peer` made, or this one."""
    made = PEERS / library / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    return os.path.expanduser(given.get(library) or (made if made.exists() else sys.executable))


def command(library, python, *more):
    return [python, "-m", "course.author.bench.worker", library, *more]


def environment(threads, **more):
    """Return a worker's environment: it sets the number of threads for all libraries, and makes `course` importable."""
    kept = os.environ | dict.fromkeys(THREADS, str(threads))
    kept |= {"KERAS_BACKEND": "tensorflow", "PYTHONDONTWRITEBYTECODE": "1"}
    kept |= {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}  # no modules from the current folder
    if threads == 1:
        kept["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    caches = {name: str(ROOT / ".course" / "bench" / place) for name, place in CACHES.items()}
    return caches | kept | KEEP_ALL | more


class Peer:
    """A library in its own process."""

    def __init__(self, library, python, threads=1):
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        # gone: why it has ended
        self.library = library
        self.python = python
        self.gone = ""
        self.process = subprocess.Popen(command(library, python), env=environment(threads), **options)

    @functools.cached_property
    def about(self):
        """The library's name, version, bytes and modes, or {"skipped": why} if it is not installed."""
        return self.answer()

    @property
    def modes(self):
        return self.about["modes"]

    def answer(self):
        begun = time.perf_counter()
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        if line:
            return json.loads(line)
        ended = f"its process ended ({self.process.wait()})"
        self.gone = f"gave no answer within {PATIENCE} s" if time.perf_counter() - begun >= PATIENCE else ended
        return {"skipped": self.gone}

    def ask(self, *request):
        """Return the answer to a request, after reading `about`; {"skipped": why} if the process has ended."""
        if "skipped" in self.about or self.gone:
            return {"skipped": "its process has ended"}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # there is then no answer either, which `answer` reports
            pass
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def install(library):
    """Install a library into `.course/peers/LIBRARY`. Raises SystemExit for an unknown library."""
    packages = {name: listed for name, listed in (LIBRARIES | ONLY_PROGRAMS).items() if listed}
    if library not in packages:
        raise SystemExit(f"--peer {library}: there are {', '.join(packages)}")
    folder = str(PEERS / library)
    uv = shutil.which("uv")
    python = python_of(library, {}) if (PEERS / library).exists() else None
    if python is None:
        subprocess.run([uv, "venv", folder] if uv else [sys.executable, "-m", "venv", folder], check=True, cwd=ROOT)
        python = python_of(library, {})
    pip = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    subprocess.run([*pip, *packages[library]], check=True, cwd=ROOT)


def open_peers(libraries, given, threads, heard):
    """Return {library: Peer} of the installed libraries. Calls `heard` with a line for each of the others."""
    peers = {}
    begun = {library: Peer(library, python_of(library, given), threads) for library in libraries}
    for library, peer in begun.items():
        if "skipped" in peer.about:
            peer.close()
            cure = f"; python3 -m course bench --peer {library}" if LIBRARIES[library] else ""
            heard(f"{library}: skipped ({peer.about['skipped']}{cure})")
        else:
            peers[library] = peer
    return peers
