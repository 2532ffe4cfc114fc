"""In a notebook's kernel: as if the packages that are named in the environment, in ABSENT, were not installed."""

import os
import sys

if "ipykernel_launcher" in sys.orig_argv:
    sys.modules.update(dict.fromkeys(os.environ.get("ABSENT", "").split()))
