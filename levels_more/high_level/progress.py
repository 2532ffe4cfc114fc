"""What is shown of a training while it runs, and Ctrl-C."""

import signal
import sys
import threading
from contextlib import contextmanager

from levels.support.checks import check_bool
from levels_more.checks import as_python


@contextmanager
def hold_interrupts():
    """Inside this `with` block Ctrl-C only appends to the list it yields. (Only the main thread may handle signals.)"""
    pressed, heard = [], threading.current_thread() is threading.main_thread()
    before = heard and signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        if heard:
            signal.signal(signal.SIGINT, before)


def shows_bars():
    """Whether a progress bar can be shown: in a terminal or a notebook. In a file it would be unreadable."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def progress(data, epochs):
    """A progress bar for so many passes over Batches."""
    from tqdm.auto import tqdm  # imported here, because it is slow to import

    return tqdm(total=None if data.arrays is None else epochs * int(data.order.length), unit=" steps")


def verbosity(verbose):
    """Keras' `verbose` as an int: True and "auto" are 1, False is 0. Raises TypeError for other values."""
    verbose = verbose if type(verbose) is int else as_python(verbose)
    return verbose if type(verbose) is int else int(verbose == "auto" or check_bool("fit: verbose", verbose))
