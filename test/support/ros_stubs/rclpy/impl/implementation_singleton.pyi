from rclpy.impl import rclpy_implementation as rclpy_implementation
