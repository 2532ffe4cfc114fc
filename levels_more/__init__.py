"""What is built on the five levels, in rooms of the same names: `from levels_more.high_level import EarlyStopping`.

`hardware`, `kernels`, `low_level`, `mid_level` and `high_level` have all names of `levels` and more, as subclasses;
`compiler` makes programs of graphs. On them stand `saving`, `distributed`, and three spellings: `tensorflow`, `torch`,
`torchkeras`. Importing a room adds rows to the tables of `levels`, and replaces none.
"""

import contextlib


@contextlib.contextmanager
def needed():
    """Around the import of a package that not every environment has: where it is missing, it is said what adds it.

    Raises ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error.name.partition(".")[0]) from None


def not_installed(package):
    """The error that says so, and what adds the package."""
    return ModuleNotFoundError(f"{package} is not installed: `python3 -m course setup` adds it", name=package)


def __getattr__(name):
    """What a name of version 1 is called now, for whoever imports it."""
    from levels_more.missing import missing
    from levels_more.moved import told

    raise missing(told(name) or f"module 'levels_more' has no attribute {name!r}", name)
