"""Programs, commands and imports that the product shows, in pages, notebooks and messages, run as they stand there."""

import contextlib
import io
import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys

import hub_server
import pytest
from fresh import printed

from course.author.build import ROOT, from_text
from course.reader.notebooks.names import all_in
from course.terminal.arguments import COMMANDS, check_arguments

PAGES = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "course").rglob("*.md")] if path.name != "CHANGELOG.md")
TEXTS = sorted((ROOT / "notebooks").rglob("text/*.py"))
CODE = sorted(
    path
    for folder in ("levels", "levels_more", "course")
    for ending in ("py", "toml", "html")
    for path in (ROOT / folder).rglob(f"*.{ending}")
)


def written(paths):
    """Yield (where, text) for each of these files."""
    for path in paths:
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def found(name):
    """Whether a dotted name is a module, or an attribute of one."""
    with contextlib.suppress(ImportError, AttributeError):
        return pkgutil.resolve_name(name) is not None
    return False


IMPORT = re.compile(r"\bfrom ((?:levels|levels_more|course|solutions)(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+)*)")
DOTTED = re.compile(r"(?<![\w./])(?:levels|levels_more)(?:\.\w+)+")
OTHER = "levels.get", "levels.items", "levels.keys", "levels.values"  # of a variable called levels


def test_each_import_that_is_written_finds_its_names():
    names = {}
    for where, text in written([*PAGES, *TEXTS, *CODE]):
        for module, wanted in IMPORT.findall(text):
            for name in wanted.split(", "):
                names.setdefault(f"{module}.{name.split(' as ')[0]}", where)
        for name in DOTTED.findall(text):
            names.setdefault(name, where)
    assert len(names) > 500
    assert {name: where for name, where in names.items() if name not in OTHER and not found(name)} == {}


COMMAND = re.compile(r"python3? -m course (?!\.)([^\n`]*)")
NO_COMMAND = ("--help", "COMMAND", "COMMAND --help", "COMMAND [ARGUMENT ...]")


def test_each_command_that_is_written_has_these_arguments():
    wrong, count = [], 0
    for where, text in written([*PAGES, *TEXTS, *CODE]):
        for line in COMMAND.findall(text):
            line = line if where.endswith(".md") else re.split("[\"']", line)[0]  # to the end of a text in code
            # up to a comment, a second sentence, a column of a table or a tag
            command = re.split(r"\s+#|(?<=\S)[.;,:)](?=\s|$)|\s{2,}| \||</", line.rstrip())[0]
            if not command or command in NO_COMMAND or "{" in command:
                continue
            count += 1
            name, *given = shlex.split(re.sub(r"[][]", "", command))  # in brackets: what may be left out
            with contextlib.redirect_stderr(io.StringIO()) as told, contextlib.suppress(SystemExit):
                if name in COMMANDS and given:  # without arguments, a command is only named
                    check_arguments(name, given)
            if name not in COMMANDS or told.getvalue():
                wrong.append((where, command, told.getvalue()))
    assert count > 100 and wrong == []


def programs():
    """{(where, first line): text} of the programs in pages and notebooks, but for the solutions beneath blanks."""
    shown = dict(written(PAGES))
    for name in all_in(ROOT):
        cells = [cell.source for cell in from_text(ROOT, name).cells if cell.cell_type == "markdown"]
        shown[name] = "\n\n".join(cell for cell in cells if "<details>" not in cell)
    blocks = {}
    for where, text in shown.items():
        for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            blocks[where, block.partition("\n")[0]] = block
    return blocks


# (where, first line) -> (what stands before the program, what holds after it)
RUNS = {
    ("CONTRIBUTING.md", 'scalar("softsquare")(lambda x: x * x / (1.0 + abs(x)))  # level 2: the kernel, for every device'): (
        """
import numpy as np
from levels.kernels import scalar
from levels.low_level import VJPS, GradientTape, Variable, apply, reduce_sum
from levels_more.high_level import Sequential
from levels_more.mid_level import Dense
""",
        """
model = Sequential([_, Dense(1)])
model.compile("sgd", "mse")
losses = model.fit(np.ones((8, 3)), np.ones((8, 1)), epochs=3, verbose=0).losses
assert losses[-1] < losses[0]
w = Variable(np.array([-2.0, 3.0]))
with GradientTape() as tape:
    y = reduce_sum(apply("softsquare", w))
assert np.allclose(tape.gradient(y, w).numpy(), [-8 / 9, 15 / 16])  # x·(2 + |x|) / (1 + |x|)²
""",
    ),
    ("course/author/site/pages/beside.md", "import levels_more.tensorflow as tf  # it was: import tensorflow as tf"): (
        "",
        "assert tf.keras and torch.tensor and nn.Linear and optim.SGD and torchkeras.KerasModel",
    ),
    ("05_high_level", "dense = Dense(1)"): (
        """
import numpy as np
from levels.high_level import Sequential
from levels.mid_level import SGD, Dataset, Dense, MeanSquaredError
x = np.ones((4, 2))
data = Dataset.from_batches(x, x[:, :1], np.arange(4).reshape(2, 2))
""",
        "assert len(_.losses) == 2 and _.losses[1] < _.losses[0]",
    ),
    ("more/05_at_work", 'net.push_to_hub("your-name/rings", **words)'): (
        """
import numpy as np
from levels_more.saving import from_pretrained, load_model
net = load_model("rings")
words = {"data": "rings", "metrics": {"accuracy": 0.95}, "license": "mit"}
""",
        "assert again.predict(np.ones((1, 2))) == net.predict(np.ones((1, 2)))",
    ),
}  # fmt: skip


OF_A_HUB = "TEACHING.md", "# jupyterhub_config.py"  # it needs a hub, and users of the system


def test_each_program_on_a_page_is_run_here():
    assert programs().keys() == {*RUNS, OF_A_HUB}


@pytest.mark.parametrize("place", RUNS, ids=[place for place, _ in RUNS])
def test_a_program_on_a_page_runs_as_it_stands(place, tmp_path):
    """The last expression is `_`, as in a notebook. The hub is one on this computer."""
    before, after = RUNS[place]
    (tmp_path / "hub").mkdir()
    address, _ = hub_server.start(tmp_path / "hub")
    own = dict(HF_ENDPOINT=address, HF_HOME=str(tmp_path / "cache"), HF_TOKEN="hf_loopback", HF_HUB_DISABLE_XET="1")
    text = "\n".join([before, programs()[place], after])
    code = "import ast, sys; _ = None\nsys.displayhook = lambda value: globals().update(_=value)\n"
    code += f"exec(compile(ast.Interactive(ast.parse({text!r}).body), 'page', 'single'))"
    printed("-c", code, cwd=tmp_path, **own)


def test_the_lines_for_colab_bring_the_course(tmp_path):
    """The copy comes from this folder in place of GitHub, and its packages are those that are here."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("this copy of the course is no repository")
    page = (ROOT / "course/author/site/pages/elsewhere.md").read_text(encoding="utf-8")
    clone, folder, install = re.search(r"^```\n(!git.*?)```", page, re.MULTILINE | re.DOTALL)[1].splitlines()
    command = clone.removeprefix("!").replace("https://github.com/OWNER/NAME", ROOT.as_posix())
    assert command != clone.removeprefix("!") and install.startswith("%pip install -q ")
    subprocess.run(shlex.split(command), check=True, cwd=tmp_path)
    there = tmp_path / folder.removeprefix("%cd ")
    notebook = re.search(r"colab\.\S+/blob/main/(\S+)", page)[1]
    assert notebook == re.search(r"mybinder\.\S+/tree/(\S+)", page)[1]
    cells = json.loads((there / notebook).read_text(encoding="utf-8"))["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": there, "env": clean, "capture_output": True, "encoding": "utf-8"}
    where = "\nimport course, levels; print(course.__file__, levels.__file__)"
    done = subprocess.run([sys.executable, "-m", "IPython", "--colors=NoColor", "-c", first + where], **options)
    assert done.returncode == 0 and done.stdout.count(str(there)) == 2, done.stdout + done.stderr


BEGIN = """
import numpy as np
from levels_more import torch
import levels_more.tensorflow as tf
from levels_more.high_level import EarlyStopping, Sequential
from levels_more.low_level import GradientTape, Variable, constant, function, reduce_sum, where
from levels_more.mid_level import Dataset, Dense
x, y, shape, optimizer, loss = np.ones((4, 2)), np.ones((4, 1)), (None, 2), "sgd", "mse"
model = Sequential([Dense(1)])
ready = Sequential([Dense(1)])
ready.compile("sgd", "mse")
w = Variable(np.ones(2))
leaf = torch.tensor([1.0, 2.0], requires_grad=True)
"""
CURES = [  # (a mistake; the code in its message; the same with this code, which works)
    ("model.save('m')", "model.build(shape)", "model.build(shape); model.save('m')"),
    ("model.save_weights('m')", "model.build(shape)", "model.build(shape); model.save_weights('w')"),
    ("model.fit(x, y)", "model.compile(optimizer, loss)", "model.compile(optimizer, loss); model.fit(x, y, verbose=0)"),
    ("x = np.ma.masked_less(x, 0); ready.fit(x, y)", "x.filled(0)", "ready.fit(x.filled(0), y, verbose=0)"),
    (
        "y = np.array(['a', 'b', 'a', 'b']); ready.fit(x, y)",
        "np.unique(y, return_inverse=True)[1]",
        "ready.fit(x, np.unique(y, return_inverse=True)[1], verbose=0)",
    ),
    (
        "column = np.array(['a', 'b', 'a', 'b']); ready.fit(column[:, None], y)",
        "(column[:, None] == np.unique(column)) * 1.0",
        "ready.fit((column[:, None] == np.unique(column)) * 1.0, y, verbose=0)",
    ),
    ("w += 1.0", "w.assign(w + …)", "w.assign(w + 1.0)"),
    (
        "with GradientTape() as tape: total = reduce_sum(w * w)\ntape.gradient(total, w); tape.gradient(total, w)",
        "GradientTape(persistent=True)",
        "with GradientTape(persistent=True) as tape: total = reduce_sum(w * w)\n"
        "tape.gradient(total, w); tape.gradient(total, w)",
    ),
    (
        "data = Dataset.from_tensor_slices((x, y)); ready.fit(data)",
        ".batch(32)",
        "ready.fit(data.batch(32), verbose=0)",
    ),
    ("data = Dataset.from_tensor_slices(x).repeat(); list(data)", "take(count)", "count = 9; list(data.take(count))"),
    ("np.sin(w)", "x.numpy()", "x = w; np.sin(x.numpy())"),
    (
        "function(lambda x: x if x > 0 else -x)(constant(1.0))",
        "where(mask, x, y)",
        "def step(x):\n mask = x > 0; y = -x; return where(mask, x, y)\nfunction(step)(constant(1.0))",
    ),
    ("x = np.array(['a', 'b'], object); Dataset.from_tensor_slices(x)", "np.array(x, str)",
     "Dataset.from_tensor_slices(np.array(x, str))"),
    ("ready.fit(x, y, callbacks=[EarlyStopping])", "EarlyStopping()",
     "ready.fit(x, y, validation_data=(x, y), callbacks=[EarlyStopping()], verbose=0)"),
    ("x = leaf * 2; x.numpy()", "x.detach().numpy()", "x.detach().numpy()"),
    ("total = (leaf * leaf).sum(); total.backward(); total.backward()", "backward(retain_graph=True)",
     "total = (leaf * leaf).sum(); total.backward(retain_graph=True); total.backward()"),
    ("leaf.add_(1)", "with torch.no_grad():", "with torch.no_grad(): leaf.add_(1)"),
    ("other = torch.ones(1, requires_grad=True); torch.autograd.grad((leaf * leaf).sum(), [leaf, other])",
     "allow_unused=True", "torch.autograd.grad((leaf * leaf).sum(), [leaf, other], allow_unused=True)"),
    ("import copy; copy.deepcopy(leaf * 2)", "detach()", "copy.deepcopy((leaf * 2).detach())"),
    ("part = torch.nn.Module(); part(leaf)", "def forward(self, x):",
     "class Mine(torch.nn.Module):\n def forward(self, x): return x\nMine()(leaf)"),
    ("torch.save(torch.nn.Linear(1, 1), 'f')", "state_dict()", "torch.save(torch.nn.Linear(1, 1).state_dict(), 'f')"),
    ("open('a.csv', 'w').write('a\\nNA\\n1\\n'); Dataset.from_csv('a.csv')", "na_value='NA'",
     "Dataset.from_csv('a.csv', na_value='NA')"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "cure", "cured"), CURES, ids=[cure for _, cure, _ in CURES])
def test_the_code_in_a_message_cures_the_mistake(mistake, cure, cured, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(BEGIN, space)
    with pytest.raises(Exception, match=re.escape(cure)):
        exec(mistake, space)
    assert cure.partition("…")[0] in cured
    exec(cured, space)
