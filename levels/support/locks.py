"""The lock for objects that are created on first use: one thread creates them, and the others wait."""

import threading

# Held while something is created on first use: the program of a plan, the variables of a layer. There is only one such
# lock, so that no two threads can deadlock. It is reentrant, because creating one object may create others.
MAKING = threading.RLock()


def compiled_once(plan):
    """Return the program of a plan, made by plan.lower() on first use: one thread compiles, the others wait."""
    with MAKING:
        if plan.compiled is None:
            plan.compiled = plan.lower()
    return plan.compiled
