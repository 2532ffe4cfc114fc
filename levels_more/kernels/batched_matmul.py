"""Batched matrix products on a CPU: x[…, m, k] @ w[…, k, n].

The op is still `matmul`, with the same vjp. A kernel of the user's own runs once for each matrix. (Only the compiler
imports this file: the core's RowProgram handles two axes only, so more are allowed only with programs that take them.)
"""

import math
from typing import NamedTuple

from levels.kernels import PLANNERS, Plan, lowered, matmul_ikj
from levels.support.checks import check_bool
from levels.support.shapes import same_dtype
from levels_more.kernels.matmul import is_large, matmul_small, plan_tiles, small_program


class Products(NamedTuple):
    """The sizes of `count` products out[m, n] = x[m, k] @ w[k, n], and the `shape` of the array with all results.

    `own_x` and `own_w`: whether each product has its own x and its own w. Otherwise all products share one.
    """

    shape: tuple[int, ...]
    count: int
    m: int
    k: int
    n: int
    own_x: bool
    own_w: bool

    def views(self, transpose_x, transpose_w):
        """Return the shapes of the result, of x and of w as three axes: one for the matrices, two for each matrix."""
        x = (self.m, self.k)[:: -1 if transpose_x else 1]
        w = (self.k, self.n)[:: -1 if transpose_w else 1]
        return [
            (self.count, self.m, self.n),
            *((self.count if own else 1, *a) for own, a in ((self.own_x, x), (self.own_w, w))),
        ]


def products_of(op, x, w, transpose_x=False, transpose_w=False):
    """Return the Products of a launch on arrays of these shapes, with two axes or more.

    With a single w, and an x that is not transposed, they are one product: the rows of x[b, m, k] are those of
    x[b·m, k]. Raises ValueError if the sizes do not match.
    """
    turned_x, turned_w = (check_bool(f"{op}: a transpose", each) for each in (transpose_x, transpose_w))
    m, k = x[-2:][:: -1 if turned_x else 1]
    rows, n = w[-2:][:: -1 if turned_w else 1]
    if k != rows:
        raise ValueError(
            f"{op}: x is {(*x[:-2], m, k)} and w is {(*w[:-2], rows, n)}: inner sizes {k} and {rows} differ"
        )
    if len(x) > 2 and len(w) > 2 and x[:-2] != w[:-2]:
        raise ValueError(f"{op}: x is {x} and w is {w}: the axes {x[:-2]} and {w[:-2]} differ; use broadcast_to")
    front = max(x[:-2], w[:-2], key=len)
    count = math.prod(front)
    shape = (*front, m, n)
    if len(w) == 2 and not turned_x:
        return Products(shape, 1, count * m, k, n, False, False)
    return Products(shape, count, m, k, n, len(x) > 2, len(w) > 2)


def has_batches(graph):
    """Return whether a graph has products of arrays with more than two axes."""
    return any(len(x.spec.shape) > 2 for node in graph.nodes if node.op == "matmul" for x in node.inputs)


def matmul_batch(turned_x, turned_w, out, x, w):
    """Compute out[b] = x[b] @ w[b] for each b. One x or w may serve all b, and each may be given transposed."""
    for b in range(out.shape[0]):
        matmul_small(turned_x, turned_w, out[b], x[b % x.shape[0]], w[b % w.shape[0]])


def plan_products(op, function, x, w, transpose_x=False, transpose_w=False):
    """Plan one product, or one for each matrix: x[…, m, k] @ w[…, k, n]. The leading axes are equal, or one has none.

    A kernel of the user's own runs once for each matrix. Raises what the planner of a single product raises.
    """
    if min(len(x.shape), len(w.shape)) < 2 or len(x.shape) == len(w.shape) == 2:
        return plan_tiles(op, function, x, w, transpose_x, transpose_w)
    dtype = same_dtype(op, x, w, kinds="fi")
    products = products_of(op, x.shape, w.shape, transpose_x, transpose_w)
    views = products.views(transpose_x, transpose_w)
    one_x, one_w = (x.device.spec(view[1:], dtype) for view in views[1:])
    one = plan_tiles(op, function, one_x, one_w, transpose_x, transpose_w)
    compiler = lowered(matmul_batch, x)

    def matrix_by_matrix():
        run = one.lower()

        def run_all(out, x, w):
            for b in range(len(out)):
                run(out[b], x[b % len(x)], w[b % len(w)])

        return run_all

    def in_one_call():
        return small_program(compiler(), dtype, 3, transpose_x, transpose_w)

    small = not is_large(products.m, products.k, products.n)
    ours = function is matmul_ikj and dtype.kind == "f"
    return Plan(op, products.shape, dtype, [x, w], in_one_call if ours and small else matrix_by_matrix, views)


PLANNERS["matmul", "cpu"] = plan_products
