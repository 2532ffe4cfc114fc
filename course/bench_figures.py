"""The picture of `python3 -m course bench`."""

from course.figures import GREY, HUES, styled

COLORS = {  # one a library; that of `levels` is black, because its levels have their own
    "NumPy": "#8A8A8A",
    "PyTorch": "#D55E00",
    "TensorFlow": "#E69F00",
    "JAX": "#0072B2",
    "scikit-learn": "#CC79A7",
    "tinygrad": "#56B4E9",
    "micrograd": "#009E73",
}
MARKS = {"by hand": "o", "eager": "s", "step": "^", "epoch": "D", "fit": "*"}


def raced(results):
    """Each training as a line of marks from quick to slow."""
    return lines_of_marks([result for result in results if result.case.section == "training" and result.seconds])
