"""`rnea doctor`: installed packages, their functions, installation of the missing ones; tests of kernels and windows."""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import subprocess
import sys
import warnings
from importlib import metadata, util
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..codegen import c_compiler, kernel
from ..codegen import cache as disk
from ..robots.robot import Robot
from .output import CommandResult, format_table, terminal_width

PIP = "pip install '.[{}]' in a clone of rnea_ros"
SELF_TEST = """<robot name="self_test"><link name="base"/><link name="arm"><inertial><origin xyz="0.2 0.1 0"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="turn" type="continuous">
<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
EXACT = 1e-12


class OptionalPackage(NamedTuple):
    """Optional package: its module, its name on PyPI, what it enables, and how it is installed."""

    module: str
    package: str
    enables: str
    install: str


RCLPY = OptionalPackage("rclpy", "rclpy", "the nodes, demo", "source ROS 2's setup file, or " + PIP.format("ros"))
MESSAGES = OptionalPackage("rnea_msgs", "rnea_msgs", "the nodes, demo",
                           "build the workspace with colcon and source it, or `make env`")
PYSIDE = OptionalPackage("PySide6", "PySide6-Essentials", "rqt plugin in a separate window", "pip install './rnea_rqt[qt]'")
PACKAGES = (
    OptionalPackage("llvmlite", "llvmlite", "kernels as machine code, in milliseconds", "pip install 'llvmlite>=0.45'"),
    OptionalPackage("matplotlib", "matplotlib", "--plot, pictures of reports, demos", PIP.format("plot")),
    OptionalPackage("casadi", "casadi", "plan, gait", PIP.format("planning")),
    OptionalPackage("scipy", "scipy", "identify, excite, plan", PIP.format("planning")),
    OptionalPackage("rosbags", "rosbags", "ROS 2 bags as recordings, without ROS", PIP.format("bags")),
    OptionalPackage("pyarrow", "pyarrow", "Parquet as output of torque", PIP.format("bags")),
    OptionalPackage("distributed", "distributed", "torque --dask: a cluster", PIP.format("dask")),
    OptionalPackage("mujoco", "mujoco", "simulation", PIP.format("sim")),
    OptionalPackage("toppra", "toppra", "demo --plant: timing to compare with", PIP.format("sim")),
    OptionalPackage("xacro", "xacro", ".xacro in place of a URDF", "pip install xacro, or ros-<distro>-xacro"),
    OptionalPackage("argcomplete", "argcomplete", "completion in the shell", "pip install argcomplete"),
    RCLPY, MESSAGES,
    OptionalPackage("control_msgs", "control_msgs", "the action of scaling_node, a controller's references",
                    "ros-<distro>-control-msgs"),
    OptionalPackage("rnea_rqt", "rnea_rqt", "rqt plugin", "build the workspace with colcon, or pip install ./rnea_rqt"),
    PYSIDE,
    OptionalPackage("python_qt_binding", "python_qt_binding", "rqt plugin in rqt", "ros-<distro>-rqt"),
)
X11_LIBRARIES = {  # loaded by Qt 6 for windows on X11: package of Debian and Ubuntu
    "libxcb-cursor.so.0": "libxcb-cursor0", "libxcb-icccm.so.4": "libxcb-icccm4", "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1", "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-xkb.so.1": "libxcb-xkb1", "libxcb-shape.so.0": "libxcb-shape0",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0", "libEGL.so.1": "libegl1"}
WORDS = {"llvm": "machine code by llvmlite", "c": "machine code by the C compiler",
         "python": "Python, the same numbers about 100 times slower: pip install 'llvmlite>=0.45'"}
ENVIRONMENT = ("ROS_DISTRO", "RMW_IMPLEMENTATION", "ROS_DOMAIN_ID", disk.FOLDER)


def add_doctor_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run_doctor(args: argparse.Namespace) -> CommandResult:
    """Return exit code 1 if kernels compute wrong results, or run as Python."""
    parts = {part: installed(part.package, part.module) for part in PACKAGES}
    compiler, folder = c_compiler.compiler(), disk.folder()
    backend, deviation = self_test()
    well = deviation < EXACT and backend != "python"
    lines = [f"rnea_ros {installed('rnea_ros') or 'run from its source'}, Python {platform.python_version()}, numpy "
             f"{np.__version__}, {platform.system()} {platform.machine()}",
             f"kernels: {WORDS[backend]}, within {deviation:.1e} of the plain recursion{'' if well else ': FAILED'}",
             f"C compiler: {compiler or 'none; rnea compile and export need one: apt install gcc'}",
             f"kernels are kept in {folder or 'no folder'}",
             f"ROS 2: {(ros := ros_2(bool(parts[RCLPY] and parts[MESSAGES])))}",
             *(f"{name}={os.environ[name]}" for name in ENVIRONMENT if name in os.environ), ""]
    lines += format_table(("", "package", "version", "enables"),
                          [("ok" if found else "--", part.module, found or "", part.enables)
                                                                  for part, found in parts.items()], "<<<<", terminal_width())
    window = qt_on_x11() if parts[PYSIDE] else "no PySide6"
    if parts[PYSIDE]:
        lines += ["", f"window: {window or 'Qt can open windows on X11'}"]
    missing: dict[str, list[str]] = {}
    for part in (part for part, found in parts.items() if not found):
        missing.setdefault(part.install, []).append(part.module)
    if missing:
        lines += ["", "for what is missing:", *(f"  {', '.join(names)}: {install}" for install, names in missing.items())]
    return CommandResult("\n".join(lines), {
        "well": well, "python": platform.python_version(), "numpy": np.__version__, "backend": backend,
        "deviation": deviation, "c_compiler": compiler or None, "kernel_folder": folder, "ros": ros, "window": window or "ok",
        "environment": {name: os.environ.get(name) for name in ENVIRONMENT},
        "packages": {part.module: {"version": found or None, "enables": part.enables, "install": part.install}
                     for part, found in parts.items()}}, int(not well))


def installed(package: str, module: str = "") -> str:
    """Return the version of a package; "yes" if it can be imported and has no version; "" if it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "yes" if module and util.find_spec(module) else ""


def self_test() -> tuple[str, float]:
    """Return the available backend, and the relative deviation of its torque and torque rate from the plain recursion."""
    state = np.arange(1.0, 5.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about a missing llvmlite
        backend = kernel.available("llvm")
        found, expected = (np.array(Robot.from_urdf(SELF_TEST, backend=one).torque_and_rate(*state))
                           for one in (backend, "reference"))
    return backend, float(np.abs(found - expected).max() / np.abs(expected).max())


def qt_on_x11() -> str:
    """Return what Qt lacks for windows on X11 and the line that installs it; "" if nothing is missing.

    Without these libraries Qt aborts the process ("could not load the Qt platform plugin xcb").
    """
    missing = [package for library, package in X11_LIBRARIES.items() if not loads(library)]
    if missing:
        return f"Qt CANNOT open windows: libraries are missing. Install them: sudo apt install {' '.join(missing)}"
    spec = util.find_spec("PySide6")
    plugin = Path(spec.origin or "").parent / "Qt" / "plugins" / "platforms" / "libqxcb.so" if spec else Path()
    problem = loading_error(str(plugin)) if plugin.is_file() else ""  # Qt of the distribution has its libraries
    return f"Qt CANNOT open windows on X11: {problem}" if problem else ""


def loads(library: str) -> bool:
    """Return whether a shared library can be loaded."""
    return not loading_error(library)


def loading_error(library: str) -> str:
    """Return why a shared library cannot be loaded; empty if it can."""
    try:
        ctypes.CDLL(library)
    except OSError as error:
        return str(error)
    return ""


def ros_2(there: bool) -> str:
    """Return a phrase on whether nodes can start, tested in another process, which two conflicting ROS may abort."""
    if not there:
        return "no rclpy or no rnea_msgs: library and command work, nodes do not"
    done = subprocess.run([sys.executable, "-c", "import rclpy.node, rnea_msgs.msg"], capture_output=True, text=True,
                          timeout=60)
    where = os.environ.get("ROS_DISTRO") or ("wheels from PyPI" if installed("ros-rclpy") else "not sourced")
    why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return f"{where}; nodes can start" if done.returncode == 0 else f"{where}; nodes CANNOT start: {why}"
