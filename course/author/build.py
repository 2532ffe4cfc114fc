"""The names of `course/builder/` that notebooks, tests and the command line use, as `build`."""

from course.builder.cells import blank_in, title
from course.builder.cli import check, main, run
from course.builder.execute import execute
from course.builder.files import COPY, copy_project, environment, replace, write_level
from course.builder.inputs import inputs_of, stale
from course.builder.names import MINE, ROOT, all_in, core_of, level_of, more_in, named, names_in, text_path, trail_in
from course.builder.notebooks import METADATA, essence, from_text, hash_of, read_notebook, write_notebook
from course.builder.session import level, watch, written_by
from course.builder.sitting import so_far
