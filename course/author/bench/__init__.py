"""Benchmarks of `levels` against the libraries that a reader would use instead: `python3 -m course bench`.

Each library runs in its own process, with the Python in which it is installed (`worker.py`). First, its results are
compared with a reference. Then all libraries are timed in turns, and medians are compared. A library that is missing,
or computes something else, is listed but not timed. Those Pythons import this package, so it imports nothing.
"""
