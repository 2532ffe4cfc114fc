"""What the notebook more/05_text says: the losses of its table, and its masked head."""

import collections
import math

import jupytext
import nbformat
import numpy as np

from course import build
from course.reader import prose
from levels_more.low_level import apply, constant, softmax

NAME = "more/05_text"


def test_the_table_has_the_losses_that_are_printed():
    """Counted with a dictionary, and added up by `math.fsum`."""
    notebook = nbformat.read(build.ROOT / "notebooks" / f"{NAME}.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    train, held = prose.read()
    characters = {*train, *held}
    pairs, firsts = collections.Counter(zip(train, train[1:], strict=False)), collections.Counter(train[:-1])

    def loss(text):
        share = {
            (a, b): (pairs[a, b] + 0.1) / (firsts[a] + 0.1 * len(characters)) for a in characters for b in characters
        }
        return -math.fsum(math.log(share[pair]) for pair in zip(text, text[1:], strict=False)) / (len(text) - 1)

    assert f"loss {loss(train):.4f}, held out {loss(held):.4f}\n" in printed


def test_the_masked_head_is_that_of_the_formula_and_does_not_look_ahead():
    found = jupytext.read(build.text_path(build.ROOT, NAME)).cells
    (source,) = [cell.source for cell in found if cell.cell_type == "code" and "mask = " in cell.source]
    scope = {"math": math, "np": np, "apply": apply, "constant": constant, "softmax": softmax}
    exec(source.split("\nsingle = ")[0], scope)
    masked_head = scope["masked_head"]
    draw = np.random.default_rng(0)
    h, later = draw.normal(size=(2, 3, 32, 32))
    weights = draw.normal(size=(4, 32, 32)) / 6
    q, k, v, o = weights
    found = masked_head(*map(constant, (h, *weights))).numpy()
    for window, result in zip(h, found, strict=True):
        for t in range(32):
            scores = window[t] @ q @ (window[: t + 1] @ k).T / math.sqrt(32)
            shares = np.exp(scores - scores.max())
            shares /= shares.sum()
            np.testing.assert_allclose(result[t], shares @ (window[: t + 1] @ v) @ o, rtol=1e-9, atol=1e-12)
    for t in (1, 20):
        changed = np.concatenate([h[:, :t], later[:, t:]], axis=1)
        again = masked_head(*map(constant, (changed, *weights))).numpy()
        assert (again[:, :t] == found[:, :t]).all() and (again[:, t:] != found[:, t:]).all()
