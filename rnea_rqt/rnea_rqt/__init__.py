"""Torques, torque rates and the use of drives as a window: an rqt plugin, and a standalone program."""
