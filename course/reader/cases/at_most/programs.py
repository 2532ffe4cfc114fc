"""Test a program that a reader has written in part: check each load and store before it runs."""

import re
from contextlib import contextmanager
from functools import wraps

from course.reader.cases import Wrong

ACCESS = re.compile(r"(?:%\S+ = load|store) (\w+)(?: [^,]+)?, ptr (%\S+)")  # a load or a store of one number
SLOT = re.compile(r"(%slot\d+) = alloca (\w+)")
COUNTER = re.compile(r"store i64 (?:0|%next\d+), ptr %slot\d+|%i\d+ = load i64, ptr %slot\d+")  # of a loop


@contextmanager
def guarded(mine):
    """Inside this context, a program of the built level that touches other memory raises Wrong when it is assembled.

    It may touch the addresses that `address_of` gave, each as one number of its array, and its sums' slots. The context
    gives `levels.hardware`. Use `mine.placed` inside it, not around it.
    """
    from levels import hardware
    from levels.hardware import assembler

    own = {name: getattr(assembler, name) for name in ("address_of", "Program")}
    places = {}  # for each assembler: {address: array}

    @wraps(own["address_of"])  # so that errors of wrong arguments name the function that the reader sees
    def place_of(a, array, indices):
        address = own["address_of"](a, array, indices)
        places.setdefault(a, {})[address] = array
        return address

    def program(a):
        kinds = {at: array.kind for at, array in places.get(a, {}).items()}
        slots = (SLOT.fullmatch(line) for line in a.entry)
        kinds |= {slot[1]: slot[2] for slot in slots if slot and slot[2] == a.kind}
        for line in "\n".join(map(str, a.lines)).splitlines():
            if re.search(r"\bptr %(?!word)|\bstore\b|\bload\b", line) and not COUNTER.fullmatch(line.strip()):
                check_access(mine.said, line.strip(), kinds)
        return own["Program"](a)

    try:
        vars(assembler).update(address_of=place_of, Program=program)
        yield hardware
    finally:
        vars(assembler).update(own)


def check_access(said, line, kinds):
    """Raise Wrong if a line touches memory that is not in kinds: {address: the type of the number there}."""
    if re.match(r"%\S+ = store", line):
        raise Wrong(f"{said}: `{line}` is written as if a store set a register; `lines.append` appends a line as it is")
    if line.startswith("load "):
        raise Wrong(f"{said}: `{line}` sets no register; `write` puts a name and `=` before it")
    if found := re.search(r"\b(an? (?:number|index)), %", line):
        raise Wrong(f"{said}: `{line}` has the words {found[1]} in it; LLVM wants the register alone")
    found = ACCESS.fullmatch(line)
    if not found:
        such = "%v1 = load double, ptr %v0" if "= load" in line else "store double %v1, ptr %v0"
        raise Wrong(f"{said}: `{line}` is no load and no store of a number, such as `{such}`")
    kind, at = found.groups()
    if at not in kinds:
        raise Wrong(f"{said}: `{line}` touches {at}, which is neither what `address_of` gave nor a sum's slot")
    if kind != kinds[at]:
        raise Wrong(f"{said}: `{line}` touches a {kind}, but {kinds[at]} is the type of what is there")


# The numbers in the programs of the cases: (dtype, in words).
DTYPES = ("f8", ""), ("f4", ", in float32")


def ran(mine, said, a, write, **given):
    """What `y` holds after the program that write(a, x=…, y=…) writes has run. Arrays of ints hold row numbers of x."""
    from levels.hardware import pool

    given = {name: array if array.dtype.kind == "i" else array.astype(a.dtype) for name, array in given.items()}
    rows = {name: len(given["x"]) if array.dtype.kind == "i" else None for name, array in given.items()}
    arrays = {name: a.array(name, *array.shape, rows_of=rows[name]) for name, array in given.items()}
    mine.call(said, write, a, **arrays)
    program = mine.call(said, a.assemble)
    held = {name: pool()["cpu:0"].put(array) for name, array in given.items()}
    mine.call(said, program, **held)
    return held["y"].numpy()


def in_a_loop(body):
    """A function write(a, …) that writes body(a, i, …) in a loop over the rows of y."""

    def write(a, y, **arrays):
        with a.loop(y.shape[0]) as i:
            body(a, i, y=y, **arrays)

    return write
