"""What builds on the five levels, in packages of the same names: `from levels_more.high_level import EarlyStopping`.

`hardware`, `kernels`, `low_level`, `mid_level` and `high_level` have all names of `levels`, some as subclasses, and
more. `compiler` turns graphs into programs. `saving`, `distributed` and the APIs `tensorflow`, `torch` and `torchkeras`
build on these. Importing a package adds rows to the tables of `levels` and replaces none.
"""

import contextlib
import sys


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


class FilesOfVersion1:
    """The last finder on `sys.meta_path`. For a file of version 1 it raises an error that says where that is now."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return None: this finds nothing. Raises ModuleNotFoundError for a file of version 1."""
        package, _, file = name.partition(".")
        if package != __name__ or not file:
            return
        from levels_more.moved import told, wanted_names

        if text := told(file, wanted_names()):
            raise ModuleNotFoundError(text, name=name)


if not any(type(finder).__name__ == FilesOfVersion1.__name__ for finder in sys.meta_path):
    sys.meta_path.append(FilesOfVersion1())


def __getattr__(name):
    """Raise the error for a missing name. For a file of version 1 it says where that file is now."""
    from levels_more.missing import missing
    from levels_more.moved import told

    raise missing(told(name) or f"module 'levels_more' has no attribute {name!r}", name)
