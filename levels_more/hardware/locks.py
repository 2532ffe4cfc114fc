"""Decorators that cache results. One thread makes a result, while the others wait for it."""

import functools
import threading
import weakref


def _by_one_thread(make, made):
    """Return `make` with the dict `made` as its cache, {arguments: result}. Each result is made by one thread, once."""
    lock = threading.RLock()  # reentrant, because `make` may call this function again

    @functools.wraps(make)
    def kept(*args):
        found = made.get(args, made)  # `made` itself means: not cached yet
        if found is made:
            with lock:
                found = made.get(args, made)
                if found is made:
                    found = made[args] = make(*args)
        return found

    kept.cache_clear = made.clear
    return kept


def once(make):
    """Decorate a function: its result for given arguments is made once and cached for ever.

    With `functools.cache`, two threads may make two results, and one is kept. That is enough if the results are
    interchangeable. It is not if a result owns machine code that runs, or is changed later.
    """
    return _by_one_thread(make, {})


def while_held(make):
    """Like `once`, for programs of many sizes: a result is cached only as long as something else refers to it."""
    return _by_one_thread(make, weakref.WeakValueDictionary())
