"""Compile programs for other machines: LLVM, whose language the assembler writes, has back ends for many processors.

`compiled_for(program, "wasm32")` is WebAssembly, which browsers run; `"aarch64"` is what phones and many servers run.
A target is a row of `TARGETS`. Programs of float64 round as on this machine, so their results are equal bit for bit.
"""

import functools
import struct
import time

import numpy as np
from llvmlite import binding as llvm

from levels.hardware import Buffer
from levels.support.calls import checked
from levels.support.machine import optimised
from levels_more.hardware.disassembly import instructions_of

# a target -> LLVM's name of it; only what every machine of its kind has is used
TARGETS = {"wasm32": "wasm32-unknown-unknown", "aarch64": "aarch64-unknown-linux-gnu"}


def compiled_for(program, target):
    """Compile a program. Returns the bytes of a module (wasm32), or of an object file in ELF.

    Its function, `program`, takes the address of a block of words of 64 bits, one for each of `program.words`, in this
    order. Raises LookupError for an unknown target, and ValueError for wasm32 if a program needs more than memory, such
    as constants or a library function.
    """
    machine = machine_for(target)
    code = machine.emit_object(optimised(program.text, machine))
    return with_export(code) if target == "wasm32" else code


def listing_for(program, target):
    """The machine instructions of a Program for a target, as assembly text."""
    machine = machine_for(target)
    return instructions_of(machine.emit_assembly(optimised(program.text, machine)))


@functools.cache
def machine_for(target):
    """LLVM's description of a target. Raises LookupError for an unknown one."""
    if target not in TARGETS:
        raise LookupError(f"there is no target {target!r}; there are {', '.join(TARGETS)}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TARGETS[target]).create_target_machine(opt=3)


# WebAssembly. LLVM's object file is already a module, but it has no exports, so nothing in it can be called.

# section ids, see https://webassembly.github.io/spec/core/binary/modules.html
TYPES = 1
IMPORTS = 2
FUNCTIONS = 3
EXPORTS = 7
CODE = 10
DATA = 11
START = 65536  # where the words and arrays of a call begin, in the memory of another machine
MEMORY = b"\x03env\x0f__linear_memory\x02"  # the only import of a program


def read_leb(code, at):
    """(the LEB128 number that begins at `at`, the position after it)"""
    number = shift = 0
    while True:
        byte = code[at]
        at = at + 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def sections(code):
    """The sections of a module: {kind: (its kind and size as they are written, its content)}."""
    found = {}
    at = 8  # after the magic number and the version
    while at < len(code):
        begin = at
        size, at = read_leb(code, begin + 1)
        found[code[begin]] = code[begin:at], code[at : at + size]
        at += size
    return found


def with_export(code):
    """The module with its first function exported as `program`, and with only the sections that it needs.

    Raises ValueError if it imports more than memory, or contains constants.
    """
    found = sections(code)
    _, imports = found[IMPORTS]
    if not imports.startswith(b"\x01" + MEMORY) or DATA in found:
        raise ValueError("this program needs more than memory: a stack, constants, or a function of a library")
    name = b"\x07program"
    export = b"\x01" + name + b"\x00\x00"  # one export: function 0
    found[EXPORTS] = bytes([EXPORTS, len(export)]), export
    kept = (found[kind] for kind in (TYPES, IMPORTS, FUNCTIONS, EXPORTS, CODE))
    return code[:8] + b"".join(header + content for header, content in kept)


def run_on(target, program, **given):
    """Run a program on another machine, with the arguments of its own call. The results are written to the buffers.

    Returns the seconds that the program ran, without the time to compile and copy. Raises what the program's own call
    raises, LookupError for an unknown target, and RuntimeError if this machine cannot run it.
    """
    machine_for(target)
    if target not in RUNNERS:
        cure = f"copy compiled_for(program, {target!r}) to such a machine, or see levels_more.hardware.emulated"
        raise RuntimeError(f"RUNNERS has no row for {target}: {cure}")
    memory, words = checked(program, given, Buffer)
    places = {}
    end = START + 8 * len(words)
    for name, array in memory.items():
        places[name] = end = -(-end // 64) * 64
        end += array.nbytes
    image = bytearray(end - START)
    struct.pack_into(f"<{len(words)}q", image, 0, *(places.get(name, words[name]) for name in program.words))
    for name, array in memory.items():
        begin = places[name] - START
        image[begin : begin + array.nbytes] = array.tobytes()
    seconds, image = RUNNERS[target](compiled_for(program, target), image)
    for name, array in memory.items():
        if not program.arrays[name].rows_of:
            numbers = np.frombuffer(image, array.dtype, array.size, places[name] - START)
            array[...] = numbers.reshape(array.shape)
    return seconds


def run_wasm(code, image):
    """Run a module in wasmtime, with `image` at START of its memory: the words of a call, then its arrays.

    Returns the seconds, and what stands there then. Raises RuntimeError without wasmtime.
    """
    try:
        import wasmtime
    except ModuleNotFoundError:
        raise RuntimeError("run_on('wasm32') needs wasmtime: `python3 -m course setup` installs it") from None
    store = wasmtime.Store()
    end = START + len(image)
    linear = wasmtime.Memory(store, wasmtime.MemoryType(wasmtime.Limits(end // 65536 + 1, None)))
    module = wasmtime.Instance(store, wasmtime.Module(store.engine, code), [linear])
    linear.write(store, image, START)
    function = module.exports(store)["program"]
    began = time.perf_counter()
    function(store, START)
    return time.perf_counter() - began, linear.read(store, START, end)


RUNNERS = {"wasm32": run_wasm}
