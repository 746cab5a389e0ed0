"""Functions of arrays as programs, and as machine code, Python or C."""
