"""The command `python3 -m course bench`."""

import datetime
import tempfile
import time

from course.author.bench.cases import GROWING, SLOW, cases
from course.author.bench.libraries import LIBRARIES, install, open_peers
from course.author.bench.measure import FULL, GROWTH, QUICK, colds, measure, several, starts
from course.author.bench.report import FOLDER, full_name, machine, number, quickest, report
from course.reader.figures.bench import raced
from course.terminal.arguments import parser
from course.terminal.kinds import SECTIONS


def main(argv):
    """Run `python3 -m course bench`: time levels and the installed libraries. Returns the exit status."""
    options = parser("bench").parse_args(argv)
    if options.peer:
        return install(options.peer)
    given = dict(text.partition("=")[::2] for text in options.python)
    for name in given:
        if name not in LIBRARIES:
            raise SystemExit(f"--python {name}: there are {', '.join(LIBRARIES)}")
    wanted = options.sections or (["training"] if options.quick else SECTIONS)
    if options.only and not any(case.section in wanted and options.only in case.family for case in cases()):
        names = dict.fromkeys(case.family for case in cases() if case.section in wanted)
        raise SystemExit(
            f"--only {options.only}: nothing that is measured has this in its name. There are: {'; '.join(names)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        page, results = run(wanted, options, given, folder)
    print(f"\n{page}")
    if not options.quick:
        (FOLDER / "results.md").write_text(page, encoding="utf-8")
        if any(result.case.section == "training" and result.seconds for result in results):
            (FOLDER / "results.png").write_bytes(raced(results).png)
    return 0


def run(wanted, options, given, folder):
    """Measure the wanted sections. Returns (the page in Markdown, the Results)."""
    start = time.perf_counter()
    began = f"{datetime.date.today():%d %B %Y}"
    here = machine()
    results = []
    start_rows = cold_rows = ()
    chosen = [case for case in cases() if case.section in wanted and options.only in case.family]
    if options.quick:
        chosen = [case for case in chosen if case.threads == 1 and "rings, batch 10," not in case.family]
    for threads in sorted({case.threads for case in chosen} | {1}):
        peers = open_peers(LIBRARIES, given, threads, print if threads == 1 else lambda line: None)
        for library, mode in SLOW.items() if options.quick else ():
            if library in peers:
                print(f"{library} {peers[library].modes.pop(mode) and mode}: left out of --quick")
        if threads == 1:
            about = [peer.about for peer in peers.values()]
        try:
            for case in (case for case in chosen if case.threads == threads):
                growing = case.section == "growth"
                pace = QUICK if options.quick else GROWTH if growing else FULL
                found = measure(case, {k: p for k, p in peers.items() if not growing or k in GROWING}, pace, folder)
                results += found
                told = quickest([result for result in found if result.seconds])
                best = f"{full_name(told)}, {number(1e6 * told.median)} µs" if told else "nobody"
                spent = time.perf_counter() - start
                print(f"{spent:5.0f} s  {case.family} {case.size}: quickest of {len(found)}: {best}", flush=True)
            if threads == 1 and "start" in wanted:
                start_rows = starts(peers, 1 if options.quick else 3, folder)
                pythons = {name: peer.python for name, peer in peers.items()}
                cold_rows = colds(pythons, 3 if options.quick else 7, folder)
        except KeyboardInterrupt:
            print("stopped: what was measured by then is told", flush=True)
            wanted = []
            chosen = []
        finally:
            for peer in peers.values():
                peer.close()
    versions = ", ".join(f"{a['name']} {a['version']}".strip() for a in about)
    ranks = several(given, 1 if options.quick else 5, folder) if "machines" in wanted else ()
    return report(results, began, here, versions, start_rows, ranks, cold_rows), results
