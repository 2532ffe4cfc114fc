"""How a command speaks in a terminal: its arguments, its steps with their progress, and the causes of failures.

It imports nothing else of the course, and uses only the standard library and the syntax of Python 3.7, because it runs
before the environment exists.
"""
