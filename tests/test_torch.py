"""Programs written for PyTorch: the numbers here are those of PyTorch 2.15, or worked out in NumPy."""

import copy
import io
import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import levels_more.torch as torch
import levels_more.torch.nn.functional as F
from course.build import ROOT, environment
from levels_more import low_level
from levels_more.low_level.promotion import NUMBERS
from levels_more.torch import nn, optim
from levels_more.torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)  # fmt: skip

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _defaults():
    """Each test begins with float32 for Python's floats, and with tensors that remember."""
    yield
    NUMBERS[float] = np.dtype("float32")
    assert torch.is_grad_enabled()


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
    h.retain_grad()
    (h * h.detach()).sum().backward()
    close(h.grad, [2.0, 4.0])
    close(x.grad, [4.0, 8.0])
    y = x * 3
    y.detach().zero_()
    close(y, [0.0, 0.0])


@pytest.mark.quick
def test_a_leaf_beside_its_own_data():
    x = leaf([1.0, 2.0])
    (x * x.data).sum().backward()
    close(x.grad, [1.0, 2.0])


def test_grad_of_several_outputs_and_of_none():
    x, y = leaf(2.0), leaf(5.0)
    assert [dx.item() for dx in torch.autograd.grad([x * 3, x * x], [x])] == [7.0]
    with pytest.raises(RuntimeError, match="allow_unused"):
        torch.autograd.grad(x * 2, [x, y])
    assert torch.autograd.grad(x * 2, [x, y], allow_unused=True)[1] is None


@pytest.mark.parametrize("wrong", [lambda: torch.ones(2).sum().backward(), lambda: (leaf([1.0, 2.0]) * 2).backward()])
def test_backward_says_what_it_needs(wrong):
    with pytest.raises(RuntimeError, match="expected one recorded number"):
        wrong()


def test_slopes_where_pytorch_had_to_choose():
    """At ties and bounds: of a maximum, of two equal numbers, of a clamp, of relu and abs at 0."""
    x = leaf([1.0, 1.0, 0.5])
    x.max().backward()
    close(x.grad, [0.5, 0.5, 0.0])
    x, y = leaf([1.0, 2.0]), leaf([1.0, 3.0])
    torch.maximum(x, y).sum().backward()
    close(x.grad, [0.5, 0.0])
    close(y.grad, [0.5, 1.0])
    for function, slopes in (
        (lambda x: x.clamp(0, 1), [0.0, 0.0, 1.0, 0.0]),
        (torch.relu, [0.0, 1.0, 1.0, 1.0]),
        (torch.abs, [0.0, 1.0, 1.0, 1.0]),
        (F.relu6, [0.0, 1.0, 1.0, 0.0]),
        (lambda x: x % 3, [1.0, 1.0, 1.0, 1.0]),
    ):
        x = leaf([0.0, 1.0, 0.5, 6.0])
        function(x).sum().backward()
        close(x.grad, slopes)


def test_recording_is_switched_off_in_a_block_in_a_function_and_for_good():
    x = leaf([1.0])
    with torch.no_grad():
        assert not (x * 2).requires_grad

    @torch.no_grad()
    def twice(x):
        return x * 2

    assert not twice(x).requires_grad and (x * 2).requires_grad
    assert not torch.no_grad(lambda: x * 2)().requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    torch.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    torch.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_each_thread_records_for_itself():
    found, x = {}, leaf([1.0])
    entered, done = threading.Event(), threading.Event()

    def quiet():
        with torch.no_grad():
            entered.set()
            done.wait(20)
            found["quiet"] = (x * 2).requires_grad

    thread = threading.Thread(target=quiet)
    thread.start()
    entered.wait(20)
    found["loud"] = (x * 2).requires_grad
    done.set()
    thread.join()
    assert found == {"quiet": False, "loud": True}


def test_threads_train_side_by_side():
    """Each thread its own graph: eight at once find what one finds."""

    def train(found, k):
        x = leaf([float(k), 1.0])
        for _ in range(30):
            (x * x * k).sum().backward()
            with torch.no_grad():
                x -= 0.01 * x.grad
            x.grad = None
        found[k] = x.tolist()

    alone, together = {}, {}
    for k in range(8):
        train(alone, k)
    threads = [threading.Thread(target=train, args=(together, k)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_a_function_with_a_gradient_of_its_own():
    class Legendre(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, power):
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**power - 3 * x)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return dy * 1.5 * (5 * x**2 - 1), None

    x = leaf([0.5, -2.0])
    y = Legendre.apply(x * 2, 3)
    close(y, [1.0, -154.0])
    y.sum().backward()
    close(x.grad, [12.0, 237.0])


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
    assert a[1:].is_contiguous() and not t.is_contiguous()
    p, q = torch.zeros(4).split(2)
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


def test_a_view_of_a_parameter_follows_its_steps():
    w = leaf([1.0, 1.0, 1.0])
    column = w.view(3, 1)
    with torch.no_grad():
        w.mul_(3)
    (column * column).sum().backward()
    close(w.grad, [6.0, 6.0, 6.0])
    w.data[0] = 5
    assert column[0].item() == 5.0


def test_changes_in_place_are_recorded_or_refused():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y * y
    y.add_(1)
    y.sum().backward(retain_graph=True)
    close(x.grad, [2.0, 2.0])
    z.sum().backward()  # what was recorded keeps the old numbers
    close(x.grad, [10.0, 18.0])
    for change in (lambda: x.add_(1), lambda: x[:1].zero_(), lambda: (x * 1)[0].add_(1)):
        with pytest.raises(RuntimeError, match="no_grad"):
            change()
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
    whole, half, full = torch.tensor([1, 2]), torch.ones(2), torch.ones(2, dtype=torch.float64)
    assert (
        (whole / 2).dtype == (whole * 2.5).dtype == (half * torch.tensor(2.0, dtype=torch.float64)).dtype == "float32"
    )
    assert (half + full).dtype == "float64" and (whole * 2).dtype == "int64" and (whole > 1).dtype == "bool"
    assert torch.Tensor([1, 2]).dtype == "float32" and torch.tensor([1, 2]).dtype == "int64"
    torch.set_default_dtype(torch.float64)
    assert (
        torch.tensor(0.5).dtype == (whole / 2).dtype == torch.rand(2).dtype == nn.Linear(1, 1).weight.dtype == "float64"
    )
    with pytest.raises(TypeError):
        torch.tensor([1, 2]).mean()


def test_the_dtype_of_a_result_is_asked_for():
    """As PyTorch 2.13 answers."""
    whole, one, truth = torch.tensor([1, 2]), torch.tensor(1.5, dtype=torch.float64), torch.tensor([True])
    pairs = [(whole, 1.0), (1, 2), (1.0, 2), (torch.ones(2), one), (torch.tensor(1), truth), (True, truth), (1, truth)]
    wanted = "float32 int64 float32 float32 int64 bool int64"
    assert [torch.result_type(*pair) for pair in pairs] == [getattr(torch, name) for name in wanted.split()]
    assert not hasattr(whole, "result_type")
    kinds = [torch.bool, torch.int64, torch.float32, torch.float64]
    found = [[torch.promote_types(a, b) for b in kinds] for a in kinds]
    assert found == [[kinds[max(a, b)] for b in range(4)] for a in range(4)]
    for wrong in (lambda: torch.promote_types("float16", torch.bool), lambda: torch.result_type("1", whole)):
        with pytest.raises(TypeError):
            wrong()


def test_each_choice_of_one_number_of_every_tensor():
    x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0, 5.0])
    found = torch.cartesian_prod(x, y)
    assert found.tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
    (found * torch.arange(12.0).reshape(6, 2)).sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    assert torch.cartesian_prod(x) is x and torch.cartesian_prod(y, y[:0]).shape == (0, 2)
    for wrong in ((), (x, torch.tensor([1])), (y, torch.tensor(1.0)), (y, torch.ones(2, 2))):
        with pytest.raises(RuntimeError, match="cartesian_prod"):
            torch.cartesian_prod(*wrong)
    with pytest.raises(TypeError, match="one by one"):
        torch.cartesian_prod([y, y])


@pytest.mark.parametrize(
    "row, value, place",
    [
        ([1, 3, 3, 1, 2], 1, 3),
        ([3, 2, 1], 1, 2),
        ([True, False, False], False, 2),
        ([0.0, -0.0, 1.0], -0.0, 1),
        ([math.nan, math.nan, 1.0, 1.0], 1.0, 3),
        ([math.nan, 1.0, 2.0], math.nan, 0),
    ],
)
def test_the_most_frequent_number_as_pytorch_finds_it(row, value, place):
    """As PyTorch 2.13 answers: the smallest of several, where it stands last."""
    found = torch.tensor(row).mode()
    np.testing.assert_equal([found.values.item(), found.indices.item()], [value, place])


def test_the_most_frequent_number_along_an_axis():
    b = torch.tensor(
        [
            [0, 0, 0, 2, 0, 0, 2],
            [0, 3, 0, 0, 2, 0, 1],
            [2, 2, 2, 0, 0, 0, 3],
            [2, 2, 3, 0, 1, 1, 0],
            [1, 1, 0, 0, 2, 0, 2],
        ]
    )
    values, places = torch.mode(b, 0)  # the example of its documentation
    assert values.tolist() == [0, 2, 0, 0, 0, 0, 2] and places.tolist() == [1, 3, 4, 4, 2, 4, 4]
    assert torch.mode(b, dim=1, keepdim=True).values.tolist() == [[0]] * 5
    assert torch.tensor(3.0).mode().values.shape == () and torch.mode(torch.zeros(0, 2)).values.shape == (0,)
    x = torch.tensor([1.0, 2.0, 2.0], requires_grad=True)
    x.mode().values.backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(IndexError, match="no numbers"):
        torch.mode(torch.zeros(2, 0))


X = RNG.normal(size=(3, 4))
AGREE = {  # what PyTorch says, and what NumPy makes of it
    "std": (lambda x: x.std(), X.std(ddof=1)),
    "var along": (lambda x: torch.var(x, 0), X.var(0, ddof=1)),
    "biased": (lambda x: x.std(dim=1, unbiased=False), X.std(1)),
    "sum": (lambda x: x.sum(dim=1, keepdim=True), X.sum(1, keepdims=True)),
    "prod": (lambda x: x.prod(dim=0), X.prod(0)),
    "cumsum": (lambda x: x.cumsum(dim=1), X.cumsum(1)),
    "max": (lambda x: x.max(dim=1).values, X.max(1)),
    "where": (lambda x: x.max(1)[1], X.argmax(1)),
    "sort": (lambda x: torch.sort(x, dim=0, descending=True)[0], -np.sort(-X, 0)),
    "topk": (lambda x: torch.topk(x, 2, dim=0).values, -np.sort(-X, 0)[:2]),
    "least": (lambda x: torch.topk(x, 2, largest=False).values, np.sort(X, 1)[:, :2]),
    "median": (lambda x: x.median(), np.sort(X, None)[5]),
    "gather": (lambda x: x.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])), np.take_along_axis(X, np.array([[0, 3], [1, 1], [2, 0]]), 1)),
    "softmax": (lambda x: F.softmax(x, dim=0), np.exp(X) / np.exp(X).sum(0)),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), np.log(np.exp(X).sum(1))),
    "norm": (lambda x: x.norm(p=3, dim=1), (np.abs(X) ** 3).sum(1) ** (1 / 3)),
    "permute": (lambda x: x.view(3, 2, 2).permute(2, 0, 1), X.reshape(3, 2, 2).transpose(2, 0, 1)),
    "flatten": (lambda x: x.view(3, 2, 2).flatten(1), X),
    "expand": (lambda x: x[:, :1].expand(-1, 3), np.repeat(X[:, :1], 3, 1)),
    "repeat": (lambda x: x.repeat(2, 1), np.tile(X, (2, 1))),
    "vector": (lambda x: x @ x[0], X @ X[0]),
    "rows and columns": (lambda x: x[[0, 2], [1, 3]], X[[0, 2], [1, 3]]),
    "column": (lambda x: x[:, [1, 2]], X[:, [1, 2]]),
    "normalize": (lambda x: F.normalize(x, dim=1), X / np.linalg.norm(X, axis=1, keepdims=True)),
    "floor": (lambda x: x // 0.3, np.floor_divide(X, 0.3)),
    "rest": (lambda x: x % 0.3, np.remainder(X, 0.3)),
    "log1p": (lambda x: torch.log1p(x.abs() * 1e-12), np.log1p(np.abs(X) * 1e-12)),
    "softplus": (lambda x: F.softplus(x * 100), np.logaddexp(0.0, X * 100)),
    "selu": (F.selu, 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    "mish": (F.mish, X * np.tanh(np.log1p(np.exp(X)))),
    "tril": (lambda x: x.tril(), np.tril(X)),
    "bits": (lambda x: torch.tensor([5, 6]) & 3, [1, 2]),
    "sinh": (lambda x: torch.sinh(x) + x.cosh(), np.sinh(X) + np.cosh(X)),
    "angles": (lambda x: torch.atan(x) + (0.1 * x).asin() - torch.acos(0.1 * x), np.arctan(X) + np.arcsin(0.1 * X) - np.arccos(0.1 * X)),
    "areas": (lambda x: x.asinh() + torch.acosh(x * x + 2) + (0.1 * x).atanh(), np.arcsinh(X) + np.arccosh(X * X + 2) + np.arctanh(0.1 * X)),
    "atan2": (lambda x: torch.atan2(x, x[:1] - 1), np.arctan2(X, X[:1] - 1)),
    "hypot": (lambda x: torch.hypot(x, x[:1] - 1), np.hypot(X, X[:1] - 1)),
    "expm1": (lambda x: torch.expm1(x * 1e-12) * 1e12, np.expm1(X * 1e-12) * 1e12),
    "fmod": (lambda x: torch.fmod(x, 0.3) + x.frac(), np.fmod(X, 0.3) + X - np.trunc(X)),
    "cumprod": (lambda x: x.cumprod(dim=1), X.cumprod(1)),
    "cummax": (lambda x: torch.cummax(x, 0).values + x.cummin(dim=0)[0], np.maximum.accumulate(X, 0) + np.minimum.accumulate(X, 0)),
    "cov": (lambda x: torch.cov(x) + torch.corrcoef(x), np.cov(X) + np.corrcoef(X)),
    "celu": (lambda x: F.celu(x, alpha=2.0), np.where(X > 0, X, 2 * np.expm1(X / 2))),
    "hardswish": (lambda x: F.hardswish(x) + F.hardsigmoid(x), (X + 1) * np.clip(X / 6 + 0.5, 0, 1)),
    "shrink": (lambda x: F.softshrink(x, 0.2) + F.hardshrink(x, 0.3) + F.tanhshrink(x),
               np.sign(X) * np.maximum(np.abs(X) - 0.2, 0) + X * (np.abs(X) > 0.3) + X - np.tanh(X)),
    "threshold": (lambda x: F.threshold(x, 0.1, 5), np.where(X > 0.1, X, 5)),
    "glu": (lambda x: F.glu(x), X[:, :2] / (1 + np.exp(-X[:, 2:]))),
    "softmin": (lambda x: F.softmin(x, dim=0), np.exp(-X) / np.exp(-X).sum(0)),
    "logit": (lambda x: torch.logit(x.sigmoid()), X),
    "hardtanh": (lambda x: F.hardtanh(x, -0.2, 0.3), np.clip(X, -0.2, 0.3)),
    "beta": (lambda x: F.softplus(x, beta=2), np.log1p(np.exp(2 * X)) / 2),
    "over two axes": (lambda x: x.view(3, 2, 2).sum(dim=[0, 2]) + x.view(3, 2, 2).mean((0, 2), keepdim=True).view(2), X.reshape(3, 2, 2).sum((0, 2)) + X.reshape(3, 2, 2).mean((0, 2))),
    "medians": (lambda x: x.median(dim=1).values, np.sort(X, 1)[:, 1]),
    "div": (lambda x: torch.div(x, -0.3, rounding_mode="trunc") + torch.div(x, 0.3, rounding_mode="floor"), np.trunc(X / -0.3) + np.floor(X / 0.3)),
    "fill": (lambda x: x.index_fill(1, torch.tensor([0, 2]), 9.0), np.where([True, False, True, False], 9.0, X)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=7.0), np.pad(X, ((0, 1), (1, 2)), constant_values=7.0)),
    "numbers": (lambda x: torch.nan_to_num(x / 0.0 * (x > 0), nan=1.0, posinf=2.0), np.where(X > 0, 2.0, 1.0)),
    "together": (lambda x: torch.broadcast_tensors(x, x[:1])[1], np.broadcast_to(X[:1], X.shape)),
    "input=": (lambda x: torch.sum(input=x, dim=0), X.sum(0)),
    "addcdiv": (lambda x: torch.addcdiv(x, x, x + 9, value=2).addcmul(x, x, value=3), X + 2 * X / (X + 9) + 3 * X * X),
}  # fmt: skip


@pytest.mark.parametrize("name", AGREE)
def test_functions_agree_with_numpy(name):
    function, expected = AGREE[name]
    found = function(torch.tensor(X))
    assert tuple(found.shape) == np.shape(expected)
    close(found, expected)


@pytest.mark.parametrize(
    "name",
    [
        "prod",
        "cumsum",
        "sort",
        "logsumexp",
        "norm",
        "std",
        "softmax",
        "mish",
        "softplus",
        "rest",
        "column",
        "sinh",
        "angles",
        "areas",
        "atan2",
        "hypot",
        "expm1",
        "fmod",
        "cumprod",
        "cummax",
        "cov",
        "celu",
        "hardswish",
        "shrink",
        "threshold",
        "glu",
        "logit",
        "medians",
        "over two axes",
        "fill",
        "pad",
    ],
)
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


Z, T, C = RNG.normal(size=5), np.array([0.0, 1.0, 1.0, 0.0, 0.3]), np.array([2, 0, 1])
P = 1 / (1 + np.exp(-Z))
LOGS = X - np.log(np.exp(X).sum(1, keepdims=True))
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0])
BINARY = -(T * np.log(P) + (1 - T) * np.log(1 - P))
LOSSES = {
    "mse": (nn.MSELoss(), Z, T, ((Z - T) ** 2).mean()),
    "sum": (nn.MSELoss(reduction="sum"), Z, T, ((Z - T) ** 2).sum()),
    "l1": (nn.L1Loss(reduction="none"), Z, T, np.abs(Z - T)),
    "smooth": (nn.SmoothL1Loss(beta=0.7), Z, T, np.where(abs(Z - T) < 0.7, (Z - T) ** 2 / 1.4, abs(Z - T) - 0.35).mean()),
    "huber": (nn.HuberLoss(delta=0.5), Z, T, np.where(abs(Z - T) < 0.5, (Z - T) ** 2 / 2, 0.5 * (abs(Z - T) - 0.25)).mean()),
    "bce": (nn.BCELoss(), P, T, BINARY.mean()),
    "bce at 0": (nn.BCELoss(reduction="none"), np.array([0.0, 1.0]), np.array([1.0, 1.0]), [100.0, 0.0]),
    "logits": (nn.BCEWithLogitsLoss(), Z, T, BINARY.mean()),
    "pos_weight": (nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0, dtype=torch.float64)), Z, T, (BINARY - 2 * T * np.log(P)).mean()),
    "classes": (nn.CrossEntropyLoss(), X, C, -LOGS[range(3), C].mean()),
    "weights": (nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS)), X, C, -(LOGS[range(3), C] * WEIGHTS[C]).sum() / WEIGHTS[C].sum()),
    "shares": (nn.CrossEntropyLoss(), X, np.exp(LOGS), -(np.exp(LOGS) * LOGS).sum(1).mean()),
    "smoothing": (nn.CrossEntropyLoss(label_smoothing=0.1), X, C, -(0.9 * LOGS[range(3), C] + 0.1 * LOGS.mean(1)).mean()),
    "nll": (nn.NLLLoss(reduction="sum"), LOGS, C, -LOGS[range(3), C].sum()),
    "kl": (nn.KLDivLoss(reduction="batchmean"), LOGS, np.eye(4)[:3], -(np.eye(4)[:3] * LOGS).sum() / 3),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss, x, y, expected = LOSSES[name]
    close(loss(torch.tensor(x), torch.tensor(y)), expected)


SURE = {  # (probability, label) -> the slope of the loss, and its slope, as PyTorch 2.13 gives them in float64
    (0.0, 0.0): (0.0, 0.0), (0.0, 1.0): (-1e12, 1e24), (0.0, 0.25): (-0.25e12, 0.25e24),
    (1.0, 1.0): (0.0, 0.0), (1.0, 0.0): (1e12, 1e24), (1.0, 0.25): (0.75e12, 0.75e24),
    (1e-13, 1.0): (-1e12, 8.26446280990083e23), (1e-300, 1.0): (-1e12, 1e24), (0.5, 1.0): (-2.0, 4.0),
}  # fmt: skip


@pytest.mark.parametrize("p, y", SURE)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, 3.0])
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_same_in_float32_and_of_no_number(dtype):
    x = leaf([0.0, 1.0, 0.0, 1.0, math.nan], dtype)
    loss = nn.BCELoss(reduction="none")(x, torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0], dtype=dtype))
    close(loss, [0.0, 0.0, 100.0, 100.0, math.nan])
    loss.sum().backward()
    close(x.grad, [0.0, 0.0, -1e12, 1e12, math.nan], 1e-6)


def test_a_sure_net_still_learns():
    """A sigmoid that has come to exactly 0 and 1: the weights stay numbers, and stay where nothing is wrong."""
    net = nn.Sequential(nn.Linear(1, 1), nn.Sigmoid())
    with torch.no_grad():
        net[0].weight.fill_(100.0)
        net[0].bias.fill_(0.0)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        sgd.zero_grad()
        nn.BCELoss()(net(torch.tensor([[1.0], [-2.0]])), torch.tensor([[1.0], [0.0]])).backward()
        sgd.step()
    assert net[0].weight.item() == 100.0 and net[0].bias.item() == 0.0


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
        close(slope.numpy(), [0.0, 0.0, 1e12, -1e12, 0.0])


def test_a_variance_that_is_cut_still_learns():
    """As in PyTorch 2.13, whose slope passes where a variance counts as eps."""
    var = leaf([0.0, 1e-300, 4.0])
    F.gaussian_nll_loss(torch.ones(3).double(), 2.0 * torch.ones(3).double(), var, reduction="sum").backward()
    close(var.grad, [-499999500000.0, -499999500000.0, 0.09375])


def test_losses_say_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(3, 1\), target \(3,\)"):
        nn.MSELoss()(torch.ones(3, 1), torch.ones(3))
    with pytest.raises(ValueError, match="probabilities"):
        nn.BCELoss()(torch.tensor([1.5]), torch.tensor([1.0]))
    with pytest.raises(ValueError, match="reduction is 'average'"):
        F.mse_loss(torch.ones(3), torch.ones(3), reduction="average")
    with pytest.raises(TypeError, match="its options are weight, reduction"):
        nn.MSELoss(size_average=True)


# Modules, optimizers, data -------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1)])
        self.norm, self.scale = nn.BatchNorm1d(3), nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.layers[1](torch.relu(self.norm(self.layers[0](x)))) * self.scale


def test_a_module_names_its_parts_as_pytorch_does():
    net = Net()
    weights = [
        "scale",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "layers.1.bias",
        "norm.weight",
        "norm.bias",
    ]
    assert [name for name, _ in net.named_parameters()] == weights
    assert [*net.state_dict()][-3:] == ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert sum(p.numel() for p in net.parameters()) == 20
    tied = nn.Sequential(net.layers[0], net.layers[0])
    assert len([*tied.parameters()]) == 2 and len(tied.state_dict()) == 4
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.5))) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n"
        "  (2): Dropout(p=0.5, inplace=False)\n)"
    )
    with pytest.raises(TypeError, match="is a Parameter"):
        net.scale = torch.tensor(2.0)


def test_a_state_is_taken_over_whole_or_not_at_all(tmp_path):
    net, other = Net(), Net()
    torch.save({"model": net.state_dict(), "epoch": 3, "rates": (0.1, [0.2]), "best": None}, tmp_path / "net.pt")
    saved = torch.load(tmp_path / "net.pt", weights_only=True)
    assert saved["epoch"] == 3 and saved["rates"] == (0.1, [0.2]) and saved["best"] is None
    other.load_state_dict(saved["model"])
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    before = copy.deepcopy(other.state_dict())
    wrong = {**saved["model"], "scale": torch.ones(2)}
    with pytest.raises(RuntimeError, match="scale"):
        other.load_state_dict(wrong)
    assert all(torch.equal(before[name], x) for name, x in other.state_dict().items())
    with pytest.raises(TypeError, match="state_dict"):
        torch.save(net, tmp_path / "whole.pt")
    (tmp_path / "other.pt").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match=r"other\.pt was not written by `save`"):
        torch.load(tmp_path / "other.pt")


def test_batches_are_normalized_and_remembered():
    norm, x = nn.BatchNorm1d(2).double(), torch.tensor(RNG.normal(size=(6, 2)))
    n = x.numpy()
    close(norm(x), (n - n.mean(0)) / np.sqrt(n.var(0) + 1e-5))
    close(norm.running_mean, 0.1 * n.mean(0))
    close(norm.running_var, 0.9 + 0.1 * n.var(0, ddof=1))
    norm.eval()
    close(norm(x), (n - 0.1 * n.mean(0)) / np.sqrt(0.9 + 0.1 * n.var(0, ddof=1) + 1e-5))
    with pytest.raises(ValueError, match="one row"):
        norm.train()(x[:1])


def test_dropout_keeps_the_mean_in_training_and_all_in_use():
    x, drop = torch.ones(20000), nn.Dropout(0.25)
    y = drop(x)
    assert {*np.unique(y.numpy()).round(6)} == {0.0, np.float32(4 / 3).round(6)}
    assert abs(y.mean().item() - 1) < 0.03
    assert drop.eval()(x) is x


RULES = {  # the weight after three steps of gradient 2·w from 1.0 on: PyTorch's numbers
    "sgd": (lambda p: optim.SGD(p, lr=0.1), 0.512),
    "momentum": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9), 0.0619999999999999),
    "nesterov": (lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1), -0.14046839900000005),
    "adam": (lambda p: optim.Adam(p, lr=0.1), 0.7015862729460302),
    "adamw": (lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.5), 0.5749739307415966),
    "rmsprop": (lambda p: optim.RMSprop(p, lr=0.01), 0.7799822732436351),
    "adagrad": (lambda p: optim.Adagrad(p, lr=0.1), 0.7804561813568098),
    "amsgrad": (lambda p: optim.Adam(p, lr=0.1, amsgrad=True, betas=(0.5, 0.6)), 0.7021295899312412),
    "centered": (lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5), 0.6712214427297104),
    "adamax": (lambda p: optim.Adamax(p, lr=0.1, weight_decay=0.1), 0.7154994733283055),
    "nadam": (lambda p: optim.NAdam(p, lr=0.1), 0.7527292663805714),
    "radam": (lambda p: optim.RAdam(p, lr=0.1), 0.46230335987570403),
    "adadelta": (lambda p: optim.Adadelta(p, lr=0.5), 0.995150380857237),
    "maximize": (lambda p: optim.SGD(p, lr=0.1, maximize=True), 1.728),
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


def test_an_optimizer_goes_on_where_another_one_stopped():
    def steps(optimizer, w, n):
        for _ in range(n):
            optimizer.zero_grad()
            (w * w).backward()
            optimizer.step()

    w = leaf(1.0)
    first = optim.Adam([w], lr=0.1)
    steps(first, w, 2)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    v = leaf(w.item())
    second = optim.Adam([v], lr=0.7)
    second.load_state_dict(torch.load(io.BytesIO(file.getvalue())))
    steps(first, w, 2)
    steps(second, v, 2)
    assert w.item() == v.item()


def test_rates_by_epoch():
    w = leaf(1.0)

    def rates(make, n=4):
        optimizer = optim.SGD([w], lr=1.0)
        schedule = make(optimizer)
        found = []
        for _ in range(n):
            found.append(optimizer.param_groups[0]["lr"])
            schedule.step()
        return found

    lr = optim.lr_scheduler
    assert rates(lambda o: lr.StepLR(o, 2, 0.5)) == [1.0, 1.0, 0.5, 0.5]
    assert rates(lambda o: lr.MultiStepLR(o, [1, 3], gamma=0.1)) == pytest.approx([1.0, 0.1, 0.1, 0.01])
    assert rates(lambda o: lr.LambdaLR(o, lambda epoch: 1 / (1 + epoch))) == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert rates(lambda o: lr.CosineAnnealingLR(o, 3, eta_min=0.4)) == pytest.approx([1.0, 0.85, 0.55, 0.4])
    assert rates(lambda o: lr.PolynomialLR(o, 4, 2.0), 5) == pytest.approx([1.0, 0.5625, 0.25, 0.0625, 0.0])
    waves = [1.0, 0.55, 1.0, 0.8681980515339464, 0.55, 0.23180194846605365]
    assert rates(lambda o: lr.CosineAnnealingWarmRestarts(o, 2, 2, eta_min=0.1), 6) == pytest.approx(waves)
    optimizer = optim.SGD([w], lr=1.0)
    plateau = lr.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0):
        plateau.step(loss)
    assert plateau.get_last_lr() == [0.25]


def test_gradients_are_clipped():
    x, y = leaf([3.0, 0.0]), leaf([2.0])
    (0.5 * (x * x).sum() + 0.5 * (y * y).sum() * 2).backward()
    assert nn.utils.clip_grad_norm_([x, y], 1.0).item() == 5.0
    close(x.grad, [0.6, 0.0], 1e-6)
    nn.utils.clip_grad_value_([x, y], 0.5)
    close(x.grad, [0.5, 0.0])


def test_data_by_number_and_by_batch():
    x, y = torch.arange(10.0).reshape(5, 2), torch.arange(5)
    data = TensorDataset(x, y)
    assert [part.shape for part in next(iter(DataLoader(data, batch_size=2)))] == [(2, 2), (2,)]
    assert len(DataLoader(data, batch_size=2)) == 3 and len(DataLoader(data, batch_size=2, drop_last=True)) == 2
    torch.manual_seed(1)
    seen = torch.cat([rows for _, rows in DataLoader(data, batch_size=2, shuffle=True, num_workers=2)])
    assert sorted(seen.tolist()) == [0, 1, 2, 3, 4]
    parts = random_split(data, [0.6, 0.4], generator=torch.Generator().manual_seed(7))
    again = random_split(data, [3, 2], generator=torch.Generator().manual_seed(7))
    assert [part.indices for part in parts] == [part.indices for part in again] and [*map(len, parts)] == [3, 2]
    assert Subset(data, [4, 1])[0][1].item() == 4 and ConcatDataset([data, data])[7][1].item() == 2
    with pytest.raises(ValueError, match="make 4; the data set has 5"):
        random_split(data, [2, 2])

    class Squares(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return {"x": np.full(2, index, "f4"), "y": index**2, "name": "abc"[index]}

    (batch,) = DataLoader(Squares(), batch_size=3)
    assert (
        batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
        and batch["y"].tolist() == [0, 1, 4]
        and batch["name"] == ["a", "b", "c"]
    )


def test_starting_values_are_as_wide_as_they_should_be():
    torch.manual_seed(0)
    w = torch.empty(300, 200)
    for fill, deviation in (
        (nn.init.xavier_uniform_, math.sqrt(2 / 500)),
        (nn.init.xavier_normal_, math.sqrt(2 / 500)),
        (nn.init.kaiming_uniform_, math.sqrt(2 / 200)),
        (lambda w: nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="linear"), math.sqrt(1 / 300)),
    ):
        fill(w)
        assert w.std().item() == pytest.approx(deviation, rel=0.02) and abs(w.mean().item()) < 0.002
    assert nn.Linear(4, 1000).weight.abs().max().item() <= 0.5


# What is not here ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "missing, told",
    [
        (lambda: torch.float16, "float32"),
        (lambda: torch.tensordot, "einsum"),
        (lambda: torch.frobnicate, "has no 'frobnicate'"),
        (lambda: nn.Conv2d, "Linear"),
        (lambda: F.conv2d, "torch.nn.functional has no 'conv2d'"),
        (lambda: torch.ones(2).cuda(), "to\\(device\\)"),
        (lambda: torch.ones(2).frobnicate, "a tensor has no 'frobnicate'"),
        (lambda: torch.zeros_, "has no 'zeros_'"),
    ],
)
def test_a_missing_name_says_what_to_use(missing, told):
    with pytest.raises(AttributeError, match=told):
        missing()


def test_other_devices_are_refused():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.ones(2).to(device).device == device and device.type == "cpu"
    for there in (
        lambda: torch.device("cuda:0"),
        lambda: torch.ones(2).to("cuda"),
        lambda: torch.ones(2, device="cuda"),
    ):
        with pytest.raises(RuntimeError, match="here is the CPU"):
            there()


def test_tensors_print_as_pytorch_prints_them():
    assert repr(torch.tensor([[1.5, 2], [3, 4]])) == "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]])"
    assert repr(torch.tensor([1.0, 2.0], dtype=torch.float64)) == "tensor([1., 2.], dtype=torch.float64)"
    assert repr(leaf(2.0, torch.float32) * 3) == "tensor(6., grad_fn=<MulBackward0>)"
    assert f"{torch.tensor(2.567):.2f} {torch.rand(2, 3).shape}" == "2.57 torch.Size([2, 3])"


def test_hooks_hear_of_gradients_and_change_them():
    x, heard = leaf([1.0, 2.0]), []
    y = x * 2
    z = y.exp()
    y.register_hook(lambda dy: heard.append(dy.tolist()))
    y.register_hook(lambda dy: dy * 3)
    z.register_hook(lambda dz: dz * 10)
    z.sum().backward()
    assert heard == [pytest.approx([10 * math.exp(2), 10 * math.exp(4)])]
    close(x.grad, [60 * math.exp(2), 60 * math.exp(4)])
    w = leaf([1.0, 2.0])
    hook = w.register_hook(lambda dw: dw * torch.tensor([1.0, 0.0], dtype=torch.float64))
    step = optim.SGD([w], lr=0.1)
    for _ in range(2):  # of a leaf, after each step too
        step.zero_grad()
        (w * w).sum().backward()
        step.step()
    close(w, [0.64, 2.0])
    hook.remove()
    (w * w).sum().backward()
    close(w.grad, [1.6 + 1.28, 4.0])
    with pytest.raises(RuntimeError, match="no gradient"):
        torch.ones(1).register_hook(print)


def test_a_hook_has_its_part_in_second_gradients():
    """PyTorch 2.15 calls it on the way back through the first gradient, too."""
    x = leaf([3.0])
    y = x**2
    y.register_hook(lambda dy: dy * 5)
    (first,) = torch.autograd.grad(y**2, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == pytest.approx((540.0, 1980.0), rel=1e-12)


MATRIX, RIGHT = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, 2.0, 0.0], [0.5, 1.0, 1.0]])
CURVED = {  # functions of a matrix; PyTorch's Hessian of each, its first row
    "solve": (lambda a: torch.linalg.solve(a, torch.tensor(RIGHT)).pow(2).sum(), None),
    "inverse": (lambda a: torch.inverse(a).pow(2).sum(), None),
    "det": (lambda a: torch.det(a) ** 2 + torch.trace(a) ** 3, [48.0, -6.0, -6.0, 52.0]),
    "log det": (lambda a: torch.log(torch.det(a)), [-0.36, 0.12, 0.12, -0.04]),
    "einsum": (lambda a: torch.einsum("ij,kj->ki", a, a).pow(2).sum(), [56.0, 28.0, 28.0, 4.0]),
    "pairs": (lambda a: torch.einsum("i,j", a[0], a[1]).pow(2).sum(), [20.0, 0.0, 8.0, 24.0]),
    "bmm": (lambda a: torch.bmm(torch.stack([a, a * 2]), torch.stack([a, a])).pow(2).sum(), [280.0, 140.0, 140.0, 20.0]),
    "scatter": (lambda a: torch.zeros(2, 3, dtype=torch.float64).scatter(1, torch.tensor([[2, 0], [1, 2]]), a * a).pow(2).sum(), [48.0, 0.0, 0.0, 0.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", CURVED)
def test_hessians_agree_with_pytorch_and_with_differences(name):
    function, first_row = CURVED[name]
    a, step = leaf(MATRIX), 1e-5
    found = torch.autograd.functional.hessian(function, a)
    assert found.shape == (2, 2, 2, 2)
    for k, at in enumerate(np.ndindex(2, 2)):
        slopes = []
        for way in (step, -step):
            nudged = MATRIX.copy()
            nudged[at] += way
            nudged = leaf(nudged)
            function(nudged).backward()
            slopes.append(nudged.grad.numpy())
        np.testing.assert_allclose(
            found.numpy().reshape(4, 4)[k], (slopes[0] - slopes[1]).ravel() / (2 * step), 1e-5, 1e-6
        )
    if first_row:
        close(found.reshape(4, 4)[0], first_row, 1e-9)


def test_jacobians_of_several_inputs():
    a, v = torch.tensor(MATRIX), leaf([1.0, 2.0])
    by_a, by_v = torch.autograd.functional.jacobian(lambda a, v: a @ v, (a, v))
    assert by_a.tolist() == [[[1, 2], [0, 0]], [[0, 0], [1, 2]]] and by_v.tolist() == MATRIX.tolist()
    assert torch.autograd.functional.jacobian(lambda x: torch.ones(3), v).tolist() == [[0, 0]] * 3
    ((xx, xy), (yx, yy)) = torch.autograd.functional.hessian(lambda x, y: (x * x * y).sum(), (v, v * 2))
    assert xx.tolist() == [[4, 0], [0, 8]] and xy.tolist() == yx.tolist() == [[2, 0], [0, 4]] and not yy.any()
    with pytest.raises(RuntimeError, match="expected one number"):
        torch.autograd.functional.hessian(lambda x: x * 2, v)


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


def test_samplers():
    data = TensorDataset(torch.arange(6))
    assert [b[0].tolist() for b in DataLoader(data, batch_sampler=BatchSampler(range(5), 2, False))] == [
        [0, 1],
        [2, 3],
        [4],
    ]
    assert len(BatchSampler(SequentialSampler(data), 4, True)) == 1
    assert sorted(SubsetRandomSampler([1, 3, 5])) == [1, 3, 5] and sorted(RandomSampler(data)) == [*range(6)]
    torch.manual_seed(0)
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert drawn.count(0) == 0 and drawn.count(2) / drawn.count(1) == pytest.approx(3, rel=0.2)
    assert sorted(WeightedRandomSampler([1.0, 0.0, 2.0], 2, replacement=False)) == [0, 2]
    again = [list(RandomSampler(data, generator=torch.Generator().manual_seed(5))) for _ in range(2)]
    assert again[0] == again[1]
    for wrong in (
        lambda: WeightedRandomSampler([1.0, -1.0], 2),
        lambda: WeightedRandomSampler([1.0, 0.0], 2, replacement=False),
        lambda: DataLoader(data, shuffle=True, sampler=SequentialSampler(data)),
        lambda: DataLoader(data, batch_size=2, batch_sampler=[[0]]),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_what_is_a_view_what_a_copy_and_what_neither():
    x = torch.arange(6.0).reshape(2, 3)
    x.T.contiguous()[0, 0] = 9
    assert x[0, 0].item() == 0.0
    torch.as_tensor(x)[0, 0] = 9
    x.select(0, 1).fill_(4)
    x.narrow(1, 1, 1).zero_()
    assert x.tolist() == [[9, 0, 2], [4, 0, 4]]
    with pytest.raises(RuntimeError, match="use reshape"):
        x.t().view(-1)
    array = np.zeros(2, "f4")
    torch.as_tensor(array)[0] = 1
    torch.tensor(array)[1] = 1
    assert array.tolist() == [1.0, 0.0]
    v = torch.arange(4.0)
    part = v[2:]
    part **= 2
    part //= 4
    assert v.tolist() == [0, 1, 1, 2]


def test_bools_and_dtypes():
    b = torch.tensor([True, False])
    assert (b + b).tolist() == (b * b).tolist() == [True, False] and (b + True).dtype == torch.bool
    assert (b + 1).tolist() == [2, 1] and b.sum().dtype == torch.int64
    assert str(torch.float32) == str(torch.ones(1).dtype) == "torch.float32" and torch.float32.is_floating_point
    assert np.zeros(1, torch.float64).dtype == "float64" and {torch.int64: 1}[torch.ones(1).long().dtype] == 1
    assert b.type(torch.DoubleTensor).dtype == torch.float64
    with pytest.raises(TypeError, match="expected a dtype"):
        b.to(3)
    with pytest.raises(RuntimeError, match="expected floats"):
        torch.tensor([1]).requires_grad_()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.ones(2) @ torch.ones(3),
        lambda: torch.ones(2) + torch.ones(3),
        lambda: torch.arange(3).mean(),
        lambda: torch.cat([torch.ones(2), torch.ones(2, 2)]),
        lambda: torch.einsum("ij,jk", torch.ones(2, 2), torch.ones(3, 2)),
        lambda: torch.inverse(torch.zeros(2, 2)),
        lambda: torch.ones(2, 2).repeat(3),
    ],
)
def test_refusals_are_runtime_errors_as_in_pytorch(wrong):
    with pytest.raises(RuntimeError):
        wrong()


def test_classes_that_do_not_count():
    logs, target = torch.tensor(LOGS), torch.tensor([2, -100, 1])
    close(F.nll_loss(logs, target), -(LOGS[0, 2] + LOGS[2, 1]) / 2)
    close(nn.CrossEntropyLoss(ignore_index=1, reduction="sum")(logs, torch.tensor([2, 0, 1])), -LOGS[0, 2] - LOGS[1, 0])


def test_parameters_as_one_row_and_groups_added_later():
    net = nn.Linear(2, 1)
    row = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(row.detach() * 2, net.parameters())
    close(nn.utils.parameters_to_vector(net.parameters()), 2 * row.detach().numpy())
    with pytest.raises(ValueError, match="4 numbers, the parameters 3"):
        nn.utils.vector_to_parameters(torch.ones(4), net.parameters())
    step = optim.SGD([net.weight], lr=0.1)
    step.add_param_group({"params": net.bias, "lr": 0.5})
    assert [group["lr"] for group in step.param_groups] == [0.1, 0.5]
    with pytest.raises(ValueError, match="lr is -1"):
        optim.SGD([net.weight], lr=-1)
    with pytest.raises(ValueError, match="below 1"):
        optim.Adam([net.weight], betas=(1.0, 0.9))
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"
    assert net.load_state_dict({"weight": net.weight}, strict=False).missing_keys == ["bias"]


PRINTED = {  # PyTorch 2.15's texts
    "tensor([1.0000e-05, 1.0000e+00])": [1e-5, 1.0],
    "tensor([   inf, 1.5000])": [math.inf, 1.5],
    "tensor([nan, 1.])": [math.nan, 1.0],
    "tensor([   1, -200,    3])": [1, -200, 3],
    "tensor([1.0050e+02, 1.0000e-03])": [100.5, 0.001],
    "tensor([], size=(0, 3))": np.zeros((0, 3), "f4"),
    "tensor(123456.7891)": 123456.789,
    "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])": np.arange(2000, dtype="f4"),
    "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])": np.zeros((2, 2, 2), "f4"),
}  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_numbers_print_as_in_pytorch(text):
    assert str(torch.tensor(PRINTED[text])) == text


@pytest.mark.parametrize(
    "line, told",
    [
        ("from levels_more.torch.nn import Linear, Conv2d", "torch.nn has no 'Conv2d' here; use Linear layers"),
        ("from levels_more.torch.nn.functional import conv2d", "use Linear layers"),
        ("from levels_more.torch.optim import LBFGS", "use Adam"),
        ("from levels_more.torch import compile", "nothing here compiles it"),
    ],
)
def test_a_missing_name_says_so_where_it_is_imported(line, told):
    with pytest.raises(ImportError, match=told):
        exec(line, {})
    assert not hasattr(nn, "Conv2d") and not hasattr(torch, "compile")


def test_draws_by_weight():
    p = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert torch.multinomial(p, 3, replacement=True).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert sorted(torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 3).tolist()) == [0, 1, 2]


def test_nobody_else_waits_for_it():
    code = "import sys, levels.high_level\nprint('levels_more.torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(ROOT), timeout=120
    )
    assert done.stdout == "False\n", done.stderr


def test_readers_of_levels_have_the_functions_too():
    x = low_level.constant(X)
    np.testing.assert_allclose(low_level.sort(x, 0).numpy(), np.sort(X, 0))
    np.testing.assert_allclose(low_level.pick(x, ([0, 1], [2, 3])).numpy(), X[[0, 1], [2, 3]])
    np.testing.assert_allclose(low_level.nn.softmax(x, axis=0).numpy(), np.exp(X) / np.exp(X).sum(0))
    values, places = low_level.top_k(x, 2)
    assert places.numpy().tolist() == np.argsort(-X, 1)[:, :2].tolist()
    np.testing.assert_allclose(values.numpy(), -np.sort(-X, 1)[:, :2])
    with pytest.raises(IndexError, match="take_along: 9"):
        low_level.take_along(x, np.full((3, 1), 9))
    with pytest.raises(ValueError, match="dot: x is"):
        low_level.dot(x, x)


def test_a_tensor_takes_over_a_view_in_its_own_shape():
    """A view that would ask the tensor for the shape would go on asking: the tensor looks at the view."""
    w = nn.Parameter(torch.zeros(2, 3))
    w.data = torch.arange(6.0).view_as(w)
    w.data += 1.0
    close(w, [[1, 2, 3], [4, 5, 6]])
    close(torch.ones(3).expand_as(w), np.ones((2, 3)))


def test_hooks_are_called_from_the_youngest_to_the_oldest():
    x, heard = leaf(3.0), []
    y, z = x + 1, 2 * x
    for name, each in {"y": y, "z": z}.items():
        each.register_hook(lambda dy, name=name: heard.append(name))
    ((y - z) ** 2).backward()
    assert heard == ["z", "y"]  # as in PyTorch 2.15


def test_one_number_is_asked_for():
    x = torch.tensor([1.0, 2.0])
    assert 2.0 in x and 3.0 not in x and bool(torch.tensor([[True]]))
    for ask in (bool, float, int, torch.Tensor.item):
        with pytest.raises(RuntimeError, match=r"\(2,\) is not one number"):
            ask(x)


def test_in_place_means_in_place():
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True) is x and x.tolist() == [0.0, 2.0]
    y = leaf([-1.0, 2.0]) * 3
    z = nn.Sequential(nn.ReLU(inplace=True), nn.Identity())(y)
    assert y.tolist() == z.tolist() == [0.0, 6.0] and y.requires_grad
    x = torch.ones(50)
    assert nn.Dropout(0.5, inplace=True)(x) is x and {*x.tolist()} == {0.0, 2.0}


def test_layers_of_other_shapes_and_without_weights():
    torch.set_default_dtype(torch.float64)
    x = torch.arange(12.0).reshape(4, 3) ** 1.5
    bn = nn.BatchNorm1d(3, momentum=None, affine=False)
    bn(x), bn(x * 2)
    close(bn.running_mean, 1.5 * x.mean(0).numpy())  # the mean of both batches
    assert bn.weight is None and list(bn.state_dict()) == ["running_mean", "running_var", "num_batches_tracked"]
    plain = nn.BatchNorm1d(3, track_running_stats=False).eval()
    close(plain(x).mean(0), np.zeros(3))
    with pytest.raises(ValueError, match=r"\(4, 2\); expected \[batch, 3\]"):
        bn(x[:, :2])
    both = nn.LayerNorm([4, 3])(x)
    close(torch.stack([both.mean(), both.std(unbiased=False)]), [0.0, 1.0], 1e-6)
    with pytest.raises(ValueError, match=r"its last axes to be \(3,\)"):
        nn.LayerNorm(3)(torch.ones(3, 1))
    close(nn.RMSNorm(3)(x).square().mean(1), np.ones(4))
    assert (
        repr(nn.LayerNorm(3, elementwise_affine=False))
        == "LayerNorm((3,), eps=1e-05, elementwise_affine=False, bias=False)"
    )
    pairs = nn.Bilinear(3, 3, 2)
    close(pairs(x, x)[1, 0], x[1].numpy() @ pairs.weight[0].detach().numpy() @ x[1].numpy() + pairs.bias[0].item())
    table = nn.Embedding(4, 2, padding_idx=1)
    table(torch.tensor([[0, 1, 1]])).sum().backward()
    assert table.weight[1].tolist() == [0, 0] and table.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]


def test_containers_are_changed():
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    net.insert(1, nn.Tanh())
    del net[2]
    assert [type(part).__name__ for part in net] == ["Linear", "Tanh", "Linear"]
    assert list(net[1:].state_dict()) == ["2.weight", "2.bias"]  # a part of it keeps the names
    named = nn.ModuleDict({"a": nn.ReLU()})
    named.update({"b": net})
    assert named.pop("a") and list(named) == ["b"] and named.get_submodule("b.1") is net[1]
    assert list(net[0]._parameters) == ["weight", "bias"] and not list(net.parameters(recurse=False))
    rows = nn.ParameterList([torch.ones(2, 1)])
    assert isinstance(rows[0], nn.Parameter)
    assert repr(rows) == "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x1]\n)"
    with pytest.raises(RuntimeError, match=r"Missing key.*0\.weight.*Unexpected key.*: w$"):
        net.load_state_dict({"w": torch.ones(1)})


def test_samples_one_after_the_other():
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [batch.tolist() for batch in DataLoader(Numbers(), 2)] == [[0, 1], [2, 3], [4]]
    assert [len(batch) for batch in DataLoader(Numbers(), 2, drop_last=True)] == [2, 2]
    with pytest.raises(ValueError, match="an order of its own"):
        DataLoader(Numbers(), 2, shuffle=True)


def test_a_tensor_of_so_many_numbers():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor(4).shape == (4,)
    assert torch.Tensor([4]).tolist() == [4.0]


def test_a_dtype_is_one_object():
    assert torch.ones(1).dtype is torch.float32 and torch.tensor([1]).dtype is torch.long is torch.int64
    assert repr(torch.ones(2, 3).shape[:1]) == "torch.Size([2])"


def test_a_function_of_its_own_with_several_results_and_a_context():
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(x, y, k):
            return x * y, k * x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            *tensors, ctx.k = inputs
            ctx.save_for_backward(*tensors, output[0])

        @staticmethod
        def backward(ctx, dp, dq):
            x, y, p = ctx.saved_tensors
            assert ctx.needs_input_grad == (True, False, False) and p == x * y
            return dp * y + dq * ctx.k, None, None

    x = leaf(3.0)
    p, q = Both.apply(x, torch.tensor(4.0, dtype=torch.float64), 5.0)
    (p * 2 + q).backward()
    assert (p.item(), q.item(), x.grad.item()) == (12.0, 19.0, 13.0)


def test_classes_of_each_place():
    """Of logs[batch, classes, …] each place is a row; of logs[classes] there is one."""
    x, y = torch.tensor(RNG.normal(size=(2, 3, 4))), torch.tensor(RNG.integers(0, 3, (2, 4)))
    rows, classes = x.permute(0, 2, 1).reshape(8, 3), y.reshape(8)
    close(F.cross_entropy(x, y), F.cross_entropy(rows, classes).numpy())
    close(F.cross_entropy(x, y, reduction="none").reshape(8), F.cross_entropy(rows, classes, reduction="none").numpy())
    close(F.cross_entropy(rows[0], classes[0]), F.cross_entropy(rows[:1], classes[:1]).numpy())
    with pytest.raises(RuntimeError, match=r"target is \(4,\); expected a class for each row of \(8, 3\)"):
        F.cross_entropy(rows, classes[:4])


def test_the_first_number_of_a_list_decides():
    assert torch.tensor([np.float64(1.5)]).dtype == torch.tensor([np.array([1.5])]).dtype == torch.float64
    assert torch.tensor([1.5]).dtype == torch.float32 and torch.ones(1).type() == "torch.FloatTensor"


def test_whole_numbers_to_a_power_remain_so():
    whole = torch.tensor(3)
    assert (whole**3).dtype == torch.int64 and (whole**3, 2**whole, (whole**0.5).dtype) == (27, 8, torch.float32)
    with pytest.raises(RuntimeError, match="floats"):
        whole**-1


def test_functions_of_numpy_take_tensors():
    x = leaf([1.0, 4.0])
    np.sqrt(x).sum().backward()
    close(x.grad, [0.5, 0.25])
    with torch.no_grad():
        close(np.ones(2) * x + np.float64(1.0), [2.0, 5.0])
        close(np.logaddexp(x.data, 0.0), np.logaddexp([1.0, 4.0], 0.0))


def test_radam_begins_to_divide_by_the_spread():
    w = leaf(1.0)
    optimizer = optim.RAdam([w], lr=0.1)
    for _ in range(8):
        optimizer.zero_grad()
        (w * w).backward()
        optimizer.step()
    assert w.item() == pytest.approx(0.19408385613224668, rel=1e-12)  # PyTorch's


def test_more_starting_values():
    w = nn.init.orthogonal_(torch.empty(3, 5, dtype=torch.float64), gain=2.0)
    close(w @ w.T, 4.0 * np.eye(3), 1e-12)
    w = nn.init.orthogonal_(torch.empty(5, 3, dtype=torch.float64))
    close(w.T @ w, np.eye(3), 1e-12)
    assert nn.init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    w = nn.init.trunc_normal_(torch.empty(20000), mean=1.0, std=2.0, a=-1.0, b=3.0)
    assert w.min() >= -1 and w.max() <= 3 and abs(w.mean().item() - 1) < 0.05 and 1.0 < w.std() < 1.15


def test_what_numpy_works_out_without_a_gradient():
    a = np.array([[1.0, 2], [3, 4], [5, 6]])
    x = torch.tensor(a)
    q, r = torch.linalg.qr(x)
    close(q @ r, a)
    u, s, v = torch.svd(x)
    close(u @ torch.diag(s) @ v.t(), a)
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    close(u @ torch.diag(s) @ vh, a)
    close(torch.linalg.pinv(x) @ x, np.eye(2), 1e-12)
    close(torch.linalg.lstsq(x, x @ torch.ones(2, 1, dtype=torch.float64)).solution, [[1.0], [1.0]])
    values, vectors = torch.linalg.eigh(x.T @ x)
    close(vectors @ torch.diag(values) @ vectors.T, a.T @ a)
    assert torch.linalg.matrix_rank(x) == 2
    close(torch.linalg.norm(x), math.sqrt(91))
    close(torch.linalg.norm(x, 1, dim=1), [3, 7, 11])
    with pytest.raises(RuntimeError, match="svdvals"):
        torch.linalg.norm(x, 2)  # the largest singular value, not the length
    with pytest.raises(RuntimeError, match=r"qr: it has no gradient here; x\.detach\(\)"):
        torch.linalg.qr(leaf(a))


def test_gradients_are_checked_by_differences():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy

    assert torch.autograd.gradcheck(lambda x, y: x * y.exp(), (leaf([1.0, 2.0]), leaf([0.5, 1.0])))
    with pytest.raises(RuntimeError, match="gradcheck"):
        torch.autograd.gradcheck(Wrong.apply, (leaf([1.0, 2.0]),))
    assert not torch.autograd.gradcheck(Wrong.apply, leaf([1.0, 2.0]), raise_exception=False)
    with pytest.raises(RuntimeError, match="float64"):
        torch.autograd.gradcheck(torch.exp, leaf([1.0], torch.float32))


def test_how_numbers_are_printed_may_be_chosen():
    try:
        torch.set_printoptions(precision=2, sci_mode=False, threshold=3, edgeitems=1)
        assert repr(torch.tensor([0.001, 1000.0])) == "tensor([   0.00, 1000.00])"
        assert repr(torch.arange(5)) == "tensor([0,  ..., 4])"
    finally:
        torch.set_printoptions(precision=4, sci_mode=None, threshold=1000, edgeitems=3)
    with pytest.raises(TypeError, match="digits"):
        torch.set_printoptions(digits=2)


@pytest.mark.parametrize(
    "params, error, told",
    [
        (lambda w: [w * 2], ValueError, "made from other tensors"),
        (lambda w: nn.Sequential(nn.Linear(1, 1)), TypeError, "model.parameters"),
        (lambda w: [{"params": w}, {"params": [w], "lr": 1.0}], ValueError, "two groups"),
    ],
)
def test_what_an_optimizer_cannot_train(params, error, told):
    with pytest.raises(error, match=told):
        optim.SGD(params(leaf([1.0])), lr=0.1)


def test_a_module_asks_for_its_forward():
    class Nothing(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no forward"):
        Nothing()(1)
    with torch.autograd.no_grad():
        assert not (leaf([1.0]) * 2).requires_grad


def test_losses_of_rarer_kinds():
    """The numbers are those of PyTorch 2.15."""
    torch.set_default_dtype(torch.float64)
    p, t = torch.tensor([0.1, 0.5, 0.9, 0.99]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    x, sign = torch.linspace(-2, 2, 12).reshape(4, 3), 2 * t - 1
    found = [
        nn.HingeEmbeddingLoss()(p, sign),
        nn.SoftMarginLoss()(torch.logit(p), sign),
        nn.MarginRankingLoss(margin=0.2)(p, t, sign),
        nn.CosineEmbeddingLoss()(x, x + 1, torch.tensor([1, -1, 1, -1])),
        nn.PoissonNLLLoss()(x, x.abs()),
        nn.PoissonNLLLoss(log_input=False)(x.abs(), x.abs()),
        nn.GaussianNLLLoss()(p, t, p + 0.1),
        nn.TripletMarginLoss(margin=5.0)(x, x + 0.1, x - 1),
        nn.TripletMarginLoss(margin=5.0, p=1.0)(x, x + 0.1, x - 1),
    ]
    close(
        torch.stack(found),
        [
            0.5774999999999999,
            1.377259599465922,
            0.6225,
            0.26946354718317517,
            1.994104562243897,
            0.7955958885519164,
            -0.08228060767072079,
            3.441150809086395,
            2.2999940000000008,
        ],
    )


def test_one_number_stays_one_number():
    """The functions of level 3 that NumPy works out."""
    x = low_level.constant(1.5)
    assert [f(x).shape for f in (low_level.floor, low_level.ceil, low_level.rounded, low_level.sign)] == [()] * 4
    assert (x // 1.0).shape == (x % 1.0).shape == ()
