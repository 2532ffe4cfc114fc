#!/usr/bin/env bash
# np.take of three rows first copies the whole array if it is a view with gaps (numpy==2.2.6, numpy==2.4.6): of every second
# row of 40,000 x 256 float32, np.take(x, rows, axis=0), x.take(rows, axis=0) and mode="clip" each need 20 MB for a result of
# 3 kB. x[rows] needs 6 kB. Of the contiguous array all need a few kB. So a loop that takes batches of
# np.memmap(...)[rank::size] with np.take reads the whole file for each batch, and holds it in memory.
#
# A good guess: np.take(x, rows, axis=0) and x[rows] do the same, and take is the quicker and leaner one.
#
# Output:
#   2.2.6: contiguous take small, x[rows] small; every second row: take 20.5 MB, clip 20.5 MB, x[rows] small
#   2.4.6: contiguous take small, x[rows] small; every second row: take 20.5 MB, clip 20.5 MB, x[rows] small
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/peak.py" <<'PYTHON'
import tracemalloc

import numpy as np

whole = np.zeros((40_000, 256), "f4")
view = whole[::2]
rows = [1, 2, 3]


def peak(act):
    tracemalloc.start()
    act()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return "small" if size < 10_000 else f"{size / 1e6:.1f} MB"


print(
    f"{np.__version__}: contiguous take {peak(lambda: np.take(whole, rows, axis=0))}, x[rows] {peak(lambda: whole[rows])}; "
    f"every second row: take {peak(lambda: np.take(view, rows, axis=0))}, "
    f"clip {peak(lambda: view.take(rows, axis=0, mode='clip'))}, x[rows] {peak(lambda: view[rows])}"
)
PYTHON
for version in 2.2.6 2.4.6; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/python" -m pip install --quiet "numpy==$version"
    "$folder/$version/bin/python" "$folder/peak.py"
done | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
