"""Programs written for PyTorch: the numbers here are those of PyTorch 2.15, or worked out in NumPy."""

import copy
import math
import operator
import pickle
import threading

import numpy as np
import pytest

import levels_more.torch as torch
import levels_more.torch.nn.functional as F
from levels_more import low_level
from levels_more.torch import nn, optim
from levels_more.torch.dtypes import NUMBERS
from levels_more.torch.grad_mode import recording
from levels_more.torch.utils.data import (
    DataLoader,
    Dataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _defaults():
    """Each test begins with float32 for Python's floats, and with tensors that remember."""
    yield
    NUMBERS[float] = np.dtype("float32")
    assert recording()


def close(x, expected, to=1e-12):
    np.testing.assert_allclose(x.detach().numpy() if isinstance(x, torch.Tensor) else x, expected, rtol=to, atol=to)


def leaf(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


# A graph that is always recorded -------------------------------------------------------------------------------------


@pytest.mark.quick
def test_gradients_add_up_until_they_are_taken_away():
    x = leaf([1.0, 2.0])
    y = (x**2).sum()
    y.backward(retain_graph=True)
    y.backward()
    close(x.grad, [4.0, 8.0])
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()
    x.grad.zero_()
    close(x.grad, [0.0, 0.0])


@pytest.mark.quick
def test_gradients_of_gradients():
    x = leaf([3.0])
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == pytest.approx([27.0, 18.0, 6.0], rel=1e-12)


def test_what_is_detached_passes_no_gradient_though_it_shares_its_numbers():
    x = leaf([1.0, 2.0])
    h = x * 2
    (h * h.detach()).sum().backward()
    (x * x.data).sum().backward()
    close(x.grad, [5.0, 10.0])
    y = x * 3
    y.detach().zero_()
    close(y, [0.0, 0.0])


def test_grad_of_several_outputs_and_of_none():
    x, y = leaf(2.0), leaf(5.0)
    assert [dx.item() for dx in torch.autograd.grad(x * 3 + x * x, [x])] == [7.0]
    with pytest.raises(RuntimeError, match="allow_unused"):
        torch.autograd.grad(x * 2, [x, y])
    assert torch.autograd.grad(x * 2, [x, y], allow_unused=True)[1] is None


# no_grad and enable_grad, as in PyTorch 2.13 --------------------------------------------------------------------------


def recorded():
    return (leaf([1.0]) * 2).requires_grad


@pytest.mark.quick
def test_one_object_serves_several_blocks_also_nested_and_in_threads():
    quiet = torch.no_grad()
    for _ in range(2):
        with quiet:
            with quiet:
                assert not recorded()
            assert not recorded()
        assert recorded()
    seen = []
    with quiet:
        threads = [threading.Thread(target=lambda: seen.append(recorded())) for _ in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
    assert seen == [True, True]


def test_blocks_of_generators_that_close_in_another_order_leave_recording_on():
    def paused():
        with torch.no_grad():
            yield recorded()

    one, other = paused(), paused()
    assert (next(one), next(other)) == (False, False)
    assert [*one] == [*other] == []


def test_functions_and_methods_are_decorated_with_and_without_brackets():
    @torch.no_grad
    def bare(x, *, y=0):
        return recorded(), x + y

    class Net:
        @torch.no_grad()
        def look(self):
            return recorded()

        @torch.enable_grad()
        def learn(self):
            return recorded()

    assert bare(1, y=2) == (False, 3) and bare.__name__ == "bare"
    with torch.no_grad():
        assert not Net().look() and Net().learn() and not recorded()


# A memory that is shared ---------------------------------------------------------------------------------------------


def test_views_look_at_one_memory():
    a = torch.arange(6.0).reshape(2, 3)
    b = a.view(3, 2)
    b.add_(1)
    close(a, [[1, 2, 3], [4, 5, 6]])
    t = a.t()
    a[0, 1] = 7
    assert t[1, 0].item() == 7
    a[1][2] = 9
    for row in a:
        row.mul_(2)
    close(t, [[2, 8], [14, 10], [6, 18]])
    whole = torch.zeros(4)
    p, q = whole[:2], whole[2:]
    q.fill_(3)
    assert p.tolist() == [0, 0] and q.tolist() == [3, 3]


def test_what_is_no_view_is_a_copy():
    a = torch.arange(6.0).reshape(2, 3)
    row = a.t().reshape(-1)  # its numbers do not lie in even steps
    row.add_(10)
    a[[0]].zero_()
    a[a > 3].zero_()
    a.clone().zero_()
    close(a, [[0, 1, 2], [3, 4, 5]])


def test_arrays_and_tensors_hear_of_each_other():
    n = np.ones(3)
    t = torch.from_numpy(n)
    n += 1
    t.mul_(3)
    assert n.tolist() == t.tolist() == [6.0] * 3
    a = torch.zeros(2, 3)
    shown = a[1].numpy()
    shown[2] = 9
    assert a.tolist() == [[0, 0, 0], [0, 0, 9]]
    a.add_(1)
    assert shown.tolist() == [1, 1, 10]
    with pytest.raises(RuntimeError, match=r"detach\(\)\.numpy\(\)"):
        leaf([1.0]).numpy()


@pytest.mark.parametrize("part", [np.s_[:, 0], np.s_[:, ::-1], ...], ids=["a column", "columns backwards", "whole"])
def test_views_of_an_array_with_any_strides(part):
    """NumPy does the same beside it, on an array of its own."""
    n, mine = np.arange(8.0).reshape(4, 2), np.arange(8.0).reshape(4, 2)
    x, y = torch.from_numpy(n[part]), mine[part]
    x[:2].fill_(-1.0)
    y[:2] = -1.0
    later = x[1:]
    later += 1.0
    y[1:] += 1.0
    x.T[0].mul_(3.0)
    y.T[0] *= 3.0
    x[1:].numpy()[-1] = 5.0
    y[1:][-1] = 5.0
    assert n.tolist() == mine.tolist() and x.tolist() == y.tolist() and later.tolist() == y[1:].tolist()
    n[0, 0] = mine[0, 0] = 9.0
    assert x[:1].tolist() == y[:1].tolist() and x.reshape(-1).tolist() == y.reshape(-1).tolist()


def test_a_flattened_view_that_no_strides_lead_to_loses_nothing_silently():
    n = np.arange(8.0).reshape(4, 2)
    flat = torch.from_numpy(n.T).view(-1)
    assert flat.numpy().tolist() == [0.0, 2.0, 4.0, 6.0, 1.0, 3.0, 5.0, 7.0]
    with pytest.raises(ValueError, match="read-only"):
        flat.numpy()[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        flat.mul_(2.0)
    assert n.tolist() == np.arange(8.0).reshape(4, 2).tolist()


def test_changes_in_place_are_recorded_or_refused():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.add_(1)
    y.sum().backward(retain_graph=True)
    close(x.grad, [2.0, 2.0])
    z.sum().backward()  # what was recorded keeps the old numbers
    close(x.grad, [10.0, 18.0])
    for change in (lambda: x.add_(1), lambda: x[:1].zero_()):
        with pytest.raises(RuntimeError, match="no_grad"):
            change()
    y = x * 1
    with pytest.raises(RuntimeError, match=r"y\[0\] = y\[0\] \* 2"):  # (under no_grad its gradient would be lost)
        y[0].mul_(2)
    y[0] = y[0] * 2
    x.grad = None
    y.sum().backward()
    close(x.grad, [2.0, 1.0])
    whole = torch.tensor([1, 2])
    with pytest.raises(RuntimeError, match="float32"):
        whole += 0.5
    with pytest.raises(RuntimeError, match=r"\(2, 2\)"):
        torch.ones(2).add_(torch.ones(2, 2))


def test_slices_are_assigned_to_and_remember():
    x, v = leaf([1.0, 2.0, 3.0]), leaf(5.0)
    y = x * 2
    y[1] = v * 3
    y[torch.tensor([False, False, True])] = 0.0
    (y * y).sum().backward()
    close(x.grad, [8.0, 0.0, 0.0])
    assert v.grad.item() == 90.0


# Numbers -------------------------------------------------------------------------------------------------------------


def test_dtypes_meet_as_in_pytorch():
    whole = torch.tensor([1, 2])
    assert (whole * 2).dtype == "int64" and (whole > 1).dtype == "bool"  # more of them: in corners.toml
    assert torch.Tensor([1, 2]).dtype == "float32" and torch.tensor([1, 2]).dtype == "int64"
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor(4).shape == (4,) and torch.Tensor([4]).tolist() == [4.0]
    torch.set_default_dtype(torch.float64)
    assert (
        torch.tensor(0.5).dtype == (whole / 2).dtype == torch.rand(2).dtype == nn.Linear(1, 1).weight.dtype == "float64"
    )
    with pytest.raises(TypeError):
        torch.tensor([1, 2]).mean()


X = RNG.normal(size=(3, 4))
AGREE = {  # what PyTorch says, and what NumPy makes of it
    "sum": (lambda x: x.sum(dim=1, keepdim=True), X.sum(1, keepdims=True)),
    "max": (lambda x: x.max(dim=1).values, X.max(1)),
    "where": (lambda x: x.max(1)[1], X.argmax(1)),
    "softmax": (lambda x: F.softmax(x, dim=0), np.exp(X) / np.exp(X).sum(0)),
    "flatten": (lambda x: x.view(3, 2, 2).flatten(1), X),
    "expand": (lambda x: x[:, :1].expand(-1, 3), np.repeat(X[:, :1], 3, 1)),
    "vector": (lambda x: x @ x[0], X @ X[0]),
    "rows and columns": (lambda x: x[[0, 2], [1, 3]], X[[0, 2], [1, 3]]),
    "column": (lambda x: x[:, [1, 2]], X[:, [1, 2]]),
    "floor": (lambda x: x // 0.3, np.floor_divide(X, 0.3)),
    "rest": (lambda x: x % 0.3, np.remainder(X, 0.3)),
    "bits": (lambda x: torch.tensor([5, 6]) & 3, [1, 2]),
    "over two axes": (
        lambda x: x.view(3, 2, 2).sum(dim=[0, 2]) + x.view(3, 2, 2).mean((0, 2), keepdim=True).view(2),
        X.reshape(3, 2, 2).sum((0, 2)) + X.reshape(3, 2, 2).mean((0, 2)),
    ),
    "input=": (lambda x: torch.sum(input=x, dim=0), X.sum(0)),
}


@pytest.mark.parametrize("name", AGREE)
def test_functions_agree_with_numpy(name):
    function, expected = AGREE[name]
    found = function(torch.tensor(X))
    assert tuple(found.shape) == np.shape(expected)
    close(found, expected)


@pytest.mark.parametrize("name", ["softmax", "rest", "column", "over two axes"])
def test_their_gradients_agree_with_differences(name):
    function, step = AGREE[name][0], 1e-6
    x = leaf(X)
    y = function(x)
    weights = RNG.normal(size=tuple(y.shape))
    (y * torch.tensor(weights)).sum().backward()
    nudged = np.zeros_like(X)
    for at in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[at], down[at] = up[at] + step, down[at] - step
        change = function(torch.tensor(up)) - function(torch.tensor(down))
        nudged[at] = (change.numpy() * weights).sum() / (2 * step)
    close(x.grad, nudged, 1e-4)


def test_a_cross_entropy_weighs_classes():
    """The other losses are those of PyTorch in its programs and at their corners: see tests/course/reader/programs."""
    logs, classes, weights = X - np.log(np.exp(X).sum(1, keepdims=True)), [2, 0, 1], np.array([0.5, 2.0, 1.0, 3.0])
    found = nn.CrossEntropyLoss(weight=torch.tensor(weights))(torch.tensor(X), torch.tensor(classes))
    close(found, -(logs[range(3), classes] * weights[classes]).sum() / weights[classes].sum())


STEEPEST = 1000000003995.8029  # 1 / float32(1e-12): PyTorch's, also in float64
SURE = {  # (probability, label) -> the slope of the loss, and its slope, as PyTorch 2.14 gives them in float64
    (0.0, 0.0): (0.0, 0.0),
    (0.0, 1.0): (-STEEPEST, 1e24),
    (0.0, 0.25): (-0.25 * STEEPEST, 0.25e24),
    (1.0, 1.0): (0.0, 0.0),
    (1.0, 0.0): (STEEPEST, 1e24),
    (1.0, 0.25): (0.75 * STEEPEST, 0.75e24),
    (1e-13, 1.0): (-STEEPEST, 8.26446280990083e23),
    (1e-300, 1.0): (-STEEPEST, 1e24),
    (0.5, 1.0): (-2.0, 4.0),
}


@pytest.mark.parametrize("p, y", SURE)
@pytest.mark.parametrize("reduction, weight", [("mean", 3.0), ("none", None)])
def test_a_probability_of_0_or_1_has_a_slope_that_is_a_number(p, y, reduction, weight):
    """No logarithm counts as less than -100. What was cut has PyTorch's slope, not its own, 0, divided by p = 0."""
    x, label = leaf([p, 0.5]), torch.tensor([y, y], dtype=torch.float64)
    scales = None if weight is None else torch.tensor([weight, 1.0], dtype=torch.float64)
    found = F.binary_cross_entropy(x, label, weight=scales, reduction=reduction).sum()
    (slope,) = torch.autograd.grad(found, x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    factor = (weight or 1.0) / (2.0 if reduction == "mean" else 1.0)
    close(slope[0], factor * SURE[p, y][0])
    close(second[0], factor * SURE[p, y][1], 1e-10)


def test_the_slope_of_probabilities_is_the_same_in_a_compiled_function():
    y = low_level.constant(np.array([0.0, 1.0, 0.0, 1.0, 0.25]))

    def step(p):
        with low_level.GradientTape() as tape:
            loss = low_level.apply("probabilities_crossentropy", y, p)
        return loss, tape.gradient(loss, p)

    p = low_level.constant(np.array([0.0, 1.0, 1.0, 0.0, 0.25]))
    compiled = low_level.function(step)
    for run in (step, compiled, compiled):
        loss, slope = run(p)
        close(loss.numpy(), [0.0, 0.0, 100.0, 100.0, -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))])
        close(slope.numpy(), [0.0, 0.0, STEEPEST, -STEEPEST, 0.0])


# Modules, optimizers, data -------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        self.norm, self.scale = nn.Linear(2, 2), nn.Parameter(torch.tensor(1.5))


def test_a_module_names_its_parts_as_pytorch_does():
    net = Net()
    linear = [f"{part}.{name}" for part in ("layers.0", "layers.1", "norm") for name in ("weight", "bias")]
    assert [name for name, _ in net.named_parameters()] == ["scale", *linear] == [*net.state_dict()]
    assert sum(p.numel() for p in net.parameters()) == 20
    tied = nn.Sequential(net.layers[0], net.layers[0])
    assert len([*tied.parameters()]) == 2 and len(tied.state_dict()) == 4
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.5))) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n  (2): Dropout(p=0.5)\n)"
    )
    with pytest.raises(TypeError, match="is a Parameter"):
        net.scale = torch.tensor(2.0)


def test_a_state_is_taken_over_whole_or_not_at_all(tmp_path):
    net, other = Net(), Net()
    torch.save({"model": net.state_dict(), "epoch": 3, "rates": (0.1, [0.2]), "best": None}, tmp_path / "net.pt")
    saved = torch.load(tmp_path / "net.pt", weights_only=True)
    assert saved["epoch"] == 3 and saved["rates"] == (0.1, [0.2]) and saved["best"] is None
    other.load_state_dict(saved["model"])
    assert all(a.tolist() == b.tolist() for a, b in zip(net.parameters(), other.parameters(), strict=True))
    before = copy.deepcopy(other.state_dict())
    wrong = {**saved["model"], "scale": torch.ones(2)}
    with pytest.raises(RuntimeError, match="scale"):
        other.load_state_dict(wrong)
    assert all(before[name].tolist() == x.tolist() for name, x in other.state_dict().items())
    with pytest.raises(TypeError, match="state_dict"):
        torch.save(net, tmp_path / "whole.pt")
    (tmp_path / "other.pt").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"other\.pt was not written by `save`"):
        torch.load(tmp_path / "other.pt")


def test_dropout_keeps_the_mean_in_training_and_all_in_use():
    x, drop = torch.ones(20000), nn.Dropout(0.25)
    y = drop(x)
    assert {*np.unique(y.numpy()).round(6)} == {0.0, np.float32(4 / 3).round(6)}
    assert abs(y.mean().item() - 1) < 0.03
    assert drop.eval()(x) is x


RULES = {  # the weight after three steps of gradient 2·w from 1.0 on: PyTorch's numbers
    "sgd": (lambda p: optim.SGD(p, lr=0.1), 0.512),
    "momentum": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), 0.0619999999999999),
    "adam": (lambda p: optim.Adam(p, lr=0.1), 0.7015862729460302),
    "adam, as for GANs": (lambda p: optim.Adam(p, lr=0.1, betas=(0.0, 0.9)), 0.7155119412350045),
}


@pytest.mark.parametrize("name", RULES)
def test_rules_of_optimizers(name):
    make, expected = RULES[name]
    w = leaf(1.0)
    optimizer = make([w])
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).backward()
        optimizer.step()
    assert w.item() == pytest.approx(expected, rel=1e-12)


def test_gradients_are_clipped():
    x, y = leaf([3.0, 0.0]), leaf([2.0])
    (0.5 * (x * x).sum() + 0.5 * (y * y).sum() * 2).backward()
    assert nn.utils.clip_grad_norm_([x, y], 1.0).item() == 5.0
    close(x.grad, [0.6, 0.0], 1e-6)
    assert nn.utils.clip_grad_norm_([leaf([3.0])], 1.0).item() == 0.0  # a tensor, too, where there is no gradient
    x.grad[0] = float("nan")
    assert np.isnan(nn.utils.clip_grad_norm_([x, y], 1.0).item())  # and no gradient looks sound then
    assert np.isnan(x.grad.tolist()).all() and np.isnan(y.grad.tolist()).all()


def test_data_by_number_and_by_batch():
    x, y = torch.arange(10.0).reshape(5, 2), torch.arange(5)
    data = TensorDataset(x, y)
    assert [part.shape for part in next(iter(DataLoader(data, batch_size=2)))] == [(2, 2), (2,)]
    assert len(DataLoader(data, batch_size=2)) == 3 and len(DataLoader(data, batch_size=2, drop_last=True)) == 2
    torch.manual_seed(1)
    seen = torch.cat([rows for _, rows in DataLoader(data, batch_size=2, shuffle=True, num_workers=2)])
    assert sorted(seen.tolist()) == [0, 1, 2, 3, 4]
    torch.manual_seed(7)
    parts = random_split(data, [0.6, 0.4])
    torch.manual_seed(7)
    again = random_split(data, [3, 2])
    assert [part.indices for part in parts] == [part.indices for part in again] and [*map(len, parts)] == [3, 2]
    assert [rows.tolist() for _, rows in DataLoader(data, 2, sampler=[3, 0, -1])] == [[3, 0], [4]]
    with pytest.raises(ValueError, match="make 4; the data set has 5"):
        random_split(data, [2, 2])

    class Squares(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return {"x": np.full(2, index, "f4"), "y": index**2, "name": "abc"[index]}

    (batch,) = DataLoader(Squares(), batch_size=3)
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]] and batch["name"] == ["a", "b", "c"]
    assert batch["y"].tolist() == [0, 1, 4]


ROWS = np.arange(20.0).reshape(10, 2), np.arange(10)
DATA = TensorDataset(*map(torch.tensor, ROWS))


@pytest.mark.parametrize(
    "indices", [[9, -1, 3, 2, 5], range(1, 10, 2), np.array([4, 4, 0]), torch.tensor([4, 0, 1])], ids=repr
)
def test_the_rows_of_a_subset_of_a_subset(indices):
    part = Subset(Subset(DATA, [*range(10)][::-1]), indices)
    wanted = [9 - operator.index(k) % 10 for k in indices]
    batches = [*DataLoader(part, batch_size=2)]
    assert [len(x) for x, _ in batches] == [len(wanted[k : k + 2]) for k in range(0, len(wanted), 2)]
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x, _ in batches]), ROWS[0][wanted])
    assert [k for _, y in batches for k in y.tolist()] == ROWS[1][wanted].tolist()
    assert [part[k][1].item() for k in range(len(part))] == ROWS[1][wanted].tolist()


def test_each_batch_of_a_split_reads_the_tensors_once(monkeypatch):
    """A row at a time would need a program for each row: 3,000 rows took half a minute."""
    asked = []
    read = TensorDataset.__getitem__
    monkeypatch.setattr(TensorDataset, "__getitem__", lambda self, index: asked.append(index) or read(self, index))
    train, held = random_split(DATA, [7, 3])
    assert len([*DataLoader(train, batch_size=3, shuffle=True)]) == 3 and len(asked) == 3
    assert sorted(y for part in (train, held) for _, labels in DataLoader(part) for y in labels.tolist()) == [
        *range(10)
    ]


def test_samples_make_the_batches_of_pytorch():
    """As in PyTorch 2.13.0: the first sample decides which keys and what kind of parts there are."""
    batch = default_collate([{"x": 1.0, "name": "a"}, {"more": 3, "name": "b", "x": 2.0}])
    assert batch["x"].tolist() == [1.0, 2.0] and batch["x"].dtype == torch.float64 and batch["name"] == ["a", "b"]
    assert [part.tolist() for part in default_collate([(1, 2), [3, 4]])] == [[1, 3], [2, 4]]
    assert default_collate([{}]) == {} and default_collate(["a", 1]) == ["a", 1]
    assert default_collate([True, 2]).tolist() == [1, 2] and default_collate([1, 2.5]).tolist() == [1.0, 2.5]


# What is not here ----------------------------------------------------------------------------------------------------


def test_the_device_is_the_cpu():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2).to(device).device == device and device.type == "cpu"


def test_zero_grad_may_leave_gradients_of_zero():
    """With momentum a step with them is another one than a step without any: PyTorch's numbers."""
    w = leaf([1.0])
    step = optim.SGD([w], lr=0.1, momentum=0.9)
    (w * w).sum().backward()
    step.step()
    step.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0.0]
    step.step()
    assert w.item() == pytest.approx(0.62, rel=1e-12)
    step.zero_grad()
    step.step()
    assert w.item() == pytest.approx(0.62, rel=1e-12)


PRINTED = {  # PyTorch 2.15's texts
    "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]])": torch.tensor([[1.5, 2], [3, 4]]),
    "tensor([1., 2.], dtype=torch.float64)": torch.tensor([1.0, 2.0], dtype=torch.float64),
    "tensor(6., grad_fn=<MulBackward0>)": leaf(2.0, torch.float32) * 3,
    "tensor([1.0000e-05, 1.0000e+00])": torch.tensor([1e-5, 1.0]),
    "tensor([   inf, 1.5000])": torch.tensor([math.inf, 1.5]),
    "tensor([1.0050e+02, 1.0000e-03])": torch.tensor([100.5, 0.001]),
    "tensor([0., 0., 0.,  ..., 0., 0., 0.])": torch.zeros(2000),
    "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])": torch.zeros(2, 2, 2),
    "torch.Size([2, 3])": torch.zeros(2, 3).shape,
}


@pytest.mark.parametrize("text", PRINTED)
def test_it_prints_as_in_pytorch(text):
    assert str(PRINTED[text]) == repr(PRINTED[text]) == text


def test_one_number_is_asked_for():
    x = torch.tensor([1.0, 2.0])
    assert 2.0 in x and 3.0 not in x and bool(torch.tensor([[True]])) and f"{torch.tensor(2.567):.2f}" == "2.57"
    for ask in (bool, float, int, torch.Tensor.item):
        with pytest.raises(RuntimeError, match=r"\(2,\) is not one number"):
            ask(x)


def test_a_bound_that_is_a_tensor_shares_the_slope():
    """As in PyTorch 2.14.1. A number that is a bound has none (see corners.toml)."""
    x, least, most = leaf([-1.0, 0.0, 0.5, 1.0, 2.0, math.nan]), leaf(0.0), leaf(1.0)
    y = torch.clamp(x, least, most)
    np.testing.assert_array_equal(y.detach().numpy(), [0.0, 0.0, 0.5, 1.0, 1.0, math.nan])
    y.sum().backward()
    close(x.grad, [0.0, 0.5, 1.0, 0.5, 0.0, 1.0])
    assert least.grad.item() == most.grad.item() == 1.5
    assert torch.tensor([1, 5]).clamp(torch.tensor(2), torch.tensor(3)).tolist() == [2, 3]
    assert math.isnan(torch.clamp(torch.tensor(5.0), min=torch.tensor(math.nan)).item())


def test_bools_and_dtypes():
    b = torch.tensor([True, False])
    assert (b + b).tolist() == (b * b).tolist() == [True, False] and (b + True).dtype == torch.bool
    assert (b + 1).tolist() == [2, 1] and b.sum().dtype == torch.int64
    assert str(torch.float32) == str(torch.ones(1).dtype) == "torch.float32"
    assert np.zeros(1, torch.float64).dtype == "float64" and {torch.int64: 1}[torch.ones(1).long().dtype] == 1


def test_a_tensor_takes_over_a_view_in_its_own_shape():
    """A view that would ask the tensor for the shape would go on asking: the tensor looks at the view."""
    w = nn.Parameter(torch.zeros(2, 3))
    w.data = torch.arange(6.0).reshape(w.shape)
    w.data += 1.0
    close(w, [[1, 2, 3], [4, 5, 6]])


def test_in_place_means_in_place():
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True) is x and x.tolist() == [0.0, 2.0]
    y = leaf([-1.0, 2.0]) * 3
    z = nn.Sequential(nn.ReLU(inplace=True))(y)
    assert y.tolist() == z.tolist() == [0.0, 6.0] and y.requires_grad


def test_numbers_of_numpy_leave_the_operator_to_the_tensor():
    x = leaf([1.0, 2.0])
    for y in (np.float64(2.0) * x, np.array([2.0, 2.0]) * x, x * np.float32(2.0)):
        assert isinstance(y, torch.Tensor) and y.requires_grad and y.tolist() == [2.0, 4.0]


def test_a_backward_pass_refuses_weights_that_a_step_has_changed_since():
    """As in PyTorch, which counts the versions of what a rule reads; a bias that only was added may change."""
    weight, bias, x = (torch.tensor(value, requires_grad=True) for value in ([[2.0]], [1.0], [[3.0]]))
    scores = x @ weight.T + bias
    (scores.sum()).backward(retain_graph=True)
    torch.optim.SGD([bias], lr=0.1).step()
    scores.sum().backward(retain_graph=True)
    torch.optim.SGD([weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match="matmul reads was modified since"):
        scores.sum().backward()


L = [[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]]
MEASURED = {  # what PyTorch 2.15 gave
    "a list of tensors keeps their dtype": (lambda: torch.tensor([torch.tensor(1.0), 2.0]).dtype, torch.float32),
    "the widest of a list": (lambda: torch.tensor([np.float64(1), 2.0]).dtype, torch.float64),
    "whole numbers to a power": (lambda: [torch.tensor(3) ** 3, 2 ** torch.tensor(3)], [27, 8]),
    "and the dtypes": (lambda: [(torch.tensor(3) ** n).dtype for n in (3, 0.5)], [torch.int64, torch.float32]),
    "whole numbers beside floats": (lambda: torch.tensor([np.int64(1), 2.5]).dtype, torch.float32),
    "a large quotient": (
        lambda: (torch.tensor([1e30, -7.0, 5.0, -5.0]) % torch.tensor([3.0, 3.0, np.inf, np.inf])).tolist(),
        [0.0, 2.0, 5.0, np.inf],
    ),
    "a row that is ignored": (
        lambda: F.cross_entropy(torch.tensor(L), torch.tensor([-100, 1])).item(),
        pytest.approx(4.0659, abs=1e-4),
    ),
    "an ignored class, weighted": (
        lambda: F.cross_entropy(
            torch.tensor(L), torch.tensor([2, 1]), torch.tensor([1.0, 2.0, 3.0]), ignore_index=1
        ).item(),
        pytest.approx(1.9644, abs=1e-4),
    ),
    "equal_nan": (
        lambda: torch.allclose(torch.tensor([np.nan]), torch.tensor([np.nan]), equal_nan=True),
        True,
    ),
}


@pytest.mark.parametrize("name", MEASURED)
def test_it_gives_what_pytorch_gave(name):
    call, expected = MEASURED[name]
    assert call() == expected


@pytest.mark.parametrize(
    "kind, wrong, told",
    [
        (ZeroDivisionError, lambda: torch.tensor([3]) // 0, "whole numbers divided by 0"),
        (RuntimeError, lambda: torch.tensor(3) ** -1, "floats"),
        (TypeError, lambda: torch.arange(5, 0), "step is 1; expected one that leads from 5 to 0"),
        (ValueError, lambda: torch.normal(0.0, -1.0, (2,)), "std is -1.0; expected a deviation from 0 on"),
        (
            IndexError,
            lambda: F.cross_entropy(torch.tensor(L), torch.tensor([0, 3])),
            r"class 3; input \(2, 3\) has the classes 0 to 2",
        ),
        (ValueError, lambda: nn.MSELoss()(torch.ones(3, 1), torch.ones(3)), r"\(3, 1\), target \(3,\)"),
        (ValueError, lambda: nn.BCELoss()(torch.tensor([1.5]), torch.tensor([1.0])), "probabilities"),
        (ValueError, lambda: F.mse_loss(torch.ones(3), torch.ones(3), reduction="average"), "reduction is 'average'"),
        (TypeError, lambda: nn.MSELoss(size_average=True), "its options are weight, reduction"),
        (RuntimeError, lambda: torch.device("cuda:0"), "here is the CPU"),
        (RuntimeError, lambda: torch.ones(2).to("cuda"), "here is the CPU"),
        (RuntimeError, lambda: torch.ones(2, device="cuda"), "here is the CPU"),
        (TypeError, lambda: torch.tensor([True, False]).to(3), "expected a dtype"),
        (RuntimeError, lambda: torch.tensor([1]).requires_grad_(), "expected floats"),
        (OverflowError, lambda: torch.tensor([np.nan], dtype=torch.long), "nan does not fit in int64"),
        (TypeError, lambda: torch.tensor([True]) ** torch.tensor([True]), "make numbers of bools first"),
        (
            TypeError,
            lambda: ~torch.tensor([1.0]),
            "invert: the dtype is 'float32'; expected one that it takes; cast it",
        ),
    ],
)
def test_what_is_refused_says_why(kind, wrong, told):
    with pytest.raises(kind, match=told):
        wrong()


class _Bent(nn.Module):
    """A module that keeps a function in an attribute, as many do."""

    def __init__(self):
        super().__init__()
        self.layer, self.bend, self.loss = nn.Linear(2, 3), torch.relu, F.mse_loss

    def forward(self, x):
        return self.bend(self.layer(x))


def test_what_is_pickled_comes_back():
    whole = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for x in (whole, whole[0], whole.t(), whole.reshape(4)[1:], torch.tensor([True]), torch.zeros(0, 3)):
        again = pickle.loads(pickle.dumps(x))
        assert again.dtype == x.dtype and again.tolist() == x.tolist() and not again.requires_grad
    w = nn.Parameter(torch.tensor([1.0, 2.0]))
    (w * w).sum().backward()
    w.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
    again, frozen = pickle.loads(pickle.dumps([w, w.frozen]))
    assert type(again) is nn.Parameter and again.requires_grad and again.grad.tolist() == [2.0, 4.0]
    assert not frozen.requires_grad
    y = pickle.loads(pickle.dumps(w * 3))  # its numbers, and not what they were made from, as in PyTorch
    assert y.is_leaf and y.tolist() == [3.0, 6.0]
    (y * y).sum().backward()
    assert y.grad.tolist() == [6.0, 12.0]
    x, net = torch.ones(1, 2), _Bent()
    assert pickle.loads(pickle.dumps(net))(x).tolist() == net(x).tolist()


def test_a_pickled_or_copied_training_goes_on_to_the_bit():
    net, x = nn.Linear(2, 1), torch.tensor([[1.0, -2.0]])
    rate = optim.Adam(net.parameters(), lr=0.1)

    def train(net, rate):
        for _ in range(3):
            rate.zero_grad()
            (net(x) ** 2).sum().backward()
            rate.step()
        return [p.tolist() for p in net.parameters()]

    train(net, rate)
    copies = [pickle.loads(pickle.dumps((net, rate))), copy.deepcopy((net, rate))]
    expected = train(net, rate)
    assert [train(*each) for each in copies] == [expected] * 2


def test_a_file_keeps_what_requires_grad_and_the_kind_of_a_row(tmp_path):
    w = torch.tensor([1.0], requires_grad=True)
    tree = {"w": w, "made": w * 2, "x": torch.tensor([1]), "size": torch.zeros(2, 3).shape, "row": [1, (2,)]}
    torch.save(tree, tmp_path / "tree.pt")
    again = torch.load(tmp_path / "tree.pt")
    assert [again[name].requires_grad for name in ("w", "made", "x")] == [True, True, False]
    assert again["made"].is_leaf and again["size"] == (2, 3) and again["row"] == [1, (2,)]
    (again["w"] * 3).sum().backward()
    assert again["w"].grad.item() == 3.0


def test_nothing_is_equal_to_none():
    x = torch.tensor([1.0], requires_grad=True)
    assert (x.grad == None) and not (x == None) and (x != None)  # noqa: E711, SIM201
    assert torch.arange(start=1, end=6, step=2).tolist() == [1, 3, 5]
    assert torch.arange(5, 0, -2).tolist() == [5, 3, 1] and torch.arange(0).tolist() == []


@pytest.mark.parametrize("shape, axis", [((4,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 2, 3, 2), 1)])
def test_softmax_without_dim_takes_the_axis_of_pytorch(shape, axis):
    x = torch.randn(shape)
    assert torch.allclose(F.softmax(x), F.softmax(x, dim=axis))
    assert torch.allclose(F.log_softmax(x), F.log_softmax(x, dim=axis))
    assert not torch.allclose(F.softmax(x), F.softmax(x, dim=(axis + 1) % len(shape))) or len(shape) == 1
