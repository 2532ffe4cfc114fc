"""The lock for objects that are created on first use: one thread creates them, and the others wait."""

import functools
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


def built_once(build_for):
    """Decorate a layer's `build_for`: it runs once, and other threads wait. Meanwhile the layer is `building`."""

    @functools.wraps(build_for)
    def once(layer, *given):
        with MAKING:
            if not layer.built:
                layer.building = True
                try:
                    build_for(layer, *given)
                finally:
                    layer.building = False
                layer.built = True

    return once
