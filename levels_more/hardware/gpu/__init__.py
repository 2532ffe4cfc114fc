"""A GPU, real or simulated; for the simulated one, its memory and the order in which its threads run."""
