"""Serve models: `python3 -m course serve MODEL ...` answers requests of the Open Inference Protocol, version 2.

The server is KServe's own. It runs in a separate environment in `.course/serving`, which is made at the first use. This
module writes each model as an ONNX file into a folder, starts the server on that folder (`server.py`), and makes it
load the new version of a model that is saved again while the server runs.
"""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from course.reader.serving.environment import ServingError, place, python, set_up
from course.terminal.arguments import parser

SERVER, ORDER = (Path(__file__).with_name(name) for name in ("server.py", "inferenceservice.yaml"))
PATIENCE = 60  # seconds until the server answers
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


# Models ---------------------------------------------------------------------------------------------------------------


def paths_of(models):
    """Return {name: path} for arguments MODEL or NAME=MODEL. Raises ServingError for a wrong model or name."""
    from levels_more.saving.model import MODELS, WEIGHTS

    found = {}
    for text in models:
        name, given, path = ("", "", text) if os.path.exists(text) else str(text).partition("=")
        path = Path(os.path.expanduser(path if given else text))
        if not os.path.exists(path) and path.name == str(path) and os.path.isdir(MODELS / path):
            path = MODELS / path  # a pretrained model of the course
        name = name if given else path.stem if path.suffix == ".onnx" else path.resolve().name
        if not (os.path.isfile(path / WEIGHTS) or (os.path.isfile(path) and path.suffix == ".onnx")):
            there = ", ".join(sorted(each.name for each in MODELS.iterdir() if each.is_dir()))
            raise ServingError(
                f"{path} is neither a folder that `save` made nor an .onnx file. The course brings {there}"
            )
        if not NAME.fullmatch(name):
            raise ServingError(
                f"{name!r} cannot be the name of a model in an address; give it another name: NAME={path}"
            )
        if name in found:
            raise ServingError(f"two models are called {name}; give one of them another name: NAME={path}")
        found[name] = path
    return found


def write_onnx(path, target):
    """Write the model of a folder made by `save`, or of an ONNX file, to `target` atomically. Raises ServingError."""
    import onnx

    from levels_more.saving import load_model
    from levels_more.saving.files import replace

    try:
        if path.is_dir():
            load_model(path).export(target)
            return
        data = path.read_bytes()
        onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True)
        replace(target, data)
    except (OSError, ValueError, NameError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        own = "custom_objects" in str(error)  # this command cannot import the reader's code; an ONNX graph needs none
        cure = (
            "; or export it in the program that has this code, with model.export('net.onnx'), and serve the file"
            if own
            else ""
        )
        raise ServingError(f"{path} cannot be served: {error}{cure}") from error
    except Exception as error:  # protobuf's error for another kind of file
        why = "it is not an ONNX file, or it is not complete" if path.is_file() else error
        raise ServingError(f"{path} cannot be served: {why} ({type(error).__name__})") from error


def seen(path):
    """Return the time and size of each file, which change when a model is saved again, or None if a file is missing."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    try:
        return [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    except OSError:
        return None  # it is just being replaced


# The server -----------------------------------------------------------------------------------------------------------


class Server:
    """A server of models, until this object is closed: `with Server(["rings"]) as server: … server.address`.

    models: paths of folders that `save` made or of .onnx files, names of pretrained models; "NAME=PATH" names one.
    port 0 takes a free port. Raises ServingError if a model cannot be served, or the server cannot start.
    """

    def __init__(self, models, port=0, host="127.0.0.1"):
        self.sources = paths_of(models)
        self.process = None
        set_up()
        self.folder = tempfile.TemporaryDirectory(prefix="serving-")
        try:
            self.known = {name: seen(path) for name, path in self.sources.items()}
            for name, path in self.sources.items():
                write_onnx(path, self.file(name))
            self.host, self.port = host, free_port(host, port)
            shown = "127.0.0.1" if host == "0.0.0.0" else f"[{host}]" if ":" in host else host
            self.address = f"http://{shown}:{self.port}"
            self.start()
        except BaseException:
            self.stop()
            raise

    def file(self, name):
        return Path(self.folder.name, f"{name}.onnx")

    def start(self):
        """Start the process, and wait until it answers. Raises ServingError if it does not."""
        self.log = open(Path(self.folder.name, "log"), "w+b")  # noqa: SIM115
        command = [str(python()), "-W", "ignore", str(SERVER), self.folder.name, self.host, str(self.port)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KSERVE"))}
        # In its own process group: only this process gets Ctrl-C. It ends the server by closing the server's stdin.
        apart = (
            {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if os.name == "nt" else {"start_new_session": True}
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": self.log, "stderr": self.log}
        self.process = subprocess.Popen(command, env=clean | {"PYTHONUNBUFFERED": "1"}, **pipes, **apart)
        late = time.monotonic() + PATIENCE
        while time.monotonic() < late and self.process.poll() is None:
            try:
                if self.ask("/v2/health/ready")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise ServingError(f"the server did not start: {self.said() or f'it gave no answer within {PATIENCE} s'}")

    def said(self):
        """Return the last line of the server's log, or ""."""
        lines = Path(self.log.name).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def ask(self, path, body=None):
        """Return the server's JSON answer to a GET, or to a POST of `body`. Raises OSError if the request fails."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return json.load(answer)

    def refresh(self):
        """Load each model that was saved again. Returns a line for each, also for those that cannot be served."""
        lines = []
        for name, path in self.sources.items():
            now = seen(path)
            if now in (None, [], self.known[name]):
                continue
            self.known[name] = now
            try:
                write_onnx(path, self.file(name))
                self.ask(f"/v2/repository/models/{name}/load", {})
                lines.append(f"{name}: version {self.ask(f'/v2/models/{name}')['versions'][0]}")
            except (ServingError, OSError) as error:
                why = json.load(error)["error"] if isinstance(error, urllib.error.HTTPError) else error
                lines.append(f"{name}: the old version stays, because {why}")
        return lines

    def stop(self):
        """Stop the server after it has answered the requests received. Returns its exit status, None if not running."""
        status = None
        if self.process:
            self.process.stdin.close()
            try:
                status = self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                status = self.process.wait()
            self.log.close()
            self.process = None
        self.folder.cleanup()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def free_port(host, port):
    """Return the port, or a free one for 0. Raises ServingError if it is taken, or `host` is not this computer's."""
    if not host:  # a socket would take it as every address
        raise ServingError(
            "there is no address to listen at: 127.0.0.1 is for this computer only, 0.0.0.0 for every computer"
        )
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
            if os.name != "nt":
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # allow a port just released
            found.bind((host, port))
            return found.getsockname()[1]
    except (OSError, OverflowError) as error:
        raise ServingError(f"nothing can listen at {host}, port {port}: {error}") from error


def shape_of(tensor):
    return f"{tensor['name']} {tensor['datatype']} [{', '.join('rows' if s < 0 else str(s) for s in tensor['shape'])}]"


def main(argv):
    """Run `python3 -m course serve MODEL ...` until Ctrl-C. Exits with a message if that fails."""
    options = parser("serve").parse_args(argv)
    try:
        if options.setup:
            set_up()
            print(f"Ready: {place()}")
            return 0
        if not options.models:
            parser("serve").error("name a model: a folder that `save` made, an .onnx file, or rings")
        with Server(options.models, options.port, options.host) as server:
            try:
                for name in server.sources:
                    about = server.ask(f"/v2/models/{name}")
                    takes, gives = (" and ".join(map(shape_of, about[key])) for key in ("inputs", "outputs"))
                    print(f"{name}: {takes} -> {gives}\n  POST {server.address}/v2/models/{name}/infer")
                told = "When a model is saved again, the server loads the new version. Ctrl-C stops the server."
                print(told, flush=True)
                while server.process.poll() is None:
                    time.sleep(0.5)
                    for line in server.refresh():
                        print(line, flush=True)
            except KeyboardInterrupt:
                status = server.stop()
                print("\nStopped. Every request until then was answered." if not status else "\nStopped.")
                return 0
            raise ServingError(f"the server ended by itself: {server.said()}")
    except ServingError as error:
        sys.exit(str(error))
