"""How the files in `data/` were made that were not measured."""
