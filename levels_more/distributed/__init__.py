"""Training on several processes together."""

from levels_more.missing import on_first_use

# imported on first use, since these need MPI
__getattr__, __dir__, __all__ = on_first_use(
    __name__,
    {
        "collectives": "World all_gather all_reduce broadcast time_limit world",
        "data_parallel": "DistributedDataParallel",
        "launch": "mpiexec run_ranks",
    },
)
