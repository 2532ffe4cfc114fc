"""What a TPU does for the same ops: its array does products; its vector unit, here the CPU's lanes, does the rest."""

import dataclasses
import functools

from levels.kernels.registry import KERNELS, KINDS, PLANNERS, kernel, same_dtype
from levels_more.kernels import layout  # noqa: F401 (how the CPU moves numbers)

# A vector unit does what the lanes of a CPU do (Norrie et al., 2021, https://doi.org/10.1109/MM.2021.3058217), so this
# one borrows the CPU's programs. Their cycles are not counted.
KINDS["tpu"] = dataclasses.replace(KINDS["cpu"])


@kernel("matmul", "tpu")
def matmul_array(tpu, turned_x, turned_w, out, x, w):
    """out = x @ w through the array of this Tpu: inputs rounded to bfloat16, sums of float32."""
    x, w = x.T if turned_x else x, w.T if turned_w else w
    out[...] = tpu.matmul(x, w) if x.size and w.size else 0.0


def plan_array(op, function, x, w, transpose_x=False, transpose_w=False):
    """As the planner of a product, and raises as it does; by the device's array, where the kernel is `matmul_array`."""
    same_dtype(op, x, w)  # floats: this device multiplies nothing else
    made = PLANNERS["matmul"](op, function, x, w, transpose_x, transpose_w)
    if function is matmul_array:
        made.lower = lambda: functools.partial(matmul_array, x.device, transpose_x, transpose_w)
    return made


PLANNERS["matmul", "tpu"] = plan_array
KERNELS.update(
    {(op, "tpu"): f for (op, kind), f in dict(KERNELS).items() if kind == "cpu" and (op, "tpu") not in KERNELS}
)
