"""Solution of a transcription by IPOPT (Waechter and Biegler 2006) through CasADi: pip install '.[planning]' in a clone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import MissingPackage
from .transcription import SparsePattern, Transcription

Watch = Callable[[int, np.ndarray, float], None]
QUIET: dict[str, Any] = {"print_level": 0, "sb": "yes"}


class NlpSolution(NamedTuple):
    """Solution of a nonlinear program: x, multipliers of the constraints, and IPOPT's status."""

    x: np.ndarray
    multipliers: np.ndarray
    converged: bool
    status: str
    iterations: int


def minimize_with_ipopt(program: Transcription, x: np.ndarray, options: Mapping[str, Any], watch: Watch,
             multipliers: np.ndarray | None = None) -> NlpSolution:
    """Return a local minimum of the program near x, from multipliers where known.

    options: IPOPT's own. watch(iteration, x, largest violation of a constraint) is called after each iteration. Exceptions of
    the problem's functions are re-raised.
    """
    ca = casadi()
    functions = _CasadiFunctions(ca, program, watch)
    solver = ca.nlpsol("plan", "ipopt", functions.nlp, {
        "grad_f": functions.gradient, "jac_g": functions.jacobian, "hess_lag": functions.hessian,
        "iteration_callback": functions.watch, "no_nlp_grad": True, "print_time": False, "show_eval_warnings": False,
        "ipopt": {**QUIET, **options}})
    start = {"x0": x} if multipliers is None else {"x0": x, "lam_g0": multipliers}
    lower, upper = program.bounds
    found = solver(**start, lbx=lower, ubx=upper, lbg=program.rows.lower, ubg=program.rows.upper)
    stats = solver.stats()
    if functions.errors and not stats["success"]:
        raise functions.errors[0]
    return NlpSolution(_flat(found["x"]), _flat(found["lam_g"]), bool(stats["success"]), stats["return_status"],
                    int(stats["iter_count"]))


def casadi() -> Any:
    """Return the module casadi. Raises MissingPackage if it is not installed."""
    try:
        import casadi as ca  # type: Any
    except ImportError:
        raise MissingPackage("this planning problem needs CasADi, which brings IPOPT", "planning") from None
    return ca


def is_installed() -> bool:
    """Return whether CasADi, and therefore IPOPT, can be imported."""
    try:
        casadi()
    except MissingPackage:
        return False
    return True


class _CasadiFunctions:
    """Program as CasADi functions with the names and shapes of its solvers; must outlive the solver."""

    def __init__(self, ca: Any, program: Transcription, watch: Watch):
        self.errors: list[Exception] = []
        self._callback = _callback_class(ca)
        rows = program.rows
        J, H = _sparsity(ca, program.jacobian_pattern), _sparsity(ca, program.hessian_pattern)
        number, vector, column = _dense(ca, 1), _dense(ca, program.size), _dense(ca, len(rows.lower))
        point, multipliers = {"x": vector, "p": _dense(ca, 0)}, {"lam_f": number, "lam_g": column}
        self.nlp = self._function("nlp", point, {"f": number, "g": column},
                                  lambda x, p: (program.objective(x), program.constraints(x)))
        self.gradient = self._function("gradient", point, {"f": number, "grad_f_x": vector},
                                       lambda x, p: (program.objective(x), program.gradient(x)))
        self.jacobian = self._function("jacobian", point, {"g": column, "jac_g_x": J},
                                       lambda x, p: (program.constraints(x), ca.DM(J, program.jacobian(x))))
        self.hessian = self._function("hessian", point | multipliers, {"triu_hess_gamma_x_x": H},
                                      lambda x, p, f, g: (ca.DM(H, program.hessian(x, f[0], g)),))
        iterations = iter(range(10**9))

        def watched(x, f, g, *others):
            watch(next(iterations), x, float(np.maximum(g - rows.upper, rows.lower - g).max()))
            return (0,)

        self.watch = self._function("watch", {"x": vector, "f": number, "g": column, "lam_x": vector, "lam_g": column,
                                              "lam_p": _dense(ca, 0)}, {"stop": number}, watched)

    def _function(self, name, given, results, evaluate):
        return self._callback(name, given, results, evaluate, self.errors)


def _callback_class(ca):
    class Callback(ca.Callback):  # type: ignore[name-defined]
        """CasADi function that calls ours: given and results map names to sparsities."""

        def __init__(self, name, given, results, evaluate, errors):
            super().__init__()
            self.given, self.results, self.evaluate, self.errors = given, results, evaluate, errors
            self.construct(name, {})

        def get_n_in(self):
            return len(self.given)

        def get_n_out(self):
            return len(self.results)

        def get_name_in(self, i):
            return list(self.given)[i]

        def get_name_out(self, i):
            return list(self.results)[i]

        def get_sparsity_in(self, i):
            return list(self.given.values())[i]

        def get_sparsity_out(self, i):
            return list(self.results.values())[i]

        def eval(self, arguments):
            try:
                return self.evaluate(*map(_flat, arguments))
            except Exception as error:
                self.errors.append(error)
                raise

    return Callback


def _flat(value):
    return np.array(value).ravel()


def _dense(ca, size):
    return ca.Sparsity.dense(size, 1)


def _sparsity(ca: Any, pattern: SparsePattern) -> Any:
    return ca.Sparsity(*pattern.shape, pattern.starts.tolist(), pattern.rows.tolist())
