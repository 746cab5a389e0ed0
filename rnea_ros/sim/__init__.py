"""Robots that move by themselves: a URDF and its robot file in MuJoCo, with motors, ground, loops and sensors.

MuJoCo reads the URDF by itself and finds the accelerations, so what its motors exert is an answer to compare the package with.
It is an extra (`pip install '.[sim]'` in a clone), imported where it is used.
"""
