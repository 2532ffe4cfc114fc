"""Modules that hold modules: Sequential, by number or by name; and what a Module of one's own forgets."""

import collections
import copy
import pickle
import re

import pytest

from levels_more import torch
from levels_more.torch import nn


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
    "a generator": ((nn.ReLU() for _ in range(2)), "several are given one by one"),
    "a dict": ({"a": nn.ReLU()}, "modules with names are given alone, in an OrderedDict"),
    "a class": (nn.ReLU, "expected an object, ReLU(…); this is a class"),
    "a function": (nn.functional.relu, "a module, such as nn.ReLU() for relu; a Module of yours may call any function"),
    "a text": ("relu", "expected a module, such as nn.ReLU()"),
    "nothing": (None, "expected a module, such as nn.ReLU()"),
    "a number": (3, "expected a module"),
    "a tensor": (torch.ones(2), "expected a module"),
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


@pytest.mark.parametrize("name", ["", "a.b", "forward", "training", 1, None])
def test_a_name_that_cannot_be_an_attribute_is_refused(name):
    with pytest.raises(KeyError, match=f"Sequential: {name!r} cannot be a name"):
        nn.Sequential(collections.OrderedDict([(name, nn.ReLU())]))


@pytest.mark.parametrize(
    "dim, shares", [(0, [[0.1192, 0.0474], [0.8808, 0.9526]]), (1, [[0.2689, 0.7311], [0.1192, 0.8808]])]
)
def test_softmax_is_a_layer(dim, shares):
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    for layer in (nn.Softmax(dim), nn.Softmax(dim=dim - 2)):
        assert layer(x).tolist() == [pytest.approx(row, abs=5e-5) for row in shares]
        assert repr(nn.Sequential(layer)).endswith(f"Softmax(dim={layer.options['dim']})\n)")
    with pytest.raises(TypeError, match="Softmax: got .* its options are dim"):
        nn.Softmax(1, 2)


@pytest.mark.quick
def test_a_module_whose_init_was_not_called_says_so_as_pytorch_does():
    class Net(nn.Module):
        def __init__(self, part):
            self.part = part

    told = r"cannot assign {} before Module.__init__\(\) call; write super\(\).__init__\(\) first in {}.__init__"
    for make, what, name in (
        (lambda: Net(nn.ReLU()), "module", "Net"),
        (lambda: Net(nn.Parameter(torch.ones(1))), "parameters", "Net"),
    ):
        with pytest.raises(AttributeError, match=told.format(what, name)):
            make()


def test_keras_name_for_forward_is_recognised():
    class Net(nn.Module):
        def call(self, x):
            return x

    with pytest.raises(NotImplementedError, match="Net has no forward; rename its `call`, which is Keras' name"):
        Net()(torch.ones(1))


@pytest.mark.parametrize("name", ["append", "extend", "insert"])
def test_a_sequential_is_given_all_its_modules_at_once(name):
    with pytest.raises(AttributeError, match=rf"no '{name}' here; use nn.Sequential\(\*modules\)"):
        getattr(nn.Sequential(nn.Linear(2, 2)), name)
    with pytest.raises(AttributeError) as error:
        getattr(torch.ones(2), name)
    assert "Sequential" not in str(error.value)
