"""The names of `course/author/builder/` that notebooks, tests and the command line use, as `build`."""

from course.author.builder.cli import check, main
from course.author.builder.execute import execute
from course.author.builder.files import COPY, copy_project, environment, write_level
from course.author.builder.inputs import inputs_of, stale
from course.author.builder.session import level, watch, written_by
from course.author.builder.sitting import so_far
from course.reader.files import replace
from course.reader.notebooks.cells import blank_in, title
from course.reader.notebooks.names import (
    MINE,
    ROOT,
    all_in,
    core_of,
    level_of,
    more_in,
    named,
    names_in,
    text_path,
    trail_in,
    translated_in,
)
from course.reader.notebooks.stored import METADATA, essence, from_text, hash_of, read_notebook, write_notebook
