"""Runs what numba has compiled without numba: its LLVM text becomes a program, as those of level 1 are.

numba takes a second to import. It is needed to turn Python into LLVM's text, and not to run the result. So the text is
what is kept on disk, and a process that finds it there imports no numba. A function of which this cannot be done, such
as one that calls into numba's own library, is left to numba.
"""

import ctypes
import itertools
import re
import struct
from ctypes import addressof

from llvmlite import binding as llvm

from .cache import cache_get, cache_put
from .machine import machine_code, optimised, target_machine

OFTEN = 10_000  # calls of a program: each takes a microsecond more than one of numba, whose import takes half a second
bytes_of = (ctypes.c_char * 0).from_buffer  # `addressof` of it is where a contiguous array that may be written begins
# what numba calls in its own library, and the function of C's library that does the same
OF_C = {"numba_ldexp": "ldexp", "numba_frexp": "frexp", "numba_ldexpf": "ldexpf", "numba_frexpf": "frexpf"}


def program_text(result, axes, numbers):
    """Return the text of a program that runs what numba compiled for arrays with so many axes, and `numbers` floats.

    `result` is numba's. Its function takes, of each array, two addresses that numba's own memory would have, how many
    numbers there are, the bytes of one, where they lie, the shape and the strides.

    The program's words are the addresses of the arrays, the floats, and the address of all those sizes. It returns 0,
    or another number for an error. The text is "" if the function returns something. (`finished` makes the program.)
    """
    if str(result.signature.return_type) != "none":
        return ""
    lines = []
    given = ["ptr %result", "ptr %error"]

    def load(kind, block, place):
        """Write the load of a word of a block, and pass it to the function."""
        name = f"%{block}{place}"
        lines.append(f"{name}_at = getelementptr i64, ptr %{block}, i64 {place}")
        lines.append(f"{name} = load {kind}, ptr {name}_at")
        given.append(f"{kind} {name}")

    place = 0
    for k, count in enumerate(axes):
        given += ["ptr null", "ptr null"]
        for _ in range(2):
            load("i64", "sizes", place)
            place += 1
        load("ptr", "words", k)
        for _ in range(2 * count):
            load("i64", "sizes", place)
            place += 1
    for k in range(numbers):
        load("double", "words", len(axes) + k)
    start = [
        "define i32 @program(ptr %words) {",
        "%result = alloca ptr",
        "%error = alloca ptr",
        f"%sizes_at = getelementptr i64, ptr %words, i64 {len(axes) + numbers}",
        "%sizes = load ptr, ptr %sizes_at",
    ]
    call = f'%status = call i32 @"{result.fndesc.llvm_func_name}"({", ".join(given)})'
    text = re.sub("^define (linkonce_odr |weak_odr )?", "define internal ", result.library.get_llvm_str(), flags=re.M)
    for numbas, own in OF_C.items():
        text = re.sub(rf"@{numbas}\b", f"@{own}", text)
    return "\n".join([text, *start, *lines, call, "ret i32 %status", "}", ""])


def finished(text):
    """Return an optimised `program_text` without all that is not needed, or "" if it needs numba's own library.

    That takes longer than to write the text, so it waits for a process that runs the program. The result is cached.
    """
    key = f"finished {text}"
    kept = cache_get(key)
    if kept is not None:
        return kept.decode()
    module = optimised(text, target_machine())
    outside = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    outside += [x.name for x in module.global_variables if x.is_declaration]
    ready = str(module) if all(map(llvm.address_of_symbol, outside)) else ""
    cache_put(key, ready.encode())
    return ready


def launcher(text, arrays, numbers, by_numba):
    """Return a function that runs a program on arrays with the shapes, dtypes and strides of these, and floats.

    Where the program reports an error, or an argument is of another kind (read-only, no float), `by_numba(*given)` does
    the same, and raises what there is to raise. It also takes over after OFTEN calls.
    """
    owner, address = machine_code(text)
    program = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)(address)
    sizes = []
    for x in arrays:
        sizes += [x.size, x.itemsize, *x.shape, *x.strides]
    sizes = (ctypes.c_int64 * len(sizes))(*sizes)
    sizes_at = addressof(sizes)
    count = len(arrays)
    pack = struct.Struct(f"{count}q{numbers}dq").pack
    turned = [k for k, x in enumerate(arrays) if not x.flags.c_contiguous]  # their transposes are contiguous

    calls = itertools.repeat(False, OFTEN)

    def run(*given):
        if next(calls, True):
            return by_numba(*given)
        memory = given
        if turned:
            memory = [x.T if k in turned else x for k, x in enumerate(given)]
        try:
            if numbers:
                words = pack(*map(addressof, map(bytes_of, memory[:count])), *given[count:], sizes_at)
            else:
                words = pack(*map(addressof, map(bytes_of, memory)), sizes_at)
        except (TypeError, struct.error):
            return by_numba(*given)
        if program(words):
            by_numba(*given)
            raise RuntimeError("a kernel failed, and did not when it ran again")

    run.keeps = owner, sizes  # as long as it may run
    return run
