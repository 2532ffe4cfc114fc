"""Nothing stands on a trick: no line that assigns three things and runs on, no class that leaves its base unmade."""

import ast
import functools
import importlib
import inspect
import io
import textwrap
import tokenize
from collections import Counter

from course.author.build import ROOT

WIDTH = 92  # characters of code, the comment behind it not counted
FILES = sorted(path for package in ("levels", "levels_more") for path in (ROOT / package).rglob("*.py"))


def leaves(target):
    """The single things that a target of an assignment names: one, or those of a tuple."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [leaf for part in target.elts for leaf in leaves(part)]
    return [target]


def dense(text):
    """{number of a line: that line}, of those that assign three things or more in over 92 characters of code."""
    assigned = Counter()
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)):
            assigned.update(leaf.lineno for target in targets for leaf in leaves(target))
    lines = dict(enumerate(text.splitlines(), 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0]] = token.line[: token.start[1]].rstrip()
    return {n: lines[n] for n, count in assigned.items() if count >= 3 and len(lines[n]) > WIDTH}


def test_a_dense_line_is_found():
    long = "a" * 60
    assert [*dense(f"x = 1\n{long}, b, c = 1, 2, 345678901234567\n")] == []
    assert [*dense(f"x = 1\n{long}, b, c = 1, 2, 3456789012345678901\n")] == [2]
    assert [*dense(f"(self.{long}, b), c = f(k=1, m=2), 3, 4, 5, 6\n")] == [1]
    assert [*dense(f"{long} = b = {long[:30]}\nc = {long}(k=(d := 1), m=(e := 2), number_of_all=3)\n")] == [2]
    assert [*dense(f"a, b, c = 1, 2, 3  # {long * 2}\n{long} = f(k=1, m=2, n=3, {long}=4)\n")] == []


def test_no_line_assigns_three_things_and_runs_on():
    found = {str(path.relative_to(ROOT).as_posix()): dense(path.read_text(encoding="utf-8")) for path in FILES}
    told = [f"{path}:{n}: {line.strip()}" for path, lines in found.items() for n, line in lines.items()]
    assert not told, "\n".join(told)


def calls_init(kind):
    """Whether a class's own `__init__` calls that of a base."""
    calls = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(kind.__init__))))
    return any(isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "__init__" for node in calls)


def made_in(files, kind):
    """Whether a class has an `__init__` of its own that somebody wrote in one of these files."""
    own = vars(kind).get("__init__")
    return inspect.isfunction(own) and own.__code__.co_filename in files


def test_a_class_without_its_base_is_found():
    class Base:
        def __init__(self):
            self.a = 1

    class Derived(Base):
        def __init__(self):
            self.b = 2

    class Whole(Base):
        def __init__(self):
            super().__init__()

    assert [(made_in([__file__], kind), calls_init(kind)) for kind in (Derived, Whole)] == [(True, False), (True, True)]


def test_no_class_leaves_its_base_unmade():
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES]
    kinds = {kind for name in names for kind in vars(importlib.import_module(name)).values() if inspect.isclass(kind)}
    ours = functools.partial(made_in, {*map(str, FILES)})
    derived = [kind for kind in kinds if ours(kind) and any(map(ours, kind.__mro__[1:]))]
    assert len(derived) > 20
    assert {f"{kind.__module__}.{kind.__qualname__}" for kind in derived if not calls_init(kind)} == set()
