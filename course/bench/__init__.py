"""`levels`, measured against what a reader would use instead: `python3 -m course bench`.

Each library works in a process of its own, run by the Python that has it (`worker.py`), and first shows that it
computes the same. Then all take turns; medians are compared. What is not there, or does something else, is told, not
timed. Those Pythons import this package, so nothing is imported here.
"""
