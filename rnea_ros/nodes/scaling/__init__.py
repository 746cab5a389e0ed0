"""Parts of scaling_node."""
