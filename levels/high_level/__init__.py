"""5 · High-level API."""

# Built from 05_high_level.ipynb: edit there, then run its last cell.
# fmt: off
# isort: skip_file

from levels import plugged

from .loops import Callback, History, Training, ended, epoch_loss, run_epochs, run_training
from .models import Model, Sequential, Trainable, batches_of, dtype_for, prepared
from .tasks import dnn_classifier, linear_regression

__getattr__, __dir__, __all__ = plugged(__name__)  # what is missing here is looked up in levels_more
