"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {
    "levels.low_level": {
        "passes": "cse constant_fold",
        "gradients": "backward grad stop_gradient",
        "placing": "device moved",
        "tensor_ops": "arg_max cast cat concat log_softmax maximum minimum one_hot reduce_max reduce_min reshape slice_of "
        "softmax tanh transpose where",
    },
    "levels.low_level.nn": {"tensor_ops": "log_softmax softmax"},
    "method": {
        "gradients": "Operators.backward",
        "placing": "Operators.to",
        "tensor_ops": "Operators.slice",
    },
    "rule": {
        "gradients": "clip_grad copy log_softmax_grad relu_grad sigmoid_grad softmax_grad",
        "placing": "to",
        "tensor_ops": "arg_max broadcast_to cast concat equal gather less less_equal log_softmax maximum minimum not_equal "
        "one_hot power reduce_max reduce_min reshape scatter_add slice slice_grad softmax spread sqrt tanh transpose where",
    },
    "form": {
        "forms": "cast concat log_softmax log_softmax_grad reduce_max reduce_min slice slice_grad softmax softmax_grad",
    },
    "pass": {"passes": "all"},
    "guard": {"guards": "all"},
    "back end": {"fused": "all"},
}


@functools.cache
def _modules(what):
    """{row: the name of the module that enters it}"""
    return {name: module for module, names in CONTENTS.get(what, {}).items() for name in (module, *names.split())}


def enter(what, name):
    """The module that has entered the row `name` in the table `what`, or that adds this name to a front; else None."""
    module = _modules(what).get(name)
    return module and importlib.import_module(f"levels_more.{module}")
