"""A model put on a hub and fetched again, over the loopback; what is missing or broken is told; and no code is loaded."""

import os
import re
import subprocess
import sys

import hub_server
import numpy as np
import onnxruntime
import pytest

from course.author.build import ROOT, environment
from levels_more.high_level import Sequential
from levels_more.mid_level import Adam, Dense
from levels_more.saving import from_pretrained, load_model

X = np.linspace(-9, 9, 20).reshape(-1, 2)


def net(*layers):
    model = Sequential([*layers, Dense(1, "sigmoid")], name="net")
    model.build((None, 2), "float32")
    return model


def test_a_folder_with_its_card(tmp_path):
    model = net(Dense(4, "relu"))
    model.compile(Adam(0.01), "binary_crossentropy")
    told = {"data": "points of two rings", "metrics": {"accuracy": np.float32(0.9451)}, "license": "mit"}
    model.save_pretrained(tmp_path / "m", **told)
    assert {file.name for file in (tmp_path / "m").iterdir()} == {"README.md", "model.onnx", "weights.safetensors"}
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: levels\ntags:\n- levels\nlicense: mit\n---\n")
    for line in (
        "A net of 17 numbers, made with *levels*. It takes float32 [rows, 2].",
        "- **Data:** points of two rings",
        "- **How it was trained:** Adam(0.01), on BinaryCrossentropy",
        "- **Metrics:** accuracy 0.9451",
        "- **Licence:** mit",
        "- **Not in here:** the data",
    ):
        assert f"{line}\n" in card
    assert "torch" not in card.lower()
    x = X.astype("f4")
    again, portable = from_pretrained(str(tmp_path / "m")), onnxruntime.InferenceSession(tmp_path / "m" / "model.onnx")
    assert (again.predict(x) == model.predict(x)).all()
    assert np.abs(portable.run(None, {"x0": x})[0] - model.predict(x)).max() < 1e-6


def program_of(folder):
    """The program on the card in a folder."""
    return re.search(r"^```python\n(.*?)^```", (folder / "README.md").read_text(encoding="utf-8"), re.M | re.S)[1]


ASKED = "\nimport numpy as np\nprint(model.predict(np.linspace(-9, 9, 20).reshape(-1, 2)).tolist())"


@pytest.mark.parametrize("name", ["it's", *['a "b" c\\d {x} ```'] * (os.name != "nt")])
def test_the_program_on_a_card_runs_as_it_stands(tmp_path, name):
    model = net(Dense(4, "relu"))
    model.save_pretrained(tmp_path / name)
    code = program_of(tmp_path / name) + ASKED
    done = subprocess.run([sys.executable, "-c", code], env=environment(ROOT), capture_output=True, encoding="utf-8")
    assert done.returncode == 0 and done.stdout.strip() == str(model.predict(X).tolist()), done.stderr


@pytest.fixture
def hub(tmp_path):
    """run(program): what a fresh process prints that has this hub and no other; its folder; what was asked of it."""
    (tmp_path / "hub").mkdir()
    address, asked = hub_server.start(tmp_path / "hub")
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    place = {
        "HF_ENDPOINT": address,
        "HF_HOME": str(tmp_path / "cache"),
        "HF_TOKEN": "hf_loopback",
        "PYTHONPATH": str(ROOT),
    }

    def run(*lines, **more):
        command = [sys.executable, "-c", START, *lines]
        options = {"cwd": tmp_path, "env": kept | quiet | place | more, "capture_output": True, "text": True}
        return subprocess.run(command, timeout=120, **options).stdout.splitlines()

    run.folder, run.asked = tmp_path / "hub", asked
    return run


START = """
import sys
import numpy as np
from levels_more.saving import from_pretrained, load_model
for line in sys.argv[1:]:
    try:
        print(eval(line))
    except Exception as error:
        print(type(error).__name__, str(error).replace(chr(10), " "), sep=": ")
"""
FETCH = "from_pretrained('me/rings').predict(np.ones((1, 2)))[0, 0].hex()"
PUSH = "load_model('rings').push_to_hub('me/rings', data='rings', metrics={'accuracy': 0.95}, license='mit')"
NOWHERE = "http://127.0.0.1:9"


def test_up_and_down_again(hub):
    (told,) = hub(PUSH)
    assert told.startswith("http://127.0.0.1:") and told.endswith("/me/rings/commit/" + "0" * 40), told
    folder = hub.folder / "me" / "rings"
    assert {file.name for file in folder.iterdir()} >= {"README.md", "model.onnx", "weights.safetensors"}
    program = program_of(folder)
    assert 'from_pretrained("me/rings")' in program
    want = [load_model("rings").predict(np.ones((1, 2)))[0, 0].hex()]
    shown = f"exec({program!r}, globals()) or model.predict(np.ones((1, 2)))[0, 0].hex()"
    assert hub(shown) == want, "the program on the card, as it stands"
    # a stranger adds code, and a config.json that names it: neither is even fetched
    (folder / "evil.py").write_text("raise SystemExit('run')")
    (folder / "config.json").write_text('{"auto_map": {"AutoModel": "evil.Model"}}')
    hub.asked.clear()
    assert hub(FETCH, HF_HOME=str(hub.folder.parent / "another cache")) == want
    assert hub.asked and not any("evil" in line or "config" in line for line in hub.asked)
    assert hub(FETCH.replace("'me/rings'", "'me/rings', local_files_only=True"), HF_ENDPOINT=NOWHERE) == want


TOLD = {  # what nobody can fetch, and how the error begins
    "me/nobody": "FileNotFoundError: from_pretrained: me/nobody: the hub has no such model",
    "me/empty": "FileNotFoundError: from_pretrained: me/empty holds no weights.safetensors",
    "me/broken": "ValueError: .*weights.safetensors",
    "me/gated": "FileNotFoundError: from_pretrained: me/gated: the hub has no such model, or does not show it",
    "me/closed": "OSError: from_pretrained: me/closed: the hub refuses with status 403; log in",
    "me/old": "FileNotFoundError: from_pretrained: me/old: the hub has this model, but not this revision",
    "./gone": "ValueError: from_pretrained: ./gone is neither a folder that is here nor a name",
    **dict.fromkeys(["a/b/c", "", "me/"], ".*Error: "),
}


def test_what_is_missing_broken_or_refused_is_told(hub):
    for name, file, content in (("empty", "README.md", b"hello"), ("broken", "weights.safetensors", b"no model")):
        (hub.folder / "me" / name).mkdir(parents=True)
        (hub.folder / "me" / name / file).write_bytes(content)
    for name, refused in (("gated", "403 GatedRepo"), ("closed", "403 DisabledRepo"), ("old", "404 RevisionNotFound")):
        (hub.folder / "me" / name).mkdir()
        (hub.folder / "me" / name / "refused").write_text(refused)
    for name, told in zip(TOLD, hub(*(f"from_pretrained({name!r})" for name in TOLD)), strict=True):
        assert re.match(TOLD[name], told), told
    # (Where nobody listens, `huggingface_hub` tries for half a minute before it says the same.)
    (away,) = hub("from_pretrained('me/nobody')", HF_HUB_OFFLINE="1")
    assert away.startswith("ConnectionError: from_pretrained: me/nobody: the hub cannot be reached"), away
    (away,) = hub(PUSH, HF_ENDPOINT=NOWHERE)
    assert away.startswith("ConnectionError: push_to_hub: me/rings: the hub cannot be reached"), away
    (refused,) = hub(PUSH, HF_TOKEN="hf_other")
    assert refused.startswith("OSError: push_to_hub: me/rings: the hub refuses with status 401; log in"), refused
