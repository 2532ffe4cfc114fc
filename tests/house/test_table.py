"""One table from its file to an answer: numbers, words and gaps through `fit`, `evaluate`, `save` and a fresh process."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss, precision_score, recall_score
from sklearn.model_selection import train_test_split

from course import build, tasks
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

NUMBERS, WORDS = ["bill_depth_mm", "flipper_length_mm", "body_mass_g"], ["sex", "island"]
TABLE = pd.read_csv(tasks.DATA / "penguins.csv")
RARE = (TABLE.species == "Chinstrap").astype(int)
SPLIT = train_test_split(TABLE[NUMBERS + WORDS], RARE, test_size=86, stratify=RARE, random_state=3)
ASKED = """
import json, sys
from levels_more.saving import load_model
print(json.dumps(load_model(sys.argv[1]).predict(json.loads(sys.argv[2]))[:, 0].tolist()))
"""


def trained(**options):
    """A small net of the table's columns, fitted to three quarters of the rows; and its History."""
    x, _, y, _ = SPLIT
    columns = [numeric_column(name, default_value=x[name].mean()) for name in NUMBERS]
    for name in WORDS:
        words = sorted(x[name].dropna().unique())
        columns.append(indicator_column(categorical_column_with_vocabulary_list(name, words)))
    RANDOM.seed(1)
    features = DenseFeatures(columns, dtype="float64")
    model = Sequential([features, BatchNormalization(momentum=0.9), Dense(8, "relu"), Dense(1, "sigmoid")])
    model.compile(Adam(0.01), "binary_crossentropy", metrics=["accuracy", "precision", "recall"])
    stop = EarlyStopping(patience=20, restore_best_weights=True)
    held_out = {"validation_data": (dict(SPLIT[1]), SPLIT[3]), "callbacks": [stop]}
    return model, model.fit(dict(x), y, epochs=300, seed=1, verbose=0, **held_out, **options)


@pytest.fixture(scope="module")
def weighted():
    return trained(class_weight={0: 1.0, 1: 4.0})


def test_the_numbers_that_evaluate_tells_are_those_of_what_predict_says(weighted):
    model, history = weighted
    _, x, _, y = SPLIT
    chance = model.predict(dict(x))[:, 0]
    said, told = chance > 0.5, model.evaluate(dict(x), y, return_dict=True)
    right = {"loss": log_loss(y, chance), "accuracy": accuracy_score(y, said)}
    right |= {"precision": precision_score(y, said), "recall": recall_score(y, said)}
    assert told == pytest.approx(right, abs=1e-12)
    assert told["loss"] == pytest.approx(min(history.history["val_loss"]), abs=1e-12), "the best epoch's weights"
    assert model.evaluate(x, y) == pytest.approx([*right.values()], abs=1e-12), "a DataFrame is a dict of columns"


def test_a_weight_on_the_rare_class_finds_more_of_it(weighted):
    _, x, _, y = SPLIT
    plain, _ = trained()
    counted = [
        (model.evaluate(dict(x), y, return_dict=True), model.predict(x).mean()) for model in (plain, weighted[0])
    ]
    (before, chance), (after, higher) = counted
    assert after["recall"] > before["recall"] + 0.1 and after["precision"] < before["precision"]
    assert higher > chance + 0.05, "a row of the rare class counts as four"


def test_a_fresh_process_answers_the_same(weighted, tmp_path):
    model, _ = weighted
    model.save(tmp_path / "model")
    birds = {"bill_depth_mm": [18.4, None], "flipper_length_mm": [196, 190.5], "body_mass_g": [3700, 3500]}
    birds |= {"sex": ["female", None], "island": ["Dream", "Atlantis"]}
    command = [sys.executable, "-c", ASKED, str(tmp_path / "model"), json.dumps(birds)]
    done = subprocess.run(command, env=build.environment(build.ROOT), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == model.predict(birds)[:, 0].tolist()
    filled = birds | {
        "bill_depth_mm": [18.4, SPLIT[0].bill_depth_mm.mean()],
        "sex": ["female", ""],
        "island": ["Dream", np.nan],
    }
    assert model.predict(filled).tolist() == model.predict(birds).tolist(), "what a gap and a stranger become"
    for wrong, told in (
        ({"sex": [1, 2]}, "sex"),
        ({"body_mass_g": ["a", "b"]}, "body_mass_g"),
        ({"island": ["Dream"]}, "island"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            model.predict(birds | wrong)
    with pytest.raises((TypeError, ValueError), match="bill_depth_mm"):
        model.predict({name: values for name, values in birds.items() if name != "bill_depth_mm"})
