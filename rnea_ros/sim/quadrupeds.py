"""Quadrupeds that others have described: URDFs of the package example-robot-data, with what it takes to have them walk."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import MissingPackage
from ..model import urdf, urdf_reader
from .scene import Foot

PACKAGE = "example-robot-data"


def example_urdf(end: str) -> Path:
    """The URDF of example-robot-data whose path ends so. Raises RneaError where the package is not installed."""
    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        files = ()
    for file in files:
        if file.as_posix().endswith(end):
            return Path(str(file.locate()))
    raise MissingPackage(f"{end} comes with the package {PACKAGE}", "sim")


class Quadruped(NamedTuple):
    """A robot whose legs have three joints each, in the order of the feet.

    file      : end of the URDF's path in example-robot-data
    feet      : links at the ends of the legs: front left, front right, hind left, hind right
    radius    : of each foot [m]
    legs      : joint positions of the four legs as it stands (4, 3) [rad]
    stiffness : of the joints' control [N m/rad], damping [N m s/rad]
    armature  : rotor inertia behind the gear, as the joints feel it [kg m^2]; viscous friction [N m s/rad]. No URDF has them
    step      : period [s], length [m] and height [m] of its steps in a trot
    """

    file: str
    feet: tuple[str, ...]
    radius: float
    legs: tuple[tuple[float, ...], ...]
    stiffness: float
    damping: float
    armature: float
    viscous: float
    step: tuple[float, float, float]

    @property
    def urdf(self) -> Path:
        """Raises RneaError where the package is not installed."""
        return example_urdf(self.file)

    @property
    def robot_file(self) -> dict[str, Any]:
        """A free base, and drives whose rotors and friction count, for plant and package alike."""
        drive = {"rotor_inertia": self.armature, "viscous": self.viscous}
        joints = [joint.name for joint in urdf.load(urdf_reader.read(self.urdf)).joints]
        return {"version": 1, "base": "floating", "drives": dict.fromkeys(joints, drive)}

    @property
    def contacts(self) -> tuple[Foot, ...]:
        return tuple(Foot(link, self.radius) for link in self.feet)


_ALIKE = ((0.0, 0.8, -1.6),) * 4
QUADRUPEDS = {
    "solo12": Quadruped("robots/solo12.urdf", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"), 0.016, _ALIKE, 12.0, 0.25, 6e-4,
                        0.01, (0.4, 0.06, 0.04)),
    "a1": Quadruped("urdf/a1.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.02, _ALIKE, 150.0, 4.0, 5e-3, 0.1,
                     (0.5, 0.1, 0.06)),
    "go2": Quadruped("urdf/go2.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.022, _ALIKE, 150.0, 4.0, 5e-3, 0.1,
                     (0.5, 0.1, 0.06)),
    "laikago": Quadruped("urdf/laikago.urdf", ("FL_foot", "FR_foot", "RL_foot", "RR_foot"), 0.027, _ALIKE, 300.0, 8.0, 2e-2,
                         0.2, (0.5, 0.1, 0.06)),
}
