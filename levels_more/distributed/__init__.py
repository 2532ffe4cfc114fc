"""One training on several processes."""

import importlib

# name -> its file: they need MPI, and so are imported when the name is asked for
_PLACES = {
    "Alone": "backend",
    "BY_ROWS": "partition",
    "Bucket": "backend",
    "COLLECTIVES": "collectives",
    "Cut": "partition",
    "DistributedDataParallel": "data_parallel",
    "First": "data_parallel",
    "LARGE": "backend",
    "Rows": "backend",
    "Staged": "backend",
    "World": "collectives",
    "all_gather": "collectives",
    "all_reduce": "collectives",
    "all_reduce_kernel": "collectives",
    "broadcast": "collectives",
    "launched": "launch",
    "meet": "collectives",
    "mpiexec": "launch",
    "rows_back": "collectives",
    "shares": "partition",
    "spread": "partition",
    "time_limit": "collectives",
    "world": "collectives",
}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__():
    return __all__
