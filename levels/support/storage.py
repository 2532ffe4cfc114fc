"""Where a variable keeps its tensor: threads may share it, and a compiled program may overwrite its numbers."""

import itertools
import threading
from ctypes import addressof, c_char

from .operators import of_several_ops

CREATED = itertools.count()  # numbers variables in the order in which they are made
_bytes_of = (c_char * 0).from_buffer  # its `addressof` is `array.ctypes.data`, and takes a fifth of its time


def address_of(array):
    """The address at which the numbers of an array begin."""
    return addressof(_bytes_of(array))


def renamed(x):
    """The numbers, shape and dtype of a tensor x, shared, as another tensor: a tape knows a tensor by who it is."""
    return type(x)(x.spec, x.data, x if x.source is None else x.source)


class Storage:
    """Names a tensor, `current`. Where `pinned`, a program overwrites its numbers there, behind the `lock`."""

    def __init__(self, tensor):
        self.spec, self.current, self.pinned = tensor.spec, renamed(tensor), None
        self.created, self.lock = next(CREATED), threading.Lock()

    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)
    device = property(lambda self: self.spec.device)
    assign_add = of_several_ops("assign_add")
    assign_sub = of_several_ops("assign_sub")

    def no_step(self, value):
        """`w -= 1.0` would make a tensor of what was a variable. Raises TypeError."""
        raise TypeError("w += … or w -= … is no step of a variable; write w.assign(w + …) or w.assign(w - …)")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = no_step

    def replace(self, tensor):
        """Name this tensor, at once. (`assign` lets tapes and traces hear of it.)"""
        with self.lock:
            self.current, self.pinned = renamed(tensor), None

    def newest(self):
        """The tensor that it names, at once: the same one until it is assigned."""
        current = self.current
        if self.pinned is not None:  # a program writes there; now somebody knows the numbers
            with self.lock:
                current, self.pinned = self.current, None
        return current


def pinned_address(variable, to_write=True):
    """Where a program finds, or overwrites (`to_write`), a variable's numbers, behind its lock: nobody shares them."""
    if variable.pinned is None and to_write:
        private = type(variable.current)(variable.spec, variable.current.data.copy())
        variable.pinned, variable.current = address_of(private.data), private
    return variable.pinned or address_of(variable.current.data)


class LockAll:
    """Nobody else moves these variables' numbers in this `with` block. (In one order, or two would wait for ever.)"""

    def __init__(self, variables):
        self.locks = [variable.lock for variable in sorted(variables, key=lambda variable: variable.created)]

    def __enter__(self):
        for lock in self.locks:
            lock.acquire()

    def __exit__(self, *_):
        for lock in self.locks:
            lock.release()
