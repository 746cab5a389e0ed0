"""Timing demo `rnea demo --plant`: one path with several timings, each tracked by a simulated arm with saturating drives."""
