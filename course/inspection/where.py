"""`where`: find a definition by its name here or in another framework, and the ops that it uses."""

import difflib
import html
import importlib
import re
import sys
from contextlib import suppress

from course.builder.names import ROOT
from course.figures import LEVELS
from course.inspection import framework_names
from course.inspection.source_index import MORE, Place, front_modules, place_of, places

NAMES = """
    Linear = Dense                              InputLayer = Input
    Dropout1d = Dropout                         BatchNorm1d = BatchNormalization
    MSELoss = MeanSquaredError                  mse_loss = MeanSquaredError
    L1Loss = MeanAbsoluteError                  BCELoss = BinaryCrossentropy
    BCEWithLogitsLoss = BinaryCrossentropy      CrossEntropyLoss = SparseCategoricalCrossentropy
    step = Optimizer.apply_gradients            minimize = Optimizer.apply_gradients
    ExponentialLR = ExponentialDecay            MultiStepLR = PiecewiseConstantDecay
    lr_scheduler = ExponentialDecay             clip_grad_norm_ = shortened
    kaiming_uniform_ = he_uniform               StepLR = ExponentialDecay
    rand = uniform                              randn = normal
    unsqueeze = expand_dims                     masked_select = boolean_mask
    add_ = assign_add                           sub_ = assign_sub
    any = reduce_any                            all = reduce_all
    eq = equal                                  ELU = elu
    Parameter = Variable                        autograd = GradientTape
    requires_grad = Variable                    detach = stop_gradient
    as_tensor = constant                        from_numpy = constant
    convert_to_tensor = constant                manual_seed = set_seed
    compile = function                          jit = function
    mm = matmul                                 index_select = take
    sum = reduce_sum                            mean = reduce_mean
    amax = reduce_max                           amin = reduce_min
    clamp = clip                                clip_by_value = clip
    TensorDataset = Dataset.from_tensor_slices
    Trainer.fit = Model.fit                     training_step = Model.train_step
    LightningModule = Model                     load = load_model
    KerasModel = Model
    cuda = device                               list_physical_devices = pool
    state_dict = Module.get_weights             load_state_dict = Module.set_weights
"""
ALIASES = dict(re.findall(r"(\S+) = (\S+)", NAMES))  # {name in TensorFlow, Keras, PyTorch or Lightning: our name}


class Found:
    """The result of `where`: places, the highest level first, and the ops that they send through the door.

    spelling: the Place where `levels_more` defines another framework's name, if it does. It is shown first.
    """

    def __init__(self, asked, found, ops, spelling=None):
        self.asked = asked
        self.places = found
        self.spelling = spelling
        self.ops = ops  # {name: Place of its kernel}

    @property
    def title(self):
        name = self.places[0].name if self.places else self.asked
        return name if self.asked.split(".")[-1] == name.split(".")[-1] else f"{self.asked} is {name} here"

    @property
    def shown(self):
        return [*filter(None, [self.spelling]), *self.places]

    def __repr__(self):
        lines = [self.title]
        for place in self.shown:
            lines += [f"  {place.section}"] * bool(place.section) + [f"      {place.lines}"]
        if self.ops:
            lines.append("  its ops, and their kernels")
        return "\n".join(lines + [f"      {op:14} {place.lines}" for op, place in self.ops.items()])

    def _repr_html_(self):
        rows = [f"<div><b>{html.escape(self.title)}</b></div>"]
        for place in self.shown:
            style = "font-size:11px;background:none;white-space:pre;overflow-x:auto"
            source = f"<pre style='{style}'>{html.escape(place.source)}</pre>"
            rows.append(
                f"{place.link(place.section)}<details><summary><code>{place.lines}</code></summary>{source}</details>"
            )
        ops = ", ".join(place.link(op) for op, place in self.ops.items())
        return f"<div>{''.join(rows)}{f'<p>Its ops: {ops}</p>' * bool(ops)}</div>"


def where(name):
    """Find a definition by our name (`where("GradientTape")`, `where("Model.fit")`) or TensorFlow's or PyTorch's name.

    For a dotted name, the longest known ending is used: "tf.keras.layers.Dense" is Dense. The line of `levels_more`
    that defines the other framework's name comes first. Raises LookupError, with similar names, for an unknown name.
    """
    index = places()
    spelling = spelling_of(name)
    modules = {module.replace(".", "/") for _, module in front_modules()}
    index = [place for place in index if place.level != MORE or place.library or place.room in modules]
    core_first = sorted(index, key=lambda place: place.level == MORE)
    known = dict.fromkeys(place.name for place in core_first)
    ours = resolved(name, known)
    if ours is None and spelling:
        return Found(name, [], {}, spelling)
    if ours is None:
        lower = {each.lower(): each for each in (*known, *ALIASES)}
        near = [lower[n] for n in difflib.get_close_matches(name.split(".")[-1].lower(), lower, 3, 0.7)]
        cure = "`where` knows what the notebooks export, under its name here and in other frameworks"
        if near:
            cure = f"similar names are {', '.join(near)}"
        raise LookupError(f"where: nothing here is called {name!r}; {cure}")
    found = [place for place in index if place.name == ours or place.name.endswith(f".{ours}") and ours not in known]
    # The highest level first; within a level, the core before levels_more.
    found = sorted(found[::-1], key=lambda place: -LEVELS.index(place.adds_to or place.level))
    ops = next(filter(None, map(ops_of, found)), [])
    return Found(name, found, kernels_of(ops, index), spelling)


def spelling_of(name):
    """The Place where `levels_more` defines a name of TensorFlow or PyTorch; None if it does not define the name."""
    if not (known := framework_names.resolve(name)):
        return None
    package = known[0]
    file, first, last = framework_names.line_of(ROOT, *known)
    if not first:  # it is re-exported from a level
        return None
    notebook = framework_names.NOTEBOOKS[package.split(".")[0]]
    room = file.relative_to(ROOT / MORE).with_suffix("").as_posix()
    source = "\n".join(file.read_text(encoding="utf-8").split("\n")[first - 1 : last])
    return Place(name, MORE, room, notebook, "", f"import levels_more.{package}", source, first, last)


def resolved(name, known):
    """The course's name for this name, or None if it has none."""
    parts, lower = name.split("."), {each.lower(): each for each in known}
    for k in range(len(parts)):
        end = ".".join(parts[k:])
        if ours := ALIASES.get(end) or (end if end in known else lower.get(end.lower())):
            return ours
    return parts[-1] if any(each.endswith(f".{parts[-1]}") for each in known) and parts[-1] else None


MADE = [(), (3,), (0.5,), ("relu",), (5, 3)]  # arguments to try for constructing a part
GIVEN = [  # arguments to try for calling it: x and w float32[3, 3], a mask bool[3, 3], ids int64[3]
    lambda x, mask, ids, w: (x,),
    lambda x, mask, ids, w: (x, x),
    lambda x, mask, ids, w: (x, w),
    lambda x, mask, ids, w: (ids,),
    lambda x, mask, ids, w: (ids, x),
    lambda x, mask, ids, w: ([x, x],),
    lambda x, mask, ids, w: (mask, x, x),
    lambda x, mask, ids, w: (x, ids),
    lambda x, mask, ids, w: (x, 0.0, 1.0),
    lambda x, mask, ids, w: (x, (-1,)),
    lambda x, mask, ids, w: (x, "float64"),
    lambda x, mask, ids, w: (ids, 3),
]
CALLED = {  # (level, room) -> how to call what is defined there
    ("low_level", "ops"): lambda thing, *given: thing(*given),
    ("low_level", "nn"): lambda thing, *given: thing(*given),
    ("mid_level", "layers"): lambda part, *given: part(*given, **{"training": True} if hasattr(part, "call") else {}),
    ("mid_level", "losses"): lambda loss, *given: loss(*given),
    ("mid_level", "metrics"): lambda metric, *given: metric.update_state(*given),
    ("mid_level", "optimizers"): lambda optimizer, x, w: optimizer.apply_gradients([(x, w)]),
}
CALLED |= {(MORE, f"mid_level/{room}"): call for (level, room), call in CALLED.items() if level == "mid_level"}
CALLED[MORE, "low_level/ops"] = CALLED["low_level", "ops"]


# The ops of a part: it is constructed and called on symbols, as `function` does, and the ops at the door are recorded.


def ops_of(place):
    """The names of the ops that a layer, loss, metric, optimizer or function of tensors sends through the door.

    It is tried with the arguments in MADE and GIVEN until a call succeeds. For anything else the result is [].
    """
    call = CALLED.get((place.level, place.room))
    try:
        more = f"{MORE}.{place.room.replace('/', '.')}"
        module = importlib.import_module(more if place.level == MORE else f"levels.{place.level}")
    except ImportError:  # that level is not built yet
        return []
    thing = getattr(module, place.name, None)
    random = getattr(sys.modules.get("levels.mid_level"), "RANDOM", None)
    if not call or not callable(thing):
        return []
    state = random and random.getstate()
    ops = next(filter(None, tried(call, thing)), [])
    if random:
        random.setstate(state)  # new layers drew random weights; the reader's own draws must not change
    return ops


def tried(call, thing):
    """Yield the ops of each trial that succeeds."""
    for made in MADE if isinstance(thing, type) else [None]:
        for given in GIVEN:
            with suppress(Exception):  # unsuitable arguments may raise anything
                part = thing if made is None else thing(*made)
                yield traced(lambda *symbols: call(part, *given(*symbols)))  # noqa: B023 - called at once


def traced(run):
    """The names of the ops that `run` sends through the door when it is traced, each once."""
    import numpy as np

    from levels.hardware import pool
    from levels.low_level import Variable, trace

    cpu = pool()["cpu:0"]
    w = Variable(np.zeros((3, 3), "f4"))
    symbols = [cpu.spec((3, 3), "f4"), cpu.spec((3, 3), "?"), cpu.spec((3,), "i8")]

    def quiet(*args):
        run(*args, w)  # returns None, because the result may be no tensor

    return [*dict.fromkeys(node.op for node in trace(quiet, symbols)[0].ops)]


def kernels_of(ops, index):
    """{op: the Place of its CPU kernel}"""
    if not ops:
        return {}
    from levels.kernels import KERNELS

    return {op: place_of(KERNELS[op, "cpu"].__code__, index) for op in ops}
