"""Files and states of modules, and what optimizers train."""

import io
import warnings

import pytest

from levels_more import torch
from levels_more.torch import nn, optim


def test_save_takes_its_arguments_by_name_and_files_that_are_open():
    file = io.BytesIO()
    torch.save(obj={"a": torch.ones(2)}, f=file)
    file.seek(0)
    assert torch.load(f=file)["a"].tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="save: f is 3; expected the name of a file"):
        torch.save({}, 3)


@pytest.mark.quick
@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_a_parameter_twice_in_a_group_is_warned_of_and_in_two_groups_refused(kind):
    """As in PyTorch 2.13: it steps twice."""
    w, other = (nn.Parameter(torch.ones(1)) for _ in range(2))
    for group in ([w, w], [w, other, w], [{"params": [w, w]}]):
        with pytest.warns(UserWarning, match=f"{kind.__name__}: a parameter is twice in a group, and each step"):
            rule = kind(group, lr=0.25)
    w.grad = torch.ones(1)
    rule.step()
    assert w.item() == pytest.approx(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rule = kind([w, other], lr=0.25)
        with pytest.raises(ValueError, match="a parameter is in two groups"):
            kind([{"params": [w]}, {"params": [other, w]}], lr=0.25)
        with pytest.raises(ValueError, match="a parameter is in two groups"):
            rule.add_param_group({"params": w})
    with pytest.warns(UserWarning, match="twice in a group"):
        rule.add_param_group({"params": [nn.Parameter(torch.ones(1))] * 2})


def test_what_a_module_says_of_a_state():
    net = torch.nn.Linear(2, 1)
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    found = net.load_state_dict({"weight": net.weight, "more": net.bias}, strict=False)
    assert (
        found.missing_keys == ["bias"] and found.unexpected_keys == ["more"] and "missing_keys=['bias']" in repr(found)
    )


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.9, 0.9999), (0.99, 0.999999), (0.5, 0.5), (0.0, 0.0)])
def test_adam_goes_its_rate_along_a_steady_gradient_whatever_its_betas(betas):
    """Then m / (1 - β₁ᵗ) is the gradient and v / (1 - β₂ᵗ) its square: each step is lr / (1 + eps)."""
    w = torch.zeros(1, requires_grad=True)
    adam = torch.optim.Adam([w], lr=1.0, betas=betas)
    for step in range(1, 101):
        w.grad = torch.ones(1)
        adam.step()
        assert w.item() == pytest.approx(-step, rel=2e-6)
