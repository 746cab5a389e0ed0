"""Motions in CSV files and bags; pictures."""
