"""A solution of each exercise, others in another style, and plausible wrong ones that its check must reject.

One module a notebook. SOLUTIONS: "01-1" -> a function or a class; ALSO_RIGHT: "01-1" -> {its style: a function or a class};
WRONG: "01-1" -> {what is wrong: a function or a class}.
`tests/course/reader/exercises/test_exercises.py` holds them.
"""
