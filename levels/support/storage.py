"""Storage of a variable's tensor. Threads may share it, and a compiled program may overwrite its numbers in place."""

import itertools
import struct
import threading
from ctypes import addressof, c_char

from .checks import check_bool
from .operators import of_several_ops

CREATED = itertools.count()  # numbers the variables in the order of their creation
_bytes_of = (c_char * 0).from_buffer  # `addressof` of it is `array.ctypes.data`, in a fifth of the time


def address_of(array):
    """Return the address of the first number of an array."""
    return addressof(_bytes_of(array))


def alias(x):
    """Return a new tensor that shares the numbers, shape and dtype of x: tapes identify tensors by object identity."""
    return type(x)(x.spec, x.data, x if x.source is None else x.source)


class Storage:
    """Holds a tensor, `current`. `pinned` is None, or the address at which a program overwrites it under the `lock`."""

    def __init__(self, tensor, name, trainable):
        self.name, self.trainable = name, check_bool("trainable", trainable)
        self.spec, self.current, self.pinned = tensor.spec, alias(tensor), None
        self.created, self.lock = next(CREATED), threading.Lock()

    shape = property(lambda self: self.spec.shape)
    dtype = property(lambda self: self.spec.dtype)
    device = property(lambda self: self.spec.device)
    assign_add = of_several_ops("assign_add")
    assign_sub = of_several_ops("assign_sub")

    def numpy(self):
        """Return a copy of the numbers of its `value` as a NumPy array."""
        return self.value.numpy()

    def check_assigned(self, value):
        """Raise ValueError unless a value has this shape, dtype and device. (Of equal Specs, there is only one.)"""
        if value.spec is not self.spec:
            raise ValueError(f"assign: the variable is {self.spec}, the value {value.spec}")

    def no_step(self, value):
        """Raise TypeError, because `w -= 1.0` would replace the variable with a tensor."""
        raise TypeError("w += … or w -= … is no step of a variable; write w.assign(w + …) or w.assign(w - …)")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = no_step

    def set_value(self, tensor):
        """Set the current tensor directly. (`assign` also informs tapes and traces.)"""
        with self.lock:
            self.current, self.pinned = alias(tensor), None

    def read_value(self):
        """Return the current tensor directly. It is the same object until the next assignment."""
        current = self.current
        if self.pinned is not None:  # a program writes there; now the caller has access to the numbers
            with self.lock:
                current, self.pinned = self.current, None
        return current


def makes_variables(graph, newest, again=False):
    """Return whether the graph has variables created after `newest` was taken from CREATED. `again` raises ValueError."""
    read = [node.source for node in graph.nodes if node.op == "variable"]
    made = any(variable.created > newest for variable in (*read, *graph.updates))
    if made and again:
        raise ValueError("a variable is made in every call of this function; make it once, outside")
    return made


def settled(traced):
    """Return the graph and the result of `traced()`, once more if it made variables, as layers do in a first call.

    Raises ValueError if the second trace makes variables again.
    """
    for again in (False, True):
        newest = next(CREATED)
        graph, result = traced()
        if not makes_variables(graph, newest, again):
            return graph, result


def pinned_address(variable, to_write=True):
    """Return the address of a variable's numbers, or with `to_write` of a private copy to overwrite. Hold its lock."""
    if variable.pinned is None and to_write:
        private = type(variable.current)(variable.spec, variable.current.data.copy())
        variable.pinned, variable.current = address_of(private.data), private
    return variable.pinned or address_of(variable.current.data)


class LockAll:
    """In a `with` block, holds the locks of these variables. They are acquired in one order, to avoid a deadlock."""

    def __init__(self, variables):
        self.locks = [variable.lock for variable in sorted(variables, key=lambda variable: variable.created)]

    def __enter__(self):
        for lock in self.locks:
            lock.acquire()

    def __exit__(self, *_):
        for lock in self.locks:
            lock.release()


class Block:
    """The argument block of a program: its sizes, the addresses of arrays, and those of the variables, as whole numbers.

    `updated` are the variables that the program overwrites. Hold the `locks` while the program runs.
    """

    def __init__(self, words, variables, updated):
        self.pack = struct.Struct(f"{len(words)}q").pack
        self.variables = [(variable, variable in updated) for variable in variables]
        self.locks = LockAll(variables)

    def words(self, sizes, arrays):
        """Return the block for these sizes and arrays. Hold the locks."""
        addresses = [*map(address_of, arrays)]
        for variable, updated in self.variables:
            addresses.append(variable.pinned or pinned_address(variable, updated))
        return self.pack(*sizes, *addresses)
