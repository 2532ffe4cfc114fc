"""One training step, opened: fit, train step, layer, op, launch, device event; how long each took, its bytes, whose code.

No level is changed for it. Python calls a function of ours whenever one of its own is called or returns
(`sys.setprofile`), and one of ours stands at the door. What they hear becomes rows within rows.
"""

import html
import inspect
import itertools
import json
import sys
import time
from contextlib import contextmanager, nullcontext

from course.figures import HUES, LEVELS
from course.inspection.places import place_of, places
from course.setup import files

now = time.perf_counter_ns
WIDTH = 220  # px, for the whole step


class Row:
    """One thing that happened, and in `rows` what happened within it. Times are in nanoseconds."""

    def __init__(self, kind, code):
        self.kind, self.code, self.begin, self.end, self.rows = kind, code, now(), None, []
        self.silence = self.begin, self.begin  # the longest time in which nothing was heard: then a program runs
        self.name = self.shapes = ""
        self.device, self.bytes, self.place = None, 0, None  # a device: then this is an event on it

    ops = property(lambda self: sum(row.kind == "op" for row in self.walk()))
    launches = property(lambda self: sum(row.kind == "kernel" for row in self.walk()))
    nbytes = property(lambda self: sum(row.bytes for row in self.walk()))
    microseconds = property(lambda self: (self.end - self.begin) / 1000)

    def walk(self):
        """This row and all within it, in the order in which they began."""
        return itertools.chain([self], *(row.walk() for row in self.rows))

    def __repr__(self):
        return " ".join(filter(None, (self.kind, self.name, self.shapes)))


# What is heard, and what it says.


def shapes_of(*values):
    """The shapes of tensors, and of those in lists."""
    tensors = [x for value in values for x in (value if isinstance(value, (list, tuple)) else [value])]
    return ", ".join(str(x.spec.shape) for x in tensors if hasattr(x, "spec"))


def flow(*values):
    """The shapes of what goes in, and of the last value, which comes out."""
    return " -> ".join(filter(None, (shapes_of(*values[:-1]), shapes_of(values[-1]))))


def title(part):
    return getattr(part, "name", None) or type(part).__name__


TELL = {  # kind -> what the arguments and the result of its function tell: a name, and shapes
    "fit": lambda f, y: (title(f.get("self", f.get("model"))), ""),  # a method, or the wider function
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


def launched(known):
    """What is launched, where that is no op of level 2: a part of a fused replay, or a program."""
    if "part" in known:
        return repr(known["part"])
    return "program by rows" if by_rows(known["self"]) else "list of programs"


def fewer(replay):
    """How many launches a replay takes, where some of its ops share one."""
    return f" in {len(replay.parts)} launches" if hasattr(replay, "parts") else ""


def watched(model):
    """{code: kind} of the functions that open a row while they run."""
    from levels import low_level as low
    from levels import more
    from levels.hardware import Buffer, pool
    from levels.mid_level import wider

    more("back end", "all")
    back_ends = [back_end for back_end, _ in low.BACK_ENDS]
    training, devices = model.training, {type(device) for device in pool().values()}
    functions = {
        "fit": [wider(inspect.unwrap(type(model).fit))],
        "compile": [low.Function.compile],
        "train step": [type(model).train_step],
        "layer": [type(model).__call__],
        "loss": [loss if hasattr(loss, "__code__") else type(loss).__call__ for loss in training.losses],
        "metric": [type(metric).update_state for metric in metrics_of(training)],
        "gradient": [low.GradientTape.gradient],
        "update": [type(training.optimizer).apply_gradients],
        "op": [low.apply],
        "launch": [low.Run.do, *(kind.launch for kind in back_ends if hasattr(kind, "launch"))],
        "replay": [low.Replay.run, *(kind.run for kind in back_ends if issubclass(kind, low.Replay))],
        "copy": [Buffer.numpy, *(kind.put for kind in devices)],
    }
    return {function.__code__: kind for kind, several in functions.items() for function in several}


def metrics_of(training):
    """The metrics that `compile` was given. (The core knows none.)"""
    return getattr(training, "metrics", [])


class Listener:
    """Makes rows of what it hears: Python calls `hear`; a clock at the door asks for plans that are `timed`."""

    def __init__(self, kinds):
        self.kinds, self.rows, self.open, self.heard = kinds, [], [], 0  # heard: when it heard something last

    def begin(self, kind, code):
        row = Row(kind, code)
        (self.open[-1].rows if self.open else self.rows).append(row)
        self.open.append(row)
        return row

    def hear(self, frame, event, result):
        """Python's word that a function is called, or returns; of functions in C too, which only say what time it is."""
        if self.open and now() - self.heard > self.open[-1].silence[1] - self.open[-1].silence[0]:
            self.open[-1].silence = max(self.heard, self.open[-1].begin), now()
        kind = self.kinds.get(frame.f_code)
        if kind and event == "call":
            self.begin(kind, frame.f_code)
        elif kind and event == "return":
            row, known = self.open.pop(), frame.f_locals
            row.end = now()
            row.name, row.shapes = TELL[kind](known, result)
            row.code = defining(kind, known, result) or row.code
            if kind == "compile":
                row.name = f"{row.ops} ops"
            if kind == "copy" and result is not None:  # None: an exception passes
                row.device = known["self"] if "array" in known else known["self"].device
                row.bytes = result.spec.nbytes if "array" in known else result.nbytes
            if kind == "launch" and result is not None and not row.launches:  # no clock has heard of it
                self.event(row, *device_and_bytes(known))
        self.heard = now()

    def event(self, row, device, nbytes):
        """A device event in a launch: the longest silence."""
        event = Row("kernel", row.code)
        event.name, event.device, event.bytes = f"{row.name} on {device.name}", device, nbytes
        event.begin, event.end = row.silence
        row.rows = sorted([*row.rows, event], key=lambda each: each.begin)

    def timed(self, op, plan):
        """The same plan, with a clock around the kernel's program. Nobody listens while it runs."""
        if not self.open:
            return plan

        from levels.kernels import Plan  # whichever are built: see `kernel_code`

        def by_the_clock(*arrays):
            sys.setprofile(None)
            row = self.begin("kernel", kernel_code(op, plan))
            row.device, row.bytes = plan.spec.device, plan.nbytes
            row.name = f"{op} on {row.device.name}"
            try:
                plan.run(*arrays)
            finally:
                row.end = now()
                self.open.pop()
                sys.setprofile(self.hear)

        plan.made()  # here: to compile is no part of the kernel's time
        heard = Plan(plan.spec, plan.nbytes, plan.lower, plan.numbers)
        heard.op, heard.compiled = op, by_the_clock
        return heard


def kernel_code(op, result):
    from levels.kernels import KERNELS

    return getattr(KERNELS[op, result.spec.device.kind], "__code__", None)


def in_core(kind):
    """The class of the core that this one widens under its own name, or else the class itself: the reader knows that one."""
    same = (base for base in kind.__mro__ if base.__name__ == kind.__name__ and base.__module__.startswith("levels."))
    return next(same, kind)


def defining(kind, known, result):
    """The code that a row is about, where that is not the function that was heard."""
    if kind == "layer":
        return in_core(type(known["self"])).call.__code__
    if kind == "op" and result is not None:
        return kernel_code(known["op"], result)
    if "part" in known and not known["part"].unit.loop:
        (node,) = known["part"].unit.nodes
        return kernel_code(node.op, node)
    return None


def by_rows(program):
    """Whether what is launched is one program by rows."""
    return hasattr(program, "parts")


def device_and_bytes(known):
    """Where a launch runs, and what it reads and writes: what a plan or a part says, or `moved` of a program."""
    if "plan" in known:
        return known["plan"].spec.device, known["plan"].nbytes
    if "part" in known:
        return known["part"].unit.nodes[0].spec.device, known["part"].nbytes
    program, (steps, *_) = known["self"], known["sizes"]
    return program.graph.nodes[0].spec.device, steps * moved(program)


def moved(program):
    """What a step of a program by rows reads: the rows of its batch and their numbers, as in `compare`. The rest stays near.

    A list of programs reads and writes what each of them does.
    """
    if not by_rows(program):
        return sum(x.spec.nbytes for _, taken in program.programs for x in taken if hasattr(x, "op"))
    inputs = [x.spec for x, part in program.parts.items() if part == "row" and x.op == "input"]
    return sum(spec.nbytes for spec in inputs) + 8 * inputs[0].shape[0]


# The step.


def opened(model, x, y=None):
    """The X-ray of one step of `model.fit` on these rows, op by op. Every variable has its old value afterwards.

    With a Dataset for x, the step on its first batch. What Python does takes longer than it would unheard.
    """
    from levels.low_level import DOOR, RUN, Run

    listener = Listener(watched(model))

    class Clock(Run):
        """Stands at the door. Because it is not the level's own RUN, what `function` decorates runs op by op."""

        def __enter__(self):
            DOOR.stands = self

        def __exit__(self, *_):
            DOOR.stands = RUN

        def do(self, op, plan, inputs, attrs):
            return super().do(op, listener.timed(op, plan), inputs, attrs)

    return observed(model, x, y, listener, Clock())


def compiled(model, x, y=None):
    """The X-ray of the same step as `fit` takes it: traced, compiled, and run as one program."""
    return observed(model, x, y, Listener(watched(model)), nullcontext())


def observed(model, x, y, listener, guest):
    """Take the step once unheard, so that kernels are compiled, then five times heard: the quickest is shown."""
    from levels import more
    from levels.high_level import batches_of

    rows = x[0] if isinstance(x, (list, tuple)) else x
    data = batches_of(model, x, y, len(rows)).take(1)
    build(model, *next(iter(data)))
    inputs = more("levels.high_level", "data_adapter")
    data = inputs.batches_for(model, data) if inputs else data  # checked before anything is heard
    for hear in (None, *[listener.hear] * 5):
        with unchanged(model), as_prepared(), guest:
            before = sys.getprofile()
            sys.setprofile(hear)
            try:
                losses = model.fit(data, verbose=0).losses
            finally:
                sys.setprofile(before)
    return Xray(min(listener.rows, key=lambda row: row.microseconds), float(losses[0]))


def build(model, x, y):
    """Make all variables, those of the optimizer and the metrics too: a step is traced, and nothing runs."""
    from levels.low_level import trace

    inputs, targets = ([*values] if isinstance(values, (list, tuple)) else [values] for values in (x, y))

    def step(*rows):
        parts = rows[: len(inputs)], rows[len(inputs) :]
        model.train_step(*(part if len(part) > 1 else part[0] for part in parts))

    trace(step, [row.spec for row in (*inputs, *targets)])


@contextmanager
def as_prepared():
    """Inside this `with` block `fit` takes its rows as they are: they are prepared, and what is heard is the step."""
    from levels.high_level import prepared
    from levels.mid_level import WIDER, wider

    before = wider(prepared.__wrapped__)
    WIDER[prepared.__wrapped__] = lambda model, *rows: rows
    try:
        yield
    finally:
        WIDER[prepared.__wrapped__] = before


@contextmanager
def unchanged(model):
    """A model that has compiled nothing yet; afterwards all its variables, programs and its history are as before."""
    training, history = model.training, model.history
    parts = [model, training.optimizer, *metrics_of(training)]
    before, kept = [(v, v.value) for part in parts for v in part.variables], dict(vars(training))
    vars(training).update({"programs": {}} if "programs" in kept else {})
    try:
        yield
    finally:
        vars(training).update(kept)
        model.history = history
        for variable, value in before:
            variable.assign(value)


# How it is shown.


class Xray:
    """The rows of a step, from `root` on, and its loss. It prints what is the same on every machine; as HTML it has times."""

    def __init__(self, root, loss):
        self.root, self.loss, index, known = root, loss, places(), {}
        for row in root.walk():
            if row.code not in known:
                known[row.code] = row.code and place_of(row.code, index)
            row.place = known[row.code]

    def lines(self):
        yield "", "launches", "bytes", "defined in"
        waiting = [(0, self.root)]
        while waiting:
            depth, row = waiting.pop()
            counts = (f"{number:,}" * bool(number) for number in (row.launches, row.nbytes))
            yield "  " * depth + repr(row), *counts, defined(row).split(", ")[0]  # (a page has no room for the section)
            if row.kind not in ("op", "launch"):  # what is within those has the same numbers
                shown = [inner for inner in row.rows if inner.kind != "op" or inner.launches]
                waiting += [(depth + 1, inner) for inner in reversed(shown)]

    def __repr__(self):
        rows = [*self.lines()]
        tree, launches, nbytes, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
        return "\n".join(f"{a:{tree}}  {b:>{launches}}  {c:>{nbytes}}  {d}" for a, b, c, d in rows)

    def _repr_html_(self):
        note = "Times are this machine's, with the X-ray listening; bars say when, in the colour of their level."
        return f"<div style='font-size:13px'>{unfolded(self.root, self.root)}<p>{note}</p></div>"

    def trace(self):
        """The rows as trace events: complete events ("X"), one process for Python and one for the devices.

        Trace Event Format, Google, 2016: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
        """
        devices = [*dict.fromkeys(row.device.name for row in self.root.walk() if row.device)]
        threads = [("Python", 1, "this notebook", 0), *(("devices", 2, name, k) for k, name in enumerate(devices))]
        for process, pid, thread, tid in threads:
            for what, name in (("process_name", process), ("thread_name", thread)):
                yield {"name": what, "ph": "M", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
        for row in self.root.walk():
            pid, tid = (2, devices.index(row.device.name)) if row.device else (1, 0)
            start, duration = (row.begin - self.root.begin) / 1000, row.microseconds
            told = {"shapes": row.shapes, "bytes": row.nbytes, "defined in": defined(row)}
            yield {"name": f"{row.kind} {row.name}".strip(), "cat": row.kind, "ph": "X", "ts": start, "dur": duration,
                   "pid": pid, "tid": tid, "args": told}  # fmt: skip

    def save(self, path):
        """Write a file that https://ui.perfetto.dev and Chrome's chrome://tracing open. Times are in microseconds."""
        files.write(path, json.dumps({"traceEvents": [*self.trace()], "displayTimeUnit": "ns"}))


def defined(row):
    """The file and the section of what a row is about."""
    place = row.place
    return f"{place.file.removeprefix('levels/')}, {place.part or place.title}" if place else "your own code"


def unfolded(row, whole):
    """A row and what is within, as HTML that unfolds; at the right, when it happened. Down to the ops it stands open."""
    counts = f"{row.launches} launches" * (row.launches > 1), f"{row.nbytes:,} bytes" * bool(row.nbytes)
    where = f"<small>{row.place.link(defined(row)) if row.place else defined(row)}</small>"
    told = f"<b>{row.kind}</b> {html.escape(f'{row.name} {row.shapes}')}"
    told = " &middot; ".join(filter(None, (told, *counts, f"{row.microseconds:,.1f} µs")))
    share = WIDTH / (whole.end - whole.begin)
    left, width = (row.begin - whole.begin) * share, max(1, (row.end - row.begin) * share)
    color = HUES[LEVELS.index(row.place.adds_to or row.place.level)] if row.place else "#888"
    bar = f"margin-left:{left:.1f}px;width:{width:.1f}px;height:0.9em;background:{color}"
    line = f"<span style='float:right;width:{WIDTH}px'><span style='display:block;{bar}'></span></span>{told}"
    if not row.rows:
        return f"<div style='margin-left:2.1em'>{line} &middot; {where}</div>"
    inner = f"<div style='margin-left:2.1em'>{where}</div>"  # a link cannot stand in what a press unfolds
    inner += "".join(unfolded(each, whole) for each in row.rows)
    state = "" if row.kind in ("op", "compile") else " open"
    return f"<details{state} style='margin-left:1em'><summary>{line}</summary>{inner}</details>"
