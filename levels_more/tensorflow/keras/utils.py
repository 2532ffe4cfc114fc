"""`tf.keras.utils`."""

from levels.low_level import one_hot, set_seed

set_random_seed = set_seed


def to_categorical(y, num_classes=None):
    """Numbers of classes as rows of 0 and 1, a NumPy array."""
    return one_hot(y, int(max(y)) + 1 if num_classes is None else num_classes).numpy()
