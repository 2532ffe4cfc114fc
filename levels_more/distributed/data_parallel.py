"""Training on several machines: the same `compile` and `fit`, in as many processes as `mpiexec` starts."""

import contextlib
import functools
import hashlib
import sys

from levels.high_level import Callback, Model
from levels.low_level import DOOR, GradientTape
from levels.mid_level import RANDOM
from levels_more.checks import expect
from levels_more.distributed.backend import Rows
from levels_more.distributed.collectives import broadcast, synchronised, time_limit, world
from levels_more.distributed.partition import spread
from levels_more.high_level.data_adapter import as_list
from levels_more.high_level.fit import CallbackList, attach
from levels_more.high_level.recompile import GRAPH_TRANSFORM


def _own_rows(graph, batch):
    """The graph of a step, as one in which this rank does its own rows."""
    return spread(graph, batch, world())


@contextlib.contextmanager
def _going(change):
    """Inside this `with` block, that is done to each graph of a step."""
    before, GRAPH_TRANSFORM.change = GRAPH_TRANSFORM.change, change
    try:
        yield
    finally:
        GRAPH_TRANSFORM.change = before


class _Now:
    alone = False  # whether rank 0 does something for all ranks, and they only wait for its end


@contextlib.contextmanager
def _alone():
    """Inside this `with` block rank 0 does something for all. So it asks nobody: the others would not hear it."""
    _Now.alone = True
    try:
        with _going(None):
            yield
    finally:
        _Now.alone = False


def _broadcast_object(op, comm, value):
    """What rank 0 says to all in this op. Raises RuntimeError where it is in another one."""
    said, value = synchronised(op, comm.bcast, (op, value))
    if said != op:
        cure = "call fit, evaluate, predict and save on all ranks; model.module is the model alone"
        raise RuntimeError(f"rank {comm.rank} is in {op}, and rank 0 in {said}; {cure}")
    return value


def _state(model):
    """All variables of a model, and of its optimizer."""
    return model.variables + (model.chosen.optimizer.variables if model.chosen is not None else [])


def run_on_rank_0(act, op="a callback"):
    """What act() gives on rank 0, on all ranks; the others do not call it. Its error is raised on all of them."""
    comm, given, error = world().comm, None, None
    if comm is None or _Now.alone:
        return act()
    if comm.rank == 0:
        try:
            with _alone():
                given = act()
        except BaseException as found:
            error = found
    given, told = _broadcast_object(op, comm, (given, error and f"{type(error).__name__}: {error}"))
    if told:
        raise error or RuntimeError(f"rank 0 has ended: {told}")
    return given


class First(Callback):
    """Tells callbacks on rank 0 alone. What they change holds on all ranks: weights, the rate, the end, the logs.

    After each epoch the ranks compare their rows and weights. Raises RuntimeError where they differ. Ctrl-C, which
    comes to each rank in another step, ends all of them behind the same epoch.
    """

    def __init__(self, model, callbacks):
        attach(callbacks, model, None)  # they hear of the `params` when the training begins
        self.pressed, self.error = [], None
        self.model, self.listeners = model, CallbackList(model, callbacks, 0)
        heard = [callback for callback in callbacks if callback.on_train_batch_end]
        self.needed, each = run_on_rank_0(lambda: (bool(callbacks), bool(heard)), "fit")  # only rank 0 may have some
        if each:
            self.on_train_batch_end = lambda step, logs: self.tell(
                lambda: [callback.on_train_batch_end(step, logs) for callback in heard], logs
            )

    def tell(self, act, logs):
        """act() on rank 0, and then what it has changed on all."""
        model = self.model
        if not self.needed:
            return

        def told():
            before = [v.current for v in _state(model)]
            act()
            rate = model.optimizer.learning_rate
            changed = any(v.current is not held for v, held in zip(_state(model), before, strict=True))
            return model.stop_training, changed, None if callable(rate) else rate, logs

        model.stop_training, changed, rate, known = run_on_rank_0(told)
        logs.update(known)
        if rate is not None and world().rank:
            model.optimizer.learning_rate = rate
        if changed:
            spread_state(model)

    def on_train_begin(self, logs):
        for callback in self.listeners.callbacks:
            callback.params = self.params
        watch, self.error = self.model.training.watch, sys.exc_info()[1]
        if world().size > 1:
            self.pressed, watch.pressed = watch.pressed, []
        self.tell(self.listeners.on_train_begin, logs)

    def on_epoch_begin(self, epoch, logs):
        self.tell(lambda: self.listeners.on_epoch_begin(epoch), logs)

    def on_epoch_end(self, epoch, logs):
        check_equal("rows", Rows.sum)
        check_equal("weights", hashlib.sha256(b"".join(w.tobytes() for w in self.model.get_weights())).digest())
        self.tell(lambda: self.listeners.on_epoch_end(epoch, logs), logs)
        if world().size > 1 and any(synchronised("on_epoch_end", world().comm.allgather, bool(self.pressed))):
            self.model.training.watch.pressed.append(True)  # it is heard of next

    def on_train_end(self, logs):
        if sys.exc_info()[1] is self.error:
            self.tell(self.listeners.on_train_end, logs)
        elif world().rank == 0:  # an error is on its way: the others may never come
            with _alone():
                self.listeners.on_train_end()


def check_equal(what, own):
    """Raise RuntimeError where this rank has other `rows` or `weights` than others; `own` is a sum of its own ones."""
    if world().comm is not None:
        sums = synchronised("check_equal", world().comm.allgather, own)
        others = [rank for rank, sum in enumerate(sums) if sum != own]
        if others:
            cure = "give all ranks the same data, of which each does its share, and the same program"
            raise RuntimeError(f"rank {world().rank} has other {what} than the ranks {others}; {cure}")


def fingerprint(given):
    """What has to be alike on all ranks of what they are given: lengths, shapes, dtypes, numbers and names."""
    if isinstance(given, (tuple, dict)):
        return [*map(fingerprint, given.items() if isinstance(given, dict) else given)]
    if hasattr(given, "shape"):
        return f"{getattr(given, 'dtype', '')}{[*given.shape]}"
    if given is None or isinstance(given, (int, float, str)):
        return given
    return f"{type(given).__name__} {getattr(given, 'length', '') or (len(given) if hasattr(given, '__len__') else '')}"


def spread_state(model, given=()):
    """Give all ranks what rank 0 has: its random numbers to come, and all variables of the model and its optimizer.

    Raises ValueError where ranks have different variables, or are `given` different things.
    """
    comm = world().comm
    if comm is None:
        return
    mine = {"has the variables": [str(v.spec) for v in _state(model)], "is given": fingerprint(given)}
    RANDOM.setstate(_broadcast_object("fit, evaluate or predict", comm, RANDOM.getstate()))
    found = synchronised("spread_state", comm.allgather, mine)
    for what, cure in (("has the variables", "build or load it on all ranks"), ("is given", "give all ranks the same")):
        for rank, other in enumerate(found):
            if other[what] != mine[what]:
                raise ValueError(f"rank {comm.rank} {what} {mine[what]}, rank {rank} {what} {other[what]}; {cure}")
    for variable in _state(model):
        variable.assign(broadcast(variable))


class DistributedDataParallel:
    """A model that is trained and asked by all ranks together, as PyTorch names it. Everything else is the model's own.

    fit, evaluate and predict are called on all ranks, with the same arrays: of each batch every rank does its share of
    the rows. In float64 the losses and weights are, bit by bit, those of one process; in float32 sums over rows are
    rounded in another order. A training loop of your own is a `train_step` of the model. Callbacks, the bar and what
    writes files work on rank 0 alone, which asks nobody then. `module` is the model itself. A rank that waits `timeout`
    seconds for the others ends, and all end. Raises TypeError for what is no model.
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
            return lambda *args, **options: run_on_rank_0(lambda: found(*args, **options), name)
        return functools.partial(self.together, found) if name in TOGETHER else found

    def __setattr__(self, name, value):
        setattr(self.module, name, value)

    def __call__(self, x, training=None):
        """The model on x, on this rank alone. Raises RuntimeError under a tape, where several ranks would part."""
        if world().size > 1 and isinstance(DOOR.stands, GradientTape) and DOOR.stands.records is not None:
            cure = "write a train_step(self, x, y), which fit shares out, or all_reduce the gradients of model.module"
            raise RuntimeError(f"DistributedDataParallel: nobody adds up the gradients of this tape; {cure}")
        return self.module(x, training)

    def together(self, method, *args, **options):
        """A method of the model in which each rank does its rows. Raises RuntimeError where these are of other data."""
        if _Now.alone:
            return method(*args, **options)
        spread_state(
            self.module, (args, {name: x for name, x in options.items() if name not in ("verbose", "callbacks")})
        )
        Rows.sum = 0
        try:
            with _going(_own_rows):
                result = method(*args, **options)
        finally:
            Rows.arrays.clear()
        check_equal("rows", Rows.sum)
        return result

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, **options):
        """As the model's `fit`. Returns its History, on all ranks."""
        if not _Now.alone:
            callbacks = [First(self.module, as_list([] if callbacks is None else callbacks))]
        options |= {"verbose": verbose if world().rank == 0 else 0, "callbacks": callbacks}
        return self.together(self.module.fit, x, y, batch_size, epochs, **options)

    def __repr__(self):
        return f"{self.module!r}, rank {world().rank} of {world().size}"


TOGETHER = "evaluate", "predict"
WRITES = "save", "save_weights", "export"  # when it ends, the file is there, for all ranks
