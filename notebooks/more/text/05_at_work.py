# %% [markdown]
# # 05 more · A model at work
#
# **In this notebook a model goes to work: on a server, in eight bits, on a page where you draw, and on a hub.**
#
# You need notebook 05 for this, and *more/05_onnx* for what an ONNX file is. Nothing is exported.
#
# It uses ONNX, onnxruntime, safetensors, scikit-learn and huggingface_hub, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_at_work", "onnx", "onnxruntime", "safetensors", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import json
import logging
import os
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
from sklearn.datasets import load_digits

from course import serving, tasks
from course.reader import checks
from course.reader.figures import serving as serving_figures
from levels_more.high_level import Sequential
from levels_more.mid_level import Adam, Dense
from levels_more.saving import export_page, from_pretrained, load_model

os.environ["no_proxy"] = "127.0.0.1"  # a proxy, if there is one, must not be asked for this computer
logging.disable(logging.WARNING)  # the quantiser prints advice that is meant for larger models
place = tempfile.TemporaryDirectory()  # deleted when this kernel ends
folder = Path(place.name)
data = tasks.rings()

# %% [markdown]
# ## Behind a web address (8 min)
#
# A shop wants predictions of our net for some points. The shop's program is written in another language and runs on
# another computer. The two must agree on an address, and on the form of questions and answers. There is a standard for
# that, the [Open Inference Protocol](https://github.com/kserve/open-inference-protocol): JSON over HTTP. We do not
# write a server. We use KServe's, which speaks this protocol and runs our ONNX file with `onnxruntime`. (TensorFlow's
# own server is called TensorFlow Serving.) In a terminal, one command starts it:
#
# ```
# python3 -m course serve rings
# ```
#
# Here we call the function behind that command. (The first call makes an environment of about 400 MB for the server,
# which takes a minute.)

# %% tags=["nbval-ignore-output"]
server = serving.Server(["rings"])
print(server.address)

# %%
print(json.dumps(server.ask("/v2/models/rings"), indent=1))

# %% [markdown]
# So the server itself says what the model takes: an input `x0` in float64, with two numbers per row and any number of
# rows (-1). We can write the question with Python's standard library alone:


# %%
def ask(x, model="rings", kind="FP64"):
    tensor = {"name": "x0", "datatype": kind, "shape": x.shape, "data": x.ravel().tolist()}
    body, header = json.dumps({"inputs": [tensor]}).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.address}/v2/models/{model}/infer", body, header)
    return json.load(urllib.request.urlopen(request))


points = np.array([[3.0, 4.0], [0.5, 6.0]])
answer = ask(points)
print(np.round(answer["outputs"][0]["data"], 4), "by version", answer["model_version"])

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-at-work-text",
    "The answer came as text, such as `0.006958275329437158`. We read it as float64. Does it equal the number that `onnxruntime` computed?",
    choices=["to the last bit", "to about 16 digits; the last may differ", "to 6 digits"],
)

# %%
model = load_model("rings")
model.export(folder / "rings.onnx")
session = onnxruntime.InferenceSession(folder / "rings.onnx")
served = np.array(ask(data.x_test)["outputs"][0]["data"]).reshape(-1, 1)
print("as onnxruntime, to the bit:", (served == session.run(None, {"x0": data.x_test})[0]).all())
print("as `predict`, to 1e-12:    ", np.abs(served - model.predict(data.x_test)).max() < 1e-12)

# %%
checks.answer_to("05-at-work-text")

# %% [markdown]
# Compared with `predict`, the last digits may differ, because `onnxruntime` adds in whatever order suits the processor.
# (In float32 the two agree to a millionth.) A very small probability may differ by more, because `onnxruntime` computes
# the sigmoid in another way: in version 1.31.1, the sigmoid of -40 is 0.0, whose logarithm is -infinity. In float32
# [that of -20](05_differences.ipynb#sigmoid_of_minus_20) is 0.0 already, and
# [a tanh](05_differences.ipynb#tanh_above_1) can be a little above 1.
#
# ## Wrong questions (2 min)
#
# Users make mistakes, and some mean harm. A good server never crashes, and says what is wrong. In HTTP, a status from
# 400 to 499 means that the question was wrong. A status from 500 on means that the server failed.


# %%
def try_to_ask(*arguments):
    try:
        ask(*arguments)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"])


try_to_ask(points, "ring")
try_to_ask(points, "rings", "FP32")
try_to_ask(np.ones((2, 3)))
try_to_ask(np.full((1, 2), np.nan))
try_to_ask(np.ones((2_000_000, 2)))

# %% [markdown]
# (JSON has no word for "not a number", but Python writes one anyway.) A test of the course sends 300 wrong questions,
# among them truncated ones, endless ones, a hundred thousand brackets and a shape of 10³⁰. None of them gets a status
# of 500.
#
# ## Under load (8 min)
#
# `onnxruntime` needs some microseconds for a row, or some tens of them. Now eight clients send 2,000 questions in all,
# with one row each.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-at-work-clients",
    "Without a server the model answers tens of thousands of rows per second or more, one by one. "
    "How many does the server answer for eight clients?",
    choices=["about as many", "about a third as many", "less than a tenth as many"],
)


# %%
def timed(x):
    start = time.perf_counter()
    ask(x)
    return time.perf_counter() - start


def least(session, x, times=200):
    """The time of the shortest run, in seconds."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        session.run(None, {"x0": x})
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# %% tags=["nbval-ignore-output"]
rows = [data.x[k : k + 1] for k in range(2000)]
start = time.perf_counter()
with ThreadPoolExecutor(8) as clients:
    seconds = [*clients.map(timed, rows)]
took, alone = time.perf_counter() - start, least(session, rows[0])
half, most = 1e3 * np.quantile(seconds, (0.5, 0.99))
print(f"served: {len(rows) / took:,.0f} per second, half within {half:.1f} ms, 99 of 100 within {most:.1f} ms")
print(f"alone:  {1 / alone:,.0f} per second, {1e6 * alone:.1f} µs each")

# %%
checks.answer_to("05-at-work-clients")

# %% tags=["nbval-ignore-output"]
serving_figures.latencies(seconds, alone)

# %% [markdown]
# You have seen this in notebook 01: it is the fixed cost of a launch, only thousands of times larger. The cure is the
# same as well, more rows in one question. (The clients are Python programs, too, and share this computer with the
# server. With the clients on another computer, it would answer somewhat more.)

# %% tags=["nbval-ignore-output"]
for count in (1, 10, 100, 1000):
    best = min(timed(data.x[:count]) for _ in range(10))
    print(f"{count:5} rows in one question: {1e3 * best:5.1f} ms, {1e6 * best / count:6.0f} µs per row")

# %% [markdown]
# **A good place to stop.** Your net answers questions over HTTP, and you know what an answer costs.
#
# ## A new version (4 min)
#
# Suppose that next week we train further and get a better net. Must the shop wait while the server restarts? This time
# we serve a folder. Four clients ask without a pause, and in the meantime we save a new model into the folder. (`course
# serve` checks the folder twice a second; here we call `refresh` ourselves.)

# %%
server.stop()
net = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")], name="net")
net.compile(Adam(0.02), "binary_crossentropy")
net.fit(data.x, data.y, batch_size=100, epochs=1, seed=1, verbose=0)
net.save(folder / "net")
server = serving.Server([folder / "net"])
over, versions = threading.Event(), []


def client():
    while not over.is_set():
        versions.append(ask(points, "net")["model_version"])


# %%
threads = [threading.Thread(target=client) for _ in range(4)]
for thread in threads:
    thread.start()
net.fit(data.x, data.y, batch_size=100, epochs=20, seed=2, verbose=0)
time.sleep(0.5)
net.save(folder / "net")
print(server.refresh())
time.sleep(0.5)
over.set()
for thread in threads:
    thread.join()
print("all were answered, by versions", sorted(set(versions)))

# %% [markdown]
# The server makes the new session while the old one still answers, and then switches to it in one step. Requests that
# had begun were still answered by the old session. If one question had failed, its thread would have raised an error.
# And if the new file is broken, the server refuses it and keeps the old version.
#
# ## On a cluster, on paper (1 min)
#
# Thousands of questions per second need several computers. KServe can do that on a cluster with
# [Kubernetes](https://kubernetes.io). It needs only the text below. The programs that ask do not change,
# because the protocol is the same.

# %%
print(serving.ORDER.read_text(encoding="utf-8"))

# %% [markdown]
# There is no cluster here, so we cannot run it. But a test checks the text against KServe's own description of such
# files.

# %%
print("ended with status", server.stop())

# %% [markdown]
# ## Eight bits (11 min)
#
# A telephone has little memory, and moving bytes costs time and battery. A float32 takes 32 bits. A **quantised**
# weight is a whole number from -128 to 127, and the whole layer shares one scale by which it is multiplied. Inputs are
# quantised, too. *Dynamic* quantisation computes the scale of each input while the model runs. *Static* quantisation
# fixes these scales beforehand, from examples that it is shown. (TensorFlow Lite, now called
# [LiteRT](https://ai.google.dev/edge/litert), runs such models on telephones and on devices as small as a sensor. Here
# they run on your computer.)
#
# We try both on two nets. The net of the rings has 61 numbers. The other net, with 301,066 numbers, reads
# scikit-learn's handwritten digits. (The quantiser handles only float32. It returns a float64 net unchanged, without a
# warning. So we first copy the rings' numbers into a float32 net.)

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-at-work-eight-bits",
    "Both nets are stored in eight bits instead of 32. How do their size and speed change?",
    choices=[
        "both become about 4 times smaller, and quicker",
        "both become smaller, but neither becomes quicker",
        "the small net becomes larger and slower, the large one 4 times smaller and quicker",
    ],
)

# %%
digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target  # 8 x 8 pixels, from 0 to 1
order = np.random.default_rng(0).permutation(len(x))
train, test = order[:1400], order[1400:]
large = Sequential([Dense(512, "relu"), Dense(512, "relu"), Dense(10, "softmax")], name="digits")
large.compile(Adam(0.001), "sparse_categorical_crossentropy")
large.fit(x[train], y[train], batch_size=50, epochs=10, seed=1, verbose=0)

small = Sequential([Dense(4, "relu"), Dense(8, "relu"), Dense(1, "sigmoid")], name="rings")
small.build((None, 2), "float32")
small.set_weights([w.astype("float32") for w in model.get_weights()])


# %% [markdown]
# A **calibration reader** supplies the examples, a hundred at a time:


# %%
class Examples(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x0": x[k : k + 100]} for k in range(0, 1000, 100)])

    def get_next(self):
        return next(self.batches, None)


def quantised(model, x):
    """The files of a model: in float32, quantised dynamically, quantised statically."""
    files = [folder / f"{model.name}_{kind}.onnx" for kind in ("float32", "dynamic", "static")]
    model.export(files[0])
    quantize_dynamic(files[0], files[1], weight_type=QuantType.QInt8)
    quantize_static(files[0], files[2], Examples(x), weight_type=QuantType.QInt8)
    return files


# %% tags=["hide-input"]
# Measures one file. You may skip this cell.
def measured(file, x, right):
    """A line with the share of right answers, the bytes, and the times for one row and for 256, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options)
    hits = right(session.run(None, {"x0": x})[0]).mean()
    many = np.resize(x, (256, x.shape[1]))
    one, most = (1e6 * least(session, batch) for batch in (x[:1], many))
    return f"{file.stem:15} {hits:8.1%} {file.stat().st_size:10,} {one:8.1f} {most:10.1f}"


# %% tags=["nbval-ignore-output"]
print("                   right      bytes  µs, 1 row  µs, 256 rows")
ring_points, ring_names = data.x_test.astype("float32"), data.y_test == 1
for file in quantised(small, data.x.astype("float32")):
    print(measured(file, ring_points, lambda p: (p > 0.5) == ring_names))
for file in quantised(large, x[train]):
    print(measured(file, x[test], lambda p: p.argmax(1) == y[test]))

# %%
checks.answer_to("05-at-work-eight-bits")

# %% [markdown]
# The formula of notebook 01 explains the times: launches · t_launch + max(flops / peak, bytes / bandwidth). For the
# small net only the first term matters, and there are now more launches. For the large net the second term matters. Its
# weights take a quarter of the bytes, and one instruction multiplies four times as many 8-bit numbers as 32-bit ones.
# The share of right answers hardly changes for the large net. Its largest score is usually far above the others, so a
# rounding of one part in 256 rarely changes the answer.
#
# ## A page on which you draw (3 min)
#
# Some users do not want to ask a server. In *more/05_onnx* the net of the rings became a web page. `export_page` makes
# one from any net. For two inputs the page draws the plane, for a picture it has a field to draw on, and for other
# inputs it has sliders with names.

# %%
reader = Sequential([Dense(32, "relu"), Dense(10, "softmax")], name="digits")
reader.compile(Adam(0.002), "sparse_categorical_crossentropy")
reader.fit(x[train], y[train], batch_size=50, epochs=20, seed=1, verbose=0)
export_page(reader, "digits.html", picture=(8, 8, 1))

measures = {"bill length, mm": (32, 60), "bill depth, mm": (13, 22), "flipper, mm": (170, 232), "mass, g": (2700, 6300)}
export_page(load_model("penguins_sex"), "penguins.html", inputs=measures, outputs=["female", "male"])
for page in ("digits.html", "penguins.html"):
    print(f"{page}: {Path(page).stat().st_size / 1000:.0f} kB")

# %% [markdown]
# Now **open them**: in Lab's file browser, right-click, *Open in New Browser Tab*. Draw a 3 that fills the frame. These
# pages need no network. A few lines of JavaScript compute the `Dense` layers, for nets of up to 100,000 numbers. The
# pages open at once and answer in well under a millisecond. For a larger net, or other layers, `export_page` puts
# [onnxruntime-web](https://onnxruntime.ai/docs/tutorials/web/) into the page. That adds 5 MB, which take a second to
# unpack. It must be installed first: `npm install onnxruntime-web@1.30.0`. (TensorFlow's models run in a page with
# TensorFlow.js.)
#
# ## On a hub (3 min)
#
# Most models are published on a **hub**, a public collection of repositories. We use Hugging Face's. (TensorFlow's,
# called TensorFlow Hub, [moved to Kaggle](https://github.com/tensorflow/hub) in 2023.) Our repository holds the file of
# `save`, the ONNX file, and a **model card**. The card says what data the model was trained on, how well it does, and
# who may use it. Someone who finds the model knows only what the card says.

# %%
hits = (net.predict(data.x_test) > 0.5) == (data.y_test == 1)
words = {
    "data": "points on two rings with radius 5 and 8",
    "metrics": {"accuracy": round(float(hits.mean()), 2)},
    "license": "mit",
}
net.save_pretrained(folder / "card", **words)
print((folder / "card" / "README.md").read_text(encoding="utf-8").replace(folder.as_posix(), "…"))

# %%
again = from_pretrained(str(folder / "card"))
print("the same answers:", (again.predict(data.x_test) == net.predict(data.x_test)).all())

# %% [markdown]
# `from_pretrained` takes a folder or the name of a repository. If you have an account and have run `hf auth login` in a
# terminal, the following code uploads the model and fetches it again (it is not run here):
#
# ```python
# net.push_to_hub("your-name/rings", **words)
# again = from_pretrained("your-name/rings")
# ```
#
# Only `weights.safetensors` is fetched. It holds data alone, as *more/05_saving* shows, so no foreign code runs.
#
# ## What is left out (1 min)
#
# Each way to share a model leaves something out. Here is what, so that you know it before others rely on the model.
#
# | way | what is included | what is left out |
# |---|---|---|
# | `save`, a hub | layers, numbers, optimizer, the loss by its name | the code of your own layers and losses: pass them again in `custom_objects` |
# | `export`, a server, eight bits | the graph of a prediction | training, loss, metrics; a layer with an op that ONNX does not have is refused, by name |
# | a page | the same | models with several inputs or outputs, or with words as inputs: refused |
#
# ## Where to go from here (1 min)
#
# *more/05_onnx* explains `export`, and *more/05_saving* explains the file. The server here was KServe's; its
# [documentation](https://kserve.github.io/website/) covers what we only described on paper.
