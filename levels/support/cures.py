"""What to write instead of a method or a function of NumPy that a tensor does not have. Notebook 03 uses it."""

# what to write: "cure: names", of NumPy and PyTorch, as methods of a tensor or as functions of it
INSTEAD = """reduce_sum(x): sum; reduce_mean(x): mean average; exp(x): exp; log(x): log; sqrt(x): sqrt
clip(x, low, high): clip clamp; nn.relu(x): relu; nn.sigmoid(x): sigmoid; x * x: square pow; x @ w: dot matmul mm
x.numpy().tolist(): tolist; math.prod(x.shape): size numel nbytes; constant(x.numpy()): copy clone
GradientTape, whose gradient(loss, x) gives it: grad requires_grad requires_grad_"""
# the same, with functions of levels_more.low_level
MORE = """reduce_max(x): max amax; reduce_min(x): min amin; argmax(x): argmax; argmin(x): argmin; reduce_std(x): std
reduce_variance(x): var; reduce_any(x): any; reduce_all(x): all; transpose(x): T t transpose permute swapaxes
reshape(x, shape): reshape view flatten ravel; squeeze(x): squeeze; expand_dims(x, axis): unsqueeze expand_dims
cast(x, dtype): astype type float double long bool; stop_gradient(x): detach; tanh(x): tanh; softmax(x): softmax
absolute(x): absolute; concat([x, y]): concatenate hstack vstack; stack([x, y]): stack; where(mask, x, y): where"""


def cures(text, place=""):
    """Return {name: what to write} of such a text."""
    rows = [row.split(": ") for row in text.replace("\n", "; ").split("; ")]
    return {name: cure + place for cure, names in rows for name in names.split()}


CURES = cures(INSTEAD) | cures(MORE, " of levels_more.low_level")
