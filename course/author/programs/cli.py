"""`python3 -m course programs`: compare the programs of `course.reader.programs` with the real libraries.

python3 -m course programs           run all on levels_more, and show their distance from the stored losses
python3 -m course programs --real    first run all on the real libraries, and store their losses
python3 -m course programs --places  look in the real libraries for the places that the notebooks name
python3 -m course programs --books FOLDER   run chapter 3 of two books as it is printed
python3 -m course programs --corners       ask the real libraries for the corners of functions that levels_more spells
python3 -m course programs --differences   ask the installed libraries where they differ; --store stores the answers
"""

import json
import sys

from course.author.bench.libraries import python_of
from course.author.programs import books, differences, places
from course.author.programs.processes import ask_all
from course.reader import files, programs
from course.terminal.arguments import parser


def store(given):
    """Run all programs on the real libraries and store their losses. If one fails, its stored losses are kept."""

    def library_of(each):
        return programs.FRAMEWORKS[each.framework]

    stored = json.loads(programs.STORED.read_text(encoding="utf-8")) if programs.STORED.exists() else {}
    for each, told in ask_all(programs.every(), library_of, lambda each: python_of(library_of(each), given)):
        if "skipped" in told:
            why = f"skipped ({told['skipped']}; python3 -m course bench --peer {library_of(each)})"
            print(f"{each.name}: {why}", flush=True)
            continue
        edition = programs.EDITIONS[each.framework] if each.name.startswith(programs.CHAPTER3.name) else ""
        stored[each.name] = told | {"digest": programs.digest(each.text), "edition": edition}
        print(f"{each.name}: stored, of {library_of(each)} {told['version']}", flush=True)
        files.write(programs.STORED, json.dumps(dict(sorted(stored.items())), indent=0) + "\n")


def main(argv):
    """Run `python3 -m course programs`: compare each on levels_more with the real library. Returns the exit status."""
    options = parser("programs").parse_args(argv)
    given = dict(text.partition("=")[::2] for text in options.python)
    if options.places:
        return places.check(given)
    if options.corners:
        return differences.corners(given, options.store)
    if options.differences:
        return differences.differences(given, options.store)
    if options.books:
        return books.compare(options.books, given if options.real else None)
    if options.real:
        store(given)
    far = shares = 0.0
    for each, told in ask_all(programs.every(), lambda each: "levels_more", lambda each: sys.executable):
        losses = told.get("losses", ())
        beside = f"{programs.FRAMEWORKS[each.framework]} {each.version}{f' with {each.beside}' * bool(each.beside)}"
        if each.name.startswith(programs.CHAPTER3.name):
            apart = programs.last_apart(losses, each.losses)
            shares = max(shares, apart)
            row = losses and f"last loss {losses[-1]:.12g}, a share of {apart:.1e} from {beside}"
        else:
            apart = programs.distance(losses, each.losses)
            far = max(far, apart)
            row = f"{len(each.losses)} losses, {apart:.1e} from {beside}"
        print(f"{each.name:37}", told.get("skipped") or row, flush=True)
    asked = f"asked {programs.ALIKE:.0e}; of chapter 3 a share of {shares:.1e}, asked {programs.NEAR:.0e}"
    print(f"largest distance {far:.1e}, {asked}")
    return int(far > programs.ALIKE or shares > programs.NEAR)
