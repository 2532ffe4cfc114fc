#!/usr/bin/env bash
# Keras' BatchNormalization of the float32 column 10001, 10002, 10004, in training (keras==3.15.1, torch==2.13.0,
# jax==0.10.2; the same with torch==2.14.1): on the JAX backend about -1.07, -0.27, 1.34, which is right, and on the
# PyTorch backend -0.33, -0.08, 0.42. keras.ops.moments gives the variance 1.556 on one and 16.0 on the other: on
# PyTorch it is the mean of the squares minus the square of the mean (keras/src/backend/torch/nn.py), which has no
# digit left in float32. ops.var gives 1.556 on both, and LayerNormalization is right on both. PyTorch's own
# BatchNorm1d is right, too.
#
# A good guess: the variance is taken from the differences to the mean, as in LayerNormalization and in
# torch.nn.BatchNorm1d; a shift of a column changes nothing.
#
# Output:
#   jax
#     variance 1.56  of moments 1.56
#     batch [-1.07, -0.27, 1.34]
#     layer [-1.07, -0.27, 1.34]
#   torch
#     variance 1.56  of moments 16.0
#     batch [-0.33, -0.08, 0.42]
#     layer [-1.07, -0.27, 1.34]
#     torch's own [-1.07, -0.27, 1.34]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import keras
import numpy as np
from keras import ops

assert keras.__version__ == "3.15.1"
x = np.array([[10001.0], [10002.0], [10004.0]], "float32")
layers = {"batch": keras.layers.BatchNormalization(), "layer": keras.layers.LayerNormalization()}
print(keras.backend.backend())
print("  variance", round(float(ops.var(x)), 2), " of moments", round(float(ops.moments(x, [0])[1][0]), 2))
print("  batch", [round(float(y), 2) for y in ops.convert_to_numpy(layers["batch"](x, training=True)).ravel()])
print("  layer", [round(float(y), 2) for y in ops.convert_to_numpy(layers["layer"](x.T)).ravel()])
if keras.backend.backend() == "torch":
    import torch

    print("  torch's own", [round(y, 2) for y in torch.nn.BatchNorm1d(1)(torch.tensor(x)).ravel().tolist()])
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "keras==3.15.1" "torch==2.13.0" "jax==0.10.2" "numpy==2.4.6"
{
    KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null
    KERAS_BACKEND=torch "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null
} | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
