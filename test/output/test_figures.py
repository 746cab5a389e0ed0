"""Names are drawn as they are, numbers as people write them."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from rnea_ros.output.figures import pyplot, save


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("values", [(1e-7, 3e4), (2.0, 3.0), (0.011, 0.012), (5.0, 5.0)])
def test_numbers_at_the_axes_are_plain(tmp_path, scale, values):
    r"""Powers of ten came out as $\mathdefault{10^{-2}}$."""
    figure, axes = pyplot().subplots()
    axes.plot(values, values)
    axes.set(xscale=scale, yscale=scale, title="a$1$_b")
    figure.canvas.draw()
    labels = [label.get_text() for axis in (axes.xaxis, axes.yaxis) for which in ("major", "minor")
              for label in axis.get_ticklabels(which=which)]
    assert any(labels) and not any(set(label) & set("$\\{}^") for label in labels)
    if scale == "log" and values[0] < 1e-3:
        assert "10⁻³" in labels or "10⁻⁴" in labels
    assert not axes.title.get_parse_math() and axes.title.get_text() == "a$1$_b"
    save(figure, tmp_path / "picture.png")
