# %% [markdown]
# # 05 more · In the company of scikit-learn
#
# **In this notebook a class of ours keeps fifty rules, and all of scikit-learn is ours.**
#
# It needs notebook 05 (`Sequential`, `fit`) and takes `levels_more/high_level/sklearn.py` apart. Nothing is exported. (The cell
# after the next one is folded. It imports what is used below.)
#
# It uses scikit-learn, which `python3 -m course setup` adds.

# %%
from course import build, figures

build.watch("more/05_scikit_learn", "sklearn")
figures.you_are_here(5)

# %% tags=["hide-input"]
import numpy as np

from course import tasks
from course.figures import page
from course.practice import checks
from levels_more.high_level.sklearn import DNNClassifier, DNNRegressor, Estimator, LinearRegressor

task = tasks.linear()

# %% [markdown]
# ## In the company of scikit-learn (27 min)
#
# scikit-learn is the other great library of the field: its pipelines, searches and scores work with every
# **estimator**, a class with `fit`, `predict` and a few rules. The rules are written down as tests. If a class of ours
# keeps them, all of scikit-learn is ours, and we write none of it.
#
# An estimator's constructor stores its arguments and does no more; `fit` makes the model. By a convention of scikit-learn, what
# `fit` has found ends in an underscore. Here is what our three estimators share. `net` makes a model. `train` fits it, and
# stops when nothing comes of it any more: that is notebook `05_callbacks`' `EarlyStopping`. The two methods with underscores
# serve copies and pickles, which cannot hold a compiled program: they keep the weights and make the net anew.

# %%
page.source(Estimator)

# %% [markdown]
# The classifier says which of two or more classes. Its model gives logits, and these are what scikit-learn calls the
# decision function: the largest is the class. For two classes one logit is enough. Above zero it is the second class.

# %%
page.source(DNNClassifier)

# %% [markdown]
# The regressor gives a number. What if that is a mass in grams, about 4,200? A step of Adam is about as long as the learning
# rate, 0.01, whatever the gradient. So a bias would take 420,000 steps to the mean. The regressor therefore
# learns y in units of its own deviation from its mean, and puts both into its last layer afterwards.

# %%
page.source(DNNRegressor)

# %% [markdown]
# Without hidden layers this is a linear regression. Its weights get the names that scikit-learn gives them. Here we know the
# best there is, and say so where we miss it.

# %%
page.source(LinearRegressor)

# %% [markdown]
# Do they keep the rules? scikit-learn has some fifty tests for an estimator: that it repeats itself, refuses NaN,
# clones, survives a pickle, takes lists and tables and names as classes. We ask all of them. (Many are small tables of
# noise, of which ours rightly warn that they found no end: we silence that.)

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
# **A good place to stop.** Three estimators keep all the rules; what they are worth, their scores will say.
#
# ## Beside theirs (10 min)
#
# So now ours stand beside theirs. scikit-learn's `LinearRegression` solves the equations; ours goes downhill, and
# arrives at the same place. R² is the share of the variance of y that the prediction explains; 1 would be all.

# %%
from sklearn.linear_model import LinearRegression

for estimator in (LinearRegression(), LinearRegressor(random_state=1)):
    fitted = estimator.fit(task.x, task.y[:, 0])
    r2 = fitted.score(task.x_test, task.y_test[:, 0])
    print(f"{type(fitted).__name__:17} {fitted.coef_.round(2)}  R² on the test rows {r2:.3f}")

# %% [markdown]
# scikit-learn has nets of its own, too. Handwritten digits, 8 by 8 points each, are ten classes. Both nets have 100
# relus, the same learning rate and batches; a tenth of the rows is set aside to tell when to stop.

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
# And the penguins, in millimetres and grams this time, as they were measured. Five times the classifier learns from
# four fifths of them, and is asked about the rest.

# %%
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

complete = [row for row in tasks.penguins() if None not in row]
measures, sexes = np.array([row[:4] for row in complete]), np.array([row[4] for row in complete])
folds = StratifiedKFold(5, shuffle=True, random_state=1)
print(measures[0], sexes[0])

# %% tags=["hide-input"]
checks.predict(
    "A net with hidden layers of 4 and 8 relus gets these raw measures. Which share of the penguins does it get right?",
    "0.5",
    choices=["0.5", "0.7", "0.9"],
    because="""As many as a coin. Thousands of grams drown out the millimetres: they alone decide the sign of what goes into a
    first relu, so it is positive for all penguins or for none. After a few large steps three of the four are negative. A relu
    that gives 0 passes no gradient on: these three stay **dead**, and with what is left the net says the same of every
    penguin.""",
)

# %%
coin = DNNClassifier(random_state=1)
print(f"share of right answers: {cross_val_score(coin, measures, sexes, cv=folds).mean():.1f}")
print("fitted to all penguins, it says:", *np.unique(coin.fit(measures, sexes).predict(measures)))

# %% [markdown]
# The cure is to standardise first. In scikit-learn a standardiser and a classifier make a **pipeline**, which is one
# estimator again. In each fold it takes the means from the rows it learns from, and from no others. And which net? A
# **grid search** tries them all, with the standardiser and with nothing in its place.

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
# Standardised, about nine of ten are right, whatever the net; even with no hidden layer at all, where the classifier is a
# logistic regression. The few points between the nets are about as much as the folds differ
# among themselves. A search is a good way to find out, because it also tries what we would have been too proud to try.
