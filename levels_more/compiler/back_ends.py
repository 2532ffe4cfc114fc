"""What every back end offers. (The core's `RowProgram` and `Replay` have the same `graph`, `run` and `over`.)

A back end is a class, called as back_end(graph, batch, over). `batch` is the number of rows of the arguments, or None.
It raises NoProgram if it cannot hold the graph, or if another back end is quicker. `levels_more.compiler` lists them:

    QuickRowProgram   a loop over the rows of a batch, then the update: one program
    FusedProgram      a list of programs, one for each loop, product or sum, run by one call
    FusedReplay       kernels one after the other, with elementwise ops that follow one another as one program
    RowProgram        the core's row program
    Replay            the core's: kernels one after the other, if no other back end holds the graph

`levels_more.distributed` puts StagedProgram before them, for graphs with messages to other processes.
"""


class Program:
    """What a back end makes of `graph`, a Graph. All threads may call it.

    run(args): one step on these tensors. Returns the results as new tensors; the variables have their new values.

    over(args, batches): a step for each row of `batches`, an int64 array [steps, batch] of row numbers of `args`.
    Returns a tensor for each result, with one number per step.
    """

    @property
    def reads(self):
        """The variables that a run reads or assigns, as a list."""
        return [*self.graph.leaves("variable") | self.graph.updates]
