"""From a program's text to bytes that this very processor runs, kept in a folder for the next time."""

# Built from 01_hardware.ipynb: edit there, then run its last cell.

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path

import llvmlite
from llvmlite import binding as llvm

_CACHE = Path(os.environ.get("LEVELS_CACHE") or os.path.expanduser("~/.cache/levels"))


def target_machine():
    """LLVM's description of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(*cpu, opt=3)


def optimised(text, target):
    """LLVM's own form of a program, optimised for this processor. Raises RuntimeError where LLVM cannot read the text."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_unrolling = False  # loops run as written
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(module, passes)
    return module


def kept(key):
    """The bytes that were kept under this key, a text, if they are there and whole; else None."""
    with suppress(OSError):
        data = (_CACHE / hashlib.sha256(key.encode()).hexdigest()).read_bytes()
        if hashlib.sha256(data[32:]).digest() == data[:32]:
            return data[32:]
    return None


def keep(key, data):
    """Keep these bytes, and their checksum, under a key. A full disk, or a folder that cannot be written, only costs time."""
    with suppress(OSError):
        _CACHE.mkdir(parents=True, exist_ok=True)
        (_CACHE / hashlib.sha256(key.encode()).hexdigest()).write_bytes(hashlib.sha256(data).digest() + data)


@functools.lru_cache(maxsize=256)
def machine_code(text):
    """A program, ready to run: the engine that owns its code, and the address at which it begins."""
    target = target_machine()
    cpu = target.triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    key = "\n".join((text, *cpu, llvmlite.__version__, repr(optimised.__code__.co_code)))
    if (code := kept(key)) is None:
        code = target.emit_object(optimised(text, target))
        keep(key, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, engine.get_function_address("program")


def host_lanes():
    """How many float32 one instruction of this processor works on: 16, 8 or 4."""
    features = llvm.get_host_cpu_features()  # none where LLVM does not know them
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4
