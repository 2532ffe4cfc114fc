"""The report: a Markdown page with tables of the results."""

import hashlib
import json
import math
import os
import platform
import statistics
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SCRIPTS = "formulas.py", "peers/*.py", "work.py", "worker.py"  # the scripts that measure
APIS = "by hand", "eager", "step", "epoch", "fit", "again", "kernel"


def table(head, rows):
    """Return a Markdown table, also aligned in plain text. All columns except the first are right-aligned."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [False] + [True] * (len(head) - 1)
    looks = [*zip(widths, right, strict=True)]
    lines = []
    for row in cells:
        aligned = (c.rjust(width) if r else c.ljust(width) for c, (width, r) in zip(row, looks, strict=True))
        lines.append(f"| {' | '.join(aligned)} |")
    rule = "|" + "|".join("-" * (width + 1) + (":" if r else "-") for width, r in looks) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def number(value):
    """Return a number with three digits and without an exponent; "–" if it is not finite."""
    if not math.isfinite(value):
        return "–"
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{round(value, 2 - math.floor(math.log10(value))) if value > 0 else 0:,.{min(digits, 4)}f}"


def quickest(results):
    return min(results, key=lambda result: result.median, default=None)


def of_levels(results, library="levels"):
    return [result for result in results if (result.library == "levels") == (library == "levels")]


def headline(results):
    """Return a table with a row per training and API: the quickest of `levels`, the quickest other, and the limit."""
    rows = []
    for (family, _), group in grouped(results, "training"):
        for api in APIS[:-1]:
            same = [result for result in group if result.api == api]
            own = quickest(of_levels(same))
            other = quickest(of_levels(same, "others"))
            if own and other:
                ratio = f"{number(other.median / own.median)}{'' if own.median <= other.median else ' **behind**'}"
                times = number(1e6 * own.median), other.name, number(1e6 * other.median)
                rows.append((f"{family}: {api}", own.name, *times, ratio, number(own.median / own.limit)))
    return table(("", "levels", "µs a step", "quickest other", "µs a step", "its time / ours", "ours / limit"), rows)


def grouped(results, section):
    """Return ((family, size), timed results) of a section, in order."""
    groups = {}
    for result in results:
        if result.case.section == section and result.seconds:
            groups.setdefault((result.case.family, result.case.size), []).append(result)
    return groups.items()


def training_table(group):
    """Return a table of all modes of one training, sorted by API, then by time."""
    rows = []
    for result in sorted(group, key=lambda result: (APIS.index(result.api), result.median)):
        own = quickest(of_levels([other for other in group if other.api == result.api]))
        low, high = (number(1e6 * t) for t in result.spread())
        beside = number(result.median / own.median) if own else "–"
        name = f"**levels {result.mode}**" if result.library == "levels" else result.name
        over = number(result.median / result.limit)
        far = f"{result.apart:.0e}"
        rows.append((name, result.api, number(1e6 * result.median), f"{low} to {high}", beside, over, far))
    return table(("", "written", "µs a step", "a tenth is outside of", "of levels", "of the limit", "apart"), rows)


def sizes_table(results, section, family):
    """Return a table of times in µs, with modes in rows and sizes in columns."""
    groups = {size: group for (name, size), group in grouped(results, section) if name == family}
    names = dict.fromkeys(full_name(result) for group in groups.values() for result in group)
    times = {(full_name(r), size): number(1e6 * r.median) for size, group in groups.items() for r in group}
    rows = [(name, *(times.get((name, size), "–") for size in groups)) for name in names]
    if groups:
        rows.append(("the limit", *(number(1e6 * group[0].limit) for group in groups.values())))
    return table((f"{family}, µs", *(f"{size:,}" for size in groups)), rows)


def full_name(result):
    return f"levels {result.mode}" if result.library == "levels" else result.name


def machine():
    """Return a description of the processor, the system and its load."""
    from levels_more.hardware import amount, pool

    cpu = pool()["cpu:0"]
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if line.startswith("model name")), name)
    busy = f"; load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    speed = f"one core: {amount(cpu.peak, 'flop/s')}, {amount(cpu.bandwidth, 'B/s')} from memory"
    return f"{name}, {os.cpu_count()} CPUs ({speed}), {platform.system()}, Python {platform.python_version()}{busy}"


def made_by():
    """Return a comment with a hash of the scripts that measure. A test fails if they changed after the results."""
    scripts = sorted(path.relative_to(FOLDER).as_posix() for pattern in SCRIPTS for path in FOLDER.glob(pattern))
    texts = [[name, (FOLDER / name).read_text(encoding="utf-8")] for name in scripts]
    return f"<!-- measured by the scripts {hashlib.sha256(json.dumps(texts).encode()).hexdigest()} -->"


def report(results, began, here, versions, start_rows=(), ranks=(), cold_rows=()):
    """Return the whole page in Markdown."""
    parts = ["# Results", f"{began}. {here}.\n\n{versions}.", "What is measured, and how: see [README.md](README.md)."]
    if grouped(results, "training"):
        parts += ["## Training", headline(results)]
        parts += [f"### {family}\n\n{training_table(group)}" for (family, _), group in grouped(results, "training")]
    for section, title in (("kernels", "## Kernels"), ("growth", "## Growth: µs a step")):
        families = dict.fromkeys(family for (family, _), _ in grouped(results, section))
        parts += [title] * bool(families) + [sizes_table(results, section, family) for family in families]
    if start_rows:
        head = "", "import, s", "first epoch, s", "with all kept, s", "memory, MB", "installed, MB"
        rows = [(r[0], *map(number, r[1:4]), *(number(nbytes / 1e6) for nbytes in r[4:])) for r in start_rows]
        parts += ["## The start: one epoch of the rings, Adam, in a fresh process", table(head, rows)]
    if cold_rows:
        head = "cold", "processor seconds", "least to most", "of levels 3"
        first = statistics.median(cold_rows[0][1])
        rows = []
        for name, spent in cold_rows:
            middle = statistics.median(spent)
            rows.append((name, number(middle), f"{number(min(spent))} to {number(max(spent))}", number(middle / first)))
        parts += ["## Cold: a fresh process trains the line and prints its loss", table(head, rows)]
    if ranks:
        head = "SGD", "ranks", "levels, µs a step", "PyTorch, µs a step", "its time / ours", "losses apart"
        rows = [(name, n, number(1e6 * a), number(1e6 * b), number(c), f"{d:.0e}") for name, n, a, b, c, d in ranks]
        parts += ["## Several machines: processes on this computer", table(head, rows)]
    if skipped := not_timed(results):
        parts += ["## Not timed", "\n".join(skipped)]
    parts.append(made_by())
    return "\n\n".join(parts) + "\n"


def not_timed(results):
    """Return a line for each mode and reason, with all cases that it applies to."""
    found = {}
    for result in results:
        if result.why:
            size = f" {result.case.size:,}" if result.case.size else ""
            found.setdefault((full_name(result), result.why), []).append(f"{result.case.family}{size}")
    return [f"- {name}: {why} ({'; '.join(about)})" for (name, why), about in found.items()]
