# %% [markdown]
# # 04 more · Columns of numbers, words and gaps
#
# **In this notebook a table of numbers, words and gaps becomes one matrix.**
#
# You need notebook 04 for this (`Layer`, `Dense`, `function` and the surprise about the penguins). The code is that of
# `levels_more/mid_level/feature_columns.py`.

# %%
from course import build, figures, tasks
from course.reader import checks
from course.reader.figures import page

build.watch("more/04_columns")

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
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
# ## From a column to numbers (25 min)
#
# A model needs one matrix of numbers. But most tables hold numbers, words and gaps: a species, for example, is a word.
# So each column needs a rule for turning it into numbers. (The rules here have the names of `tf.feature_column`, which
# TensorFlow has since [replaced by layers](https://www.tensorflow.org/guide/migrate/migrating_feature_columns).) Here
# is the table of penguins, as a dict of columns. The fourth penguin was seen but not measured:

# %%
names = ("species", "island", *tasks.MEASURES)
measure = [lambda text: None if text == "NA" else float(text)] * 4
lines = tasks.read("penguins.csv", names, (str, str, *measure))
birds = {name: list(column) for name, column in zip(names, zip(*lines))}
{name: column[:4] for name, column in birds.items()}

# %% [markdown]
# A **feature column** reads one column of that dict and turns it into numbers, in two steps. `encode` replaces words
# and gaps by numbers. `call` does the rest, as arithmetic on tensors. Most feature columns need no variables.

# %%
page.source(FeatureColumn)

# %% [markdown]
# Every feature column first checks its input: is the column there, with one value per row? The function `values_of`
# does that check.

# %%
try:
    values_of(birds, "specie")
except ValueError as error:
    print(error)

# %% [markdown]
# The simplest feature column, `NumericColumn`, takes numbers as they are, or rescales them with its `normalizer_fn`. It
# does not guess a missing number: a zero would describe a penguin with a flat bill. Most lines of its `encode` are checks:

# %%
page.source(NumericColumn.encode)

# %%
try:
    numeric_column("bill_depth_mm").encode(birds)
except ValueError as error:
    print(error)

# %% [markdown]
# We leave out the two penguins that were not measured, and go on with the other 342. Here are three bill depths, first
# as they are and then minus 17 mm, which is roughly the middle. Such centring made training faster in the race of
# notebook 04. (The 17 is fixed. If we subtracted the mean of the batch instead, the numbers of one penguin would depend
# on the others in its batch.)

# %%
measured = [row for row, mass in enumerate(birds["body_mass_g"]) if mass is not None]
birds = {name: np.array([column[row] for row in measured]) for name, column in birds.items()}
depth = numeric_column("bill_depth_mm", normalizer_fn=lambda values: values - 17.0)
print(birds["bill_depth_mm"][:3], depth.encode(birds)[:3, 0])

# %% [markdown]
# Now the words. A **categorical column** numbers the categories. The number of a row's category is its *id*; a row
# without a category has the id -1. A categorical column is not a feature column yet, because an id is a label and not a
# quantity. Used as a number, it would place Chinstraps half-way between Adelies and Gentoos.

# %%
page.source(CategoricalColumn, row_by_row)

# %%
sexes = row_by_row("sex", 2, {"female": 0, "male": 1}, lambda value, row: -1)
print(sexes.ids({"sex": ["male", "", "female"]}))

# %% [markdown]
# The first categorical column has a list of words, its *vocabulary*. A word outside the vocabulary gets no id, or a
# default id, or one of a few spare ids, whichever you choose. The spare id is picked by the word's **hash**, a number
# computed from its letters. Python's own `hash` cannot be used for that, because for a text it [differs from one
# process to the next](https://docs.python.org/3/reference/datamodel.html#object.__hash__). A model saved today would
# not recognise its words tomorrow.

# %%
page.source(fingerprint)

# %%
{word: bucket_of(word, 4) for word in ("Emperor", "King", "Macaroni")}

# %% [markdown]
# These numbers are the same on every machine and on every day. Now the column itself. You give it a list of words and
# say what to do with other words. A value that can never equal a word, such as a number, is refused as a mistake.

# %%
page.source(categorical_column_with_vocabulary_list)

# %%
species = categorical_column_with_vocabulary_list("species", ["Adelie", "Chinstrap", "Gentoo"])
print(species, species.ids({"species": ["Gentoo", "Adelie", "Gentoo"]}), sep="\n")

# %% [markdown]
# A Gentoo has the id 2, because its word is the third in the list and counting starts at 0.
#
# The last step turns ids into numbers with a meaning. An **indicator** gives each row one number per category: 1 for
# the row's own category, 0 for the others.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-columns-emperor",
    "The vocabulary holds three species. Now comes a bird of a fourth, an Emperor. What will its row hold?",
    choices=["nothing: it is an error", "a 1 for one of the three species", "three zeros", "three times 1/3"],
)

# %%
page.source(IndicatorColumn)

# %%
emperor = {"species": ["Emperor", "Gentoo"]}
print(DenseFeatures([indicator_column(species)])(emperor).numpy())

# %%
checks.answer_to("04-columns-emperor")

# %% [markdown]
# **A good place to stop.** Each word has an id, and each id has a row with a 1 in its place.

# %% [markdown]
# The layer `DenseFeatures` puts the columns side by side in one matrix. Like any layer it works on tensors, so its
# `call` can be recorded and compiled. Only its `encode` handles words.

# %%
page.source(DenseFeatures.encode, DenseFeatures.call)

# %%
features = DenseFeatures([depth, indicator_column(species)])
features({"bill_depth_mm": [18.5, 13.0, 19.5, 20.0], "species": ["Adelie", "Gentoo", "Chinstrap", "Emperor"]}).numpy()

# %% [markdown]
# There is one row per bird: the depth minus 17, then one number for each of the three species. The Emperor, in the last
# row, has a depth and three zeros.
#
# ## What the words are worth (12 min)
#
# A linear model of these four numbers is a line over bill depth, with a different height for each species. We train one
# model without the species and one with it, both until the weights no longer change. The training step is the ordinary
# one. It receives encoded columns, so it compiles.


# %%
def trained(features, data, batches, optimizer):
    """Train a linear model of the body mass on a dict of columns: a Dense layer on top of the feature columns."""
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
# For a linear model the best weights can also be computed directly, by least squares. Training and least squares give
# the same grams per mm:

# %%
everybody = np.tile(np.arange(342), (3000, 1))  # 3,000 steps, each with all penguins
masses = {}
for told, columns in {"without species": [depth], "with species": [depth, indicator_column(species)]}.items():
    features = DenseFeatures(columns, dtype="float64")
    dense = trained(features, birds, everybody, SGD(0.1))
    x = np.c_[features(birds), np.ones(342)]
    best = np.linalg.lstsq(x, birds["body_mass_g"], rcond=None)[0][0]
    masses[told] = dense(features(birds)).numpy()[:, 0]
    print(f"{told:17} {dense.kernel.numpy()[0, 0]:7.1f} trained, {best:7.1f} by least squares")

# %%
from course.reader.figures import penguins

penguins.one_line_or_three(birds["bill_depth_mm"], birds["body_mass_g"], birds["species"], *masses.values())

# %% [markdown]
# With the species the slope changes its sign, as in notebook 04. The second model may give each species a line of its
# own height, but all its lines have the same slope. So 257 lies between the slopes that the three species have by
# themselves. (The lines of Adelies and Chinstraps lie almost on top of each other.) The differences between the species
# are now in the weights of the species. The weight of the bill depth describes only what happens within a species: 1 mm
# more goes with about a quarter of a kilogram more. In general, the weight of a column also absorbs the effects of
# everything that the model does not see.
#
# Do the words also help on penguins that the model has not seen? We split the table as `penguins_mass` does, and use
# all three measures. The score is **R²**, the share of the variance of the masses that a model explains. A perfect
# model scores 1, and a model that always predicts the mean scores 0.

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "04-columns-island",
    "Added to the measures alone, the island improves the predictions. Will it still help a model that has the species?",
    choices=["yes, about as much", "yes, but half as much", "hardly, or not at all"],
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

# %%
checks.answer_to("04-columns-island")

# %% [markdown]
# In this split, the three species numbers explain two fifths of what the measures alone leave unexplained. Adding the
# island to them improves nothing. A column is worth only what it adds to the other columns.
#
# ## More columns (12 min)
#
# This table shows how each column treats missing and unknown values. An id of -1 becomes a row of zeros, in an
# indicator and in an embedding.
#
# | column | missing | unknown |
# |---|---|---|
# | `numeric_column` | None, NaN: an error, or `default_value` | words: an error |
# | `bucketized_column` | as its numeric column | |
# | `categorical_column_with_vocabulary_list` | None, NaN, "", "NA", -1: id -1 | `default_value` (-1), or one of `num_oov_buckets` |
# | `categorical_column_with_identity` | the same | an error, or `default_value` |
# | `categorical_column_with_hash_bucket` | the same | never: every text and every whole number has an id |
# | `crossed_column` | -1 where one of its keys is missing | as its keys |
#
# The effect of a number need not be a straight line. A bucketized column cuts the numbers into ranges, and each range
# gets its own weight. It is a categorical column and its own indicator in one.

# %%
page.source(BucketizedColumn)

# %%
deep = bucketized_column(numeric_column("bill_depth_mm"), [15, 18])
print(DenseFeatures([deep])({"bill_depth_mm": [13.1, 15.0, 17.9, 18.0]}).numpy())

# %% [markdown]
# There are two more ways to get an id. Categories that are whole numbers from 0 on are ids already. If there is no list
# of all words, the hash of a word can serve as its id. With enough buckets, two words rarely share one.

# %%
page.source(categorical_column_with_hash_bucket)

# %%
print(categorical_column_with_identity("half", 2, default_value=0).ids({"half": [1, 0, 7, None]}))
print(categorical_column_with_hash_bucket("island", 10).ids({"island": ["Biscoe", "Dream", "Torgersen", ""]}))

# %% [markdown]
# A linear model adds the effect of the island to the effect of the species. A **cross** has one category per pair, so
# that a pair can have an effect of its own. There are many pairs, so they are hashed.

# %%
cross = crossed_column(["island", deep], 20)
print(cross, cross.ids({"island": ["Biscoe", "Biscoe", "Dream", None], "bill_depth_mm": [14, 19, 14, 19]}), sep="\n")

# %% [markdown]
# An indicator of 10,000 words has 10,000 columns, and nearly all of their numbers are zero. An **embedding** instead
# gives each word a row of a few numbers in a table, and learns these numbers. The result is the product of indicator
# and table, but it is computed by looking the row up.

# %%
page.source(EmbeddingColumn)

# %% [markdown]
# Here the embedding learns one number per species, together with the weight of the bill depth. The species' number
# times its own weight is what the species adds to the mass:

# %%
RANDOM.seed(0)
features = DenseFeatures([depth, embedding_column(species, 1)], dtype="float64")
dense = trained(features, birds | {"body_mass_g": birds["body_mass_g"] / 1000}, everybody, SGD(0.1))
added = features.tables["species_embedding"].numpy()[:, 0] * dense.kernel.numpy()[1, 0]
{word: f"{more:+.2f} kg" for word, more in zip(("Adelie", "Chinstrap", "Gentoo"), added - added[0])}

# %% [markdown]
# The notebook *more/05_table* goes on with this table, from the file to a model that answers questions over HTTP.
#
# ### Without a check
#
# - An unknown species has three zeros. Give the indicator a fourth number that is 1 for "unknown". (Which argument of
#   `categorical_column_with_vocabulary_list` do you need?)
