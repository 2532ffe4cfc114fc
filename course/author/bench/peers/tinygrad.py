"""tinygrad: lazy tensors, and the same step caught by TinyJit."""

from importlib.metadata import version

from tinygrad import Tensor, TinyJit

from course.author.bench.formulas import BETAS, corrected, loss, net, update
from course.author.bench.work import Trainer

NAME, VERSION, PACKAGES = "tinygrad", version("tinygrad"), ["tinygrad"]


class LIB:
    relu, sigmoid, clip, log, mean, sum, sqrt = (
        staticmethod(getattr(Tensor, name)) for name in ("relu", "sigmoid", "clip", "log", "mean", "sum", "sqrt")
    )
    log_softmax = staticmethod(Tensor.log_softmax)


def trainer(work, wrap):
    weights, betas = [Tensor(w).realize() for w in work.weights], BETAS[work.optimizer]
    moments = [[Tensor.zeros(*w.shape).contiguous().realize() for _ in betas] for w in weights]
    corrections = [Tensor([0.0]).contiguous().realize() for _ in betas]

    @wrap
    def step(rows, target):
        value = loss(LIB, work.loss, net(LIB, rows, weights), target)
        changes = [c.assign(corrected(beta, c)) for c, beta in zip(corrections, betas, strict=True)]
        for w, dw, mv in zip(weights, value.gradient(*weights), moments, strict=True):
            new, new_mv = update(LIB, work.rate, w, dw, mv, corrections)
            changes += [old.assign(tensor) for old, tensor in zip((*mv, w), (*new_mv, new), strict=True)]
        return value.realize(*changes)

    def epoch(order):
        batches = work.batches(order)
        return [step(Tensor(work.x[i]).realize(), Tensor(work.y[i]).realize()).item() for i in batches]

    return Trainer(epoch, lambda: [w.numpy() for w in weights])


def eager(work):
    return trainer(work, lambda step: step)


MODES = {"lazy": ("eager", eager), "TinyJit": ("step", lambda work: trainer(work, TinyJit))}
