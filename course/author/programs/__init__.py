"""Run the programs of `course.reader.programs` on the real libraries, and those of two books as they are printed."""
