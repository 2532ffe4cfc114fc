"""Which graphs become programs: those of moves, masks and sums too; and what is left to kernels says why."""

import numpy as np
import pytest
from back_ends import choose, kinds
from test_wild import bits

from levels_more import low_level as ll
from levels_more.compiler import typed_assembler
from levels_more.low_level import Variable, function

X = np.random.default_rng(1).standard_normal((3, 20, 5)).astype("f4")
IDS = np.random.default_rng(2).integers(0, 7, (20, 2))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_row_numbers_from_outside(dtype, monkeypatch):
    """An embedding that is trained, and classes: as programs the same bits, and a wrong number changes nothing."""
    ends, batches = [], np.random.default_rng(3).integers(0, 20, (6, 4))
    for name in "Replay", "FusedProgram":
        choose(monkeypatch, name)
        table = Variable(np.random.default_rng(1).standard_normal((7, 5)).astype(dtype))

        def step(ids, table=table):
            with ll.GradientTape() as tape:
                found = ll.gather(table, ids) * ll.reshape(ll.one_hot(ids[:, 0], 5, dtype), (-1, 1, 5))
                loss = ll.reduce_mean((found - 1) * (found - 1))
            table.assign(table - tape.gradient(loss, table))
            return loss

        compiled = function(step)
        losses = [compiled(ll.constant(np.minimum(IDS[:4], 4))), compiled.over(np.minimum(IDS, 4), batches)]
        assert kinds(compiled) == {name}
        before = table.numpy().copy()
        for wrong in (np.where(IDS > 4, 9, 0), np.full_like(IDS, -1)):
            with pytest.raises(IndexError, match="a row number is out of range|a class number is out of range"):
                compiled.over(wrong, np.arange(20).reshape(5, 4))
            with pytest.raises(IndexError, match="a row number is out of range|a class number is out of range"):
                compiled(ll.constant(wrong[np.argsort(-abs(wrong[:, 0]))][:4]))
            assert name == "Replay" or bits(table) == bits(before)
        if name == "Replay":
            table.assign(before)
        unused = np.where(np.arange(20)[:, None] == 19, 9, np.minimum(IDS, 4))  # whose last row is in no batch
        compiled.over(unused, [[0, 1, 2, 3]])
        ends.append([*losses, table])
    same = bits if dtype == "f8" else lambda x: np.round(x.numpy().astype("f8"), 4).tolist()  # float32 may fuse a·b + c
    assert [*map(same, ends[0])] == [*map(same, ends[1])]


def test_only_the_numbers_that_are_used_are_checked(monkeypatch):
    choose(monkeypatch, "FusedProgram")
    look_up = function(lambda ids: ll.reduce_sum(ll.gather(ll.constant(X[0]), ids[:, 1])))
    ids = np.array([[99, 3], [-1, 4], [7, 0]])
    assert look_up(ll.constant(ids)).numpy() == pytest.approx(X[0][[3, 4, 0]].sum(), rel=1e-5)
    assert look_up.over(ids, [[0, 1], [2, 2]]).numpy()[1] == pytest.approx(2 * X[0][0].sum(), rel=1e-5)
    assert kinds(look_up) == {"FusedProgram"}
    with pytest.raises(IndexError, match="a row number is out of range: -1 to 99; there are 20"):
        look_up(ll.constant(ids[:, ::-1].copy()))


def test_a_fraction_is_no_constant_of_whole_numbers():
    """A kernel that computes with 0.5 in between is left as it is: cut off to 0 it would be another one."""
    a = typed_assembler.IntegerAssembler("halves", np.dtype("i8"))
    with pytest.raises(TypeError, match="halves: 0.5 is no constant of a program on whole numbers"):
        a.load(a.array("x", 1), 0) * 0.5


def test_what_is_replayed_says_why():
    """Random numbers, row numbers that are computed, and what is large."""
    state, x = Variable(np.array([7, 0])), ll.constant(X[0])
    noisy = function(lambda x: ll.apply("random_normal", state, shape=(2, 3), dtype=np.dtype("f4")))
    large = function(lambda x: ll.reduce_max(x @ np.ones((5, 20000), "f4")))
    looked_up = function(lambda x: ll.gather(x, ll.argmax(x, 0)))
    for compiled, why in (
        (noisy, "random_normal float32[2, 3] is left to its kernel"),
        (looked_up, "checked by its kernel"),
        (large, "reduce_max float32[] moves 1,600,000 bytes; from 1,048,576 on its kernel is quicker"),
    ):
        compiled(x)
        ((made, _),) = compiled.programs.values()
        assert why in made.why
