"""The cases of the functions that a reader writes at the depth *most* only."""

from course.reader.cases.at_most import (  # noqa: F401 (their cases)
    compiled,
    functions,
    hardware,
    high_level,
    kernels,
    low_level,
    mid_level,
)
