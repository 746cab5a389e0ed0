"""Demos: simulated robots, the nodes in separate processes, and checks of what they publish. `rnea demo` runs them."""
