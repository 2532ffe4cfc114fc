"""`tf.keras.regularizers`."""

from levels.mid_level import L1, L2  # noqa: F401

l1, l2 = L1, L2
