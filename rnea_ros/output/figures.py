"""Pictures; the only place that knows matplotlib."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RneaError

MOST_POINTS = 4_000  # of a curve; more cannot be seen
EXPONENT = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")


def pyplot() -> Any:
    """matplotlib.pyplot, drawing to files. Names of joints are drawn as they are, with boxes for letters that no font has."""
    try:
        import matplotlib
    except ImportError:
        raise RneaError("a picture needs matplotlib: pip install 'rnea_ros[plot]', or leave --plot out") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["text.parse_math"] = False
    warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
    _register_plain_powers()
    import matplotlib.pyplot as plt

    return plt


@cache
def _register_plain_powers() -> None:
    """Logarithmic axes write powers of ten as mathematics, which no text here is read as: they get letters for exponents."""
    from matplotlib import scale, ticker

    class Powers(ticker.LogFormatterSciNotation):
        def __call__(self, x: float, pos: Any = None) -> str:
            text = super().__call__(x, pos).removeprefix(r"$\mathdefault{").removesuffix("}$")
            text = text.replace(r"\times", "\N{MULTIPLICATION SIGN}")
            return re.sub(r"\^\{(.*?)\}", lambda power: power[1].translate(EXPONENT), text)

    class Log(scale.LogScale):
        def set_default_locators_and_formatters(self, axis: Any) -> None:
            super().set_default_locators_and_formatters(axis)
            axis.set_major_formatter(Powers(self.base))
            axis.set_minor_formatter(Powers(self.base, labelOnlyBase=self.subs is not None))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # scales shall lose a parameter that older ones must have
        scale.register_scale(Log)


def check_format(path: str | Path) -> None:
    """RneaError for a picture that cannot be drawn, before the work that makes it."""
    ending, formats = Path(path).suffix[1:].lower(), pyplot().Figure().canvas.get_supported_filetypes()
    if ending and ending not in formats:
        raise RneaError(f"{path} cannot be drawn: '{ending}' is no format of pictures; there are {', '.join(sorted(formats))}")


def save(figure: Any, path: str | Path, dpi: int = 120) -> None:
    """To a file whose name says the format; then the figure is gone. RneaError for a format that does not exist."""
    try:
        figure.savefig(path, dpi=dpi)
    except ValueError as error:
        raise RneaError(f"{path} cannot be drawn: {error}") from None
    finally:
        pyplot().close(figure)


def movie(path: str | Path, figure: Any, frame: Callable[[int], list], count: int, rate: int) -> None:
    """A GIF of a figure; frame(k) draws picture k and returns a list, empty; rate: pictures per second."""
    from matplotlib.animation import FuncAnimation, PillowWriter

    FuncAnimation(figure, frame, frames=count).save(path, PillowWriter(fps=rate))


def torques(path: str | Path, t: np.ndarray, tau: np.ndarray, tau_rate: np.ndarray, joint_names: Sequence[str],
            units: Sequence[str], effort_limits: np.ndarray) -> None:
    """Torque and torque rate of every joint over time; dashed lines are the URDF's limits where they come near."""
    plt = pyplot()
    n = len(joint_names)
    figure, axes = plt.subplots(n, 2, figsize=(11, 1.6 + 1.5 * n), sharex=True, squeeze=False, layout="constrained")
    step = max(1, len(t) // MOST_POINTS)
    for k, (name, unit) in enumerate(zip(joint_names, units, strict=True)):
        curves = ((axes[k, 0], tau, unit, "tab:blue"), (axes[k, 1], tau_rate, f"{unit}/s", "tab:red"))
        for axis, values, label, colour in curves:
            axis.plot(t[::step], values[::step, k], color=colour, linewidth=1.2)
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
        axes[k, 0].set_title(name, loc="left", fontsize=9)
        if 0.0 < effort_limits[k] < 1.5 * np.abs(tau[:, k]).max():
            for limit in (-effort_limits[k], effort_limits[k]):
                axes[k, 0].axhline(limit, color="gray", linestyle="--", linewidth=1.0)
    axes[0, 1].set_title("rate", loc="left", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.suptitle("Joint torque and its exact rate")
    save(figure, path)
