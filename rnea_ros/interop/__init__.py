"""Functions of robots in other libraries' automatic differentiation: `interop.torch` and `interop.jax`.

CasADi loads what `rnea export --casadi` writes and needs nothing of this package.
"""
