"""A robot's functions as a C library."""
