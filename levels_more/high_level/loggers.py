"""Callbacks that write the numbers of a training to files: CSV, and TensorBoard's."""

import csv
import itertools
import os
import time
from pathlib import Path

from levels.high_level import Callback
from levels.low_level import Variable, dce, trace
from levels.support.checks import check_int
from levels_more import needed
from levels_more.checks import file_name
from levels_more.high_level.rows import unwrap_single
from levels_more.mid_level.notes import noted


class CSVLogger(Callback):
    """Writes the numbers of each epoch to a CSV file: a header, then a line for each epoch.

    The header has the names of the first epoch. Other names of later epochs are left out; missing ones stay empty.
    """

    def __init__(self, filename: str | os.PathLike):
        self.path = Path(file_name("CSVLogger: filename", filename))

    def on_train_begin(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("a", newline="", encoding="utf-8")
        self.rows = None

    def on_epoch_end(self, epoch, logs):
        logs = {"epoch": epoch, **logs}
        if self.rows is None:
            self.rows = csv.DictWriter(self.file, [*logs], extrasaction="ignore")
            self.file.truncate(0)  # only now, so that an earlier log is kept until an epoch is over
            self.rows.writeheader()
        self.rows.writerow(logs)
        self.file.flush()  # so that the file has each line as soon as its epoch is over

    def on_train_end(self):
        self.file.close()


_WRITERS = itertools.count()  # a number for each writer of TensorBoard's files


def graph_of(model):
    """The model's ops as TensorFlow's GraphDef, with the shapes of the last batch."""
    with needed():
        from tensorboardX.proto.graph_pb2 import GraphDef

    graph = dce(trace(lambda *x: model(unwrap_single(x)), noted(model, "input_specs"))[0])
    paths = {variable: path.replace(".", "/") for path, variable in model.named(Variable).items()}
    names = {}
    drawn = GraphDef()
    for number, node in enumerate(graph.nodes):
        nearest = max(node.inputs, key=lambda x: x.op == "variable", default=None)
        scope = names[nearest].rpartition("/")[0] if nearest else ""
        names[node] = paths.get(node.source) or f"{scope}/{node.op}_{number}".lstrip("/")
        added = drawn.node.add(name=names[node], op=node.op, input=[names[x] for x in node.inputs])
        shape = added.attr["_output_shapes"].list.shape.add()
        for size in node.spec.shape:
            shape.dim.add(size=size)
    return drawn


class TensorBoard(Callback):
    """Writes curves to log_dir/train and log_dir/validation; the graph; the weights every `histogram_freq` epochs.

    Raises TypeError for a model of the core.
    """

    def __init__(self, log_dir: str | os.PathLike = "logs", histogram_freq: int = 0):
        self.log_dir = Path(file_name("TensorBoard: log_dir", log_dir))
        self.histogram_freq = check_int(0, "TensorBoard: histogram_freq", histogram_freq)

    def on_train_begin(self):
        if not hasattr(self.model, "save"):
            raise TypeError("TensorBoard draws models of levels_more.high_level; this is one of levels.high_level")
        self.writers = {}

    def writer(self, part):
        """The writer of the files of "train" or "validation"."""
        with needed():
            from tensorboardX import SummaryWriter

        if part not in self.writers:
            own = f".{time.time_ns()}.{os.getpid()}.{next(_WRITERS)}"  # tensorboardX's own name has only the second
            self.writers[part] = SummaryWriter(str(self.log_dir / part), flush_secs=2, filename_suffix=own)
        return self.writers[part]

    def on_epoch_end(self, epoch, logs):
        for name, value in logs.items():
            part = "validation" if name.startswith("val_") else "train"
            self.writer(part).add_scalar(f"epoch_{name.removeprefix('val_')}", value, epoch)
        if epoch == 0:
            self.writer("train").file_writer.add_onnx_graph(graph_of(self.model))  # (it takes any GraphDef)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for path, variable in self.model.named(Variable).items():
                self.writer("train").add_histogram(f"{path.replace('.', '/')}/histogram", variable.numpy(), epoch)

    def on_train_end(self):
        for writer in self.writers.values():
            writer.close()
