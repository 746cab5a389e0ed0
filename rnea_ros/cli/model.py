"""`rnea model ROBOT.urdf`: the modified Denavit-Hartenberg tree as a table, or as JSON."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from ..robots import kinds
from ..robots.robot import Robot
from . import robots
from .outcome import Outcome
from .tables import table, terminal_width

SIGMA = ("revolute", "prismatic", "fixed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)


def run(args: argparse.Namespace) -> Outcome:
    robot = robots.loaded(args, print_warnings=False)  # the result holds all warnings
    text, what = as_table(kinds.tree(robot), terminal_width()), kinds.described(robot)
    if len(what) > 1 or not isinstance(robot, Robot):
        text += "\n\n" + "\n".join(what)
    return Outcome(text, as_json(kinds.tree(robot)) | {"kind": type(robot).__name__})


def as_table(robot: Robot, width: int | None = None) -> str:
    lines = [f"robot {robot.name}: {robot.n} joints, {robot.total_mass:.6g} kg, root link '{robot.root_link}', "
             f"largest deviation from the URDF {robot.reconstruction_error:.1e}", ""]
    lines += table(("j", "joint", "a(j)", "type", "gamma", "b", "alpha", "d", "theta", "r"), [
        (str(j), name, str(parent), SIGMA[sigma], *(f"{x:.6g}" for x in numbers))
        for j, (name, parent, sigma, *numbers) in enumerate(robot.mdh_table(), start=1)], "><><>>>>>>", width)
    followers = [link for link in robot.model.links if link.joint and link.joint not in robot.joint_names]
    for link in followers:
        leader = robot.joint_names[link.coordinate]
        lines.append(f"     {link.joint} follows {leader}: {link.multiplier:g} q + {link.offset:g}")
    return "\n".join(lines + [""] * bool(robot.warnings) + [f"warning: {text}" for text in robot.warnings])


def as_json(robot: Robot) -> dict[str, Any]:
    links = [{**{key: value for key, value in vars(link).items() if not key.startswith("_")}, "ms": link.ms.tolist(),
              "J": link.J.tolist(), "term": asdict(link.term)} for link in robot.model.links]
    frames = {name: {"link": f.link, "R": f.R.tolist(), "P": f.P.tolist()} for name, f in robot.model.frames.items()}
    joints = [asdict(joint) for joint in robot.model.joints]
    motors = [{"name": motor.name, "ratios": dict(zip((robot.joint_names[k] for k in motor.coordinates), motor.ratios)),
               "term": asdict(motor.term)} for motor in robot.model.coupled_motors]
    return {"name": robot.name, "model_id": robot.model_id, "base": robot.model.base, "root_link": robot.root_link,
            "total_mass": robot.total_mass, "reconstruction_error": robot.reconstruction_error,
            "joints": joints, "links": links, "coupled_motors": motors, "frames": frames, "warnings": list(robot.warnings)}
