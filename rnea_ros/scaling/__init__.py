"""Slow a motion just enough, or make it as fast as its path allows: speed along a path under torque and torque-rate limits.

    closed_form   the largest constant speed factor, from torque and torque rate and their shares
    path, law     where the motion goes, q(s), and when, s(t)
    terms         torque, torque rate and all other limits as functions of (s, sd, sdd, sddd)
    profile       the fastest s(t) on a path, inside all limits
    points        timed points as a path and a time law
    plan          the motion that stays as near to a plan as the limits allow
    replay        one step at a control rate: pause, resume, override, another payload, other limits
    retime        points in, samples of the fastest motion out

Nothing here knows a robot: dynamics come as functions of arrays.
"""
