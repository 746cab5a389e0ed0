"""Motions as B-splines, the best of those inside limits: Barman, thesis, chapter IV, (4.13)-(4.19), with torque rates as well.

    problem        from where to where, inside which limits, at which price: states, quantities, cost
    bspline        q(t) from control points, (4.13)
    grid           at which instants a motion is looked at, and where it needs finer knots
    rows           the constraints at those instants, (4.17)
    transcription  all of it as a nonlinear program, derivatives by the chain rule, (4.15)
    curvature      what second derivatives the solver is given
    condensed      the same program where start and goal are known: fewer unknowns, Newton's equations in bands
    banded         such equations, solved
    tied           the same program where ends are free or tied and the duration is known, in few dense equations
    interior_point the solver for both
    approach       how that comes near where it begins far away
    ipopt          the solver for all others
    solve          which of the two, and how near to the solution it begins
    guess          where it starts
    planner        coarse plan, finer knots, limits between the nodes
    checks         what is refused, and why a plan was not found

Nothing here knows a robot: dynamics and their sensitivities come as functions of arrays. For a Robot: rnea_ros.plan_motion.
"""

from .bspline import Curve, PlannedMotion
from .planner import PlanningError, plan
from .problem import Cost, Ends, EndState, Problem, Quantity, Settings, SolverProgress

__all__ = ["Cost", "Curve", "EndState", "Ends", "PlannedMotion", "PlanningError", "Problem", "Quantity", "Settings",
           "SolverProgress", "plan"]
