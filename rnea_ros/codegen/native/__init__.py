"""Calls of machine code from Python, and batches of calls in threads."""
