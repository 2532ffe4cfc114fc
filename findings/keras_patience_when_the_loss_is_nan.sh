#!/usr/bin/env bash
# Keras' EarlyStopping with patience=2, where the loss is NaN in the first epoch and then falls, 9, 8, 7, 6, 5
# (keras==3.6.0; keras==3.15.1): 3.6.0 goes on, 3.15.1 stops after three epochs. The older one began with infinity as
# the best loss, the newer one takes what the first epoch gave (keras/src/callbacks/monitor_callback.py), and no number
# is less than NaN. A loss that stays NaN ends the training after two epochs in 3.6.0, after three in 3.15.1.
#
# A good guess: NaN is no improvement, and each number is one: the training goes on while the loss falls, in every
# release.
#
# Output:
#   3.6.0 [nan, nan, nan, nan] stopped after 2
#   3.6.0 [1.0, 1.0, 1.0, 1.0] stopped after 3
#   3.6.0 [nan, 9.0, 8.0, 7.0] went on for 6
#   3.15.1 [nan, nan, nan, nan] stopped after 3
#   3.15.1 [1.0, 1.0, 1.0, 1.0] stopped after 3
#   3.15.1 [nan, 9.0, 8.0, 7.0] stopped after 3
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/ask.py" <<'PYTHON'
import keras

nan = float("nan")
for losses in ([nan] * 9, [1.0] * 9, [nan, 9.0, 8.0, 7.0, 6.0, 5.0]):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 1))
    model.compile(loss="mse")
    stop = keras.callbacks.EarlyStopping("loss", patience=2, mode="min")
    stop.set_model(model)
    stop.on_train_begin()
    epochs = 0
    while epochs < len(losses) and not model.stop_training:
        stop.on_epoch_end(epochs, {"loss": losses[epochs]})
        epochs += 1
    print(keras.__version__, losses[:4], "stopped after" if model.stop_training else "went on for", epochs)
PYTHON
ask() { # the keras, and a jax and a numpy of its time (its numpy backend takes a few functions from jax)
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/python" -m pip install --quiet "$@"
    KERAS_BACKEND=numpy "$folder/$1/bin/python" "$folder/ask.py" 2>/dev/null
}
{
    ask "keras==3.6.0" "jax==0.6.2" "numpy==2.0.2"
    ask "keras==3.15.1" "jax==0.10.2" "numpy==2.4.6"
} | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
