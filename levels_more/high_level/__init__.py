"""More of `fit`: callbacks, data of many kinds, models as graphs, scikit-learn."""
