"""Numbers for TensorBoard, written by a loop of one's own."""

import contextlib

import numpy as np

from levels_more import needed
from levels_more.tensorflow.nested import known_now


class FileWriter:
    """Writes numbers for TensorBoard to a folder, those of the `with writer.as_default()` block."""

    stack = []

    def __init__(self, logdir):
        with needed():
            from tensorboardX import SummaryWriter

        self.writer = SummaryWriter(str(logdir))
        self.flush, self.close = self.writer.flush, self.writer.close

    @contextlib.contextmanager
    def as_default(self, step=None):
        """Inside this `with` block `scalar` and `histogram` write here, of this step unless they say one."""
        self.stack.append((self.writer, step))
        try:
            yield self
        finally:
            self.stack.pop()[0].flush()


def _written(method, convert):
    def write(name, data, step=None):
        known_now(f"summary {name}")
        for writer, default in FileWriter.stack[-1:]:
            getattr(writer, method)(name, convert(data), int(default if step is None else step))

    return write


scalar, histogram = _written("add_scalar", float), _written("add_histogram", np.asarray)
