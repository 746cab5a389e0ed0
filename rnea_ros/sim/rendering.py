"""Renderer for pictures of a robot by MuJoCo, off screen: the shapes of its URDF, and lines in space."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..errors import RneaError
from .scene import mujoco

COMPILER = '<mujoco><compiler fusestatic="false" discardvisual="false" strippath="true" balanceinertia="false"/></mujoco>'
READABLE = (".stl", ".obj")  # mesh formats that MuJoCo reads
WHITE, GREY, RED = (1.0, 1.0, 1.0), (0.7, 0.73, 0.78, 1.0), (0.85, 0.35, 0.35, 1.0)
MAX_GEOMS = 5000


class Polyline(NamedTuple):
    """Polyline: corners (count, 3) [m], colour (red, green, blue), width [m]."""

    corners: np.ndarray
    colour: Sequence[float]
    width: float


def select_offscreen_renderer() -> None:
    """Select the rendering library for a machine without a display; call before MuJoCo is first imported."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


def _with_one_shape_set(urdf: str, without: str) -> str:
    """Return the URDF with one set of shapes: links have visuals, whose meshes MuJoCo seldom reads, and collision shapes."""
    robot = ElementTree.fromstring(urdf)
    for link in robot.findall("link"):
        for shape in link.findall(without):
            link.remove(shape)
    return ElementTree.tostring(robot, encoding="unicode").replace("</robot>", f"{COMPILER}</robot>")


class Renderer:
    """Renderer of one robot, from its complete URDF and, if it has one, its folder of meshes.

    size : width and height of a picture [pixels]; view : azimuth, elevation [degrees], distance [m]; centre : point in the
    middle of the picture [m]. Raises RneaError if no library can render off screen.
    """

    def __init__(self, urdf: str, joint_names: Sequence[str], meshes: Path | None, size: tuple[int, int],
                 view: tuple[float, float, float], centre: Sequence[float], background: Sequence[float] = WHITE):
        engine = self._engine = mujoco()
        files = sorted(meshes.rglob("*")) if meshes else []
        found = {file.name: file.read_bytes() for file in files if file.suffix.lower() in READABLE}
        spec = engine.MjSpec.from_string(_with_one_shape_set(urdf, "visual" if found else "collision"), assets=found)
        spec.add_texture(name="sky", type=engine.mjtTexture.mjTEXTURE_SKYBOX, builtin=engine.mjtBuiltin.mjBUILTIN_FLAT,
                         rgb1=background, rgb2=background, width=16, height=96)
        spec.worldbody.add_light(pos=(1.0, -1.0, 3.0), dir=(-0.3, 0.3, -1.0), castshadow=False)
        spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (0.3,) * 3, (0.4,) * 3
        spec.visual.global_.offwidth, spec.visual.global_.offheight = size
        self._model = spec.compile()
        self._data = engine.MjData(self._model)
        self._q = [int(self._model.joint(name).qposadr[0]) for name in joint_names]
        try:
            self._renderer = engine.Renderer(self._model, size[1], size[0], max_geom=MAX_GEOMS)
        except Exception as error:  # the type depends on the missing library
            raise RneaError(f"MuJoCo cannot render off screen ({error}): EGL is needed (on Debian libegl1), or the library "
                            "that MUJOCO_GL names") from None
        self._camera = engine.MjvCamera()
        self._camera.azimuth, self._camera.elevation, self._camera.distance = view
        self._camera.lookat[:] = centre

    def __call__(self, q: np.ndarray, lines: Sequence[Polyline] = (), stopped: bool = False) -> Any:
        """Return pixels (height, width, 3) of a pose; the robot is red if its drives are stopped."""
        self._data.qpos[self._q] = q
        self._model.geom_rgba[:] = RED if stopped else GREY
        self._engine.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        for line in lines:
            for start, end in zip(line.corners[:-1], line.corners[1:]):
                self._connect(start, end, line)
        return self._renderer.render()

    def _connect(self, start: np.ndarray, end: np.ndarray, line: Polyline) -> None:
        engine, scene = self._engine, self._renderer.scene
        geom = scene.geoms[scene.ngeom]
        kind = engine.mjtGeom.mjGEOM_CAPSULE
        engine.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), np.array((*line.colour, 1.0), np.float32))
        engine.mjv_connector(geom, kind, line.width, start, end)
        geom.emission = 0.2
        scene.ngeom += 1
