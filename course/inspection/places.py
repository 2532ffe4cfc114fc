"""Where a thing is made: the section that teaches it, the file and lines it is built into, the ops beneath it."""

import ast
import difflib
import functools
import html
import importlib
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from course.builder.names import ROOT
from course.builder.session import HOME, WATCHED
from course.figures import LEVELS
from course.inspection import spelled

CELL = re.compile(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", re.MULTILINE)
HEADING = re.compile(r"^# (#{2,3}) (.*)$", re.MULTILINE)

NAMES = """
    Linear = Dense                              InputLayer = Input
    Dropout1d = Dropout                         BatchNorm1d = BatchNormalization
    MSELoss = MeanSquaredError                  mse_loss = MeanSquaredError
    L1Loss = MeanAbsoluteError                  BCELoss = BinaryCrossentropy
    BCEWithLogitsLoss = BinaryCrossentropy      CrossEntropyLoss = SparseCategoricalCrossentropy
    step = Optimizer.apply_gradients            minimize = Optimizer.apply_gradients
    ExponentialLR = ExponentialDecay            MultiStepLR = PiecewiseConstantDecay
    lr_scheduler = ExponentialDecay             clip_grad_norm_ = shortened
    HuberLoss = Huber                           LayerNorm = LayerNormalization
    kaiming_uniform_ = he_uniform               CosineAnnealingLR = CosineDecay
    rand = uniform                              randn = normal
    unsqueeze = expand_dims                     masked_select = boolean_mask
    add_ = assign_add                           sub_ = assign_sub
    any = reduce_any                            all = reduce_all
    eq = equal                                  SiLU = swish
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
    Trainer.fit = Model.fit                     training_step = Trainable.train_step
    LightningModule = Model                     load = load_model
    Model.compile = Trainable.compile           KerasModel = Model
    cuda = device                               list_physical_devices = pool
"""
MORE = "levels_more"
ALIASES = dict(re.findall(r"(\S+) = (\S+)", NAMES))  # as TensorFlow, Keras, PyTorch or Lightning say it = as we do


class Place(NamedTuple):
    """Where a name is defined."""

    name: str  # "Dense", or "Model.fit"
    level: str  # "mid_level", or "levels_more"
    room: str  # "layers"
    notebook: str  # "04_mid_level", or "more/05_saving"; nothing if no notebook shows it
    heading: str  # "A part owns its variables (12 min)"
    part: str  # the smaller heading beneath it, if there is one
    source: str
    first: int  # its lines in the built file; 0 before the level is built
    last: int
    adds_to: str = ""  # of levels_more: the level that it adds to

    file = property(lambda self: f"{'levels/' * (self.level != MORE)}{self.level}/{self.room}.py")

    title = property(lambda self: self.heading.split(" (")[0])

    @property
    def section(self):
        return ", ".join(filter(None, (self.notebook, self.heading, self.part)))

    @property
    def lines(self):
        span = f", line {self.first}" if self.first == self.last else f", lines {self.first} to {self.last}"
        return self.file + span * bool(self.first)

    def link(self, text):
        """The text as a link to the section, which Jupyter follows from the notebook that runs."""
        if not self.notebook:
            return f'<span title="{self.lines}">{html.escape(text)}</span>'
        anchor = f"#{html.escape((self.part or self.heading).replace(' ', '-'))}" * bool(self.heading)
        up = "../" * sum(name.count("/") for name in WATCHED)
        return f'<a href="{up}{self.notebook}.ipynb{anchor}" title="{self.lines}">{html.escape(text)}</a>'


# rooms of other frameworks' spellings: `where` leads to what `levels` itself has of a name
SPELLINGS = {"torch", "tensorflow", "torchkeras", "pytorch_lightning", "torchmetrics", "missing"}


def places(root=ROOT):
    """The Place of every name of `levels_more`, and of every one that the notebooks export, in the order of the course.

    Those in classes too. The lines are those of the `levels` that this kernel runs, the reader's own maybe.
    """
    found, home = places_of_more(root), HOME[0] if root == ROOT else root
    for path in sorted(root.glob("notebooks/text/*.py")):
        level, heading = path.stem.split("_", 1)[1], ["", ""]
        for sort, source in CELL.findall(path.read_text(encoding="utf-8")):
            if marker := re.match(r"#\| export (\w+)", source):
                built = home / "levels" / level / f"{marker[1]}.py"
                text = built.read_text(encoding="utf-8") if built.exists() else ""
                for name, around, start, end in named(source):
                    if around not in text:  # a blank: its function stands in the built file, the reader's own maybe
                        around, start, end = next((its for n, *its in named(text) if n == name), (around, start, end))
                    begin = text[: text.find(around)].count("\n") if around in text else None
                    lines = (0, 0) if begin is None else (begin + start + 1, begin + end)
                    what = "\n".join(around.split("\n")[start:end])
                    found.append(Place(name, level, marker[1], path.stem, *heading, what, *lines))
            elif "[markdown]" in sort:
                for hashes, title in HEADING.findall(source):
                    heading = [title, ""] if hashes == "##" else [heading[0], title]
    return found


def places_of_more(root):
    """The Place of every name in the modules of `levels_more`, with the notebook that shows it, if one does.

    A module adds to the level whose front its contents name; else to the highest that it, or one that it imports, imports.
    """
    found, shown = [], {}  # shown: (module, name) -> notebook, heading
    for path in sorted(root.glob("notebooks/more/text/*.py")):
        heading, text = "", path.read_text(encoding="utf-8")
        homes = {
            name: module
            for module, names in re.findall(r"^from levels_more\.([\w.]+) import (\([^)]*\)|.*)", text, re.MULTILINE)
            for name in re.findall(r"\w+", names)
        }
        for title, names in re.findall(r"^# ## (.*)$|page\.source\(([^)]*)\)", text, re.MULTILINE):
            heading = title or heading
            for name in re.findall(r"\w+", names):
                shown.setdefault((homes.get(name), name), (f"more/{path.stem}", heading))
    folder = root / MORE
    files = {path.relative_to(folder).with_suffix(""): path for path in sorted(folder.rglob("[a-z]*.py"))}
    texts = {
        ".".join(module.parts): path.read_text(encoding="utf-8")
        for module, path in files.items()
        if module.parts[0] not in SPELLINGS
    }

    @functools.cache
    def height(module):
        imported = re.findall(r"^from (levels|levels_more)\.([\w.]+)", texts.get(module, ""), re.MULTILINE)
        heights = [
            LEVELS.index(name.split(".")[0])
            for package, name in imported
            if package == "levels" and name.split(".")[0] in LEVELS
        ]
        return max(heights + [height(name) for package, name in imported if package == MORE], default=0)

    fronts = {module: front.split(".")[1] for front, module in plugged(root) if front.startswith("levels.")}
    for module, text in texts.items():
        for name, around, start, end in named(text):
            begin = text[: text.find(around)].count("\n")
            notebook, heading = shown.get((module, name.split(".")[0]), ("", ""))
            what = "\n".join(around.split("\n")[start:end])
            lines = begin + start + 1, begin + end
            found.append(
                Place(
                    name,
                    MORE,
                    module.replace(".", "/"),
                    notebook,
                    heading,
                    "",
                    what,
                    *lines,
                    fronts.get(module) or LEVELS[height(module)],
                )
            )
    return found


def plugged(root=ROOT):
    """(level, module) for each module of `levels_more` from which the front of a level hands names on.

    Others are the rules of one framework, for its spelling.
    """
    found = []
    for level in LEVELS:
        file = root / MORE / level / "__init__.py"
        for statement in ast.parse(file.read_text(encoding="utf-8")).body if file.exists() else ():
            if isinstance(statement, ast.ImportFrom) and statement.module.startswith(f"{MORE}."):
                found.append((f"levels.{level}", statement.module.removeprefix(f"{MORE}.")))
    return found


def named(source):
    """(name, the statement it stands in, its first line there, the line after) of all that a cell defines."""
    lines = source.split("\n")
    for statement in ast.parse(source).body:
        inner = [(f"{statement.name}.", each) for each in statement.body] if isinstance(statement, ast.ClassDef) else []
        start = first_line(statement)
        around = "\n".join(lines[start : statement.end_lineno])
        for prefix, each in [("", statement), *inner]:
            for name in names_of(each):
                yield prefix + name, around, first_line(each) - start, each.end_lineno - start


def first_line(statement):
    """Counted from 0; a decorator comes before its function."""
    return min(part.lineno for part in (statement, *getattr(statement, "decorator_list", ()))) - 1


def names_of(statement):
    """What a statement gives a name to: a function, a class, variables, or an op, as in `scalar("subtract")(…)`."""
    if hasattr(statement, "name"):
        return [statement.name]
    if isinstance(statement, ast.Expr):
        called = getattr(statement.value, "func", ast.Pass())
        return [node.value for node in ast.walk(called) if isinstance(node, ast.Constant)][:1]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def place_of(code, index):
    """The Place of a function's code: by its line in a built file, or, in a notebook, by its name in the newest level."""
    file = Path(code.co_filename).as_posix()
    built = [p for p in index if file.endswith(f"/{p.file}")]
    inside = [p for p in built if p.first <= code.co_firstlineno <= p.last]
    inside = inside or [p for p in index if p.name == code.co_qualname][-1:]
    return min(inside, key=lambda p: p.last - p.first, default=None)


class Found:
    """What `where` found: places, the highest level first, and the ops that it sends through the door.

    Before them stands where the name, as another framework says it, is spelled here: it can be called so.
    """

    def __init__(self, asked, found, ops, spelling=None):
        self.asked, self.places, self.ops, self.spelling = (
            asked,
            found,
            ops,
            spelling,
        )  # ops: {name: Place of its kernel}

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
        rows = [f"<b>{html.escape(self.title)}</b>"]
        for place in self.shown:
            source = f"<pre style='font-size:11px;background:none'>{html.escape(place.source)}</pre>"
            rows.append(
                f"{place.link(place.section)}<details><summary><code>{place.lines}</code></summary>{source}</details>"
            )
        ops = ", ".join(place.link(op) for op, place in self.ops.items())
        return f"<div>{''.join(rows)}{f'<p>Its ops: {ops}</p>' * bool(ops)}</div>"


def where(name):
    """Where that is defined: `where("GradientTape")`, `where("Model.fit")`, or as TensorFlow or PyTorch call it.

    Of a dotted name the longest end counts that is known here: "tf.keras.layers.Dense" is Dense. First comes the line of
    `levels_more` that spells it so. Raises LookupError, with the nearest names, for what the course does not have.
    """
    index, spelling = places(), spelling_of(name)
    modules = {module.replace(".", "/") for _, module in plugged()}
    index = [place for place in index if place.level != MORE or place.room in modules]
    known = dict.fromkeys(
        place.name for place in sorted(index, key=lambda place: place.level == MORE)
    )  # the core first
    ours = resolved(name, known)
    if ours is None and spelling:
        return Found(name, [], {}, spelling)
    if ours is None:
        lower = {each.lower(): each for each in (*known, *ALIASES)}
        near = [lower[n] for n in difflib.get_close_matches(name.split(".")[-1].lower(), lower, 3, 0.7)]
        cure = (
            f"near it are {', '.join(near)}" if near else "it finds what the notebooks export, and what others call it"
        )
        raise LookupError(f"where: nothing here is called {name!r}; {cure}")
    found = [place for place in index if place.name == ours or place.name.endswith(f".{ours}") and ours not in known]
    found = sorted(
        found[::-1], key=lambda place: -LEVELS.index(place.adds_to or place.level)
    )  # of two, the core's first
    ops = next(filter(None, map(ops_of, found)), [])
    return Found(name, found, kernels_of(ops, index), spelling)


def spelling_of(name):
    """The Place where `levels_more` spells a name as TensorFlow or PyTorch say it, or None where it cannot be called so."""
    if not (known := spelled.called(name)):
        return None
    package = known[0]
    file, first, last = spelled.line_of(ROOT, *known)
    if not first:  # it is handed on from a level
        return None
    notebook, room = spelled.NOTEBOOKS[package.split(".")[0]], file.relative_to(ROOT / MORE).with_suffix("").as_posix()
    source = "\n".join(file.read_text(encoding="utf-8").split("\n")[first - 1 : last])
    return Place(name, MORE, room, notebook, "", f"import levels_more.{package}", source, first, last)


def resolved(name, known):
    """The name by which the course knows it, or None."""
    parts, lower = name.split("."), {each.lower(): each for each in known}
    for k in range(len(parts)):
        end = ".".join(parts[k:])
        if ours := ALIASES.get(end) or (end if end in known else lower.get(end.lower())):
            return ours
    return parts[-1] if any(each.endswith(f".{parts[-1]}") for each in known) and parts[-1] else None


# The ops beneath: a part is made and called on symbols, as `function` does, and what passes the door is written down.

MADE = [(), (3,), (0.5,), ("relu",), (5, 3)]  # what a part may be made with
GIVEN = [  # and called on: x and w float32[3, 3], a mask like them, ids int64[3]
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
CALLED = {  # (level, room) -> how what is defined there is called
    ("low_level", "ops"): lambda thing, *given: thing(*given),
    ("low_level", "nn"): lambda thing, *given: thing(*given),
    ("mid_level", "layers"): lambda part, *given: part(*given, **{"training": True} if hasattr(part, "call") else {}),
    ("mid_level", "losses"): lambda loss, *given: loss(*given),
    ("mid_level", "metrics"): lambda metric, *given: metric.update_state(*given),
    ("mid_level", "optimizers"): lambda optimizer, x, w: optimizer.apply_gradients([(x, w)]),
}
CALLED |= {(MORE, f"mid_level/{room}"): call for (level, room), call in CALLED.items() if level == "mid_level"}
CALLED[MORE, "low_level/ops"] = CALLED["low_level", "ops"]


def ops_of(place):
    """The ops that a layer, a loss, a metric, an optimizer or a function of tensors sends through the door, by name.

    It is tried with what MADE and GIVEN list, until it takes one. Of anything else nothing is called, and there are none.
    """
    call = CALLED.get((place.level, place.room))
    try:
        more = f"{MORE}.{place.room.replace('/', '.')}"
        module = importlib.import_module(more if place.level == MORE else f"levels.{place.level}")
    except ImportError:  # that level is not built yet
        return []
    thing, random = getattr(module, place.name, None), getattr(sys.modules.get("levels.mid_level"), "RANDOM", None)
    if not call or not callable(thing):
        return []
    state = random and random.getstate()
    ops = next(filter(None, tried(call, thing)), [])
    if random:
        random.setstate(state)  # new layers drew their weights: the reader's draw on as if nothing had been
    return ops


def tried(call, thing):
    """The ops of each trial that succeeds."""
    for made in MADE if isinstance(thing, type) else [None]:
        for given in GIVEN:
            with suppress(Exception):  # whatever it says of arguments that it was not meant for
                part = thing if made is None else thing(*made)
                yield traced(lambda *symbols: call(part, *given(*symbols)))  # noqa: B023 - called at once


def traced(run):
    """The names of the ops that `run` sends through the door, each once."""
    import numpy as np

    from levels.hardware import pool
    from levels.low_level import Variable, trace

    cpu, w = pool()["cpu:0"], Variable(np.zeros((3, 3), "f4"))
    symbols = [cpu.spec((3, 3), "f4"), cpu.spec((3, 3), "?"), cpu.spec((3,), "i8")]

    def quiet(*args):
        run(*args, w)  # what it returns need be no tensor

    return [*dict.fromkeys(node.op for node in trace(quiet, symbols)[0].ops)]


def kernels_of(ops, index):
    """{op: the Place of its kernel}"""
    if not ops:
        return {}
    from levels.kernels import KERNELS

    return {op: place_of(KERNELS[op, "cpu"].__code__, index) for op in ops}
