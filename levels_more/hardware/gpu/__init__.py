"""A GPU: its memory, and who runs on it when."""
