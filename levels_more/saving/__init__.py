"""Save a model: as a folder, as ONNX, as one web page, on a hub."""

import typing

from levels_more.high_level.model import SAVERS
from levels_more.missing import on_first_use

if typing.TYPE_CHECKING:  # for editors
    from levels_more.saving.hub import from_pretrained, push_to_hub, save_pretrained
    from levels_more.saving.model import load_model, load_weights, save, save_weights
    from levels_more.saving.onnx import export, onnx_model
    from levels_more.saving.webpage import export_page

# each file imports a large package, so it is imported only when one of its names is used
__getattr__, __dir__, __all__ = on_first_use(
    __name__,
    {
        "hub": "from_pretrained push_to_hub save_pretrained",
        "model": "load_model load_weights save save_weights",
        "onnx": "export onnx_model",
        "webpage": "export_page",
    },
)


def _on_first_use(name):
    """Return a function that calls the one of this name, whose file is imported by the first call."""
    return lambda model, *arguments, **options: __getattr__(name)(model, *arguments, **options)


for _name in ("save", "save_weights", "load_weights", "export", "save_pretrained", "push_to_hub"):
    SAVERS[_name] = _on_first_use(_name)
