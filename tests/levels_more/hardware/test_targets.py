"""Programs for other machines: WebAssembly by wasmtime and ARM64 by an emulator end on the same bits as this machine."""

import sys

import numpy as np
import pytest

from course import tasks
from course.author.site import trains
from levels.hardware import Assembler, pool
from levels_more.hardware import emulated, targets


@pytest.mark.parametrize("target, steps", [("wasm32", None), ("aarch64", 100)])
@pytest.mark.parametrize("level", trains.LEVELS)
@pytest.mark.parametrize("name", tasks.FOR)
def test_every_loss_is_equal(level, name, target, steps, monkeypatch, tell):
    """In wasmtime those of all steps, on ARM a hundred."""
    if target == "aarch64":
        pytest.importorskip("unicorn")
        monkeypatch.setitem(targets.RUNNERS, target, emulated.run_arm)
    training = trains.LEVELS[level](name)
    given = trains.given_for(training, steps)
    targets.run_on(target, training.program, **given)
    losses = given[training.losses].numpy().ravel()
    assert len(losses) in ([steps] if steps else [8000, 24000]) and (losses == training.record[:steps]).all()
    size = len(targets.compiled_for(training.program, target))
    tell(f"programs for {target}", f"level {level} {name:<18} {size:>5} bytes, last loss {losses[-1].hex()}")


# What it is made of, and what it refuses.


def doubled(dtype="f8"):
    a = Assembler("doubled", dtype)
    x = a.array("x", "rows")
    with a.loop("rows") as i:
        a.store(a.load(x, i) + a.load(x, i), x, i)
    return a.assemble()


@pytest.mark.quick
@pytest.mark.parametrize("dtype, ends", [("f8", [5e-324, 1.7e308]), ("f4", [1e-45, 3.4e38])])
def test_special_numbers_come_through(dtype, ends):
    x = pool()["cpu:0"].put(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, *ends], dtype))
    here = pool()["cpu:0"].put(x.numpy())
    program = doubled(dtype)
    targets.run_on("wasm32", program, x=x)
    program(x=here)
    assert x.numpy().tobytes() == here.numpy().tobytes()


@pytest.mark.quick
def test_the_same_instruction_reads_otherwise_on_each_machine():
    program = doubled()
    assert "f64.add" in targets.listing_for(program, "wasm32").split()
    assert "fadd" in targets.listing_for(program, "aarch64").split()


@pytest.mark.quick
def test_what_cannot_be_is_said(monkeypatch):
    program, x = doubled(), pool()["cpu:0"].put(np.ones(3))
    with pytest.raises(LookupError, match=r"there is no target 'z80'; there are wasm32, aarch64"):
        targets.compiled_for(program, "z80")
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(RuntimeError, match=r"run_on\('wasm32'\) needs wasmtime: `python3 -m course setup` installs it"):
        targets.run_on("wasm32", program, x=x)


@pytest.mark.quick
def test_a_program_that_needs_a_stack_or_a_library_is_refused():
    code = targets.machine_for("wasm32").emit_object(targets.optimised(SINE, targets.machine_for("wasm32")))
    with pytest.raises(ValueError, match="needs more than memory: a stack, constants, or a function of a library"):
        targets.with_export(code)


SINE = """
declare double @llvm.sin.f64(double)
define void @program(ptr %words) {
  %x = load double, ptr %words
  %y = call double @llvm.sin.f64(double %x)
  store double %y, ptr %words
  ret void
}
"""
