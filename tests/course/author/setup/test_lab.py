"""JupyterLab as `course lab` starts it: what it prints, where it writes, and that there is one of it on a desk."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import pytest
from jupyter_server.serverapp import list_running_servers

from course import build, commands
from course.author.setup import homes, lab, workspace
from course.reader.notebooks import names
from course.terminal.stage import try_lock

HOMES = "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR", "MPLCONFIGDIR"


@pytest.fixture
def homeless(monkeypatch, tmp_path):
    """A reader whose home folder cannot be made, let alone be written to."""
    (tmp_path / "a file").touch()
    for name in ("HOME", "USERPROFILE", "APPDATA", "PROGRAMDATA"):
        monkeypatch.setenv(name, str(tmp_path / "a file" / "home"))
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)


def test_who_has_a_home_is_told_nothing(monkeypatch, tmp_path):
    for name in HOMES:
        monkeypatch.setenv(name, str(tmp_path / name))
    assert homes.settle(str(tmp_path / "course")) == ""
    assert [os.environ[name] for name in HOMES] == [str(tmp_path / name) for name in HOMES]
    assert not (tmp_path / "course").exists()


PROGRAM = """
import os, sys
from pathlib import Path
from course.terminal.stage import hand_over
from course.author.setup import workspace, homes

root = Path(sys.argv[1])
print(homes.settle(root), flush=True)
hand_over(workspace.lab_command(root, ["--no-browser", "--port=" + sys.argv[2]]))
"""


@pytest.fixture
def started(project, homeless, tmp_path):
    """JupyterLab on the desk of a small project, for a reader without a home: its lines up to the address.

    The port that the reader names is taken.
    """
    assert workspace.open_desk(project) == []
    taken = socket.create_server(("127.0.0.1", 0))
    command = [sys.executable, "-c", PROGRAM, str(project), str(taken.getsockname()[1])]
    environment = build.environment(build.ROOT) | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip())
            if line.startswith("JupyterLab: "):
                break
        yield lines
    finally:
        process.terminate()
        lines += process.stdout.read().splitlines()
        process.wait(20)
        taken.close()


@pytest.mark.timeout(240)
def test_one_lab_on_a_desk(started, project, monkeypatch, capsys):
    assert started[0].endswith(
        "cannot be written to. Jupyter stores its files in .course/home instead, in the course's folder."
    )
    address, token = re.fullmatch(
        r"JupyterLab: (http://\S+/)lab/tree/map\.md\?token=(\w+)  \(press Ctrl-C twice to stop it\)", started[-1]
    ).groups()
    (told,) = started[1:-1]
    opened = re.fullmatch(r"Port \d+ is not free, so JupyterLab opens at port (\d+)\.", told)
    assert opened and f":{opened[1]}/" in address

    for name in HOMES:  # as the process has them
        monkeypatch.setenv(name, str(project / ".course" / "home" / name.lower()))
    listed = list(list_running_servers())
    assert [each["root_dir"] for each in listed] == [str(project / build.MINE)]
    assert lab.answers(address)
    found = lab.running(project / build.MINE)
    assert (found["url"], found["token"]) == (address, token) and lab.running(project) is None

    def page(place):
        return urllib.request.urlopen(f"{address}{place}?token={token}", timeout=60).read().decode()

    assert "max-width: 52em" in page("custom/custom.css")
    shown = page("lab")
    config = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', shown, re.DOTALL)[1])
    assert "ipyparallel-labextension" in config["disabledExtensions"] and "/custom/custom.css" in shown

    handed = []
    monkeypatch.setattr(names, "ROOT", project)
    monkeypatch.setattr(commands, "hand_over", handed.append)
    assert commands.open_lab(["--no-browser"], "trail/1_hardware") == 0
    said = capsys.readouterr().out
    assert (
        said == f"JupyterLab is already open in this folder: {address}lab/tree/trail/1_hardware.ipynb?token={token}\n"
    )
    assert not handed


def test_of_two_labs_at_once_the_second_opens_the_first(project, monkeypatch, capsys):
    """The first holds a lock until it ends, and it takes seconds until its server is listed."""
    found = [None, None, None, {"url": "http://127.0.0.1:9/", "token": "x"}]
    handed = []
    monkeypatch.setattr(names, "ROOT", project)
    monkeypatch.setattr(commands, "hand_over", handed.append)
    monkeypatch.setattr(lab, "running", lambda folder: found.pop(0))
    monkeypatch.setattr(lab, "LOCKS", [])
    with open(project / ".course" / "lab.lock", "a") as first:
        assert try_lock(first)
        commands.open_lab(["--no-browser"], None)
    assert handed == found == [] and capsys.readouterr().out == (
        "JupyterLab is already open in this folder: http://127.0.0.1:9/lab/tree/map.md?token=x\n"
    )
    monkeypatch.setattr(lab, "running", lambda folder: None)
    commands.open_lab(["--no-browser"], None)  # the first has ended
    assert len(handed) == 1
    with open(project / ".course" / "lab.lock", "a") as third:
        assert not try_lock(third)
    lab.LOCKS.pop().close()


def a_server(port, listening):
    """A server that was told to listen at this port (None: at none) and listens at another."""
    config = {"port": port} if port is not None else {}
    url = f"http://127.0.0.1:{listening}/"
    return SimpleNamespace(
        config=SimpleNamespace(ServerApp=config), port=listening, base_url="/", default_url="/lab", connection_url=url
    )


@pytest.mark.parametrize(
    "port, listening, lines", [("8931", 8932, 2), ("8931", 8931, 1), (8931, 8931, 1), ("0", 4711, 1), (None, 8890, 1)]
)
def test_a_port_that_is_taken_is_told(port, listening, lines, capsys):
    lab.tell(a_server(port, listening), "")
    said = capsys.readouterr().out.splitlines()
    assert len(said) == lines and said[-1].startswith(f"JupyterLab: http://127.0.0.1:{listening}/lab  ")
    assert lines == 1 or said[0] == "Port 8931 is not free, so JupyterLab opens at port 8932."


def test_a_busy_lab_is_not_taken_for_one_that_has_ended():
    """It listens, and is too busy to answer; then it is gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        assert lab.answers(url, seconds=0.2)
    assert not lab.answers(url, seconds=0.2)


@pytest.mark.timeout(240)
def test_a_lab_that_has_ended_is_none(project, monkeypatch, tmp_path):
    """Its file is still there, and its number is that of another process."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    left = {"url": "http://127.0.0.1:9/", "token": "x", "root_dir": str(project / build.MINE), "pid": os.getpid()}
    (tmp_path / "jpserver-1.json").write_text(json.dumps(left))
    assert lab.running(project / build.MINE) is None
    handed = []
    monkeypatch.setattr(names, "ROOT", project)
    monkeypatch.setattr(commands, "hand_over", handed.append)
    commands.open_lab(["--no-browser"], None)
    assert handed and "--log-level=WARN" in handed[0]
    assert not [each for each in workspace.lab_command(project, ["--log-level=DEBUG"])[:-1] if "log-level" in each]
