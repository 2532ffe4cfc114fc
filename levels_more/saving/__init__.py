"""Models as files: a folder, ONNX, one page, a hub."""

import importlib

# name -> its file: each imports a large package, and so is imported when the name is asked for
_PLACES = {
    "ONNX": "onnx",
    "OnnxWriter": "onnx",
    "export": "onnx",
    "export_page": "webpage",
    "from_pretrained": "hub",
    "load_model": "model",
    "load_weights": "model",
    "onnx_graph": "onnx",
    "onnx_model": "onnx",
    "push_to_hub": "hub",
    "save": "model",
    "save_pretrained": "hub",
    "save_weights": "model",
}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__():
    return __all__
