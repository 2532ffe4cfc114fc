"""Where Jupyter, IPython and Matplotlib keep their files: in the reader's home folder, if that can be written to."""

import os
import tempfile
from pathlib import Path


def settle(root: str) -> str:
    """Give each of them that cannot write at home a folder in .course/home. Returns what to tell, or nothing.

    The home folder of a hub, a container or a school's computer may be missing, or only be read.
    """
    from jupyter_core import paths

    wanted = {
        "JUPYTER_RUNTIME_DIR": paths.jupyter_runtime_dir(),
        "JUPYTER_DATA_DIR": paths.jupyter_data_dir(),
        "JUPYTER_CONFIG_DIR": paths.jupyter_config_dir(),
        "IPYTHONDIR": os.environ.get("IPYTHONDIR") or os.path.expanduser("~/.ipython"),
        "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR") or os.path.expanduser("~/.config/matplotlib"),
    }
    lost = [name for name, folder in wanted.items() if not writable(folder)]
    for name in lost:
        folder = Path(root, ".course", "home", name.lower())
        folder.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(folder)
    if not lost:
        return ""
    return f"{wanted[lost[0]]} cannot be written to. Jupyter stores its files in .course/home instead, in the course's folder."


def writable(folder: str) -> bool:
    """Whether a folder is there, or can be made, and takes a file."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
