"""MuJoCo scenes of robots, and off-screen rendering of pictures. MuJoCo is imported only here, on first use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import rpy
from ..errors import InputError, MissingPackage, RneaError, some
from ..model import urdf_reader
from ..model.robot_file import Source, read
from ..robots.load import load
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics


def mujoco() -> Any:
    """Return the MuJoCo module. Raises RneaError if it is not installed."""
    try:
        import mujoco as engine
    except ImportError as error:
        raise MissingPackage(f"a simulated robot needs MuJoCo ({error})", "sim") from None
    return engine


COMPILER = '<mujoco><compiler fusestatic="false" discardvisual="true" strippath="true" balanceinertia="false"/></mujoco>'
LOOP_SOLIMP = [0.9999, 0.9999, 0.001, 0.5, 2.0]  # solver impedance of loops: relative error of the acceleration 1e-4
AXIS_POINT_DISTANCE_M = 0.1  # distance of the two points that determine the axis of a revolute cut joint
FRICTION = [0.8, 0.005, 0.0001]  # sliding, torsional and rolling friction of rubber feet
FOOT_SOLIMP = [0.9, 0.99, 0.001, 0.5, 2.0]  # solver impedance of foot contacts
# MuJoCo constraint for each type of cut joint
LOOP_CONSTRAINTS = {"spherical": "connect", "connect": "connect", "fixed": "weld", "weld": "weld", "revolute": "connect"}


class Foot(NamedTuple):
    """Sphere on a link that can touch the ground; lengths [m] in the frame of the link."""

    link: str
    radius: float
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)


class Tool(NamedTuple):
    """Body after a force-torque sensor at the origin of a link; the robot model does not include it.

    mass [kg]; com: centre of mass in the frame of the link [m]; inertia: principal moments about it [kg m^2]
    """

    link: str
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]


class UnmodelledDynamics(NamedTuple):
    """Dynamics of the plant that the robot model does not include.

    masses  : factor on mass and inertia of every body, or (n,) factors, one for the body moved by each joint
    coulomb : Coulomb friction of the joints, scalar or (n,) [N m, N]
    viscous : viscous friction in addition to that of the robot file [N m s/rad, N s/m]
    """

    masses: ArrayLike = 1.0
    coulomb: ArrayLike = 0.0
    viscous: ArrayLike = 0.0


class Scene(NamedTuple):
    """Robot with its tree and its MuJoCo model. description: URDF as text."""

    description: str
    robot: Robot
    tree: TreeDynamics
    model: Any
    feet: tuple[Foot, ...]
    tool: Tool | None


def scene(urdf: Any, robot_file: Source | None = None, *, feet: Sequence[Foot] = (), tool: Tool | None = None,
          unmodelled: UnmodelledDynamics = UnmodelledDynamics(), timestep: float = 1e-3) -> Scene:
    """Return the scene of a URDF (path or text) and its robot file.

    feet       : spheres that can touch the ground; without feet there is no ground
    tool       : body after a force-torque sensor
    unmodelled : dynamics of the plant that the robot model does not include
    timestep   : time step of the simulation [s]

    An IMU is at the origin of the root link. Raises InputError for elements that MuJoCo models differently: mimic joints,
    Coulomb friction, offsets, platforms, springs, elastic joints, sliding cut joints; RneaError if MuJoCo is not installed.
    """
    file = read({"version": 1} if robot_file is None else robot_file)
    robot = load(urdf, file)
    tree = _check_simulable(robot)
    engine, text = mujoco(), urdf_reader.text(urdf_reader.read(urdf).robot)
    spec = engine.MjSpec.from_string(text.replace("</robot>", f"{COMPILER}</robot>"))
    root = spec.body(tree.root_link)
    if tree.model.base == "floating":
        root.add_freejoint()
    _add_sensors(engine, spec, root.add_site(name="imu"), ("ACCELEROMETER", "GYRO"))
    for name, cut in file.section("loops").get("cut_joints", {}).items():
        _add_loop(engine, spec, name, cut)
    for joint in robot.joint_names:
        spec.add_actuator(name=joint, target=joint, trntype=engine.mjtTrn.mjTRN_JOINT)
    if feet:
        _add_ground(engine, spec, feet)
    if tool:
        _add_tool(engine, spec, tool)
    return Scene(text, robot, tree, _compile(engine, spec, tree, unmodelled, timestep), tuple(feet), tool)


def _check_simulable(robot: Robot) -> TreeDynamics:
    """Return the tree of a robot. Raises InputError if MuJoCo cannot simulate it."""
    if robot.sections not in ((), ("loops",)):
        raise InputError(f"robot '{robot.name}' ({robot.kind}) cannot be simulated; trees, moving bases and closed loops can")
    tree = robot.tree
    links = [link for link in tree.model.links if link.joint]
    mimic = [link.joint for link in links if link.joint not in tree.joint_names]
    rubbing = [link.joint for link in links if link.term.breakaway or link.term.asymmetry or link.term.offset
           or link.term.load_dependent]
    coupled = [motor.name for motor in tree.model.coupled_motors]
    if mimic or rubbing or coupled:
        has = {"mimic joints": mimic, "Coulomb friction or offsets": rubbing, "couplings with the motors": coupled}
        unsupported = " and ".join(f"{what} ({some(names)})" for what, names in has.items() if names)
        raise InputError(f"robot '{tree.name}' has {unsupported}, which MuJoCo models differently; remove them from "
                         "the URDF or the robot file for the simulation")
    return tree


def _add_loop(engine: Any, spec: Any, name: str, cut: Any) -> None:
    """Add a cut joint as equality constraints between two sites; a revolute joint requires two points of its axis."""
    if cut["type"] not in LOOP_CONSTRAINTS:
        raise InputError(f"type of cut joint '{name}' is {cut['type']}; for MuJoCo {some(LOOP_CONSTRAINTS)} are allowed")
    kind = getattr(engine.mjtEq, f"mjEQ_{LOOP_CONSTRAINTS[cut['type']].upper()}")
    ends = [{"link": end} if isinstance(end, str) else end for end in (cut["first"], cut["second"])]
    for k in range(1 + (cut["type"] == "revolute")):
        sites = [_add_site(spec, end, f"{name} {k} {side}", AXIS_POINT_DISTANCE_M * k) for side, end in enumerate(ends)]
        spec.add_equality(name=f"{name} {k}", type=kind, objtype=engine.mjtObj.mjOBJ_SITE, name1=sites[0], name2=sites[1],
                          solimp=LOOP_SOLIMP)


def _add_site(spec: Any, frame: Any, name: str, along: float) -> str:
    """Add a site to a link, at a distance `along` [m] on the z axis of a frame; return its name."""
    R = np.array(rpy(*frame.get("rpy", (0.0, 0.0, 0.0))))
    quaternion = np.zeros(4)
    mujoco().mju_mat2Quat(quaternion, R.ravel())
    point = np.array(frame.get("xyz", (0.0, 0.0, 0.0))) + along * R[:, 2]
    spec.body(frame["link"]).add_site(name=name, pos=point, quat=quaternion)
    return name


def _add_ground(engine: Any, spec: Any, feet: Sequence[Foot]) -> None:
    """Add the ground, which only feet can touch."""
    common = {"friction": FRICTION, "solimp": FOOT_SOLIMP, "condim": 3}
    spec.worldbody.add_geom(name="ground", type=engine.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=1, conaffinity=0,
                            **common)
    for foot in feet:
        spec.body(foot.link).add_geom(name=foot.link, type=engine.mjtGeom.mjGEOM_SPHERE, size=[foot.radius, 0.0, 0.0],
                                      pos=foot.point, mass=0.0, contype=0, conaffinity=1, **common)


def _add_tool(engine: Any, spec: Any, tool: Tool) -> None:
    body = spec.body(tool.link).add_body(name="tool", mass=tool.mass, ipos=tool.com, inertia=tool.inertia,
                                         explicitinertial=True)
    _add_sensors(engine, spec, body.add_site(name="wrist"), ("FORCE", "TORQUE"))


def _add_sensors(engine: Any, spec: Any, site: Any, kinds: Sequence[str]) -> None:
    for kind in kinds:
        spec.add_sensor(name=kind.lower(), type=getattr(engine.mjtSensor, f"mjSENS_{kind}"), objname=site.name,
                        objtype=engine.mjtObj.mjOBJ_SITE)


def _compile(engine: Any, spec: Any, tree: TreeDynamics, unmodelled: UnmodelledDynamics, timestep: float) -> Any:
    """Return the compiled MuJoCo model with a small solver tolerance, armature and damping of the tree, and without limits."""
    option = spec.option
    option.timestep, option.integrator, option.gravity = timestep, engine.mjtIntegrator.mjINT_EULER, tree.gravity_vector
    option.cone, option.solver = engine.mjtCone.mjCONE_ELLIPTIC, engine.mjtSolver.mjSOL_NEWTON
    option.tolerance, option.iterations = 1e-14, 100
    for equality in spec.equalities:
        equality.solref = [2.0 * timestep, 1.0]
    model = spec.compile()
    model.jnt_limited[:] = model.jnt_actfrclimited[:] = False
    model.dof_frictionloss[:] = model.dof_damping[:] = 0.0
    for link in (link for link in tree.model.links if link.joint):
        dof = model.joint(link.joint).dofadr[0]
        model.dof_armature[dof], model.dof_damping[dof] = link.term.armature, link.term.viscous
    _apply_unmodelled(model, tree, unmodelled)
    engine.mj_setConst(model, engine.MjData(model))
    return model


def _apply_unmodelled(model: Any, tree: TreeDynamics, unmodelled: UnmodelledDynamics) -> None:
    """Apply the unmodelled dynamics; bodies fixed to one another share the factor of their joint."""
    dofs = [int(model.joint(name).dofadr[0]) for name in tree.joint_names]
    model.dof_frictionloss[dofs] = unmodelled.coulomb
    model.dof_damping[dofs] += unmodelled.viscous
    factors = np.ones(model.nv + 1)
    factors[dofs] = unmodelled.masses
    moving_dof = model.body_dofadr + model.body_dofnum - 1  # last degree of freedom of a body, or of its parent if it is fixed
    for body in range(1, model.nbody):
        if not model.body_dofnum[body]:
            moving_dof[body] = moving_dof[model.body_parentid[body]]
    model.body_mass *= factors[moving_dof]
    model.body_inertia *= factors[moving_dof, None]


RENDERED_COMPILER = COMPILER.replace('discardvisual="true"', 'discardvisual="false"')
READABLE = (".stl", ".obj")  # mesh formats that MuJoCo reads
WHITE, GREY, RED = (1.0, 1.0, 1.0), (0.7, 0.73, 0.78, 1.0), (0.85, 0.35, 0.35, 1.0)
MAX_GEOMS = 5000


class Polyline(NamedTuple):
    """Polyline: corners (count, 3) in the world frame [m], colour (red, green, blue) in [0, 1], width [m]."""

    corners: np.ndarray
    colour: Sequence[float]
    width: float


def select_offscreen_renderer() -> None:
    """Select the rendering library for a machine without a display; call before MuJoCo is first imported."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")


def _without_shapes(urdf: str, kind: str) -> str:
    """Return the URDF without the shapes of one kind, "visual" or "collision"; MuJoCo cannot read many visual meshes."""
    robot = ElementTree.fromstring(urdf)
    for link in robot.findall("link"):
        for shape in link.findall(kind):
            link.remove(shape)
    return ElementTree.tostring(robot, encoding="unicode").replace("</robot>", f"{RENDERED_COMPILER}</robot>")


class Renderer:
    """Renderer of one robot.

    urdf        : URDF as text
    joint_names : joints of the poses to render
    meshes      : folder of its meshes, or None
    size        : width and height of a picture [pixels]
    view        : azimuth, elevation [deg], distance [m] of the camera
    centre      : point at the centre of the picture, in the world frame [m]

    Raises RneaError if no library can render off screen.
    """

    def __init__(self, urdf: str, joint_names: Sequence[str], meshes: Path | None, size: tuple[int, int],
                 view: tuple[float, float, float], centre: Sequence[float], background: Sequence[float] = WHITE):
        engine = self._engine = mujoco()
        files = sorted(meshes.rglob("*")) if meshes else []
        assets = {file.name: file.read_bytes() for file in files if file.suffix.lower() in READABLE}
        spec = engine.MjSpec.from_string(_without_shapes(urdf, "visual" if assets else "collision"), assets=assets)
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
        """Return the picture (height, width, 3) of a pose q (n,) [rad, m]; the robot is red if its drives are stopped."""
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
