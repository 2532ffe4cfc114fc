"""Keras' names for classes, and for layers that are given none: dense, dense_1, dense_2, …"""

import itertools
import re
from collections import defaultdict

_COUNTS = defaultdict(itertools.count)  # a name -> the number of the next layer of that name


def snake_case(name):
    """Keras' name for a class: BinaryAccuracy -> binary_accuracy, KLDivergence -> kl_divergence."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def numbered(name):
    """The name for the first layer that asks for it in this process, then name_1, name_2, …, as in Keras."""
    number = next(_COUNTS[name])
    return f"{name}_{number}" if number else name


def count_anew():
    """Let the next layers be called dense, dense_1, … again, as Keras' `clear_session` does."""
    _COUNTS.clear()
