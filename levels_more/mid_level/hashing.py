"""Categories: which values stand for none, and their hashes, the same on every machine."""

import hashlib

import numpy as np


def fingerprint(value):
    """The 8-byte hash of a text, a whole number or a tuple of these: the same on every machine (BLAKE2b, RFC 7693).

    The number 7 and the text "7" have the same hash. Raises TypeError for other values.
    """
    if not isinstance(value, (str, int, np.integer, tuple)):
        raise TypeError(f"{value!r} is no category; expected text, a whole number, or a bucketized_column")
    # The parts of a tuple are eight bytes each, so ("ab", "c") is not ("a", "bc").
    data = b"".join(map(fingerprint, value)) if isinstance(value, tuple) else str(value).encode()
    return hashlib.blake2b(data, digest_size=8).digest()


def is_missing(value):
    """Whether a value stands for no category: None, NaN, "", "NA", or TensorFlow's -1."""
    return value is None or value != value or value in ("", "NA", -1)  # only NaN differs from itself


def bucket_of(value, count):
    """Which of `count` buckets a category falls into."""
    return int.from_bytes(fingerprint(value), "little") % count
