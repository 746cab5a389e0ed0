"""Closed loops: passive joints and legs from active ones."""
