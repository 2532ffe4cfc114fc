"""Functions to compare the levels in a notebook. `course/reader/inspection/` measures and formats the comparisons."""

from course.reader.inspection.compare import (
    by_op,
    measure,
    operations,
    program_cost,
    program_of,
    step_time,
)
from course.reader.inspection.comparison import costs
from course.reader.inspection.side_by_side import SideBySide as side_by_side

__all__ = [
    "by_op",
    "costs",
    "measure",
    "operations",
    "program_cost",
    "program_of",
    "side_by_side",
    "step_time",
]
