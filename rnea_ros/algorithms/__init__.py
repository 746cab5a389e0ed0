"""Recursions of the papers, for any scalar."""
