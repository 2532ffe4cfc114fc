"""The cures for names that tensors do not have work with levels_more, and what is no op is refused by its name."""

import math

import numpy as np
import pytest

import levels_more.tensorflow as tf
from levels.support import cures
from levels_more import low_level

CURES = cures.cures(cures.MORE)


@pytest.mark.parametrize("name", CURES)
def test_a_method_that_tensors_do_not_have_names_what_works(name):
    x = low_level.constant(np.array([[0.5, 0.25], [0.125, 2.0]]))
    truths = name in ("any", "all")
    space = vars(low_level) | {"x": x > 0.2 if truths else x, "y": x, "mask": x > 1.0, "shape": (-1,), "axis": 1}
    with pytest.raises(AttributeError, match=f"Tensor has no '{name}'; write .* of levels_more.low_level"):
        getattr(x, name)
    found = eval(CURES[name], space | {"dtype": "float64", "math": math}).numpy()
    function, _, given = CURES[name].partition("(")
    numpys = getattr(np, function.removeprefix("reduce_").replace("variance", "var"), None)
    if numpys and given == "x)":
        np.testing.assert_allclose(found, numpys(x.numpy() > 0.2 if truths else x.numpy()), rtol=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize(
    "name, act",
    [
        ("x // y", lambda x: x // 10),
        ("x // y", lambda x: low_level.constant([7, 7]) // x),
        ("x % y", lambda x: x % 10),
        ("floor", lambda x: tf.floor(x)),
    ],
)
def test_what_is_no_op_is_refused_by_its_name_while_a_function_is_traced(name, act):
    x = low_level.constant([3, 47])
    right = act(x).numpy().tolist()
    with pytest.raises(TypeError, match=f"^{name}: Symbol.* has no numbers yet .*: compute it from the rows with"):
        low_level.function(act)(x)
    assert tf.function(act)(x).numpy().tolist() == right  # it runs op by op what is no op of a graph
