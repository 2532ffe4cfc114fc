"""The environment, the reader's copies of the notebooks, and a browser. `__main__.py` is the entry point.

The modules that run before the environment exists use only the standard library and the syntax of Python 3.7:
`environment`, `making`, `wheelhouse`, and those of `course.terminal`.
"""
