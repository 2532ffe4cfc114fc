"""Execute a notebook from top to bottom, in its own kernel."""

import re
from pathlib import Path

from course.author.builder.files import environment
from course.reader.notebooks.cells import BuildError, title
from course.reader.notebooks.names import notebook_path
from course.reader.notebooks.stored import METADATA


def client_of(notebook, **options):
    """Return a client that runs the notebook in a new kernel of this Python. It takes the options of NotebookClient."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # without folders to search, "python3" is this interpreter, and not another that is registered under that name
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    return NotebookClient(notebook, km=kernel, **options)


def execute(notebook, name: str, root: Path) -> None:
    """Run a notebook in the project at `root` with this Python. Raises BuildError, naming the cell, if one fails."""
    from tqdm import tqdm  # imported here, because each kernel of the course imports this module

    options = {"timeout": 600, "record_timing": False, "coalesce_streams": True, "store_widget_state": False}
    options["extra_arguments"] = ["--IPKernelApp.log_level=ERROR"]
    at = 0
    with tqdm(total=len(notebook.cells), desc=f"{name:<14}", unit=" cells", leave=False, disable=None) as bar:

        def show(cell, cell_index):
            nonlocal at
            at = cell_index
            bar.update(at - bar.n)

        try:
            client = client_of(notebook, on_cell_start=show, **options)
            client.execute(cwd=str(notebook_path(root, name).parent), env=environment(root), cleanup_kc=True)
        except Exception as error:  # a failing cell, a kernel that died, a cell that takes too long
            message = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip() or "it was interrupted"
            raise BuildError(f"{name}.ipynb, {title(at + 1, notebook.cells[at].source)} failed: {message}") from None
    notebook.metadata = dict(METADATA)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):  # remove what differs between runs, or contains paths of this machine
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
            if "traceback" in output:
                output["traceback"] = output["traceback"][-1:]
