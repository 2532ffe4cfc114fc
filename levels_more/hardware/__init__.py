"""More devices than one processor: a GPU and a TPU, simulated, and what is measured of memory."""
