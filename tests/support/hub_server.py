"""A hub on the loopback: the few answers that `huggingface_hub` asks for to put a model up and to fetch one, out of a folder."""

import base64
import functools
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SHA = "0" * 40


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, root, asked, *arguments):
        self.root, self.asked = root, asked
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": len(body), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def path_asked(self):
        path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
        self.asked.append(f"{self.command} {path}")
        return path

    def do_GET(self):
        path = self.path_asked()
        if "/resolve/" in path:
            repo, rest = path[1:].split("/resolve/")
            file = self.root / repo / rest.split("/", 1)[1]
            refused = self.root / repo / "refused"  # what this repository says to everybody
            if refused.is_file():
                status, why = refused.read_text().split()
                return self.say(int(status), {"error": why}, X_Error_Code=why)
            if not (self.root / repo).is_dir():
                return self.say(404, {"error": "no"}, X_Error_Code="RepoNotFound")
            if not file.is_file():
                return self.say(404, X_Error_Code="EntryNotFound", X_Repo_Commit=SHA)
            data = file.read_bytes()
            return self.say(200, data, ETag=f'"{hashlib.sha256(data).hexdigest()}"', X_Repo_Commit=SHA)
        if path.startswith("/api/models/"):
            repo = "/".join(path.split("/")[3:5])
            if not (self.root / repo).is_dir():
                return self.say(404, {"error": "no"}, X_Error_Code="RepoNotFound")
            names = [file.name for file in (self.root / repo).iterdir()]
            return self.say(200, {"id": repo, "sha": SHA, "siblings": [{"rfilename": name} for name in names]})
        return self.say(404, {"error": path})

    do_HEAD = do_GET

    def do_POST(self):
        path = self.path_asked()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = f"http://{self.headers['Host']}"
        if self.headers.get("Authorization") != "Bearer hf_loopback":
            return self.say(401, {"error": "who are you?"})
        if path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
            (self.root / repo).mkdir(parents=True, exist_ok=True)
            return self.say(200, {"url": f"{address}/{repo}", "name": repo, "id": SHA})
        repo = "/".join(path.split("/")[3:5])
        if "/preupload/" in path:
            told = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return self.say(200, {"files": [{"path": file["path"], **told} for file in json.loads(body)["files"]]})
        if "/commit/" in path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    data = base64.b64decode(line["value"]["content"])
                    (self.root / repo / line["value"]["path"]).write_bytes(data)
            done = {"commitOid": SHA, "commitUrl": f"{address}/{repo}/commit/{SHA}", "hookOutput": ""}
            return self.say(200, {"success": True, **done})
        if path == "/api/validate-yaml":
            return self.say(200, {"errors": [], "warnings": []})
        return self.say(404, {"error": path})


def start(root):
    """(address, what was asked of it) of a hub whose repositories are the folders of `root`."""
    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Hub, Path(root), asked))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", asked
