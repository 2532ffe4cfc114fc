"""Data-parallel training: the same `compile` and `fit`, in all processes that `mpiexec` starts, on several machines."""

import contextlib
import functools
import hashlib
import sys

from levels.high_level import Callback, Model
from levels.low_level import DOOR, GradientTape
from levels.mid_level import RANDOM
from levels_more.checks import expect
from levels_more.distributed.backend import Rows
from levels_more.distributed.collectives import broadcast, call_together, time_limit, world
from levels_more.distributed.partition import spread
from levels_more.distributed.shards import share_data
from levels_more.high_level.listeners import RUNNING, CallbackList, attach
from levels_more.high_level.program import GRAPH_TRANSFORM
from levels_more.high_level.rows import as_list, is_data


def _own_rows(graph, batch):
    """The graph of a step, changed so that this rank computes its own rows."""
    return spread(graph, batch, world())


@contextlib.contextmanager
def _going(change):
    """Inside this `with` block, `change` (None: nothing) is applied to each graph of a step when it is traced."""
    before = GRAPH_TRANSFORM.change
    GRAPH_TRANSFORM.change = change
    try:
        yield
    finally:
        GRAPH_TRANSFORM.change = before


class _Now:
    alone = False  # whether rank 0 does something for all ranks, while the others only wait for it


@contextlib.contextmanager
def _alone():
    """Inside this `with` block, rank 0 acts for all ranks. It calls no collectives: the others would not take part."""
    _Now.alone = True
    try:
        with _going(None):
            yield
    finally:
        _Now.alone = False


def _broadcast_object(op, comm, value):
    """The `value` of rank 0, on all ranks. Raises RuntimeError if rank 0 is in another op."""
    said, value = call_together(op, comm.bcast, (op, value))
    if said != op:
        cure = "call fit, evaluate, predict and save on all ranks; model.module is the model alone"
        raise RuntimeError(f"rank {comm.rank} is in {op}, and rank 0 in {said}; {cure}")
    return value


def _state(model):
    """All variables of a model, and of its optimizer."""
    return model.variables + (model.chosen.optimizer.variables if model.chosen is not None else [])


def run_on_rank_0(act, op="a callback"):
    """Call act() on rank 0 only, and return its result on all ranks. Its error is raised on all of them."""
    comm = world().comm
    given = None
    error = None
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
        raise error or RuntimeError(f"rank 0 raised {told}")
    return given


class First(Callback):
    """Calls callbacks on rank 0 only. What they change is copied to all: weights, learning rate, stop_training, logs.

    After each epoch the ranks compare their rows and weights. Raises RuntimeError if they differ. Ctrl-C reaches each
    rank in a different step; all ranks end after the same epoch.
    """

    def __init__(self, model, callbacks):
        attach(callbacks, model, None)  # their `params` are set when the training begins
        self.pressed = []
        self.error = None
        self.model, self.listeners = model, CallbackList(model, callbacks, 0)
        heard = [callback for callback in callbacks if getattr(callback, "on_train_batch_end", None)]
        self.needed, each = run_on_rank_0(lambda: (bool(callbacks), bool(heard)), "fit")  # other ranks may have none
        if each:
            self.on_train_batch_end = lambda step, logs: self.tell(
                lambda: [callback.on_train_batch_end(step, logs) for callback in heard], logs
            )

    def tell(self, act, logs):
        """Call act() on rank 0, then make its changes on all ranks."""
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
        fit = RUNNING.fits[-1]
        self.error = sys.exc_info()[1]
        if world().size > 1:
            self.pressed = fit.pressed
            fit.pressed = []
        self.tell(self.listeners.on_train_begin, logs)

    def on_epoch_begin(self, epoch, logs):
        self.tell(lambda: self.listeners.on_epoch_begin(epoch), logs)

    def on_epoch_end(self, epoch, logs):
        check_equal("rows", Rows.sum)
        check_equal("weights", hashlib.sha256(b"".join(w.tobytes() for w in self.model.get_weights())).digest())
        self.tell(lambda: self.listeners.on_epoch_end(epoch, logs), logs)
        if world().size > 1 and any(call_together("on_epoch_end", world().comm.allgather, bool(self.pressed))):
            RUNNING.fits[-1].pressed.append(True)  # the training, which is called next, checks it

    def on_train_end(self, logs):
        if sys.exc_info()[1] is self.error:
            self.tell(self.listeners.on_train_end, logs)
        elif world().rank == 0:  # an error is being raised: the other ranks may never get here
            with _alone():
                self.listeners.on_train_end()


def check_equal(what, own):
    """Raise RuntimeError if this rank's `what`, rows or weights, differ from another's; `own` is their checksum."""
    if world().comm is not None:
        sums = call_together("check_equal", world().comm.allgather, own)
        others = [rank for rank, sum in enumerate(sums) if sum != own]
        if others:
            cure = "give all ranks the same data, of which each does its share, and the same program"
            raise RuntimeError(f"rank {world().rank} has other {what} than the ranks {others}; {cure}")


def fingerprint(given):
    """What of the arguments has to be equal on all ranks: lengths, shapes, dtypes, numbers and names."""
    if isinstance(given, (tuple, dict)):
        return [*map(fingerprint, given.items() if isinstance(given, dict) else given)]
    if is_data(given):
        return "data"  # which `share_data` compares
    if hasattr(given, "shape"):
        return f"{getattr(given, 'dtype', '')}{[*given.shape]}"
    if given is None or isinstance(given, (int, float, str)):
        return given
    return f"{type(given).__name__} {getattr(given, 'length', '') or (len(given) if hasattr(given, '__len__') else '')}"


def spread_state(model, given=()):
    """Copy rank 0's state to all ranks: its random generator, and all variables of the model and its optimizer.

    Raises ValueError if ranks have different variables, or are `given` different arguments.
    """
    comm = world().comm
    if comm is None:
        return
    mine = {"has the variables": [str(v.spec) for v in _state(model)], "is given": fingerprint(given)}
    RANDOM.setstate(_broadcast_object("fit, evaluate or predict", comm, RANDOM.getstate()))
    found = call_together("spread_state", comm.allgather, mine)
    for what, cure in (("has the variables", "build or load it on all ranks"), ("is given", "give all ranks the same")):
        for rank, other in enumerate(found):
            if other[what] != mine[what]:
                raise ValueError(f"rank {comm.rank} {what} {mine[what]}, rank {rank} {what} {other[what]}; {cure}")
    for variable in _state(model):
        variable.assign(broadcast(variable))


class DistributedDataParallel:
    """A model that all ranks train and evaluate together (PyTorch's name). All other attributes are the model's own.

    Call fit, evaluate and predict on all ranks, with the same arrays: of each batch every rank computes its share of
    the rows. In float64 the losses and weights are, bit for bit, those of one process; in float32 sums over rows are
    rounded in another order. So in float32, fit and evaluate also take a Dataset of each rank's own rows (`shards`).
    Write a training loop of your own as a `train_step` of the model. Callbacks, the bar and methods that write files
    run on rank 0 only, without messages to others. `module` is the model itself. If a rank waits `timeout` seconds for
    the others, all ranks end. Raises TypeError if `model` is no Model.
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
        """The model on x, on this rank only. Raises RuntimeError under a tape: the ranks' weights would diverge."""
        if world().size > 1 and isinstance(DOOR.top, GradientTape) and DOOR.top.records is not None:
            cure = "write a train_step(self, x, y), which fit shares out, or all_reduce the gradients of model.module"
            raise RuntimeError(f"DistributedDataParallel: this tape's gradients are not summed over the ranks; {cure}")
        return self.module(x, training)

    def together(self, method, x, *args, **options):
        """Call a method of the model; each rank computes its rows. Raises RuntimeError if ranks have different data."""
        if _Now.alone:
            return method(x, *args, **options)
        compared = {name: given for name, given in options.items() if name not in ("verbose", "callbacks")}
        spread_state(self.module, (x, args, compared))
        Rows.sum = 0
        steps = "steps_per_epoch" if method.__name__ == "fit" else "steps"
        x, own = share_data(self.module, x, options.get(steps), steps, steps == "steps")
        if own and method.__name__ == "predict":
            raise TypeError("predict: the ranks have rows of their own; call predict of model.module, on each rank")
        if own:
            options.pop(steps, None)
        if is_data(validation := options.get("validation_data")):
            held = options.get("validation_steps"), "validation_steps", True
            options["validation_data"], own = share_data(self.module, validation, *held)
            if own:
                options.pop("validation_steps", None)
        try:
            with _going(_own_rows):
                result = method(x, *args, **options)
        finally:
            Rows.arrays.clear()
        check_equal("rows", Rows.sum)
        return result

    def fit(self, x, y=None, batch_size=32, epochs=1, verbose=1, callbacks=None, **options):
        """The same as the model's `fit`, by all ranks together. Returns the History, on all ranks."""
        if not _Now.alone:
            callbacks = [First(self.module, as_list([] if callbacks is None else callbacks))]
        options |= {"verbose": verbose if world().rank == 0 else 0, "callbacks": callbacks}
        return self.together(self.module.fit, x, y, batch_size, epochs, **options)

    def __repr__(self):
        return f"{self.module!r}, rank {world().rank} of {world().size}"


TOGETHER = "evaluate", "predict"
WRITES = "save", "save_weights", "export"  # they return on all ranks after the file is written
