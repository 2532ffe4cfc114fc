"""Training on several processes together."""

import importlib

from levels_more.missing import absent

# file -> its names. A file is imported on the first use of one of its names, since these need MPI
_FILES = {
    "collectives": "World all_gather all_reduce broadcast time_limit world",
    "data_parallel": "DistributedDataParallel",
    "launch": "mpiexec run_ranks",
}
_PLACES = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return absent(__name__)(name)


def __dir__():
    return __all__
