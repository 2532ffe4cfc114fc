"""What callbacks hear by Keras' rules: of each step, of validation and of prediction too, if they have methods for it."""

from levels import high_level
from levels_more.checks import takes
from levels_more.high_level.data_adapter import as_list

_HEARD = "test predict batch test_batch predict_batch"  # beside what every callback of levels hears


def teller(model, callbacks):
    """A function that tells an event to all callbacks that have a method for it."""

    def tell(event, *given):
        for callback in as_list(callbacks or ()):
            callback.model = model
            method = getattr(callback, event, None)
            if method:
                method(*given[: None if takes(method, len(given)) else -1])

    return tell


class Callback(high_level.Callback):
    """Listens as in Keras: each method may take `logs`; `params` are the epochs, the steps of one, and `verbose`."""

    hears = {f"on_{what}_{when}" for what in _HEARD.split() for when in ("begin", "end")}
    params = {}

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for when in ("begin", "end"):  # as steps of a training were called before
            if f"on_batch_{when}" in vars(cls):
                setattr(cls, f"on_train_batch_{when}", vars(cls)[f"on_batch_{when}"])

    def on_train_begin(self, logs=None): ...
    def on_epoch_begin(self, epoch, logs=None): ...
    def on_epoch_end(self, epoch, logs=None): ...
    def on_train_end(self, logs=None): ...


class Tested:
    """Listens to tests of a model, and tells callbacks: of each step its number, the mean loss so far, and the metrics."""

    def __init__(self, model, callbacks):
        self.model, self.tell = model, teller(model, callbacks)

    def on_test_begin(self):
        self.step = self.total = self.rows = 0
        self.tell("on_test_begin", {})

    def on_step_begin(self):
        self.tell("on_test_batch_begin", self.step, {})

    def on_piece_end(self, losses, rows):
        """After a step of losses [1] over so many rows [1]."""
        self.total, self.rows = self.total + float(losses[0]) * rows[0], self.rows + rows[0]
        told = {metric.name: float(metric.result()) for metric in self.model.training.metrics}
        self.on_step_end({"loss": self.total / self.rows} | told)

    def on_step_end(self, logs):
        """After a step that gave these logs."""
        self.tell("on_test_batch_end", self.step, logs)
        self.step += 1

    def on_test_end(self, logs):
        self.tell("on_test_end", logs)


def tests_told(model, callbacks):
    """A `Tested` for callbacks that listen to tests, or None: then several steps are one call."""
    hearing = [callback for callback in as_list(callbacks or ()) if any("_test_" in name for name in dir(callback))]
    return Tested(model, hearing) if hearing else None


class History(Callback):
    """Keeps what each epoch told: `history`, {name: [a number for each epoch]}, and `epoch`, their numbers."""

    def on_train_begin(self, logs=None):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
