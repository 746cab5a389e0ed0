"""Pictures of ~/markers on robots, for docs/: the messages that RViz gets, drawn by MuJoCo's renderer instead of by RViz.

    python benchmark/marker_pictures.py [robot ...]

Line strips, arrows, spheres, cylinders and texts are drawn with the positions, sizes and colours of the messages. It is not
RViz: its arrows have another head, and its texts one size for all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from visualization_msgs.msg import Marker

from rnea_ros import Robot, load
from rnea_ros.demo.processes import share_file
from rnea_ros.io.figures import picture
from rnea_ros.model import urdf_reader
from rnea_ros.nodes.common.model_facts import joint_limits, joint_parameters
from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE
from rnea_ros.nodes.dynamics.markers import Markers
from rnea_ros.nodes.dynamics.messages import DynamicsMessages
from rnea_ros.nodes.dynamics.served_robot import STILL, ServedGeneralRobot, ServedRobot, WholeBody, no_loads, served
from rnea_ros.sim.scene import Renderer, select_offscreen_renderer

ROOT = Path(__file__).parents[1]
SIZE, DARK = (900, 700), (0.19, 0.19, 0.19)
UNSEEN = ("effort_value",)


class Scene(NamedTuple):
    """urdf, robot_file: paths; pose: of joints by name, else zero; view: azimuth, elevation, distance; centre."""

    urdf: str
    robot_file: str = ""
    pose: tuple[tuple[str, float], ...] = ()
    view: tuple[float, float, float] = (130.0, -15.0, 2.2)
    centre: tuple[float, float, float] = (0.2, 0.0, 0.45)
    base: str | None = None
    wrenches: tuple[tuple[str, tuple[float, ...]], ...] = ()


SCENES = {
    "panda": Scene("example-robot-data:urdf/panda.urdf", pose=tuple(
        (f"panda_joint{k}", q) for k, q in enumerate((0.3, -0.4, 0.2, -2.0, 0.2, 1.8, 0.6), 1)),
                   view=(140.0, -8.0, 2.2), centre=(0.2, 0.0, 0.6),
                   wrenches=(("panda_hand", (0.0, 12.0, -9.0, 0.0, 0.0, 0.0)),)),
    "stanford": Scene("urdf/stanford.urdf", pose=(("joint2", -0.9), ("joint3", 0.35), ("joint5", 0.6)),
                      view=(130.0, -12.0, 1.6), centre=(0.2, 0.0, 0.4)),
    "talos": Scene("example-robot-data:robots/talos_reduced.urdf", view=(150.0, -10.0, 2.9), centre=(0.0, 0.0, 0.1),
                   base="floating"),
    "palletiser": Scene("urdf/palletiser.urdf", "urdf/palletiser.robot.yaml", view=(110.0, -12.0, 4.6),
                        centre=(0.5, 0.0, 1.1)),
    "quadruped": Scene("example-robot-data:robots/solo12.urdf", "urdf/solo12.robot.yaml", tuple(
        (f"{leg}_{joint}", q * (1 if leg[0] == "F" else -1)) for leg in ("FL", "FR", "HL", "HR")
        for joint, q in (("HFE", 0.8), ("KFE", -1.6))), view=(140.0, -12.0, 0.9), centre=(0.0, 0.0, -0.02)),
}


class View(Renderer):
    """Draws messages."""

    def show(self, q: np.ndarray, marks: Iterator[tuple[Marker, np.ndarray, np.ndarray]]) -> Any:
        """Draw marks, each with the pose of its frame."""
        self._data.qpos[self._q] = q
        self._model.geom_rgba[:, 3] = 0.45  # as config/rnea.rviz has it
        self._engine.mj_forward(self._model, self._data)
        self._renderer.update_scene(self._data, self._camera)
        for mark, R, p in marks:
            self._draw(mark, R, p)
        return self._renderer.render()

    def _draw(self, mark: Marker, R: np.ndarray, p: np.ndarray) -> None:
        kinds, colour = self._engine.mjtGeom, [getattr(mark.color, part) for part in "rgba"]
        own, line = mark.pose.position, np.array([[at.x, at.y, at.z] for at in mark.points]).reshape(-1, 3) @ R.T + p
        middle = p + R @ np.array([own.x, own.y, own.z])
        if mark.type == Marker.LINE_STRIP:
            for start, end in pairwise(line):
                self._engine.mjv_connector(self._geom(kinds.mjGEOM_CAPSULE, colour), kinds.mjGEOM_CAPSULE, 0.5 * mark.scale.x,
                                           start, end)
        elif mark.type == Marker.ARROW:
            self._engine.mjv_connector(self._geom(kinds.mjGEOM_ARROW, colour), kinds.mjGEOM_ARROW, 0.5 * mark.scale.x, *line)
        elif mark.type in (Marker.SPHERE, Marker.CYLINDER):
            round_, size = mark.type == Marker.SPHERE, 0.5 * np.array([mark.scale.x, mark.scale.y, mark.scale.z])
            kind = kinds.mjGEOM_ELLIPSOID if round_ else kinds.mjGEOM_CYLINDER
            self._geom(kind, colour, middle, size if round_ else size[[0, 2, 1]], R)
        elif mark.type == Marker.TEXT_VIEW_FACING:
            for k, line in enumerate(mark.text.split("\n")):
                down = np.array([0.0, 0.0, 1.3 * k * mark.scale.z])
                self._geom(kinds.mjGEOM_LABEL, colour, middle - down, np.full(3, 0.01), R).label = line

    def _geom(self, kind: Any, colour: Any, line: np.ndarray = np.zeros(3), size: np.ndarray = np.zeros(3),
              R: np.ndarray = np.eye(3)) -> Any:
        scene = self._renderer.scene
        geom = scene.geoms[scene.ngeom]
        self._engine.mjv_initGeom(geom, kind, size, line, R.ravel(), np.array(colour, np.float32))
        geom.emission = 0.3
        scene.ngeom += 1
        return geom


def results(robot: Robot, made: ServedRobot, motion: np.ndarray) -> tuple[Any, WholeBody | None]:
    """Torques and the like, and the whole robot; a base that moves is at rest at the origin."""
    if isinstance(made, ServedGeneralRobot) and robot.has_moving_base:
        return made.evaluate(motion, np.full((4, len(made.optional)), np.nan), no_loads, STILL), made.body(motion)
    return made.dynamics(motion, np.full((4, len(made.optional)), np.nan), no_loads, 0), made.body(motion)


def shown(name: str, scene: Scene) -> None:
    """Write docs/markers_NAME.png: at a pose, in a motion at random whose torque rates were larger a moment ago."""
    path = share_file(scene.urdf)
    robot = load(path, ROOT / scene.robot_file if scene.robot_file else None, base=scene.base)
    values = {entry.name: entry.default for entry in DYNAMICS_TABLE}
    made, rng = served(robot, values), np.random.default_rng(2)
    out = DynamicsMessages(made, joint_limits(joint_parameters(made), made), "")
    markers = Markers(made, cuts=made.cuts)
    pose = np.array([dict(scene.pose).get(joint, 0.0) for joint in made.joint_names])
    made.prepare(no_loads)
    for share in (1.0, 0.7):
        motion = np.array([pose, *(share * size * rng.uniform(-1.0, 1.0, made.n) for size in (1.0, 8.0, 60.0))])
        result, body = results(robot, made, motion)
        out.fill(Time(), motion, result)
        markers.fill(out, dict(scene.wrenches))
        markers.fill_static(out)
    if body is not None:
        markers.fill_whole(body)
    tree = made.tree
    q = np.array([made._last[0].positions[joint][0] for joint in tree.joint_names]) if made.cuts else pose
    whole, _ = urdf_reader.whole(path, allow_xacro=True)
    view = View(urdf_reader.text(whole), tree.joint_names, meshes(path), SIZE, scene.view, scene.centre, DARK)

    def poses() -> Iterator[tuple[Marker, np.ndarray, np.ndarray]]:
        for mark in (*markers.changing, *markers.whole, *markers.static):
            if mark.action == Marker.ADD and mark.ns not in UNSEEN:
                yield mark, *tree.link_pose(mark.header.frame_id, q)

    image = view.show(q, poses())
    with picture(ROOT / "docs" / f"markers_{name}.png", (SIZE[0] / 100.0, SIZE[1] / 100.0), 100) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.imshow(image)
        axes.set_axis_off()


def meshes(path: Path) -> Path | None:
    return next((folder / "meshes" for folder in path.parents[:3] if (folder / "meshes").is_dir()), None)


if __name__ == "__main__":
    select_offscreen_renderer()
    for chosen in sys.argv[1:] or SCENES:
        shown(chosen, SCENES[chosen])
