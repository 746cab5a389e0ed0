"""Bridge between ROS and the window: a node in a separate thread fills an inbox, and answers become Qt signals.

Not rqt's node: rclpy's executors fail where one thread takes away a subscription while another spins, and rqt would be deaf.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, ShutdownException, SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
from std_srvs.srv import Trigger

from rnea_msgs.msg import JointDynamics, ModelInfo, ScaledMotion
from rnea_msgs.srv import SetOverride
from rnea_rqt import messages
from rnea_rqt.data import COMMANDS, Payload
from rnea_rqt.inbox import Inbox
from rnea_rqt.qt import QtCore, Signal
from rnea_rqt.streams import Streams

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TAKE = 0.03  # s between two readings of the streams
DEPTH = 100  # samples that may come in this time
DISCOVERY_PERIOD_S = 1.0  # s between two searches for nodes
PATIENCE = 5.0  # s for an answer
PAYLOAD = ("payload.link", "payload.mass", "payload.com")
DESCRIPTION = "robot_description"  # a parameter of the nodes, or else a topic
NUMBERS = itertools.count()


class Call(NamedTuple):
    """Request to a service that is not answered yet."""

    deadline: float
    service: str
    client: Any
    future: Any
    say: Callable[[str], None]


class Bridge(QtCore.QObject):
    """Node of the window in its own thread, where requests of the window are processed in order."""

    found = Signal(list, list)  # dynamics_nodes, scaling_nodes
    said = Signal(str)  # outcome of a request
    payload_read = Signal(object)
    links_read = Signal(object)  # a tuple of names

    def __init__(self, context: Context):
        super().__init__()
        self.inbox = Inbox()
        self._node = rclpy.create_node(f"rnea_rqt_{os.getpid()}_{next(NUMBERS)}", context=context, enable_rosout=False,
                                       start_parameter_services=False)
        self._streams = Streams(self._node)
        self._dynamics = self._scaling = ""
        self._owned: dict[str, list[tuple[Callable[[Any], Any], Any]]] = {"dynamics": [], "scaling": []}  # how to end it, what
        self._clients: dict[str, Any] = {}
        self._pending: list[Call] = []
        self._payload_unread = False
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # a simulation that rests stops no window
        for period, callback in ((TAKE, self._take), (DISCOVERY_PERIOD_S, self._poll)):
            self._node.create_timer(period, callback, clock=steady)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name="rnea_rqt", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing is left of it."""
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()
        self._streams.end()

    def _spin(self) -> None:
        """Report a failing callback in the window; the others continue."""
        while self._executor.context.ok():
            try:
                return self._executor.spin()
            except (ExternalShutdownException, ShutdownException):
                return
            except Exception as error:
                traceback.print_exc()
                self.said.emit(f"failed: {error!r:.300}")

    # --- in the window's thread ---------------------------------------------------------------------------------------

    def watch_dynamics(self, name: str) -> None:
        """Watch a dynamics_node, by its full name."""
        self._executor.create_task(self._watch_dynamics, name)

    def watch_scaling(self, name: str) -> None:
        """Watch a scaling_node, by its full name."""
        self._executor.create_task(self._watch_scaling, name)

    def command(self, name: str) -> None:
        """pause, resume or stop."""
        self._executor.create_task(self._command, name)

    def override(self, share: float) -> None:
        self._executor.create_task(self._override, share)

    def apply_payload(self, payload: Payload) -> None:
        """Set the payload of both nodes: scaled motions depend on it too."""
        self._executor.create_task(self._apply_payload, payload)

    # --- in the node's thread: what is watched ------------------------------------------------------------------------

    def _watch_dynamics(self, name: str) -> None:
        self._forget("dynamics")
        self._dynamics, self._payload_unread = name, True
        self.inbox.clear_samples()
        self.inbox.keep_lights({self._dynamics, self._scaling})
        self._streams.watch("dynamics", JointDynamics, f"{name}/joint_dynamics", DEPTH)
        for kind, topic, callback in ((ModelInfo, f"{name}/model_info", self._on_info),
                                      (String, f"{name.rpartition('/')[0]}/{DESCRIPTION}", self._on_description)):
            subscription = self._node.create_subscription(kind, topic, callback, LATCHED)
            self._owned["dynamics"].append((self._node.destroy_subscription, subscription))
        self._serve("dynamics", GetParameters, f"{name}/get_parameters")
        self._serve("dynamics", SetParametersAtomically, f"{name}/set_parameters_atomically")

    def _watch_scaling(self, name: str) -> None:
        self._forget("scaling")
        self._scaling = name
        self.inbox.keep_lights({self._dynamics, self._scaling})
        self._streams.watch("scaling", ScaledMotion, f"{name}/scaled_motion", 1)
        for command in COMMANDS:
            self._serve("scaling", Trigger, f"{name}/{command}")
        self._serve("scaling", SetOverride, f"{name}/override")
        self._serve("scaling", SetParametersAtomically, f"{name}/set_parameters_atomically")

    def _serve(self, part: str, kind: Any, service: str) -> None:
        self._clients[service] = client = self._node.create_client(kind, service)
        self._owned[part].append((self._node.destroy_client, client))

    def _forget(self, part: str) -> None:
        owned, self._owned[part] = self._owned[part], []
        clients = [client for _, client in owned]
        self._clients = {name: client for name, client in self._clients.items() if client not in clients}
        self._pending = [call for call in self._pending if call.client not in clients]
        for end, client in owned:
            end(client)

    # --- what is asked for --------------------------------------------------------------------------------------------

    def _command(self, name: str) -> None:
        self._call(f"{self._scaling}/{name}", Trigger.Request(), lambda answer: (answer.success, answer.message or name))

    def _override(self, share: float) -> None:
        words = f"override {share:.0%}"
        self._call(f"{self._scaling}/override", SetOverride.Request(share=share),
                   lambda answer: (answer.success, answer.message or words))

    def _apply_payload(self, payload: Payload) -> None:
        values = (payload.link, payload.mass, list(payload.com))
        request = SetParametersAtomically.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg() for name, value in zip(PAYLOAD, values)])
        words = f"{payload.mass:g} kg on {payload.link}"
        reported: list[str] = []

        def say(text: str) -> None:
            """One node's answer must not hide that of the other, which may have refused."""
            reported.append(text)
            self.said.emit("; ".join(reported))

        for node in filter(None, (self._dynamics, self._scaling)):
            self._call(f"{node}/set_parameters_atomically", request,
                       lambda answer: (answer.result.successful, answer.result.reason or words), say)

    def _read_payload(self) -> None:
        def reported(answer: GetParameters.Response) -> tuple[bool, str]:
            if len(answer.values) == len(names):
                link, mass, com, description = answer.values
                self._update_links(description.string_value)
                if len(com.double_array_value) == 3 and mass.double_value > 0.0:
                    self.payload_read.emit(Payload(link.string_value, mass.double_value, tuple(com.double_array_value)))
            return True, ""

        names = [*PAYLOAD, DESCRIPTION]
        self._payload_unread = False
        self._call(f"{self._dynamics}/get_parameters", GetParameters.Request(names=names), reported)

    def _call(self, service: str, request: Any, read: Callable[[Any], tuple[bool, str]],
              say: Callable[[str], None] | None = None) -> None:
        """read(answer) says whether it was done, and what is to be said of it; nothing: ''. say: instead of `said`."""
        say = say or self.said.emit
        client = self._clients.get(service)
        if client is None or not client.service_is_ready():
            say(f"{service}: not available")
            return

        def done(future: Any) -> None:
            self._pending = [call for call in self._pending if call.future is not future]
            well, words = read(future.result())
            if words:
                say(f"{service.rpartition('/')[0]}: {'' if well else 'refused: '}{words}")

        future = client.call_async(request)
        self._pending.append(Call(time.monotonic() + PATIENCE, service, client, future, say))
        future.add_done_callback(done)

    # --- what comes ---------------------------------------------------------------------------------------------------

    def _on_info(self, message: ModelInfo) -> None:
        self.inbox.put_robot(messages.robot(message))

    def _on_description(self, message: String) -> None:
        self._update_links(message.data)

    def _update_links(self, urdf: str) -> None:
        if names := messages.links(urdf):
            self.links_read.emit(names)

    def _take(self) -> None:
        robot = self.inbox.robot
        for message in self._streams.take("dynamics"):
            if robot and (sample := messages.sample(message, robot)):
                self.inbox.put_sample(sample)
        for message in self._streams.take("scaling"):
            self.inbox.put_motion(messages.motion(message))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for light in messages.lights(message):
            if light.name.partition(":")[0] in (self._dynamics, self._scaling):
                self.inbox.put_light(light)
                if light.name.partition(":")[0] == self._scaling and (policy := messages.policy(light)) is not None:
                    self.inbox.put_policy(policy)

    def _poll(self) -> None:
        """Search for nodes, and report services that have not answered."""
        self.found.emit(self._publishers("rnea_msgs/msg/JointDynamics", "/joint_dynamics"),
                        self._publishers("rnea_msgs/msg/ScaledMotion", "/scaled_motion"))
        late = [call for call in self._pending if call.deadline < time.monotonic()]
        self._pending = [call for call in self._pending if call not in late]
        for call in late:
            call.client.remove_pending_request(call.future)
            call.say(f"{call.service}: no answer for {PATIENCE:g} s")
        client = self._clients.get(f"{self._dynamics}/get_parameters")
        if self._payload_unread and client and client.service_is_ready():
            self._read_payload()

    def _publishers(self, kind: str, ending: str) -> list[str]:
        """Full names of the nodes that publish such a topic."""
        topics = [name for name, kinds in self._node.get_topic_names_and_types() if kind in kinds and name.endswith(ending)]
        return sorted(topic.removesuffix(ending) for topic in topics if self._node.count_publishers(topic))
