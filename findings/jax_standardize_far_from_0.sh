#!/usr/bin/env bash
# jax.nn.standardize of the float32 numbers 10001, 10002, 10004 (jax==0.10.2; the same in 0.6.2) is -2.38, -0.60, 2.97;
# right is -1.07, -0.27, 1.34, which (x - mean) / sqrt(var) of jax.numpy gives. At 1001, 1002, 1004 it is off by 1.5
# percent. The function takes the mean of the squares minus the square of the mean.
#
# A good guess: a shift of all numbers changes nothing but last digits: that is what standardising is for.
#
# Output:
#        0 [-1.07, -0.27, 1.34] [-1.07, -0.27, 1.34]
#     1000 [-1.09, -0.27, 1.36] [-1.07, -0.27, 1.34]
#    10000 [-2.38, -0.6, 2.97] [-1.07, -0.27, 1.34]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import jax
import jax.numpy as jnp

assert jax.__version__ == "0.10.2"
for shift in (0, 1000, 10_000):
    x = jnp.array([1.0, 2.0, 4.0]) + shift
    plain = (x - x.mean()) / jnp.sqrt(x.var() + 1e-5)
    print(f"{shift:6}", [round(y, 2) for y in jax.nn.standardize(x).tolist()], [round(y, 2) for y in plain.tolist()])
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "jax==0.10.2" "numpy==2.4.6"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
