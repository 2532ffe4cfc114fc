"""The pictures of the course. The title of each states its finding, and its text repeats it in words."""

from course.reader.figures.characters import attention, stages
from course.reader.figures.matrices import ORDERS, loop_order
from course.reader.figures.memory import (
    accumulators,
    bandwidths,
    farthest,
    host_caches,
    ladder,
    roofline,
    staircase,
    step_cost,
)
from course.reader.figures.picture import (
    BLANK,
    DATA,
    GREY,
    HUES,
    LEVELS,
    MODEL,
    Picture,
    binary,
    ink,
    plain,
    short,
    styled,
    tint,
    you_are_here,
)
from course.reader.figures.pipeline import pipeline, timeline
from course.reader.figures.tape import tape_backwards, walk_of_squared_error
from course.reader.figures.training import (
    accuracy,
    before_and_after,
    by_heart,
    classes,
    classifier,
    confusion,
    five_curves,
    parting,
    r_squared,
    regression,
    scatter_inputs,
)
