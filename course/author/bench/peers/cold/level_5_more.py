"""The line on level 5 of levels_more: `fit`."""

import sys

import numpy as np

from levels_more.high_level import Sequential
from levels_more.mid_level import SGD, Dense

table = np.loadtxt(sys.argv[1], delimiter=",", skiprows=1, usecols=(0, 1, 2))
x, y = table[:, :2], table[:, 2:]
model = Sequential([Dense(1)])
model.build(x.shape, "float64")
model.set_weights([np.zeros((2, 1)), np.zeros((1, 1))])
model.compile(SGD(0.0005), "mse")
model.fit(x, y, batch_size=10, epochs=20, verbose=0, shuffle=False)
print(model.evaluate(x, y))
