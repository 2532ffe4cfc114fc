"""The X-ray of one training step: fit, train step, layer, op, launch and device event, with time, bytes and code.

The levels are not changed for it. A profile function (`sys.setprofile`) records calls and returns, and an interpreter
at the door times the kernels. The records become nested rows (`listener.py`).
"""

import html
import json
import sys
from contextlib import contextmanager, nullcontext

from course.reader import files
from course.reader.figures import HUES, LEVELS
from course.reader.inspection.listener import Listener, watched
from course.reader.inspection.source_index import place_of, places

WIDTH = 220  # px, for the whole step


# The step.


def opened(model, x, y):
    """The X-ray of one step of a model of levels_more on these rows, op by op. All variables keep their values.

    Python code runs slower than without the profile function.
    """
    from levels.low_level import DOOR, Interpreter

    listener = Listener(watched(model))

    class Clock(Interpreter):
        """An interpreter at the door. Because it is not `DOOR.bottom`, decorated functions run op by op."""

        def __enter__(self):
            DOOR.top = self

        def __exit__(self, *_):
            DOOR.top = DOOR.bottom

        def do(self, op, plan, inputs, attrs):
            return super().do(op, listener.timed(op, plan), inputs, attrs)

    return observed(model, x, y, listener, Clock())


def compiled(model, x, y):
    """The X-ray of the same step as `fit` runs it: traced, compiled and run as one program."""
    return observed(model, x, y, Listener(watched(model)), nullcontext())


def observed(model, x, y, listener, guest):
    """Run the step once without recording, to compile kernels, then five times with: return the quickest as an Xray."""
    from levels.low_level import trace
    from levels_more.high_level.rows import batches_to_check

    data = batches_to_check(model, x, y, None, len(x), 1)._replace(fits=True)
    trace(model.train_step, [array.spec for array in data.arrays])  # makes all variables; no op runs
    for hear in (None, *[listener.hear] * 5):
        with unchanged(model), guest:
            before = sys.getprofile()
            sys.setprofile(hear)
            try:
                losses = model.fit(data, verbose=0).losses
            finally:
                sys.setprofile(before)
    return Xray(min(listener.rows, key=lambda row: row.microseconds), float(losses[0]))


@contextmanager
def unchanged(model):
    """Inside this `with` block the model has no compiled programs. Its variables, programs and history are restored."""
    training = model.training
    history = model.history
    before = [(v, v.value) for part in (model, training.optimizer, *training.metrics) for v in part.variables]
    kept = dict(vars(training))
    training.programs = {}
    try:
        yield
    finally:
        vars(training).update(kept)
        model.history = history
        for variable, value in before:
            variable.assign(value)


# How it is shown.


class Xray:
    """The rows of a step, from `root` on, and its loss. Its text is the same on every machine; its HTML has times."""

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
            if row.kind not in ("op", "launch"):  # rows inside those have the same numbers
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
        """Yield the rows as trace events: complete events ("X"), one process for Python and one for the devices.

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
            start = (row.begin - self.root.begin) / 1000
            duration = row.microseconds
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
        """Write a trace file for https://ui.perfetto.dev or Chrome's chrome://tracing. Times are in microseconds."""
        files.write(path, json.dumps({"traceEvents": [*self.trace()], "displayTimeUnit": "ns"}))


def defined(row):
    """The file and the section of a row's code, as text."""
    place = row.place
    if not place:
        return "your own code"
    return ", ".join(filter(None, [place.file.removeprefix("levels/"), place.part or place.title]))


def unfolded(row, whole):
    """A row and the rows inside it as nested `<details>`, open down to the ops. The bar at the right shows its time."""
    counts = f"{row.launches} launches" * (row.launches > 1), f"{row.nbytes:,} bytes" * bool(row.nbytes)
    where = f"<small>{row.place.link(defined(row)) if row.place else defined(row)}</small>"
    told = f"<b>{row.kind}</b> {html.escape(f'{row.name} {row.shapes}')}"
    told = " &middot; ".join(filter(None, (told, *counts, f"{row.microseconds:,.1f} µs")))
    share = WIDTH / (whole.end - whole.begin)
    left = (row.begin - whole.begin) * share
    width = max(1, (row.end - row.begin) * share)
    color = HUES[LEVELS.index(row.place.adds_to or row.place.level)] if row.place else "#888"
    bar = f"margin-left:{left:.1f}px;width:{width:.1f}px;height:0.9em;background:{color}"
    line = f"<span style='float:right;width:{WIDTH}px'><span style='display:block;{bar}'></span></span>{told}"
    if not row.rows:
        return f"<div style='margin-left:2.1em'>{line} &middot; {where}</div>"
    inner = f"<div style='margin-left:2.1em'>{where}</div>"  # a link inside `<summary>` would conflict with unfolding
    inner += "".join(unfolded(each, whole) for each in row.rows)
    state = "" if row.kind in ("op", "compile") else " open"
    return f"<details{state} style='margin-left:1em'><summary>{line}</summary>{inner}</details>"
