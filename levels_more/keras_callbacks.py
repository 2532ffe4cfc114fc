"""What callbacks hear by Keras' rules: of validation and prediction too, if they have methods for it."""

from levels import high_level
from levels_more.checks import takes
from levels_more.inputs import as_list

_TOLD_HERE = "on_test_begin on_test_end on_predict_begin on_predict_end on_predict_batch_begin on_predict_batch_end"


def teller(model, callbacks):
    """A function that tells an event to all callbacks that have a method for it."""

    def tell(event, *given):
        for callback in as_list(callbacks or ()):
            callback.model = model
            getattr(callback, event, lambda *_: None)(*given)

    return tell


class Heard(high_level.Callback):
    """Tells a callback what `fit` tells, and before the end of an epoch that there was a validation. Raises TypeError where
    the callback has a method that nobody calls."""

    def __init__(self, callback):
        self.callback = callback
        for event in [name for name in dir(callback) if name.startswith("on_")]:
            if not hasattr(high_level.Callback, event) and event not in _TOLD_HERE.split():
                raise TypeError(f"{type(callback).__name__}: nobody calls {event}")
        if callback.on_train_batch_end:
            self.on_train_batch_end = callback.on_train_batch_end

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "model":
            self.callback.model = value

    def _on(self, event, *given):
        method = getattr(self.callback, event)
        method(*given[: None if takes(method, len(given)) else -1])

    def on_train_begin(self, logs):
        self._on("on_train_begin", logs)

    def on_epoch_begin(self, epoch, logs):
        self._on("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch, logs):
        held = {name.removeprefix("val_"): value for name, value in logs.items() if name.startswith("val_")}
        if held:
            tell = teller(self.model, self.callback)
            tell("on_test_begin", {})
            tell("on_test_end", held)
        self._on("on_epoch_end", epoch, logs)

    def on_train_end(self, logs):
        self._on("on_train_end", logs)


def heard(callbacks):
    """A list of callbacks, those `Heard` that have methods for more than `fit` tells."""
    return [
        Heard(callback) if any(hasattr(callback, event) for event in _TOLD_HERE.split()) else callback
        for callback in as_list(callbacks or ())
    ]


class History(high_level.Callback):
    """Keeps what each epoch told: `history`, {name: [a number for each epoch]}, and `epoch`, their numbers."""

    def on_train_begin(self):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs):
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)
