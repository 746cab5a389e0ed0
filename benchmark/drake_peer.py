"""Drake's way to a fastest motion: a B-spline whose control points and duration SNOPT moves (KinematicTrajectoryOptimization).

Its torque limits hold at the instants asked for, two and a half for each control point, and nowhere else; it has no limits of
torque rates. Few points make longer motions soon, many shorter ones later, which pass the limits between the instants.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
from pydrake.math import BsplineBasis
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.planning import KinematicTrajectoryOptimization
from pydrake.solvers import SnoptSolver, SolverOptions
from pydrake.trajectories import BsplineTrajectory

from rnea_ros import InputError, Robot
from rnea_ros.model.tree import Limits

INSTANTS = 2.5  # for a control point
ITERATIONS = 500
NEEDLESS = ("visual", "collision", "safety_controller", "transmission", "mimic")
CUBIC = 4  # order of the spline: its degree and one


def plant(robot: Robot, limits: Limits, urdf: str) -> MultibodyPlant:
    """Return the robot of a URDF with its root welded to the world, a motor at every joint; mimic joints stand still."""
    root = ElementTree.fromstring(urdf)
    for joint in root.findall("joint[mimic]"):
        joint.set("type", "fixed")
    for above in list(root.iter()):
        for part in [part for part in above if part.tag in NEEDLESS]:
            above.remove(part)
    made = MultibodyPlant(0.0)
    (model,) = Parser(made).AddModelsFromString(ElementTree.tostring(root, encoding="unicode"), "urdf")
    if (base := root_link(root)) != "world":  # which is Drake's own
        made.WeldFrames(made.world_frame(), made.GetFrameByName(base, model))
    for name, effort in zip(robot.joint_names, limits.effort):
        made.AddJointActuator(f"motor of {name}", made.GetJointByName(name), effort)
    made.Finalize()
    moved = [made.get_joint_actuator(index).joint().name() for index in made.GetJointActuatorIndices()]
    if moved != list(robot.joint_names) or made.num_positions() != robot.n:
        raise InputError(f"Drake moves {moved}, we {list(robot.joint_names)}")
    return made


def root_link(root: ElementTree.Element) -> str:
    children = {joint.find("child").get("link") for joint in root.iter("joint") if joint.find("child") is not None}
    (name,) = (link.get("name") for link in root.findall("link") if link.get("name") not in children)
    return name


def moved(trajectory: BsplineTrajectory, instants: int) -> tuple[np.ndarray, ...]:
    """q, qd, qdd [instants x joints]."""
    times = np.linspace(0.0, trajectory.end_time(), instants)
    q, qd, qdd = (np.stack([trajectory.EvalDerivative(time, order).ravel() for time in times]) for order in range(3))
    return q, qd, qdd


def planned(drake: MultibodyPlant, ends: np.ndarray, limits: Limits, points: int) -> BsplineTrajectory | None:
    """Return a motion from rest to rest with so many control points; None if SNOPT fails."""
    n = drake.num_positions()
    problem = KinematicTrajectoryOptimization(n, num_control_points=points, spline_order=CUBIC, duration=2.0)
    problem.AddPositionBounds(limits.lower, limits.upper)
    problem.AddVelocityBounds(-limits.velocity, limits.velocity)
    problem.AddDurationConstraint(0.05, 20.0)
    problem.AddDurationCost(1.0)
    for s, pose in zip((0.0, 1.0), ends):
        problem.AddPathPositionConstraint(pose, pose, s)
        problem.AddPathVelocityConstraint(np.zeros(n), np.zeros(n), s)
    problem.AddEffortBoundsAtNormalizedTimes(drake, np.linspace(0.0, 1.0, round(INSTANTS * points)))
    line = np.linspace(ends[0], ends[1], points).T
    problem.SetInitialGuess(BsplineTrajectory(BsplineBasis(problem.basis().order(), problem.basis().knots()), line))
    options = SolverOptions()
    options.SetOption(SnoptSolver.id(), "Major iterations limit", ITERATIONS)
    result = SnoptSolver().Solve(problem.prog(), None, options)
    return problem.ReconstructTrajectory(result) if result.is_success() else None
