"""For `pytest --nbval notebooks`: the kernels find `course` and `levels`, in whatever environment it runs."""

import os
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
