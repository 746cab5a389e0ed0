"""Optimal motions as B-splines within limits: Barman, thesis, chapter IV, (4.13)-(4.19), extended by torque rates.

    problem         boundary states, limited quantities, cost; settings
    bspline         q(t) from control points (4.13); nodes of the quadrature; refinement of knots
    transcription   constraints at the nodes (4.17) and the nonlinear program with its derivatives (4.15)
    condensed       the program with known or linearly constrained ends: few unknowns, banded or small dense Newton systems
    interior_point  solver of condensed programs
    ipopt           solver of all others
    planner         initial guesses, choice of the solver, refinement, limits between the nodes

Nothing here depends on a robot: dynamics and their sensitivities are functions of arrays. For a Robot: rnea_ros.plan_motion.

The interior-point method is our own because it is faster than IPOPT: 0.38 s against 2.88 s and 1.53 s against 13.45 s on
the problems of benchmark/planning.py.
"""

from .bspline import Curve, PlannedMotion
from .planner import PlanningError, plan
from .problem import Cost, EndConditions, EndState, PlanningProblem, PlanSettings, Quantity, SolverProgress

__all__ = [
           "Cost",
           "Curve",
           "EndConditions",
           "EndState",
           "PlanSettings",
           "PlannedMotion",
           "PlanningError",
           "PlanningProblem",
           "Quantity",
           "SolverProgress",
           "plan",
]
