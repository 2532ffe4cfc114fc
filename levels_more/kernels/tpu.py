"""TPU kernels: its array computes matrix products; its vector unit, simulated by the CPU, computes all other ops."""

import dataclasses
import functools

from levels.kernels import BACKENDS, KERNELS, PLANNERS, kernel
from levels.support.shapes import same_dtype
from levels_more.kernels.layout import MOVES
from levels_more.kernels.reductions import LOOPS

# A vector unit works like the lanes of a CPU (Norrie et al., 2021, https://doi.org/10.1109/MM.2021.3058217), so this
# one runs the CPU's programs. Their cycles are not counted.
BACKENDS["tpu"] = dataclasses.replace(BACKENDS["cpu"])
MOVES["tpu"] = MOVES["cpu"]
LOOPS["tpu"] = LOOPS["cpu"]


@kernel("matmul", "tpu")
def matmul_array(tpu, turned_x, turned_w, out, x, w):
    """Compute out = x @ w on the array of this Tpu: the inputs are rounded to bfloat16, the sums are float32."""
    x = x.T if turned_x else x
    w = w.T if turned_w else w
    out[...] = tpu.matmul(x, w) if x.size and w.size else 0.0


def plan_array(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan a product of floats; `matmul_array` runs on the device's array. Raises what `matmul`'s planner raises."""
    same_dtype(op, x, w)  # this device multiplies only floats
    made = PLANNERS["matmul"](op, function, x, w, transpose_x, transpose_w)
    if function is matmul_array:
        made.lower = lambda: functools.partial(matmul_array, x.device, transpose_x, transpose_w)
    return made


PLANNERS["matmul", "tpu"] = plan_array
KERNELS.update(
    {(op, "tpu"): f for (op, kind), f in dict(KERNELS).items() if kind == "cpu" and (op, "tpu") not in KERNELS}
)
