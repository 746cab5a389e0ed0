"""Trajectories as they are sent to a robot, executed inside its limits: what scaling_node does, without ROS.

    goal        a trajectory as it was sent: is it one, and where does it begin
    schedule    when the plan comes by a place
    motion      one trajectory on its way: the scaler, torque and torque rate, the limit that binds
    equipment   a robot, its limits and its dynamics along paths: makes a motion of a trajectory
    place       where the robot is, from joint states and from where the last motion ended
    performer   one motion after another: start, replace, pause, resume, stop, override, other limits, another payload
    ticker      a thread that calls at a rate, and keeps a record of how well
"""
