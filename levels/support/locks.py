"""What is made when it is first used is made by one thread, while the others wait for it."""

import functools
import threading

# Held by whoever makes what an object needs on its first use: a plan its program, a layer its variables. One lock serves them
# all, so that no two threads can wait for each other; what is made may make more in turn.
MAKING = threading.RLock()


def once(make):
    """Decorate a function: what it gives for some arguments is made once and kept for ever.

    `functools.cache` lets two threads make two, and keeps one. That is enough where the two are equal. It is not where one of
    them owns machine code that runs, or is changed later. A thread that makes may need this very function again.
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
