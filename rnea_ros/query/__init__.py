"""Requests to a robot by name, answered by query_node and `rnea query`."""
