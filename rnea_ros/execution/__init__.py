"""Trajectories as they are sent to a robot, executed inside its limits: what scaling_node does, without ROS.

    goal                 a trajectory as it was sent: is it one, and where does it begin
    states               what may happen, and what follows: one table
    state_machine        the trajectory that is executed, the one that waits, and who is told what became of them
    trajectory_executor  ticks, and what is asked of it: replace, pause, resume, stop, override, other limits, another payload
    follower             who executes what is handed out, as far as is known
    handed_out           whether a controller plays what was handed out to it, and had each change in time
    preparation          what takes longer than a tick, in a thread
    solver_process       what takes longer still, in a process
    execution_context    a robot, its limits and its dynamics along paths: makes the motion of a goal
    ending               whether a motion at rest has ended, and how
    watch                a robot that is watched: what it cannot follow is slowed, what it loses is stopped
    tracking             how far a robot is from where it was sent lately
    saturation           which motors can do no more
    tolerances           how far a robot may be from where it is sent
    executed_motion      one goal on its way: the trajectory scaler, torque and torque rate, the nearest limit
    schedule             when the plan comes by a place
    joint_state_buffer   where the joints are, from joint states
    start_state          where a motion begins, from these and from where the last one ended
    turns                joints that turn without end
    rate_loop            a thread that calls at a rate, and keeps a record of how well
"""
