"""Modules: Sequential, by number or name; what one's own Module forgets; files and states; what optimizers train."""

import collections
import copy
import io
import pickle
import re
import warnings

import pytest

from levels_more import torch
from levels_more.torch import nn, optim


def named(**more):
    return collections.OrderedDict(hidden=nn.Linear(1, 3), act=nn.Tanh(), out=nn.Linear(3, 1), **more)


@pytest.mark.quick
def test_an_ordered_dict_gives_the_modules_of_a_chain_their_names():
    """The texts are PyTorch 2.13's."""
    net = nn.Sequential(named())
    keys = ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]
    assert [*net.state_dict()] == [name for name, _ in net.named_parameters()] == keys
    assert [name for name, _ in net.named_children()] == ["hidden", "act", "out"] and len(net) == 3
    assert net[0] is net.hidden and net[-1] is net.out and [*net] == [net.hidden, net.act, net.out]
    assert repr(net) == (
        "Sequential(\n  (hidden): Linear(in_features=1, out_features=3, bias=True)\n  (act): Tanh()\n"
        "  (out): Linear(in_features=3, out_features=1, bias=True)\n)"
    )
    assert repr(net[1:]).startswith("Sequential(\n  (act): Tanh()\n  (out)") and net[1:].out is net.out
    x = torch.tensor([[2.0], [-1.0]])
    assert net(x).tolist() == net.out(torch.tanh(net.hidden(x))).tolist() == nn.Sequential(*net)(x).tolist()
    other = nn.Sequential(named())
    other.load_state_dict(net.state_dict())
    assert other(x).tolist() == net(x).tolist() == pickle.loads(pickle.dumps(net))(x).tolist()
    assert copy.deepcopy(net)(x).tolist() == net(x).tolist()
    assert len(nn.Sequential(collections.OrderedDict())) == len(nn.Sequential()) == 0
    assert [name for name, _ in nn.Sequential(nn.ReLU(), nn.Tanh())[1:].named_children()] == ["1"]


WRONG = {
    "a list": ([nn.ReLU()], "expected a module; several are given one by one, as in Sequential(*modules)"),
    "a class": (nn.ReLU, "expected an object, ReLU(…); this is a class"),
    "a function": (nn.functional.relu, "a module, such as nn.ReLU() for relu; a Module of yours may call any function"),
    "a text": ("relu", "expected a module, such as nn.ReLU()"),
}


@pytest.mark.quick
@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_module_is_refused_wherever_it_stands(what):
    wrong, told = WRONG[what]
    told = re.escape(told)
    with pytest.raises(TypeError, match=f"Sequential: module 1 is .*{told}"):
        nn.Sequential(nn.Linear(2, 2), wrong)
    with pytest.raises(TypeError, match="Sequential: module last is "):
        nn.Sequential(named(last=wrong))


@pytest.mark.quick
def test_a_module_whose_init_was_not_called_says_so_as_pytorch_does():
    class Net(nn.Module):
        def __init__(self, part):
            self.part = part

    told = r"cannot assign {} before Module.__init__\(\) call; write super\(\).__init__\(\) first in Net.__init__"
    for part, what in ((nn.ReLU(), "module"), (nn.Parameter(torch.ones(1)), "parameters")):
        with pytest.raises(AttributeError, match=told.format(what)):
            Net(part)


def test_keras_name_for_forward_is_recognised():
    class Net(nn.Module):
        def call(self, x):
            return x

    with pytest.raises(NotImplementedError, match="Net has no forward; rename its `call`, which is Keras' name"):
        Net()(torch.ones(1))


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
