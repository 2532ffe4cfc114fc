"""`tf.keras.callbacks`."""

from levels.high_level import (  # noqa: F401
    Callback, CSVLogger, EarlyStopping, History, LearningRateScheduler, ModelCheckpoint, ReduceLROnPlateau, TensorBoard,
    TerminateOnNaN
)  # fmt: skip
