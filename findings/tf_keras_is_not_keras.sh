#!/usr/bin/env bash
# keras.losses and tf.keras.losses are not one module under two names (tensorflow-cpu==2.21.0, keras==3.15.1): Keras has
# the functions mean_squared_error, mean_absolute_error and kl_divergence there and neither mse nor mae; TensorFlow's has
# mse, mae and kld and none of the long names. Both have hinge. The texts "mse" and "mean_squared_error" name one function,
# and tf.keras.Model is keras.Model. So `from keras.losses import mean_squared_error` fails under the name
# that most books print, `tf.keras.losses.mean_squared_error`.
#
# A good guess: since TensorFlow 2.16 tf.keras is Keras 3, so every name of one is there in the other.
#
# Output:
#   models are one class: True
#   keras.losses    mean_squared_error True   mse False
#   tf.keras.losses mean_squared_error False  mse True
#   hinge in both: True
#   get("mse") is get("mean_squared_error"): True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "tensorflow-cpu==2.21.0" "keras==3.15.1"
cat >"$folder/names.py" <<'PYTHON'
import keras
import tensorflow as tf

assert keras.__version__ == "3.15.1" and tf.__version__ == "2.21.0"
print("models are one class:", tf.keras.Model is keras.Model)
for name, module in (("keras.losses   ", keras.losses), ("tf.keras.losses", tf.keras.losses)):
    long, short = hasattr(module, "mean_squared_error"), hasattr(module, "mse")
    print(f"{name} mean_squared_error {long!s:<5}  mse {short}")
print("hinge in both:", hasattr(keras.losses, "hinge") and hasattr(tf.keras.losses, "hinge"))
same = keras.losses.get("mse") is keras.losses.get("mean_squared_error")
print('get("mse") is get("mean_squared_error"):', same)
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/names.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
