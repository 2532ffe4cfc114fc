"""Show the source of a function on a page, highlighted."""

import inspect
import textwrap

from IPython.display import Markdown


def source(*objects):
    """The source of functions, methods and classes, as highlighted code. Raises TypeError for one without source."""
    texts = [textwrap.dedent(inspect.getsource(getattr(each, "py_func", each))) for each in objects]  # of numba
    return Markdown("```python\n" + "\n\n".join(texts) + "```")
