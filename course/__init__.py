"""The stage: everything around the five notebooks that is not taught by them. Written by hand."""


def __getattr__(name):
    """`course.where`, loaded on first use: the command line starts with this package and waits for nothing."""
    if name == "where":
        from course.places import where

        return where
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
