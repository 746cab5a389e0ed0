"""The door to IPOPT (Waechter and Biegler 2006), by way of CasADi: pip install 'rnea_ros[planning]'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import RneaError
from .transcription import Transcription


class Solution(NamedTuple):
    x: np.ndarray
    converged: bool
    status: str
    iterations: int


def minimise(program: Transcription, x: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], options: dict[str, Any],
             report: Callable[[int, float, np.ndarray], None] = lambda iteration, objective, x: None) -> Solution:
    """The program's local minimum near x, variables inside bounds.

    report(iteration, objective, x) is called after each iteration. options: IPOPT's own.
    """
    try:
        import casadi as ca
    except ImportError:
        raise RneaError("planning needs CasADi, which brings IPOPT: pip install 'rnea_ros[planning]'") from None
    size, rows = program.size, len(program.rows.nodes)
    dense, J, H = ca.Sparsity.dense, _sparsity(ca, program.jacobian_pattern), _sparsity(ca, program.hessian_pattern)

    def flat(value):
        return np.array(value).ravel()

    class Function(ca.Callback):
        """A function of (x, p, ..) that runs our Python."""

        def __init__(self, name, given, results, evaluate):
            ca.Callback.__init__(self)
            self.given, self.results, self.evaluate = given, results, evaluate
            self.construct(name, {})

        def get_n_in(self):
            return len(self.given)

        def get_n_out(self):
            return len(self.results)

        def get_sparsity_in(self, i):
            return list(self.given.values())[i]

        def get_sparsity_out(self, i):
            return list(self.results.values())[i]

        def get_name_in(self, i):
            return list(self.given)[i]

        def get_name_out(self, i):
            return list(self.results)[i]

        def eval(self, arguments):
            return self.evaluate(*map(flat, arguments))

    def sparse(pattern, entries):
        return ca.DM(pattern, entries)

    point = {"x": dense(size, 1), "p": dense(0, 1)}
    f, g = {"f": dense(1, 1)}, {"g": dense(rows, 1)}
    functions = {
        "nlp": Function("nlp", point, f | g, lambda x, p: [program.objective(x), program.constraints(x)]),
        "grad_f": Function("grad_f", point, f | {"grad_f_x": dense(size, 1)}, lambda x, p: [program.objective(x), program.gradient(x)]),
        "jac_g": Function("jac_g", point, g | {"jac_g_x": J}, lambda x, p: [program.constraints(x), sparse(J, program.jacobian(x))]),
        "hess_lag": Function("hess_lag", point | {"lam_f": dense(1, 1), "lam_g": dense(rows, 1)}, {"triu_hess": H},
                             lambda x, p, lam_f, lam_g: [sparse(H, program.hessian(x, float(lam_f[0]), lam_g))]),
    }
    counter = iter(range(10**9))
    watched = {"x": dense(size, 1), "f": dense(1, 1), "g": dense(rows, 1), "lam_x": dense(size, 1), "lam_g": dense(rows, 1), "lam_p": dense(0, 1)}

    def watch(x, f, *rest):
        report(next(counter), float(f[0]), x)
        return [0]

    functions["watch"] = Function("watch", watched, {"stop": dense(1, 1)}, watch)
    solver = ca.nlpsol("plan", "ipopt", functions["nlp"], {
        "grad_f": functions["grad_f"], "jac_g": functions["jac_g"], "hess_lag": functions["hess_lag"], "no_nlp_grad": True,
        "iteration_callback": functions["watch"], "print_time": False, "ipopt": {"print_level": 0, "sb": "yes", **options}})
    lower, upper = program.bounds
    found = solver(x0=x, lbx=bounds[0], ubx=bounds[1], lbg=lower, ubg=upper)
    stats = solver.stats()
    return Solution(flat(found["x"]), bool(stats["success"]), stats["return_status"], int(stats["iter_count"]))


def _sparsity(ca, pattern):
    return ca.Sparsity(*pattern.shape, pattern.starts.tolist(), pattern.rows.tolist())
