"""What a notebook's kernel imports: data sets, figures, comparisons, checks, exercises, and the notebooks as files.

It never imports from `author` or `teacher`, which import from here.
"""
