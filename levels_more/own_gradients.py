"""A function whose gradient is your own: PyTorch's `autograd.Function`, one record on the tape of a recorded tensor."""

import functools

from levels_more import custom_gradients  # noqa: F401, for the rule of own_backward
from levels_more.checks import expect
from levels_more.recorded import Recorded
from levels_more.recording import Node, Switch, noted, recording


class Function:
    """Write the static methods `forward(ctx, *inputs)` and `backward(ctx, dy)`, and call `apply` of your class."""

    saved_tensors = ()

    def save_for_backward(self, *tensors):
        """Keep these tensors for `backward`, which finds them in `ctx.saved_tensors`."""
        self.saved_tensors = tensors

    @classmethod
    def apply(kind, *inputs):
        """What `forward` gives, one tensor; `backward` gives dx for each input, a tensor, or None. Raises TypeError for more."""
        context = kind()
        with Switch(False):
            y = kind.forward(context, *inputs)
        expect(isinstance(y, Recorded), f"{kind.__name__}.forward: the result", y, "one tensor")

        @functools.lru_cache(maxsize=1)
        def back(dy):
            found = kind.backward(context, y.of(dy))
            found = found if isinstance(found, tuple) else (found,)
            given = [dx for dx, x in zip(found, inputs, strict=True) if isinstance(x, Recorded)]
            return [dx if dx is None else dx.held for dx in given]

        parents, records = [], []
        read = noted([x for x in inputs if isinstance(x, Recorded)], parents, records)
        if not (recording() and parents):
            return y
        held = y.of(y.held).clone().held  # forward may have returned one of its inputs
        return y.of(held, Node(kind.__name__, [*records, ("own_backward", tuple(read), {"back": back}, held)], parents))
