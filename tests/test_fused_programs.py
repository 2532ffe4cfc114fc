"""Which graphs become programs: those of moves, masks and sums too; and what is left to kernels says why."""

import collections

import numpy as np
import pytest
from back_ends import choose, kinds
from test_wild import Wild, bits

from levels import low_level as ll
from levels.hardware import program
from levels.low_level import Function, Replay, Variable, function

X = np.random.default_rng(1).standard_normal((3, 20, 5)).astype("f4")
MOVES = {
    "transpose": lambda x: ll.transpose(x),
    "axes": lambda x: ll.transpose(x, (1, 2, 0)),
    "rows": lambda x: x[1:],
    "backwards": lambda x: x[::-1, ::-3, 1:4],
    "one of an axis": lambda x: x[:, 2],
    "beside": lambda x: ll.concat([x, x * 2, x[:, :1]], 1),
    "at the end": lambda x: ll.concat([x, x[:, :, :2]], 2),
    "largest": lambda x: ll.reduce_max(x, 1),
    "largest of all": lambda x: ll.reduce_max(x),
    "smallest in a row": lambda x: ll.reduce_min(x, -1, True),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", MOVES)
def test_moves_and_extremes_are_programs(name, dtype, monkeypatch):
    """And their gradients, with slices in them that write into zeros."""
    choose(monkeypatch, "FusedProgram")
    x = X.astype(dtype)
    x[0, 3], x[1, :, 2] = np.nan, -0.0

    def slope(x):
        with ll.GradientTape() as tape:
            y = ll.reduce_sum(MOVES[name](x) * 3)
        return tape.gradient(y, x)

    for each in (MOVES[name], slope) if "est" not in name else (MOVES[name],):
        compiled = function(each)
        assert bits(compiled(x)) == bits(each(ll.constant(x)))
        assert kinds(compiled) == {"FusedProgram"}


def test_variables_that_take_each_others_old_values(monkeypatch):
    choose(monkeypatch, "FusedProgram")
    a, b, c = (Variable(np.full((2, 3), n)) for n in (1.0, 2.0, 3.0))

    def turn():
        old = a.value
        a.assign(b.value)
        b.assign(c.value)
        c.assign(old)

    compiled = function(turn)
    compiled(), compiled()
    assert [v.numpy()[0, 0] for v in (a, b, c)] == [3.0, 1.0, 2.0] and kinds(compiled) == {"FusedProgram"}


def graphs(seed):
    """The functions of a random program, as (function, arguments, whether it goes over batches)."""
    wild = Wild(seed)
    variables = [*map(Variable, wild.start)]
    args = wild.arguments(wild.batches[0])
    yield Function(wild.step(variables)), args, False
    yield Function(wild.step(variables, single=True)), args, True
    if sources := wild.sources():
        yield Function(wild.slopes(variables, sources)), args, False


def test_few_graphs_are_left_to_kernels(monkeypatch, tell):
    """Programs are written, and not compiled. Of graphs with ops, empty arrays apart, few are replayed."""
    monkeypatch.setattr(program, "machine_code", lambda text: (None, 1))
    found, why = collections.Counter(), collections.Counter()
    with np.errstate(all="ignore"):
        for seed in range(150):
            for compiled, args, over in graphs(seed):
                made, _ = compiled.compile(args, over)
                if made.graph.ops and all(0 not in x.spec.shape for x in made.graph.nodes):
                    found[type(made).__name__] += 1
                    if type(made) is Replay:
                        why[made.why.split("FusedProgram: NoProgram: ")[-1].split(";")[0]] += 1
    tell("random graphs", f"{dict(found)}; left to kernels: {why.most_common(8)}")
    replayed = found["Replay"] + found["FusedReplay"]
    assert replayed <= 0.4 * found.total(), (found, why)
    assert "" not in why and why.total(), why
