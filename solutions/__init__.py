"""One solution of each exercise, and plausible wrong ones that its check must reject: one module a notebook.

SOLUTIONS: "01-1" -> a function or a class; WRONG: "01-1" -> {what is wrong: a function or a class}.
`tests/test_exercises.py` holds them.
"""
