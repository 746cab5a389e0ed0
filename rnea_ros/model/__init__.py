"""URDF and robot file as a tree of links."""
