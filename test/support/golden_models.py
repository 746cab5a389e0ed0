"""Models directly from the MDH tables of golden.json, without the URDF conversion."""

import numpy as np

from rnea_ros.model.tree import Frame, Joint, JointDynamics, Link, Model, frozen


def from_table(name, rows, terms=None):
    """Return a Model whose link k is 'l<k>', with its URDF frame equal to its MDH frame."""
    links, joints, frames = [Link("l0")], [], {"l0": Frame(0, np.eye(3), np.zeros(3))}
    for k, row in enumerate(rows, start=1):
        m, c, central = row["m"], np.array(row["c"]), np.array(row["I"])
        J = central + m * (c @ c * np.eye(3) - np.outer(c, c))
        links.append(Link(f"l{k}", f"j{k}", row["parent"], "RP".index(row["type"]), row["gamma"], row["b"], row["alpha_prev"],
                          row["a_prev"], row["theta0"], row["d0"], coordinate=k - 1, m=m, ms=frozen(m * c), J=frozen(J),
                          term=terms[k - 1] if terms else JointDynamics()))
        joints.append(Joint(f"j{k}", "prismatic" if row["type"] == "P" else "revolute"))
        frames[f"l{k}"] = Frame(k, np.eye(3), np.zeros(3))
    return Model(name, tuple(links), tuple(joints), frames)


def planar_rr(L, lc, m, Izz):
    """Return the two-link arm of the thesis as rows of such a table."""
    row = {"type": "R", "gamma": 0.0, "b": 0.0, "alpha_prev": 0.0, "theta0": 0.0, "d0": 0.0, "m": m, "c": [lc, 0.0, 0.0],
           "I": np.diag([0.0, 0.0, Izz])}
    return [row | {"parent": 0, "a_prev": 0.0}, row | {"parent": 1, "a_prev": L}]
