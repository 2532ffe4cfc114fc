"""What stands on a page: the source of a function, highlighted."""

import inspect
import textwrap

from IPython.display import Markdown


def source(*objects):
    """The source of functions, methods and classes, as highlighted code. Raises TypeError for what has none."""
    texts = [textwrap.dedent(inspect.getsource(getattr(each, "py_func", each))) for each in objects]  # numba's have one
    return Markdown("```python\n" + "\n\n".join(texts) + "```")
