"""Twelve questions that users ask, and where the source answers them: here, in PyTorch, and in TensorFlow and Keras.

For the other libraries only facts are stored: a file, a name, a commit. `python3 -m course programs --places` looks
for them in the installed packages.
"""

import html
import re
import textwrap
from typing import NamedTuple

from course.inspection.source_index import places

VERSIONS = {"torch": "2.15.0", "tensorflow": "2.21.0", "keras": "3.15.1"}  # the packages that contain these names
REPOSITORIES = {"torch": "pytorch/pytorch", "tensorflow": "tensorflow/tensorflow", "keras": "keras-team/keras"}
COMMITS = {  # of those versions; the Keras package does not state its commit, so each of its places names one
    "torch": "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e",
    "tensorflow": "a481b10260dfdf833a1b16007eead49c1d7febf3",
}
NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "keras": "Keras"}
COMPILED = ".cpp", ".cc", ".cu"  # sources that a wheel has only in compiled form
HEADS = "here", "in PyTorch", "in TensorFlow, Keras"


class There(NamedTuple):
    """A place in the source code of another library."""

    library: str  # "torch", "tensorflow" or "keras"
    file: str  # path in its repository
    name: str  # "GradientTape.gradient"
    line: int = 0  # at the library's commit; 0 if the place names its own commit
    commit: str = ""

    @property
    def address(self):
        """The file's permanent address, with the line if it is known."""
        commit = self.commit or COMMITS[self.library]
        return f"https://github.com/{REPOSITORIES[self.library]}/blob/{commit}/{self.file}{f'#L{self.line}' * bool(self.line)}"

    @property
    def in_wheel(self):
        """Whether an installed package has this file. (It has headers, and no C++ sources.)"""
        return not self.file.endswith(COMPILED)

    def __str__(self):
        return f"{self.name} in {self.file}"


class Question(NamedTuple):
    """A question, the three places that answer it, and what the other libraries do beyond that."""

    level: int  # of the notebook that shows it: 3 or 5
    asked: str
    ours: tuple  # level and name: ("low_level", "GradientTape.gradient")
    torch: There
    tensorflow: There
    more: str  # two sentences: what the other libraries do beyond that, and why

    @property
    def theirs(self):
        return self.torch, self.tensorflow

    def place(self, index):
        """The Place of our own name. Raises LookupError if no notebook defines it."""
        for place in index:
            if (place.level, place.name) == self.ours:
                return place._replace(first=0, last=0)  # no lines: they may change before this is shown again
        raise LookupError(f"{self.asked} No notebook writes {'.'.join(self.ours)}")


QUESTIONS = (
    Question(
        3,
        "Where is the gradient of `matmul`?",
        ("low_level", "_matmul_back_x"),
        There("torch", "tools/autograd/derivatives.yaml", "mm", 1238),
        There("tensorflow", "tensorflow/python/ops/math_grad.py", "_MatMulGrad", 1697),
        "Their rules also take complex numbers, and PyTorch's row holds a third formula, for derivatives that are carried "
        "forward. When PyTorch is built, its table becomes C++, because a rule in Python can take longer than the product "
        "of two small matrices.",
    ),
    Question(
        3,
        "Who writes down that `x @ w` was computed?",
        ("low_level", "GradientTape.do"),
        There("torch", "torch/csrc/autograd/functions/utils.h", "set_history", 68),
        There("tensorflow", "tensorflow/c/eager/tape.h", "RecordOperation", 159),
        "PyTorch keeps no list: each result points to the node that made it, and TensorFlow's tape leaves out each op "
        "that no watched variable leads to. This saves memory, because a record keeps its tensors as long as it lives.",
    ),
    Question(
        3,
        "What does `.backward()` free?",
        ("low_level", "GradientTape.gradient"),
        There("torch", "torch/csrc/autograd/node.h", "Node.release_variables", 583),
        There("tensorflow", "tensorflow/python/eager/backprop.py", "GradientTape.gradient", 960),
        "Ours frees all records when the walk is over; theirs free what an op has saved as soon as the walk has passed "
        "it, unless you ask for more walks with `retain_graph=True` or `persistent=True`. So the walk needs less memory, "
        "which matters because what a deep net saves on the way forward can be larger than its weights.",
    ),
    Question(
        3,
        "Why was my function traced again?",
        ("low_level", "_Programs.program"),
        There("torch", "torch/_dynamo/guards.py", "get_and_maybe_log_recompilation_reasons", 6323),
        There("tensorflow", "tensorflow/core/function/polymorphism/function_cache.py", "FunctionCache.lookup", 43),
        "PyTorch also checks what the traced Python code read from outside, such as a global number, and says which check "
        "failed if you set `TORCH_LOGS=recompiles`. Both can leave a size open that has changed (TensorFlow if you say "
        "`reduce_retracing=True`), because one compilation can take longer than thousands of steps.",
    ),
    Question(
        3,
        "Who decides which kernel runs?",
        ("kernels", "plan"),
        There("torch", "aten/src/ATen/core/dispatch/Dispatcher.h", "Dispatcher.call", 180),
        There("tensorflow", "tensorflow/core/framework/op_kernel.h", "FindKernelDef", 1518),
        "PyTorch's table also has rows for autograd, mixed precision and `vmap`, which run before the row of the device, "
        "and TensorFlow chooses by the dtype and by priorities, too. So a new device or a new feature brings its own rows, "
        "because nobody could change thousands of ops by hand.",
    ),
    Question(
        3,
        "Who writes the loop that a compiled step runs?",
        ("low_level", "StepWriter"),
        There("torch", "torch/_inductor/codegen/cpp.py", "CppKernelProxy.codegen_nodes", 4921),
        There("tensorflow", "third_party/xla/xla/service/llvm_ir/fused_ir_emitter.h", "FusedIrEmitter", 48),
        "Ours puts a whole step into one loop over rows; theirs (TensorFlow's with `jit_compile=True`) choose which ops "
        "share a loop, cut it into tiles, and write it for graphics processors, too. They have to choose, because the "
        "arrays of a large net do not fit into the cache, and its matrix products are faster in libraries of their own.",
    ),
    Question(
        5,
        "Where are the loops of `fit`?",
        ("high_level", "run_epochs"),
        There("torch", "torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 720),
        There(
            "keras",
            "keras/src/backend/tensorflow/trainer.py",
            "TensorFlowTrainer.fit",
            commit="040bf7755e81626cd451752e7aab114d7bb608ab",
        ),
        "PyTorch has no `fit`: you write the loops, and its loader reads the next batches in other processes if you wish; "
        "Keras' loops also validate after an epoch, weight the rows and train on several devices. PyTorch leaves the loop "
        "to you because people often change it, and Keras has one because most trainings need the same.",
    ),
    Question(
        5,
        "How does a model find its weights?",
        ("low_level", "Module.named"),
        There("torch", "torch/nn/modules/module.py", "Module.__setattr__", 1980),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "Layer.__setattr__",
            commit="9067d8060992924757e48492ee73dfa5df87c0ee",
        ),
        "Ours searches its attributes when it is asked; theirs notice a weight or a layer when it is assigned to an "
        "attribute. So PyTorch can say at once that `super().__init__()` was forgotten, because such a mistake is hard to "
        "find later, when a weight is missing in the optimizer.",
    ),
    Question(
        5,
        "When does a layer make its weights?",
        ("mid_level", "Layer.build_for"),
        There("torch", "torch/nn/modules/lazy.py", "LazyModuleMixin._infer_parameters", 252),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "Layer._maybe_build",
            commit="9067d8060992924757e48492ee73dfa5df87c0ee",
        ),
        "PyTorch's layers are told the size of their inputs and make their weights at once, and only lazy ones wait, as all "
        "layers of Keras do. Keras tries a layer without `build` on symbols that have only "
        "a shape, because the layers inside must have their weights before a file can be loaded into them.",
    ),
    Question(
        5,
        "Who tells a layer that it is training?",
        ("high_level", "Model.train_step"),
        There("torch", "torch/nn/modules/module.py", "Module.train", 2898),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "CallContext",
            commit="9067d8060992924757e48492ee73dfa5df87c0ee",
        ),
        "PyTorch keeps the answer in every part until `train` or `eval` changes it; Keras gives the answer of the "
        "outermost call to all layers inside it. An answer per call cannot be left behind by mistake, and an answer that "
        "is kept is also there for code that calls a layer and knows nothing of training.",
    ),
    Question(
        5,
        "Which line changes a weight?",
        ("mid_level", "Optimizer.apply_gradients"),
        There("torch", "torch/optim/sgd.py", "_single_tensor_sgd", 322),
        There(
            "keras",
            "keras/src/optimizers/sgd.py",
            "SGD.update_step",
            commit="1937d487b0ee4cf265051c7bd0524f2fd1a2cb51",
        ),
        "Theirs also have momentum and weight decay, and PyTorch has a second and a third function beside this one, which "
        "update many weights in one launch. They exist because a large model has hundreds of weights, and on a graphics "
        "processor a launch for each can cost more than the arithmetic.",
    ),
    Question(
        5,
        "Why is the loss a number where a probability is 0?",
        ("mid_level", "cross_entropy"),
        There(
            "torch",
            "aten/src/ATen/native/Loss.cpp",
            "binary_cross_entropy_out_cpu",
            commit="008af87c5f0d6652418bf0d884e63a3a06682e1d",
        ),
        There(
            "keras",
            "keras/src/backend/tensorflow/nn.py",
            "binary_crossentropy",
            commit="69b9ad08a11ed327646efc968f43924977de6477",
        ),
        "PyTorch cuts the logarithm at -100 and Keras clips the probability, as ours does, and both also take the number "
        "before the sigmoid. That form needs no cut, because sigmoid and logarithm together have a formula that never "
        "takes the logarithm of 0.",
    ),
)


class Table(NamedTuple):
    """Questions with their places, as a notebook shows them."""

    rows: list  # (Question, our Place)

    def __repr__(self):
        lines = []
        for question, place in self.rows:
            lines += [question.asked, f"    {HEADS[0]}: {place.name} in {place.file}"]
            for there in question.theirs:
                lines.append(f"    in {NAMES[there.library]}: {there}{' (not in the wheel)' * (not there.in_wheel)}")
            lines += textwrap.wrap(question.more, 100, initial_indent="    ", subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self):
        return as_html(self.rows)


def table(level):
    """The questions that the notebook of this level shows. Raises LookupError if a name of ours is no longer there."""
    index = places()
    return Table([(question, question.place(index)) for question in QUESTIONS if question.level == level])


CELL = 'style="text-align:left;vertical-align:top;overflow-wrap:anywhere;padding:0.2em 0.6em 0.2em 0"'
ASKED = CELL.replace("padding:0.2em", "padding:1.2em")


def as_html(rows, link=None):
    """The table as HTML: each question, below it its three places, and below them the two sentences.

    link(place, text) returns the link to a place of ours. The default link is relative to the running notebook.
    """
    link = link or (lambda place, text: place.link(text))
    heads = "".join(f'<th scope="col" {CELL}>{head}</th>' for head in HEADS)
    parts = [f'<table class="real-ones" style="table-layout:fixed;width:100%"><thead><tr>{heads}</tr></thead>']
    for question, place in rows:
        lead = link(place, place.file).replace(f">{place.file}<", f">{breaking(place.file)}<")
        cells = [f"<code>{breaking(place.name)}</code><br>{lead}"]
        for there in question.theirs:
            lead = f'<a href="{there.address}">{breaking(there.file)}</a>'
            mark = "<br>(not in the wheel)" * (not there.in_wheel)
            cells.append(f"<code>{breaking(there.name)}</code><br>{lead}{mark}")
        cells = "".join(f"<td {CELL}>{cell}</td>" for cell in cells)
        parts.append(
            f'<tbody><tr><th scope="rowgroup" colspan="3" {ASKED}>{coded(question.asked)}</th></tr>'
            f'<tr>{cells}</tr><tr><td colspan="3" {CELL}>{coded(question.more)}</td></tr></tbody>'
        )
    return "".join(parts) + "</table>"


def breaking(name):
    """A name as HTML that allows a line break after each slash, dot or underscore."""
    return re.sub(r"(?<=[a-zA-Z0-9][/._])(?=\w)", "<wbr>", html.escape(name))


def coded(text):
    """Plain text as HTML. Text between backticks becomes code."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if k % 2 else part for k, part in enumerate(parts))
