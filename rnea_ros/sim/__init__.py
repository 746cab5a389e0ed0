"""Simulated robots: a URDF and its robot file in MuJoCo, with motors, ground, loops and sensors.

MuJoCo reads the URDF itself and computes the accelerations, so the torques of its motors are an independent reference for this
package. MuJoCo is an optional dependency (`pip install '.[sim]'` in a clone), imported on first use.
"""
