#!/usr/bin/env bash
# tf.nn.softmax of [NaN, 1, 2] is [NaN, 0, 0] on a CPU (tensorflow-cpu==2.21.0; the same in 2.18.1), and of [infinity,
# 1] it is [NaN, 0]; log_softmax of them is NaN throughout, and so is the softmax when it is compiled by XLA. In a mean
# over classes without the first one, or as the weights of an attention, the zeros look like numbers. PyTorch, JAX and
# ONNX Runtime give NaN for the whole row.
#
# A good guess: NaN throughout: each number is divided by a sum that is NaN.
#
# Output:
#   [nan, 1.0, 2.0] softmax  [nan, 0.0, 0.0]
#   [nan, 1.0, 2.0] compiled [nan, nan, nan]
#   [nan, 1.0, 2.0] log      [nan, nan, nan]
#   [inf, 1.0] softmax  [nan, 0.0]
#   [inf, 1.0] compiled [nan, nan]
#   [inf, 1.0] log      [nan, nan]
#   [1.0, 2.0, nan] softmax  [0.0, 0.0, nan]
#   [1.0, 2.0, nan] compiled [nan, nan, nan]
#   [1.0, 2.0, nan] log      [nan, nan, nan]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import tensorflow as tf

assert tf.__version__ == "2.21.0"
nan, inf = float("nan"), float("inf")
for row in ([nan, 1.0, 2.0], [inf, 1.0], [1.0, 2.0, nan]):
    x = tf.constant(row)
    compiled = tf.function(tf.nn.softmax, jit_compile=True)(x)
    for name, y in (("softmax", tf.nn.softmax(x)), ("compiled", compiled), ("log", tf.nn.log_softmax(x))):
        print(row, f"{name:8}", y.numpy().tolist())
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "tensorflow-cpu==2.21.0"
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
