"""Nodes of the demos: simulated robots, controllers and recorders."""
