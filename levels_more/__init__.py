"""What builds on the five levels, in packages of the same names: `from levels_more.high_level import EarlyStopping`.

`hardware`, `kernels`, `low_level`, `mid_level` and `high_level` have all names of `levels`, some as subclasses, and
more. `compiler` turns graphs into programs. `saving`, `distributed` and the APIs `tensorflow`, `torch` and `torchkeras`
build on these. Importing a package adds rows to the tables of `levels` and replaces none.
"""

import contextlib


@contextlib.contextmanager
def needed():
    """Context manager around the import of an optional package: if it is missing, the error says how to install it.

    Raises ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error.name.partition(".")[0]) from None


def not_installed(package):
    """Return the ModuleNotFoundError for this missing package. It says how to install it."""
    return ModuleNotFoundError(f"{package} is not installed: `python3 -m course setup` adds it", name=package)
