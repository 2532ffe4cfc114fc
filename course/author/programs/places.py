"""Check that the places named in `course.reader.inspection.questions` are still there in the installed libraries.

A place is a name and a word. The word must stand in what defines the name, so that a declaration, an empty method or a
function that now does something else is not taken for the place.

    python3 -m course programs --places [--python torch=PATH] [--python tensorflow=PATH]

The libraries are not imported: their files are read. Wheels contain C++ headers, but not C++ sources.
"""

import ast
import json
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from course.author.bench.libraries import environment, python_of
from course.reader.inspection.questions import NAMES, QUESTIONS, VERSIONS

FOUND = "found"
MOVED = "moved"
WITHOUT = "without its word"
NOT_IN_WHEEL = "not in the wheel"
NOT_HERE = "not installed"
PYTHON_OF = {"torch": "torch", "tensorflow": "tensorflow", "keras": "tensorflow"}  # Keras comes with TensorFlow
NEAR = 120  # within so many lines the word of a place must stand, where the end of a definition is not known
IN_WHEEL = {  # a repository's folder: its path in a wheel, if different
    "tools/autograd/": "torchgen/packaged/autograd/",
    "aten/src/ATen/": "torch/include/ATen/",
    "torch/csrc/": "torch/include/torch/csrc/",
    "tensorflow/core/": "tensorflow/include/tensorflow/core/",
    "tensorflow/c/": "tensorflow/include/tensorflow/c/",
    "third_party/xla/xla/": "tensorflow/include/xla/",
}
ASK = """
import importlib.metadata, importlib.util, json, os, sys
told = {}
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations:
        of = importlib.metadata.packages_distributions().get(name, [name])[0]
        told[name] = os.path.dirname([*spec.submodule_search_locations][0]), importlib.metadata.version(of)
print(json.dumps(told))
"""


class Verdict(NamedTuple):
    kind: str  # FOUND, MOVED, WITHOUT, NOT_IN_WHEEL or NOT_HERE
    detail: str = ""  # the line where it was found, or where it is now


def look(there, folder, same=False):
    """Return the Verdict on a place, in a folder of installed packages.

    same: whether the installed version is that of the table. Then the line must also be the same.
    """
    file = file_of(there.file, folder)
    if file is None and not there.in_wheel:
        return Verdict(NOT_IN_WHEEL)
    line = line_of(file, there.name, there.word) if file else 0
    if line and same and there.line and line != there.line:
        return Verdict(MOVED, f"to line {line} of the same file; the table says {there.line}")
    if line:
        return Verdict(FOUND, f"line {line}")
    now = elsewhere(there, folder)
    if file and not now and (spans := definitions(file, there.name)):
        return Verdict(WITHOUT, f"line {spans[0][0]}; `{there.word}` does not stand there any more")
    return Verdict(MOVED, f"to {', '.join(now)}" if now else "and is in no file of the package")


def file_of(name, folder):
    """Return the installed path of a repository's file, or None."""
    others = [name.replace(part, there, 1) for part, there in IN_WHEEL.items() if name.startswith(part)]
    return next((folder / each for each in (name, *others) if (folder / each).is_file()), None)


def line_of(file, name, word):
    """Return the first line in a definition of `name` that contains `word`, or 0."""
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    for first, last in definitions(file, name):
        for number in range(first, last + 1):
            if word in lines[number - 1]:
                return number
    return 0


def definitions(file, name):
    """Return the first and the last line of each definition of a name in a file.

    Python is parsed; other files are searched for a pattern. A rule in YAML ends at an empty line. In C++ the first
    lines are taken, whether they define or only declare, so that a place needs a word that only its body has.
    """
    text, (*around, last) = file.read_text(encoding="utf-8", errors="replace"), name.split(".")
    if file.suffix == ".py":
        return [*in_python(ast.parse(text).body, around, last)]
    if any(not re.search(rf"\b{outer}\b", text) for outer in around):
        return []
    defines = re.compile(rf"^- name: {last}\(" if file.suffix == ".yaml" else rf"\b{last}\s*[({{:]")
    lines = text.split("\n")
    starts = [
        number
        for number, line in enumerate(lines, 1)
        if defines.search(line) and not line.lstrip().startswith(("//", "*", "#"))
    ]
    if file.suffix == ".yaml":
        return [(start, lines.index("", start) if "" in lines[start:] else len(lines)) for start in starts]
    return [(start, min(start + NEAR, len(lines))) for start in starts]


def in_python(body, around, last):
    """Yield the lines of each function or class `last`, inside those that `around` names, in these statements."""
    wanted = around[0] if around else last
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == wanted:
            if around:
                yield from in_python(node.body, around[1:], last)
            else:
                yield node.lineno, node.end_lineno
        elif isinstance(node, ast.If | ast.Try | ast.ExceptHandler):
            yield from in_python(ast.iter_child_nodes(node), around, last)


def elsewhere(there, folder, most=3):
    """Return up to `most` places in the package that define the name, with its word, now: "file, line n"."""
    found = []
    ending = Path(there.file).suffix
    first = re.compile(rf"\b{there.name.split('.')[0]}\b")
    top = (file_of(there.file, folder) or folder / there.library / "-").relative_to(folder).parts[0]
    for file in sorted((folder / top).rglob(f"*{ending}")):
        if first.search(file.read_text(encoding="utf-8", errors="replace")) and (
            line := line_of(file, there.name, there.word)
        ):
            found.append(f"{file.relative_to(folder).as_posix()}, line {line}")
        if len(found) == most:
            break
    return found


def installed(given):
    """Return {package: (the folder of installed packages that contains it, its version)} for installed packages."""
    told = {}
    for library in dict.fromkeys(PYTHON_OF.values()):
        packages = [name for name in VERSIONS if PYTHON_OF[name] == library]
        command = [python_of(library, given), "-c", ASK, *packages]
        done = subprocess.run(command, env=environment(1), capture_output=True, encoding="utf-8")
        told |= json.loads(done.stdout) if not done.returncode else {}
    return {name: (Path(folder), version) for name, (folder, version) in told.items()}


def check(given):
    """Print the verdict on every place. Returns 1 if one has moved or lost its word, or no library is here; else 0."""
    here = installed(given)
    kinds = []
    for name, version in VERSIONS.items():
        if name in here:
            print(f"{NAMES[name]} {here[name][1]}; the table was made for {version}")
        else:
            cure = f"--python {PYTHON_OF[name]}=PATH, or python3 -m course bench --peer {PYTHON_OF[name]}"
            print(f"{NAMES[name]} is {NOT_HERE}: {cure}")
    for question in QUESTIONS:
        print(f"\n{question.asked}")
        for there in question.theirs:
            folder, version = here.get(there.library, (None, ""))
            verdict = Verdict(NOT_HERE)
            if folder:
                verdict = look(there, folder, version.partition("+")[0] == VERSIONS[there.library])
            kinds.append(verdict.kind)
            print(f"  {verdict.kind:16} {there}{f' ({verdict.detail})' * bool(verdict.detail)}")
    print(f"\n{', '.join(f'{kinds.count(kind)} {kind}' for kind in dict.fromkeys([FOUND, MOVED, *kinds]))}")
    return int(not {MOVED, WITHOUT}.isdisjoint(kinds) or {*kinds} == {NOT_HERE})
