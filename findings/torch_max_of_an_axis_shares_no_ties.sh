#!/usr/bin/env bash
# The slopes of the largest of 2, 2, 1 (torch==2.13.0; the same in 2.14.1): x.max() and x.amax(0) share, 0.5 and 0.5;
# x.max(0).values and topk give 1 to one of the two, and 0 to the other. median() shares, median(0).values does not. So
# a reduction of all numbers and the same one over the only axis have other gradients. tf.reduce_max and jnp.max share
# with and without an axis.
#
# A good guess: an axis changes nothing for a tensor that has only one.
#
# Output:
#   x.max()            [0.5, 0.5, 0.0]
#   x.max(0).values    [1.0, 0.0, 0.0]
#   x.amax(0)          [0.5, 0.5, 0.0]
#   x.topk(1).values   [1.0, 0.0, 0.0]
#   x.median()         [0.5, 0.5, 0.0]
#   x.median(0).values [1.0, 0.0, 0.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import torch

assert torch.__version__.split("+")[0] == "2.13.0"
ways = {
    "x.max()": lambda x: x.max(),
    "x.max(0).values": lambda x: x.max(0).values,
    "x.amax(0)": lambda x: x.amax(0),
    "x.topk(1).values": lambda x: x.topk(1).values.sum(),
    "x.median()": lambda x: x.median(),
    "x.median(0).values": lambda x: x.median(0).values,
}
for name, way in ways.items():
    x = torch.tensor([2.0, 2.0, 1.0], requires_grad=True)
    way(x).backward()
    print(f"{name:18}", x.grad.tolist())
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "torch==2.13.0" "numpy==2.4.6"
"$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
