"""`rnea compile` and `rnea export`: kernels for machines without llvmlite or a compiler; functions as a C library."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import c_compiler
from ..codegen import cache as disk
from ..errors import InputError, some
from ..export import c_library, casadi_library, shared_library
from ..robots.base_state import BaseState
from ..robots.conditions import Loads, MotorState
from ..robots.platform_motion import PlatformMotion
from ..robots.robot import Robot
from ..trajectory.path_dynamics import PathDynamics
from . import inputs
from .output import CommandResult, check_folder, show_working


def add_compile_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea compile`."""
    inputs.add_robot_arguments(parser)
    inputs.add_friction(parser)
    inputs.add_gravity(parser)
    parser.set_defaults(backend="c")
    parser.add_argument("-o", "--output", metavar="FOLDER", help=f"folder of the kernels, for {disk.FOLDER} on the target "
                        "machine; default: the folder that is searched without it")
    parser.add_argument("--payload", metavar="LINK", help="link that carries a payload set by payload.* of the nodes")
    parser.add_argument("--link", action="append", default=[], metavar="LINK", help="link with external wrenches, or with a "
                        "requested pose or Jacobian; may be repeated")
    parser.add_argument("--portable", action="store_true", help="kernels for any processor of this architecture: slower, and "
                        "rounded differently without fused multiply-add")


def run_compile(args: argparse.Namespace) -> CommandResult:
    """Run `rnea compile`; return its result."""
    if args.output:
        os.environ[disk.FOLDER] = args.output
    if (folder := disk.folder()) is None:
        raise InputError(f"no folder for kernels: {disk.FOLDER} is empty; name one by --output")
    if not c_compiler.compiler():
        raise InputError("no C compiler found: install cc, gcc or clang, or set the environment variable CC")
    check_folder(folder)
    with c_compiler.only(c_compiler.PORTABLE if args.portable else c_compiler.NATIVE), show_working("compiling kernels"):
        robot = inputs.load_robot(args)
        calls: set[str] = set()
        for one in (robot, robot.with_payload(args.payload, 1.0)) if args.payload else (robot,):
            calls |= set(warm_up(one, args.link))
            if one.is_fixed_tree:
                PathDynamics(one).compile()
    if disk.counts["unusable"]:
        raise InputError(f"{folder} cannot be used for kernels; name another folder by --output")
    what = "any processor of this architecture" if args.portable else "this processor"
    kind, name, compiled, found = robot.kind, robot.tree.name, disk.counts["compiled"], disk.counts["found"]
    return CommandResult(f"{compiled} kernels of {kind} '{name}' compiled for {what}, {found} found in the cache, for "
                         f"{len(calls)} calls -> {folder}",
                   {"robot": name, "kind": kind, "portable": args.portable, "compiled": compiled, "found": found,
                    "calls": sorted(calls), "folder": folder})


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea export`."""
    inputs.add_robot_arguments(parser)
    inputs.add_gravity(parser)
    inputs.add_friction(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", required=True, help="a new folder, or that of an earlier export")
    parser.add_argument("--name", help="name of the package and prefix of every function; default: the robot's, in lower case")
    parser.add_argument("--payload", metavar="LINK", help="link with a payload, which is an argument of each function")
    parser.add_argument("--link", action="append", default=[], metavar="LINK", help="also export pose and Jacobian of this "
                        "link; may be repeated")
    parser.add_argument("--only", nargs="+", metavar="FUNCTION", help="export these functions only")
    parser.add_argument("--shared", action="store_true", help="also compile lib<NAME>.so for this processor, for controllers "
                        "and plug-ins that load it at run time: trees and loops on a held base")
    parser.add_argument("--casadi", action="store_true", help="also compile lib<NAME>_casadi.so, whose functions, Jacobians "
                        "and Hessians casadi.external loads; half a minute for an arm")
    parser.add_argument("--portable", action="store_true", help="with --shared and --casadi: for any processor of this "
                        "architecture; slower, and rounded differently without fused multiply-add")


def run_export(args: argparse.Namespace) -> CommandResult:
    """Run `rnea export`; return its result."""
    folder = Path(args.output)
    if args.portable and not (args.shared or args.casadi):
        raise InputError("--portable names the processor of a shared library; give --shared or --casadi as well")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "test" / "self_test.c").is_file():
        raise InputError(f"{folder} is neither empty nor an earlier export; name a new folder")
    check_folder(folder)
    robot = inputs.load_robot(args)
    name = args.name or c_library.identifier(robot.name)
    wanted = set(args.only or ())
    with show_working("writing the robot's functions as C"):
        library = c_library.library(robot, name, args.payload, args.link, lambda one: not wanted or one in wanted)
    names = [traced.function.name for traced in library.functions]
    if unusable := wanted & set(library.omitted):
        raise InputError(f"robot '{robot.name}' has no {some(sorted(unusable))}: a joint moves no mass; give the links beyond "
                         "it mass and inertia, or the joint a rotor inertia")
    if unknown := wanted - set(names):
        raise InputError(f"no function {some(sorted(unknown))} for a {robot.kind}; there are "
                         f"{some(names) or 'others: leave --only out to see them'}")
    if args.shared:
        shared_library.check(library)
    casadi = casadi_library.library(library, bool(wanted)) if args.casadi else None
    written, loaded = c_library.write_package(library, folder), []
    if args.shared:
        with show_working("compiling the shared library"):
            written += [*shared_library.write(library, folder), shared_library.build(library, folder, args.portable)]
        loaded.append(f"set the parameter robot_library of a controller to {written[-1].resolve()}")
    if casadi is not None:
        with show_working("compiling the library for CasADi"):
            written += casadi_library.write(casadi, folder, args.portable)
        loaded += [f"casadi.external('{function}', '{written[-1].resolve()}')" for function in casadi.names]
    operations = {f"{name}_{traced.function.name}": sum(traced.program.operation_counts.values())
                  for traced in library.functions}
    lines = [f"  {function}: {count} operations" for function, count in operations.items()]
    lines += [f"  {library.omission}"] if library.omitted else []
    lines += [f"  {sentence}" for sentence in (casadi.omitted if casadi else ())]
    lines += [f"{len(names)} functions of the {robot.kind} '{robot.name}' -> {folder} ({len(written)} files); next:",
              *(loaded or [f"cd {folder} && cmake -B build -DNATIVE=ON && cmake --build build && ctest --test-dir build"])]
    return CommandResult("\n".join(lines), {"robot": robot.name, "kind": robot.kind, "operations": operations,
                                      "folder": folder, "files": list(written)})


def warm_up(robot: Robot, links: Iterable[str] = ()) -> list[str]:
    """Call every function of a robot; return the names of those that have an answer.

    links: links with external wrenches, each alone, and with poses and Jacobians
    """
    motion = list(robot.home_motion)
    state: dict[str, Any] = {"base": BaseState()} if robot.has_moving_base else {}
    calls = _calls(robot, motion, state)
    for link in links:
        calls |= _calls_on(robot, link, motion, state)
    answered = []
    for name, call in calls.items():
        try:
            call()
            answered.append(name)
        except InputError:  # the robot has no such function, or its pose is singular: by then the kernel is compiled
            continue
    return answered


def _calls_on(robot: Any, link: str, motion: list[Any], state: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    q, load = motion[0], {link: np.zeros(6)}
    rates = Loads(load, load)
    return {f"link_pose {link}": lambda: robot.link_pose(link, q, **state),
            f"jacobian {link}": lambda: robot.jacobian(link, q, **state),
            f"inverse_dynamics {link}": lambda: robot.inverse_dynamics(*motion[:robot.order], loads=Loads(load), **state),
            f"torque_and_rate {link}": lambda: robot.torque_and_rate(*motion, loads=rates, **state),
            f"dynamics {link}": lambda: robot.dynamics(*motion, loads=rates, **state)}


def _calls(robot: Robot, motion: list[Any], state: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    q, qd, still = motion[0], motion[1], np.zeros(robot.n)
    to_torque = motion[:robot.order]
    moved = dict(state)
    if robot.elastic_joints:
        rest = np.zeros(len(robot.elastic_joints))
        moved["motors"] = MotorState(rest, rest)
    calls: dict[str, Callable[[], Any]] = {
        "torque_and_rate": lambda: robot.torque_and_rate(*motion, **state),
        "inverse_dynamics": lambda: robot.inverse_dynamics(*to_torque, **state),
        "dynamics": lambda: robot.dynamics(*motion, **state),
        "gravity": lambda: robot.gravity(q, **state), "mass_matrix": lambda: robot.mass_matrix(q, **state),
        "bias": lambda: robot.bias(q, qd, **moved), "coriolis": lambda: robot.coriolis(q, qd, **state),
        "forward_dynamics": lambda: robot.forward_dynamics(q, qd, still, **moved),
        "sensitivities": lambda: robot.sensitivities(*to_torque, **state),
        "rate_sensitivities": lambda: robot.rate_sensitivities(*motion, **state),
        "joint_wrenches": lambda: robot.joint_wrenches(*motion[:3], **state),
        "joint_wrench_rates": lambda: robot.joint_wrenches(*motion[:4], **state)}
    if moved != state:
        calls["motor_motion"] = lambda: robot.motor_motion(*motion, **state)
    if robot.is_fixed_tree:
        calls |= {"torque_deviations": lambda: robot.torque_deviations(q, qd, still, still, np.zeros((4, robot.n))),
                  "energy": lambda: robot.energy(q, qd)}
    if len(robot.platforms) == 1:
        calls["platform"] = lambda: robot.torque_and_rate(motion=PlatformMotion(*robot.home))
    if robot.loops:
        calls |= {"motion": lambda: robot.motion(*motion[:4]), "close": robot.closure.compile}
    if robot.has_moving_base:
        carried = BaseState(rates=np.zeros((robot.order, 6)))
        calls["prescribed_base"] = lambda: robot.torque_and_rate(*motion, base=carried)
    return calls
