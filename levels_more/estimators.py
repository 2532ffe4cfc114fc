"""Models in the company of scikit-learn: estimators that make and fit a model."""

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from levels.high_level import Sequential
from levels.mid_level import RANDOM, Adam, BinaryCrossentropy, Dense
from levels_more.checks import expect


def expect_rows(*arrays):
    """Raise TypeError for what holds no rows at all. What is wrong with others scikit-learn says."""
    for values in arrays:
        other = isinstance(values, str | complex) or type(values) is dict or callable(values) or type(values) is object
        expect(not other, "X or y", values, "rows of numbers")


class Estimator(BaseEstimator):
    """Fits a net with one output, in float64, by Adam."""

    hidden_units = ()

    def net(self):
        """A new model: relus, and one linear unit at the end."""
        net = Sequential([*(Dense(units, "relu") for units in self.hidden_units), Dense(1)])
        net.build((None, self.n_features_in_), "float64")
        return net

    def train(self, x, y, loss):
        """Make a model and fit it to x [rows, features] and y [rows], from weights drawn by `random_state`."""
        seed, before = int(check_random_state(self.random_state).randint(2**31)), RANDOM.getstate()
        RANDOM.seed(seed)
        try:
            self.model_ = self.net()
        finally:
            RANDOM.setstate(before)
        self.model_.compile(Adam(self.learning_rate), loss)
        history = self.model_.fit(x, y[:, None], self.batch_size, self.epochs, verbose=0, seed=seed)
        self.loss_curve_ = history.history.get("loss", [])
        return self

    def predicted(self, x):
        """What the model gives for x, [rows]."""
        check_is_fitted(self)
        expect_rows(x)
        return self.model_.predict(validate_data(self, x, dtype=np.float64, reset=False))[:, 0]

    def __getstate__(self):
        """What is copied and pickled: the weights in the place of the model."""
        state = super().__getstate__()
        return state | {"model_": state["model_"].get_weights()} if "model_" in state else state

    def __setstate__(self, state):
        super().__setstate__(state)
        if "model_" in state:
            self.model_ = self.net()
            self.model_.set_weights(state["model_"])


class LinearRegressor(RegressorMixin, Estimator):
    """A linear regression by gradient descent on the mean squared error. Wants standardised features."""

    def __init__(self, learning_rate=0.01, epochs=100, batch_size=32, random_state=None):
        self.learning_rate, self.epochs, self.batch_size = learning_rate, epochs, batch_size
        self.random_state = random_state

    def fit(self, X, y):
        """X [rows, features], y [rows]. Leaves `coef_`, `intercept_` and `loss_curve_`."""
        expect_rows(X, y)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self.train(X, y.astype(np.float64), "mse")
        kernel, bias = self.model_.get_weights()
        self.coef_, self.intercept_ = kernel[:, 0], float(bias[0, 0])
        return self

    def predict(self, X):
        """One number for each row."""
        return self.predicted(X)


class DNNClassifier(ClassifierMixin, Estimator):
    """A net for two classes, with `hidden_units` relus in each hidden layer. Wants standardised features."""

    def __init__(self, hidden_units=(4, 8), learning_rate=0.01, epochs=100, batch_size=32, random_state=None):
        self.hidden_units, self.learning_rate = hidden_units, learning_rate
        self.epochs, self.batch_size, self.random_state = epochs, batch_size, random_state

    def fit(self, X, y):
        """X [rows, features], y [rows] of two classes, numbers or names. Leaves `classes_` and `loss_curve_`.

        Raises ValueError for another number of classes.
        """
        expect_rows(X, y)
        X, y = validate_data(self, X, y, dtype=np.float64)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            raise ValueError(f"DNNClassifier: y holds one class, {self.classes_[0]!r}; expected two")
        return self.train(X, labels.astype(np.float64), BinaryCrossentropy(from_logits=True))

    def decision_function(self, X):
        """The logit of the second class for each row."""
        return self.predicted(X)

    def predict_proba(self, X):
        """The probabilities of both classes, [rows, 2]."""
        logits = self.predicted(X)
        return expit(np.stack([-logits, logits], axis=1))

    def predict(self, X):
        """The likelier class of each row."""
        second = self.predicted(X) > 0.0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
