"""Markers for RViz on ~/markers: efforts, loads, centre of mass and constraints of a robot.

namespaces                                      content and class
effort, effort_value, limit                     each joint: EffortMarkers
center_of_mass, base_wrench, zero_moment_point  the whole robot: WholeBodyMarkers
external_wrench                                 measured or estimated wrenches on links: WrenchMarker
cut_joint, constraint, legend                   cut_joint_markers, ConstraintMarkers, Legend
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions, QoSPolicyKind
from rclpy.timer import Timer
from visualization_msgs.msg import Marker, MarkerArray

from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.model.tree import Frame, Model
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.marker_shapes import (
    CIRCLE_STEPS,
    FAINT,
    GREEN,
    MAX_SIZE,
    SKY,
    VERMILION,
    WHITE,
    YELLOW,
    circle_points,
    colour,
    heat,
    joint_marker_sizes,
    line_points,
    marker,
    reach,
    set_position,
    set_visible,
)
from rnea_ros.nodes.common.model_facts import RobotFacts
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.messages import DynamicsMessages
from rnea_ros.nodes.dynamics.served_robot import ServedRobot, WholeBody
from rnea_ros.robots.solution import ConstraintWrench

HEAD_STEPS = 4  # longest arrow head of an arc, in steps of a circle


class WrenchMarker:
    """Markers of one wrench: an arrow for the force, an arc about its axis for the moment.

    Sizes are proportional to the square root of the wrench, so that a push by hand is visible next to the weight of the robot.
    """

    UNIT_ARC = 0.75  # share of a circle for a moment of `unit`
    MIN_SHARE, MAX_SHARE = 1e-3, 1.5  # sqrt(wrench / unit): hidden below the first, clipped above the second

    def __init__(self, namespace: str, number: int, frame: str, size: float, unit: Sequence[float], rgb: Sequence[float]):
        """Create the markers, hidden.

        number : number of the wrench within the namespace
        frame  : frame in which the wrench is expressed
        size   : length of the arrow [m] for a force and a moment of `unit`
        unit   : (2,) force and moment [N, N m]
        """
        self._size, self._unit = size, np.array(unit)
        own = colour(rgb)
        self._force, self._head = (marker(namespace, 3 * number + k, Marker.ARROW, frame, 0.04 * size, own) for k in (0, 1))
        self._arc = marker(namespace, 3 * number + 2, Marker.LINE_STRIP, frame, 0.04 * size, own)
        self.markers = [self._force, self._head, self._arc]

    def fill(self, wrench: np.ndarray) -> None:
        """Show a wrench (6,) [N, N m]; nothing for NaN."""
        sizes = np.array([np.linalg.norm(wrench[:3]), np.linalg.norm(wrench[3:])])
        share = np.minimum(np.sqrt(sizes / self._unit), self.MAX_SHARE)
        visible = share > self.MIN_SHARE
        for one, there in ((self._force, visible[0]), (self._head, visible[1]), (self._arc, visible[1])):
            set_visible(one, there)
        if visible[0]:
            ends = line_points(wrench[:3] / sizes[0], self._size * share[0])
            self._force.points = [ends[0], ends[-1]]
        if visible[1]:
            circle = circle_points(wrench[3:] / sizes[1], 1.0, 0.5 * self._size)
            end = max(HEAD_STEPS + 1, round(min(self.UNIT_ARC * share[1], 0.95) * CIRCLE_STEPS))
            self._arc.points = circle[:end - HEAD_STEPS + 1]
            self._head.points = [circle[end - HEAD_STEPS], circle[end]]


class _JointMarker(NamedTuple):
    """Markers of one joint.

    forward, backward : points from zero effort to the limit, for positive and negative effort
    """

    number: int
    line: Marker | None  # arc; None for a prismatic joint
    arrow: Marker  # head of the arc; the whole arrow of a prismatic joint
    value: Marker
    forward: list[Point]
    backward: list[Point]

    def shapes(self) -> list[Marker]:
        return [one for one in (self.line, self.arrow) if one]


class EffortMarkers:
    """Markers of effort and effort rate at each joint, in the frame of its child link (RViz's own display requires +z axes).

    The length is |effort| / limit: an arc about the axis of a revolute joint, a full circle at the limit, with a faint ring
    for the limit; an arrow along the axis of a prismatic joint. Half of the full length is shown if the limit is unknown. The
    head points in the direction in which the effort pushes the child link. The colour shows the largest utilization of the
    limits of effort rate and drive; if none is known, the effort rate relative to its largest value of the last seconds.

    markers, values : updated with every result
    rings           : constant
    """

    SHAFT = 0.09  # line width, share of the size
    PEAK_DECAY = 0.999  # decay of the largest effort rate per result: half after 700 results

    def __init__(self, robot: RobotFacts, size: float = 0.0):
        """Create the markers. size: size of all markers [m]; 0: derived from the lengths of the links of each joint."""
        self._joints: list[_JointMarker] = []
        self.rings: list[Marker] = []
        self._peak_rates = np.zeros(robot.n)
        numbers = {name: k for k, name in enumerate(robot.joint_names)}
        hidden = {name for beam in robot.model.flexible_links for name in beam.hidden(robot.model.frames)}
        links = {*robot.model.frames} - hidden  # links within a planar joint or a flexible link have no TF frame
        for link, own in zip(robot.model.links, joint_marker_sizes(robot.model)):
            if link.joint in numbers and link.name in links:
                k = numbers[link.joint]
                axis = robot.model.frames[link.name].R[2]  # z of the MDH frame, in the URDF frame
                self._add(k, link.name, axis, size or float(own), robot.joint_types[k] == "prismatic")
        self.units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
        self.markers = [one for joint in self._joints for one in joint.shapes()]
        self.values = [joint.value for joint in self._joints]

    def _add(self, k: int, frame: str, axis: np.ndarray, size: float, prismatic: bool) -> None:
        line = None if prismatic else marker("effort", 2 * k, Marker.LINE_STRIP, frame, self.SHAFT * size)
        arrow = marker("effort", 2 * k + 1, Marker.ARROW, frame, self.SHAFT * size)
        value = marker("effort_value", k, Marker.TEXT_VIEW_FACING, frame, 0.25 * size, WHITE)
        forward, backward = (line_points(sign * axis, size) if prismatic else circle_points(axis, sign, 0.5 * size)
                             for sign in (1.0, -1.0))
        value.pose.position = line_points(axis, 0.6 * size)[-1]
        self._joints.append(_JointMarker(k, line, arrow, value, forward, backward))
        if not prismatic:
            self.rings.append(marker("limit", k, Marker.LINE_STRIP, frame, 0.15 * self.SHAFT * size, FAINT))
            self.rings[-1].points = forward

    def fill(self, shown: DynamicsMessages) -> None:
        """Show a result."""
        efforts, rates, shares = shown.effort.effort, shown.rates, self._colour_shares(shown)
        for joint in self._joints:
            k, line, arrow = joint[:3]
            use = shown.utilization[k]
            path = joint.backward if efforts[k] < 0.0 else joint.forward
            end = max(1, round((min(use, 1.0) if use == use else 0.5) * CIRCLE_STEPS))
            neck = max(0, end - HEAD_STEPS) if line else 0
            arrow.points = [path[neck], path[end]]
            set_visible(arrow, bool(efforts[k]))  # zero effort has no sign
            if line:
                line.points = path[:max(neck, 1) + 1]
                arrow.scale.y = 3.3 * line.scale.x * (end - neck) / HEAD_STEPS  # a short head is as slim as a long one
            for one in joint.shapes():
                one.color = heat(shares[k])
            joint.value.text = f"{efforts[k]:.3g} {self.units[k]}\n{rates[k]:+.3g} {self.units[k]}/s"

    def _colour_shares(self, shown: DynamicsMessages) -> np.ndarray:
        """Return the utilization (n,) shown by the colours; NaN for joints whose effort rate has always been zero."""
        sizes = np.abs(shown.rates)
        self._peak_rates = np.maximum(self.PEAK_DECAY * self._peak_rates, sizes)
        known = shown.largest_use()
        of_peak = np.divide(sizes, self._peak_rates, out=np.full(len(sizes), np.nan), where=self._peak_rates > 0.0)
        return np.where(np.isnan(known), of_peak, known)


class WholeBodyMarkers:
    """Markers of centre of mass, zero moment point and base wrench in the frame of the root link."""

    def __init__(self, robot: RobotFacts, size: float, unit: Sequence[float]):
        """Create the markers. size, unit: see WrenchMarker."""
        root = robot.root_link
        self._center = marker("center_of_mass", 0, Marker.SPHERE, root, 0.2 * size, colour(YELLOW))
        self._ground = marker("zero_moment_point", 0, Marker.CYLINDER, root, 0.3 * size, colour(VERMILION))
        self._ground.scale.z = 0.02 * size
        self._wrench = WrenchMarker("base_wrench", 0, root, size, unit, SKY)
        self.markers = [self._center, self._ground, *self._wrench.markers]

    def fill(self, body: WholeBody) -> None:
        """Show a result; unknown points (NaN) are hidden."""
        for one, position in ((self._center, body.center_of_mass), (self._ground, body.zero_moment_point)):
            known = bool(np.isfinite(position).all())
            set_visible(one, known)
            if known:
                set_position(one, position)
        self._wrench.fill(body.base_wrench)


class Legend:
    """Text above the robot: the meaning of the markers, and the limit with the largest utilization."""

    HEIGHT, LETTER = 0.9, 0.03  # height of the text above the root link, height of a letter; shares of the reach

    def __init__(self, robot: RobotFacts, reach_m: float):
        self.marker = marker("legend", 0, Marker.TEXT_VIEW_FACING, robot.root_link, self.LETTER * reach_m, WHITE)
        self.marker.pose.position.z = self.HEIGHT * reach_m

    def fill(self, shown: DynamicsMessages) -> None:
        """Show the limit with the largest utilization."""
        known = np.isfinite(shown.largest_use()).any()
        self.marker.text = ("length: effort / its limit\ncolour: effort rate / "
                            f"{'its limit' if known else 'its recent maximum'}{self._nearest(shown)}")

    def _nearest(self, shown: DynamicsMessages) -> str:
        known = [(share, one.quantities[row], one.owners[k]) for one in shown.watched
                 for (row, k), share in np.ndenumerate(one.rows) if np.isfinite(share)]
        if not known:
            return ""
        share, limit, owner = max(known)
        return f"\nlargest utilization: {limit.replace('_utilization', '').replace('_', ' ')} of {owner}, {share:.0%}"


def cut_joint_markers(cuts: tuple[Cut, ...], model: Model, size: float) -> list[Marker]:
    """Return a sphere at both frames of each cut joint, which coincide while the loops are closed.

    Frames on a platform that is not a link of the model are omitted, because TF does not contain them.
    """
    markers = []
    for k, cut in enumerate(cuts):
        for end, frame, rgb, share in ((0, cut.first, SKY, 0.12), (1, cut.second, VERMILION, 0.09)):
            if frame.link >= 0:
                markers.append(_cut_sphere(2 * k + end, model, frame, share * size, rgb))
    return markers


def _cut_sphere(number: int, model: Model, frame: Frame, size: float, rgb: tuple[float, float, float]) -> Marker:
    """Return a sphere at a frame of a cut joint, expressed in the frame of a URDF link of the same rigid body."""
    name, own = next((name, own) for name, own in model.frames.items() if own.link == frame.link)
    sphere = marker("cut_joint", number, Marker.SPHERE, name, size, colour(rgb, 0.7))
    set_position(sphere, np.asarray(own.R.T @ (frame.P - own.P), dtype=float).tolist())
    return sphere


class ConstraintMarkers:
    """Markers of the wrench of each cut joint, contact and wheel on a link, at its point, in the frame of the link.

    size, unit: see WrenchMarker
    """

    def __init__(self, size: float, unit: Sequence[float]):
        self._size, self._unit = size, unit
        self._wrenches: dict[str, WrenchMarker] = {}

    @property
    def markers(self) -> list[Marker]:
        """Markers of all constraints shown so far."""
        return [one for wrench in self._wrenches.values() for one in wrench.markers]

    def fill(self, wrenches: Mapping[str, ConstraintWrench]) -> None:
        """Show the wrenches of all constraints, by name."""
        for name, constraint in wrenches.items():
            if name not in self._wrenches:
                self._wrenches[name] = WrenchMarker("constraint", len(self._wrenches), constraint.link, self._size,
                                                    self._unit, GREEN)
            self._wrenches[name].fill(constraint.wrench)
            for one in self._wrenches[name].markers:
                set_position(one, constraint.point)


class Markers:
    """All markers of one model. `changing` is updated with every message, `whole` and `static` at lower rates."""

    STATIC_LIFETIME = Duration(sec=3)

    def __init__(self, robot: RobotFacts, size: float = 0.0, cuts: tuple[Cut, ...] = ()):
        """Create the markers.

        size : size of the marker of each joint [m]; 0: derived from the lengths of its links
        cuts : cut joints of the loops
        """
        reach_m = reach(robot.model)
        self._size = size or MAX_SIZE * reach_m
        weight = robot.total_mass * float(np.linalg.norm(robot.gravity_vector)) or 1.0
        self._unit = weight, weight * reach_m
        self._efforts, self._body = EffortMarkers(robot, size), WholeBodyMarkers(robot, self._size, self._unit)
        self._legend = Legend(robot, reach_m)
        self._wrenches: dict[str, WrenchMarker] = {}
        self._constraints = ConstraintMarkers(self._size, self._unit)
        self.static = [*self._efforts.rings, *cut_joint_markers(cuts, robot.model, self._size), self._legend.marker]
        for one in self.static:
            one.lifetime = self.STATIC_LIFETIME

    @property
    def changing(self) -> list[Marker]:
        """Markers of efforts, loads and constraints."""
        loads = (one for wrench in self._wrenches.values() for one in wrench.markers)
        return [*self._efforts.markers, *self._efforts.values, *loads, *self._constraints.markers]

    @property
    def whole(self) -> list[Marker]:
        """Markers of the robot as a whole."""
        return self._body.markers

    def fill(self, shown: DynamicsMessages, wrenches: Mapping[str, np.ndarray],
             constraints: Mapping[str, ConstraintWrench] | None = None) -> None:
        """Show a result.

        wrenches    : (6,) wrenches keyed by link, expressed in the frame of the link [N, N m]
        constraints : wrenches of cut joints, contacts and wheels, keyed by name
        """
        self._efforts.fill(shown)
        self._constraints.fill(constraints or {})
        for link, wrench in wrenches.items():
            if link not in self._wrenches:
                self._wrenches[link] = WrenchMarker("external_wrench", len(self._wrenches), link, self._size, self._unit,
                                                    VERMILION)
            self._wrenches[link].fill(wrench)

    def fill_whole(self, body: WholeBody) -> None:
        """Show the robot as a whole."""
        self._body.fill(body)

    def fill_static(self, shown: DynamicsMessages) -> None:
        """Update the legend."""
        self._legend.fill(shown)


class MarkerData(NamedTuple):
    """Content of the markers: robot, its last results, and wrenches (6,) keyed by link."""

    robot: ServedRobot
    out: DynamicsMessages
    wrenches: Mapping[str, np.ndarray]


class MarkerPublisher:
    """Publisher of ~/markers at a configured rate, while it has subscribers.

    Its QoS can be overridden: `durability: transient_local` keeps the last markers for late-joining subscribers.
    """

    QUEUE_DEPTH = 10
    WHOLE_RATE_HZ, STATIC_RATE_HZ = 10.0, 1.0  # rates of whole-body markers, which cost more, and of constant markers

    def __init__(self, node: Node, latest: Callable[[], MarkerData | None]):
        """Create the publisher. latest: function that returns the data to show, or None if nothing is computed."""
        policies = [QoSPolicyKind.DEPTH, QoSPolicyKind.DURABILITY, QoSPolicyKind.HISTORY, QoSPolicyKind.RELIABILITY]
        self._publisher = node.create_publisher(MarkerArray, "~/markers", QoSProfile(depth=self.QUEUE_DEPTH),
                                                qos_overriding_options=QoSOverridingOptions(policies))
        self._node, self._latest = node, latest
        self._timer: Timer | None = None
        self._markers: Markers | None = None
        self._rate, self._size, self._count = 0.0, 0.0, 0

    def configure(self, values: Values) -> None:
        """Apply parameters; the markers are created anew, also for another robot."""
        self._markers, self._size, self._count = None, values["markers.size"], 0
        rate = values["markers.rate"] if values["publish_markers"] else 0.0
        if rate != self._rate:
            if self._timer is not None:
                self._node.destroy_timer(self._timer)
            self._timer = steady_timer(self._node, 1.0 / rate, self._tick) if rate else None
            self._rate = rate

    def _tick(self) -> None:
        try:
            shown = self._latest() if self._publisher.get_subscription_count() else None
            if shown is None:
                self._count = 0
            else:
                self._publisher.publish(self._message(shown))
        except Exception:  # a failing marker must not stop the computation of torques
            self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)

    def _message(self, shown: MarkerData) -> MarkerArray:
        if self._markers is None:
            self._markers = Markers(shown.robot, self._size, shown.robot.cuts)
        markers = self._markers
        markers.fill(shown.out, shown.wrenches, shown.robot.constraint_wrenches())
        sent = markers.changing
        if self._is_due(self.WHOLE_RATE_HZ) and (body := shown.robot.body([*shown.out.motion])) is not None:
            markers.fill_whole(body)
            sent = sent + markers.whole
        if self._is_due(self.STATIC_RATE_HZ):
            markers.fill_static(shown.out)
            sent = sent + markers.static
        self._count += 1
        for one in sent:
            one.header.stamp = shown.out.header.stamp
        return MarkerArray(markers=sent)

    def _is_due(self, rate: float) -> bool:
        return self._count % max(1, round(self._rate / rate)) == 0
