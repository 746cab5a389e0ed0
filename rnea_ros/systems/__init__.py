"""Robots that are more than a fixed tree: free bases, elastic joints, closed loops, platforms."""
