"""Optimizers: how a variable changes, given its gradient."""

# Built from notebooks/04_mid_level.ipynb: edit there, then run its last cell.


class SGD:
    """w ← w - learning_rate·dw"""

    def __init__(self, learning_rate=0.01):
        if not learning_rate > 0:
            raise ValueError(f"SGD: learning_rate is {learning_rate}; expected a positive number")
        self.learning_rate = float(learning_rate)

    def apply_gradients(self, grads_and_vars):
        for gradient, variable in grads_and_vars:
            variable.assign(variable - self.learning_rate * gradient)
