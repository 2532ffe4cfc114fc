"""Names: those that a statement defines and uses, and the meaning of each name in the notebook."""

import ast
import builtins
import functools
import re
import symtable
from dataclasses import dataclass, field
from typing import NamedTuple

from course.reader.notebooks.cells import Cell, is_import

BUILTINS = set(dir(builtins)) - {"display", "get_ipython"}  # these two are IPython's: a built level lacks them
NOT_HANDED_ON = (ast.For, ast.While, ast.With, ast.Try)  # they define loop variables, or libraries that may be missing


class Import(NamedTuple):
    """One imported name: `import name as alias`, or `from module import name as alias`."""

    module: str
    name: str
    alias: str


@dataclass
class Names:
    """The names that a statement defines, needs from outside, may need from outside, and rebinds with `global`.

    It may need names that a class body both reads and assigns (`matmul = matmul`), and names in quoted annotations.
    """

    defines: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    may_need: set[str] = field(default_factory=set)
    rebinds: set[str] = field(default_factory=set)


class Scoped(ast.NodeTransformer):
    """Turn comprehensions into generators: since 3.12, `symtable` reports comprehension variables as the module's."""

    def visit_ListComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    def visit_DictComp(self, node):
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)

    visit_SetComp = visit_ListComp


def names_of(statement: ast.stmt) -> Names:
    return names_in(ast.unparse(statement))


@functools.cache
def names_in(code: str) -> Names:
    """The names of a statement, given as text. (`Scoped` changes what it visits, so it needs a tree of its own.)"""
    statement = ast.parse(code)
    names = Names()
    for node in ast.walk(statement):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            for quoted in ast.walk(annotation) if annotation else ():
                if isinstance(quoted, ast.Constant) and isinstance(quoted.value, str):
                    names.may_need |= set(re.findall(r"\b[A-Za-z_]\w*", quoted.value))
    top = symtable.symtable(ast.unparse(Scoped().visit(statement)), "cell", "exec")
    tables = [top]
    for table in tables:  # grows during the loop
        tables += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
            if table is top and bound:
                names.defines.add(name)
            elif symbol.is_referenced() and (table is top or symbol.is_global()):
                names.needs.add(name)
            elif symbol.is_referenced() and table.get_type() == "class" and symbol.is_local():
                names.may_need.add(name)
            if symbol.is_declared_global() and bound:
                names.rebinds.add(name)
    return names


class Namespace:
    """The meanings of a notebook's names: for each, the cell that defines it, or the imports that provide it."""

    def __init__(self, cells: list[Cell]):
        self.rooms = list(dict.fromkeys(cell.room for cell in cells if cell.room))
        self.homes: dict[str, Cell] = {}
        self.imports: dict[str, dict[Import, Cell]] = {}
        self.plain: dict[str, Cell] = {}  # defined in cells that are not exported
        self.public: set[str] = set()  # exported by the level
        for cell in cells:
            for statement in cell.body:
                if is_import(statement):
                    for alias in statement.names:
                        entry = Import(getattr(statement, "module", "") or "", alias.name, alias.asname or "")
                        self.imports.setdefault((entry.alias or entry.name).split(".")[0], {}).setdefault(entry, cell)
                elif cell.room:
                    self.define(statement, cell)
                else:
                    self.plain |= dict.fromkeys(names_of(statement).defines, cell)
        for name in sorted(self.homes.keys() & self.imports.keys()):
            raise self.homes[name].error(f"{name} is imported too, in {self.where_imported(name)}: rename one of them")

    def define(self, statement: ast.stmt, cell: Cell) -> None:
        names = names_of(statement)
        for name in sorted(names.rebinds | names.defines - {"_"}):
            if name in names.rebinds or name in self.homes:
                how = "by `global`" if name in names.rebinds else f"after {self.homes[name]}"
                cure = f"give each its own name, or change a container ({name.upper()} = []) instead"
                raise cell.error(f"{name} is bound again, {how}, and other rooms would keep the old one: {cure}")
            self.homes[name] = cell
        if not isinstance(statement, NOT_HANDED_ON):
            self.public |= {name for name in names.defines if not name.startswith("_")}

    def imports_for(self, statement: ast.stmt, cell: Cell) -> set[Import]:
        """Return the imports that a statement needs in its room. Raises BuildError if a name cannot be imported."""
        names = names_of(statement)
        found = set()
        for name in sorted(names.needs | names.may_need):
            home = self.homes.get(name)
            if home and self.rooms.index(home.room) < self.rooms.index(cell.room):
                found.add(Import(f".{home.room}", name, ""))
            elif home and home.room != cell.room and name in names.needs:
                what = f"{name} is used here in room {cell.room}, but {home} defines it in {home.room}"
                raise cell.error(
                    f"{what}, which opens later: move one of them, or fill a container of the earlier room"
                )
            elif not home and name in self.imports:
                found |= self.imported(name, cell)
            elif not home and name in names.needs and name not in BUILTINS | {"_"}:
                hint = f"; {self.plain[name]} does, but is not exported" if name in self.plain else ""
                raise cell.error(f"{name} is undefined: no exported cell defines it and no cell imports it{hint}")
        return found

    def imported(self, name: str, cell: Cell) -> set[Import]:
        found = self.imports[name]
        if len(found) > 1 and any(entry.module or entry.alias for entry in found):  # `import a.b`, `import a.c` is fine
            raise cell.error(f"{name} is used here and imported in different ways, in {self.where_imported(name)}")
        for entry in found:
            if (entry.module or entry.name).split(".")[0] == "course":
                raise cell.error(f"{name} is imported from course, which no level may use: levels stand alone")
        return set(found)

    def where_imported(self, name: str) -> str:
        return " and ".join(str(cell) for cell in self.imports[name].values())
