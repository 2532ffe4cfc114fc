"""One solution of each exercise, and plausible wrong ones that its check must reject: one module a notebook.

SOLUTIONS: "01-1" -> the function; WRONG: "01-1" -> {what is wrong: the function}. `tests/test_exercises.py` holds them.
"""
