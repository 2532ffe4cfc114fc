"""`where`: find a definition by its name here or in another framework."""

import difflib
import html
import re

from course.reader.figures import LEVELS
from course.reader.inspection import framework_names
from course.reader.inspection.source_index import MORE, Place, front_modules, places
from course.reader.notebooks.names import ROOT

NAMES = """
    Linear = Dense                              InputLayer = Input
    Dropout1d = Dropout                         BatchNorm1d = BatchNormalization
    MSELoss = MeanSquaredError                  mse_loss = MeanSquaredError
    L1Loss = MeanAbsoluteError                  BCELoss = BinaryCrossentropy
    BCEWithLogitsLoss = BinaryCrossentropy      CrossEntropyLoss = SparseCategoricalCrossentropy
    step = Optimizer.apply_gradients            minimize = Optimizer.apply_gradients
    ExponentialLR = ExponentialDecay            MultiStepLR = PiecewiseConstantDecay
    lr_scheduler = ExponentialDecay             clip_grad_norm_ = shorten
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
    """The result of `where`: places, the highest level first.

    spelling: the Place where `levels_more` defines another framework's name, if it does. It is shown first.
    """

    def __init__(self, asked, found, spelling=None):
        self.asked = asked
        self.places = found
        self.spelling = spelling

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
        return "\n".join(lines)

    def _repr_html_(self):
        rows = [f"<div><b>{html.escape(self.title)}</b></div>"]
        for place in self.shown:
            style = "font-size:11px;background:none;white-space:pre;overflow-x:auto"
            source = f"<pre style='{style}'>{html.escape(place.source)}</pre>"
            rows.append(
                f"{place.link(place.section)}<details><summary><code>{place.lines}</code></summary>{source}</details>"
            )
        return f"<div>{''.join(rows)}</div>"


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
        return Found(name, [], spelling)
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
    return Found(name, found, spelling)


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
