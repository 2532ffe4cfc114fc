#!/usr/bin/env bash
# onnxruntime's Unique of [1, NaN, NaN] is [1], of [NaN, 1, 2] it is [NaN], and of [3, NaN, 1, 2] it is [1, 2, 3] with
# the inverse 2, 2, 0, 1 (onnxruntime==1.32.0; the same in 1.24.4): NaN counts as equal to whatever it is compared with
# first, so that numbers that are no NaN disappear (1 and 2), and come back as NaN where the inverse is used. NumPy
# gives 1 and one NaN.
#
# A good guess: one NaN, or one for each of them; but each number that is no NaN is there.
#
# Output:
#   [1.0, nan, nan] -> [1.0]  inverse [0, 0, 0]  NumPy [1.0, nan]
#   [nan, 1.0, 2.0] -> [nan]  inverse [0, 0, 0]  NumPy [1.0, 2.0, nan]
#   [3.0, nan, 1.0, 2.0] -> [1.0, 2.0, 3.0]  inverse [2, 2, 0, 1]  NumPy [1.0, 2.0, 3.0, nan]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

assert onnxruntime.__version__ == "1.32.0"
names = ["y", "first", "inverse", "counts"]
gives = [helper.make_tensor_value_info(n, TensorProto.FLOAT if n == "y" else TensorProto.INT64, [None]) for n in names]
takes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])]
graph = helper.make_graph([helper.make_node("Unique", ["x"], names)], "unique", takes, gives)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
session = onnxruntime.InferenceSession(model.SerializeToString())
for x in ([1, np.nan, np.nan], [np.nan, 1, 2], [3, np.nan, 1, 2]):
    x = np.array(x, "float32")
    y, _, inverse, _ = session.run(None, {"x": x})
    print(x.tolist(), "->", y.tolist(), " inverse", inverse.tolist(), " NumPy", np.unique(x).tolist())
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "onnxruntime==1.32.0" "onnx==1.23.2" "numpy==2.4.6"
"$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
