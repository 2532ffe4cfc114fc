"""Save a model: as a folder, as ONNX, as one web page, on a hub."""

import importlib
import typing

from levels_more.high_level.model import SAVERS
from levels_more.missing import absent

if typing.TYPE_CHECKING:  # for editors
    from levels_more.saving.hub import from_pretrained, push_to_hub, save_pretrained
    from levels_more.saving.model import load_model, load_weights, save, save_weights
    from levels_more.saving.onnx import export, onnx_model
    from levels_more.saving.webpage import export_page

# file -> its names. Each file imports a large package, so it is imported only when one of its names is used
_FILES = {
    "hub": "from_pretrained push_to_hub save_pretrained",
    "model": "load_model load_weights save save_weights",
    "onnx": "export onnx_model",
    "webpage": "export_page",
}
_PLACES = {name: file for file, names in _FILES.items() for name in names.split()}
__all__ = sorted(_PLACES)


def _on_first_use(name):
    """Return a function that calls the one of this name, whose file is imported by the first call."""
    return lambda model, *arguments, **options: __getattr__(name)(model, *arguments, **options)


for _name in ("save", "save_weights", "load_weights", "export", "save_pretrained", "push_to_hub"):
    SAVERS[_name] = _on_first_use(_name)


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return absent(__name__)(name)


def __dir__():
    return __all__
