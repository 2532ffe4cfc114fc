"""The levels beside each other: what a reader asks for. How it is measured and laid out stands in `course/inspection/`."""

from course.inspection.compare import cost, lines, measure, microseconds, operations, step_time

__all__ = ["cost", "lines", "measure", "microseconds", "operations", "step_time"]
