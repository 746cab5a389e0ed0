"""`rnea demo --plant`: one path timed in several ways, each followed by a simulated arm whose drives saturate."""
