"""Identification of robot parameters from recordings: regressors, base parameters, friction, payloads, physical consistency.
"""
