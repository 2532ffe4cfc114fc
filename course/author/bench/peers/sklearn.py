"""scikit-learn: its multilayer perceptron. (SGDRegressor takes one row a step: that is other work.)"""

import warnings

import numpy as np
import sklearn
from sklearn.neural_network import MLPClassifier, MLPRegressor

from course.author.bench.formulas import EPSILON
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "scikit-learn", sklearn.__version__, ["scikit-learn"]
warnings.filterwarnings("ignore", module="sklearn")


def begin_anew(model, work):
    """Give a model its first weights, as if the step that made its variables had not been."""
    for own, w in zip(model.coefs_, work.weights[::2], strict=True):
        own[...] = w
    for own, b in zip(model.intercepts_, work.weights[1::2], strict=True):
        own[...] = b[0]
    optimizer = model._optimizer
    if work.optimizer == "adam":
        optimizer.t = 0
        for moment in (*optimizer.ms, *optimizer.vs):
            moment[...] = 0


def fit(work):
    """Epochs by partial_fit. Its squared error is half of ours: the rate is doubled."""
    classes = {} if work.loss == "mse" else {"classes": np.arange(max(2, work.y.shape[1]))}
    y = work.y.argmax(1) if work.loss == "cross_entropy" else work.y[:, 0]
    if work.loss == "mse" and work.optimizer == "adam":
        raise NotImplementedError("not written for scikit-learn")
    model = (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=[w.shape[1] for w in work.weights[:-2:2]],
        solver=work.optimizer,
        momentum=0.0,
        alpha=0.0,
        batch_size=work.batch,
        learning_rate_init=work.rate * (1 if classes else 2),
        epsilon=EPSILON,
        shuffle=False,
    )
    model.partial_fit(work.x[: work.batch], y[: work.batch], **classes)  # makes its variables
    begin_anew(model, work)

    def epoch(order):
        model.partial_fit(work.x[order], y[order])
        return model.loss_curve_[-1] * (1 if classes else 2)

    def whole(epochs):
        model.shuffle = True
        for _ in range(epochs):
            model.partial_fit(work.x, y)
        model.shuffle = False

    def weights():
        both = zip(model.coefs_, model.intercepts_, strict=True)
        return [part for w, b in both for part in (w, b[None])]

    return Trainer(epoch, weights, whole)


MODES = {"MLP fit": ("fit", fit), "MLP fit again": ("again", lambda work: fit(work)._replace(fit=None))}
