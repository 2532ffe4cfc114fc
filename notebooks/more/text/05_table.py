# %% [markdown]
# # 05 more · One table, from the file to an answer
#
# **In this notebook a file of numbers, words and gaps becomes a model that answers whoever asks.**
#
# It needs notebook 05 (`fit`, `evaluate`, `predict`) and `04_columns`. Nothing is exported, and nothing new is
# built: what the other notebooks have made is put to work, from end to end. (The cell after the next one is
# folded. It imports what is used below.)
#
# It uses pandas, safetensors and scikit-learn, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_table", "pandas", "safetensors", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
import json

from course.practice import checks
from course.tasks import DATA
from levels_more.high_level import EarlyStopping, Sequential
from levels_more.mid_level import (
    RANDOM,
    Adam,
    BatchNormalization,
    Dense,
    DenseFeatures,
    categorical_column_with_vocabulary_list,
    indicator_column,
    numeric_column,
)
from levels_more.saving import load_model

path = DATA / "penguins.csv"

# %% [markdown]
# ## The table, and the question (4 min)
#
# Most tables are read with [pandas](https://pandas.pydata.org). What it gives is a `DataFrame`: columns with
# names, each of one kind. Here are the first four of 344 penguins.

# %%
import pandas as pd

table = pd.read_csv(path)
print(table.head(4).to_string())

# %% [markdown]
# The fourth was seen, but not measured. How many gaps are there?

# %%
print({name: int(gaps) for name, gaps in table.isna().sum().items() if gaps})

# %% [markdown]
# The question: is this penguin a Chinstrap, the rarest of the three species here? One who measures the length of
# the bill sees it nearly at once. Suppose that nobody does. We have the bill's depth, the flipper's length, the
# mass; the sex, where it is known; and the island.

# %%
names = ["bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex", "island"]
x, y = table[names], (table["species"] == "Chinstrap").astype(int)
print(f"{y.sum()} of {len(y)} are Chinstraps")

# %% tags=["hide-input"]
checks.predict(
    "A model has learned nothing, and says of each penguin that it is no Chinstrap. How often is it right?",
    choices=["20 % of the time", "50 %", "80 %"],
    answer="80 %",
    because="Four of five penguins are none. Where one answer is rare, the share of right answers says little: we shall "
    "also ask how many of the Chinstraps a model finds, and how many of those that it names are some.",
)

# %% [markdown]
# A quarter of the rows is kept for the end, and another part tells when to stop. In each part, one of five is a
# Chinstrap: that is what `stratify` is for.

# %%
from sklearn.model_selection import train_test_split

x, x_test, y, y_test = train_test_split(x, y, test_size=86, stratify=y, random_state=3)
x, x_valid, y, y_valid = train_test_split(x, y, test_size=58, stratify=y, random_state=3)
print(len(x), "to train on,", len(x_valid), "to stop by,", len(x_test), "for the end")

# %% [markdown]
# ## The model (5 min)
#
# One feature column for each column of the table. A missing number becomes the mean of the rows to train on. A
# missing word becomes zeros. Neither looks at a row that is kept for the end.

# %%
columns = [numeric_column(name, default_value=x[name].mean()) for name in names[:3]]
for name in names[3:]:
    words = sorted(x[name].dropna().unique())
    columns.append(indicator_column(categorical_column_with_vocabulary_list(name, words)))

# %%
features = DenseFeatures(columns, dtype="float64")
print(*columns, sep=", ")
for row in features(dict(x[:3])).numpy().tolist():
    print(row)

# %% [markdown]
# Thousands stand beside ones. We know from notebook 04 what becomes of that, and standardise; here by a layer.
# `BatchNormalization` takes the mean of each batch from it, and divides by the deviation. What it has seen it
# keeps, for the time when a single penguin comes. So the standardising is a part of the model: who gets the model
# needs no table of means.


# %%
def new_model():
    """A net of columns, standardised, from the same start each time."""
    RANDOM.seed(1)
    features = DenseFeatures(columns, dtype="float64")
    model = Sequential([features, BatchNormalization(momentum=0.9), Dense(8, "relu"), Dense(1, "sigmoid")])
    model.compile(Adam(0.01), "binary_crossentropy", metrics=["accuracy", "precision", "recall"])
    return model


# %% [markdown]
# `fit` takes a dict of columns; `dict(x)` makes one of a DataFrame. It stops when the loss of the rows to stop by
# has not fallen for 20 epochs, and gives the best weights back.


# %%
def trained(**options):
    """A new model, fitted to the rows to train on, and its History."""
    model, stop = new_model(), EarlyStopping(patience=20, restore_best_weights=True)
    return model, model.fit(
        dict(x), y, epochs=300, validation_data=(dict(x_valid), y_valid), callbacks=[stop], seed=1, verbose=0, **options
    )


plain, history = trained()
print(f"stopped after {len(history.history['loss'])} epochs, at a loss of {min(history.history['val_loss']):.2f}")

# %% [markdown]
# ## What a mistake costs (4 min)
#
# How good is it on penguins that it has not seen? **Recall** is the share of the Chinstraps that it finds,
# **precision** the share of those that it names that are some.


# %%
def show(name, model):
    found = model.evaluate(dict(x_test), y_test, return_dict=True)
    print(f"{name:8} right {found['accuracy']:.2f}   recall {found['recall']:.2f}   precision {found['precision']:.2f}")


show("plain", plain)

# %% [markdown]
# Nine of ten are right, and every third Chinstrap is missed. To the loss, a Chinstrap is a row like any other,
# and there are four times as many of the others. Whoever looks for Chinstraps would rather look at a few birds
# too many. With `class_weight` we say so: a row of class 1 counts as four.

# %% tags=["hide-input"]
checks.predict(
    "The weighted model finds more of the Chinstraps. What becomes of the share of right answers?",
    choices=["it rises, too", "it stays the same", "it falls"],
    answer="it falls",
    because="The plain model was trained for right answers, each as good as any other. This one is paid for something else: "
    "it names a bird where the odds are above one to four, and is often wrong about those.",
)

# %%
weighted, _ = trained(class_weight={0: 1.0, 1: 4.0})
show("plain", plain)
show("weighted", weighted)

# %% [markdown]
# Sixteen of the seventeen Chinstraps are found; nearly every second bird that it names is none. Neither model is
# the better one: only who pays for the mistakes can choose. (The loss of the rows to stop by has no weights, as
# in Keras.)
#
# ## Out of the house (9 min)
#
# `save` makes a folder of data: the numbers, and how the model is made, its columns and their words among it.

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp()) / "chinstrap"
weighted.save(folder)
served = load_model(folder)
print((served.predict(dict(x_test)) == weighted.predict(dict(x_test))).all())

# %% [markdown]
# The loaded model takes the same dicts, of lists this time. The second bird differs from the first in its island.
# Of the third neither depth nor sex is known, and its island stands in no vocabulary: the model makes of it what
# it can.

# %%
birds = {
    "bill_depth_mm": [18.4, 18.4, None],
    "flipper_length_mm": [196, 196, 196],
    "body_mass_g": [3700, 3700, 3700],
    "sex": ["female", "female", None],
    "island": ["Dream", "Biscoe", "Atlantis"],
}
print(served.predict(birds)[:, 0].round(2))

# %% [markdown]
# What is left is a way in for others. In most houses that is HTTP: a question is a text in JSON, and so is the
# answer. Python's own library has a server. Ours makes a dict of lists from a dict, and what the columns refuse
# becomes the answer to who asked.

# %%
from http.server import BaseHTTPRequestHandler, HTTPServer


class Desk(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            bird = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            chance = served.predict({name: [value] for name, value in bird.items()})[0, 0]
            status, answer = 200, {"chinstrap": round(float(chance), 2)}
        except (AttributeError, TypeError, ValueError) as error:
            status, answer = 400, {"error": str(error)}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_):
        """Says nothing; without this line each question is printed."""


# %% [markdown]
# It runs in a thread, on a port of this machine that is free. We ask it as any program would:

# %%
from threading import Thread
from urllib.error import HTTPError
from urllib.request import urlopen

server = HTTPServer(("127.0.0.1", 0), Desk)
Thread(target=server.serve_forever, daemon=True).start()


def ask(**bird):
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        return urlopen(address, json.dumps(bird).encode()).read().decode()
    except HTTPError as error:
        return error.read().decode()


bird = {"bill_depth_mm": 18.4, "flipper_length_mm": 196, "body_mass_g": 3700, "sex": "female", "island": "Dream"}
print(ask(**bird))
print(ask(**bird | {"flipper_length_mm": "long"}))

# %%
server.shutdown()
server.server_close()

# %% [markdown]
# From the file to an answer, in about seventy lines. They name columns and choose what a mistake costs. All else
# came from below: level 4's columns and layers, level 5's loop, and beneath them a program that level 3 has
# compiled.
#
# ### Without a check
#
# - `weighted` names a bird where its number is above 0.5. Give `plain` another threshold in its place: which one finds as many
#   Chinstraps? How many are named wrongly then?
# - Give the model the length of the bill, too. What is left to be weighed?
