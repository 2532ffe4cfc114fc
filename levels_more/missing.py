"""What a spelling has of a name, and what is said of one that it lacks, also where a `from … import …` asks for it."""

import difflib
import dis
import sys
from types import ModuleType

_NUMPY = "NumPy, on x.detach().numpy(); no gradient passes through it"
_LEVELS = "levels_more.low_level, whose tensors have a function of that name"
_TORCH = {  # what to use instead -> the names of PyTorch that are not here
    _LEVELS: ("elu erf logical_and logical_not logical_or one_hot take"),
    _NUMPY: (
        "acos acosh argsort argwhere asin asinh atan atan2 atanh bernoulli bincount bitwise_xor cartesian_prod "
        "cholesky corrcoef cosh cosine_similarity count_nonzero cov cummax cummin cumprod cumsum det diag diff eig "
        "eigh eigvals eigvalsh finfo flip fmod frac histc hypot inv inverse isclose isin isinf logical_xor logspace "
        "lstsq matrix_rank median meshgrid mode multinomial nan_to_num nonzero norm pinv prod qr quantile roll "
        "searchsorted sinh slogdet solve sort split svd svdvals tan tile topk trace tril triu trunc unique "
        "vector_norm"
    ),
    "float32": "float16 half bfloat16",
    "int64": "int8 int16 uint8 short byte",
    "to(device), where the device is the CPU": "is_cuda",
    "torch.cuda.is_available(), which is False": "current_accelerator",
    "the function as it is: nothing here compiles it": "compile jit vmap func fx",
    "matmul, or x @ y": "addmm baddbmm bmm cdist dot einsum mm mv outer tensordot",
    "torch.autograd.grad": "hessian jacobian jvp vjp",
    "a row of levels.low_level.VJPS, as in notebook 03": "Function",
    "nudges of your own, as notebook 03 checks its rules": "gradcheck detect_anomaly set_detect_anomaly",
    "grad of the leaves": "register_full_backward_hook register_hook retain_grad",
    "forward, and call what you need in it": "apply register_forward_hook",
    "an attribute: self.name = parameter or module": "add_module get_submodule register_parameter",
    "state_dict()": "buffers named_buffers",
    "tensor": "BoolTensor DoubleTensor IntTensor Variable",
    "the operator, as in x + y": "absolute divide equal greater less multiply negative reciprocal subtract true_divide",
    "operators, and where": "addcdiv addcmul clip index_fill lerp masked_fill masked_select normalize rsqrt threshold",
    "max, min or logarithms of sum": "amax amin logsumexp log10 log1p log2 expm1 logit",
    "cat or stack": "broadcast_tensors concat hstack repeat repeat_interleave vstack",
    "reshape, expand, flatten or transpose": (
        "Flatten Unflatten broadcast_to expand_as mT ndimension pad ravel reshape_as swapaxes unflatten view_as"
    ),
    "an index, as in x[:, 1:3]": "chunk gather narrow select scatter unbind",
    "zeros or ones, with dtype=x.dtype": "empty empty_like new_full new_ones new_tensor new_zeros",
    "to(x.dtype), or dtype": "element_size promote_types result_type type type_as",
    "clone()": "contiguous detach_ is_contiguous",
    "numel()": "nelement",
    "nn.functional.one_hot of levels_more.low_level, and a matrix product": "index_add_ scatter_add scatter_add_",
    "print(x.tolist())": "set_printoptions",
    "Linear layers: there are only dense nets here": (
        "Conv1d Conv2d Embedding GRU LSTM MaxPool2d MultiheadAttention RNN Transformer conv2d embedding max_pool2d "
        "Bilinear"
    ),
    "nn.ReLU, or torch.relu, sigmoid, tanh in forward": (
        "gelu leaky_relu log_sigmoid mish relu6 selu silu softplus softsign CELU ELU GELU GLU Hardshrink Hardsigmoid "
        "Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU6 SELU SiLU Softplus Softshrink Softsign Tanhshrink "
        "Threshold celu glu hardshrink hardsigmoid hardswish hardtanh logsigmoid prelu softshrink tanhshrink"
    ),
    "softmax(x, -1) or log_softmax(x, -1), in forward": "LogSoftmax Softmax Softmin softmin",
    "nothing: leave it away": "Identity",
    "columns that are standardised before, or levels_more.mid_level.BatchNormalization": (
        "BatchNorm1d GroupNorm InstanceNorm1d LayerNorm RMSNorm batch_norm layer_norm rms_norm"
    ),
    "Sequential, or an attribute for each": "ModuleDict ModuleList ParameterDict ParameterList",
    "MSELoss, L1Loss, or operators": (
        "CosineEmbeddingLoss CosineSimilarity GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss "
        "MarginRankingLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss cosine_embedding_loss "
        "gaussian_nll_loss hinge_embedding_loss huber_loss kl_div margin_ranking_loss poisson_nll_loss "
        "smooth_l1_loss soft_margin_loss triplet_margin_loss"
    ),
    "CrossEntropyLoss": "MultiMarginLoss NLLLoss nll_loss",
    "BCEWithLogitsLoss": "MultiLabelSoftMarginLoss",
    "Adam, or SGD": "ASGD Adadelta Adagrad AdamW Adamax LBFGS NAdam RAdam RMSprop Rprop",
    "LambdaLR": (
        "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LinearLR "
        "MultiStepLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR"
    ),
    "uniform_, normal_, fill_ or copy_, inside torch.no_grad()": (
        "calculate_gain constant_ dirac_ eye_ kaiming_normal_ kaiming_uniform_ ones_ orthogonal_ sparse_ "
        "trunc_normal_ xavier_normal_ xavier_uniform_ zeros_"
    ),
    "clip_grad_norm_": "clip_grad_value_ parameters_to_vector vector_to_parameters",
    "a Sampler of your own": ("BatchSampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler"),
    "a Dataset, with __len__ and __getitem__": "ConcatDataset IterableDataset",
    "numba's of that name": "get_num_threads set_num_threads",
    "manual_seed: with it all numbers come again": "get_rng_state set_rng_state use_deterministic_algorithms",
    "a list of losses, and matplotlib": "SummaryWriter tensorboard",
    "levels_more.distributed.DistributedDataParallel": "DataParallel distributed",
    "KerasModel": "Model",
    "Accuracy, or the metrics of levels_more.mid_level": "AUC KS Precision Recall",
}
_RATES = "levels_more.mid_level, whose optimizers take a function of the step as their rate"
_WORD = "the word for it, as in layers.Dense(4, kernel_initializer='he_normal'), or levels_more.mid_level"
_TENSORFLOW = {  # what to use instead -> the names of TensorFlow that are not here
    _LEVELS: ("broadcast_to elu erf floordiv mod one_hot"),
    "NumPy, on x.numpy(); no gradient passes through it": (
        "acos acosh argsort asin asinh atan atan2 atanh bincount bitcast ceil "
        "confusion_matrix cosh cosine_similarity count_nonzero cumprod cumsum det diag diag_part eigh eigvalsh expm1 "
        "gather_nd histogram inv is_finite is_inf is_nan l2_normalize linspace log1p logical_xor matvec "
        "meshgrid moments norm pad qr reduce_logsumexp reduce_prod reverse roll sinh slice solve sort split svd tan trace "
        "tensordot tile top_k unique unstack"
    ),
    "clipnorm or global_clipnorm of an optimizer": "clip_by_global_norm clip_by_norm global_norm",
    "tf.float32": "float16 bfloat16 half",
    "tf.int64": "int8 int16 uint8",
    "tf.cast, or the name of the dtype": "as_dtype",
    "Python's text; tensors hold numbers": "string as_string",
    "operators": (
        "add_n bias_add divide_no_nan floormod l2_loss reciprocal rsqrt squared_difference truediv identity_n "
        "exponential linear"
    ),
    "tf.matmul": "einsum",
    "len(x.shape)": "rank size",
    "tuple": "TensorShape",
    "a loop of Python": "foldl foldr map_fn scan vectorized_map while_loop",
    "a Python list, and tf.stack": "TensorArray",
    "an if of Python, or tf.where": "cond case",
    "tf.where": "scatter_nd tensor_scatter_nd_add tensor_scatter_nd_update",
    "isinstance(x, tf.Tensor)": "is_tensor",
    "a with of Python's contextlib, or nothing": (
        "name_scope with_name_scope init_scope executing_eagerly run_functions_eagerly"
    ),
    "Python's logging": "get_logger",
    "levels_more.low_level.device": "device",
    "levels_more.hardware.pool": "list_logical_devices list_physical_devices",
    "ValueError, TypeError or IndexError, which levels raises": "InvalidArgumentError OutOfRangeError",
    "assert": "assert_equal assert_greater assert_less assert_near",
    "a row of levels.low_level.VJPS, as in notebook 03": "custom_gradient",
    "gradient, of each number by itself": "batch_jacobian gradients hessians jacobian UnconnectedGradients",
    "a tape in a with block": "reset stop_recording watched_variables",
    "tf.keras.losses, with from_logits=True": (
        "sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits sparse_softmax_cross_entropy_with_logits"
    ),
    "save_weights and load_weights of a model": "Checkpoint CheckpointManager latest_checkpoint",
    "levels_more.high_level.TensorBoard, a callback": "create_file_writer scalar",
    "model.save(folder) and tf.keras.models.load_model(folder)": "saved_model save_model",
    "layers.Dense: there are only dense nets here": "Conv1D Conv2D Embedding GRU LSTM MaxPooling2D SimpleRNN image",
    "a function of yours as activation": (
        "gelu hard_sigmoid leaky_relu log_sigmoid mish relu6 selu silu softplus softsign swish"
    ),
    "layers.Activation": "ELU LeakyReLU PReLU ReLU Softmax ThresholdedReLU hard_swish",
    "levels_more.mid_level, with levels_more.high_level.Sequential": "DenseFeatures R2Score",
    "a layer of your own, with a call": (
        "Add Average Concatenate Flatten ActivityRegularization Dot GaussianNoise Identity Lambda Maximum Minimum "
        "Multiply Permute RepeatVector Rescaling Reshape Subtract UnitNormalization activity_regularizer"
    ),
    "BatchNormalization": "LayerNormalization Normalization",
    "the root of MeanSquaredError": "RootMeanSquaredError",
    "levels_more.mid_level.feature_columns": "Tokenizer TextVectorization",
    "levels_more.mid_level.DenseFeatures, or pandas.get_dummies": (
        "CategoryEncoding IntegerLookup StringLookup bucketized_column categorical_column_with_hash_bucket "
        "categorical_column_with_identity categorical_column_with_vocabulary_list crossed_column embedding_column "
        "indicator_column numeric_column"
    ),
    "mean_squared_error, mean_absolute_error, or a function of yours": (
        "BinaryFocalCrossentropy CategoricalHinge CosineSimilarity Hinge Huber KLD KLDivergence LOGCOSH LogCosh "
        "LogCoshError MAE MAPE MSE MSLE MeanAbsolutePercentageError MeanSquaredLogarithmicError Poisson SquaredHinge "
        "binary_focal_crossentropy categorical_hinge hinge huber kl_divergence kld kullback_leibler_divergence "
        "log_cosh logcosh mape mean_absolute_percentage_error mean_squared_logarithmic_error msle poisson "
        "squared_hinge"
    ),
    "BinaryAccuracy, CategoricalAccuracy, or the metrics of levels_more.mid_level": (
        "AUC Accuracy F1Score FalseNegatives FalsePositives MeanLoss Precision Recall SparseTopKCategoricalAccuracy "
        "Sum TopKCategoricalAccuracy TrueNegatives TruePositives categorical_accuracy sparse_categorical_accuracy"
    ),
    "SGD, Adam or RMSprop": "Adadelta Adagrad AdamW Adamax Ftrl Nadam",
    _RATES: (
        "CosineDecay ExponentialDecay InverseTimeDecay LearningRateSchedule PiecewiseConstantDecay PolynomialDecay "
        "schedules"
    ),
    _WORD: (
        "Constant GlorotNormal GlorotUniform HeNormal HeUniform L1 L1L2 L2 LecunNormal LecunUniform Ones "
        "RandomNormal RandomUniform TruncatedNormal Zeros glorot_normal glorot_uniform he_normal he_uniform l1 l1_l2 "
        "l2 lecun_normal lecun_uniform random_normal random_normal_initializer random_uniform constant_initializer"
    ),
    "variable.assign after a step": "MaxNorm MinMaxNorm NonNeg UnitNorm",
    "a word or an object": "get get_config from_config",
    "float(v)": "get_value read_value",
    "1e-7": "epsilon",
    "tf.clip_by_value": "clip",
    "tf.concat": "concatenate",
    "tf.reduce_mean and the others with reduce_ in front": "all any average max mean min prod std sum var",
    "tf.random.set_seed": "set_random_seed",
    "copy.deepcopy(model)": "clone_model",
    "model.save(path) and load_model(path)": "model_from_json",
    "numpy.eye(classes)[y]": "to_categorical",
    "custom_objects of load_model": "register_keras_serializable",
    "apply_gradients": "minimize lr",
    "a loop of your own with tf.GradientTape": (
        "compute_loss compute_metrics get_metrics_result metrics_names reset_metrics test_step"
    ),
    "model.summary()": "plot_model",
    "course.data, or files of your own with NumPy or pandas": "datasets",
    "NumPy, before from_tensor_slices, or map": (
        "cardinality counter element_spec enumerate flat_map from_tensors padded_batch reduce unbatch window "
        "with_options Options interleave"
    ),
}
TORCH, TENSORFLOW = (
    {name: cure for cure, names in table.items() for name in names.split()} for table in (_TORCH, _TENSORFLOW)
)
TENSORFLOW_EMPTY = ["linalg", "train", "summary", "config", "debugging", "dtypes", "errors", "feature_column"]
KERAS_EMPTY = [
    "activations",
    "constraints",
    "initializers",
    "regularizers",
    "ops",
    "utils",
]  # which have no name, and say so


def missing(told, name, calls=2):
    """The error for a module's `__getattr__`, which calls this, or so many `calls` away, to raise: it says `told`.

    An AttributeError, so that `hasattr` is false; but in `from … import …`, where its text is dropped, an ImportError.
    """
    asking = sys._getframe(calls)
    importing = dis.opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM"
    return ImportError(told, name=name) if importing else AttributeError(told, name=name)


def refusing(what, cures):
    """`__getattr__` for a class: of a name that its objects lack it is said what to use, in an AttributeError."""

    def find(self, name):
        cure = f"; use {cures[name]}" if name in cures else ""
        raise AttributeError(f"{what} has no {name!r} here{cure}", name=name, obj=self)

    return find


def room(place, own, *tables, cures=TORCH):
    """`__getattr__` and `__dir__` of a module whose names are its `own`, from globals(), and the rows of these tables.

    What is in neither is `missing`: it is said what to use, by `cures`, which name is near, or how all are listed.
    """

    def names():
        found = {name for table in tables for name in table if not name.endswith("_")}
        found |= {name for name, value in own.items() if not isinstance(value, ModuleType) or place in value.__name__}
        return sorted(name for name in found if not name.startswith("_"))

    def find(name):
        for table in tables:
            if name in table and not name.endswith("_"):
                return table[name]
        near = difflib.get_close_matches(name, names(), 1, 0.75) if name not in cures else []
        cure = f"use {cures.get(name)}" if name in cures else f"dir({place}) lists what it has"
        cure = f"the nearest is {near[0]!r}" if near else cure
        raise missing(f"{place} has no {name!r} here; {cure}", name)

    return find, names


def small_room(place, *tables, cures=TORCH, **names):
    """A module such as "torch.cuda", that has these names, and rows, alone; `import` finds it below `levels_more`."""
    module = sys.modules[f"levels_more.{place}"] = ModuleType(f"levels_more.{place}", f"`{place}`.")
    for table in (*tables, names):
        vars(module).update(table)
    module.__getattr__, _ = room(place, vars(module), cures=cures)
    return module
