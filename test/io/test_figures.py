"""Pictures: names and numbers are drawn as plain text, and the global state of matplotlib does not change."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from rnea_ros import RneaError
from rnea_ros.io import figures
from rnea_ros.io.figures import movie, new_figure, picture

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("values", [(1e-7, 3e4), (2.0, 3.0), (0.011, 0.012), (5.0, 5.0)])
def test_axis_numbers_are_plain_text(tmp_path, scale, values):
    r"""Once, powers of ten were written as $\mathdefault{10^{-2}}$."""
    with picture(tmp_path / "picture.png", (6.0, 4.0)) as figure:
        axes = figure.subplots()
        axes.plot(values, values)
        axes.set(xscale=scale, yscale=scale, title="a$1$_b")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    labels = [label.get_text() for axis in (axes.xaxis, axes.yaxis) for which in ("major", "minor")
              for label in axis.get_ticklabels(which=which)]
    assert any(labels) and not any(set(label) & set("$\\{}^") for label in labels)
    if scale == "log" and values[0] < 1e-3:
        assert "10\u207b\u00b3" in labels or "10\u207b\u2074" in labels
    assert not axes.title.get_parse_math() and axes.title.get_text() == "a$1$_b"


def test_matplotlib_settings_apply_to_one_picture_only(tmp_path):
    with picture(tmp_path / "a.png", (3.0, 2.0), settings={"font.size": 31.0}) as figure:
        assert figure.subplots().title.get_fontsize() > 31.0
    with picture(tmp_path / "b.png", (3.0, 2.0)) as figure:
        assert figure.subplots().title.get_fontsize() < 31.0


@pytest.mark.parametrize("limit", [1.0, 100.0])
def test_effort_limit_is_drawn_once_if_it_is_near_the_torques(tmp_path, limit):
    t, path = np.linspace(0.0, 1.0, 5), tmp_path / "torques.svg"
    tau = np.column_stack((np.sin(3.0 * t), np.cos(3.0 * t)))
    figures.draw_torques(path, t, tau, tau, ["a", "b"], ["N m", "N m"], np.full(2, limit))
    assert path.read_text().count("<!-- limit -->") == (limit == 1.0)


STATE = """
import sys, warnings
import matplotlib
from matplotlib import scale
matplotlib.use("svg")
before = dict(matplotlib.rcParams), scale.get_scale_names(), list(warnings.filters)
log = type(scale.scale_factory("log", None))
from rnea_ros.io import figures
figures.check_format("a.png")
with figures.picture("a.png", (3.0, 2.0), settings={"font.size": 5.0}) as figure:
    figure.subplots().loglog([1.0, 2.0])
figures.movie("a.gif", (3.0, 2.0), lambda axes, k: axes.plot([k, 1.0]), 2, 5)
figures.new_figure(3.0, 2.0), figures.color_scale(3)
assert before[:2] == (dict(matplotlib.rcParams), scale.get_scale_names())
assert before[2] == list(warnings.filters) and type(scale.scale_factory("log", None)) is log
assert "matplotlib.pyplot" not in sys.modules
"""


def test_global_matplotlib_state_is_unchanged(tmp_path):
    """Backend, settings, scales and warning filters are compared; pyplot is not imported, so no window can open."""
    done = subprocess.run([sys.executable, "-c", STATE], cwd=tmp_path, capture_output=True, text=True, timeout=240,
                          env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""})
    assert done.returncode == 0, done.stderr


def test_missing_glyphs_do_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with picture(tmp_path / "a.png", (3.0, 2.0)) as figure:
            figure.subplots().set_title("\U0001f9be \u5173\u8282")


def test_failed_drawing_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "a.png", (3.0, 2.0)):
        raise ZeroDivisionError
    with pytest.raises(RneaError, match=r"a\.txt cannot be drawn"), picture(tmp_path / "a.txt", (3.0, 2.0)):
        pass
    with pytest.raises(RneaError, match="'txt' is no format of pictures"):
        figures.check_format(tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_movie_file_has_all_frames(tmp_path):
    image = pytest.importorskip("PIL.Image")
    movie(tmp_path / "a.gif", (2.0, 1.5), lambda axes, k: axes.plot([0.0, k]), 3, 5)
    with image.open(tmp_path / "a.gif") as made:
        assert made.n_frames == 3


def test_missing_matplotlib_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RneaError, match=r"\.\[plot\]"):
        new_figure(1.0, 1.0)


def test_color_scale_returns_distinct_colors():
    assert figures.color_scale(4).shape == (4, 4) and len(np.unique(figures.color_scale(4), axis=0)) == 4
