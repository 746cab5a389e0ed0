"""Is what dynamics_node says of a robot in MuJoCo what MuJoCo's motors exert? By phase, and by what the base lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..sim.comparison import CHANGE, STANCE, SWING, phases
from .checks import Verdict
from .recording import DemoRecording, Heard, Series, paired

PATIENT = {"desired_timeout": 1.0, "base.timeout": 1.0}  # of dynamics_node [s]: the plant may be slower than time
PERCENT = 0.01  # of the peak torque of each motor
WHOLE = 0.98  # of the samples had all that they needed in time
LACK = 1e-3  # of the largest force of the feet: more has the base to get where a foot's force came late


def touched(links: Sequence[str]) -> dict[str, Any]:
    """Parameters of dynamics_node for a plant whose links are touched."""
    found: dict[str, Any] = {**PATIENT, "wrenches.names": list(links)}
    for link in links:
        found |= {f"wrenches.{link}.link": link, f"wrenches.{link}.timeout": 1.0}
    return found


def exerted(states: np.ndarray, n: int) -> np.ndarray:
    """Torques (samples, n), from the numbers of joint states: positions, velocities, efforts."""
    return states[:, 2 * n:]


def same(recording: DemoRecording, states: Series) -> Verdict:
    """All torques, but where a wrench came after the joint state that needed it."""
    recording, (states_,) = paired(recording, states)
    share = _share(recording.tau, exerted(states_, recording.q.shape[1]))
    good = share.max(axis=1) < PERCENT
    text = (f"torques are those of MuJoCo's motors to {share[good].max(initial=0.0):.1e} of their peaks ({good.sum()} "
            f"samples; allowed {PERCENT:g}; in {(~good).sum()} a wrench came too late)")
    return Verdict(bool(good.mean() > WHOLE), text)


def by_phase(recording: DemoRecording, heard: Heard, feet: Sequence[str]) -> list[Verdict]:
    """Of a quadruped: torques in stance, in swing and between them; and the wrench that its base needs beside its feet's."""
    recording, (states, lack, *wrenches) = paired(recording, heard["states"], heard["lack"], *(heard[foot] for foot in feet))
    forces = np.stack([np.linalg.norm(six[:, :3], axis=1) for six in wrenches], axis=1)
    lacking = np.abs(lack).max(axis=1) / forces.max()
    whole = lacking < LACK
    phase = phases(recording.seconds, forces)
    share = _share(recording.tau, exerted(states, recording.q.shape[1]))
    legs = share.reshape(len(share), len(feet), -1).max(axis=2)
    verdicts = []
    for name in (STANCE, SWING, CHANGE):
        of = legs[whole[:, None] & (phase == name)]
        text = f"{name}: torques are those of MuJoCo's motors to {of.max(initial=0.0):.1e} of their peaks"
        verdicts.append(Verdict(bool(len(of) and of.max() < PERCENT), f"{text} ({len(of)} of a leg; allowed {PERCENT:g})"))
    text = (f"the base needs nothing beside the feet's forces, to {lacking[whole].max(initial=0.0):.1e} of the largest "
            f"({(~whole).sum()} of {len(whole)} samples left out, for which a force came too late)")
    return [*verdicts, Verdict(bool(whole.mean() > WHOLE), text)]


def _share(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(found - true) / np.abs(true).max(axis=0))
