"""Programs for other machines: WebAssembly by wasmtime and ARM64 by an emulator end on the same bits as this machine."""

import struct
import sys

import numpy as np
import pytest

from course import tasks
from course.reading import trains
from levels.hardware import Assembler, pool
from levels_more.hardware import targets

LEVELS = [(level, name) for level in trains.LEVELS for name in tasks.FOR]


def given_for(training, steps=None):
    """What a call of its program takes: buffers with these arrays, and numbers."""
    cpu, given = pool()["cpu:0"], {}
    for name, array in training.program.arrays.items():
        content = np.ascontiguousarray(training.arrays[name])
        if steps and "steps" in array.shape:
            content = content[:steps]
        given[name] = cpu.put(content.reshape([*content.shape, *[1] * len(array.shape)][: len(array.shape)]))
    numbers = {name for name, kind in training.program.words.items() if kind not in ("ptr", "i64")}
    return given | {name: training.numbers[name] for name in numbers}


@pytest.mark.parametrize("level, name", LEVELS)
def test_in_wasmtime_every_loss_is_equal(level, name, tell):
    training = trains.LEVELS[level](name)
    given = given_for(training)
    targets.run_on("wasm32", training.program, **given)
    losses = given[training.losses].numpy().ravel()
    assert len(losses) in (8000, 24000) and (losses == training.record).all()
    size = len(targets.compiled_for(training.program, "wasm32"))
    tell("programs as WebAssembly", f"level {level} {name:<18} {size:>5} bytes, last loss {losses[-1].hex()}")


def float32_of(training):
    """Level 1's program of the line in float32, one number at a time, and what a call takes."""
    from levels.hardware.tasks import line_program

    program = line_program(np.dtype("f4"), ((2, 1), (1, 1)), 1)
    given = given_for(training._replace(program=program), 100)
    return program, {n: v if n == "batches" or not hasattr(v, "numpy") else single(v) for n, v in given.items()}


def single(buffer):
    return pool()["cpu:0"].put(buffer.numpy().astype("f4"))


def test_float32_programs_run_too_and_are_near(tell):
    training = trains.LEVELS[1]("linear_regression")
    program, given = float32_of(training)
    targets.run_on("wasm32", program, **given)
    losses = given["losses"].numpy()
    assert np.allclose(losses, training.record[:100], rtol=1e-4) and (losses != training.record[:100]).any()


# ARM64. An emulator runs the object file, whose addresses of constants are filled in here, as a linker does.

BASE, STACK, BACK, DATA = 0x100000, 0x7000000, 0x900000, 0x10000000
PAGE, LOW, MOVES = 275, (277, 278, 284, 285, 286, 299), {264: 0, 266: 16, 268: 32, 269: 48}  # relocations of ELF for ARM64


def linked(code):
    """(the memory of an object file from BASE on, the address of its first instruction)"""
    import io

    from elftools.elf.elffile import ELFFile

    file, memory, places = ELFFile(io.BytesIO(code)), bytearray(), {}
    for k, section in enumerate(file.iter_sections()):
        if section["sh_flags"] & 2 and section["sh_size"]:
            memory += bytes(-len(memory) % 64)
            places[k] = BASE + len(memory)
            memory += section.data()
    symbols, text = file.get_section_by_name(".symtab"), places[file.get_section_index(".text")]
    relocations = file.get_section_by_name(".rela.text")
    for each in relocations.iter_relocations() if relocations else ():
        symbol, kind, at = symbols.get_symbol(each["r_info_sym"]), each["r_info_type"], text + each["r_offset"]
        value = places[symbol["st_shndx"]] + symbol["st_value"] + each["r_addend"]
        (word,) = struct.unpack_from("<I", memory, at - BASE)
        if kind == PAGE:
            pages = (value >> 12) - (at >> 12)
            word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        elif kind in LOW:
            scale = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}[kind]
            word |= (value & 0xFFF) >> scale << 10
        else:
            word |= (value >> MOVES[kind] & 0xFFFF) << 5
        struct.pack_into("<I", memory, at - BASE, word)
    return bytes(memory), text


def run_arm(code, program, memory, words):
    """Run an object file for ARM64 in an emulator, as `targets.run_wasm` runs a module."""
    unicorn = pytest.importorskip("unicorn")
    from unicorn import arm64_const as arm

    image, start = linked(code)
    machine = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
    for address, size in ((BASE, 1 << 20), (STACK, 1 << 20), (BACK, 4096), (DATA, 64 << 20)):
        machine.mem_map(address, size)
    machine.mem_write(BASE, image)
    places, _ = targets.laid_out(memory, DATA + 64 + 8 * len(words))
    for name, array in memory.items():
        machine.mem_write(places[name], array.tobytes())
    block = [places.get(name, words[name]) for name in program.words]
    machine.mem_write(DATA + 64, struct.pack(f"<{len(block)}q", *block))
    for register, value in (
        (arm.UC_ARM64_REG_SP, STACK + (1 << 19)),
        (arm.UC_ARM64_REG_LR, BACK),
        (arm.UC_ARM64_REG_X0, DATA + 64),
    ):
        machine.reg_write(register, value)
    machine.emu_start(start, BACK)
    for name, array in memory.items():
        array[...] = np.frombuffer(machine.mem_read(places[name], array.nbytes), array.dtype).reshape(array.shape)


@pytest.mark.parametrize("level, name", LEVELS)
def test_on_arm_a_hundred_losses_are_equal(level, name, monkeypatch):
    pytest.importorskip("unicorn")
    monkeypatch.setitem(targets.RUNNERS, "aarch64", run_arm)
    training = trains.LEVELS[level](name)
    given = given_for(training, 100)
    targets.run_on("aarch64", training.program, **given)
    losses = given[training.losses].numpy().ravel()
    assert len(losses) == 100 and (losses == training.record[:100]).all()


# What it is made of, and what it refuses.


def doubled(name="doubled", dtype="f8"):
    a = Assembler(name, dtype)
    x = a.array("x", "rows")
    with a.loop("rows") as i:
        a.store(a.load(x, i) + a.load(x, i), x, i)
    return a.assemble()


@pytest.mark.quick
def test_a_list_of_programs_becomes_one_module():
    import wasmtime

    code = targets.compiled_for([doubled(), doubled("again")], "wasm32")
    store = wasmtime.Store()
    memory = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
    module = wasmtime.Instance(store, wasmtime.Module(store.engine, code), [memory])
    memory.write(store, struct.pack("<2q", 3, 256), 64)
    memory.write(store, struct.pack("<3d", 1.0, -0.0, 5e-324), 256)
    for name in ("program0", "program1"):
        module.exports(store)[name](store, 64)
    assert struct.unpack("<3d", bytes(memory.read(store, 256, 280))) == (4.0, -0.0, 2e-323)


@pytest.mark.quick
def test_special_numbers_come_through():
    x = pool()["cpu:0"].put(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1.7e308]))
    here = pool()["cpu:0"].put(x.numpy())
    program = doubled()
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
    with pytest.raises(RuntimeError, match=r"no package runs aarch64 here; copy compiled_for\(program, 'aarch64'\)"):
        targets.run_on("aarch64", program, x=x)
    with pytest.raises(TypeError, match=r"doubled: takes x; missing or unknown: rate"):
        targets.run_on("wasm32", program, x=x, rate=1.0)
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(RuntimeError, match=r"run_on\('wasm32'\) needs wasmtime: `python3 -m course setup` installs it"):
        targets.run_on("wasm32", program, x=x)
    assert x.numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.quick
def test_a_program_that_needs_a_stack_or_a_library_is_refused():
    code = targets.machine_for("wasm32").emit_object(targets.optimised(SINE, targets.machine_for("wasm32")))
    with pytest.raises(ValueError, match="needs more than memory: a stack, constants, or a function of a library"):
        targets.with_exports(code, ["program"])


SINE = """
declare double @llvm.sin.f64(double)
define void @program(ptr %words) {
  %x = load double, ptr %words
  %y = call double @llvm.sin.f64(double %x)
  store double %y, ptr %words
  ret void
}
"""
