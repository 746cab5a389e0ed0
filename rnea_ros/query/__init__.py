"""Questions to a robot from outside, by name: what query_node serves and `rnea query` prints."""
