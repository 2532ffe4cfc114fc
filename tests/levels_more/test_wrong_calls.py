"""A call with arguments that are not here names the function or class that the user wrote, and none of ours."""

import re

import pytest

import levels_more.tensorflow as tf
from levels_more import torch

K, F, ONE, T = tf.keras, torch.nn.functional, torch.ones(2, 2), tf.ones((2, 2))
OURS = re.compile(
    r"<lambda>|<locals>|\brun\(\)|\btake\(\)|of_classes|FunctionLayer|_Part|Reduced|TensorStream|_truncated|_formatted"
)

CALLS = {  # what the error says first: the call
    "relu() takes 1 positional argument": lambda: torch.relu(ONE, 1),
    "relu() got an unexpected keyword argument 'dim'": lambda: torch.relu(ONE, dim=1),
    "softmax() got an unexpected keyword argument 'dtype'; it takes x, dim": lambda: torch.softmax(ONE, dim=1, dtype=1),
    "zeros_like() missing 1 required positional argument": lambda: torch.zeros_like(),
    "uniform_() takes from 1 to 3 positional arguments": lambda: ONE.uniform_(1, 2, 3),
    "cross_entropy() got an unexpected keyword argument 'label_smoothing'; it takes input, target, weight": (
        lambda: F.cross_entropy(ONE, torch.tensor([0, 1]), label_smoothing=0.1)
    ),
    "binary_cross_entropy_with_logits() got an unexpected keyword argument 'pos_weight'": (
        lambda: F.binary_cross_entropy_with_logits(ONE, ONE, pos_weight=1)
    ),
    "MSELoss: got () {'foo': 1}; its options are weight, reduction": lambda: torch.nn.MSELoss(foo=1),
    "SGD.__init__() got an unexpected keyword argument 'nesterov'": lambda: torch.optim.SGD([], nesterov=True),
    "tf.gather() got an unexpected keyword argument 'batch_dims'": lambda: tf.gather([[1]], [[0]], batch_dims=1),
    "tf.reduce_sum() got an unexpected keyword argument 'foo'; it takes x, axis, keepdims": lambda: tf.reduce_sum(
        T, foo=1
    ),
    "tf.cast() missing 1 required positional argument: 'dtype'": lambda: tf.cast(T),
    "Dataset.map() got an unexpected keyword argument 'foo'": lambda: tf.data.Dataset.range(3).map(abs, foo=1),
    "strings.format() got an unexpected keyword argument 'foo'": lambda: tf.strings.format("{}", 1, foo=1),
}


@pytest.mark.quick
@pytest.mark.parametrize("told", CALLS)
def test_a_wrong_call_is_told_in_the_users_words(told):
    with pytest.raises(TypeError) as error:
        CALLS[told]()
    assert str(error.value).startswith(told) and not OURS.search(str(error.value))


def test_an_error_inside_of_a_function_is_not_renamed():
    for call, told in (
        (lambda: torch.ones(2) @ torch.ones(3), "dot: x is"),
        (lambda: tf.ones(2) + tf.cast(tf.ones(2), "float64"), "need the same dtype"),
        (lambda: torch.tensor([1, 2]).requires_grad_(), "expected floats"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            call()
