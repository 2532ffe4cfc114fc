"""What the course adds to JupyterLab, as an extension of its server: the width of prose, and the last printed line.

`workspace.lab_command` names it. The settings that need no code stand there.
"""

import json
import os
import urllib.request
from pathlib import Path

CUSTOM = "custom"  # the folder beside this file with custom.css


def _jupyter_server_extension_points() -> list[dict]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server) -> None:
    # Lab reads one custom.css: the reader's own if there is one, for that folder comes first.
    server.web_app.settings["static_custom_path"].append(str(Path(__file__).with_name(CUSTOM)))
    user = server.identity_provider
    token = user.token if user.token_generated else ""  # whoever has set one knows it
    user.token_generated = False  # else the server prints the address, too, in a block of six lines
    # The server binds its port in the loop's first turn, after the callbacks of extensions. So print one turn later.
    server.io_loop.add_callback(server.io_loop.add_callback, tell, server, token)


def tell(server, token: str) -> None:
    """The last line: where JupyterLab is. (Which port it got is known only now.)"""
    opened = server.default_url[len(server.base_url) :]
    print(f"JupyterLab: {address(server.connection_url, opened, token)}  (press Ctrl-C twice to stop it)", flush=True)


def address(url: str, opened: str, token: str) -> str:
    """The address of a page of a server."""
    return f"{url.rstrip('/')}/{opened}" + (f"?token={token}" if token else "")


def running(folder: Path) -> dict | None:
    """The JupyterLab that is open on this folder already: its `url` and `token`; None where there is none."""
    from jupyter_server.serverapp import list_running_servers

    for server in list_running_servers():
        same = os.path.realpath(server.get("root_dir", "")) == os.path.realpath(folder)
        if same and answers(server["url"]):
            return server
    return None


def answers(url: str, seconds: float = 20) -> bool:
    """Whether a server answers. It may have ended, and its process number may now belong to another process.

    A server that accepts the connection, but sends nothing for `seconds`, is busy: that counts as an answer.
    """
    try:
        with urllib.request.urlopen(f"{url}api", timeout=seconds) as found:
            return "version" in json.load(found)
    except TimeoutError:
        return True
    except OSError as error:  # urllib wraps what happens before the answer
        return isinstance(getattr(error, "reason", None), TimeoutError)
    except ValueError:
        return False
