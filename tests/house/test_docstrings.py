"""Whoever asks a public name of `levels` or `levels_more` for help is told what goes in, what comes out, and what is refused."""

import ast
import re

import pytest

from course import build

FILES = sorted(
    path.relative_to(build.ROOT).as_posix()
    for folder in ("levels", "levels_more")
    for path in (build.ROOT / folder).rglob("*.py")
    if path.name != "__init__.py"
)
# arguments that are tensors, arrays or buffers wherever they have these names
ARRAYS = {"x", "y", "w", "dy", "out", "y_true", "y_pred", "rows", "batches", "weights", "targets", "losses"}
# what says of which shape, dtype or kind these are: x[batch, inputs], "int64", "each number", "a row", …
TOLD = (
    r"see `|\w\[|\[\w|shape|dtype|float|int64|bool|tensor|array|buffer|spec|number|batch|row|column|matri|image|product"
)
# names that compute somebody's formula: their docstrings say whose, with a year or an address
FORMULAS = {
    "levels/mid_level/layers.py": "glorot_uniform",
    "levels/mid_level/optimizers.py": "Adam",
    "levels_more/hardware/elementary.py": "maximum minimum",
    "levels_more/mid_level/hashing.py": "fingerprint",
    "levels_more/mid_level/layers.py": "BatchNormalization Dropout",
    "levels_more/mid_level/initializers.py": "he_uniform",
    "levels_more/kernels/elementwise.py": "erf tanh",
    "levels_more/mid_level/optimizers.py": "AdamW RMSprop",
    "levels_more/kernels/random.py": "normal philox",
    "levels_more/low_level/ops.py": "elu",
    "levels_more/hardware/tpu.py": "bfloat16",
}


def public(name):
    return not name.startswith("_")


def things(path):
    """(name, node, its docstring) of each public function and class of a file, and of the public methods of such a class.

    A method's docstring stands for what its class says as well; `__init__` is told by the class.
    """
    for node in ast.parse((build.ROOT / path).read_text(encoding="utf-8")).body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or not public(node.name):
            continue
        yield node.name, node, ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef) and (public(inner.name) or inner.name == "__init__"):
                    told = " ".join(filter(None, (ast.get_docstring(inner), ast.get_docstring(node))))
                    yield f"{node.name}.{inner.name}", inner, told


def own(node):
    """All that stands in a function, but for functions inside it."""
    for inner in ast.iter_child_nodes(node):
        yield inner
        if not isinstance(inner, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own(inner)


def raised(node):
    """The names of the errors that a function raises itself."""
    for statement in own(node):
        if isinstance(statement, ast.Raise) and isinstance(statement.exc, ast.Call):
            name = ast.unparse(statement.exc.func)
            if name[:1].isupper():  # (others are worked out: an error that is passed on)
                yield name


def faults(path):
    for name, node, told in things(path):
        if not told:
            yield f"{name} has no docstring"
            continue
        if isinstance(node, ast.ClassDef):
            continue
        for error in sorted({*raised(node)}):
            if error not in told:
                yield f"{name} raises {error}, and its docstring does not say so"
        taken = ARRAYS & {argument.arg for argument in (*node.args.args, *node.args.posonlyargs)}
        if taken and ast.get_docstring(node) and not re.search(TOLD, told, re.IGNORECASE):
            yield f"{name} takes {', '.join(sorted(taken))}, and its docstring names no shape, dtype or kind of array"


@pytest.mark.parametrize("path", FILES)
def test_docstrings_say_what_goes_in_and_what_is_refused(path):
    assert [*faults(path)] == []


@pytest.mark.parametrize("path", FORMULAS)
def test_docstrings_of_formulas_say_whose_they_are(path):
    told = {name: text for name, _, text in things(path)}
    for name in FORMULAS[path].split():
        assert re.search(r"\b1[5-9]\d\d\b|\b20\d\d\b|https?://|RFC \d", told[name]), name


FAULTY = """
def first(x):
    "The first."
    if x is None:
        raise ValueError("no x")

def second(n):
    def inner():
        raise TypeError("another's")
    return inner

class Third:
    "Raises KeyError for a bad name."
    def __init__(self, name):
        raise KeyError(name)
    def call(self, x):
        raise OSError("late")

def fourth(x):
    "The fourth of each number. Raises ValueError for none."
    raise ValueError("none")
"""


def test_faults_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY, encoding="utf-8")
    assert [*faults("faulty.py")] == [
        "first raises ValueError, and its docstring does not say so",
        "first takes x, and its docstring names no shape, dtype or kind of array",
        "second has no docstring",
        "Third.call raises OSError, and its docstring does not say so",
    ]
