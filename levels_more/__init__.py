"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {
    "device": {"devices": "all"},
    "levels.hardware": {
        "gpu": "Gpu RealGpu launch_kernel make_gpu real_cuda translated",
        "gpu_memory": "ATOMIC READ SHARED UNUSED WRITE BarrierError Block Cuda Dim3 Endless GpuError OutOfBounds Race Thread "
        "Uninitialised View cuda every_place listed note position race shared_array source_line used uses_of",
        "gpu_threads": "LIMITS SEGMENT WARP Run Traffic as_size count_traffic simulate",
        "listing": "trimmed",
        "measuring": "Pool amount chase_program measure_latency measure_reading read_program",
        "tpu": "SIDE Activate Multiply ReadWeights Tpu Write bfloat16 dense_program run_program systolic",
    },
}


@functools.cache
def _modules(what):
    """{row: the name of the module that enters it}"""
    return {name: module for module, names in CONTENTS.get(what, {}).items() for name in (module, *names.split())}


def enter(what, name):
    """The module that has entered the row `name` in the table `what`, or that adds this name to a front; else None."""
    module = _modules(what).get(name)
    return module and importlib.import_module(f"levels_more.{module}")
