"""One training step, opened: fit, train step, layer, op, launch, device event; how long each took, its bytes, its code.

No level is changed for it. Python calls a function of ours whenever one of its own is called or returns
(`sys.setprofile`), and one of ours stands at the door. What they hear becomes rows within rows.
"""

import html
import json
import sys
from contextlib import contextmanager, nullcontext

from course.figures import HUES, LEVELS
from course.inspection.listener import Listener, metrics_of, watched
from course.inspection.source_index import place_of, places
from course.setup import files

WIDTH = 220  # px, for the whole step


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
    from levels.high_level import batches_of

    rows = x[0] if isinstance(x, (list, tuple)) else x
    if hasattr(model, "test_step"):  # one of levels_more, whose batches lie side by side
        from levels_more.high_level.data_adapter import given_batches

        data = given_batches(model, x, y, None, len(rows), 1)
        x, y, _ = data.layout.unpacked(next(iter(data)))
    else:
        data = batches_of(model, x, y, len(rows))
        x, y = next(iter(data))
    build(model, x, y)
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
    from levels.high_level import models

    before = models.prepared
    models.prepared = lambda model, *rows: rows
    try:
        yield
    finally:
        models.prepared = before


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
    """The rows of a step, from `root` on, and its loss. It prints what is the same everywhere; as HTML it has times."""

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
        note = "The times are from this machine, and the X-ray makes them longer. "
        note += "A bar shows when its row ran, in the colour of its level."
        return f"<div style='font-size:13px'>{unfolded(self.root, self.root)}<p>{note}</p></div>"

    def trace(self):
        """The rows as trace events: complete events ("X"), one process for Python and one for the devices.

        Trace Event Format, Google, 2016:
        https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
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
            yield dict(
                name=f"{row.kind} {row.name}".strip(),
                cat=row.kind,
                ph="X",
                ts=start,
                dur=duration,
                pid=pid,
                tid=tid,
                args=told,
            )

    def save(self, path):
        """Write a file that https://ui.perfetto.dev and Chrome's chrome://tracing open. Times are in microseconds."""
        files.write(path, json.dumps({"traceEvents": [*self.trace()], "displayTimeUnit": "ns"}))


def defined(row):
    """The file and the section of what a row is about."""
    place = row.place
    if not place:
        return "your own code"
    return ", ".join(filter(None, [place.file.removeprefix("levels/"), place.part or place.title]))


def unfolded(row, whole):
    """A row and what is within, as HTML that unfolds; at the right, when it happened. It is open down to the ops."""
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
