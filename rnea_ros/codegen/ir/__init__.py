"""Expressions and programs of traced functions."""
