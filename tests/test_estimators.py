"""Level 5's estimators keep scikit-learn's rules, and load it on first use only."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported: without it one check is skipped

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from course import build, tasks
from levels.high_level import DNNClassifier, LinearRegressor
from levels.mid_level import RANDOM

MASS, SEX = tasks.penguins_mass(), tasks.penguins_sex()
NAMES = np.where(SEX.y[:, 0] == 1.0, "male", "female")


@parametrize_with_checks([LinearRegressor(), DNNClassifier()])
def test_scikit_learn_accepts_it(estimator, check):
    """All of scikit-learn's own checks, which fit an estimator some two hundred times."""
    check(estimator)


def test_the_linear_regressor_finds_the_least_squares():
    ours = LinearRegressor(epochs=400, learning_rate=0.003, random_state=0).fit(MASS.x, MASS.y[:, 0])
    exact = LinearRegression().fit(MASS.x, MASS.y[:, 0])
    np.testing.assert_allclose(ours.coef_, exact.coef_, atol=0.02)
    assert ours.intercept_ == pytest.approx(exact.intercept_, abs=0.02) and isinstance(ours.intercept_, float)
    np.testing.assert_allclose(ours.predict(MASS.x_test), MASS.x_test @ ours.coef_ + ours.intercept_, rtol=1e-12)
    assert ours.n_features_in_ == 3 and len(ours.loss_curve_) == 400 and ours.loss_curve_[-1] < ours.loss_curve_[0]
    assert ours.score(MASS.x_test, MASS.y_test[:, 0]) == pytest.approx(
        exact.score(MASS.x_test, MASS.y_test[:, 0]), abs=0.01
    )


def test_the_classifier_says_names_and_probabilities():
    net = DNNClassifier(hidden_units=(8,), random_state=0).fit(SEX.x, NAMES)
    assert net.classes_.tolist() == ["female", "male"] and len(net.loss_curve_) == 100
    z, p = net.decision_function(SEX.x_test), net.predict_proba(SEX.x_test)
    np.testing.assert_allclose(p, np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], 1), rtol=1e-12)
    assert net.predict(SEX.x_test).tolist() == ["male" if logit > 0 else "female" for logit in z]
    assert net.score(SEX.x_test, np.where(SEX.y_test[:, 0] == 1.0, "male", "female")) > 0.85


def test_without_hidden_layers_it_is_a_logistic_regression():
    net = DNNClassifier(hidden_units=(), epochs=300, random_state=0).fit(SEX.x, NAMES)
    exact = LogisticRegression(C=np.inf).fit(SEX.x, NAMES)
    assert np.abs(net.predict_proba(SEX.x_test) - exact.predict_proba(SEX.x_test)).max() < 0.05


@pytest.mark.parametrize("estimator", [LinearRegressor(epochs=3), DNNClassifier(epochs=3)])
def test_random_state_repeats_and_leaves_no_trace(estimator):
    before = RANDOM.getstate()
    runs = [clone(estimator).set_params(random_state=state).fit(SEX.x, SEX.y[:, 0]).loss_curve_ for state in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2] and RANDOM.getstate() == before


@pytest.mark.parametrize("estimator", [LinearRegressor(epochs=3), DNNClassifier(epochs=3)])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda fitted: pickle.loads(pickle.dumps(fitted))])
def test_copies_predict_the_same(estimator, again):
    fitted = clone(estimator).fit(SEX.x, SEX.y[:, 0])
    other = again(fitted)
    assert (other.predict(SEX.x_test) == fitted.predict(SEX.x_test)).all() and other.model_ is not fitted.model_
    assert (again(other).predict(SEX.x_test) == fitted.predict(SEX.x_test)).all()


def test_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), DNNClassifier(epochs=30, random_state=0))
    x = SEX.x * [5.0, 2.0, 14.0, 800.0] + [44.0, 17.0, 200.0, 4200.0]
    assert cross_val_score(pipeline, x, NAMES, cv=3).mean() > 0.8
    grid = {"dnnclassifier__hidden_units": [(), (4,)], "dnnclassifier__learning_rate": [1e-6, 0.03]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(x, NAMES)
    assert search.best_params_["dnnclassifier__learning_rate"] == 0.03 and search.best_score_ > 0.8


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: DNNClassifier().fit(MASS.x, [0, 1, 2] * 90), "Only binary classification is supported"),
        (lambda: DNNClassifier().fit(SEX.x, ["male"] * len(SEX.x)), "one class, .*male.*; expected two"),
        (lambda: DNNClassifier(hidden_units=(0,)).fit(SEX.x, NAMES), "units is 0"),
        (lambda: LinearRegressor().fit(SEX.x, SEX.y[:5, 0]), "inconsistent numbers of samples"),
        (lambda: LinearRegressor(epochs=1).fit(SEX.x, SEX.y[:, 0]).predict(SEX.x[:, :3]), "expecting 4 features"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


LATE = "sklearn", "scipy", "tensorboardX", "safetensors", "matplotlib", "numba"
FRESH = f"""
import json, sys, time
begun = time.process_time()
import levels.high_level as h
seconds = time.process_time() - begun
early = [name for name in {LATE} if name in sys.modules]
{{}}
print(json.dumps([seconds, early, *(f"levels_more.{{{{room}}}}" in sys.modules for room in ("callbacks", "estimators"))]))
"""


def fresh(code):
    """Seconds that the import took, what it loaded too early, and which rooms are loaded after the code."""
    command = [sys.executable, "-c", FRESH.format(code)]
    done = subprocess.run(command, env=build.environment(build.ROOT), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_scikit_learn_and_the_loggers_are_loaded_on_first_use_only():
    runs = [fresh("h.EarlyStopping, h.TensorBoard, dir(h)") for _ in range(3)]
    assert [run[1:] for run in runs] == [[[], True, False]] * 3
    assert min(seconds for seconds, *_ in runs) < 0.5
    assert fresh("h.DNNClassifier()")[1:] == [[], False, True]  # nor the callbacks
