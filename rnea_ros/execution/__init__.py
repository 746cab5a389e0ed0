"""Execution of trajectories inside a robot's limits: what scaling_node does, without ROS.

executor          trajectories in, samples at the control rate out; preparation in a thread
states            states, events and actions: one table, and the state machine
executed_motion   one motion: references, torques, binding limit; how it is made from a goal
goal              trajectory as it was received: validation, start, tolerances
joint_states      measured joint states and the start position that follows from them
tracking_monitor  does the robot, and does its controller, follow the references?
controller        what joint_trajectory_controller does: parameters, interpolation
solver_process    process that solves for time laws
rate_loop         thread that ticks at the control rate
"""
