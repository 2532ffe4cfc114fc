"""Level 5's estimators keep scikit-learn's rules."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported: without it one check is skipped

import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from course import tasks
from levels_more.high_level import DNNClassifier, DNNRegressor, LinearRegressor

MASS, SEX = tasks.penguins_mass(), tasks.penguins_sex()
NAMES = np.where(SEX.y[:, 0] == 1.0, "male", "female")
BIRDS = pd.read_csv(tasks.DATA / "penguins.csv")
KINDS = LinearRegressor, DNNClassifier, DNNRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # many of its tables are noise
@parametrize_with_checks([kind() for kind in KINDS])
def test_scikit_learn_accepts_it(estimator, check):
    """All of scikit-learn's own checks, which fit an estimator some two hundred times. None is declared to fail."""
    check(estimator)


def test_weights_give_weighted_least_squares_and_weighted_scores():
    weight = np.random.RandomState(0).uniform(0.0, 3.0, len(MASS.x))
    y = np.where(weight > 2.0, MASS.y[:, 0], MASS.y[:, 0] * 0.5)  # so that it matters
    downhill = LinearRegressor(batch_size=len(y), epochs=4000, n_iter_no_change=4000, random_state=0)
    ours, more, plain = (clone(downhill).fit(MASS.x, y, w) for w in (weight, 7.0 * weight, None))
    columns = np.c_[MASS.x, np.ones(len(y))]
    for found, w in ((ours, weight), (plain, np.ones(len(y)))):
        exact = np.linalg.solve(columns.T @ (w[:, None] * columns), columns.T @ (w * y))
        np.testing.assert_allclose([*found.coef_, found.intercept_], exact, atol=1e-6)
        np.testing.assert_allclose(found.predict(MASS.x), MASS.x @ found.coef_ + found.intercept_, rtol=1e-12)
        assert isinstance(found.intercept_, float) and found.n_iter_ == len(found.loss_curve_)
    np.testing.assert_allclose(more.predict(MASS.x), ours.predict(MASS.x), atol=1e-6)
    assert abs(plain.intercept_ - ours.intercept_) > 0.1
    error, spread = y - ours.predict(MASS.x), y - np.average(y, weights=weight)
    r2 = 1.0 - (weight @ error**2) / (weight @ spread**2)
    assert ours.score(MASS.x, y, weight) == pytest.approx(r2, abs=1e-12)
    net = DNNClassifier(random_state=0).fit(SEX.x, NAMES, np.where(NAMES == "male", 9.0, 1.0))
    said, even = net.predict(SEX.x), DNNClassifier(random_state=0).fit(SEX.x, NAMES).predict(SEX.x)
    assert (said == "male").sum() > (even == "male").sum() + 10, "nine times as bad to miss a male"
    share = np.average(said == NAMES, weights=np.arange(len(NAMES)))
    assert net.score(SEX.x, NAMES, np.arange(len(NAMES))) == pytest.approx(share, abs=1e-12)


def test_on_diabetes_the_linear_regressor_is_as_good_as_the_exact_one_or_warns():
    x, y = load_diabetes(return_X_y=True)
    for seed in range(5):
        a, b, c, d = train_test_split(x, y, random_state=seed)
        exact = LinearRegression().fit(a, c)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = LinearRegressor(random_state=seed).fit(a, c)
        assert exact.score(a, c) - ours.score(a, c) <= 0.01 and exact.score(b, d) - ours.score(b, d) <= 0.01
    told = r"LinearRegressor: its R² is 0.\d+ below that of least squares; give it more epochs"
    for options in ({"epochs": 20}, {"learning_rate": 1e-4}, {"n_iter_no_change": 1, "learning_rate": 10.0}):
        with pytest.warns(ConvergenceWarning, match=told):
            poor = LinearRegressor(random_state=0, **options).fit(x, y)
        assert LinearRegression().fit(x, y).score(x, y) - poor.score(x, y) > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping_sets_rows_aside_and_keeps_the_best_net(kind):
    y = NAMES if is_classifier(kind()) else SEX.x[:, 3]
    x = SEX.x[:, :3]
    net = kind(random_state=0, early_stopping=True, validation_fraction=0.25, n_iter_no_change=3).fit(x, y)
    losses = net.model_.history.history["val_loss"]
    assert net.n_iter_ == len(losses) == len(net.loss_curve_) < 400
    seed = np.random.RandomState(0)
    for shape in [w.shape for w in net.model_.get_weights()[::2]]:  # the weights come first
        seed.uniform(size=shape)
    kinds = y if is_classifier(net) else None
    _, aside, _, truth = train_test_split(x, y, test_size=0.25, random_state=int(seed.randint(2**31)), stratify=kinds)
    if is_classifier(net):
        loss = -np.log(net.predict_proba(aside)[np.arange(len(aside)), (truth == "male").astype(int)]).mean()
    else:
        loss = np.mean((net.predict(aside) - truth) ** 2) / y.var()
    assert loss == pytest.approx(min(losses[:-3]), abs=1e-4) and loss < losses[-1] + 1e-4


def test_the_classifier_tells_several_classes_apart():
    rows = BIRDS.dropna(subset="body_mass_g")
    x = StandardScaler().fit_transform(rows[list(tasks.MEASURES)])
    numbers = rows.species.map({"Adelie": 7, "Gentoo": -1, "Chinstrap": 3})
    for labels in (rows.species, rows.species.to_numpy(), numbers):
        net = DNNClassifier(random_state=0).fit(x, labels)
        assert net.classes_.tolist() == sorted(set(labels)) and net.score(x, labels) > 0.97
        z, p = net.decision_function(x), net.predict_proba(x)
        assert z.shape == p.shape == (342, 3)
        np.testing.assert_allclose(p, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), rtol=1e-12)
        assert (net.predict(x) == net.classes_[z.argmax(axis=1)]).all()
        truth = np.searchsorted(net.classes_, labels)
        assert -np.log(p[np.arange(342), truth]).mean() == pytest.approx(net.loss_curve_[-1], abs=0.01)
    flags = DNNClassifier(random_state=0).fit(x, rows.species == "Gentoo")
    assert flags.predict(x).dtype == bool and flags.decision_function(x).shape == (342,)


def test_the_regressor_learns_y_in_any_unit():
    grams, kilograms = (DNNRegressor(random_state=0).fit(MASS.x, MASS.y[:, 0] * unit) for unit in (1000.0, 1.0))
    np.testing.assert_allclose(grams.predict(MASS.x_test), 1000.0 * kilograms.predict(MASS.x_test), rtol=1e-6)
    np.testing.assert_allclose(grams.model_.predict(MASS.x_test)[:, 0], grams.predict(MASS.x_test), rtol=0)
    assert kilograms.score(MASS.x_test, MASS.y_test[:, 0]) > 0.75 and kilograms.loss_curve_[-1] < 0.25
    flat = DNNRegressor(random_state=0).fit(MASS.x, np.full(len(MASS.x), 5.0))
    np.testing.assert_allclose(flat.predict(MASS.x), 5.0, atol=0.2)


def test_without_hidden_layers_it_is_a_logistic_regression():
    net = DNNClassifier(hidden_units=(), n_iter_no_change=400, random_state=0).fit(SEX.x, NAMES)
    exact = LogisticRegression(C=np.inf).fit(SEX.x, NAMES)
    assert np.abs(net.predict_proba(SEX.x_test) - exact.predict_proba(SEX.x_test)).max() < 0.05


def test_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), DNNClassifier(n_iter_no_change=3, random_state=0))
    x = SEX.x * [5.0, 2.0, 14.0, 800.0] + [44.0, 17.0, 200.0, 4200.0]
    assert cross_val_score(pipeline, x, NAMES, cv=3).mean() > 0.8
    grid = {"dnnclassifier__learning_rate": [1e-4, 0.03]}
    searches = []
    for backend, jobs in (("loky", 2), ("threading", 2)):
        with parallel_config(backend, n_jobs=jobs):
            searches.append(GridSearchCV(pipeline, grid, cv=3).fit(x, NAMES))
    assert searches[0].best_params_["dnnclassifier__learning_rate"] == 0.03 and searches[0].best_score_ > 0.8
    scores = [search.cv_results_["mean_test_score"].tolist() for search in searches]
    assert scores[0] == scores[1], "by processes and by threads, the same"
