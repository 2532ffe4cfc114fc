"""What the notebook more/05_text says: its table, its head, its nets, its convolution, what stands in it."""

import collections
import math

import jupytext
import nbformat
import numpy as np
import pytest

from course import build
from course.reader import prose
from levels_more.high_level import Sequential
from levels_more.low_level import GradientTape, apply, constant, function, softmax
from levels_more.mid_level import RANDOM, Adam, Dense, Embedding, Layer, SparseCategoricalCrossentropy
from solutions.high_level import patch_places

NAME = "more/05_text"


@pytest.fixture(scope="module")
def cells():
    """The sources of the notebook's code cells."""
    found = jupytext.read(build.text_path(build.ROOT, NAME)).cells
    return [cell.source for cell in found if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def printed():
    """What the built notebook printed, in one text."""
    notebook = nbformat.read(build.ROOT / "notebooks" / f"{NAME}.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.get("text", "") for output in outputs)


@pytest.fixture(scope="module")
def parts(cells):
    """The names that the notebook's own definitions make, without what trains: the masked head, its layers, its nets."""
    train, held = prose.read()
    kinds = len({*train, *held})
    scope = {"math": math, "np": np, "apply": apply, "constant": constant, "softmax": softmax, "Layer": Layer}
    scope |= {"Embedding": Embedding, "Dense": Dense, "kinds": kinds}
    for start in ("class Positions", "mask = ", "class Block"):
        (source,) = [cell for cell in cells if start in cell]
        exec(source.split("\nsingle = ")[0], scope)
    return scope


def test_the_table_has_the_losses_that_are_printed(printed):
    """Counted with a dictionary, and added up by `math.fsum`."""
    train, held = prose.read()
    characters = {*train, *held}
    pairs, firsts = collections.Counter(zip(train, train[1:], strict=False)), collections.Counter(train[:-1])

    def loss(text):
        share = {
            (a, b): (pairs[a, b] + 0.1) / (firsts[a] + 0.1 * len(characters)) for a in characters for b in characters
        }
        return -math.fsum(math.log(share[pair]) for pair in zip(text, text[1:], strict=False)) / (len(text) - 1)

    assert f"loss {loss(train):.4f}, held out {loss(held):.4f}\n" in printed


def test_the_masked_head_is_that_of_the_formula_and_does_not_look_ahead(parts):
    draw = np.random.default_rng(0)
    h, later = draw.normal(size=(2, 3, 32, 32))
    weights = draw.normal(size=(4, 32, 32)) / 6
    q, k, v, o = weights
    found = parts["masked_head"](*map(constant, (h, *weights))).numpy()
    for window, result in zip(h, found, strict=True):
        for t in range(32):
            scores = window[t] @ q @ (window[: t + 1] @ k).T / math.sqrt(32)
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            np.testing.assert_allclose(result[t], shares @ (window[: t + 1] @ v) @ o, rtol=1e-9, atol=1e-12)
    for t in (1, 20):
        changed = np.concatenate([h[:, :t], later[:, t:]], axis=1)
        again = parts["masked_head"](*map(constant, (changed, *weights))).numpy()
        assert (again[:, :t] == found[:, :t]).all() and (again[:, t:] != found[:, t:]).all()


def net_of(parts, layers):
    RANDOM.seed(0)
    net = Sequential(parts[layers]())
    net(constant(np.zeros((1, 32), int)))
    net.compile(Adam(0.005), SparseCategoricalCrossentropy(from_logits=True))
    return net


@pytest.mark.parametrize("layers", ["one_masked_head", "transformer"])
def test_gradients_of_the_whole_net_are_those_of_a_nudge_and_of_the_compiled_step(parts, layers):
    net, draw = net_of(parts, layers), np.random.default_rng(1)
    loss_of = SparseCategoricalCrossentropy(from_logits=True)
    x, y = (constant(draw.integers(0, 34, size=(2, 32))) for _ in "xy")

    def slopes(x, y):
        with GradientTape() as tape:
            loss = loss_of(y, net(x))
        return tuple(tape.gradient(loss, net.trainable_variables))

    found = slopes(x, y)
    for a, b in zip(found, function(slopes)(x, y), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-14)
    weights = net.get_weights()
    for k, weight in enumerate(weights):
        move, ends = draw.normal(size=weight.shape), []
        for step in (1e-6, -1e-6):
            net.set_weights([w + step * move if n == k else w for n, w in enumerate(weights)])
            ends.append(float(loss_of(y, net(x))))
        assert np.sum(found[k].numpy() * move) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=2e-5, abs=1e-7)


def test_the_numbers_printed_are_those_of_the_nets(parts, printed):
    assert f"{net_of(parts, 'transformer').count_params():,} numbers, held out 1.7228\n" in printed
    assert "held out 0.0791\n" in printed and "held out 2.0359\n" in printed  # ahead, and with the mask
    assert "the same losses, to the last bit: True\n" in printed and "apart by less than 1e-5: True\n" in printed


def test_the_patches_make_a_convolution():
    """Beside four loops over a picture, with three filters."""
    draw = np.random.default_rng(2)
    picture, filters = draw.normal(size=(5, 6)), draw.normal(size=(9, 3))
    found = picture.ravel()[patch_places(5, 6, 3)] @ filters
    for i in range(3):
        for j in range(4):
            for c in range(3):
                total = sum(picture[i + a, j + b] * filters[3 * a + b, c] for a in range(3) for b in range(3))
                assert found[4 * i + j, c] == pytest.approx(total)
