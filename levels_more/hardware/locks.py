"""What is made once is made by one thread, while the others wait for it."""

import functools
import threading


def once(make):
    """Decorate a function: what it gives for some arguments is made once and kept for ever.

    `functools.cache` lets two threads make two, and keeps one. That is enough where the two are equal. It is not where
    one of them owns machine code that runs, or is changed later. A thread that makes may need this very function again.
    """
    made, lock = {}, threading.RLock()

    @functools.wraps(make)
    def kept(*args):
        found = made.get(args, made)  # `made` itself: there is nothing yet
        if found is made:
            with lock:
                if args not in made:
                    made[args] = make(*args)
                found = made[args]
        return found

    kept.cache_clear = made.clear
    return kept
