#!/usr/bin/env bash
# Keras' sparse categorical cross-entropy of two classes where a truth is 2, or -1 (keras==3.15.1, jax==0.10.2,
# torch==2.13.0): on the PyTorch backend an IndexError (on TensorFlow an InvalidArgumentError), on the JAX backend a
# loss of 0, and fit reports 0.0 for labels that do not exist. The JAX backend takes the one-hot row of such a class,
# which holds zeros (keras/src/backend/jax/nn.py). So labels from 1 to n, where 0 to n - 1 are meant, look like rows
# that are learnt already.
#
# A good guess: an error on each backend, or NaN on JAX, which cannot raise inside of jit.
#
# Output:
#   jax
#     class 1 of two costs 0.6931
#     class 2 of two costs 0.0
#     class -1 of two costs 0.0
#     fit on class 2 alone: [0.0, 0.0]
#   torch
#     class 1 of two costs 0.6931
#     class 2 of two: IndexError
#     class -1 of two: IndexError
#     fit on class 2 alone: IndexError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import keras
import numpy as np

assert keras.__version__ == "3.15.1"
print(keras.backend.backend())
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
for label in (1, 2, -1):
    try:
        print(f"  class {label} of two costs {abs(round(float(loss(np.array([label]), np.zeros((1, 2)))), 4))}")
    except Exception as error:
        print(f"  class {label} of two: {type(error).__name__}")
model = keras.Sequential([keras.layers.Dense(2, kernel_initializer="zeros")])
model.compile(keras.optimizers.SGD(1.0), loss)
try:
    history = model.fit(np.ones((4, 1)), np.array([2, 2, 2, 2]), verbose=0, epochs=2).history["loss"]
    print("  fit on class 2 alone:", [abs(loss) for loss in history])
except Exception as error:
    print("  fit on class 2 alone:", type(error).__name__)
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "keras==3.15.1" "torch==2.13.0" "jax==0.10.2" "numpy==2.4.6"
{
    KERAS_BACKEND=jax "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null
    KERAS_BACKEND=torch "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null
} | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
