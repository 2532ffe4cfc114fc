#!/usr/bin/env bash
# A number that a compiled PyTorch module reads (torch==2.14.1): twelve values of a float attribute take 2 compilations,
# and so do twelve values of an int argument. Twelve values of an int attribute take 8, the default limit of
# recompilations; after that, the module runs without being compiled, and no error says so (a warning in the log does).
#
# A good guess: ints and floats, attributes and arguments alike: the second value makes the number a variable of the graph.
#
# Output:
#   float attribute: 2 compilations, right: True
#   int argument: 2 compilations, right: True
#   int attribute: 8 compilations, right: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet "torch==2.14.1" "numpy==2.4.6"
cat >"$folder/count.py" <<'PYTHON'
import torch

assert torch.__version__.split("+")[0] == "2.14.1"


class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def counted(what, runs):
    """Compile with a back end that counts, and run: `runs` gives the function and the pairs (call, expected)."""
    torch._dynamo.reset()
    graphs = []

    def back_end(graph, inputs):
        graphs.append(graph)
        return graph.forward

    right = all(float(call()) == wanted for call, wanted in runs(lambda f: torch.compile(f, backend=back_end)))
    print(f"{what}: {len(graphs)} compilations, right: {right}")


one = torch.ones(1)


def attribute(values):
    def runs(compile):
        module = Scaled(values[0])
        fast = compile(module)
        for value in values:
            module.factor = value
            yield lambda: fast(one), float(value)

    return runs


def argument(compile):
    fast = compile(lambda x, factor: x * factor)
    for value in range(2, 14):
        yield lambda: fast(one, value), float(value)  # noqa: B023 - called at once


counted("float attribute", attribute([value + 0.5 for value in range(2, 14)]))
counted("int argument", argument)
counted("int attribute", attribute(list(range(2, 14))))
PYTHON
"$folder/venv/bin/python" "$folder/count.py" 2>/dev/null | tee "$folder/seen"
grep '^#   ' "$0" | sed 's/^#   //' | diff - "$folder/seen" && echo "as before"
