"""Eight bits instead of 32, by onnxruntime's quantiser, on what `export` writes: a small net grows, a large one shrinks
to a quarter.
"""

import logging

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

from course import serving, tasks
from levels_more.high_level import Sequential
from levels_more.mid_level import Dense
from levels_more.saving import load_model


class Examples(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x0": x[k : k + 100]} for k in range(0, 1000, 100)])

    def get_next(self):
        return next(self.batches, None)


@pytest.fixture(params=["dynamic", "static"])
def quantised(request, tmp_path, monkeypatch):
    """From a model and examples to its two files."""
    monkeypatch.setattr(logging.getLogger(), "disabled", True)

    def make(model, x):
        before, after = tmp_path / "before.onnx", tmp_path / f"{request.param}.onnx"
        model.export(before)
        if request.param == "dynamic":
            quantize_dynamic(before, after, weight_type=QuantType.QInt8)
        else:
            quantize_static(before, after, Examples(x), weight_type=QuantType.QInt8)
        return before, after

    return make


def run(file, x):
    return onnxruntime.InferenceSession(file).run(None, {"x0": x})[0]


def test_the_rings_net_grows_and_is_as_often_right(quantised):
    data, small = tasks.rings(), Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")])
    small.build((None, 2), "float32")
    small.set_weights([w.astype("f4") for w in load_model("rings").get_weights()])
    before, after = quantised(small, data.x.astype("f4"))
    assert after.stat().st_size > 2 * before.stat().st_size
    right = [((run(file, data.x_test.astype("f4")) > 0.5) == (data.y_test == 1)).mean() for file in (before, after)]
    assert right[0] > 0.93 and abs(right[1] - right[0]) < 0.02


def test_a_large_net_is_a_quarter_and_nearly_the_same(quantised, tmp_path):
    large = Sequential([Dense(256, "relu"), Dense(256, "relu"), Dense(10, "softmax")])
    large.build((None, 64), "float32")
    x = np.random.default_rng(0).uniform(0, 1, (1000, 64)).astype("f4")
    before, after = quantised(large, x)
    assert 3.5 < before.stat().st_size / after.stat().st_size < 4
    assert 0 < np.abs(run(after, x) - run(before, x)).max() < 0.05
    serving.write_onnx(after, tmp_path / "served.onnx")  # what `course serve` takes in


def test_a_net_in_float64_comes_back_as_it_was(quantised):
    """Without a word: the quantiser looks for float32 alone. The notebook says so."""
    x = tasks.rings().x
    before, after = quantised(load_model("rings"), x)
    assert run(after, x).tobytes() == run(before, x).tobytes()
    assert {onnx.helper.tensor_dtype_to_np_dtype(w.data_type) for w in onnx.load(after).graph.initializer} == {
        np.dtype("f8")
    }
