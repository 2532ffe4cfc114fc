"""Models as files: a folder, ONNX, one page, a hub."""
