"""Record what happens in a step while it runs, as nested rows with names, shapes, bytes and times."""

import inspect
import itertools
import sys
import time

now = time.perf_counter_ns


class Row:
    """One event of a step. `rows` has the events inside it. `begin` and `end` are in nanoseconds."""

    def __init__(self, kind, code):
        self.kind, self.code, self.begin, self.end, self.rows = kind, code, now(), None, []
        self.silence = self.begin, self.begin  # the longest interval without a profile event: there a program runs
        self.name = self.shapes = ""
        # a device is set only for an event on it
        self.device = None
        self.bytes = 0
        self.place = None

    ops = property(lambda self: sum(row.kind == "op" for row in self.walk()))
    launches = property(lambda self: sum(row.kind == "kernel" for row in self.walk()))
    nbytes = property(lambda self: sum(row.bytes for row in self.walk()))
    microseconds = property(lambda self: (self.end - self.begin) / 1000)

    def walk(self):
        """This row and all rows inside it, in the order in which they began."""
        return itertools.chain([self], *(row.walk() for row in self.rows))

    def __repr__(self):
        return " ".join(filter(None, (self.kind, self.name, self.shapes)))


TELL = {  # kind -> a function of the local variables and the result of a call: (name, shapes)
    "fit": lambda f, y: (title(f["self"]), ""),
    "compile": lambda f, y: ("", f"to {len(y[0].graph.ops)}" if y else ""),
    "train step": lambda f, y: (title(f["self"]), shapes_of(f.get("x"), f.get("y"))),
    "layer": lambda f, y: (title(f["self"]), flow(f["x"], y)),
    "loss": lambda f, y: (title(f["self"]) if "self" in f else "", flow(f.get("y_true"), f.get("y_pred"), y)),
    "metric": lambda f, y: (title(f["self"]), shapes_of(f["y_true"], f["y_pred"])),
    "gradient": lambda f, y: (title(f["self"]), shapes_of(y)),
    "update": lambda f, y: (title(f["self"]), ""),
    "op": lambda f, y: (f["op"], flow(f["inputs"], y)),
    "launch": lambda f, y: (f.get("op") or launched(f), ""),
    "replay": lambda f, y: (f"{len(f['self'].plans)} ops" + fewer(f["self"]), ""),
    "copy": lambda f, y: (f"to {title(f['self'])}" if "array" in f else f"from {title(f['self'].device)}", ""),
}


def shapes_of(*values):
    """The shapes of tensors, also of those in lists, as text."""
    tensors = [x for value in values for x in (value if isinstance(value, (list, tuple)) else [value])]
    return ", ".join(str(x.spec.shape) for x in tensors if hasattr(x, "spec"))


def flow(*values):
    """The shapes of the inputs and, behind an arrow, of the output, which is the last value."""
    return " -> ".join(filter(None, (shapes_of(*values[:-1]), shapes_of(values[-1]))))


def title(part):
    return getattr(part, "name", None) or type(part).__name__


def launched(known):
    """The name of a launch that is not an op of level 2: a part of a fused replay, or a program."""
    if "part" in known:
        return repr(known["part"])
    return "row program" if by_rows(known["self"]) else "list of programs"


def fewer(replay):
    """The number of launches of a replay in which ops share launches; "" for other replays."""
    return f" in {len(replay.parts)} launches" if hasattr(replay, "parts") else ""


def watched(model):
    """{code object: kind} of the functions whose calls become rows."""
    from levels import low_level as low
    from levels.hardware import Buffer, pool

    back_ends = [back_end for back_end in low.BACK_ENDS if isinstance(back_end, type)]
    devices = {type(device) for device in pool().values()}
    layers = [base for base in type(model).__mro__ if base.__name__ == "Layer" and "__call__" in vars(base)]
    functions = {
        "fit": [type(model).fit],
        "compile": [low.Function.compile],
        "train step": [type(model).train_step],
        "layer": [base.__call__ for base in layers],
        "loss": [loss if hasattr(loss, "__code__") else type(loss).__call__ for loss in model.training.losses],
        "metric": [type(metric).update_state for metric in model.training.metrics],
        "gradient": [low.GradientTape.gradient],
        "update": [type(model.optimizer).apply_gradients],
        "op": [low.apply],
        "launch": [low.Interpreter.do, *(kind.launch for kind in back_ends if hasattr(kind, "launch"))],
        "replay": [low.Replay.run, *(kind.run for kind in back_ends if issubclass(kind, low.Replay))],
        "copy": [Buffer.numpy, *(kind.put for kind in devices)],
    }
    return {inspect.unwrap(function).__code__: kind for kind, several in functions.items() for function in several}


class Listener:
    """Records rows. `hear` is the profile function, and `timed` wraps plans for a clock at the door (see `xray`)."""

    def __init__(self, kinds):
        # heard: time of the last profile event, in ns
        self.kinds = kinds
        self.rows = []
        self.open = []
        self.heard = 0

    def begin(self, kind, code):
        row = Row(kind, code)
        (self.open[-1].rows if self.open else self.rows).append(row)
        self.open.append(row)
        return row

    def hear(self, frame, event, result):
        """Handle a profile event: a call or a return. Events of C functions only update the time (and the silence)."""
        if self.open and now() - self.heard > self.open[-1].silence[1] - self.open[-1].silence[0]:
            self.open[-1].silence = max(self.heard, self.open[-1].begin), now()
        kind = self.kinds.get(frame.f_code)
        if kind and event == "call":
            self.begin(kind, frame.f_code)
        elif kind and event == "return":
            row = self.open.pop()
            known = frame.f_locals
            row.end = now()
            row.name, row.shapes = TELL[kind](known, result)
            row.code = defining(kind, known, result) or row.code
            if kind == "compile":
                row.name = f"{row.ops} ops"
            if kind == "copy" and result is not None:  # None: an exception passes
                row.device = known["self"] if "array" in known else known["self"].device
                row.bytes = result.spec.nbytes if "array" in known else result.nbytes
            if kind == "launch" and result is not None and not row.launches:  # no clock timed it
                self.event(row, *device_and_bytes(known))
        self.heard = now()

    def event(self, row, device, nbytes):
        """Add a device event to a launch. Its time is the launch's longest interval without profile events."""
        event = Row("kernel", row.code)
        event.name = f"{row.name} on {device.name}"
        event.device = device
        event.bytes = nbytes
        event.begin, event.end = row.silence
        row.rows = sorted([*row.rows, event], key=lambda each: each.begin)

    def timed(self, op, plan):
        """The same plan with a clock around the kernel's program. Profiling is off while the program runs."""
        if not self.open:
            return plan

        from levels.kernels import Plan  # imported here: the levels that this kernel runs
        from levels.support.locks import compiled_once

        program = plan.compiled or compiled_once(plan)  # now: compilation does not belong to the kernel's time

        def by_the_clock(*arrays):
            sys.setprofile(None)
            row = self.begin("kernel", kernel_code(op, plan))
            row.device = plan.spec.device
            row.bytes = plan.nbytes
            row.name = f"{op} on {row.device.name}"
            try:
                program(*arrays)
            finally:
                row.end = now()
                self.open.pop()
                sys.setprofile(self.hear)

        heard = Plan.__new__(Plan)  # not of the plan's own class: a `ProgramPlan` would not call `compiled`
        vars(heard).update(vars(plan) | {"compiled": by_the_clock, "launches": 0})
        return heard


def kernel_code(op, result):
    from levels.kernels import KERNELS

    return getattr(KERNELS[op, result.spec.device.kind], "__code__", None)


def in_core(kind):
    """The core's class that this one extends under the same name (the reader has seen it); else the class itself."""
    same = (base for base in kind.__mro__ if base.__name__ == kind.__name__ and base.__module__.startswith("levels."))
    return next(same, kind)


def defining(kind, known, result):
    """The code that a row shows, if it is not that of the recorded function; None if it is."""
    if kind == "layer":
        kind = type(known["self"])
        return getattr(in_core(kind), "call", kind.call).__code__
    if kind == "op" and result is not None:
        return kernel_code(known["op"], result)
    if "part" in known and not known["part"].unit.loop:
        (node,) = known["part"].unit.nodes
        return kernel_code(node.op, node)
    return None


def by_rows(program):
    """Whether a launched program is a single row program."""
    return hasattr(program, "parts")


def device_and_bytes(known):
    """(device, bytes read and written) of a launch: those of its plan or part; for a program, from `moved`."""
    if "plan" in known:
        return known["plan"].spec.device, known["plan"].nbytes
    if "part" in known:
        return known["part"].unit.nodes[0].spec.device, known["part"].nbytes
    program = known["self"]
    steps, *_ = known["sizes"]
    return program.graph.nodes[0].spec.device, steps * moved(program)


def moved(program):
    """The bytes that a step of a row program reads: the rows of its batch and their row numbers, as in `compare`.

    For a list of programs: the bytes that all of them take.
    """
    if not by_rows(program):
        return sum(x.spec.nbytes for _, taken in program.programs for x in taken if hasattr(x, "op"))
    inputs = [x.spec for x, part in program.parts.items() if part == "row" and x.op == "input"]
    return sum(spec.nbytes for spec in inputs) + 8 * inputs[0].shape[0]
