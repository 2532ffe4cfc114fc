"""The builder: what it writes, what it refuses, and what it leaves as it was when something goes wrong."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

from course import build
from course.author.builder.export import ABSENT, File, export
from course.reader.notebooks.cells import BuildError
from course.reader.notebooks.names import notebook_path

pytestmark = pytest.mark.versions


def notebook(*cells: str):
    """A notebook of these cells: prose where a text begins with `# `, else code."""
    new = nbformat.v4
    sources = [textwrap.dedent(cell).strip("\n") for cell in cells]
    made = [new.new_markdown_cell(s) if s.startswith("# ") else new.new_code_cell(s) for s in sources]
    return new.new_notebook(cells=made)


def exported(*cells: str) -> dict[str, str]:
    files = export(notebook(*cells), "03_low_level")
    return {name: file.text for name, file in files.items()}


NOTE = "# Built from 03_low_level.ipynb: edit there, then run its last cell."

# What the exporter writes.


@pytest.mark.quick
def test_a_room_reads_as_written_by_hand():
    files = exported(
        "# Tensors: every op passes `one` door\n\nMore prose.",
        "import numpy as np\nimport math",
        '''
        #| export tensors
        """The tensor."""
        import os  # not used

        from levels.kernels import launch

        # what every op is told to
        TAPES = []


        class Tensor:
            """A value."""

            def __add__(self, other):  # late: apply is defined below
                return apply("add", self, other)
        ''',
        """
        #| export tensors
        def apply(op, *x):

            y = launch(op, *x)

            # all tapes hear of it
            for tape in TAPES:
                tape.record(op, x, y)
            return y
        """,
        """
        #| export autodiff
        VJPS = {}


        def vjp(op):
            return lambda function: VJPS.setdefault(op, function)


        @vjp("add")  # a row
        @np.vectorize
        def _(dy: "Tensor", y, a, b):
            return dy, dy
        """,
    )
    assert files["tensors.py"] == (
        f'"""The tensor."""\n\n{NOTE}\n\nfrom levels.kernels import launch\n\n'
        '# what every op is told to\nTAPES = []\n\n\nclass Tensor:\n    """A value."""\n\n'
        "    def __add__(self, other):  # late: apply is defined below\n"
        '        return apply("add", self, other)\n\n\n'
        "def apply(op, *x):\n\n    y = launch(op, *x)\n\n    # all tapes hear of it\n"
        "    for tape in TAPES:\n        tape.record(op, x, y)\n    return y\n"
    )
    assert files["autodiff.py"] == (
        f"{NOTE}\n\nimport numpy as np\n\nfrom .tensors import Tensor\n\nVJPS = {{}}\n\n\n"
        "def vjp(op):\n    return lambda function: VJPS.setdefault(op, function)\n\n\n"
        '@vjp("add")  # a row\n@np.vectorize\ndef _(dy: "Tensor", y, a, b):\n    return dy, dy\n'
    )
    assert files["__init__.py"] == (
        f'"""Tensors: every op passes one door."""\n\n{NOTE}\n\n'
        "from levels.support.fronts import absent, public\n\nfrom .autodiff import VJPS, vjp\n"
        "from .tensors import TAPES, Tensor, apply\n\n"
        f"{ABSENT}\n"
    )


def test_a_front_hands_on_what_exported_cells_import_of_one_file_of_support():
    made = notebook(
        "from levels.support.elementary import sqrt",  # not exported
        """
        #| export tasks
        from levels.support.elementary import exp, select
        from levels.support.measure import seconds


        def f(x):
            return exp(seconds(x))
        """,
    )
    files = {name: file.text for name, file in export(made, "01_hardware").items()}
    assert "from levels.support.elementary import exp, select\n" in files["__init__.py"]
    assert "seconds" not in files["__init__.py"]
    assert "from levels.support.elementary import exp\n" in files["tasks.py"]  # what the room uses
    (other,) = [file.text for name, file in export(made, "03_low_level").items() if name == "__init__.py"]
    assert "elementary" not in other


USES = {
    "annotation": "def f(x: Tensor): ...",
    "quoted annotation": "def f(x: 'list[Tensor]'): ...",
    "quoted return annotation": "def f() -> 'Tensor': ...",
    "variable annotation": "x: Tensor = None",
    "base class": "class A(Tensor): ...",
    "class body": "class A:\n    tensor = Tensor",
    "class body, same name": "class A:\n    Tensor = Tensor",
    "method": "class A:\n    def f(self):\n        return Tensor",
    "nested function": "def f():\n    def g():\n        return Tensor\n    return g",
    "list comprehension": "f = [Tensor for _ in ()]",
    "dict comprehension": "f = {i: i for i in Tensor}",
    "comprehension in a class": "class A:\n    f = [i for i in Tensor]",
    "f-string with every quote": "def f():\n    return f'''{Tensor}\\n \" ' \\\\ {1:{Tensor}}'''",
    "global, only read": "def f():\n    global Tensor\n    return Tensor",
    "deletion from it": "def f():\n    del Tensor[0]",
}
NOT_USES = {
    "argument": "def f(Tensor):\n    return Tensor",
    "local": "def f():\n    Tensor = 1\n    return Tensor",
    "outer local": "def f():\n    Tensor = 1\n\n    def g():\n        return Tensor\n    return g",
    "attribute": "def f(x):\n    return x.Tensor",
    "comprehension variable": "f = [Tensor for Tensor in ()]",
    "comprehension variable, read twice": "f = {Tensor: Tensor for Tensor in () if Tensor}",
    "import in a function": "def f():\n    from levels.kernels import Tensor\n    return Tensor",
    "string": "f = 'Tensor'",
}


@pytest.mark.quick
@pytest.mark.parametrize("code", USES.values(), ids=USES)
def test_names_that_are_used_are_imported(code):
    files = exported("#| export tensors\nclass Tensor: ...", "#| export other\n" + code)
    assert "from .tensors import Tensor\n" in files["other.py"]
    files = exported("from levels.kernels import Tensor", "#| export other\n" + code)
    assert "from levels.kernels import Tensor\n" in files["other.py"]


@pytest.mark.quick
@pytest.mark.parametrize("code", NOT_USES.values(), ids=NOT_USES)
def test_names_that_are_not_used_are_not_imported(code):
    files = exported("#| export tensors\nclass Tensor: ...", "#| export other\n" + code)
    assert "from .tensors" not in files["other.py"]


def test_a_library_that_may_be_missing_stays_where_it_is():
    code = "try:\n    import cupy\nexcept ImportError:\n    cupy = None"
    files = exported("#| export gpu\n" + code, "#| export other\ndef f():\n    return cupy")
    assert code in files["gpu.py"] and "from .gpu import cupy" in files["other.py"]
    assert "cupy" not in files["__init__.py"]


def test_magics_in_plain_cells_do_not_hide_their_imports():
    files = exported("%matplotlib inline\nimport math\nif True:\n    !ls", "def broken(:", "#| export r\nx = math.pi")
    assert "import math\n" in files["r.py"]


def test_a_level_says_which_names_are_its_own(project):
    names = "#| export tables\nimport math\n\nKERNELS = {}\n_PLANS = math.inf\n\n\ndef launch(): ..."
    build.write_level(project, "02_kernels", export(notebook(names), "02_kernels"))
    code = """
    import levels.kernels as k
    print(k.__all__)
    from levels.kernels import *
    print(KERNELS is k.KERNELS)
    try: k.other
    except AttributeError as error: print(error)
    """
    more = "what the notebooks build is here, and there is more in levels_more.kernels"
    more += ": try `from levels_more.kernels import other`"
    told = f"['KERNELS', 'launch']\nTrue\nlevels.kernels has no 'other': {more}\n"
    assert python(project, code) == told


def test_what_ipython_adds_to_python_is_not_exported():
    command = "import builtins; builtins.display = builtins.get_ipython = print; from course.author.builder.namespace import BUILTINS"
    done = python(build.ROOT, command + "; print(sorted({'display', 'get_ipython', 'print'} & BUILTINS))")
    assert done == "['print']\n"


# What the exporter refuses, before anything is written.

OPEN = "#| export first\nTAPES = []"
REFUSED = {
    "undefined": (
        [OPEN, "#| export first\ndef f():\n    return tapes"],
        r"cell 2 \(`def f\(\):`\): tapes is undefined",
    ),
    "undefined, with a hint": (
        ["x = 1", "#| export first\ny = x"],
        r"cell 2 .*: x is undefined.*cell 1 \(`x = 1`\) does",
    ),
    "only IPython has it": ([OPEN, "#| export first\nf = display"], "cell 2 .*: display is undefined"),
    "defined twice": (
        [OPEN, "x", "#| export second\ndef TAPES(): ..."],
        r"cell 3 .*TAPES is bound again, after cell 1",
    ),
    "rebound": ([OPEN, "#| export first\nTAPES += [1]"], "cell 2 .*: TAPES is bound again"),
    "rebound by global": (
        [OPEN, "#| export first\ndef f():\n    global TAPES\n    TAPES = 1"],
        "cell 2 .*TAPES .*`global`",
    ),
    "opens later": (
        [OPEN, "#| export b\nx = 1", "#| export first\ny = x"],
        "cell 3 .*: x is used here in room first, but cell 2",
    ),
    "opens later, in a function": (
        ["#| export a\ndef f():\n    return g", "#| export b\ndef g(): ..."],
        "cell 1 .*: g is used",
    ),
    "imported and defined": (
        ["from math import exp", "#| export a\ndef exp(): ..."],
        "cell 2 .*: exp is imported too, in cell 1",
    ),
    "two imports": (
        ["import math as m", "import cmath as m", "#| export a\nx = m"],
        "cell 3 .*: m .* different ways, in cell 1",
    ),
    "the course": (["from course import tasks", "#| export a\nx = tasks"], "cell 2 .*: tasks is imported from course"),
    "room and name": (["#| export tensor\ndef tensor(): ..."], "cell 1 .*: no room can be called tensor"),
    "magic": (["#| export a\n%timeit f()\nx = 1"], "cell 1 .*: line 2: .*magics|cell 1 .*line 2: .*no % or !"),
    "shell": (["#| export a\nx = 1\n!ls"], "cell 1 .*: line 3"),
    "syntax error": (["# prose", "#| export a\ndef f(:\n    pass"], r"cell 2 \(`def f\(:`\): line 2: invalid syntax"),
    "return outside": (["#| export a\nx = 1\nreturn x"], "cell 1 .*: line 3: 'return' outside function"),
    "a value shown": (["#| export a\nx = 1\nx"], "cell 1 .*: line 3 only shows something"),
    "a value printed": (["#| export a\nx = 1\nprint(x)"], "cell 1 .*: line 3 only shows something"),
    "second docstring": (["#| export a\n'A'", "#| export a\n'B'\nx = 1"], "cell 2 .*: only the first cell of a room"),
    "one line": (["#| export a\nimport os; x = os"], "cell 1 .*: line 2: two statements"),
    "star": (["#| export a\nfrom math import *\nx = 1"], "cell 1 .*: line 2: import libraries"),
    "relative": (["#| export a\nfrom .b import x"], "cell 1 .*: line 2: import libraries"),
    "future": (["#| export a\nfrom __future__ import annotations"], "cell 1 .*: line 2: import libraries"),
    "marker too late": (
        ["import os\n#| export a\nx = 1"],
        "cell 1 .*: `#| export ROOM` stands alone".replace("|", r"\|"),
    ),
    "marker without room": (["#| export\nx = 1"], "cell 1 .*stands alone on the first line"),
    "no room at all": (["x = 1"], r"03_low_level.ipynb: no cell begins with `#\| export ROOM`"),
}


@pytest.mark.parametrize("cells, message", REFUSED.values(), ids=REFUSED)
def test_refused(cells, message):
    with pytest.raises(BuildError, match=message):
        exported(*cells)


def test_underscore_may_be_defined_any_number_of_times():
    exported("#| export a\ndef _(x): ...", "#| export a\ndef _(y): ...", "#| export b\nfor _ in range(3): ...")


# Files.


def edit(path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8", newline="\n")


def python(root, code: str) -> str:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    env = build.environment(root) | {"PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def snapshot(root) -> dict[str, tuple[bytes, int]]:
    paths = [p for p in root.rglob("*") if p.is_file() and not {"__pycache__", ".course"} & set(p.parts)]
    return {p.relative_to(root).as_posix(): (p.read_bytes(), p.stat().st_mtime_ns) for p in paths}


@pytest.mark.parametrize("killed_at", [1, 2, 3, 4])
def test_killed_while_replacing_every_file_is_whole(project, monkeypatch, killed_at):
    before = {p: p.read_text() for p in (project / "levels" / "kernels").glob("*.py")}
    files = {path.name: File(text + "\nNEW = 1\n", []) for path, text in before.items()}
    calls, replace = [], os.replace

    def kill(*arguments):
        calls.append(arguments)
        if len(calls) == killed_at:
            raise KeyboardInterrupt
        replace(*arguments)

    monkeypatch.setattr(os, "replace", kill)
    with contextlib.suppress(KeyboardInterrupt):
        build.write_level(project, "02_kernels", files)
    now = {path: path.read_text() for path in (project / "levels" / "kernels").glob("*.py")}
    assert now.keys() == before.keys()
    assert all(now[path] in (before[path], files[path.name].text) for path in now)
    assert sum(now[path] != before[path] for path in now) == min(killed_at - 1, len(files))
    assert list((project / ".course").iterdir()) == []


def test_a_file_that_cannot_be_written_aside_changes_nothing(project):
    before = snapshot(project)
    with pytest.raises(UnicodeEncodeError):
        build.replace(project, {project / "levels" / "a.py": "x = 1\n", project / "levels" / "b.py": "x = '\ud800'\n"})
    with pytest.raises(SyntaxError):
        build.write_level(project, "02_kernels", {"__init__.py": File("def", [])})
    assert snapshot(project) == before


def test_rooms_that_are_gone_are_removed(project):
    files = export(notebook("#| export only\nx = 1"), "02_kernels")
    assert build.write_level(project, "02_kernels", files)
    assert {path.name for path in (project / "levels" / "kernels").glob("*.py")} == {"__init__.py", "only.py"}
    assert not build.write_level(project, "02_kernels", files)


def test_two_builds_in_one_second_are_told_apart(project):
    for value in (1, 2):
        files = export(notebook(f"#| export only\nx = {value}"), "02_kernels")
        build.write_level(project, "02_kernels", files)
        os.utime(project / "levels" / "kernels" / "only.py", (10**9, 10**9))  # same size, same second: same to Python
        assert python(project, "import levels.kernels; print(levels.kernels.x)") == f"{value}\n"


# Building: what is stale, and what is left alone.


def test_what_is_up_to_date_stays_byte_for_byte(project, capsys):
    later = time.time() + 1000
    for path in project.rglob("*"):
        os.utime(path, (later, later))
    inputs = ("notebooks/text/01_hardware.py", "course/reader/tasks.py", "data/points.csv")
    for file in inputs:  # as a Windows editor may leave them
        (project / file).write_bytes((project / file).read_bytes().replace(b"\n", b"\r\n"))
    before = snapshot(project)
    assert build.main([], project) == 0
    assert capsys.readouterr().out.count("is up to date") == 2
    assert snapshot(project) == before


BOTH = ["01_hardware", "02_kernels"]


@pytest.mark.parametrize(
    "old, new, stale", [("# what is held", "# what is held now", BOTH), ("{}", "dict()", BOTH[1:])]
)
def test_a_text_that_has_changed_is_built_and_what_stands_on_it(project, old, new, stale, capsys):
    edit(project / "notebooks" / "text" / f"{stale[0]}.py", old, new)
    assert build.main([], project) == 0
    out = capsys.readouterr().out
    assert [name for name in BOTH if re.search(rf"{name} +is built", out)] == stale
    assert build.check(project, BOTH) == []


SUPPLIES = {  # file: (its text, which notebooks a change of it makes stale)
    "course/__main__.py": ("from course import near", []),
    "course/alone.py": ("from course import far  # names 'unknown.csv'", []),
    "course/near.py": ("def late():\n    from course import far", ["02_kernels"]),
    "course/far.py": ("import course.kit.parts as p\nREAD = 'known.csv', 'style.css'", ["02_kernels"]),
    "course/style.css": ("", ["02_kernels"]),
    "course/kit/__init__.py": ("from .hidden import x", ["02_kernels"]),
    "course/kit/hidden.py": ("from ..figures import *\nREAD = 'page.html'", ["02_kernels"]),
    "course/kit/page.html": ("", ["02_kernels"]),
    "course/kit/parts.py": ("import solutions, course.broken", ["02_kernels"]),
    "course/broken.py": ("import course.alone (", ["02_kernels"]),
    "course/kit/more.py": ("", []),
    "course/reader/figures/__init__.py": ("ROOM = 'kit'", BOTH),
    "solutions/__init__.py": ("", ["02_kernels"]),
    "levels_more/plug.py": ("", ["01_hardware"]),
    "levels_more/other.py": ("", []),
    "data/points.csv": ("named by no one", BOTH),
    "data/known.csv": ("", ["02_kernels"]),
    "data/unknown.csv": ("", []),
    "data/nets/rings/petals": ("", ["01_hardware"]),
    "data/.hidden": ("", []),
}


def test_a_change_makes_stale_the_notebooks_that_use_what_changed(project):
    """Imported, in a function too; named, itself or its folder; or, where no source names it, perhaps read by any."""
    for file, (text, _) in SUPPLIES.items():
        (project / file).parent.mkdir(parents=True, exist_ok=True)
        (project / file).write_text(text)
    first, second = (project / "notebooks" / "text" / f"{name}.py" for name in BOTH)
    edit(first, "import numpy as np", "from levels_more.plug import x\nopen('../data/nets/rings/petals')")
    edit(second, "KERNELS = {}", "KERNELS = {}\n\n# %%\n%matplotlib inline\nimport course.near")
    texts = {name: build.from_text(project, name) for name in BOTH}

    def inputs():
        return {name: build.inputs_of(project, name, texts[name]) for name in BOTH}

    before, found = inputs(), {}
    for file, (text, _) in SUPPLIES.items():
        (project / file).write_text(text + "\n# changed")
        found[file] = [name for name, now in inputs().items() if now != before[name]]
        (project / file).write_text(text)
    assert found == {file: stale for file, (_, stale) in SUPPLIES.items()}


def test_another_answer_makes_stale_the_notebooks_that_ask_its_question(project):
    kept = project / "course" / "reader" / "answers" / "01_hardware.toml"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text('[01-one]\nanswer = 1\nbecause = "So."\n\n[01-two]\nanswer = 2\nbecause = "So."\n')
    for name, key in zip(BOTH, ("01-one", "01-two"), strict=True):
        text = project / "notebooks" / "text" / f"{name}.py"
        text.write_text(text.read_text() + f'\n# %%\nchecks.predict(\n    "{key}",\n    "How many?",\n)\n')
    texts = {name: build.from_text(project, name) for name in BOTH}
    before = {name: build.inputs_of(project, name, texts[name]) for name in BOTH}
    kept.write_text(kept.read_text().replace("answer = 2", "answer = 3"))
    assert [name for name in BOTH if build.inputs_of(project, name, texts[name]) != before[name]] == ["02_kernels"]


def test_what_branches_off_may_use_all_of_levels_more(project):
    files = [project / "levels_more" / name for name in ("plug.py", "torch/nn/init.py")]
    text = project / "notebooks" / "more" / "text" / "02_other.py"
    for file in (*files, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# %%\n1 + 1\n")
    found = build.from_text(project, "more/02_other")
    for file in files:
        before = build.inputs_of(project, "more/02_other", found)
        file.write_text("2 + 2\n")
        assert build.inputs_of(project, "more/02_other", found) != before, file


def test_a_hidden_input_is_collapsed(project):
    edit(project / "notebooks/text/01_hardware.py", "# %%\nalloc(2)", '# %% tags=["hide-input"]\nalloc(2)')
    assert build.main(["01_hardware"], project) == 0
    hidden = {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}
    cells = build.read_notebook(project, "01_hardware").cells
    assert [cell.metadata for cell in cells] == [hidden if cell.source == "alloc(2)" else {} for cell in cells]


def test_a_notebook_with_work_in_it_is_set_aside(project, capsys):
    path = notebook_path(project, "02_kernels")
    edit(path, "KERNELS = {}", "KERNELS = {}  # mine")
    mine = path.read_bytes()
    assert build.main([], project) == 0
    kept = list((project / ".course" / "aside").iterdir())
    assert [copy.read_bytes() for copy in kept] == [mine]
    assert f"a copy is .course/aside/{kept[0].name}" in capsys.readouterr().out
    assert "# mine" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("content", [None, "{", "[]", '{"cells": 3}', "\0"])
def test_a_damaged_notebook_is_made_again(project, content, monkeypatch):
    path = notebook_path(project, "01_hardware")
    path.unlink()
    if content is not None:
        path.write_text(content)
    (found,) = [line for line in build.check(project, build.names_in(project)) if "01_hardware" in line]
    assert f"notebooks/01_hardware.ipynb {'is missing' if content is None else 'cannot be read'}" in found
    monkeypatch.setattr("course.author.builder.cli.execute", lambda *arguments: None)
    assert build.main(["01_hardware"], project) == 0
    aside = project / ".course" / "aside"
    assert [p.read_text() for p in aside.glob("*")] == ([] if content is None else [content])


FAILING = {
    "raises": (
        "alloc(2)",
        "alloc(2).nowhere",
        r"01_hardware.ipynb, cell 5 \(`alloc\(2\).nowhere`\) failed: .*AttributeError",
    ),
    "kernel dies": ("alloc(2)", "import os; os._exit(1)", r"01_hardware.ipynb, cell 5 .* failed: .*[Kk]ernel died"),
    "export cell": ("    LOG.append", "    global LOG; LOG = 3; LOG.append", "cell 4 .*: LOG is bound again"),
}


@pytest.mark.parametrize("old, new, message", FAILING.values(), ids=FAILING)
def test_a_failing_notebook_leaves_everything_as_it_was(project, old, new, message, capsys):
    edit(project / "notebooks" / "text" / "01_hardware.py", old, new)
    before = snapshot(project)
    assert build.main([], project) == 1
    assert re.search(message, capsys.readouterr().err, re.DOTALL)
    assert snapshot(project) == before


def test_the_kernel_is_this_python(project, monkeypatch, tmp_path):
    """Another kernel that is registered as python3 is not taken."""
    spec = tmp_path / "kernels" / "python3"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["false"], "display_name": "x", "language": "python"}')
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    made = notebook("import sys; print(sys.executable)")
    build.execute(made, "made", project)
    assert os.path.samefile(made.cells[0].outputs[0].text.strip(), sys.executable)


# The check.


def test_check_names_file_and_cell(project, capsys):
    assert build.main(["--check"], project) == 0
    edit(project / "notebooks" / "text" / "01_hardware.py", "alloc(2)", "alloc(3)")
    edit(project / "levels" / "hardware" / "memory.py", "LOG.append(shape)", "LOG.append(1)")
    edit(project / "levels" / "kernels" / "tasks.py", "import Fit, alloc", "import alloc, Fit")
    (project / "levels" / "kernels" / "registry.py").unlink()
    (project / "levels" / "kernels" / "notes.txt").write_text("")
    (project / "levels" / "support").mkdir(exist_ok=True)
    (project / "levels" / "support" / "checks.py").write_text("")  # written by hand
    (project / "levels" / "__init__.py").unlink()
    capsys.readouterr()
    assert build.main(["--check"], project) == 1
    assert capsys.readouterr().out.split("\n") == [
        "notebooks/01_hardware.ipynb, cell 5 (`alloc(2)`): differs from notebooks/text/01_hardware.py",
        "levels/hardware/memory.py: line 12 differs from notebooks/01_hardware.ipynb, cell 4 (`'''Memory, counted.'''`)",
        "notebooks/02_kernels.ipynb is stale: its text, a level beneath, or what it uses of course/ or data/ changed since it ran",
        "levels/kernels/registry.py: line 1 differs from notebooks/02_kernels.ipynb, cell 3 (`KERNELS = {}`)",
        "levels/kernels/tasks.py: line 3 differs from notebooks/02_kernels.ipynb, cell 4 (`from levels.hardware import Fit, alloc`)",
        "levels/__init__.py is not the one that `python3 -m course build` writes",
        "levels/kernels/notes.txt: no notebook builds this file",
        "",
    ]


def test_check_sees_cells_added_and_removed(project):
    edit(project / "notebooks" / "text" / "02_kernels.py", "# %%\nbuild.level", "# %%\nLAST = 1\n\n# %%\nbuild.level")
    found = build.check(project, ["02_kernels"])
    assert found[0].startswith("notebooks/02_kernels.ipynb, cell 5 (`build.level(")
    assert found[1].startswith("notebooks/02_kernels.ipynb, cell 6 (`build.level(")


def test_nbval_as_anybody_types_it(project):
    """`pytest --nbval notebooks`, from the root of a clone: a time may differ, and no number."""
    for name in ("pyproject.toml", "tests/nbval_sanitize.cfg", "notebooks/conftest.py"):
        (project / name).parent.mkdir(exist_ok=True)
        shutil.copy(build.ROOT / name, project / name)
    own = {"PYTHONPATH", "PYTEST_ADDOPTS", build.COPY}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    for name in ("01_hardware", "02_kernels"):
        path = notebook_path(project, name)
        notebook = build.read_notebook(project, name)
        timed = nbformat.v4.new_output("stream", name="stdout", text="in 3.5 ms\n")
        source = "print('in', time.process_time_ns() * 1e-6, 'ms')"
        notebook.cells.insert(
            2, nbformat.v4.new_code_cell(f"import time\n{source}", outputs=[timed], execution_count=1)
        )
        nbformat.write(notebook, path)
    before = {path: path.read_bytes() for path in project.rglob("*.py") if ".course" not in path.parts}
    edit(notebook_path(project, "02_kernels"), "last loss -1.5 (-0x1.8", "last loss -1.5 (-0x1.9")
    command = [sys.executable, "-m", "pytest", "--nbval", "notebooks"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert "1 failed, 12 passed" in done.stdout and "notebooks/02_kernels.ipynb" in done.stdout
    changed = {path for path, text in before.items() if path.read_bytes() != text}
    assert changed == set(), "levels are as they were: a notebook that is opened directly builds in a folder of its own"


# In a notebook: a kernel, driven as Lab drives it.


@pytest.fixture
def lab(project):
    """A function that runs a source as the cell of this id and returns what it prints, or its error."""
    env = build.environment(project)
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(project / "notebooks"), env=env)

    def run(source: str, cell_id: str) -> str:
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        message = client.session.msg("execute_request", content, metadata={"cellId": cell_id})
        client.shell_channel.send(message)
        printed = []
        while True:
            answer = client.get_iopub_msg(timeout=60)
            if answer["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                content = answer["content"]
                printed += [content["text"]] if answer["msg_type"] == "stream" else content.get("traceback", [])
                if content.get("execution_state") == "idle":
                    return "".join(printed)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def cells_of(project, name: str) -> list[tuple[str, str]]:
    return [(c.source, c.id) for c in build.read_notebook(project, name).cells if c.cell_type == "code"]


def test_the_build_cell_notices_what_is_not_saved(project, lab):
    cells = cells_of(project, "01_hardware")
    for source, cell_id in cells[:-1]:
        assert "Error" not in lab(source, cell_id)
    before = snapshot(project)
    source, cell_id = cells[2]
    lab(source.replace("# what is held", "# what is held now"), cell_id)
    refused = lab(*cells[-1])
    assert refused == (
        "BuildError: cell 4 (`'''Memory, counted.'''`) is not saved, or has not run since it was changed: "
        "run it, save the notebook (Ctrl+S), then run this cell again"
    )
    assert snapshot(project) == before
    edit(notebook_path(project, "01_hardware"), "# what is held", "# what is held now")  # saved
    assert "3 steps in a fresh process, last loss -1.5 (-0x1.8000000000000p+0), the same as here" in lab(*cells[-1])
    assert "# what is held now" in (project / "levels" / "hardware" / "memory.py").read_text()

    lab("#| export memory\nNEW = 1", "a-new-cell")
    assert lab(*cells[-1]).startswith("BuildError: a new cell (`NEW = 1`) is not saved")
    lab(*cells[3])  # any plain cell, whatever its source
    lab(source.replace("# what is held", "# what is held now"), "an id from before the file was opened anew")
    lab("NEW = 1", "a-new-cell")  # no longer exported
    assert "the same as here" in lab(*cells[-1])


def test_the_build_cell_notices_what_differs_in_a_fresh_process(project, lab):
    cells = cells_of(project, "01_hardware")
    for source, cell_id in cells[:-1]:
        lab(source, cell_id)
    lab("keep = np.mean\nnp.mean = lambda x: keep(x) * (1 + 1e-15)", "plain")
    refused = lab(*cells[-1])
    where = "BuildError: linear_regression of levels.hardware: the loss of step 0 is "
    assert f"{where}-0.5 (-0x1.0000000000000p-1) in a fresh process, -0.5 (-0x1.000000000000" in refused
    lab("np.mean = keep\ndef linear_regression(*arguments): return Fit(np.zeros(7))", "plain")
    assert "(3,) losses of float64 in a fresh process, (7,) of float64 here" in lab(*cells[-1])
    lab(cells[4][0], cells[4][1])
    edit(
        project / "course" / "reader" / "tasks.py", '"linear_regression": linear', '"other": linear'
    )  # a crash over there
    crash = lab(*cells[-1])
    assert "BuildError: linear_regression of levels.hardware fails in a fresh process:\n" in crash
    assert crash.endswith("KeyError: 'linear_regression'")


def test_a_level_that_is_not_built_says_so(project, lab):
    shutil.rmtree(project / "levels" / "kernels")
    lab(*cells_of(project, "01_hardware")[0])
    cure = "run all cells of notebooks/02_kernels.ipynb, or `python3 -m course build`"
    for source in ("import levels.kernels", "from levels import kernels", "from levels.kernels import kernel"):
        assert f"ModuleNotFoundError: levels.kernels is not built yet: {cure}" in plain(lab(source, "x"))
    assert "No module named 'levels.other'" in plain(lab("import levels.other", "x"))


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
