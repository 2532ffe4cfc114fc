"""Level 2 against its peers, one line a claim: ratios of medians, taken in turn in one process, one thread unless said.

A ratio is the peer's time over ours: above 1 we are faster. Each peer first proves that it computes the same. The bars are
meant for a processor with AVX-512. PyTorch is optional: `pip install torch`. Run `python benchmarks/kernels.py`; give the
names of sections to run only those, such as `matmul`.
"""

import os
import statistics
import subprocess
import sys
import time
from functools import partial

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numba
import numpy as np

from levels.hardware import pool
from levels.kernels import launch

CPU = pool()["cpu:0"]
DRAW = np.random.default_rng(0)
CORES = (
    "Haswell",
    "SkylakeX",
    "Zen",
    "Cooperlake",
)  # OpenBLAS' names for its sets of kernels; `installed` lets it choose


def numbers(*shape):
    return DRAW.standard_normal(shape, "f4")


def medians(*runs, repeats=21, seconds=0.02):
    """The median time of each call, all taken in turn, each repeated to last about that many seconds."""
    times, counts = [[] for _ in runs], []
    for run in runs:
        run()
        start = time.perf_counter()
        run()
        counts.append(max(1, int(seconds / (time.perf_counter() - start + 1e-7))))
    for _ in range(repeats):
        for run, count, own in zip(runs, counts, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                run()
            own.append((time.perf_counter() - start) / count)
    return [statistics.median(own) for own in times]


def line(what, value, bar, note=""):
    print(f"{what:44} {value:8.2f}   bar {bar:<5}  {'ok' if value >= float(bar) else 'MISSED':7} {note}", flush=True)


def compare(what, bar, ours, peer, result, expected, tolerance=1e-4):
    """Print the peer's time over ours, after both gave the same."""
    ours(), peer()
    np.testing.assert_allclose(result(), expected(), tolerance, tolerance, err_msg=what)
    mine, other = medians(ours, peer)
    line(what, other / mine, bar, f"{mine * 1e6:.2f} µs")


def products(label=""):
    """Matrix products against NumPy, into given arrays on both sides, and against the measured peak."""
    for m, k, n in ((32, 32, 32), (100, 4, 8), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024)):
        for flip_x, flip_w in ((False, False), (True, False), (False, True)) if m >= 256 else ((False, False),):
            x, w, out = (numbers(k, m).T if flip_x else numbers(m, k)), numbers(k, n), np.empty((m, n), "f4")
            w = np.ascontiguousarray(w.T).T if flip_w else w
            ours = CPU.alloc((m, n), "f4")
            x_, w_ = CPU.put(x.T if flip_x else x), CPU.put(w.T if flip_w else w)
            attrs = {"transpose_x": True} if flip_x else {"transpose_w": True} if flip_w else {}

            def mine(ours=ours, x_=x_, w_=w_, attrs=attrs):
                launch("matmul", ours, x_, w_, **attrs)

            def theirs(x=x, w=w, out=out):
                np.matmul(x, w, out=out)

            name = f"{'xᵀ' if flip_x else 'x'} · {'wᵀ' if flip_w else 'w'}  {m} x {k} x {n}"
            bar = "0.97" if label else "0.95" if flip_x or flip_w else "1"
            compare(name + label, bar, mine, theirs, lambda ours=ours: ours.data, lambda out=out: out)
            if m >= 256 and not label and not (flip_x or flip_w):
                line("  of the measured peak", 2 * m * k * n / medians(mine)[0] / CPU.peak, "0.9")


def matmul():
    """Against NumPy as installed, and with each of OpenBLAS' sets of kernels, which a process chooses when it starts."""
    products()
    for core in CORES:
        environment = os.environ | {"OPENBLAS_CORETYPE": core}
        program = f"import kernels; kernels.products('  ({core})')"
        subprocess.run([sys.executable, "-c", program], env=environment, cwd=os.path.dirname(__file__), check=True)


def threads():
    """Two threads against one, the same bits."""
    for size in (512, 1024) if numba.config.NUMBA_NUM_THREADS > 1 else ():
        shape = size, size
        x, w, one, two = CPU.put(numbers(*shape)), CPU.put(numbers(*shape)), *(CPU.alloc(shape, "f4") for _ in "12")

        def on(count, out, x=x, w=w):
            numba.set_num_threads(count)
            launch("matmul", out, x, w)
            numba.set_num_threads(1)

        compare(
            f"two threads over one, {size}", "1.7", partial(on, 2, two), partial(on, 1, one), two.numpy, one.numpy, 0
        )


def stream():
    """Bandwidth of large elementwise ops, bytes read and written, over that of np.copyto."""
    count = 30_000_000
    x, y, out, copy = CPU.put(numbers(count)), CPU.put(numbers(count)), CPU.alloc((count,), "f4"), np.empty(count, "f4")
    ops = {"relu": (x,), "exp": (x,), "sigmoid": (x,), "add": (x, y)}
    runs = [lambda op=op, inputs=inputs: launch(op, out, *inputs) for op, inputs in ops.items()]
    base, *times = medians(lambda: np.copyto(copy, x.data), *runs, repeats=9)
    for (op, inputs), own in zip(ops.items(), times, strict=True):
        traffic = 4 * count * (len(inputs) + 1)
        line(
            f"{op}, bandwidth over np.copyto's",
            traffic / own / (8 * count / base),
            "0.95",
            f"{traffic / own / 1e9:.1f} GB/s",
        )


def cache():
    """Elementwise ops, softmax and Adam against NumPy and PyTorch."""
    for count in (8192, 16_384, 65_536):  # arrays of ours for both: how far apart they lie matters, too
        x, out, theirs = CPU.put(numbers(count)), CPU.alloc((count,), "f4"), CPU.alloc((count,), "f4").data
        ours, peer = partial(launch, "exp", out, x), partial(np.exp, x.data, out=theirs)
        compare(f"exp, {count:,} numbers, over NumPy", "2", ours, peer, out.numpy, theirs.copy)
    try:
        import torch
    except ImportError:
        return print("softmax and Adam: skipped, PyTorch is not installed")
    torch.set_num_threads(1)
    for shape in ((100, 10), (256, 1000), (4096, 1000)):
        x, out = CPU.put(numbers(*shape)), CPU.alloc(shape, "f4")
        tensor, result = torch.from_numpy(x.data), torch.empty(shape)
        ours, peer = partial(launch, "softmax", out, x), partial(torch.softmax, tensor, -1, out=result)
        compare(f"softmax {shape}, over PyTorch", "1", ours, peer, out.numpy, result.numpy)
    for count in (1000, 100_000, 10_000_000):
        adam(torch, count)


def adam(torch, count):
    """One step of Adam, both sides in place, at a fixed step number, so that each call does the same work."""
    w, dw = numbers(count), numbers(count)
    parameter = torch.nn.Parameter(torch.from_numpy(w.copy()))
    parameter.grad = torch.from_numpy(dw)
    w, m, v, dw = map(CPU.put, (w, np.zeros_like(w), np.zeros_like(w), dw))
    step, attrs = [0], {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    c1, c2 = CPU.alloc((), "f4"), CPU.alloc((), "f4")
    optimizer = torch.optim.Adam([parameter], lr=1e-3, fused=True)

    def ours():
        step[0] += 1
        c1.data[...], c2.data[...] = 1 - 0.9 ** step[0], 1 - 0.999 ** step[0]
        launch("adam", (w, m, v), dw, c1, c2, **attrs)

    compare(
        f"Adam, {count:,} weights, over PyTorch (fused)", "1", ours, optimizer.step, w.numpy, parameter.detach().numpy
    )


def small():
    """What one small launch costs, in microseconds; the bar is a ceiling, so the ratio is the bar over the time."""
    x, out = CPU.put(numbers(10, 1)), CPU.alloc((10, 1), "f4")
    for op, inputs in (("relu", (x,)), ("add", (x, x))):
        (own,) = medians(lambda op=op, inputs=inputs: launch(op, out, *inputs))
        line(f"1.5 µs over a small launch of {op}", 1.5e-6 / own, "1", f"{own * 1e6:.2f} µs")
    first, program = (
        "import time; start = time.perf_counter(); ",
        "import levels.kernels; print(time.perf_counter() - start)",
    )
    times = [float(subprocess.run([sys.executable, "-c", first + program], capture_output=True, text=True, check=True).stdout) for _ in range(5)]  # fmt: skip
    line("0.6 s over `import levels.kernels`", 0.6 / statistics.median(times), "1", f"{statistics.median(times):.2f} s")


if __name__ == "__main__":
    numba.set_num_threads(1)
    sections = {section.__name__: section for section in (matmul, threads, stream, cache, small)}
    for name in sys.argv[1:] or sections:
        sections[name]()
