"""Passes, lowering rules and back ends that turn graphs into programs. The import adds them to tables of `levels`.

A back end is a class, called as back_end(graph, batch, over). `batch` is the number of rows of the arguments, or None.
It raises NoProgram if it cannot hold the graph, or if another back end is quicker. They are tried in this order:

    QuickRowProgram   a loop over the rows of a batch, then the update: one program
    FusedProgram      a list of programs, one for each loop, product or sum, run by one call
    FusedReplay       kernels one after the other, with elementwise ops that follow one another as one program
    RowProgram        the core's row program
    Replay            the core's: kernels one after the other, if no other back end holds the graph

`levels_more.distributed` puts StagedProgram before them, for graphs with messages to other processes.

What a back end makes has these methods. All threads may call it.

    run(args): one step on these tensors. Returns the results as new tensors; the variables have their new values.
    over(args, batches): a step for each row of `batches`, an int64 array [steps, batch] of row numbers of `args`.
        Returns a tensor for each result, with one number per step.
"""

from levels.low_level import BACK_ENDS
from levels_more.compiler import functions, passes, quick_rows
from levels_more.compiler.eager import backward, small_ops
from levels_more.compiler.fused import backend, replay

__all__ = ["backend", "backward", "functions", "passes", "quick_rows", "replay", "small_ops"]

BACK_ENDS[:0] = [quick_rows.QuickRowProgram, backend.FusedProgram, replay.FusedReplay]
