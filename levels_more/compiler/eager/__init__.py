"""What makes eager mode quick: one program takes the place of several launches, and in float64 the bits stay.

    part                                   what it does
    compiler/eager/small_ops               a small launch runs a program of level 1, not a loop that numba compiled
    compiler/eager/backward                the backward pass over a tape of a known structure is one program
    mid_level/update_program               the step of an optimizer is one program

A function that is already compiled keeps its program.
"""
