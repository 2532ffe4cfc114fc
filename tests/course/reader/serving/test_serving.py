"""A model served by KServe, in its own environment: asked, asked wrongly, loaded, replaced and ended, over a real connection."""

import functools
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from course import serving
from course.author.build import ROOT
from levels_more.high_level import Input, Model, Sequential
from levels_more.mid_level import Concatenate, Dense, Embedding, Flatten, Layer
from levels_more.saving import load_model

NOT_MADE = "the server's environment is not made here: python3 -m course serve --setup"
real = pytest.mark.skipif(not serving.environment.ready(), reason=NOT_MADE)
PREDICT = "/v2/models/rings/infer"
# A graph that no model of ours has: a number without an axis, and a table that has no rows in common with the other.
FOREIGN = """<ir_version: 8, opset_import: ["": 17]>
g (float s, float[rows, 2] x, float[2, 3] w) => (float[rows, 3] y) {
    xw = MatMul(x, w)
    y = Add(xw, s)
}"""


def dense(units, dtype="float32", rows=2):
    model = Sequential([Dense(4, "relu"), Dense(units, "sigmoid")])
    model.build((None, rows), dtype)
    return model


def question(x, name="x0"):
    kind = {"float32": "FP32", "float64": "FP64", "int64": "INT64"}[x.dtype.name]
    return {"name": name, "datatype": kind, "shape": list(x.shape), "data": x.ravel().tolist()}


def answer_of(server, model, *inputs):
    found = server.ask(f"/v2/models/{model}/infer", {"inputs": [question(x, f"x{k}") for k, x in enumerate(inputs)]})
    output = found["outputs"][0]
    return np.array(output["data"], {"FP32": "f4", "FP64": "f8"}[output["datatype"]]).reshape(output["shape"]), found


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    dense(3).save(folder / "small")
    dense(2, rows=3).export(folder / "file.onnx")
    number, word = Input((2,), dtype="float32"), Input((1,), dtype="int64")
    mixed = Model([number, word], Dense(1)(Concatenate()([number, Flatten()(Embedding(5, 3)(word))])))
    mixed.save(folder / "mixed")
    huge = Sequential([Dense(1)])
    huge.build((None, 1), "float32")
    huge.set_weights([np.full((1, 1), 1e38, "f4"), np.zeros((1, 1), "f4")])
    huge.save(folder / "huge")
    onnx.save(onnx.parser.parse_model(FOREIGN), folder / "foreign.onnx")
    return folder


@pytest.fixture(scope="module")
def server(models):
    files = "small", "file.onnx", "mixed", "huge", "foreign.onnx"
    each = ["rings", f"twice={models / 'small'}", *(str(models / file) for file in files)]
    with serving.Server(each) as running:
        yield running


# Before anything is started -------------------------------------------------------------------------------------------


def test_names(models):
    found = serving.paths_of([models / "small", f"other={models / 'file.onnx'}", "penguins_sex"])
    assert [*found] == ["small", "other", "penguins_sex"] and found["other"] == models / "file.onnx"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["nothing"], "nothing is neither a folder that .* The course brings .*rings"),
        ([""], "is neither a folder|cannot be the name of a model"),
        (["a/b={small}"], "'a/b' cannot be the name of a model in an address; give it another name: NAME="),
        (["{small}", "{small}"], "two models are called small"),
        ([__file__], "is neither a folder"),
        (["=rings"], "'' cannot be the name of a model"),
        (["x" * 300], "xxx is neither a folder"),
    ],
)
def test_what_is_no_model_is_told(models, given, told):
    with pytest.raises(serving.ServingError, match=told):
        serving.paths_of([text.format(small=models / "small") for text in given])


def test_a_file_that_is_no_onnx_is_told(tmp_path):
    dense(1).export(tmp_path / "bad.onnx")
    cut_off = (tmp_path / "bad.onnx").read_bytes()[:-50]
    contents = {b"": "", b"hello": "", b"\x08" * 1000: "", cut_off: "it is not an ONNX file, or it is not complete"}
    for content, why in contents.items():
        (tmp_path / "bad.onnx").write_bytes(content)
        with pytest.raises(serving.ServingError, match=f"bad.onnx cannot be served: .*{why}") as told:
            serving.write_onnx(tmp_path / "bad.onnx", tmp_path / "made.onnx")
        assert [file.name for file in tmp_path.iterdir()] == ["bad.onnx"] and "made" not in str(told.value)


class Doubled(Layer):
    def call(self, x):
        return x * 2.0


def test_a_layer_of_ones_own_goes_along_as_a_graph_alone(tmp_path):
    model = Sequential([Doubled(), Dense(1)])
    model.build((None, 2), "float32")
    model.save(tmp_path / "own")
    told = r"no class is called 'Doubled'.*; or export it in the program that has this code, with model.export"
    with pytest.raises(serving.ServingError, match=told):
        serving.write_onnx(tmp_path / "own", tmp_path / "made.onnx")
    model.export(tmp_path / "own.onnx")
    serving.write_onnx(tmp_path / "own.onnx", tmp_path / "made.onnx")
    assert (tmp_path / "made.onnx").read_bytes() == (tmp_path / "own.onnx").read_bytes()


def test_a_port_that_is_taken_is_told():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(serving.ServingError, match="nothing can listen at 127.0.0.1, port"):
            serving.free_port("127.0.0.1", taken.getsockname()[1])
    for host, port in (("192.0.2.1", 0), ("127.0.0.1", 70000), ("127.0.0.1", -1), ("", 0)):
        with pytest.raises(serving.ServingError):
            serving.free_port(host, port)


@pytest.mark.quick
def test_the_lock_is_complete():
    """It is of what pyproject.toml names; and the same onnxruntime runs in the server and here, for the same bits."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]["serving"]
    lock = serving.environment.LOCK.read_text(encoding="utf-8")
    here = re.search(r"^onnxruntime==(\S+)", (ROOT / "requirements-test.lock").read_text(encoding="utf-8"), re.M)[1]
    assert f"onnxruntime=={here}" in wanted and f"\nonnxruntime=={here} " in lock
    assert all(f"\n{re.split('[=><]', each)[0]}==" in lock for each in wanted)
    assert "://" not in lock and lock.count("--hash=sha256:") > 500


# Asked ----------------------------------------------------------------------------------------------------------------


@real
def test_every_model_answers(server, models):
    assert server.ask("/v2/health/live") == {"live": True} and server.ask("/v2/health/ready") == {"ready": True}
    names = "file", "foreign", "huge", "mixed", "rings", "small", "twice"
    assert sorted(server.ask("/v2/models")["models"]) == [*names]
    about = server.ask("/v2/models/mixed")
    assert about["inputs"] == [
        {"name": "x0", "datatype": "FP32", "shape": [-1, 2]},
        {"name": "x1", "datatype": "INT64", "shape": [-1, 1]},
    ]
    assert about["versions"] == ["1"] and server.ask("/v2/models/mixed/versions/1") == about
    x = np.random.default_rng(0).uniform(-1, 1, (7, 2)).astype("f4")
    words = np.array([[0], [1], [2], [3], [4], [0], [1]])
    found, _ = answer_of(server, "mixed", x, words)
    assert np.abs(found - load_model(models / "mixed").predict([x, words])).max() < 1e-6
    assert answer_of(server, "huge", np.ones((1, 1), "f4"))[0] == np.float32(1e38)


@real
@pytest.mark.parametrize("rows", [0, 1, 2, 1000])
def test_answers_are_those_of_predict(server, models, tmp_path, rows):
    """A number goes through JSON without a change: beside onnxruntime here, to the last bit; beside `predict`, as it adds up."""
    for name, model, columns, dtype, near in (
        ("rings", load_model("rings"), 2, "f8", 1e-12),
        ("small", load_model(models / "small"), 2, "f4", 1e-6),
    ):
        x = np.random.default_rng(1).uniform(-9, 9, (rows, columns)).astype(dtype)
        found, whole = answer_of(server, name, x)
        model.export(tmp_path / f"{name}.onnx")
        here = onnxruntime.InferenceSession(tmp_path / f"{name}.onnx").run(None, {"x0": x})[0]
        assert found.tobytes() == here.tobytes()
        if rows:
            assert np.abs(found - model.predict(x)).max() < near
        assert whole["model_version"] == "1" and whole["id"]


@real
def test_an_id_comes_back_and_nested_data_is_the_same(server):
    flat = {"name": "x0", "datatype": "FP64", "shape": [2, 2], "data": [1, 2, 3, 4]}
    first = server.ask(PREDICT, {"id": "mine", "inputs": [flat], "outputs": [{"name": "y0"}]})
    nested = server.ask(PREDICT, {"inputs": [flat | {"data": [[1, 2], [3, 4]]}]})
    assert first["id"] == "mine" and first["outputs"] == nested["outputs"]


@real
def test_numbers_go_both_ways_as_bytes(server):
    """The protocol's extension for it, with no rows, too; the answer is that to the same numbers in JSON."""
    for rows in (0, 3):
        x = np.random.default_rng(rows).uniform(-9, 9, (rows, 2))
        tensor = {"name": "x0", "datatype": "FP64", "shape": [rows, 2], "parameters": {"binary_data_size": x.nbytes}}
        text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        header = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
        request = urllib.request.Request(server.address + PREDICT, text + x.tobytes(), header)
        with urllib.request.urlopen(request) as answer:
            body = answer.read()[int(answer.headers["Inference-Header-Content-Length"]) :]
        assert body == answer_of(server, "rings", x)[0].tobytes() and len(body) == 8 * rows


@real
def test_a_graph_from_elsewhere_is_asked_as_it_says(server):
    """Only axes of one name need one size, and a number has none."""
    w, s = np.ones((2, 3), "f4"), np.array(0.5, "f4")
    inputs = [question(x, name) for name, x in (("s", s), ("x", np.ones((5, 2), "f4")), ("w", w))]
    inputs[0]["data"] = [0.5]
    found = server.ask("/v2/models/foreign/infer", {"inputs": inputs})["outputs"][0]
    assert found["shape"] == [5, 3] and set(found["data"]) == {2.5}


@real
def test_a_file_that_did_not_change_is_no_new_version(server):
    assert server.ask("/v2/repository/models/twice/load", {})["load"]
    assert server.ask("/v2/models/twice")["versions"] == ["1"]


# Asked wrongly --------------------------------------------------------------------------------------------------------


def bad_requests(draw):
    """(method, path, headers, body) of requests that cannot be answered, each wrong in a way of its own."""
    good = {"name": "x0", "datatype": "FP64", "shape": [1, 2], "data": [3.0, 4.0]}
    header = {"Content-Type": "application/json"}
    limit = int(re.search(r"^LARGEST = ([\d_]+)", serving.SERVER.read_text(encoding="utf-8"), re.M)[1])
    half = "\ud800"  # half a letter, which JSON can spell and UTF-8 cannot
    whole = json.dumps({"inputs": [good]}).encode()

    def infer(body, path=PREDICT, more=None):
        return "POST", path, header | (more or {}), body if isinstance(body, bytes) else json.dumps(body).encode()

    def tensor(**changes):
        return infer({"inputs": [{name: v for name, v in (good | changes).items() if v is not ...}]})

    def as_bytes(top=None, **changes):
        """The header of a request whose numbers may be bytes, of which KServe itself checks nothing."""
        text = json.dumps({"inputs": [good | changes]} | (top or {})).encode()
        kind = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(text))}
        return infer(text, more=kind)

    for path in ("nothing/infer", "%00/infer", "..%2f..%2fetc/infer", "/infer", "rings/guess"):
        yield infer({"inputs": [good]}, f"/v2/models/{path}")
    for version in ("0", "2", "one", "9" * 400):
        yield infer({"inputs": [good]}, f"/v2/models/rings/versions/{version}/infer")
        yield "GET", f"/v2/models/rings/versions/{version}", {}, b""
    for name in ("nothing", "x" * 5000, "%F0%9F", "a%20b"):
        yield "GET", f"/v2/models/{name}/ready", {}, b""
    for method in ("GET", "PUT", "DELETE"):
        yield method, PREDICT, header, whole
    for path in ("/v2/repository/models/rings/unload", "/v2/repository/index", "/v2/repository/models/nothing/load"):
        yield infer({}, path)
    yield infer({"instances": [[3, 4]]}, "/v1/models/rings:predict")
    for kind in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/octet-stream"}):
        yield "POST", PREDICT, kind, whole
    for length in ("0", "5", "-1", "x"):
        yield infer(whole, more={"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": length})
    for body in (b"", b"{", b"null", b"[]", b"\xff\xfe", b"{}", b"[" * 100_000, b'{"a":' * 50_000, b'{"inputs":[{}]}'):
        yield infer(body)
    yield infer(b" " * (limit + 1))
    for inputs in (None, 3, {}, [], [None], [[]], [good, good], [good, good | {"name": "x1"}]):
        yield infer({"inputs": inputs})
    names = "x1", "", None, 3, [], half, ...
    kinds = "FP32", "BYTES", "float64", "", None, 3, "x" * 10_000, half, ...
    shapes = [], [2], [2, 1], [1, 2, 1], [-1, 2], [0, 2], [10**30, 2], [2**62, 2], ["1", "b"], None, 2, [1.5, 2], ...
    deep = functools.reduce(lambda inner, _: [inner], range(80), 3.0)
    lists = [], [3], [3, 4, 5], ["3", "4"], [None, 4], [[3], [4]], [[3, 4], [5]], [10**400, 1], deep
    mixed = [True, False], [[True, 3.5]], [3.5, "4"], [3.5, {}], ["9" * 5000, 1]
    fields = {"name": names, "datatype": kinds, "shape": shapes, "data": [*lists, *mixed, {}, None, 3, ...]}
    for field, values in fields.items():
        yield from (tensor(**{field: value}) for value in values)
    for word in (b"NaN", b"Infinity", b"1e999", b"0x10", b"'3'", b"03", b"9" * 5000):
        yield infer(whole.replace(b"3.0", word))
    for outputs in ([{"name": "y1"}], [{"name": ""}], [{}], 3, [{"name": half}]):
        yield infer({"inputs": [good], "outputs": outputs})
    for identity in (3, [], half):
        yield infer({"id": identity, "inputs": [good]})
    for shape in (None, 2, "ab", [[1], 2], ["x", 2], {"1": 1, "2": 2}, [1.5, 2], [1e300, 2]):
        yield as_bytes(shape=shape)
    for name in (None, ["x0"]):
        yield as_bytes(name=name)
    for top in ({"id": 3}, {"parameters": "x"}, {"inputs": [good, good | {"name": 3}]}, {"outputs": "y0"}):
        yield as_bytes(top)
    for size in (None, "16", -16, 16.5, 10**30):
        yield as_bytes(data=None, parameters={"binary_data_size": size})
    while True:  # a good one, cut off or with letters in it that no JSON has
        at = draw.randrange(1, len(whole) - 1)
        yield infer(whole[:at] if draw.random() < 0.5 else whole[:at] + bytes([draw.randrange(1, 9)]) + whole[at:])


@real
def test_200_bad_requests_and_no_500(server):
    counted, requests = {}, bad_requests(random.Random(0))
    for _, (method, path, headers, body) in zip(range(200), requests, strict=False):
        told = f"{method} {path[:80]} {headers} {body[:120]}"
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request(method, path, body, headers)
        found = connection.getresponse()
        text = found.read()
        assert 400 <= found.status < 500, f"{told}: {found.status} {text[:300]}"
        assert len(json.loads(text)["error"].split()) > 3, f"{told}: {text[:300]}"  # a sentence
        assert len(text) < 1000 and b"Traceback" not in text
        counted[found.status] = counted.get(found.status, 0) + 1
        connection.close()
    assert sum(counted.values()) == 200 and {400, 403, 404, 405, 413} <= counted.keys(), counted
    assert answer_of(server, "rings", np.ones((1, 2)))[1]["model_version"] == "1"
    assert server.said() == ""


@real
def test_a_body_without_a_length_has_the_same_limit(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request(
        "POST", PREDICT, iter([b" " * 1_000_000] * 40), {"Content-Type": "application/json"}, encode_chunked=True
    )
    assert connection.getresponse().status == 413
    connection.close()


TWO, THREE = np.ones((2, 2), "f4"), np.array([[1], [2], [3]])
REFUSED = {  # what is told: the model, and what it is asked
    "mixed: all inputs need as many rows; x0 has 2, x1 has 3": ("mixed", TWO, THREE),
    "mixed cannot be run on this": ("mixed", np.ones((1, 2), "f4"), np.array([[99]])),  # outside of its embedding
    "huge: y0 holds NaN or infinity": ("huge", np.full((1, 1), 99, "f4")),  # for which JSON has no word
}


@real
@pytest.mark.parametrize("told", REFUSED)
def test_what_a_model_cannot_answer_is_refused(server, told):
    with pytest.raises(urllib.error.HTTPError) as error:
        answer_of(server, *REFUSED[told])
    assert error.value.code == 400 and told in json.load(error.value)["error"]


@real
def test_it_listens_to_this_computer_alone(server):
    if sys.platform != "linux":
        pytest.skip("elsewhere 127.0.0.2 is no address")
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.2:{server.port}/v2", timeout=5)


# Replaced and ended ---------------------------------------------------------------------------------------------------


@real
def test_a_new_version_is_taken_in_and_a_broken_one_is_not(tmp_path):
    """That no request is lost meanwhile is shown by more/05_at_work."""
    x = np.random.default_rng(0).uniform(-9, 9, (3, 2)).astype("f4")
    dense(1).save(tmp_path / "net")
    with serving.Server([tmp_path / "net"]) as server:
        assert server.refresh() == []
        second = dense(1)
        second.save(tmp_path / "net")
        assert server.refresh() == ["net: version 2"]
        found, whole = answer_of(server, "net", x)
        assert whole["model_version"] == "2" and np.abs(second.predict(x) - found).max() < 1e-6
        (tmp_path / "net" / "weights.safetensors").write_bytes(b"broken")
        (line,) = server.refresh()
        assert line.startswith("net: the old version stays, because ") and server.refresh() == []
        assert answer_of(server, "net", x)[1]["model_version"] == "2"


@real
@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent to a process in another way there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_in_order(tmp_path, number):
    dense(1).save(tmp_path / "net")
    # A shell in the background may have ignored it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    port = serving.free_port("127.0.0.1", 0)
    command = [sys.executable, str(ROOT / "course"), "serve", "net", "--port", str(port)]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    signal.signal(signal.SIGINT, before)
    try:
        assert running.stdout.readline() == "net: x0 FP32 [rows, 2] -> y0 FP32 [rows, 1]\n"
        while "Ctrl-C stops the server" not in (line := running.stdout.readline()):
            assert line, "it ended"
        running.send_signal(number)
        assert "Every request until then was answered" in running.communicate(timeout=30)[0]
        assert running.returncode == 0
    finally:
        running.terminate()  # where an assertion failed, it still runs


@real
def test_who_kills_the_command_leaves_no_server(tmp_path):
    program = "import sys\nfrom course import serving\nprint(serving.Server(['rings']).process.pid, flush=True)\nsys.stdin.read()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    options = {"env": environment, "text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    running = subprocess.Popen([sys.executable, "-c", program], **options)
    child = int(running.stdout.readline())
    running.kill()
    running.communicate()
    late = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
        assert time.monotonic() < late, "the server is still there"
        time.sleep(0.1)
