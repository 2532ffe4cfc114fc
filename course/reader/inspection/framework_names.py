"""Find the line of `levels_more` that defines a name of TensorFlow or PyTorch, such as `torch.nn.Linear`."""

import ast
import importlib
import inspect
import re
from pathlib import Path

PACKAGES = {  # {the first part of a name: the package of `levels_more`}
    "tf": "tensorflow",
    "tensorflow": "tensorflow",
    "keras": "tensorflow.keras",
    "torch": "torch",
    "nn": "torch.nn",
    "optim": "torch.optim",
    "F": "torch.nn.functional",
    "torchkeras": "torchkeras",
}
NOTEBOOKS = {  # {package: the notebook that shows it}
    "tensorflow": "more/05_tensorflow",
    "torch": "more/03_torch",
    "torchkeras": "more/05_tensorflow",
}
HERE = ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.For  # no imports


def resolve(asked):
    """(package, the names after it, the object) of a name such as "torch.nn.Linear"; None if it does not exist here.

    In a notebook that can import only the core, the result is always None.
    """
    first, *names = asked.split(".")
    if first not in PACKAGES or not all(names) or not names:
        return None
    package, *path = [*PACKAGES[first].split("."), *names]
    try:
        thing = importlib.import_module(f"levels_more.{package}")
        for name in path:
            thing = getattr(thing, name)
    except (ImportError, AttributeError):
        return None
    return package, path, thing


def module_file(folder, names):
    """(the file of the innermost module on this path of names, the names that remain)."""
    while names:
        module = folder / f"{names[0]}.py"
        if module.exists():
            return module, names[1:]
        if not (folder / names[0]).is_dir():
            break
        folder = folder / names[0]
        names = names[1:]
    return folder / "__init__.py", names


def line_of(root, package, path, thing):
    """(file, first line, last line) of this name in a package of `levels_more`; both lines are 0 if there is none.

    It is the statement that defines the name; otherwise the source of the class or function; otherwise the statement
    that imports the name or names its namespace.
    """
    *around, name = path
    file, around = module_file(root / "levels_more", [package, *around])
    others = sorted(file.parent.glob("*.py")) + sorted((root / "levels_more" / package).rglob("*.py"))
    files = dict.fromkeys([file, *others] if file.parent.name != "levels_more" else [file])
    made = named_in(files, around, name) or source_lines(root, thing)
    return made or named_in(files, around, name, ast.AST) or named_in([file], [], *around[-1:]) or (file, 0, 0)


def named_in(files, around, name=None, kinds=HERE):
    """(file, first line, last line) of the best statement of these kinds for a name, inside `around`; or None."""
    found = []  # (how good a place it is, file, lines)
    for order, each in enumerate(files):
        for statement in ast.parse(each.read_text(encoding="utf-8")).body:
            inside = not around or around[-1] in names_bound(statement)
            for sort, first, last in places_in(statement, name) if isinstance(statement, kinds) else ():
                found.append(((not inside, sort > 1, order, sort, first), each, first, last))
    return min(found)[1:] if found else None


def source_lines(root, thing):
    """(file, first line, last line) of a class or function in `levels_more`, or None."""
    try:
        file = inspect.getsourcefile(thing) or ""
        lines, first = inspect.getsourcelines(thing)
    except (TypeError, OSError):
        return None
    file = Path(file).resolve()
    return (file, first, first + len(lines) - 1) if root / "levels_more" in file.parents else None


def names_bound(statement):
    """The names that a top-level statement binds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    if hasattr(statement, "name"):
        return [statement.name]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def places_in(statement, name):
    """Yield (kind, first line, last line) of a name: 0 bound, 1 a method, key or keyword, 2 a word in a string list."""
    if name in names_bound(statement):
        yield 0, statement.lineno, statement.end_lineno
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.keyword):
            if name == getattr(node, "name", getattr(node, "arg", None)):
                yield 1, node.lineno, node.end_lineno
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    yield 1, key.lineno, value.end_lineno
        elif isinstance(node, ast.Constant) and name in str(node.value).split() and re.fullmatch(r"[\w ]+", node.value):
            yield 2, node.lineno, node.end_lineno
