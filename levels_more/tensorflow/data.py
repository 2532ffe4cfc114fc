"""`tf.data`: AUTOTUNE is a number of our own choice."""

from types import SimpleNamespace

from levels.mid_level import Dataset as _Dataset

AUTOTUNE = -1
experimental = SimpleNamespace(AUTOTUNE=AUTOTUNE)


class Dataset(type(_Dataset.from_tensor_slices(([0],)))):
    """That of level 4; what runs ahead, and in how many threads, is settled there."""

    def prefetch(self, buffer_size):
        return super().prefetch(2 if buffer_size == AUTOTUNE else buffer_size)

    def map(self, map_func, num_parallel_calls=None, deterministic=None):
        return super().map(map_func)

    def as_numpy_iterator(self):
        """Its elements as NumPy arrays."""
        for element in self:
            yield tuple(x.numpy() for x in element) if isinstance(element, tuple) else element.numpy()
