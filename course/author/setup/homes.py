"""Where Jupyter, IPython and Matplotlib store files: in the user's home folder if it is writable, else in `.course`."""

import os
import tempfile
from pathlib import Path


def settle(root: str) -> str:
    """Set a folder in .course/home for each of them that cannot write to its own. Returns a message, or "".

    The home folder on a hub, in a container or on a school's computer may be missing or read-only.
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
    told = "Jupyter stores its files in .course/home instead, in the course's folder."
    return f"{wanted[lost[0]]} cannot be written to. {told}"


def writable(folder: str) -> bool:
    """Return whether a folder exists, or can be made, and a file can be created in it."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
