"""Figures drawn to files by matplotlib, whose global settings are not changed."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import MissingPackage, RneaError
from ..model.drives import utilizations_by_owner
from ..model.tree import Limits
from ..robots.robot import Robot

MAX_CURVE_POINTS = 4_000  # points of a curve; more are not visible
PLAIN = {"text.parse_math": False}  # joint names are drawn literally
STYLE = {  # of examples: readable at half size; colours for colour-blind readers (Okabe and Ito)
    "font.size": 13, "axes.titlesize": 13, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "0.9", "lines.linewidth": 2.0, "legend.frameon": False, "legend.fontsize": 12,
    "axes.prop_cycle": "cycler('color', ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'])"}
EXPONENT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def new_figure(width: float, height: float) -> Any:
    """Return a matplotlib Figure [inches] outside of pyplot's list. Raises MissingPackage without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackage("a picture needs matplotlib", "plot", "leave the picture out") from None
    return Figure(figsize=(width, height), layout="constrained")


@contextmanager
def picture(path: str | os.PathLike, size: tuple[float, float], dpi: int = 120,
            settings: Mapping[str, Any] = PLAIN) -> Iterator[Any]:
    """Yield a Figure to draw on; it is written to the file at the end of the block, in the format of its suffix.

    settings : rcParams for this figure only
    Raises MissingPackage without matplotlib, and RneaError for an unknown format.
    """
    figure = new_figure(*size)
    with _drawing(settings):
        yield figure
        _plain_powers(figure)
        try:
            figure.savefig(path, dpi=dpi)
        except ValueError as error:
            raise RneaError(f"{path} cannot be drawn: {error}") from None


def movie(path: str | Path, size: tuple[float, float], frame: Callable[[Any, int], None], count: int, rate: int) -> None:
    """Write a GIF; frame(axes, k) draws frame k; rate: frames per second."""
    figure = new_figure(*size)
    from matplotlib.animation import FuncAnimation, PillowWriter

    axes = figure.subplots()

    def draw(k: int) -> list:
        axes.clear()
        frame(axes, k)
        return []

    with _drawing():
        FuncAnimation(figure, draw, frames=count).save(path, PillowWriter(fps=rate))


def draw_polygons(axis: Any, faces: Sequence[np.ndarray], colours: Sequence[Any], strength: float = 1.0) -> None:
    """Draw polygons (corners, 3) on 3D axes, each in its colour; strength: opacity."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    most = max(map(len, faces), default=0)  # all with as many corners: matplotlib fills up others with arbitrary numbers
    faces = [np.concatenate((face, np.repeat(face[-1:], most - len(face), axis=0))) for face in faces]
    axis.add_collection3d(Poly3DCollection(faces, facecolors=colours, edgecolors="none", alpha=strength))


def draw_stills(axis: Any, chains: np.ndarray, colour: str, least: float = 0.15, **style: Any) -> None:
    """Draw a chain of links at several instants, from light to dark.

    chains: (instants, corners, 2); style: of matplotlib's lines.
    """
    for strength, chain in zip(np.linspace(least, 1.0, len(chains)), chains, strict=True):
        axis.plot(*chain.T, color=colour, alpha=strength, **{"linewidth": 3.0, "solid_capstyle": "round"} | style)


def color_scale(count: int) -> np.ndarray:
    """Return colours from dark to bright (count, 4)."""
    import matplotlib

    return matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, count))


def check_format(path: str | Path) -> None:
    """Raise RneaError for a file format that cannot be written, before the data is computed."""
    ending, formats = Path(path).suffix[1:].lower(), new_figure(1.0, 1.0).canvas.get_supported_filetypes()
    if ending and ending not in formats:
        raise RneaError(f"{path} cannot be drawn: '{ending}' is no format of pictures; there are {', '.join(sorted(formats))}")


@contextmanager
def _drawing(settings: Mapping[str, Any] = PLAIN) -> Iterator[None]:
    """Apply our settings. Glyphs without a font become boxes, without a warning."""
    import matplotlib

    with matplotlib.rc_context({**PLAIN, **settings}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def _plain_powers(figure: Any) -> None:
    """Replace mathematical text of logarithmic axes by plain characters with superscripts."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext

    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        for formatter, put in ((axis.get_major_formatter(), axis.set_major_formatter),
                               (axis.get_minor_formatter(), axis.set_minor_formatter)):
            if isinstance(formatter, LogFormatterMathtext):
                put(FuncFormatter(lambda x, tick, written=formatter: _plain(written(x, tick))))


def _plain(text: str) -> str:
    text = text.removeprefix(r"$\mathdefault{").removesuffix("}$").replace(r"\times", "\N{MULTIPLICATION SIGN}")
    return re.sub(r"\^\{(.*?)\}", lambda power: power[1].translate(EXPONENT), text)


def draw_torques(path: str | Path, t: np.ndarray, tau: np.ndarray, tau_rate: np.ndarray, joint_names: Sequence[str],
            units: Sequence[str], effort_limits: np.ndarray, deviations: np.ndarray | None = None,
            shares: Mapping[str, Mapping[str, np.ndarray]] = {}, measured: np.ndarray | None = None) -> None:
    """Draw torque and torque rate of every joint over time; dashed lines are the URDF's limits where they are near.

    shares : utilization of drive limits (samples,) by joint or supply, and quantity: a third column
    deviations : standard deviations of both (2, samples, n); a band of two to either side is shaded; NaN: unknown
    measured : torques (samples, n), drawn beside the computed ones; NaN: unknown
    """
    n = len(joint_names)
    off = np.full((2, *tau.shape), np.nan) if deviations is None else 2.0 * deviations
    with picture(path, (11, 1.6 + 1.5 * n)) as figure:
        axes = figure.subplots(n, 3 if shares else 2, sharex=True, squeeze=False)
        step = max(1, len(t) // MAX_CURVE_POINTS)
        for k, (name, unit) in enumerate(zip(joint_names, units, strict=True)):
            curves = ((axes[k, 0], tau, off[0], unit, "tab:blue"), (axes[k, 1], tau_rate, off[1], f"{unit}/s", "tab:red"))
            for axis, values, band, label, colour in curves:
                axis.plot(t[::step], values[::step, k], color=colour, linewidth=1.2)
                low, high = values[::step, k] - band[::step, k], values[::step, k] + band[::step, k]
                axis.fill_between(t[::step], low, high, color=colour, alpha=0.25, linewidth=0.0)
                axis.set_ylabel(label)
                axis.grid(alpha=0.3)
            axes[k, 0].set_title(name, loc="left", fontsize=9)
            if measured is not None and np.nan_to_num(measured[:, k]).any():
                axes[k, 0].plot(t[::step], measured[::step, k], color="black", linewidth=0.8, alpha=0.6, zorder=1.0,
                                label="measured")
                axes[k, 0].lines[0].set_label("computed")
                axes[k, 0].legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
            if 0.0 < effort_limits[k] < 1.5 * np.abs(tau[:, k]).max():
                for limit in (-effort_limits[k], effort_limits[k]):
                    axes[k, 0].axhline(limit, color="gray", linestyle="--", linewidth=1.0, label="limit")
            if shares:
                shown = {quantity: share[::step] for quantity, share in shares.get(name, {}).items()}
                draw_limit_shares(axes[k, 2], t[::step], shown)
        axes[0, 1].set_title("rate", loc="left", fontsize=9)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.suptitle("Joint torque and its exact rate")
        limit_legend(figure)


def limit_legend(figure: Any) -> None:
    """Add a legend with one entry, for all dashed lines of the figure with the label "limit", if there are any."""
    lines = [line for axis in figure.axes for line in axis.get_lines() if line.get_label() == "limit"]
    if lines:
        figure.legend(handles=lines[:1], loc="outside lower right", frameon=False, fontsize=9)


def draw_limit_shares(axis: Any, t: np.ndarray, shares: Mapping[str, np.ndarray]) -> None:
    """Draw shares of limits over time, each with its name; the dashed line is the limit."""
    axis.set_title("share of drive limits", loc="left", fontsize=9)
    for quantity, share in shares.items():
        axis.plot(t, share, linewidth=1.2, label=quantity.replace("_", " "))
    axis.axhline(1.0, color="gray", linestyle="--", linewidth=1.0)
    axis.grid(alpha=0.3)
    if shares:
        axis.legend(fontsize=7, loc="upper right")


MOTION_SAMPLES = 2001
SHOWN_RANGE = 0.6  # largest distance at which a limit is shown, over the range of the curve
COLOURS = ("tab:green", "tab:purple", "tab:blue", "tab:red", "tab:brown")
AddedRate = Callable[[Any, Any, Any], Any]  # q, qd, qdd -> rates (..., n)


class TimedMotion(Protocol):
    """q, qd, qdd, qddd (samples, n) at times t (samples,) from 0 to duration [s]."""

    @property
    def duration(self) -> float: ...

    def __call__(self, t: np.ndarray, /) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...


def draw_motion(path: str | Path, robot: Robot, motion: TimedMotion, limits: Limits,
                added: AddedRate | None = None) -> None:
    """Draw position, velocity, torque and torque rate of every joint over time; dashed lines are limits that are near.

    Limited commanded torque rates and the utilization of drive limits are drawn too.

    added : rates of the torques that commanded efforts do not contain, from q, qd, qdd
    """
    t = np.linspace(0.0, motion.duration, MOTION_SAMPLES if motion.duration else 1)
    state = motion(t)
    curves = [state[0], state[1], *robot.torque_and_rate(*state)]
    shares = utilizations_by_owner(robot.drive_limits, curves[2], curves[3], state[1])
    symmetric = [limits.velocity, limits.effort, limits.effort_rate]
    if np.isfinite(limits.commanded_effort_rate).any():
        curves.append(curves[3] if added is None else curves[3] - added(*state[:3]))
        symmetric.append(limits.commanded_effort_rate)
    bounds = ((limits.lower, limits.upper), *((-limit, limit) for limit in symmetric))
    with picture(path, (15, 1.2 + 1.8 * robot.n), dpi=110) as figure:
        axes = figure.subplots(robot.n, len(curves) + bool(shares), sharex=True, squeeze=False)
        for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types)):
            length, force = ("m", "N") if kind == "prismatic" else ("rad", "N m")
            titles = (f"{name}: position [{length}]", f"velocity [{length}/s]", f"torque [{force}]",
                      f"torque rate [{force}/s]", f"commanded torque rate [{force}/s]")
            for axis, values, (lower, upper), title, colour in zip(axes[k], curves, bounds, titles, COLOURS):
                axis.set_title(title, loc="left", fontsize=9)
                _curve(axis, t, values[:, k], (lower[k], upper[k]), colour)
            if shares:
                draw_limit_shares(axes[k, -1], t, shares.get(name, {}))
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name}: motion of {motion.duration:.5g} s")
        limit_legend(figure)


def _curve(axis: Any, t: np.ndarray, values: np.ndarray, limits: tuple[float, float], colour: str) -> None:
    axis.plot(t, values, color=colour, linewidth=1.3)
    axis.grid(alpha=0.3)
    least, most = values.min(), values.max()
    for limit in limits:
        if least - SHOWN_RANGE * (most - least) <= limit <= most + SHOWN_RANGE * (most - least):
            axis.axhline(limit, color="gray", linestyle="--", linewidth=1.0, label="limit")
