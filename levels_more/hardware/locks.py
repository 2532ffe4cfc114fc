"""What is made once is made by one thread, while the others wait for it."""

import functools
import threading
import weakref


def _by_one_thread(make, made):
    """The function that gives what `make` gives, made once for its arguments, and kept in that dict."""
    lock = threading.RLock()  # a thread that makes may need this very function again

    @functools.wraps(make)
    def kept(*args):
        found = made.get(args, made)  # `made` itself: there is nothing yet
        if found is made:
            with lock:
                found = made.get(args, made)
                if found is made:
                    found = made[args] = make(*args)
        return found

    kept.cache_clear = made.clear
    return kept


def once(make):
    """Decorate a function: what it gives for some arguments is made once and kept for ever.

    `functools.cache` lets two threads make two, and keeps one. That is enough where the two are equal. It is not where
    one of them owns machine code that runs, or is changed later.
    """
    return _by_one_thread(make, {})


def while_held(make):
    """The same for programs of certain sizes: one is kept as long as something refers to it, and then given back."""
    return _by_one_thread(make, weakref.WeakValueDictionary())
