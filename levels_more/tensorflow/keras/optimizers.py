"""`tf.keras.optimizers`."""

from types import SimpleNamespace

from levels.mid_level import SGD, Adam, AdamW, CosineDecay, ExponentialDecay, Optimizer, PiecewiseConstantDecay, RMSprop  # noqa: F401

schedules = SimpleNamespace(
    CosineDecay=CosineDecay, ExponentialDecay=ExponentialDecay, PiecewiseConstantDecay=PiecewiseConstantDecay
)
