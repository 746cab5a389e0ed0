"""Thin ROS 2 adapters around the library: parse, call, publish."""
