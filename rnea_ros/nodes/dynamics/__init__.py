"""Parts of dynamics_node."""
