"""Functions of robots in other libraries' automatic differentiation: `interop.casadi`, `interop.torch` and `interop.jax`."""
