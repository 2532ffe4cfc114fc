"""`Tensor.type`, and how tensors are printed; the texts are PyTorch 2.13's."""

import pytest

from levels_more import torch


@pytest.fixture(autouse=True)
def default_print_options():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.quick
def test_a_tensor_says_its_type_and_takes_another():
    x = torch.tensor([1.5, -2.0])
    assert (x.type(), x.double().type(), x.long().type(), (x > 0).type()) == (
        "torch.FloatTensor",
        "torch.DoubleTensor",
        "torch.LongTensor",
        "torch.BoolTensor",
    )
    for kind in (torch.int64, "torch.LongTensor", torch.LongTensor, torch.long):
        assert x.type(kind).dtype == torch.int64 and x.type(kind).tolist() == [1, -2]
    assert x.type(dtype=torch.float64).dtype == torch.float64 and x.type("torch.BoolTensor").tolist() == [True, True]
    assert x.type(torch.FloatTensor) is x and x.type(torch.float32) is x and x.type(x.type()) is x
    w = torch.tensor([2.0], requires_grad=True)
    (w.type(torch.float64) ** 2).sum().backward()
    assert w.grad.tolist() == [4.0] and w.grad.dtype == torch.float32


@pytest.mark.parametrize(
    "wrong", ["float64", "torch.float64", "FloatTensor", "torch.cuda.FloatTensor", "torch.HalfTensor"]
)
def test_a_name_that_is_no_type_is_refused(wrong):
    with pytest.raises(
        ValueError, match=f"type: '{wrong}'; expected a dtype, as torch.float64, or one of torch.FloatTensor"
    ):
        torch.ones(2).type(wrong)


@pytest.mark.parametrize("wrong", [3, float, [torch.float64]])
def test_what_is_no_dtype_is_refused(wrong):
    with pytest.raises(ValueError, match="type: .*; expected a dtype, as torch.float64, or one of"):
        torch.ones(2).type(wrong)


NUMBERS, COUNTED = [1.23456789, 1000.5, 1e-3], [k / 7 for k in range(12)]
PRINTED = [
    ({"precision": 2}, NUMBERS, "tensor([1.23e+00, 1.00e+03, 1.00e-03])"),
    ({"precision": 2}, 3.14159, "tensor(3.14)"),
    ({"precision": 2, "edgeitems": 1, "threshold": 3}, COUNTED, "tensor([0.00,  ..., 1.57])"),
    ({"precision": 2, "sci_mode": True}, 3.14159, "tensor(3.14e+00)"),
    ({"sci_mode": False}, [1e-3, 1000.5], "tensor([   0.0010, 1000.5000])"),
    ({"precision": 2, "linewidth": 20}, NUMBERS, "tensor([1.23e+00,\n        1.00e+03,\n        1.00e-03])"),
    (
        {"profile": "full"},
        COUNTED,
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714])",
    ),
    ({"profile": "short"}, COUNTED[:3], "tensor([0.00, 0.14, 0.29])"),
    ({"profile": "short", "precision": 3}, COUNTED[:3], "tensor([0.000, 0.143, 0.286])"),
    ({"precision": 1}, [1, 2, 3], "tensor([1, 2, 3])"),
]


@pytest.mark.parametrize("options, numbers, text", PRINTED)
def test_print_options_are_pytorchs(options, numbers, text):
    torch.set_printoptions(**options)
    assert repr(torch.tensor(numbers)) == text
    torch.set_printoptions(profile="default")
    assert repr(torch.tensor(3.14159)) == "tensor(3.1416)"


def test_long_tensors_are_shortened_in_the_middle():
    torch.set_printoptions(edgeitems=2, threshold=5)
    assert repr(torch.arange(12).reshape(6, 2)) == (
        "tensor([[ 0,  1],\n        [ 2,  3],\n        ...,\n        [ 8,  9],\n        [10, 11]])"
    )
    torch.set_printoptions(threshold=float("inf"))
    assert "..." not in repr(torch.zeros(2000))


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"profile": "x"}, "profile is 'x'; expected default, short, full"),
        ({"precision": -1}, "set_printoptions: precision is -1"),
        ({"linewidth": 7.5}, "set_printoptions: linewidth is 7.5"),
        ({"sci_mode": 3}, "set_printoptions: sci_mode is 3"),
    ],
)
def test_print_options_that_mean_nothing_change_nothing(wrong, told):
    with pytest.raises((TypeError, ValueError), match=told):
        torch.set_printoptions(edgeitems=1, threshold=1, **wrong)
    assert repr(torch.arange(4)) == "tensor([0, 1, 2, 3])"
