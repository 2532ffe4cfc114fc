"""Twelve questions that users ask, and the places in PyTorch, TensorFlow and Keras that answer them.

Of the other libraries only facts are stored: a file, a name, a word that stands in its code, a commit. `python3 -m
course programs --places` looks for them in the installed packages.
"""

from typing import NamedTuple

VERSIONS = {"torch": "2.15.0", "tensorflow": "2.21.0", "keras": "3.15.1"}  # the packages that contain these names
REPOSITORIES = {"torch": "pytorch/pytorch", "tensorflow": "tensorflow/tensorflow", "keras": "keras-team/keras"}
COMMITS = {  # of those versions; the Keras package does not state its commit, so each of its places names one
    "torch": "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e",
    "tensorflow": "a481b10260dfdf833a1b16007eead49c1d7febf3",
}
NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "keras": "Keras"}
COMPILED = ".cpp", ".cc", ".cu"  # sources that a wheel has only in compiled form


class There(NamedTuple):
    """A place in the source code of another library."""

    library: str  # "torch", "tensorflow" or "keras"
    file: str  # path in its repository
    name: str  # "GradientTape.ComputeGradient"
    word: str  # of the line that answers the question; a declaration or an empty method does not have it
    line: int = 0  # of that word, at the library's commit; 0 if the place names its own commit
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
        There("torch", "tools/autograd/derivatives.yaml", "mm", "mm_mat1_backward", 1239),
        There("tensorflow", "tensorflow/python/ops/math_grad.py", "_MatMulGrad", "mat_mul(grad, b", 1715),
        "Their rules also take complex numbers, and PyTorch's row holds a third formula, for derivatives that are carried "
        "forward. When PyTorch is built, its table becomes C++, because a rule in Python can take longer than the product "
        "of two small matrices.",
    ),
    Question(
        3,
        "Who writes down that `x @ w` was computed?",
        ("low_level", "GradientTape.do"),
        There("torch", "torch/csrc/autograd/functions/utils.h", "set_history", "set_gradient_edge", 81),
        There("tensorflow", "tensorflow/c/eager/tape.h", "GradientTape.RecordOperation", "op_tape_[op_id] =", 440),
        "PyTorch keeps no list: each result points to the node that made it. TensorFlow's tape leaves out each op that "
        "no watched variable leads to, which saves memory, because a record keeps its tensors as long as it lives.",
    ),
    Question(
        3,
        "What does `.backward()` free?",
        ("low_level", "GradientTape.gradient"),
        There("torch", "tools/autograd/gen_autograd_functions.py", "process_function.save_var", "reset_data", 663),
        There(
            "tensorflow",
            "tensorflow/c/eager/tape.h",
            "GradientTape.ComputeGradient",
            "trace.backward_function_deleter",
            798,
        ),
        "Ours frees all records when the walk is over; theirs free what an op has saved as soon as the walk has passed "
        "it, unless you ask for more walks with `retain_graph=True` or `persistent=True`. So the walk needs less memory, "
        "which matters because what a deep net saves on the way forward can be larger than its weights.",
    ),
    Question(
        3,
        "Why was my function traced again?",
        ("low_level", "_Programs.program"),
        There(
            "torch",
            "torch/_dynamo/guards.py",
            "get_and_maybe_log_recompilation_reasons",
            "get_guard_fail_reason",
            6337,
        ),
        There(
            "tensorflow",
            "tensorflow/python/eager/polymorphic_function/tracing_compilation.py",
            "_maybe_define_function",
            "Creating new FuncGraph",
            256,
        ),
        "PyTorch also checks what the traced Python code read from outside, such as a global number, and says which check "
        "failed if you set `TORCH_LOGS=recompiles`. Both can leave a size open that has changed (TensorFlow if you say "
        "`reduce_retracing=True`), because one compilation can take longer than thousands of steps.",
    ),
    Question(
        3,
        "Who decides which kernel runs?",
        ("kernels", "plan"),
        There("torch", "aten/src/ATen/core/dispatch/Dispatcher.h", "Dispatcher.call", "lookup(dispatchKeySet)", 798),
        There(
            "tensorflow",
            "tensorflow/core/framework/op_kernel.cc",
            "FindKernelRegistration",
            "priority",
            commit="c8e5f66965714c8eb3211ae8099c467872b5901a",
        ),
        "PyTorch's table also has rows for autograd, mixed precision and `vmap`, which run before the row of the device, "
        "and TensorFlow chooses by the dtype and by priorities, too. So a new device or a new feature brings its own rows, "
        "because nobody could change thousands of ops by hand.",
    ),
    Question(
        3,
        "Who writes the loop that a compiled step runs?",
        ("low_level", "StepWriter"),
        There("torch", "torch/_inductor/codegen/cpp.py", "LoopLevel.lines", "for(", 6314),
        There(
            "tensorflow",
            "third_party/xla/xla/service/llvm_ir/loop_emitter.cc",
            "LoopEmitter.EmitStaticIndex",
            "AddLoop",
            commit="67beea810315ada6a7801f179a400a27a0dcb721",
        ),
        "Ours puts a whole step into one loop over rows; theirs (TensorFlow's with `jit_compile=True`) choose which ops "
        "share a loop, cut it into tiles, and write it for graphics processors, too. They have to choose, because the "
        "arrays of a large net do not fit into the cache, and its matrix products are faster in libraries of their own.",
    ),
    Question(
        5,
        "Where are the loops of `fit`?",
        ("high_level", "run_epochs"),
        There("torch", "torch/utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", "_next_data", 725),
        There(
            "keras",
            "keras/src/backend/tensorflow/trainer.py",
            "TensorFlowTrainer.fit",
            "for epoch in",
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
        There("torch", "torch/nn/modules/module.py", "Module.__setattr__", "register_parameter", 2001),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "Layer.__setattr__",
            "_tracker.track",
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
        There(
            "torch",
            "torch/nn/modules/lazy.py",
            "LazyModuleMixin._infer_parameters",
            "initialize_parameters",
            263,
        ),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "Layer._maybe_build",
            "self.build(",
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
        There("torch", "torch/nn/modules/module.py", "Module.train", "self.training =", 2915),
        There(
            "keras",
            "keras/src/layers/layer.py",
            "Layer.__call__",
            "Infer training value",
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
        There("torch", "torch/optim/sgd.py", "_single_tensor_sgd", "param.add_(grad", 377),
        There(
            "keras",
            "keras/src/optimizers/sgd.py",
            "SGD.update_step",
            "assign_sub",
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
            "-100",
            commit="008af87c5f0d6652418bf0d884e63a3a06682e1d",
        ),
        There(
            "keras",
            "keras/src/backend/tensorflow/nn.py",
            "binary_crossentropy",
            "_get_logits",
            commit="69b9ad08a11ed327646efc968f43924977de6477",
        ),
        "PyTorch cuts the logarithm at -100; Keras clips the probability, as ours does, but if a sigmoid layer gave it, "
        "Keras takes the number before the sigmoid (PyTorch has a loss of its own for that number). That form needs no "
        "cut, because sigmoid and logarithm together have a formula that never takes the logarithm of 0.",
    ),
)
