# %% [markdown]
# # 05 more · One table, from the file to an answer
#
# **In this notebook a file of numbers, words and gaps becomes a model that answers questions over HTTP.**
#
# You need notebook 05 (`fit`, `evaluate`, `predict`) and `04_columns` for this. Nothing is exported, and nothing new is
# built. We use what the other notebooks have made, from start to finish.
#
# It uses pandas, safetensors and scikit-learn, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_table", "pandas", "safetensors", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import json

from course.reader import checks
from course.reader.tasks import DATA
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
# ## The table, and the question (7 min)
#
# Most tables are read with [pandas](https://pandas.pydata.org). It returns a `DataFrame`, a table of columns with
# names, each with one dtype. Here are the first four of 344 penguins.

# %%
import pandas as pd

table = pd.read_csv(path)
print(table.head(4).to_string())

# %% [markdown]
# The fourth penguin was seen but not measured. How many gaps are there?

# %%
for name, gaps in table.isna().sum().items():
    if gaps:
        print(f"{gaps:3} {name}")

# %% [markdown]
# Our question is whether a penguin is a Chinstrap, the rarest of the three species here. Anyone who measures the length
# of the bill can nearly answer that at once, so suppose that the length is not known. We have the depth of the bill,
# the length of the flipper and the mass. We also have the island and, for most birds, the sex.

# %%
names = ["bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex", "island"]
x, y = table[names], (table["species"] == "Chinstrap").astype(int)
print(f"{y.sum()} of {len(y)} are Chinstraps")

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-table-always-no",
    "A model has learned nothing. It says of each penguin that it is not a Chinstrap. How often is it right?",
    choices=["20 % of the time", "50 %", "80 %"],
)

# %%
print(f"always no: right for {(y == 0).mean():.0%} of the penguins")

# %%
checks.answer_to("05-table-always-no")

# %% [markdown]
# A quarter of the rows is kept for the final test, and another part decides when training stops. `stratify` makes one
# of five rows a Chinstrap in each part.

# %%
from sklearn.model_selection import train_test_split

x, x_test, y, y_test = train_test_split(x, y, test_size=86, stratify=y, random_state=3)
x, x_valid, y, y_valid = train_test_split(x, y, test_size=58, stratify=y, random_state=3)
print(len(x), "for training,", len(x_valid), "for stopping,", len(x_test), "for the final test")

# %% [markdown]
# ## The model (5 min)
#
# We make one feature column per column of the table. A missing number becomes the mean of the training rows. A missing
# word becomes zeros. Neither uses a row that is kept for the final test.

# %%
columns = [numeric_column(name, default_value=x[name].mean()) for name in names[:3]]
for name in names[3:]:
    words = sorted(x[name].dropna().unique())
    columns.append(indicator_column(categorical_column_with_vocabulary_list(name, words)))

# %%
features = DenseFeatures(columns, dtype="float64")
print(*columns, sep="\n")
for row in features(dict(x[:3])).numpy().tolist():
    print(row)

# %% [markdown]
# Some columns hold thousands, others ones. Notebook 04 showed how unscaled columns spoil training, so we standardise
# them, this time with a layer. In training, `BatchNormalization` subtracts the mean of each batch and divides by its
# standard deviation. It also stores moving averages of both, because later a single penguin may come alone. So the
# standardising is a part of the model, and whoever gets the model needs no table of means.


# %%
def new_model():
    """A net that standardises its columns. It has the same starting weights each time."""
    RANDOM.seed(1)
    features = DenseFeatures(columns, dtype="float64")
    model = Sequential([features, BatchNormalization(momentum=0.9), Dense(8, "relu"), Dense(1, "sigmoid")])
    model.compile(Adam(0.01), "binary_crossentropy", metrics=["accuracy", "precision", "recall"])
    return model


# %% [markdown]
# `fit` takes a dict of columns; `dict(x)` makes one from a DataFrame. Training stops when the loss of the stopping rows
# has not fallen for 20 epochs. Then the best weights are restored.


# %%
def trained(**options):
    """A new model, fitted to the training rows, and its History."""
    model, stop = new_model(), EarlyStopping(patience=20, restore_best_weights=True)
    return model, model.fit(
        dict(x), y, epochs=300, validation_data=(dict(x_valid), y_valid), callbacks=[stop], seed=1, verbose=0, **options
    )


plain, history = trained()
print(f"stopped after {len(history.history['loss'])} epochs, at a loss of {min(history.history['val_loss']):.2f}")

# %% [markdown]
# ## What a mistake costs (6 min)
#
# How good is the model on penguins that it has not seen? **Recall** is the share of all Chinstraps that it finds.
# **Precision** is the share of real Chinstraps among the birds that it calls Chinstraps.


# %%
def show(name, model):
    found = model.evaluate(dict(x_test), y_test, return_dict=True)
    print(f"{name:8} right {found['accuracy']:.2f}   recall {found['recall']:.2f}   precision {found['precision']:.2f}")


show("plain", plain)

# %% [markdown]
# Nine of ten answers are right, but one of three Chinstraps is missed. In the loss a Chinstrap is a row like any other,
# and there are four times as many rows of the other species. A person who looks for Chinstraps would rather check a few
# birds too many. `class_weight` lets us say so: a row of class 1 counts as four rows.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-table-weighted",
    "The weighted model finds more of the Chinstraps. How does the share of right answers change?",
    choices=["it rises, too", "it stays the same", "it falls"],
)

# %%
weighted, _ = trained(class_weight={0: 1.0, 1: 4.0})
show("plain", plain)
show("weighted", weighted)

# %%
checks.answer_to("05-table-weighted")

# %% [markdown]
# The weighted model finds sixteen of the seventeen Chinstraps, but nearly half of the birds that it calls Chinstraps
# are none. Neither model is the better one: that depends on what each kind of mistake costs you. (The loss of the
# stopping rows has no weights, as in Keras.)
#
# ## Saved, and asked over HTTP (8 min)
#
# `save` makes a folder of data. It holds the numbers and a description of the model, with its columns and their words.

# %%
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp()) / "chinstrap"
weighted.save(folder)
served = load_model(folder)
print((served.predict(dict(x_test)) == weighted.predict(dict(x_test))).all())

# %% [markdown]
# The loaded model takes the same kind of dict, this time with lists. The second bird differs from the first only in its
# island. For the third bird, depth and sex are unknown and the island is in no vocabulary, but the model still gives an
# answer.

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
# Now other programs should be able to ask the model. The usual way is HTTP: the question is a text in JSON, and so is
# the answer. Python's standard library has a server. Ours turns a dict of numbers and words into a dict of lists. If a
# column refuses the data, the error message is the answer.

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
        """Print nothing. Without this method each request is printed."""


# %% [markdown]
# The server runs in a thread, on a free port of this machine. We send it questions as any other program would:

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
# It took about eighty lines to get from the file to an answer, without the imports. They name the columns and set the
# cost of a mistake. The rest came from the levels below: the columns and layers of level 4, the loop of level 5, and a
# program that level 3 has compiled.
#
# ### Without a check
#
# - `weighted` calls a bird a Chinstrap if its number is above 0.5. Find a threshold at which `plain` finds as many Chinstraps.
#   How many false alarms does it give then?
# - Give the model the length of the bill, too. Is there still a choice to make between recall and precision?
