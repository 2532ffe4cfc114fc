# %% [markdown]
# # 05 more · A model at work
#
# **In this notebook a model goes to work: behind an address, in eight bits, on a page where you draw, and on a hub.**
#
# It needs notebook 05, and *more/05_onnx* for what an ONNX file is. Nothing is exported. (The cell after the next one is folded.
# It imports what is used below.)
#
# It uses ONNX, onnxruntime, safetensors, scikit-learn and huggingface_hub, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_at_work", "onnx", "onnxruntime", "safetensors", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
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
from course.figures import serving as serving_figures
from course.practice import checks
from levels_more.high_level import Sequential
from levels_more.mid_level import Adam, Dense
from levels_more.saving import export_page, from_pretrained, load_model

os.environ["no_proxy"] = "127.0.0.1"  # where there is a proxy, it knows nothing of this computer
logging.disable(logging.WARNING)  # the quantiser has advice for larger models
place = tempfile.TemporaryDirectory()  # it goes when this kernel ends
folder = Path(place.name)
data = tasks.rings()

# %% [markdown]
# ## Behind an address (6 min)
#
# A shop wants to ask our net about a point. The shop's program is written in another language, and runs on another computer. What
# must the two agree on? On an address, and on how a question and an answer are written. There is a standard for that, the
# [Open Inference Protocol](https://github.com/kserve/open-inference-protocol): HTTP, with JSON in it. We write no server. We take
# one that speaks it, KServe's, and it runs our ONNX file with `onnxruntime`. In a terminal that is one command:
#
# ```
# python3 -m course serve rings
# ```
#
# Here we call what the command calls. (The first time it makes an environment for the server, of about 510 MB; that takes a minute.)

# %% tags=["nbval-ignore-output"]
server = serving.Server(["rings"])
print(server.address)

# %%
print(json.dumps(server.ask("/v2/models/rings"), indent=1))

# %% [markdown]
# So the model says by itself what it takes: `x0`, two numbers a row in float64, and any number of rows (-1). Now the question,
# with nothing but Python's own library:


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
checks.predict(
    "The answer came as text, such as `0.006958275329437158`. We read it as float64. Are these the bits that `onnxruntime` computed?",
    "to the last bit",
    choices=["to the last bit", "to about 16 digits, the last may differ", "to 6 digits"],
    because="Python writes a float with as few digits as bring back exactly this float, and never fewer. So text costs bytes and "
    "time, and no bit.",
)

# %%
model = load_model("rings")
model.export(folder / "rings.onnx")
session = onnxruntime.InferenceSession(folder / "rings.onnx")
served = np.array(ask(data.x_test)["outputs"][0]["data"]).reshape(-1, 1)
print("as onnxruntime, to the bit:", (served == session.run(None, {"x0": data.x_test})[0]).all())
print("as `predict`, to 1e-12:    ", np.abs(served - model.predict(data.x_test)).max() < 1e-12)

# %% [markdown]
# Beside `predict` the last digits may differ. Our sums run in order; `onnxruntime` adds in the order that suits the processor.
# (In float32 the two agree to a millionth.)
#
# ## Asked wrongly (2 min)
#
# Whoever asks makes mistakes, and some who ask mean harm. A good server never falls over, and says what is wrong. In HTTP a
# status from 400 to 499 means: the question was wrong; from 500 on: the server is.


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
# (JSON has no word for "not a number"; Python writes one all the same.) A test of the course asks 300 questions, each wrong in a
# way of its own: cut off, far too long, a hundred thousand brackets, a shape of ten to the thirty. None of them gets a 500.
#
# ## Under load (6 min)
#
# `onnxruntime` needs a few microseconds for a row. Now eight clients ask, 2,000 questions in all, one row each.

# %% tags=["hide-input"]
checks.predict(
    "The model alone answers more than 100,000 rows a second, one by one. How many does it answer behind the server, with eight clients?",
    "a few thousand at most",
    choices=["about 100,000", "about 30,000", "a few thousand at most"],
    because="The arithmetic was never the cost. A question is a connection, headers, JSON that is read and written twice, and a "
    "server in Python in between: milliseconds around microseconds.",
)


# %%
def timed(x):
    start = time.perf_counter()
    ask(x)
    return time.perf_counter() - start


def least(session, x, times=200):
    """The shortest of so many runs, in seconds."""
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
print(f"served: {len(rows) / took:,.0f} a second, half within {half:.1f} ms, 99 of 100 within {most:.1f} ms")
print(f"alone:  {1 / alone:,.0f} a second, {1e6 * alone:.1f} µs each")

# %% tags=["nbval-ignore-output"]
serving_figures.latencies(seconds, alone)

# %% [markdown]
# You know this picture: it is the fixed cost of a launch from notebook 01, a thousand times larger. And so is the cure: more
# rows in one question. (The clients are Python too, and share this computer with the server. From another one it would answer a few more.)

# %% tags=["nbval-ignore-output"]
for count in (1, 10, 100, 1000):
    best = min(timed(data.x[:count]) for _ in range(10))
    print(f"{count:5} rows in one question: {1e3 * best:5.1f} ms, {1e6 * best / count:6.0f} µs a row")

# %% [markdown]
# **A good place to stop.** Your net answers whoever asks, and you know what an answer costs.
#
# ## A new version (4 min)
#
# Next week we train on, and have a better net. Must the shop wait while we start again? We serve a folder this time, save a new
# model into it in the middle of the work, and have four clients ask without a pause. (The command looks by itself, twice a second; here we say
# `refresh`.)

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
print("all answered, by versions", sorted(set(versions)))

# %% [markdown]
# The new session is made beside the old one, and then one name is bound anew. Who was being answered is answered by the old.
# Had one question failed, its thread would have said so. And a file that is broken is refused: the version before stays.
#
# ## On a cluster, on paper (1 min)
#
# Thousands of questions a second need several computers. KServe is made for that: on a cluster with
# [Kubernetes](https://kubernetes.io) this text is the whole order. What asks it need not change a line, for the protocol is the
# same.

# %%
print(serving.ORDER.read_text(encoding="utf-8"))

# %% [markdown]
# We have no cluster here; a test holds the text against KServe's own description of what such an order may say.

# %%
print("ended with status", server.stop())

# %% [markdown]
# ## Eight bits (8 min)
#
# A telephone has little memory, and moving bytes costs time and battery. A float32 has 32 bits. **Quantised**, a weight is a whole
# number from -128 to 127, times one scale for the whole layer. *Dynamic* quantisation looks at each input for its scale, while it runs;
# *static* has seen a hundred examples before, and fixed it. We try both, on two nets: the rings' 61 numbers, and one
# that reads scikit-learn's handwritten digits, with 301,066. (The quantiser knows float32 alone: a net in float64 it hands back as
# it was, without a word. So the rings' numbers go into a net for float32 first.)

# %% tags=["hide-input"]
checks.predict(
    "In eight bits instead of 32: what becomes of the small net, and of the large one?",
    "the small one larger and slower, the large one 4 times smaller and quicker",
    choices=[
        "both about 4 times smaller, and quicker",
        "both smaller; neither is quicker, for numbers are numbers",
        "the small one larger and slower, the large one 4 times smaller and quicker",
    ],
    because="Each layer now has nodes more: find the scale, round, multiply whole numbers, scale back. 61 weights cannot pay for their "
    "names in the file, nor for the launches. 300,000 can.",
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
# A **calibration reader** hands over the examples, a hundred at a time:


# %%
class Examples(CalibrationDataReader):
    def __init__(self, x):
        self.batches = iter([{"x0": x[k : k + 100]} for k in range(0, 1000, 100)])

    def get_next(self):
        return next(self.batches, None)


def quantised(model, x):
    """The files of a model: as it is, quantised as it runs, quantised before."""
    files = [folder / f"{model.name}_{kind}.onnx" for kind in ("float32", "dynamic", "static")]
    model.export(files[0])
    quantize_dynamic(files[0], files[1], weight_type=QuantType.QInt8)
    quantize_static(files[0], files[2], Examples(x), weight_type=QuantType.QInt8)
    return files


# %% tags=["hide-input"]
def measured(file, x, right):
    """A line: how often it is right, its bytes, the time for one row and for 256, on one thread."""
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

# %% [markdown]
# The formula of notebook 01 says why: launches · t_launch + max(flops / peak, bytes / bandwidth). For the small net only the first
# term counts, and it grew. For the large one the second counts. Its weights are a quarter of the bytes, and the processor
# multiplies four times as many 8-bit numbers in one instruction as 32-bit ones. How often the large net is right hardly changes: its scores are far apart,
# and a rounding of one part in 256 turns few of them round.
#
# ## A page on which you draw (2 min)
#
# Not everybody wants to ask a server. In *more/05_onnx* the rings went home as a page. `export_page` takes any net: for two inputs it
# draws the plane, for others it has sliders with names, and for the pixels of a picture something to draw on.

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
# Now **open them**: in Lab's file browser, right-click, *Open in New Browser Tab*. Draw a 3 that fills the frame. These pages ask for no
# network; their few lines of JavaScript run `Dense` layers up to 100,000 numbers. They open at once, and answer in well under a
# millisecond. For a larger net, or other layers, `export_page` puts [onnxruntime-web](https://onnxruntime.ai/docs/tutorials/web/)
# into the page, 5 MB of it, which take a second to unpack. It must be there first: `npm install onnxruntime-web`.
#
# ## On a hub (3 min)
#
# The last way out is the one that most models take: a repository that anybody can fetch from. It holds the file of `save`, the ONNX file, and a
# **card**: what it was trained on, how well it does, who may use it. Whoever finds a model knows no more of it than the card says.

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
# `from_pretrained` takes a folder or the name of a repository. With an account, after `hf auth login` in a terminal, this puts it there
# and fetches it again (it is not run here):
#
# ```python
# net.push_to_hub("your-name/rings", **words)
# again = from_pretrained("your-name/rings")
# ```
#
# Only `weights.safetensors` is fetched, and no code of a stranger runs: it holds data alone, as *more/05_saving* shows.
#
# ## What stays at home (1 min)
#
# Each way out leaves something behind, and it is well to know what before others rely on it.
#
# | way | what goes along | what stays |
# |---|---|---|
# | `save`, a hub | layers, numbers, optimizer, the loss by its name | the code of your own layers and losses: they are handed over again, in `custom_objects` |
# | `export`, a server, eight bits | the graph of a prediction | training, loss, metrics; a layer whose op ONNX has no form for is refused, by name |
# | a page | the same | models with several inputs or outputs, or with words as inputs: refused |
#
# ## Where to go from here (1 min)
#
# *more/05_onnx* takes `export` apart, *more/05_saving* the file. What you served here is KServe; its
# [pages](https://kserve.github.io/website/) go on where our paper ends.
