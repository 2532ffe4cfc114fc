"""Compilation of programs, as LLVM IR in text form, to machine code for this processor. LLVM does the work."""

import os
import weakref
from pathlib import Path

import llvmlite
from llvmlite import binding as llvm

from .cache import keep, kept


def target_machine():
    """Return LLVM's target machine for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_default_triple().create_target_machine(*cpu, opt=3)


def host_lanes():
    """Return how many float32 one vector instruction of this processor handles: 16, 8 or 4."""
    features = llvm.get_host_cpu_features()  # empty if LLVM does not know them
    return 16 if features.get("avx512f") else 8 if features.get("avx2") else 4


def host_memory():
    """Return the bytes of memory that this process may use, or None if the system does not report it (Windows)."""
    if not hasattr(os, "sysconf"):
        return None
    paths = [Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory/memory.limit_in_bytes")]
    # a container may have less than the machine
    texts = [path.read_text().strip() for path in paths if path.exists()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *map(int, filter(str.isdigit, texts))])


def optimised(text, target):
    """Return a program as an LLVM module, optimised for this processor. Raises RuntimeError if LLVM cannot parse it."""
    module = llvm.parse_assembly(text)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.loop_unrolling = False  # loops run as written
    passes = llvm.create_pass_builder(target, options)
    manager = passes.getModulePassManager()
    manager.run(module, passes)
    # the manager's `close` does nothing in llvmlite 0.50: without this line all passes would stay in memory
    llvm.newpassmanagers.NewPassManager._dispose(manager)
    manager.detach()
    return module


_ENGINES = weakref.WeakValueDictionary()  # the text of a program -> its engine, while something refers to it


def machine_code(text):
    """Return (owner, address) of the machine code of a program. Keep the owner as long as the code may run."""
    held = _ENGINES.get(text) or _ENGINES.setdefault(text, _Engine(text))
    return held, held.engine.get_function_address("program")


class _Engine:
    """Owns the machine code of a program. (It has no `__del__`: during that, a weak reference would still work.)"""

    def __init__(self, text):
        target = target_machine()
        cpu = target.triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        key = "\n".join((text, *cpu, llvmlite.__version__, repr(optimised.__code__.co_code)))
        if (code := kept(key)) is None:
            code = target.emit_object(optimised(text, target))
            keep(key, code)
        # a new target, because the first one keeps what it allocated while it emitted the code
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
