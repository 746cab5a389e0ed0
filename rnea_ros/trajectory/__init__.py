"""Trajectories: the fastest time law on a path, and a motion slowed just enough, under torque and torque-rate limits.

    speed_factor        largest constant speed factor, from torque and torque rate and their parts
    path, time_law      path q(s) and time law s(t)
    constraints         torque, torque rate and all other limits as functions of (s, sd, sdd, sddd)
    limit_check         limits of a law between samples too; whether a path can be followed at all
    time_optimal        fastest s(t) on a path, inside all limits; interior_point: its solver
    scaled_plan         plan from timed waypoints; the motion that follows a plan as closely as the limits allow
    time_scaling        rate at which that motion is played, which can be changed at any time; braking: for new limits
    trajectory_scaler   one step per control period: pause, resume, override, other limits, another payload
    rolling_trajectory  whole trajectories for a controller, replaced from a splice point when they change
    chunk_spline        motion in time from a moving state through points to rest
    sample_kernels      functions of one sample, compiled for many

The modules above have no robot: dynamics come as functions of arrays, those of a robot from path_dynamics, of any other system
by constraints.torque_terms from an exact rate function. With a robot:

    path_dynamics       torque and torque rate of a robot along a path, its limits
    limit_utilization   used share of each limit, and the binding one
    sample_torques      torques along an executed motion, as commanded, and their parts by speed
    retiming            points in, the fastest motion out
    plan_motion         motions from start to goal; clearance: distances that they keep
    chunk_executor      action chunks of learned policies inside all limits
    margin              share of the limits to plan with, given the uncertainty of the model
    thermal_load        thermal load of motor windings by a motion
"""

from .constraints import Constraints, PathLimits
from .path import Path, path_through
from .retiming import fit_route, time_optimal_law
from .scaled_plan import ScaledPlan, follow_plan, plan_from_waypoints
from .speed_factor import SpeedFactor, SpeedScaling, speed_factor
from .time_law import TimeLaw
from .time_optimal import fastest_law
from .trajectory_scaler import Reference, ScalerStatus, TrajectoryScaler

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
    "fastest_law",
    "fit_route",
    "follow_plan",
    "path_through",
    "plan_from_waypoints",
    "speed_factor",
    "time_optimal_law",
]
