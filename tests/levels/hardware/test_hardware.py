"""Level 1: memory that is accounted, programs that cannot leave their arrays."""

import gc
import itertools
import math
import operator
import re

import numpy as np
import pytest
from llvmlite import binding as llvm

from levels.hardware import Assembler, Buffer, net_row, pool, select, write_steps
from levels.support import cache, machine

CPU = pool()["cpu:0"]
DTYPES = ["f4", "f8"]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt]


@pytest.mark.quick
def test_memory_is_counted_and_refused():
    gc.collect()  # what other tests left behind
    device, used = CPU, CPU.used
    buffer = device.alloc((3, 4), "f8")
    assert device.used == used + 96 and buffer.shape == (3, 4) and buffer.dtype == np.float64
    with pytest.raises(MemoryError, match=f"asked for {2**40:,} bytes, {device.memory - device.used:,} are free"):
        device.alloc((2**40,), "u1")
    device.free(buffer)
    assert device.used == used
    for data in (None, np.zeros(3, "f4")):  # new memory, or some that is given to it
        buffer = Buffer(device.spec((3,), "f4"), data)
        assert data is None or buffer.data is data
        shared = Buffer(buffer.spec, buffer.data, buffer)
        assert device.used == used + 12 and shared.data is buffer.data
        del shared
        assert device.used == used + 12
        del buffer
        assert device.used == used


@pytest.mark.quick
def test_a_freed_buffer_is_refused_everywhere():
    buffer = CPU.put(np.ones(3))
    CPU.free(buffer)
    a = Assembler("p", "f8")
    a.array("x", "n")
    program = a.assemble()
    for use in (lambda: CPU.free(buffer), buffer.numpy, lambda: program(x=buffer)):
        with pytest.raises((ValueError, TypeError), match="freed"):
            use()


@pytest.mark.more("several devices")
def test_a_buffer_belongs_to_one_device_and_copies_are_copies():
    from levels_more.hardware import copy, pool

    array, other = np.arange(6.0).reshape(2, 3), pool(cpus=2)["cpu:1"]
    here = CPU.put(array)
    with pytest.raises(ValueError, match="not a live buffer of this device"):
        other.free(here)
    there = copy(here, other)
    array[:] = 0
    assert here.numpy().tolist() == there.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert there.device.name == "cpu:1" and there.device.simulated
    CPU.free(here)
    with pytest.raises((ValueError, TypeError), match="freed"):
        copy(here, other)
    assert CPU.put(np.arange(6.0).reshape(2, 3).T).data.flags.c_contiguous
    assert CPU.put(np.float32(2)).shape == ()


def test_a_container_may_have_less_memory_than_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "Path", lambda root, name: tmp_path / name)
    whole = machine.host_memory()
    for text, expected in (("max\n", whole), ("1048576\n", 2**20)):
        (tmp_path / "memory.max").write_text(text)
        assert machine.host_memory() == expected
    monkeypatch.delattr(machine.os, "sysconf", raising=False)  # Windows
    assert machine.host_memory() is None


def buffer_on(device, data):
    """A buffer that stands in memory of ours, so that we see what is written beside it."""
    return Buffer(device.spec(data.shape, data.dtype), data)


def call(a, **given):
    """Run a program on copies of NumPy arrays, and return what is then in its array `out`."""
    buffers = {name: CPU.put(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
    a.assemble()(**buffers)
    return buffers["out"].numpy()


def elementwise(dtype):
    """out[i] = (x[i] + 1)·y[i] / 2 - x[i]"""
    a = Assembler("p", dtype)
    x, y, out = (a.array(name, "n") for name in ("x", "y", "out"))
    with a.loop("n") as i:
        v = a.load(x, i)
        a.store((v + 1) * a.load(y, i) / 2 - v, out, i)
    return a.assemble()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 5, 16, 33])
def test_arithmetic_stays_within_its_arrays(dtype, n):
    x, y = np.arange(n, dtype=dtype), np.linspace(1, 2, n).astype(dtype)
    guarded = np.full(n + 32, -7, dtype)  # nothing past the end may be written
    elementwise(dtype)(x=CPU.put(x), y=CPU.put(y), out=buffer_on(CPU, guarded[:n]))
    np.testing.assert_allclose(guarded[:n], (x + 1) * y / 2 - x, rtol=0 if dtype == "f8" else 1e-6)
    assert (guarded[n:] == -7).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 7, 16, 100])
def test_sums_and_gathers(dtype, n):
    a = Assembler("p", dtype)
    x, rows = a.array("x", "rows", 3), a.array("picked", "n", rows_of="rows")
    out, scale = a.array("out", 2), a.number("scale")
    total, count = a.sum(), a.count("n")
    with a.loop("n") as i:
        total += a.load(x, a.load(rows, i), 1) * scale
    a.store(total.total(), out, 0)
    a.store(count, out, 1)
    data, picked = np.arange(30.0).reshape(10, 3).astype(dtype), np.arange(n) * 7 % 10
    found = call(a, x=data, picked=picked, out=np.zeros(2, dtype), scale=0.5)
    assert found.tolist() == [data[picked, 1].sum() * 0.5, n]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 5, 16, 35])
def test_a_number_counts_once_outside_of_a_loop_and_once_a_row_inside(dtype, n):
    a = Assembler("p", dtype)
    x, out, once, rows, both = a.array("x", "n"), a.array("out", 6), a.sum(), a.sum(), a.sum()
    once += 3
    both += 100
    with a.loop("n") as i:
        rows += 3
        both += a.load(x, i)
        inner = a.sum()
        inner += 1
        a.store(inner.total(), out, 5)
    with a.loop("n"):
        once += 1
    both += both.total()
    for k, number in enumerate([once.total(), rows.total(), both.total(), a.count("n"), a.sum().total()]):
        a.store(number, out, k)
    found = call(a, x=np.full(n, 2, dtype), out=np.ones(6, dtype))
    assert found.tolist() == [3 + n, 3 * n, 200 + 4 * n, n, 0, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_and_select_with_nan(dtype):
    """As in NumPy: a comparison with a NaN is false, except for !=, and select hands a NaN on."""
    numbers = [-1.0, -0.0, 0.0, 1.0, math.inf, -math.inf, math.nan]
    x, y = np.array(list(itertools.product(numbers, numbers)), dtype).T
    a = Assembler("p", dtype)
    p, q, out = a.array("p", "n"), a.array("q", "n"), a.array("out", "n", 6)
    with a.loop("n") as i:
        for k, how in enumerate(COMPARISONS):
            a.store(select(how(a.load(p, i), a.load(q, i)), a.load(p, i), 7.0), out, i, k)
    found = call(a, p=x, q=y, out=np.zeros((len(x), 6), dtype))
    expected = np.stack([np.where(how(x, y), x, x.dtype.type(7)) for how in COMPARISONS], 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_starts_at_0_and_not_at_minus_0(dtype):
    """As in the record, 0.0 + -0.0 is 0.0, also if nothing is added."""
    a = Assembler("p", dtype)
    out, some, none = a.array("out", 2), a.sum(), a.sum()
    with a.loop(3):
        some += -0.0
    a.store(some.total(), out, 0)
    a.store(none.total(), out, 1)
    found = call(a, out=np.ones(2, dtype))
    assert found.tolist() == [0.0, 0.0] and not np.signbit(found).any()


def writing(code):
    """Run `code(a, x, rows)` on a fresh assembler with x[n, 3] and row numbers of n."""
    a = Assembler("p", "f8")
    x, rows = a.array("x", "n", 3), a.array("rows", "m", rows_of="n")
    code(a, x, rows)
    return a.assemble()


@pytest.mark.parametrize(
    "code",
    [
        lambda a, x, rows: [a.load(x, i, 3) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i, -1) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i, j) for i in enter(a, "n") for j in enter(a, 4)],
        lambda a, x, rows: [a.load(x, i + 1, 0) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, 1 - i, 0) for i in enter(a, "n")],
        lambda a, x, rows: [a.load(x, i) for i in enter(a, "n")],
        lambda a, x, rows: [a.store(1.0, rows, i) for i in enter(a, "m")],
        lambda a, x, rows: a.number("r") + Assembler("q", "f8").number("r"),
        lambda a, x, rows: a.array("x", "k"),
        lambda a, x, rows: a.array("scalar"),
        lambda a, x, rows: a.load(Assembler("q", "f8").array("x", 1), 0),
        lambda a, x, rows: list(enter(a, "unknown")),
        lambda a, x, rows: a.loop("n").__enter__(),  # and never ended
        lambda a, x, rows: a.load(x, 2**31, 0),
        lambda a, x, rows: a.load(x, 0.0, 0),
        lambda a, x, rows: a.load(None, 0, 0),
        lambda a, x, rows: a.store(x, 1.0, 0, 0),  # the wrong way round
        lambda a, x, rows: select(a.number("r"), 1.0, 2.0),
        lambda a, x, rows: 1.0 if a.number("r") else 2.0,
        lambda a, x, rows: list(zip(enter(a, "n"), enter(a, "n"), strict=True)),  # the outer loop ends first
    ],
)
def test_a_program_that_could_leave_its_arrays_is_not_written(code):
    with pytest.raises((IndexError, TypeError, ValueError), match="^p: "):
        writing(code)


@pytest.mark.parametrize(
    "code, fits, leaves, message",
    [
        (lambda a, x, rows: a.load(x, 0, 0), (1, 0), (0, 0), "axis 0 of x.* up to 0; the size there is 0"),
        (lambda a, x, rows: [a.load(x, i, 0) for i in enter(a, "m")], (4, 4), (3, 4), "up to 3; the size there is 3"),
        (lambda a, x, rows: [a.load(x, 0, j) for j in enter(a, "n")], (3, 0), (4, 0), "axis 1 of x"),
        (lambda a, x, rows: [a.store(1.0, x, i, 0) for i in enter(a, 4)], (4, 0), (3, 0), "up to 3; .* is 3"),
        (lambda a, x, rows: [a.load(rows, a.load(rows, i)) for i in enter(a, "m")], (4, 4), (5, 4), "up to 4; .* is 4"),
    ],
)
def test_an_index_that_does_not_fit_the_sizes_is_refused_at_the_call(code, fits, leaves, message):
    program = writing(code)
    program(**sized(*fits))
    with pytest.raises(IndexError, match=f"^p: .*{message}"):
        program(**sized(*leaves))


def sized(n, m):
    return dict(x=CPU.put(np.zeros((n, 3))), rows=CPU.put(np.zeros(m, np.int64)))


@pytest.mark.parametrize(
    "use",
    [
        lambda a, x, i, v, s: a.load(x, i),
        lambda a, x, i, v, s: a.count(i),
        lambda a, x, i, v, s: v + 1,
        lambda a, x, i, v, s: a.store(v, x, 0),
        lambda a, x, i, v, s: select(v > 0, 1.0, 2.0),
        lambda a, x, i, v, s: s.total(),
        lambda a, x, i, v, s: s.__iadd__(1.0),
    ],
)
@pytest.mark.parametrize("first", [True, False])  # whether the loop opens the program
def test_what_a_loop_made_ends_with_it(use, first):
    a = Assembler("p", "f8")
    x = a.array("x", "n")
    if not first:
        a.store(1.0, x, 0)
    with a.loop("n") as i:
        v, s = a.load(x, i), a.sum()
    with pytest.raises(ValueError, match="^p: "):
        use(a, x, i, v, s)


def test_a_program_is_assembled_once():
    a = Assembler("p", "f8")
    x = a.array("x", 1)
    a.assemble()
    for more in (a.assemble, lambda: a.load(x, 0), lambda: [a.assemble() for _ in enter(a, 1)]):
        with pytest.raises(ValueError, match="assembled"):
            more()


def test_a_bound_call_runs_many_times_and_notices_when_its_memory_is_gone():
    program = elementwise("f8")
    given = {name: CPU.put(np.ones(3)) for name in ("x", "y", "out")}
    run = program.bind(**given)
    given["x"].data[:] = 2.0
    for y in (1.0, 5.0):
        given["y"].data[:] = y
        run()
        assert given["out"].numpy().tolist() == [3 * y / 2 - 2] * 3
    y = given["y"].data
    given["y"].data = y.copy()
    with pytest.raises(ValueError, match="y was freed after it was bound"):
        run()
    given["y"].data = y
    CPU.free(given["x"])
    with pytest.raises(ValueError, match="x was freed after it was bound"):
        run()


def test_row_numbers_cannot_change_after_the_check():
    """Neither through the buffer nor through a view that was taken before: a bound call has a copy, and keeps it."""
    a = Assembler("p", "f8")
    x, rows, out = a.array("x", "n"), a.array("rows", "m", rows_of="n"), a.array("out", "m")
    with a.loop("m") as i:
        a.store(a.load(x, a.load(rows, i)), out, i)
    memory, rows, out = np.array([5.0, 6.0, -7.0]), CPU.put(np.array([1, 0, 1, 0])), CPU.put(np.zeros(4))
    view = rows.data[:]
    run = a.assemble().bind(x=buffer_on(CPU, memory[:2]), rows=rows, out=out)
    rows.data[0] = view[1] = 2
    others = [np.full(4, 2) for _ in range(1000)]  # would be where the copy was, had it been deleted
    run()
    assert out.numpy().tolist() == [6, 5, 6, 5] and len(others) == 1000


def enter(a, extent):
    """A loop as an iterator, so that the programs above fit on a line."""
    with a.loop(extent) as i:
        yield i


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(), "missing or unknown: rows, x"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1, int), y=1), "unknown: y"),
        (dict(x=np.ones((2, 4)), rows=np.zeros(1, int)), r"x is \(2, 4\)"),
        (dict(x=np.ones((2, 3), "f4"), rows=np.zeros(1, int)), "float32"),
        (dict(x=np.ones((2, 3, 1)), rows=np.zeros(1, int)), r"\(2, 3, 1\)"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1)), "rows is"),
        (dict(x=np.ones((2, 3)), rows=np.zeros(1, "i4")), "int32"),
        (dict(x=np.ones((2, 3)), rows=np.array([2])), "row 2; there are 2 rows"),
        (dict(x=np.ones((2, 3)), rows=np.array([0, -1])), "row -1; there are 2 rows"),
    ],
)
def test_a_call_that_could_leave_its_arrays_is_refused(given, message):
    program = writing(lambda a, x, rows: [a.load(x, a.load(rows, i), 0) for i in enter(a, "m")])
    with pytest.raises((IndexError, TypeError, ValueError), match=message):
        program(**{k: CPU.put(v) if isinstance(v, np.ndarray) else v for k, v in given.items()})


def test_what_was_compiled_is_read_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_CACHE", tmp_path)
    for name in ("here", "gone"):  # the compiler is there, then gone
        monkeypatch.setattr(machine, "_ENGINES", {})
        x, out = CPU.put(np.ones(3)), CPU.put(np.zeros(3))
        elementwise("f8")(x=x, y=x, out=out)
        assert out.numpy().tolist() == [0, 0, 0], name
        monkeypatch.delattr(machine.llvm, "create_pass_builder", raising=False)


JUMP = r"\s+(?:j\w+|b|b\.\w+|cbn?z|tbn?z)\s+(?:.*, ?)?([.\w$]+)$"  # of x86 and of ARM; the target stands last


@pytest.mark.more("disassembly")
@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-linux-gnu", "arm64-apple-darwin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_listing_holds_instructions_and_the_labels_they_jump_to(triple, dtype):
    from levels_more.hardware.disassembly import instructions_of

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine(opt=3)
    a = Assembler("net", dtype)
    write_steps(a, net_row, [(2, 4), (1, 4), (4, 8), (1, 8), (8, 1), (1, 1)])  # the shapes of its weights
    assembly = target.emit_assembly(machine.optimised(a.assemble().text, target))
    lines = instructions_of(assembly).splitlines()
    instructions = [line for line in lines if not line.endswith(":")]
    # the same instructions in the same order, none cut short: an ARM number starts with # as an x86 comment does
    expected = [
        re.sub(r"\s*(##|#(?=\s)|//|;).*", "", line) for line in assembly.splitlines() if re.match(r"\s+[a-z]", line)
    ]
    assert [line.split() for line in instructions] == [line.split() for line in expected]
    assert not any("\t" in line for line in lines)
    labels = {line for line in lines if line.endswith(":")}
    assert labels == {f"{jump[1]}:" for line in instructions if (jump := re.match(JUMP, line))}
