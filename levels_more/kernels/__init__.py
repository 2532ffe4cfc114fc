"""More kernels: moves, reductions, random numbers, the large matrix product, and those of other devices."""
