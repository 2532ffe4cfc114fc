"""What grows on the five levels: more ops, layers, devices, back ends. Written by hand, and plugged in by need.

`levels` asks `enter` for what it lacks. Importing one of these modules enters rows into the tables of the core; nothing is
imported before somebody asks for it, so `import levels.high_level` waits for none of them.
"""

import contextlib
import functools
import importlib

# what -> module -> its rows. `what` is a table of the core, or the front or room of `levels` that the names are added to.
CONTENTS = {
    "activation": {
        "mid_level.layers": (
            "elu exponential gelu hard_sigmoid leaky_relu log_sigmoid log_softmax mish relu6 selu silu softmax "
            "softplus softsign swish tanh"
        ),
    },
    "back end": {
        "compiler.fused.replay": "all",
    },
    "device": {
        "hardware.all_devices": "all",
    },
    "faster": {
        "kernels.intrinsics": "exp log sigmoid",
        "kernels.matmul": "matmul",
        "kernels.reductions": "reduce_mean reduce_sum",
    },
    "form": {
        "compiler.rowwise_ops": (
            "cast concat log_softmax log_softmax_grad reduce_max reduce_mean reduce_min reduce_sum reshape slice "
            "slice_grad softmax softmax_grad"
        ),
        "compiler.prefetching": "rows",
        "compiler.lane_reduction": "totals",
    },
    "guard": {
        "compiler.guards": "all",
        "kernels.verify": "use",
    },
    "initializer": {
        "mid_level.layers": "glorot_normal he_normal he_uniform lecun_normal lecun_uniform ones random_normal random_uniform truncated_normal",
    },
    "kind": {
        "kernels.gpu": "gpu",
        "kernels.tpu": "tpu",
    },
    "levels.hardware": {
        "hardware.minmax": "maximum minimum",
        "hardware.gpu.device": "Gpu RealGpu launch_kernel make_gpu real_cuda translated",
        "hardware.gpu.memory": (
            "ATOMIC READ SHARED UNUSED WRITE BarrierError Block Cuda Dim3 Endless GpuError OutOfBounds Race "
            "Thread Uninitialised View cuda every_place index_text note position race shared_array source_line used "
            "uses_of"
        ),
        "hardware.gpu.scheduler": "LAUNCH_LIMITS SEGMENT WARP SimulatedLaunch Traffic as_size count_traffic simulate",
        "hardware.disassembly": "trimmed",
        "hardware.benchmark": "Pool amount chase_program measure_latency measure_reading read_program",
        "hardware.device_scope": "placed_on",
        "hardware.devices": "MAKERS copy fill",
        "hardware.elementary": "COS SIN cos sin",
        "hardware.tpu": "SIDE Activate Multiply ReadWeights Tpu Write bfloat16 dense_program run_program systolic",
    },
    "levels.high_level": {
        "high_level.batch_methods": "on_batch predict_on_batch test_on_batch to_categorical train_on_batch",
        "high_level.callbacks": (
            "CSVLogger EarlyStopping LambdaCallback LearningRateScheduler ModelCheckpoint Monitor ReduceLROnPlateau TensorBoard "
            "TerminateOnNaN graph_of"
        ),
        "checks": "",
        "high_level.sklearn": "DNNClassifier DNNRegressor Estimator LinearRegressor",
        "saving.onnx": "ONNX OnnxWriter export onnx_graph onnx_model",
        "high_level.fit": "",
        "saving.hub": "from_pretrained push_to_hub save_pretrained",
        "high_level.data_adapter": "",
        "distributed.launch": "launched mpiexec",
        "high_level.functional": "Call Functional Input Placeholder",
        "distributed.data_parallel": "DistributedDataParallel First check_equal from_first likeness spread_state",
        "distributed.partition": "BY_ROWS SUMS WHOLE_BESIDE Cut shares spread",
        "distributed.backend": "EARLY LARGE Alone Bucket Rows Staged argument_rows messages_of places_of stages_of",
        "saving.webpage": "export_page",
        "high_level.introspection": (
            "clone_model cloned ends get_config get_layer input_of layers_of model_from_json one_call output_of places "
            "pop to_json"
        ),
        "saving.model": "Checkpoint load_model load_weights save save_weights",
    },
    "levels.kernels": {
        "kernels.gpu": (
            "BLOCK_THREADS LAYOUTS ON_GPU by_numbers compile_gpu each_row gather_threads kernel_for "
            "matmul_threads mover normal_threads plan_blocks reduce_block reduce_thread rows_checked scatter_threads "
            "thread threads_for tiled uniform_threads"
        ),
        "kernels.intrinsics": "exponent_bits intrinsic larger ldexp llvm_function scaled_bits smaller",
        "kernels.layout": (
            "as_slices by_views enter_move one_hot one_loop plan_cast plan_concat plan_moves plan_one_hot "
            "plan_scatter_add plan_slice plan_slice_grad plan_transpose scatter_add sliced"
        ),
        "kernels.elementwise": "elu erf small_tanh tanh",
        "kernels.matmul": (
            "LOW_TILE_VECTORS PACKED_ROWS STRIP_BYTES TILE_ROWS TILE_VECTORS VECTOR_BYTES WORKERS WORTH_PACKING "
            "ceil_div fill_columns matmul_rows matmul_small matmul_tiles pack pack_square plan_tiles tile_shape "
            "vectors write_tile"
        ),
        "kernels.random": (
            "ELEVEN HIGH LOW MIX STEP cos_sin normal philox plan_random random_normal random_uniform two_uniform "
            "uniform"
        ),
        "kernels.reductions": (
            "arg_max arg_min log_softmax log_softmax_grad on_rows plan_arg_max plan_rows softmax softmax_grad "
            "plan_extreme reduce_by_fours reduction"
        ),
        "compiler.dependencies": "changed read_outside watch",
        "kernels.tpu": "matmul_array plan_array",
        "kernels.verify": "SPECIAL TRIALS bounds_checked counter_example drawn outcome trials_of try_kernel try_on_all",
    },
    "levels.low_level": {
        "low_level.shape": "expand_dims pick pieces split squeeze stack take tile",
        "low_level.activations": "hard_sigmoid leaky_relu log1p log_sigmoid mish relu6 selu softplus softsign",
        "low_level.generator": "Generator",
        "low_level.autodiff": "backward grad stop_gradient",
        "distributed.collectives": (
            "COLLECTIVES World all_gather all_gather_kernel all_reduce all_reduce_kernel broadcast broadcast_kernel meet "
            "rows_back time_limit world"
        ),
        "low_level.creation": "arange normal ones ones_like range set_seed shuffle tensor uniform zeros zeros_like",
        "compiler.passes": "cse constant_fold",
        "low_level.device": "device moved",
        "low_level.statistics": (
            "argsort cosine_similarity cumsum diag flip largest norm ranked reduce_logsumexp reduce_prod reduce_std reduce_variance smallest sort "
            "take_along top_k"
        ),
        "low_level.ops": (
            "abs absolute arg_max arg_min argmax argmin boolean_mask broadcast_to cast cat concat cos dot elu equal erf gelu log_softmax "
            "logical_and logical_not logical_or matmul "
            "maximum minimum one_hot reduce_all reduce_any reduce_max reduce_min reshape silu sin slice_of softmax "
            "square swapaxes swish tanh transpose where"
        ),
        "low_level.math": (
            "ceil clip_by_global_norm clip_by_norm confusion_matrix divide eye fill floor floordiv gather_nd global_norm is_nan l2_normalize linspace mod repeat "
            "rounded sign unstack"
        ),
    },
    "levels.low_level.nn": {
        "low_level.activations": "hard_sigmoid leaky_relu log_sigmoid mish relu6 selu softplus softsign",
        "low_level.ops": "elu gelu log_softmax silu softmax swish tanh",
    },
    "levels.mid_level": {
        "mid_level.preprocessing": "Lambda LeakyReLU Normalization Rescaling Reshape",
        "mid_level.merging": "ARITHMETIC Add Arithmetic Average Maximum Minimum Multiply Subtract beside sides",
        "mid_level.feature_columns": (
            "BucketizedColumn CategoricalColumn DenseFeatures EmbeddingColumn FeatureColumn IndicatorColumn "
            "NumericColumn bucket_of bucketized_column categorical_column_with_hash_bucket "
            "categorical_column_with_identity categorical_column_with_vocabulary_list crossed_column "
            "embedding_column fingerprint indicator_column is_missing numeric_column own_tensors recipe row_by_row values_of"
        ),
        "mid_level.layers": (
            "Activation BatchNormalization Beside Concatenate Dropout Embedding Flatten L1 L1L2 L2 LayerNormalization "
            "REGULARIZERS TRAINING truncated_normal"
        ),
        "mid_level.losses": (
            "CategoricalCrossentropy Crossentropy Huber MeanAbsoluteError Reduced SparseCategoricalCrossentropy check_classes "
            "weighted"
        ),
        "mid_level.metrics": (
            "METRICS AUC Accuracy AccuracyByShape BinaryAccuracy Calculated CategoricalAccuracy Mean MeanLoss Metric Precision "
            "R2Score Recall RootMeanSquaredError SparseCategoricalAccuracy ratio snake_case"
        ),
        "mid_level.optimizers": "Adagrad AdamW CosineDecay ExponentialDecay InverseTimeDecay PiecewiseConstantDecay PolynomialDecay RMSprop shortened",
        "mid_level.dataset": (
            "DataLoader Pipeline Stream as_array as_element batched cached column cut each_array filtered in_rows "
            "mapped packed prefetched read_columns repeated shuffled stack taken"
        ),
    },
    "levels.mid_level.data": {
        "mid_level.dataset": "DataLoader",
    },
    "levels.mid_level.layers": {
        "mid_level.preprocessing": "Lambda LeakyReLU Normalization Rescaling Reshape",
        "mid_level.merging": "Add Average Maximum Minimum Multiply Subtract",
        "mid_level.feature_columns": "DenseFeatures",
        "mid_level.layers": "Activation BatchNormalization Concatenate Dropout Embedding Flatten L1 L1L2 L2 LayerNormalization "
        "truncated_normal",
    },
    "levels.mid_level.losses": {
        "mid_level.losses": "CategoricalCrossentropy Crossentropy Huber MeanAbsoluteError SparseCategoricalCrossentropy",
    },
    "levels.mid_level.optimizers": {
        "mid_level.optimizers": "Adagrad AdamW CosineDecay ExponentialDecay InverseTimeDecay PiecewiseConstantDecay PolynomialDecay RMSprop",
    },
    "loss": {
        "mid_level.losses": "categorical_crossentropy huber mae mean_absolute_error sparse_categorical_crossentropy",
    },
    "method": {
        "high_level.batch_methods": "Model.predict_on_batch Model.test_on_batch Model.train_on_batch",
        "saving.onnx": "Model.export",
        "high_level.fit": "Model.summary Model.test_step",
        "high_level.functional": "Model.begin",
        "low_level.autodiff": "Operators.backward",
        "saving.hub": "Model.push_to_hub Model.save_pretrained",
        "mid_level.layers": (
            "Layer.add_loss Layer.count_params Layer.losses Layer.non_trainable_variables Layer.non_trainable_weights "
            "Layer.trainable_weights Layer.weights"
        ),
        "high_level.introspection": (
            "Layer.get_config Layer.input Layer.output Model.get_layer Model.layers Model.to_json Sequential.inputs Sequential.outputs "
            "Sequential.pop"
        ),
        "low_level.device": "Operators.to",
        "saving.model": "Model.load_weights Model.save Model.save_weights",
        "low_level.module": (
            "Module.count Module.load_state_dict Module.named_parameters Module.parameters Module.state_dict "
            "Variable.assign_add Variable.assign_sub"
        ),
        "low_level.math": "Operators.__floordiv__ Operators.__mod__ Operators.ndim",
        "low_level.ops": (
            "Operators.__abs__ Operators.__and__ Operators.__eq__ Operators.__ge__ Operators.__getitem__ Operators.__gt__ "
            "Operators.__invert__ Operators.__iter__ Operators.__le__ Operators.__len__ Operators.__lt__ Operators.__ne__ "
            "Operators.__or__ Operators.__rpow__ Operators._power Operators.item"
        ),
    },
    "op": {
        "mid_level.composite_ops": "affine affine_relu mean_logits_crossentropy mean_squared_error",
        "distributed.collectives": "all_gather all_reduce broadcast",
        "kernels.layout": "cast concat one_hot reshape scatter_add slice slice_grad transpose",
        "kernels.elementwise": (
            "absolute copy cos elu equal erf less less_equal logits_crossentropy maximum minimum multiply_no_nan "
            "not_equal power probabilities_crossentropy probabilities_slope sin tanh where"
        ),
        "kernels.random": "random_normal random_uniform",
        "kernels.reductions": "arg_max arg_min log_softmax log_softmax_grad reduce_max reduce_min softmax softmax_grad",
    },
    "optimizer": {
        "mid_level.optimizers": "adagrad adamw rmsprop",
    },
    "pass": {
        "compiler.passes": "all",
    },
    "plan": {
        "compiler.eager.small_ops": "all",
    },
    "rule": {
        "mid_level.composite_ops": "affine affine_relu mean_logits_crossentropy mean_squared_error",
        "low_level.autodiff": (
            "clip_grad copy log_softmax_grad logits_crossentropy multiply_no_nan probabilities_crossentropy "
            "probabilities_slope relu_grad sigmoid_grad softmax_grad"
        ),
        "distributed.collectives": "all_gather all_reduce broadcast",
        "low_level.device": "to",
        "low_level.ops": (
            "absolute arg_max arg_min broadcast_to cast concat cos elu equal erf gather less less_equal log_softmax "
            "maximum minimum not_equal one_hot power reduce_max reduce_min reshape scatter_add sin slice slice_grad "
            "softmax spread sqrt tanh transpose where"
        ),
    },
    "walk": {
        "compiler.eager.backward": "all",
    },
    "wider": {
        "high_level.fit": "Training evaluate fit predict prepared",
        "high_level.functional": "Model",
        "mid_level.layers": "Dense Layer",
        "mid_level.losses": "BinaryCrossentropy Loss MeanSquaredError",
        "mid_level.optimizers": "Adam SGD",
        "mid_level.dataset": "Dataset",
    },
}
WORDS = "activation", "initializer", "loss", "optimizer"  # tables whose rows are words that a reader writes


@contextlib.contextmanager
def needed():
    """Around the import of a package that not every environment has: where it is missing, it is said what adds it.

    Raises ModuleNotFoundError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise not_installed(error.name.partition(".")[0]) from None


def not_installed(package):
    """The error that says so, and what adds the package."""
    return ModuleNotFoundError(f"{package} is not installed: `python3 -m course setup` adds it", name=package)


@functools.cache
def _modules(what):
    """{row: the name of the module that enters it}"""
    return {
        name: module
        for module, names in CONTENTS.get(what, {}).items()
        for name in (module.rpartition(".")[2], *names.split())
    }


def enter(what, name):
    """The module that has entered the row `name` in the table `what`, or that adds this name to a front; else None.

    A misspelt word fetches all rows of its table: the core then says which of them is the nearest.
    """
    rows = _modules(what)
    if name not in rows and what in WORDS:
        for module in {*rows.values()}:
            importlib.import_module(f"levels_more.{module}")
    return importlib.import_module(f"levels_more.{rows[name]}") if name in rows else None


def __getattr__(name):
    """What a name of version 1 is called now, for whoever imports it."""
    from levels_more.missing import missing
    from levels_more.moved import told

    raise missing(told(name) or f"module 'levels_more' has no attribute {name!r}", name)
