"""The stage: everything around the five notebooks that is not taught by them. Written by hand."""
