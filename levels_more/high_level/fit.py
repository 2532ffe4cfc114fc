"""The training loop with company: a bar, Ctrl-C, callbacks, rows that are held out."""

from contextlib import nullcontext

from levels.high_level import loops
from levels.low_level import DOOR, RUN
from levels_more.high_level.data_adapter import as_list
from levels_more.high_level.progress import HeldOut, Told, Watch, attach, noted_interrupts, progress
from levels_more.high_level.recompile import WAY


def run_training(model, data, epochs, verbose, callbacks, validation=None, first=0, ahead=None):
    """Train for so many epochs, with a bar; Ctrl-C waits for the end of a piece. Returns the History.

    data, validation: Datasets of batches, the second or None; verbose: 1 shows the bar, 2 a line for each epoch; first: the
    number of the first epoch, for callbacks; ahead: an `Ahead`, where an epoch may be done before the loop begins it. Raises
    KeyboardInterrupt, with the weights of the last whole step, and TypeError for callbacks that are none.
    """
    callbacks, training = as_list(callbacks), model.training
    held = [] if validation is None else [HeldOut(model, validation)]
    with noted_interrupts() as pressed, progress(data, epochs) if verbose == 1 else nullcontext() as bar:
        if callbacks or held or training.metrics or WAY.change or DOOR.stands is not RUN:
            ahead = None
        training.watch = Watch(pressed, bar, callbacks, ahead)
        attach(callbacks, model)
        told = [Told(model, callbacks, first)] if callbacks else []
        try:
            return loops.run_training(model, data, epochs, [*held, *told, training.watch], verbose == 2)
        finally:
            if ahead:
                ahead.tell(model.history)
            model.history.params = {"epochs": first + epochs, "verbose": verbose}
            model.history.epoch = [*range(first, first + len(model.history.epochs))]  # Keras' numbers of them
            training.watch = None
