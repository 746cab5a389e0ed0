"""Plain Qt widgets that show plain data: no ROS."""
