"""A call with arguments that are not here names the function or class that the user wrote, and none of ours."""

import inspect
import re

import pytest

import levels_more.tensorflow as tf
from levels_more import mid_level, torch

K, F, ONE, T = tf.keras, torch.nn.functional, torch.ones(2, 2), tf.ones((2, 2))
OURS = re.compile(
    r"<lambda>|<locals>|\brun\(\)|\btake\(\)|of_classes|FunctionLayer|_Part|Reduced|TensorStream|_truncated|_formatted"
)

CALLS = {  # what the error says first: the call
    "relu() takes 1 positional argument": lambda: torch.relu(ONE, 1),
    "relu() got an unexpected keyword argument 'dim'": lambda: torch.relu(ONE, dim=1),
    "sum() got an unexpected keyword argument 'out_dtype'; it takes x, dim, keepdim": lambda: ONE.sum(out_dtype=1),
    "softmax() got an unexpected keyword argument 'dtype'; it takes x, dim": lambda: torch.softmax(ONE, dim=1, dtype=1),
    "max() got an unexpected keyword argument 'foo'": lambda: ONE.max(foo=1),
    "zeros() got an unexpected keyword argument 'layout'": lambda: torch.zeros(2, layout=1),
    "rand() got an unexpected keyword argument 'foo'": lambda: torch.rand(2, foo=1),
    "zeros_like() missing 1 required positional argument": lambda: torch.zeros_like(),
    "uniform_() takes from 1 to 3 positional arguments": lambda: ONE.uniform_(1, 2, 3),
    "numel() takes 1 positional argument": lambda: ONE.numel(3),
    "allclose() missing 1 required positional argument": lambda: torch.allclose(ONE),
    "torch.LongTensor() got an unexpected keyword argument 'foo'": lambda: torch.LongTensor([1], foo=1),
    "cross_entropy() got an unexpected keyword argument 'label_smoothing'; it takes input, target, weight": (
        lambda: F.cross_entropy(ONE, torch.tensor([0, 1]), label_smoothing=0.1)
    ),
    "binary_cross_entropy_with_logits() got an unexpected keyword argument 'pos_weight'": (
        lambda: F.binary_cross_entropy_with_logits(ONE, ONE, pos_weight=1)
    ),
    "mse_loss() missing 1 required positional argument: 'target'": lambda: F.mse_loss(ONE),
    "MSELoss: got () {'foo': 1}; its options are weight, reduction": lambda: torch.nn.MSELoss(foo=1),
    "SGD.__init__() got an unexpected keyword argument 'nesterov'": lambda: torch.optim.SGD([], nesterov=True),
    "tf.gather() got an unexpected keyword argument 'batch_dims'": lambda: tf.gather([[1]], [[0]], batch_dims=1),
    "tf.relu() takes 1 positional argument": lambda: tf.nn.relu(T, 1),
    "tf.reduce_sum() got an unexpected keyword argument 'foo'; it takes x, axis, keepdims": lambda: tf.reduce_sum(
        T, foo=1
    ),
    "tf.matmul() got an unexpected keyword argument 'adjoint_a'": lambda: tf.matmul(T, T, adjoint_a=True),
    "tf.cast() missing 1 required positional argument: 'dtype'": lambda: tf.cast(T),
    "Dataset.map() got an unexpected keyword argument 'foo'": lambda: tf.data.Dataset.range(3).map(abs, foo=1),
    "Dataset.batch() got an unexpected keyword argument 'foo'": lambda: tf.data.Dataset.range(3).batch(2, foo=1),
    "truncated_normal() got an unexpected keyword argument 'foo'": lambda: tf.random.truncated_normal((2,), foo=1),
    "strings.format() got an unexpected keyword argument 'foo'": lambda: tf.strings.format("{}", 1, foo=1),
}


@pytest.mark.quick
@pytest.mark.parametrize("told", CALLS)
def test_a_wrong_call_is_told_in_the_users_words(told):
    with pytest.raises(TypeError) as error:
        CALLS[told]()
    assert str(error.value).startswith(told) and not OURS.search(str(error.value))


MADE = {  # classes, and options of Keras 3.15.1 and others that are not here
    K.layers.Dense: "bias_regularizer activity_regularizer kernel_constraint lora_rank",
    K.layers.Dropout: "noise_shape",
    K.layers.Activation: "foo",
    K.layers.BatchNormalization: "axis center scale beta_initializer synchronized",
    K.layers.Layer: "activity_regularizer autocast",
    K.optimizers.SGD: "weight_decay use_ema loss_scale_factor gradient_accumulation_steps",
    K.optimizers.Adam: "amsgrad weight_decay use_ema",
    K.optimizers.RMSprop: "momentum centered",
    K.losses.MeanSquaredError: "dtype foo",
    K.losses.BinaryCrossentropy: "label_smoothing axis",
    K.losses.CategoricalCrossentropy: "label_smoothing",
    K.losses.SparseCategoricalCrossentropy: "ignore_class",
    K.metrics.Mean: "foo",
    K.metrics.BinaryAccuracy: "foo",
    K.metrics.AUC: "curve summation_method multi_label thresholds",
    K.metrics.Precision: "top_k class_id",
    K.Model: "foo",
    K.Sequential: "foo",
    mid_level.Embedding: "mask_zero",
    mid_level.Concatenate: "foo",
    mid_level.AdamW: "foo",
}


@pytest.mark.parametrize("kind", MADE, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_an_option_that_is_not_here_is_named_with_its_class(kind):
    needed = {"units": 1, "rate": 0.5, "activation": "relu", "input_dim": 2, "output_dim": 2}
    given = {name: needed[name] for name, p in inspect.signature(kind).parameters.items() if p.default is p.empty}
    for option in MADE[kind].split():
        with pytest.raises(TypeError) as error:
            kind(**given, **{option: 1})
        told = str(error.value)
        assert told.startswith(kind.__name__) and repr(option) in told and not OURS.search(told)


def test_losses_are_called_by_the_names_of_pytorch():
    assert torch.nn.MSELoss()(input=ONE, target=ONE * 3).item() == 4.0
    assert torch.nn.ReLU()(input=-ONE).tolist() == [[0.0, 0.0]] * 2


def test_an_optimizer_of_keras_counts_from_0():
    rule = K.optimizers.SGD(0.5)
    assert float(rule.iterations) == 0.0
    v = tf.Variable([1.0])
    rule.apply_gradients([(tf.constant([1.0]), v)])
    assert float(rule.iterations) == 1.0


def test_an_error_inside_of_a_function_is_not_renamed():
    for call, told in (
        (lambda: torch.ones(2) @ torch.ones(3), "dot: x is"),
        (lambda: tf.ones(2) + tf.cast(tf.ones(2), "float64"), "need the same dtype"),
        (lambda: torch.tensor([1, 2]).requires_grad_(), "expected floats"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            call()
