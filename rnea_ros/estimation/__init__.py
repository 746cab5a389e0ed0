"""Motion from measured positions, and external efforts from measured efforts."""
