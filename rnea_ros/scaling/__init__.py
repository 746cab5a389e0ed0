"""Slow a motion just enough, or make it as fast as its path allows: speed along a path under torque and torque-rate limits.

    closed_form   the largest constant speed factor, from torque and torque rate and their shares
    path, law     where the motion goes, q(s), and when, s(t); polynomials: both in pieces
    terms         torque, torque rate and all other limits as functions of (s, sd, sdd, sddd)
    feasibility   whether a path can be moved along at all
    profile       the fastest s(t) on a path, inside all limits; grid, barrier, newton, spline: the numbers behind it
    dense_look    how much of the limits a law uses, between samples too
    rows, compiled  the text of these limits of one sample, and how it is run over many
    points        timed points as a path and a time law
    plan          the motion that stays as near to a plan as the limits allow
    time_scaling  the rate at which that motion is played, which can be changed at any time
    lookahead     what other limits or another payload mean for it, and the law that takes over
    trajectory_scaler  one step at a control rate: pause, resume, override, changes
    forecast      what it will do if nothing new is asked; foreseeable: a scaler that can be ticked ahead of its time
    spacing       points between which a controller's quintics ask for hardly more than is planned
    committed     a motion handed out to its end as such points, and replaced from a place ahead when it changes
    chunk_spline  a motion in time from a moving state through points to rest
    retime        points in, the fastest motion out

Nothing here knows a robot: dynamics come as functions of arrays, a Robot's from rnea_ros.motion.path_dynamics, any other's by
terms.terms from an exact rate function.
"""

from .closed_form import SpeedFactor, SpeedScaling, speed_factor
from .law import TimeLaw
from .path import Path, through
from .plan import ScaledPlan, follow
from .points import plan_from_waypoints
from .profile import fastest
from .reference import Reference
from .retime import route, time_optimal
from .terms import Constraints, PathLimits
from .trajectory_scaler import ScalerStatus, TrajectoryScaler

__all__ = [
           "Constraints",
           "Path",
           "PathLimits",
           "Reference",
           "ScaledPlan",
           "ScalerStatus",
           "SpeedFactor",
           "SpeedScaling",
           "TimeLaw",
           "TrajectoryScaler",
           "fastest",
           "follow",
           "plan_from_waypoints",
           "route",
           "speed_factor",
           "through",
           "time_optimal",
]
