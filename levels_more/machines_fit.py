"""Training on several machines: the same `compile` and `fit`, in as many processes as `mpiexec` starts."""

import contextlib
import functools
import hashlib
import sys

from levels.high_level import Callback, Model
from levels.mid_level import RANDOM
from levels_more.checks import expect
from levels_more.fitting import Told, attach
from levels_more.inputs import as_list
from levels_more.machines import broadcast, meet, time_limit, world
from levels_more.machines_spread import spread
from levels_more.machines_stages import Staged  # noqa: F401 (a back end)
from levels_more.retracing import WAY


def _own_rows(graph, batch):
    """The graph of a step, as one in which this rank does its own rows."""
    return spread(graph, batch, world())


@contextlib.contextmanager
def _going(change):
    """Inside this `with` block, that is done to each graph of a step."""
    before, WAY.change = WAY.change, change
    try:
        yield
    finally:
        WAY.change = before


def _state(model):
    """All variables of a model, and of its optimizer."""
    return model.variables + (model.chosen.optimizer.variables if model.chosen is not None else [])


def from_first(act):
    """What act() gives on rank 0, on all ranks; the others do not call it. Its error is raised on all of them."""
    comm, given, error = world().comm, None, None
    if comm is None:
        return act()
    if comm.rank == 0:
        try:
            given = act()
        except BaseException as found:
            error = found
    given, told = meet("from_first", comm.bcast, (given, error and f"{type(error).__name__}: {error}"))
    if told:
        raise error or RuntimeError(f"rank 0 has ended: {told}")
    return given


class First(Callback):
    """Tells callbacks on rank 0, and there alone. What they change holds on all ranks: weights, the rate, the end, the logs.

    After each epoch the ranks compare their weights. Raises RuntimeError where they differ.
    """

    def __init__(self, model, callbacks):
        attach(callbacks, model)
        self.model, self.listeners = model, Told(model, callbacks, 0)
        if any(callback.on_train_batch_end for callback in callbacks):
            heard = [callback for callback in callbacks if callback.on_train_batch_end]
            self.on_train_batch_end = lambda step, logs: self.tell(
                lambda: [callback.on_train_batch_end(step, logs) for callback in heard], logs
            )

    def tell(self, act, logs):
        """act() on rank 0, and then what it has changed on all."""
        model = self.model
        if not self.listeners.callbacks:
            return

        def told():
            before = [v.held for v in _state(model)]
            with _going(None):
                act()
            rate = model.optimizer.learning_rate
            changed = any(v.held is not held for v, held in zip(_state(model), before, strict=True))
            return model.stop_training, changed, None if callable(rate) else rate, logs

        model.stop_training, changed, rate, known = from_first(told)
        logs.update(known)
        if rate is not None and world().rank:
            model.optimizer.learning_rate = rate
        if changed:
            spread_state(model)

    def on_train_begin(self, logs):
        self.tell(self.listeners.on_train_begin, logs)

    def on_epoch_begin(self, epoch, logs):
        self.tell(lambda: self.listeners.on_epoch_begin(epoch), logs)

    def on_epoch_end(self, epoch, logs):
        check_equal(self.model)
        self.tell(lambda: self.listeners.on_epoch_end(epoch, logs), logs)

    def on_train_end(self, logs):
        if sys.exc_info()[0] is None:
            self.tell(self.listeners.on_train_end, logs)
        elif world().rank == 0:  # an error is on its way: the others may never come
            with _going(None):
                self.listeners.on_train_end()


def check_equal(model):
    """Raise RuntimeError where the ranks have other weights than rank 0."""
    if world().comm is not None:
        own = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).digest()
        others = [rank for rank, sum in enumerate(meet("check_equal", world().comm.allgather, own)) if sum != own]
        if others:
            cure = "give all ranks the same data, and the same program"
            raise RuntimeError(f"rank {world().rank} has other weights than the ranks {others}; {cure}")


def spread_state(model):
    """Give all ranks what rank 0 has: its random numbers to come, and all variables of the model and its optimizer.

    Raises ValueError where a rank has other variables.
    """
    comm = world().comm
    if comm is None:
        return
    mine = [str(v.spec) for v in _state(model)]
    state, first = meet("spread_state", comm.bcast, (RANDOM.getstate(), mine))
    if first != mine:
        raise ValueError(
            f"rank {comm.rank} has the variables {mine}, rank 0 has {first}; build or load it on all ranks"
        )
    RANDOM.setstate(state)
    for variable in _state(model):
        variable.assign(broadcast(variable))


class DistributedDataParallel:
    """A model that is trained and asked by all ranks together, as PyTorch names it. Everything else is the model's own.

    fit, evaluate and predict are called on all ranks, with the same arrays: of each batch every rank does its share of the
    rows. In float64 the losses and weights are, bit by bit, those of one process; in float32 sums over rows are rounded in
    another order. Callbacks, the bar and what writes files work on rank 0 alone; there `model` is the model itself, which asks nobody.
    A rank that waits `timeout` seconds for the others ends, and all end. Raises TypeError for what is no model.
    """

    def __init__(self, model, timeout=300.0):
        expect(isinstance(model, Model), "DistributedDataParallel: model", model, "a model, such as Sequential")
        vars(self)["module"] = model
        time_limit(timeout)
        world()

    def __getattr__(self, name):
        if name == "module":
            raise AttributeError(name)
        found = getattr(self.module, name)
        if name in WRITES:
            return lambda *args, **options: from_first(lambda: found(*args, **options))
        return functools.partial(self.together, found) if name in TOGETHER else found

    def __setattr__(self, name, value):
        setattr(self.module, name, value)

    def __call__(self, x, training=None):
        return self.module(x, training)

    def together(self, method, *args, **options):
        """A method of the model, in which each rank does its own rows."""
        spread_state(self.module)
        with _going(_own_rows):
            return method(*args, **options)

    def fit(self, *args, verbose=1, callbacks=None, **options):
        """As the model's `fit`. Returns its History, on all ranks."""
        first = First(self.module, as_list([] if callbacks is None else callbacks))
        options |= {"verbose": verbose if world().rank == 0 else 0, "callbacks": [first]}
        return self.together(self.module.fit, *args, **options)

    def __repr__(self):
        return f"{self.module!r}, rank {world().rank} of {world().size}"


TOGETHER = "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"
WRITES = "save", "save_weights", "export"  # when it ends, the file is there, for all ranks
