# %% [markdown]
# # 05 more · Estimators for scikit-learn
#
# **In this notebook a class of ours follows the rules of scikit-learn, and then works with all of its tools.**
#
# You need notebook 05 (`Sequential`, `fit`) for this. The code is that of `levels_more/high_level/sklearn.py`. Nothing
# is exported.
#
# It uses scikit-learn, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_scikit_learn", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
# The imports of this notebook: you may skip this cell.
import numpy as np

from course import tasks
from course.reader import checks
from course.reader.figures import page
from levels_more.high_level.sklearn import DNNClassifier, DNNRegressor, Estimator, LinearRegressor

task = tasks.linear()

# %% [markdown]
# ## Three estimators (27 min)
#
# scikit-learn is the other great library of the field. Its pipelines, searches and scores work with every
# **estimator**, a class with `fit`, `predict` and a few rules. The rules are written down as tests. If a class of ours
# passes them, we can use all of these tools and need not write any of them.
#
# The constructor of an estimator only stores its arguments; `fit` makes the model. By a convention of scikit-learn, the
# names of what `fit` has found end in an underscore. The following class holds what our three estimators share. `net`
# makes a model. `train` fits it, and stops when it no longer improves, with the `EarlyStopping` of `05_callbacks`. The
# two methods with underscores are for copies and pickles. These cannot contain a compiled program, so they keep the
# weights and make the net anew.

# %%
page.source(Estimator)

# %% [markdown]
# The classifier chooses one of two or more classes. Its model returns logits, which scikit-learn calls the decision
# function: the class with the largest logit is the answer. For two classes one logit is enough: if it is above zero,
# the answer is the second class.

# %%
page.source(DNNClassifier)

# %% [markdown]
# Its line `class` has an order that matters: `ClassifierMixin` stands before `BaseEstimator`, from which `Estimator` is
# made. The other way round, the class counts as a classifier up to scikit-learn 1.5, and no longer since 1.6. There is
# no error. But `cross_val_score` then cuts its folds without regard to the classes. Here is a small classifier, in both
# orders, on thirty rows that lie sorted by their three classes:

# %%
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.model_selection import cross_val_score


class Nearest:
    def fit(self, x, y):
        self.classes_ = np.unique(y)
        self.means = np.array([x[y == each].mean(0) for each in self.classes_])
        return self

    def predict(self, x):
        return self.classes_[((x[:, None] - self.means) ** 2).sum(-1).argmin(-1)]


class MixinFirst(Nearest, ClassifierMixin, BaseEstimator):
    pass


class MixinLast(Nearest, BaseEstimator, ClassifierMixin):
    pass


easy, kinds = np.eye(3).repeat(10, axis=0), np.arange(3).repeat(10)
for kind in (MixinFirst, MixinLast):
    scores = cross_val_score(kind(), easy, kinds, cv=3)
    print(f"{kind.__name__:10} a classifier: {is_classifier(kind())!s:5}  right in three folds: {scores}")

# %% [markdown]
# With its mixin last, each fold asks for a class that the other two folds do not have.
#
# The regressor predicts a number. But suppose that this is a mass in grams, about 4,200. A step of Adam is about as
# long as the learning rate, 0.01, whatever the gradient. So a bias would need 420,000 steps to reach the mean. The
# regressor therefore learns to predict y minus its mean, divided by its standard deviation. Afterwards it puts both
# numbers into its last layer.

# %%
page.source(DNNRegressor)

# %% [markdown]
# Without hidden layers, the regressor is a linear regression. Its weights get the names that scikit-learn uses. For
# this task the best solution is known, so the class warns you if it misses it.

# %%
page.source(LinearRegressor)

# %% [markdown]
# Do the three classes follow the rules? scikit-learn has more than fifty tests for an estimator. They check, for
# example, that it gives the same result twice, refuses NaN, can be cloned and pickled, and accepts lists, tables and
# class names. We run all of them. (Many of them train on small tables of noise. Our classes rightly warn there that
# training did not converge, and we silence these warnings.)

# %%
import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

for kind in (LinearRegressor, DNNClassifier, DNNRegressor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        checked = [check["status"] for check in check_estimator(kind(), on_skip=None)]
    print(f"{kind.__name__}: more than 50 checks: {len(checked) > 50}, failed: {checked.count('failed')}")

# %% [markdown]
# **A good place to stop.** Three estimators follow all the rules. Next you see how good their answers are.
#
# ## Compared with scikit-learn's own (11 min)
#
# Now we compare ours with scikit-learn's. Its `LinearRegression` solves the equations; ours uses gradient descent, and
# arrives at the same place. R² is the share of the variance of y that the prediction explains; 1 is the maximum.

# %%
from sklearn.linear_model import LinearRegression

for estimator in (LinearRegression(), LinearRegressor(random_state=1)):
    fitted = estimator.fit(task.x, task.y[:, 0])
    r2 = fitted.score(task.x_test, task.y_test[:, 0])
    print(f"{type(fitted).__name__:17} {fitted.coef_.round(2)}  R² on the test rows {r2:.3f}")

# %% [markdown]
# scikit-learn has its own nets, too. We compare on handwritten digits of 8 by 8 pixels, in ten classes. Both nets have
# 100 relus, the same learning rate and the same batch size. Both set a tenth of the rows aside to decide when to stop.

# %%
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

points, digits = load_digits(return_X_y=True)
rows, test, truth, test_truth = train_test_split(points / 16.0, digits, random_state=1, stratify=digits)
alike = {"batch_size": 100, "early_stopping": True, "random_state": 1}
theirs = MLPClassifier((100,), learning_rate_init=0.003, **alike).fit(rows, truth)
ours = DNNClassifier((100,), learning_rate=0.003, **alike).fit(rows, truth)
for net in (theirs, ours):
    print(f"{type(net).__name__:13} {net.score(test, test_truth):.2f} right")

# %% [markdown]
# Next come the penguins, this time as they were measured, in millimetres and grams. In each of five runs, the
# classifier learns from four fifths of them and predicts the rest.

# %%
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

complete = [row for row in tasks.penguins() if None not in row]
measures, sexes = np.array([row[:4] for row in complete]), np.array([row[4] for row in complete])
folds = StratifiedKFold(5, shuffle=True, random_state=1)
print(measures[0], sexes[0])

# %% tags=["hide-input"]
# a question: run me
checks.predict(
    "05-scikit-learn-raw",
    "A net with hidden layers of 4 and 8 relus gets these raw measures. For what share of the penguins is its answer right?",
    choices=["0.5", "0.7", "0.9"],
)

# %%
coin = DNNClassifier(random_state=1)
print(f"share of right answers: {cross_val_score(coin, measures, sexes, cv=folds).mean():.1f}")
print("fitted to all penguins, it answers:", *np.unique(coin.fit(measures, sexes).predict(measures)))

# %%
checks.answer_to("05-scikit-learn-raw")

# %% [markdown]
# The cure is to standardise first. In scikit-learn, a standardiser and a classifier make a **pipeline**, which is an
# estimator, too. In each run it takes the means only from the rows that it learns from. Which net is best? A **grid
# search** tries them all, each with and without the standardiser.

# %%
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pipeline = make_pipeline(StandardScaler(), DNNClassifier(random_state=1))
grid = {"dnnclassifier__hidden_units": [(), (4, 8), (16,)], "standardscaler": ["passthrough", StandardScaler()]}
search = GridSearchCV(pipeline, grid, cv=folds).fit(measures, sexes)
for tried, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
    scaler, units = tried["standardscaler"], tried["dnnclassifier__hidden_units"]
    print(f"{'raw' if scaler == 'passthrough' else 'standardised':13} {str(units):8} {score:.1f} right")

# %% [markdown]
# With standardised inputs about nine of ten answers are right for every net, even for the one without hidden layers,
# which is a logistic regression. The nets differ by a few points, about as much as the runs differ among themselves.
# That is a good reason for a grid search: it also tries the simple models that we might not have tried.
