"""Test a program that a reader has written in part: simulate it, or check each load and store before it runs."""

import operator
import re
from contextlib import contextmanager
from functools import wraps

from course.practice.cases import Wrong
from course.practice.cases.plain_data import describe

# a load or a store of one number, or of a slot
ACCESS = re.compile(r"(?:%\S+ = load|store) (<\d+ x \w+>|\w+)(?: [^,]+)?, ptr (%\S+)")


@contextmanager
def guarded(mine):
    """Inside this context, the built level writes its programs anew. One that touches other memory raises Wrong.

    A program may touch the addresses that `_address_of` gave, each as one number of its array, and its sums' slots.
    Lanes are loaded and stored by the assembler's own functions only, which must get what `_address_of` gave. The
    context gives `levels.hardware`. Use `mine.placed` inside it, not around it.
    """
    from levels import hardware
    from levels.hardware import assembler, tasks

    own = {name: getattr(assembler, name) for name in ("_address_of", "_load_lanes", "_store_lanes", "Program")}
    # for each assembler: {address: (array, how)}, and lines by the course's functions
    places = {}
    trusted = {}

    @wraps(own["_address_of"])  # so that errors of wrong arguments name the function that the reader sees
    def place_of(a, array, indices):
        begin = len(a.lines)
        address, how = own["_address_of"](a, array, indices)
        places.setdefault(a, {})[address] = array, how
        trusted.setdefault(a, set()).update(a.lines[begin:])
        return address, how

    @wraps(own["_load_lanes"])
    def load_lanes(a, array, address, how):
        return in_lanes("_load_lanes", a, (array, address, how))

    @wraps(own["_store_lanes"])
    def store_lanes(a, register, array, address, how):
        return in_lanes("_store_lanes", a, (array, address, how), register)

    def in_lanes(name, a, place, *more):
        array, address, how = place
        if places.get(a, {}).get(address) != (array, how):
            raise Wrong(f"{mine.said}: give `{name}` the array, and the two that `_address_of` gave for it")
        begin = len(a.lines)
        value = own[name](a, *more, *place)
        trusted[a].update(a.lines[begin:])
        return value

    def program(a):
        kinds = {at: "" if how == "apart" else array.kind for at, (array, how) in places.get(a, {}).items()}
        kinds |= {f"%slot{k}": a.kind for k in range(len(a.slots))}
        for line in a.lines:
            if "ptr" in line and line not in trusted.get(a, ()):
                check_access(mine.said, line.strip(), kinds)
        return own["Program"](a)

    def write_anew():
        for written in (tasks.line_program, tasks.net_program, tasks._predict_program):
            written.cache_clear()

    try:
        write_anew()
        vars(assembler).update(_address_of=place_of, _load_lanes=load_lanes, _store_lanes=store_lanes, Program=program)
        yield hardware
    finally:
        vars(assembler).update(own)
        write_anew()


def check_access(said, line, kinds):
    """Raise Wrong if a line touches memory not in kinds: {address: the type of the number there, or "" for lanes}."""
    if re.match(r"%\S+ = store", line):
        raise Wrong(f"{said}: `{line}` is written as if a store set a register; `emit` appends a line as it is")
    if line.startswith("load "):
        raise Wrong(f"{said}: `{line}` sets no register; `write` puts a name and `=` before it")
    if found := re.search(r"\b(Value|Index) %", line):
        raise Wrong(f"{said}: `{line}` has the word {found[1]} in it; LLVM wants the register alone")
    found = ACCESS.fullmatch(line)
    if not found:
        such = "%v1 = load double, ptr %v0" if "= load" in line else "store double %v1, ptr %v0"
        raise Wrong(f"{said}: `{line}` is no load and no store of a number, such as `{such}`")
    kind, at = found.groups()
    if not kinds.get(at):
        what = (
            "several places, one for each lane" if at in kinds else "neither what `_address_of` gave nor a sum's slot"
        )
        raise Wrong(f"{said}: `{line}` touches {at}, which is {what}")
    if kind != kinds[at]:
        raise Wrong(f"{said}: `{line}` touches a {kind}, but {kinds[at]} is the type of what is there")


# How numbers lie in the programs of the cases: (dtype, lanes, in words).
LAYOUTS = ("f8", 1, ""), ("f4", 1, ", in float32"), ("f4", 4, ", in 4 lanes")


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
    """A function write(a, …) that writes body(a, i, …) in a loop over the rows of y, `a.lanes` rows at a time."""

    def write(a, y, **arrays):
        with a.loop(y.shape[0], a.lanes) as i:
            body(a, i, y=y, **arrays)

    return write


def refused(mine, said, kind, function, *arguments):
    """Whether a call raises an error of the class `kind`, in words."""

    def tried():
        try:
            function(*arguments)
        except kind:
            return f"raises {kind.__name__}"
        except (TypeError, ValueError) as error:
            return f"raises {type(error).__name__}"
        return "is not refused"

    return mine.call(said, tried)


INSTRUCTIONS = {"add": operator.add, "icmp slt": operator.lt, "icmp ult": operator.lt, "icmp sle": operator.le}
INSTRUCTIONS |= {"icmp sgt": operator.gt, "icmp sge": operator.ge, "icmp ne": operator.ne, "icmp eq": operator.eq}
JUMPS = 200  # at most, that `Paper` follows in a program


class Paper:
    """A simulator of the lines of loops, so that an endless loop blocks nothing. `turn %i0` stands for a body."""

    def __init__(self, said, lines, known):
        self.said, self.known, self.turns = said, dict(known), []
        self.blocks = {}
        names = {}
        for line in ["start:", *lines, "ret void"]:
            if not isinstance(line, str):
                raise Wrong(f"{said}: a line is {describe(line)}; expected text")
            line = line.strip()
            if "{" in line:
                raise Wrong(f"{said}: `{line}` has braces in it; an f before the quotes fills them in")
            name = re.match(r"(%\S+) =|(\S+):$", line)
            if name and name[0] in names:
                first = names[name[0]]
                how = "stands there twice" if line == first else f"sets a name that `{first}` has set"
                raise Wrong(f"{said}: `{line}` {how}; each name is set in one line, and n in it tells the loops apart")
            if name:
                names[name[0]] = line
            if line.endswith(":"):
                here = self.blocks[line[:-1]] = []
            else:
                here.append(line)

    def fail(self, why):
        raise Wrong(f"{self.said}: {why}")

    def run(self):
        """Run the lines, and return the values of the counters for each time that a body was reached."""
        here = "start"
        before = ""
        for _ in range(JUMPS):
            *lines, last = self.blocks[here] or [""]
            for line, following in zip(lines, [*lines, last][1:], strict=True):
                if line.startswith("br "):
                    self.fail(f"`{following}` follows the jump `{line}`; expected a new block, such as `after0:`")
                self.step(line, before)
            if last == "ret void":
                return self.turns
            here, before = self.target(last, here), here
        self.fail(f"the loop does not end; its first turns have the counters {', '.join(self.turns[:3])}")

    def step(self, line, before):
        match line.replace(",", " ").replace("[", " ").replace("]", " ").split():
            case ["turn", *counters]:
                self.turns.append(" ".join(str(self.number(each, "the body")) for each in counters))
            case [name, "=", "phi", "i64", *ways]:
                ways = dict(zip(ways[1::2], ways[::2], strict=False))
                if f"%{before}" not in ways:
                    self.fail(f"`{line}` is reached by a jump from the block `{before}` and does not name %{before}")
                self.known[name] = self.number(ways[f"%{before}"], line)
            case [name, "=", *how, "i64", x, y] if " ".join(how) in INSTRUCTIONS:
                self.known[name] = INSTRUCTIONS[" ".join(how)](self.number(x, line), self.number(y, line))
            case _:
                self.fail(f"`{line}` is not spelled like a phi, icmp, add or br of the section *A loop*")

    def target(self, line, here):
        match line.replace(",", " ").split():
            case ["br", "label", target]:
                pass
            case ["br", "i1", condition, "label", yes, "label", no]:
                target = yes if self.number(condition, line) else no
            case _:
                if line.startswith("br "):
                    self.fail(f"`{line}` is not spelled like a br of the section *A loop*")
                following = [*self.blocks][[*self.blocks].index(here) + 1]
                self.fail(f"the block `{here}` does not end with a jump; write `br …` before `{following}:`")
        if target[1:] not in self.blocks:
            self.fail(f"`{line}` jumps to {target}, but there is no line `{target[1:]}:`")
        return target[1:]

    def number(self, text, where):
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        if text not in self.known:
            self.fail(f"{text} is not set yet in `{where}`")
        return self.known[text]
