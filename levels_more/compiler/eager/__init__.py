"""Optimisations of eager mode, behind one switch: one program takes the place of several launches.

    from levels_more.compiler.eager import ACCELERATION
    ACCELERATION.on = False

Then every op is planned and launched separately, as levels 2 and 3 build it: slower, and in float64 with the same bits.
Each of these parts checks the switch:

    part                                   with the switch on
    compiler/eager/small_ops               a small launch runs a program of level 1, not a loop that numba compiled
    compiler/eager/backward                the backward pass over a tape of a known structure is one program
    mid_level/update_program               the step of an optimizer is one program
    high_level/loop                        several short epochs are one call

A function that is already compiled keeps its program.
"""

from levels.kernels import PLANS
from levels.support.checks import check_bool


class Acceleration:
    """The switch, for all threads: `on` is True or False. Setting it raises TypeError for anything else."""

    on: bool

    def __init__(self):
        self.on = True

    def __setattr__(self, name, value):
        super().__setattr__(name, check_bool(f"ACCELERATION.{name}", value))
        PLANS.clear()  # cached plans were made for the old setting


ACCELERATION = Acceleration()
