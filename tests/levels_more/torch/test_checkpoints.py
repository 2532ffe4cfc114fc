"""Checkpoints: what an optimizer and a schedule keep, in PyTorch's layout, into a file and back."""

import copy
import io
import warnings

import pytest

from levels_more import torch
from levels_more.torch import nn, optim

RULES = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "groups": lambda p: optim.Adam([{"params": p[:1], "lr": 0.5, "betas": (0.5, 0.9)}, {"params": p[1:]}], lr=0.1),
}
KEPT = {  # the names in PyTorch 2.13's state after a step
    "SGD": set(),
    "momentum": {"momentum_buffer"},
    "Adam": {"step", "exp_avg", "exp_avg_sq"},
    "groups": {"step", "exp_avg", "exp_avg_sq"},
}


def weights(dtype):
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in ([[1.0, -2.0]], [0.5], 3.0)]


def train(parameters, rule, steps=3):
    for _ in range(steps):
        rule.zero_grad()
        sum((p * p).sum() for p in parameters[::2]).backward()  # the second has no gradient, and so no state
        rule.step()
    return [p.tolist() for p in parameters]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", RULES)
def test_a_training_goes_on_from_a_file_to_the_bit(name, dtype, tmp_path):
    parameters = weights(dtype)
    rule = RULES[name](parameters)
    assert rule.state_dict()["state"] == {}
    train(parameters, rule)
    kept = rule.state_dict()
    assert [*kept] == ["state", "param_groups"]
    assert {*kept["state"]} == ({0, 2} if KEPT[name] else set())
    assert all({*state} == KEPT[name] for state in kept["state"].values())
    assert [k for group in kept["param_groups"] for k in group["params"]] == [0, 1, 2]
    if "Adam" in type(rule).__name__:
        assert kept["state"][2]["step"].item() == 3.0 and kept["state"][0]["exp_avg"].dtype == dtype
    torch.save(obj={"weights": [p.detach() for p in parameters], "rule": kept}, f=tmp_path / "run.pt")
    expected, before = train(parameters, rule), copy.deepcopy(kept)
    stored = torch.load(tmp_path / "run.pt")
    again = [p.clone().requires_grad_() for p in stored["weights"]]
    other = RULES[name](again)
    other.load_state_dict(stored["rule"])
    assert train(again, other) == expected
    third = RULES[name](again)
    third.load_state_dict(kept)  # later steps have not changed it
    for k, state in third.state_dict()["state"].items():
        assert {n: x.tolist() for n, x in state.items()} == {n: x.tolist() for n, x in before["state"][k].items()}


def test_options_come_from_the_state():
    rule = optim.SGD(weights(torch.float32), lr=0.5, momentum=0.9)
    rule.load_state_dict(optim.SGD(weights(torch.float32), lr=0.25).state_dict())
    assert rule.param_groups[0]["lr"] == 0.25 and rule.param_groups[0]["momentum"] == 0.0
    lone = {**rule.param_groups[0], "params": [0, 1, 2], "nesterov": False, "foreach": None}
    rule.load_state_dict({"state": {}, "param_groups": [lone]})  # options that change nothing are PyTorch's


def _edited(change, rule):
    kept = rule.state_dict()
    change(kept)
    return kept


MISTAKES = {
    "no dict": (lambda rule: 3, "load_state_dict is 3; expected what state_dict.. of an optimizer gave"),
    "a module's": (lambda rule: nn.Linear(1, 1).state_dict(), "expected what state_dict.. of an optimizer gave"),
    "other groups": (lambda rule: optim.Adam(weights(None)[:1]).state_dict(), r"groups of \[1\] parameters.* of \[3\]"),
    "another rule": (
        lambda rule: optim.SGD(weights(None)).state_dict(),
        "a group has no 'betas', no 'eps'; was it another",
    ),
    "an option": (
        lambda rule: _edited(lambda kept: kept["param_groups"][0].update(amsgrad=True), rule),
        "a group has 'amsgrad', which is not here",
    ),
    "a shape": (
        lambda rule: _edited(lambda kept: kept["state"][0].update(exp_avg=torch.ones(5)), rule),
        r"exp_avg is \(5,\), and its parameter \(1, 2\)",
    ),
    "a number": (
        lambda rule: _edited(lambda kept: kept["state"].update({7: kept["state"][0]}), rule),
        "there is a state of parameter 7; there are 0, 1, 2",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(what):
    make, told = MISTAKES[what]
    parameters = weights(None)
    rule = optim.Adam(parameters, lr=0.1)
    train(parameters, rule, 1)
    wrong, twin = make(rule), copy.deepcopy((parameters, rule))
    with pytest.raises((TypeError, ValueError), match=told):
        rule.load_state_dict(wrong)
    assert train(parameters, rule) == train(*twin)


@pytest.mark.parametrize(
    "plan",
    [
        lambda rule: optim.lr_scheduler.StepLR(rule, 2, 0.5),
        lambda rule: optim.lr_scheduler.LambdaLR(rule, lambda e: 0.9**e),
    ],
)
def test_a_schedule_goes_on_from_its_state(plan):
    def run(schedule, epochs):
        return [(schedule.step(), schedule.get_last_lr()[0])[1] for _ in range(epochs)]

    rule = optim.SGD(weights(None), lr=1.0)
    schedule = plan(rule)
    run(schedule, 3)
    kept, rates = (schedule.state_dict(), rule.state_dict())
    assert {"last_epoch": 3, "base_lrs": [1.0]}.items() <= kept.items() and "_last_lr" in kept
    expected = run(schedule, 4)
    other = optim.SGD(weights(None), lr=1.0)
    again = plan(other)
    other.load_state_dict(rates)
    again.load_state_dict(kept)
    assert run(again, 4) == expected
    with pytest.raises(TypeError, match="LR.load_state_dict is {}; expected what state_dict.. of a scheduler gave"):
        again.load_state_dict({})


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
    assert rule.state_dict()["param_groups"][0]["params"] == [0, 0]
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
    with pytest.raises(AttributeError, match=r"equal.*\(x == y\)\.all\(\)"):
        torch.equal(net.weight, net.weight)


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.9, 0.9999), (0.99, 0.999999), (0.5, 0.5), (0.0, 0.0)])
def test_adam_goes_its_rate_along_a_steady_gradient_whatever_its_betas(betas):
    """Then m / (1 - β₁ᵗ) is the gradient and v / (1 - β₂ᵗ) its square: each step is lr / (1 + eps)."""
    w = torch.zeros(1, requires_grad=True)
    adam = torch.optim.Adam([w], lr=1.0, betas=betas)
    for step in range(1, 101):
        w.grad = torch.ones(1)
        adam.step()
        assert w.item() == pytest.approx(-step, rel=2e-6)
