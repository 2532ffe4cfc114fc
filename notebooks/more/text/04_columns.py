# %% [markdown]
# # 04 more · Columns that are no numbers
#
# **In this notebook a table of numbers, words and gaps becomes one matrix.**
#
# Needs notebook 04: `Layer`, `Dense`, `function`, the surprise. It takes `levels_more/mid_level/feature_columns.py` apart.

# %%
from course import build, figures, tasks
from course.figures import page
from course.practice import checks

build.watch("more/04_columns")

# %% tags=["hide-input"]
import numpy as np

from levels_more.low_level import GradientTape, function
from levels_more.mid_level import RANDOM, SGD, Dense, MeanSquaredError
from levels_more.mid_level.feature_columns import (
    BucketizedColumn,
    CategoricalColumn,
    DenseFeatures,
    EmbeddingColumn,
    FeatureColumn,
    IndicatorColumn,
    NumericColumn,
    bucketized_column,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_list,
    crossed_column,
    embedding_column,
    indicator_column,
    numeric_column,
    row_by_row,
    values_of,
)
from levels_more.mid_level.hashing import bucket_of, fingerprint

# %% [markdown]
# ## What becomes of a column (30 min)
#
# A species is a word. A model wants one matrix of numbers, and people collect tables of numbers, words and gaps. Who says what
# becomes of each column? (The names are those of `tf.feature_column`, since [moved into
# layers](https://www.tensorflow.org/guide/migrate/migrating_feature_columns).) The table, as a dict of columns. The fourth
# penguin was seen, but not measured:

# %%
names = ("species", "island", *tasks.MEASURES)
measure = [lambda text: None if text == "NA" else float(text)] * 4
lines = tasks.read("penguins.csv", names, (str, str, *measure))
birds = {name: list(column) for name, column in zip(names, zip(*lines))}
{name: column[:4] for name, column in birds.items()}

# %% [markdown]
# A **feature column** knows one name in that dict, and how what stands there becomes numbers. It does so in two halves:
# `encode` is the edge, where words and gaps end; `call` is arithmetic on tensors. Most columns need no variables.

# %%
page.source(FeatureColumn)

# %% [markdown]
# One question comes up with every column. Is it there, with a value in each row? `values_of` asks it.

# %%
try:
    values_of(birds, "specie")
except ValueError as error:
    print(error)

# %% [markdown]
# The simplest column takes numbers as they are, or on another scale. Where one is missing it does not guess: zero would be a
# penguin whose bill is flat.

# %%
page.source(NumericColumn)

# %%
try:
    numeric_column("bill_depth_mm").encode(birds)
except ValueError as error:
    print(error)

# %% [markdown]
# We leave out the two penguins that nobody measured, and go on with 342. Here are three, as they are and counted from 17 mm, a
# middling bill: centred, as the race of notebook 04 has taught. (The 17 is fixed. A mean over the batch would make a penguin depend on its
# company.)

# %%
measured = [row for row, mass in enumerate(birds["body_mass_g"]) if mass is not None]
birds = {name: np.array([column[row] for row in measured]) for name, column in birds.items()}
depth = numeric_column("bill_depth_mm", normalizer_fn=lambda values: values - 17.0)
print(birds["bill_depth_mm"][:3], depth.encode(birds)[:3, 0])

# %% [markdown]
# Now the words. A **categorical column** numbers the categories: a row's number is its *id*, and -1 where the row has none. It
# is no feature column yet, because an id is a name and not a size. Taken as a number it would say that Chinstraps stand half-way
# between Adelies and Gentoos.

# %%
page.source(CategoricalColumn, row_by_row)

# %%
sexes = row_by_row("sex", 2, {"female": 0, "male": 1}, lambda value, row: -1)
print(sexes.ids({"sex": ["male", "", "female"]}))

# %% [markdown]
# The first such column has a list of words, its *vocabulary*. For a word that is not in it there are three answers: no id, a
# default, or one of a few spare ids. Which of the spare ones, the word's **hash** decides: a number mixed from its letters.
# Python's own `hash` of a text will not do, as it [is another one in each
# process](https://docs.python.org/3/reference/datamodel.html#object.__hash__): a model saved today would not know its words
# tomorrow.

# %%
page.source(fingerprint)

# %%
{word: bucket_of(word, 4) for word in ("Emperor", "King", "Macaroni")}

# %% [markdown]
# You will find the same numbers on your machine, and tomorrow. Now the column. It is told a list of words, and what to do with
# others; a value that can never be equal to a word, such as a number, is a mistake and not a stranger.

# %%
page.source(categorical_column_with_vocabulary_list)

# %%
species = categorical_column_with_vocabulary_list("species", ["Adelie", "Chinstrap", "Gentoo"])
print(species, species.ids({"species": ["Gentoo", "Adelie", "Gentoo"]}), sep="\n")

# %% [markdown]
# A Gentoo has id 2, because its word is the third in the list.
#
# Last, from ids to numbers that have a meaning: a number for each category, 1 for that of the row and 0 for the others.

# %% tags=["hide-input"]
checks.predict(
    "Our model knows three species, and meets an Emperor. What will its row hold?",
    choices=["nothing: it is an error", "a 1 for one of the three species", "three zeros", "three times 1/3"],
    answer="three zeros",
    because="Its id is -1, and that is none of the three. Numbers that say nothing about the species are all that is honest, "
    "and what TensorFlow does. Whoever would rather have an error has to look for -1 in the ids.",
)

# %%
page.source(IndicatorColumn)

# %% [markdown]
# **A good place to stop.** Each word has an id, and each id a row with a 1 in its place.

# %% [markdown]
# A layer lays the columns side by side. Like any layer it works on tensors, and can be recorded and compiled; only its `encode`
# sees words.

# %%
page.source(DenseFeatures)

# %%
features = DenseFeatures([depth, indicator_column(species)])
features({"bill_depth_mm": [18.5, 13.0, 19.5, 20.0], "species": ["Adelie", "Gentoo", "Chinstrap", "Emperor"]}).numpy()

# %% [markdown]
# Four birds, four rows: the depth minus 17, then a number for each of the three species. The Emperor, in the last row, has a depth
# and three zeros.
#
# ## What the words are worth (10 min)
#
# A model of these four numbers is a line over the depth of the bill, at another height for each species. We train two models,
# one that is not told the species and one that is, until nothing moves any more. The step is the ordinary one. It takes the
# encoded columns, so it compiles.


# %%
def trained(features, data, batches, optimizer):
    """A linear model of the body mass: a layer on top of the feature columns, trained on a dict of columns."""
    dense, loss_of, mass = Dense(1), MeanSquaredError(), data["body_mass_g"][:, None]
    dense(features(data))  # makes the variables
    variables = features.trainable_variables + dense.trainable_variables

    @function
    def step(*rows):
        *encoded, target = rows
        with GradientTape() as tape:
            loss = loss_of(target, dense(features(encoded)))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    step.over(*features.encode(data), mass, batches)
    return dense


# %% [markdown]
# For a linear model the best weights can also be computed, by least squares. Both ways give the same grams per mm:

# %%
everybody = np.tile(np.arange(342), (3000, 1))  # 3,000 steps, all penguins in each
masses = {}
for told, columns in {"not told": [depth], "told the species": [depth, indicator_column(species)]}.items():
    features = DenseFeatures(columns, dtype="float64")
    dense = trained(features, birds, everybody, SGD(0.1))
    x = np.c_[features(birds), np.ones(342)]
    best = np.linalg.lstsq(x, birds["body_mass_g"], rcond=None)[0][0]
    masses[told] = dense(features(birds)).numpy()[:, 0]
    print(f"{told:17} {dense.kernel.numpy()[0, 0]:7.1f} trained, {best:7.1f} by least squares")

# %%
from course.figures import penguins

penguins.one_line_or_three(birds["bill_depth_mm"], birds["body_mass_g"], birds["species"], *masses.values())

# %% [markdown]
# The sign has turned, as in notebook 04. 257 lies between the slopes within the three species: this model may lift the line for a species, not tilt
# it. (The lines of Adelies and Chinstraps lie on each other.) What the species does to the mass now stands in the species' own
# weights. For the depth of the bill is left what it does within a species: 1 mm more goes with about a quarter of a kilogram
# more. The weight of a column answers for all that the model was not told.
#
# What are the words worth where it counts, on penguins that the model has not seen? We split the table as `penguins_mass` does,
# and take all three measures. The score is **R²**, the share of the variance of the masses that a model explains: 1 is perfect,
# and who always says the mean gets 0.

# %% tags=["hide-input"]
checks.predict(
    "On the measures alone, telling the island helps. Will it still help a model that knows the species?",
    choices=["yes, about as much", "yes, but half as much", "hardly, or not at all"],
    answer="hardly, or not at all",
    because="Gentoos live on one of the three islands only, and Chinstraps on another. So the island says something about the "
    "species, and that is what made it useful. A model that knows the species learns hardly anything new.",
)

# %%
order = tasks.shuffled(342, seed=1)
test, train_set = ({name: column[rows] for name, column in birds.items()} for rows in (order[:72], order[72:]))


def scaled(key):
    """A numeric column on the scale of the training rows: their mean becomes 0, their standard deviation 1."""
    mean, deviation = train_set[key].mean(), train_set[key].std()
    return numeric_column(key, normalizer_fn=lambda values: (values - mean) / deviation)


measures = [scaled(key) for key in tasks.MEASURES[:3]]
island = categorical_column_with_vocabulary_list("island", ["Biscoe", "Dream", "Torgersen"])
words = [indicator_column(species), indicator_column(island)]

# %%
batches = tasks.batch_order(270, 10, 100, seed=1)
for told, columns in {"nothing": [], "island": words[1:], "species": words[:1], "both": words}.items():
    features = DenseFeatures([*measures, *columns], dtype="float64")
    dense = trained(features, train_set, batches, SGD(0.02))
    score = figures.r_squared(test["body_mass_g"][:, None], dense(features(test)).numpy())
    print(f"measures and {told:8} test R² {score:.3f}")

# %% [markdown]
# In this split, three zeros and ones explain two fifths of what the measures left open. The island adds nothing to them: a
# column is worth what it says beyond the others.
#
# ## More columns (11 min)
#
# What becomes of gaps and of strangers, in one table. An id of -1 is a row of zeros, in an indicator and in an embedding.
#
# | column | missing | unknown |
# |---|---|---|
# | `numeric_column` | None, NaN: an error, or `default_value` | words: an error |
# | `bucketized_column` | as its numeric column | |
# | `…_with_vocabulary_list` | None, NaN, "", "NA", -1: id -1 | `default_value` (-1), or one of `num_oov_buckets` |
# | `…_with_identity` | the same | an error, or `default_value` |
# | `…_with_hash_bucket` | the same | no text, and no whole number, is unknown |
# | `crossed_column` | -1 where one of its keys is missing | as its keys |
#
# A number need not act in a straight line. Cut into ranges, each range has a weight of its own. Such a column is both: a
# category, and an indicator of it.

# %%
page.source(BucketizedColumn)

# %%
deep = bucketized_column(numeric_column("bill_depth_mm"), [15, 18])
print(DenseFeatures([deep])({"bill_depth_mm": [13.1, 15.0, 17.9, 18.0]}).numpy())

# %% [markdown]
# Two more ways to an id. Categories that are whole numbers from 0 on are ids already. And where nobody has a list of all the
# words, their hash does: with enough buckets, two words rarely share one.

# %%
page.source(categorical_column_with_hash_bucket)

# %%
print(categorical_column_with_identity("half", 2, default_value=0).ids({"half": [1, 0, 7, None]}))
print(categorical_column_with_hash_bucket("island", 10).ids({"island": ["Biscoe", "Dream", "Torgersen", ""]}))

# %% [markdown]
# A linear model adds what the island says to what the species says. A **cross** has a category for each pair, so a pair can
# mean something of its own. Pairs are many, so they are hashed.

# %%
cross = crossed_column(["island", deep], 20)
print(cross, cross.ids({"island": ["Biscoe", "Biscoe", "Dream", None], "bill_depth_mm": [14, 19, 14, 19]}), sep="\n")

# %% [markdown]
# An indicator of 10,000 words is 10,000 columns, nearly all zero. An **embedding** gives each word a few numbers instead, a
# row of a table, and learns them. It is the product of the indicator and the table, computed by looking the row up.

# %%
page.source(EmbeddingColumn)

# %% [markdown]
# One number for each species, learned beside the weight of the bill's depth. Times its own weight it is what the species adds
# to the mass:

# %%
RANDOM.seed(0)
features = DenseFeatures([depth, embedding_column(species, 1)], dtype="float64")
dense = trained(features, birds | {"body_mass_g": birds["body_mass_g"] / 1000}, everybody, SGD(0.1))
added = features.tables["species_embedding"].numpy()[:, 0] * dense.kernel.numpy()[1, 0]
{word: f"{more:+.2f} kg" for word, more in zip(("Adelie", "Chinstrap", "Gentoo"), added - added[0])}

# %% [markdown]
# Where do such columns lead? *more/05_table* goes on with this table, from the file to a model that is asked over the net.
#
# ### Without a check
#
# - An unknown species has three zeros. Give the indicator a fourth number, 1 for "unknown". (Which argument of
#   `categorical_column_with_vocabulary_list` does it?)
