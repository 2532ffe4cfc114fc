"""Estimators for scikit-learn, which make and fit a model."""

import warnings
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from levels.support.checks import check_bool, check_int
from levels_more import needed
from levels_more.checks import expect, several
from levels_more.high_level.callbacks import EarlyStopping
from levels_more.high_level.model import Sequential
from levels_more.mid_level.layers import Dense
from levels_more.mid_level.losses import BinaryCrossentropy, SparseCategoricalCrossentropy
from levels_more.mid_level.optimizers import Adam

with needed():
    from scipy.special import softmax
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

TOLERANCE = 1e-4  # a smaller fall of the loss does not count


def expect_rows(*arrays):
    """Raise TypeError for values that cannot be rows, such as text or a dict. scikit-learn checks all others."""
    for values in arrays:
        other = isinstance(values, str | complex) or type(values) is dict or callable(values) or type(values) is object
        expect(not other, "X, y or sample_weight", values, "rows of numbers")


class Estimator(BaseEstimator):
    """A net in float64, trained by Adam until the loss has not fallen for `n_iter_no_change` epochs in a row.

    With `early_stopping` that is the loss of a `validation_fraction` of the rows, held out of the training, and the
    best weights are restored. If all `epochs` are over before, there is a ConvergenceWarning.
    """

    def __init__(
        self,
        hidden_units: Sequence[int] = (4, 8),
        learning_rate: float = 0.01,
        epochs: int = 400,
        batch_size: int = 32,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.hidden_units = hidden_units
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change

    def net(self, start="zeros"):
        """A new model: hidden layers with relu, then one linear unit, or one for each class if there are over two."""
        units = several("hidden_units", self.hidden_units)
        classes = len(getattr(self, "classes_", ()))
        layers = [Dense(size, "relu", kernel_initializer=start) for size in units]
        net = Sequential([*layers, Dense(classes if classes > 2 else 1, kernel_initializer=start)])
        net.build((None, self.n_features_in_), "float64")
        return net

    def train(self, loss, x, y, weights=()):
        """Make a model, and fit it to x [rows, features] and y [rows]; weights: none, or one array [rows]."""
        random = check_random_state(self.random_state)

        def start(shape):  # like glorot_uniform, which draws from the shared generator
            return random.uniform(-1.0, 1.0, shape) * np.sqrt(6.0 / sum(shape))

        self.model_, seed, aside = self.net(start), int(random.randint(2**31)), []
        rows = [x, y[:, None], *weights]
        if check_bool("early_stopping", self.early_stopping):
            kinds = y if is_classifier(self) else None  # the same share of each class in both parts
            parts = train_test_split(*rows, test_size=self.validation_fraction, random_state=seed, stratify=kinds)
            rows = parts[::2]
            aside = parts[1::2]
        patience = check_int(1, "n_iter_no_change", self.n_iter_no_change)
        stop = EarlyStopping("val_loss" if aside else "loss", TOLERANCE, patience, "min", bool(aside))
        self.model_.compile(Adam(self.learning_rate), loss)
        options = {"validation_data": tuple(aside) or None, "callbacks": [stop], "seed": seed, "verbose": 0}
        options |= {"sample_weight": rows[2]} if weights else {}
        history = self.model_.fit(*rows[:2], self.batch_size, self.epochs, **options)
        self.loss_curve_ = history.history.get("loss", [])
        self.n_iter_ = len(self.loss_curve_)
        if told := self.unfinished(*rows):
            cure = "give it more epochs, another learning_rate, or standardised features"
            warnings.warn(f"{type(self).__name__}: {told}; {cure}", ConvergenceWarning, stacklevel=3)
        return self

    def weights(self, x, sample_weight):
        """[the weights of rows, scaled to mean 1], or [] for None. ValueError if all are zero or one is infinite."""
        if sample_weight is None:
            return []
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        if not 0.0 < weight.sum() < np.inf:
            raise ValueError(f"sample_weight sums to {weight.sum()}; expected finite weights, not all of them zero")
        return [weight / weight.mean()]

    def unfinished(self, *rows):
        """A message if the training did not converge, else ""."""
        return "" if self.model_.stop_training else f"its {self.epochs} epochs were over before the loss stood still"

    def predicted(self, x):
        """The model's outputs for x, [rows, units]."""
        check_is_fitted(self)
        expect_rows(x)
        return self.model_.predict(validate_data(self, x, dtype=np.float64, reset=False))

    def __getstate__(self):
        """The state for copies and pickles: the weights in place of the model."""
        state = super().__getstate__()
        return state | {"model_": state["model_"].get_weights()} if "model_" in state else state

    def __setstate__(self, state):
        super().__setstate__(state)
        if "model_" in state:
            self.model_ = self.net()
            self.model_.set_weights(state["model_"])


class DNNClassifier(ClassifierMixin, Estimator):
    """A net that classifies; its hidden layers have `hidden_units` relus. It needs standardised features."""

    def fit(self, X: "ArrayLike", y: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> Self:
        """X [rows, features], y [rows] of two or more classes, numbers or names; sample_weight [rows] weighs rows.

        Sets `classes_`, `model_`, `loss_curve_` and `n_iter_`. Raises ValueError for one class.
        """
        expect_rows(X, y, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            raise ValueError(f"DNNClassifier: y holds one class, {self.classes_[0]!r}; expected two or more")
        loss = BinaryCrossentropy if len(self.classes_) == 2 else SparseCategoricalCrossentropy
        return self.train(loss(from_logits=True), X, labels, self.weights(X, sample_weight))

    def decision_function(self, X: "ArrayLike") -> np.ndarray:
        """The logit of each class, [rows, classes]; for two classes the logit of the second, [rows]."""
        logits = self.predicted(X)
        return logits if logits.shape[1] > 1 else logits[:, 0]

    def predict_proba(self, X: "ArrayLike") -> np.ndarray:
        """The probability of each class, [rows, classes]."""
        logits = self.predicted(X)
        return softmax(logits if logits.shape[1] > 1 else np.hstack([0.0 * logits, logits]), axis=1)

    def predict(self, X: "ArrayLike") -> np.ndarray:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]


class DNNRegressor(RegressorMixin, Estimator):
    """A net that predicts a number; its hidden layers have `hidden_units` relus. It needs standardised features."""

    def fit(self, X: "ArrayLike", y: "ArrayLike", sample_weight: "ArrayLike | None" = None) -> Self:
        """X [rows, features], y [rows]; sample_weight [rows] weighs rows. Sets `model_`, `loss_curve_`, `n_iter_`.

        It trains on standardised y, because the length of Adam's steps does not depend on the unit of y.
        """
        expect_rows(X, y, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weights = self.weights(X, sample_weight)
        y = y.astype(np.float64)
        mean = np.average(y, weights=weights[0] if weights else None)
        deviation = np.sqrt(np.average((y - mean) ** 2, weights=weights[0] if weights else None)) or 1.0
        self.train("mse", X, (y - mean) / deviation, weights)
        *others, kernel, bias = self.model_.get_weights()
        self.model_.set_weights([*others, kernel * deviation, bias * deviation + mean])
        return self

    def predict(self, X: "ArrayLike") -> np.ndarray:
        """One number for each row."""
        return self.predicted(X)[:, 0]


class LinearRegressor(DNNRegressor):
    """A linear regression by gradient descent: a DNNRegressor without hidden layers. It needs standardised features."""

    def __init__(
        self,
        learning_rate: float = 0.01,
        epochs: int = 400,
        batch_size: int = 32,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ):
        given = learning_rate, epochs, batch_size, early_stopping, validation_fraction, n_iter_no_change, random_state
        super().__init__((), *given)

    coef_ = property(lambda self: self.model_.get_weights()[0][:, 0])
    intercept_ = property(lambda self: float(self.model_.get_weights()[1][0, 0]))

    def unfinished(self, x, y, weight=1.0):
        """A message if R² of these rows, whose y has variance 1, is over 0.01 below that of the best line, else ""."""
        if self.early_stopping:
            return super().unfinished()
        root, columns = np.sqrt(weight * np.ones(len(x)))[:, None], np.c_[x, np.ones(len(x))]
        best = columns @ np.linalg.lstsq(root * columns, root * y)[0]
        ours, theirs = (np.mean((root * (y - line)) ** 2) for line in (self.model_.predict(x), best))
        return f"its R² is {ours - theirs:.2g} below that of least squares" if ours - theirs > 0.01 else ""
