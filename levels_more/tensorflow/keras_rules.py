"""How a class of levels becomes one by Keras' rules: a base of these rules stands in front of it, or behind it."""


def by_rules(base, *kinds):
    """{name: a class by these rules}, each made of a base, which holds the rules, and a class of levels."""
    return {
        kind.__name__: type(kind.__name__, (base, kind), {"__doc__": kind.__doc__, "__module__": base.__module__})
        for kind in kinds
    }


def classes_of(module, kind):
    """The classes of that kind that a module defines, but for those whose names begin with an underscore."""
    of_module = (each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__)
    return [each for each in of_module if isinstance(each, type) and issubclass(each, kind) and each.__name__[0] != "_"]
