"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {
    "device": {"devices": "all"},
    "kind": {"gpu_kernels": "gpu", "tpu_kernels": "tpu"},
    "op": {
        "ops": "copy equal less less_equal maximum minimum not_equal power tanh where",
        "reductions": "arg_max log_softmax log_softmax_grad reduce_max reduce_min softmax softmax_grad",
        "moves": "cast concat one_hot reshape scatter_add slice slice_grad transpose",
        "random_numbers": "random_normal random_uniform",
    },
    "guard": {"stale": "kernel", "trials": "use"},
    "faster": {"products": "matmul", "intrinsics": "exp sigmoid", "reductions": "reduce_mean reduce_sum"},
    "levels.hardware": {
        "gpu": "Gpu RealGpu launch_kernel make_gpu real_cuda translated",
        "gpu_memory": "ATOMIC READ SHARED UNUSED WRITE BarrierError Block Cuda Dim3 Endless GpuError OutOfBounds Race Thread "
        "Uninitialised View cuda every_place listed note position race shared_array source_line used uses_of",
        "gpu_threads": "LIMITS SEGMENT WARP Run Traffic as_size count_traffic simulate",
        "extremes": "maximum minimum",
        "listing": "trimmed",
        "measuring": "Pool amount chase_program measure_latency measure_reading read_program",
        "tpu": "SIDE Activate Multiply ReadWeights Tpu Write bfloat16 dense_program run_program systolic",
    },
    "levels.kernels": {
        "gpu_kernels": "LAYOUTS NUMBER ON_GPU WIDTH by_numbers compile_gpu each_row gather_threads kernel_for matmul_threads mover "
        "normal_threads plan_blocks reduce_block reduce_thread rows_checked scatter_threads thread threads_for tiled "
        "uniform_threads",
        "tpu_kernels": "matmul_array plan_array",
        "intrinsics": "intrinsic larger ldexp llvm_function smaller",
        "ops": "tanh",
        "stale": "rebound staleness watched",
        "trials": "SPECIAL TRIALS counter_example drawn outcome trials_of try_kernel",
        "reductions": "arg_max log_softmax log_softmax_grad on_rows plan_arg_max plan_rows plan_extreme reduce_by_fours reduction softmax softmax_grad",
        "moves": "MOVES as_slices by_views enter_move one_hot plan_cast plan_concat plan_moves plan_one_hot plan_reshape "
        "plan_scatter_add plan_slice plan_slice_grad plan_transpose scatter_add sliced",
        "random_numbers": "ELEVEN HIGH LOW MIX STEP cos_sin normal philox plan_random random_normal random_uniform two_uniform "
        "uniform",
        "products": "BLOCK BYTES DEPTH ROWS VECTORS WIDE WORKERS WORTH fill_columns matmul_rows matmul_small matmul_tiles pack "
        "pack_square pieces plan_tiles tile_shape vectors write_tile",
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
