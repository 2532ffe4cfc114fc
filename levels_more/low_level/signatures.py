"""Signatures that show every argument of a class, including those that it passes to its base class."""

import inspect
from inspect import Parameter


class Arguments:
    """A descriptor for the attribute `__signature__` of a class, which `help`, Shift+Tab and completion show."""

    def __get__(self, instance, kind):
        if instance is not None:  # calling a layer has another signature
            raise AttributeError("__signature__")
        inits = [vars(base)["__init__"] for base in kind.__mro__ if "__init__" in vars(base) and base is not object]
        return inspect.Signature(_parameters(inits))


class Options:
    """The same descriptor for a class whose arguments are the entries of its table `options`."""

    def __get__(self, instance, kind):
        if instance is not None:
            raise AttributeError("__signature__")
        rows = kind.options.items()
        return inspect.Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=x) for name, x in rows])


def _parameters(inits):
    """Return the parameters of the first function, with those of the next ones in place of its *args and **options."""
    if not inits:
        return []
    own = [*inspect.signature(inits[0]).parameters.values()][1:]
    kinds = {p.kind for p in own}
    plain = [p for p in own if p.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]
    if Parameter.VAR_KEYWORD not in kinds:
        return own
    names = {p.name for p in plain}
    rest = [p for p in _parameters(inits[1:]) if p.name not in names]
    if Parameter.VAR_POSITIONAL not in kinds:
        rest = [
            p.replace(kind=Parameter.KEYWORD_ONLY) if p.kind is Parameter.POSITIONAL_OR_KEYWORD else p for p in rest
        ]
    return sorted([*rest, *plain] if Parameter.VAR_POSITIONAL in kinds else [*plain, *rest], key=lambda p: p.kind)
