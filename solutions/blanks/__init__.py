"""The course's own functions for the blanks of each notebook, as text: `course.reader.notebooks.blanks` lays them into their cells.

Nobody imports these modules; a function here may use every name of its notebook. One module a level, one function a blank,
called by its key.
"""
