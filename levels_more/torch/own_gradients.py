"""A function whose gradient is your own: PyTorch's `autograd.Function`, one record on the tape of a recorded tensor."""

import functools

from levels_more.checks import expect
from levels_more.torch.recorded import FUNCTIONS, Recorded
from levels_more.torch.recording import Node, Switch, noted, recording


class Function:
    """Write the static methods `forward(ctx, *inputs)` and `backward(ctx, dy)`, and call `apply` of your class."""

    saved_tensors = ()

    def save_for_backward(self, *tensors):
        """Keep these tensors for `backward`, which finds them in `ctx.saved_tensors`."""
        self.saved_tensors = tensors

    @classmethod
    def apply(kind, *inputs):
        """What `forward` gives, a tensor or a tuple of them; `backward` gives dx for each input, a tensor, or None.

        `ctx.needs_input_grad` says which. With a method `setup_context(ctx, inputs, output)`, `forward` takes the inputs alone.
        Raises TypeError where `forward` gives something else.
        """
        context = kind()
        context.needs_input_grad = tuple(isinstance(x, Recorded) and x.requires_grad for x in inputs)
        with Switch(False):
            if hasattr(kind, "setup_context"):
                result = kind.forward(*inputs)
                kind.setup_context(context, inputs, result)
            else:
                result = kind.forward(context, *inputs)
        given = result if isinstance(result, tuple) else (result,)
        for y in given:
            expect(isinstance(y, Recorded), f"{kind.__name__}.forward: the result", y, "a tensor, or a tuple of them")
        parents, records = [], []
        read = noted([x for x in inputs if isinstance(x, Recorded)], parents, records)
        if not (recording() and parents):
            return result

        def remembering(k, y):
            @functools.lru_cache(maxsize=1)
            def back(dy):
                slopes = [y.of(dy) if j == k else FUNCTIONS["zeros_like"](other) for j, other in enumerate(given)]
                found = kind.backward(context, *slopes)
                found = found if isinstance(found, tuple) else (found,)
                wanted = [dx for dx, x in zip(found, inputs, strict=True) if isinstance(x, Recorded)]
                return [dx if dx is None else dx.held for dx in wanted]

            held = y.of(y.held).clone().held  # forward may have returned one of its inputs
            record = "own_backward", tuple(read), {"back": back}, held
            return y.of(held, Node(kind.__name__, [*records, record], parents))

        made = tuple(remembering(k, y) if y.dtype.kind == "f" else y for k, y in enumerate(given))
        return made if isinstance(result, tuple) else made[0]
