"""An extension of JupyterLab's server: it sets the width of prose, and prints the address as the last line.

`workspace.lab_command` enables it, and sets all options that need no code.
"""

import json
import os
import time
import urllib.request
from pathlib import Path

from course.terminal.stage import try_lock

CUSTOM = "custom"  # the folder beside this file with custom.css
LOCKS = []  # open files: the lock on a file lasts until it is closed


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server) -> None:
    # JupyterLab reads one custom.css: the user's own if there is one, because that folder comes first.
    server.web_app.settings["static_custom_path"].append(str(Path(__file__).with_name(CUSTOM)))
    user = server.identity_provider
    token = user.token if user.token_generated else ""  # a token that the user has set is not printed
    user.token_generated = False  # otherwise the server prints the address too, in a block of six lines
    # The server binds its port in the loop's first iteration, after the extensions' callbacks. So print in the second.
    server.io_loop.add_callback(server.io_loop.add_callback, tell, server, token)


def tell(server, token: str) -> None:
    """Print the address of JupyterLab as the last line, and before it why its port is another than the one named."""
    named = int(server.config.ServerApp.get("port") or 0)
    if named not in (0, server.port):
        print(f"Port {named} is not free, so JupyterLab opens at port {server.port}.", flush=True)
    opened = server.default_url[len(server.base_url) :]
    print(f"JupyterLab: {address(server.connection_url, opened, token)}  (press Ctrl-C twice to stop it)", flush=True)


def address(url: str, opened: str, token: str) -> str:
    """Return the address of a page of a server."""
    return f"{url.rstrip('/')}/{opened}" + (f"?token={token}" if token else "")


def running(folder: Path) -> dict | None:
    """Return the JupyterLab server that already runs on this folder, with its `url` and `token`, or None."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        same = os.path.realpath(server.get("root_dir", "")) == os.path.realpath(folder)
        if same and answers(server["url"]):
            return server
    return None


def started_elsewhere(root: Path, desk: Path, patience: float = 120) -> dict | None:
    """Return the server that another `course lab` is just starting on this desk, or None if there is no such command.

    Then this process holds the lock of the desk until it ends, and so does JupyterLab, which takes its place.
    """
    (root / ".course").mkdir(exist_ok=True)
    if LOCKS:
        return None
    file = open(root / ".course" / "lab.lock", "a")  # noqa: SIM115  it stays open
    until = time.time() + patience
    while not try_lock(file) and time.time() < until:
        if server := running(desk):
            file.close()
            return server
        time.sleep(0.2)
    os.set_inheritable(file.fileno(), True)
    LOCKS.append(file)
    return None


def answers(url: str, seconds: float = 20) -> bool:
    """Return whether a server answers. It may have ended, and another process may now have its process ID.

    A server that accepts the connection, but sends nothing for `seconds`, is busy, which counts as an answer.
    """
    try:
        with urllib.request.urlopen(f"{url}api", timeout=seconds) as found:
            return "version" in json.load(found)
    except TimeoutError:
        return True
    except OSError as error:  # urllib wraps errors that occur before the response
        return isinstance(getattr(error, "reason", None), TimeoutError)
    except ValueError:
        return False
