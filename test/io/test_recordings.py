"""Recordings read in blocks: bags and CSV give the same samples for any cuts, and errors name their cause."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import Robot, read_recording, smooth
from rnea_ros.errors import InputError
from rnea_ros.estimation import smoothing
from rnea_ros.estimation.smoothing import estimate_recording
from rnea_ros.io import csv_files, files, recording
from rnea_ros.io.recording import ReadingOptions, RecordingRequest
from support.robots import arm

bags = pytest.importorskip("support.bags", exc_type=ImportError)
EPOCH, joint_state = bags.EPOCH, bags.joint_state
NAMES = ("j1", "j2", "j3")
WANTED = RecordingRequest(NAMES)


def csv(path, t, q, names=NAMES):
    np.savetxt(path, np.column_stack((t, q)), fmt="%.17g", delimiter=",", comments="",
               header=",".join(["t", *(f"q_{name}" for name in names)]))
    return path


@pytest.fixture(scope="module", params=["mcap", "sqlite3", "csv", "csv with text"])
def long(request, tmp_path_factory):
    """Return times from 0, positions, and the path of their recording, in each format."""
    folder, (stamps, q) = tmp_path_factory.mktemp("long"), bags.motion(7, 3, 30.0)
    t = stamps * 1e-9
    if request.param.startswith("csv"):
        path = csv(folder / "a.csv", t, q)
        if request.param == "csv with text":
            header, *rows = path.read_text().splitlines()
            path.write_text("\n".join([f"{header},note", *(f"{row},slow" for row in rows)]))
        return t, q, path
    return t, q, bags.recorded(folder / "a", NAMES, 7, 30.0, plugin=request.param)


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(smoothing, "BLOCK_S", 6.0)
    monkeypatch.setattr(smoothing, "MIN_BLOCK_SAMPLES", 50)
    monkeypatch.setattr(csv_files, "ROWS_PER_PIECE", 301)


def test_pieces_contain_the_samples_between_their_edges(long, short_blocks):
    t, q, path = long
    source = files.open_recording(path, WANTED)
    assert source.blocks == ("q",) and source.span[:3] == (0.0, pytest.approx(t[-1]), len(t))
    for edges in ((-np.inf, np.inf), (2.0, 2.5, 2.5, 2.50001, 11.0), (-5.0, 0.0, 100.0, 200.0), (7.0, np.inf)):
        again = files.open_recording(path, WANTED, source.span)
        pieces = list(again.pieces(edges))
        assert len(pieces) == len(edges) - 1
        for begin, end, piece in zip(edges, edges[1:], pieces):
            inside = (t >= begin) & (t < end)
            np.testing.assert_allclose(piece["t"], t[inside], rtol=0, atol=1e-12)
            np.testing.assert_array_equal(piece["q"], q[inside])


def test_blockwise_estimates_equal_those_of_the_whole_recording_bit_for_bit(long, short_blocks):
    *_, path = long
    source = files.open_recording(path, WANTED)
    assert recording.blocks_of(source).number == 5
    (samples,) = source.pieces((-np.inf, np.inf))
    whole = estimate_recording(samples["t"], samples["q"])
    ranges = (range(2), range(2, 3), range(3, 5))
    parts = [part for numbers in ranges for part in recording.motions(source, (), None, numbers)]
    for name in ("qd", "qdd", "qddd"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    np.testing.assert_array_equal(np.concatenate([part.deviation for part in parts], axis=1), whole.deviation)
    assert parts[0].estimated == ("qd", "qdd", "qddd") and "Kalman" in parts[0].how.method


def test_disordered_repeated_and_incomplete_messages_are_dropped(tmp_path):
    """Samples are sorted by stamp, joints are found by name, and separate messages of a gripper are ignored."""
    stamps, q = bags.motion(1, 3, 2.0)
    entries = []
    for k, (t, sample) in enumerate(zip(stamps.tolist(), q)):
        late = 30_000_000 if k % 10 == 3 else 1000
        names = ("j3", "finger", "j1", "j2")
        entries.append((EPOCH + t + late, joint_state(EPOCH + t, names, sample[[2, 0, 0, 1]], np.ones(4))))
        if k % 50 == 7:
            others = (("j1", "finger", "j2", "j3"), np.zeros(4), np.zeros(4)), (("finger",), [0.0], [0.0])
            entries += [(EPOCH + t + 2000 + k, joint_state(EPOCH + t, *other)) for k, other in enumerate(others)]
            entries.append((EPOCH + t + 4000, joint_state(EPOCH + t + 9, NAMES, [np.nan, 0.0, 0.0], np.zeros(3))))
    entries.sort(key=lambda entry: entry[0])
    path = bags.bag(tmp_path / "a", {"/joint_states": entries})
    samples, notes = files.read_samples(path, RecordingRequest(NAMES, ("q", "qd", "tau"), ("q",)))
    np.testing.assert_array_equal(samples["q"], q)
    np.testing.assert_array_equal(samples["tau"], np.ones((len(q), 3)))
    assert "qd" not in samples  # a driver's
    assert notes == ["joints not used: 'finger'", *(f"not used: 5 samples {why}" for why in (
        "without all joints, or values for them", "with values that are no finite numbers", "with the stamp of another"))]


def test_messages_without_stamps_use_recording_times(tmp_path):
    stamps, q = bags.motion(2, 3, 1.0)
    path = bags.bag(tmp_path / "a", {"/joint_states": [(EPOCH + t, joint_state(0, NAMES, sample))
                                                      for t, sample in zip(stamps.tolist(), q)]})
    source = files.open_recording(path, WANTED)
    (samples,) = source.pieces((-np.inf, np.inf))
    np.testing.assert_allclose(samples["t"], stamps * 1e-9, atol=1e-12)
    assert source.span.origin == EPOCH


@pytest.mark.parametrize("ahead", [0, 5])
def test_zero_stamp_is_valid_in_simulated_time(tmp_path, ahead):
    """A stamp of zero starts the simulated clock and is not a missing stamp; several messages may repeat it."""
    stamps, q = bags.motion(2, 3, 1.0)
    again = np.maximum(np.arange(len(q)) - ahead, 0)  # before the clock runs
    path = bags.bag(tmp_path / "a", {"/joint_states": [(EPOCH + 20_000_000 * k, joint_state(stamps[i], NAMES, q[i]))
                                                      for k, i in enumerate(again.tolist())]})
    (samples,) = files.open_recording(path, WANTED).pieces((-np.inf, np.inf))
    np.testing.assert_array_equal(samples["q"], q[:len(q) - ahead])
    np.testing.assert_allclose(samples["t"], stamps[:len(q) - ahead] * 1e-9, atol=1e-12)


@pytest.mark.parametrize("back", [0.3, 0.9])
def test_clock_that_was_set_back_is_rejected(tmp_path, back):
    """If samples were sorted by stamps, those from before and after the reset would alternate."""
    stamps, q = bags.motion(4, 3, 3.0)
    reported = stamps - np.where(stamps > 1_500_000_000, round(1e9 * back), 0)
    entries = [(EPOCH + t, joint_state(EPOCH + stamp, NAMES, sample)) for t, stamp, sample in
               zip(stamps.tolist(), reported.tolist(), q)]
    source = files.open_recording(bags.bag(tmp_path / "a", {"/joint_states": entries}), WANTED)
    with pytest.raises(InputError, match=r"stamps on /joint_states go back by 0\.[28]\d* s and go on from there"):
        list(source.pieces((-np.inf, np.inf)))


@pytest.mark.parametrize(("joints", "topic", "message"), [
    (("j1", "j9"), None, r"no joint 'j9' on /joint_states; its joints are 'j1', 'j2', 'j3'"),
    (NAMES, "/arm/joint_state", r"topic /arm/joint_state is not in it; joint states are on /joint_states"),
    (NAMES, "/robot_description", r"topic /robot_description is of type std_msgs/msg/String"),
])
def test_missing_content_of_a_bag_is_reported(tmp_path, joints, topic, message):
    path = bags.recorded(tmp_path / "a", NAMES, urdf="<robot/>")
    with pytest.raises(InputError, match=message):
        files.open_recording(path, RecordingRequest(joints, reading=ReadingOptions(topic)))


def test_unusable_bags_raise_descriptive_errors(tmp_path):
    path = bags.recorded(tmp_path / "whole", NAMES)
    with pytest.raises(InputError, match="have no effort"):
        files.open_recording(path, RecordingRequest(NAMES, ("q", "tau"), ("q", "tau")))
    broken = tmp_path / "broken.mcap"
    broken.write_bytes(path.read_bytes()[:-4000])
    for file, message in ((broken, "cannot be read: .*ros2 bag reindex"), (tmp_path, "is a folder, and no bag")):
        with pytest.raises(InputError, match=message):
            files.open_recording(file, WANTED)
    twice = [(EPOCH + t, joint_state(EPOCH + t % 2_000_000_000, NAMES, np.zeros(3))) for t in range(0, 4_000_000_000, 10**8)]
    with pytest.raises(InputError, match=r"stamps on /states go back by 1\.9 s after 20 messages; one recording of one run"):
        files.open_recording(bags.bag(tmp_path / "twice", {"/states": twice}), WANTED)
    nothing = {"without": ([], "no messages on /states"), "no_positions": (
        [(EPOCH + t, joint_state(EPOCH + t, NAMES, [])) for t in range(3)], "no message with positions of all the joints")}
    for name, (entries, message) in nothing.items():
        with pytest.raises(InputError, match=message):
            files.open_recording(bags.bag(tmp_path / name, {"/states": entries}), WANTED)
    two = bags.bag(tmp_path / "two", {"/a": twice[:3], "/b": twice[:3]})
    with pytest.raises(InputError, match="several topics of joint states; select one with --topic: /a, /b"):
        files.open_recording(two, WANTED)
    assert files.open_recording(two, RecordingRequest(NAMES, reading=ReadingOptions("/b"))).span.samples == 3


def test_recordings_are_found_in_folders_and_patterns(tmp_path):
    one = bags.recorded(tmp_path / "day" / "one", NAMES)
    bare = bags.recorded(tmp_path / "bare", NAMES, plugin="sqlite3").rename(tmp_path / "day" / "bare.db3")
    table = csv(tmp_path / "day" / "sub.csv", [0.0, 1.0], np.zeros((2, 3)))
    (tmp_path / "day" / "notes.txt").write_text("no recording")
    (tmp_path / "day" / "deep").mkdir()
    deep = csv(tmp_path / "day" / "deep" / "sub.csv", [0.0, 1.0], np.zeros((2, 3)))
    day = tmp_path / "day"
    found = files.find_recordings([str(day)])
    names = {path.relative_to(tmp_path).as_posix(): name.as_posix() for path, name in found.items()}
    assert names == {"day/bare.db3": "bare", "day/deep/sub.csv": "deep/sub", "day/one": "one", "day/sub.csv": "sub"}
    both = files.find_recordings([str(day / "*.csv"), str(deep), str(table), str(one)])
    assert len(set(both.values())) == len(both) == 3 and both[one].name == one.stem
    assert files.is_bag(day / "one") and files.is_bag(bare) and not files.is_bag(day) and not files.is_bag(table)
    (tmp_path / "empty").mkdir()
    for word, message in (("nothing*", "no such file, folder or pattern"), (str(tmp_path / "empty"), "no recordings in")):
        with pytest.raises(InputError, match=message):
            files.find_recordings([word])


def test_decreasing_csv_times_are_reported_with_their_row(tmp_path):
    path = csv(tmp_path / "a.csv", [0.0, 1.0, 0.5], np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"time must increase: sample 2 is at 0\.5 s, the one before at 1 s"):
        files.open_recording(path, WANTED)


def test_bag_with_a_corrupt_size_is_rejected(tmp_path):
    """A size in a broken file may be any number: here that of the first record."""
    path = bags.recorded(tmp_path / "bag", ("a", "b"), seconds=0.2)
    data = bytearray(path.read_bytes())
    data[9:17] = (2**62).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        files.open_recording(path, RecordingRequest(("a", "b")))


def test_csv_files_may_have_quoted_line_breaks_and_carriage_returns(tmp_path):
    """A quoted header may contain a line break; a line may end with only a carriage return."""
    path, wanted = tmp_path / "odd.csv", RecordingRequest(("a",))
    for text in ('t,q_a,"note\n0,1,x\n', "t,q_a", "t,q_a\n# nothing yet\n"):
        path.write_text(text, newline="")
        with pytest.raises(InputError, match="no rows below the header"):
            files.open_recording(path, wanted)
    for text in ('t,q_a,"of\nthe second"\n0,1,5\n1,2,5\n', "t,q_a\r0,1\r1,2\r"):
        path.write_text(text, newline="")
        source = files.open_recording(path, wanted)
        (piece,) = source.pieces((-np.inf, np.inf))
        assert source.span.samples == 2 and piece["q"].tolist() == [[1.0], [2.0]]


def test_text_that_is_not_utf_8_is_rejected(tmp_path):
    """The invalid byte is far behind the block that is read with the header."""
    path = tmp_path / "odd.csv"
    path.write_bytes(b"t,q_a,note\n" + b"".join(b"%d,1,slow\n" % k for k in range(2000)) + b"2000,1,m\xfcde\n")
    for read in (lambda: files.open_recording(path, RecordingRequest(("a",))),
                 lambda: csv_files.read_columns(path, ("a",), csv_files.BLOCKS, ("q",))):
        with pytest.raises(InputError, match=r"cannot be read beyond row .*'utf-8' codec can't decode byte 0xfc"):
            read()


def test_read_recording_converts_units_and_estimates_missing_derivatives(tmp_path):
    """Columns may be renamed, and a joint may be held."""
    robot = Robot.from_urdf(arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}).encode(), backend="python")
    t = np.arange(300) * 0.01
    rows = np.column_stack((1e3 * t, np.rad2deg(np.sin(t)), np.cos(t)))
    path = tmp_path / "run.csv"
    np.savetxt(path, rows, fmt="%.17g", delimiter=",", header="t,pos_j1,tau_j1", comments="")
    found = read_recording(path, robot, rename={"pos_": "q_"}, hold={"j2": 0.5}, time_unit="ms", unit="deg")
    np.testing.assert_allclose(found.t, t, atol=1e-12)
    np.testing.assert_allclose(found.q, np.column_stack((np.sin(t), np.full(len(t), 0.5))), atol=1e-12)
    np.testing.assert_allclose(found.qdd[20:-20, 0], -np.sin(t)[20:-20], atol=1e-6)
    np.testing.assert_allclose(found.tau[:, 0], np.cos(t), atol=1e-12)
    assert np.isnan(found.tau[:, 1]).all() and any("qd, qdd, qddd" in note for note in found.notes)
    with pytest.raises(InputError, match="time_unit is 'minutes'"):
        read_recording(path, robot, time_unit="minutes")


@pytest.mark.parametrize(("t", "q", "message"), [
    (np.arange(50), np.zeros(50), r"t is \(50,\), q \(50,\)"),
    (np.arange(50), np.full((50, 1), np.nan), "not finite"),
    (np.arange(50)[::-1], np.zeros((50, 1)), "time must increase"),
    (["a"] * 50, np.zeros((50, 1)), "no numbers"),
    (np.arange(3), np.zeros((3, 1)), "too few"),
])
def test_smooth_rejects_invalid_input(t, q, message):
    with pytest.raises(InputError, match=message):
        smooth(t, q)


def test_smooth_returns_motion_and_deviations():
    t = np.arange(250) * 0.004
    found = smooth(t, np.round(np.sin(3.0 * t) / 1e-4)[:, None] * 1e-4)
    inside = found.centred
    assert np.abs(found.qdd[inside, 0] + 9.0 * np.sin(3.0 * t)[inside]).max() < 0.5
    assert found.deviation.shape == (4, 250, 1) and np.isfinite(found.deviation).all()
