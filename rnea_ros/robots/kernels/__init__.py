"""Functions that are compiled, and the store of kernels."""
