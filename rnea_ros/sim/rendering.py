"""Pictures of a robot by MuJoCo's own renderer, off screen: the shapes of its URDF, and lines in space."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..errors import RneaError
from .engine import mujoco

COMPILER = '<mujoco><compiler fusestatic="false" discardvisual="false" strippath="true" balanceinertia="false"/></mujoco>'
READABLE = (".stl", ".obj")  # meshes that MuJoCo reads
WHITE, GREY, RED = (1.0, 1.0, 1.0), (0.7, 0.73, 0.78, 1.0), (0.85, 0.35, 0.35, 1.0)
LINES = 5000  # more geoms than that a picture does not have


class Line(NamedTuple):
    """Corners (count, 3) [m], colour (red, green, blue), width [m]."""

    corners: np.ndarray
    colour: Sequence[float]
    width: float


def off_screen() -> None:
    """To be called before MuJoCo is imported for the first time: which library draws, where there is no screen."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


def _drawable(urdf: str, without: str) -> str:
    """A link has two sets of shapes: visuals, whose meshes MuJoCo seldom reads, and those for collisions. One is enough."""
    robot = ElementTree.fromstring(urdf)
    for link in robot.findall("link"):
        for shape in link.findall(without):
            link.remove(shape)
    return ElementTree.tostring(robot, encoding="unicode").replace("</robot>", f"{COMPILER}</robot>")


class Renderer:
    """Of one robot, from its whole URDF, with its folder of meshes where it has one. Raises RneaError where nothing can draw.

    size : width and height of a picture [pixels]; view : azimuth, elevation [degrees], distance [m], towards the centre [m]
    """

    def __init__(self, urdf: str, joint_names: Sequence[str], meshes: Path | None, size: tuple[int, int],
                 view: tuple[float, float, float], centre: Sequence[float], background: Sequence[float] = WHITE):
        engine = self._engine = mujoco()
        files = sorted(meshes.rglob("*")) if meshes else []
        found = {file.name: file.read_bytes() for file in files if file.suffix.lower() in READABLE}
        spec = engine.MjSpec.from_string(_drawable(urdf, "visual" if found else "collision"), assets=found)
        spec.add_texture(name="sky", type=engine.mjtTexture.mjTEXTURE_SKYBOX, builtin=engine.mjtBuiltin.mjBUILTIN_FLAT,
                         rgb1=background, rgb2=background, width=16, height=96)
        spec.worldbody.add_light(pos=(1.0, -1.0, 3.0), dir=(-0.3, 0.3, -1.0), castshadow=False)
        spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (0.3,) * 3, (0.4,) * 3
        spec.visual.global_.offwidth, spec.visual.global_.offheight = size
        self._model = spec.compile()
        self._data = engine.MjData(self._model)
        self._q = [int(self._model.joint(name).qposadr[0]) for name in joint_names]
        try:
            self._renderer = engine.Renderer(self._model, size[1], size[0], max_geom=LINES)
        except Exception as error:  # of another kind for each library that is missing
            raise RneaError(f"MuJoCo cannot draw off screen ({error}): EGL is needed (on Debian libegl1), or what MUJOCO_GL "
                            "names") from None
        self._camera = engine.MjvCamera()
        self._camera.azimuth, self._camera.elevation, self._camera.distance = view
        self._camera.lookat[:] = centre

    def __call__(self, q: np.ndarray, lines: Sequence[Line] = (), stopped: bool = False) -> Any:
        """Pixels (height, width, 3); red where its drives are stopped."""
        self._data.qpos[self._q] = q
        self._model.geom_rgba[:] = RED if stopped else GREY
        self._engine.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        for line in lines:
            for start, end in zip(line.corners[:-1], line.corners[1:]):
                self._connect(start, end, line)
        return self._renderer.render()

    def _connect(self, start: np.ndarray, end: np.ndarray, line: Line) -> None:
        engine, scene = self._engine, self._renderer.scene
        geom = scene.geoms[scene.ngeom]
        kind = engine.mjtGeom.mjGEOM_CAPSULE
        engine.mjv_initGeom(geom, kind, np.zeros(3), np.zeros(3), np.eye(3).ravel(), np.array((*line.colour, 1.0), np.float32))
        engine.mjv_connector(geom, kind, line.width, start, end)
        geom.emission = 0.2
        scene.ngeom += 1
