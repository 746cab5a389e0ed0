"""Sample step against numpy and the robot's own call, to the last bit; arrays that it must not touch."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from rnea_ros import InputError, Robot
from rnea_ros.codegen import python_call
from rnea_ros.codegen.sample_step import SampleStep
from support.robots import arm

if not python_call.usable():
    pytest.skip("objects of this interpreter are laid out in another way", allow_module_level=True)

N = 3


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)},
                               {"kind": "prismatic", "axis": (1, 0, 0)}))


@pytest.fixture
def made(robot):
    """Return a step with its arrays, each between words that must not change."""
    fenced = {name: np.full(rows * N + 2, 7.5) for name, rows in
              (("state", 2), ("table", 8), ("shares", 2), ("limits", 2), ("message", 8), ("peaks", 2))}
    views = {name: memory[1:-1].reshape(-1, N) for name, memory in fenced.items()}
    views["limits"][:] = [[2.0, np.nan, np.inf], [4.0, 5.0, 6.0]]
    views["peaks"][:] = np.nan
    step = SampleStep(robot.tree.kernel("dynamics"), views["state"])
    step.connect([(views["table"][:4], step.motion), (views["table"][4:], step.results)],
                 [(views["shares"][0], views["table"][4], views["limits"][0]),
                  (views["shares"][1], views["table"][1], views["limits"][1])],
                 [(views["message"], views["table"])], [(views["peaks"], views["shares"])])
    return step, views, fenced


def test_step_gives_the_numbers_of_numpy_and_of_the_robot(robot, made):
    step, views, fenced = made
    rng, peaks = np.random.default_rng(4), np.full((2, N), np.nan)
    for k in range(300):
        views["state"][:], step.desired[:] = rng.normal(size=(2, 2, N))
        step.desired[k % 2, k % N], step.since[0] = rng.choice([0.0, -0.0, 1.0]), rng.choice([0.0, 1e-3, -2e-3, 0.5])
        rows = step.desired
        later = np.array([(rows[0] + 0.0) + rows[1] * step.since[0], rows[1] + 0.0]) if step.since[0] else rows
        expected = np.concatenate((views["state"], later, robot.dynamics(*views["state"], *later)))
        assert step()
        assert views["table"].tobytes() == views["message"].tobytes() == expected.tobytes()
        shares = np.abs(expected[[4, 1]]) / views["limits"]
        peaks = np.fmax(peaks, shares)
        assert (views["shares"].tobytes(), views["peaks"].tobytes()) == (shares.tobytes(), peaks.tobytes())
    assert all(memory[0] == memory[-1] == 7.5 for memory in fenced.values())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_step_changes_nothing_for_numbers_that_are_not_finite(made, bad):
    step, views, fenced = made
    views["state"][:] = 0.1
    assert step()
    before = {name: memory.copy() for name, memory in fenced.items() if name != "state"}
    for array, index in ((views["state"], (1, 2)), (step.desired, (0, 0)), (step.desired, (1, 1)), (step.since, 0)):
        kept, array[index] = array[index], bad
        assert not step()
        array[index] = kept
    views["state"][1], step.desired[:] = 1e300, 1e300  # whose torques are too large
    assert not step()
    assert all(memory.tobytes() == before[name].tobytes() for name, memory in fenced.items() if name != "state")


def test_step_refuses_arrays_that_do_not_lie_as_machine_code_reads_them(robot, made):
    step, _, _ = made
    kernel, row, one = robot.tree.kernel("dynamics"), np.zeros(N), np.zeros(1)
    locked = np.zeros(N)
    locked.flags.writeable = False
    for state in (np.zeros((2, N + 1))[:, :N], np.broadcast_to(row, (2, N)), np.zeros((2, N), dtype=np.float32),
                  np.zeros((2, N + 1)), np.zeros((2, 0))):
        with pytest.raises(InputError):
            SampleStep(kernel, state)
    with pytest.raises(InputError):
        SampleStep(robot.tree.kernel("torque_and_rate"), np.zeros((2, N)))
    for array in (np.broadcast_to(one, N), np.zeros(2 * N)[::2], np.zeros(N + 1), locked, np.zeros(N, dtype=np.float32)):
        for tables, shares, messages, peaks in (([(array, row)], [], [], []), ([], [], [(row, array)], []),
                                                ([], [(row, array, row)], [], []), ([], [], [], [(array, row)])):
            with pytest.raises(InputError):
                step.connect(tables, shares, messages, peaks)
    with pytest.raises(InputError, match="bytes cannot be copied"):
        step.connect([(np.zeros(0), np.zeros(0))], [], [], [])
