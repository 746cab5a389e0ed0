"""Demos: simulated robots, the nodes in processes of their own, and checks of what they publish. `rnea demo` runs them."""
