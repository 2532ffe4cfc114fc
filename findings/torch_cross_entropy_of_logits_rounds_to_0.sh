#!/usr/bin/env bash
# torch.nn.functional.binary_cross_entropy_with_logits, which is there for its digits, gives exactly 0 for the logit
# -15 and the truth 0 (torch==2.13.0; the same in 2.14.1): the loss is log(1 + exp(-15)) = 3.06e-07. At -12 it is 7
# percent too small. The same loss with the signs turned, the logit 15 and the truth 1, is right, and so are the
# gradients of both, and softplus(-15). The kernel computes (1 - y) * z - log_sigmoid(z), the difference of two numbers
# near -15.
#
# A good guess: log(1 + exp(-|z|)) is added to a part that is 0 here, so that all digits are right for both signs, as
# in TensorFlow's sigmoid_cross_entropy_with_logits.
#
# Output:
#   logit    -5, truth 0: 0.00672  turned: 0.00672  slope: 0.00669
#   logit   -12, truth 0: 5.72e-06  turned: 6.14e-06  slope: 6.14e-06
#   logit   -15, truth 0: 0  turned: 3.06e-07  slope: 3.06e-07
#   logit   -30, truth 0: 0  turned: 9.36e-14  slope: 9.36e-14
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import torch
import torch.nn.functional as F

assert torch.__version__.split("+")[0] == "2.13.0"
for z in (-5.0, -12.0, -15.0, -30.0):
    x = torch.tensor(z, requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, torch.tensor(0.0))
    loss.backward()
    turned = F.binary_cross_entropy_with_logits(torch.tensor(-z), torch.tensor(1.0))
    print(f"logit {z:5.0f}, truth 0: {loss.item():.3g}  turned: {turned.item():.3g}  slope: {x.grad.item():.3g}")
PYTHON
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "torch==2.13.0" "numpy==2.4.6"
"$folder/venv/bin/python" "$folder/ask.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
