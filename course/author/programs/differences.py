"""`python3 -m course programs --corners` and `--differences`: ask the libraries that are installed, and compare.

Each library answers in a process of its own, in the Python that `--python torch=PATH` names, or else in the one that
`python3 -m course bench --peer torch` made, or in this one. What differs from the stored answers is printed. `--store`
stores the answers, with the libraries' versions; those of other versions are kept in differences.json.
"""

import json
import sys

from course.author.bench.libraries import python_of
from course.author.programs.processes import as_they_end, in_process
from course.reader import files
from course.reader.programs import lines

WORKER = "from course.reader.programs import lines; lines.answer()"


def ask(library, asked, given):
    """Return {"version", "answers": {key: answer}} of a library to {key: line}, or {"skipped": why}."""
    first, _, beneath = library.partition(" on ")
    python = sys.executable if library == lines.OURS else python_of(beneath or first, given)
    return in_process(WORKER, json.dumps(asked), python, library)


def corners(given, store):
    """Ask the libraries that `levels_more` spells for their corners. Returns 1 if something is not as stored."""
    known = lines.stored(lines.CORNERS)
    changed = 0
    for library, told in as_they_end(lambda each: ask(each, _by_itself(each), given), lines.SPELLED):
        if "skipped" in told:
            changed += 1
            print(f"{library}: skipped ({told['skipped']})")
            continue
        before = known.get(library, {"version": "none", "answers": {}})
        new = [line for line, answer in told["answers"].items() if answer != before["answers"].get(line)]
        print(
            f"{library} {told['version']}, stored of {before['version']}: {len(told['answers'])} lines, {len(new)} new"
        )
        for line in new:
            print(f"  {line}\n    was {before['answers'].get(line)}\n    is  {told['answers'][line]}")
        changed += len(new)
        known[library] = told
    if store:
        _write(lines.CORNERS, known)
    return int(changed > 0 and not store)


def _by_itself(library):
    return {line: line for line in lines.corners(library)[0]}


def differences(given, store):
    """Ask the questions of differences.toml, and print what is not as stored. Returns 1 if something is not.

    An answer is compared with that of the same version, if it is stored, else with that of the newest stored one.
    """
    rows = {row.key: row for row in lines.rows()}
    known = lines.stored(lines.DIFFERENCES)
    count = {"asked": 0, "as stored": 0, "changed": 0, "not guessed": 0}
    libraries = [each for each in lines.BEGINS if any(each in row.lines for row in rows.values())]
    for library, told in as_they_end(lambda each: ask(each, _to(each, rows), given), libraries):
        if "skipped" in told:
            print(f"{library}: skipped ({told['skipped']})")
            continue
        version = told["version"]
        print(f"{library} {version}: {len(told['answers'])} answers")
        for key, answer in told["answers"].items():
            count["asked"] += 1
            stored = known.setdefault(key, {}).setdefault(library, {})
            before = version if version in stored else next(reversed(stored), None)
            count["not guessed"] += answer != rows[key].guess.get(library)
            if before is None:
                print(f"  new: {key}: {answer}")
            elif stored[before] != answer:
                count["changed"] += 1
                print(f"  {key}: {rows[key].asked}\n    {before}: {stored[before]}\n    {version}: {answer}")
            else:
                count["as stored"] += 1
            stored[version] = answer
    print(", ".join(f"{number} {name}" for name, number in count.items()))
    if store:
        _write(lines.DIFFERENCES, {key: _of_row(row, known[key]) for key, row in rows.items() if key in known})
    return int(count["as stored"] < count["asked"] and not store)


def _to(library, rows):
    """The lines for this library, {key: line}."""
    return {key: row.lines[library] for key, row in rows.items() if library in row.lines}


def _of_row(row, answers):
    """The answers to a row: the libraries that it asks, in the order of BEGINS, and of each the newest version last."""
    return {
        library: dict(sorted(answers[library].items(), key=lambda pair: _numbered(pair[0])))
        for library in lines.BEGINS
        if library in row.lines and library in answers
    }


def _numbered(version):
    """A version as numbers, to be sorted: 2.9 comes before 2.10."""
    return [int(part) if part.isdigit() else 0 for part in version.replace(" on ", ".").split(".")]


def _write(table, known):
    files.write(table.with_suffix(".json"), json.dumps(known, indent=1, ensure_ascii=False) + "\n")
