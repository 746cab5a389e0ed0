"""Batch processing of recordings: results do not depend on the workers, finished parts are kept, files fail independently."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.estimation import smoothing
from rnea_ros.estimation.smoothing import estimate_recording
from rnea_ros.io import batch, files
from rnea_ros.io.batch import BatchJob
from rnea_ros.io.recording import ReadingOptions, RecordingRequest
from support.robots import arm

parquet = pytest.importorskip("pyarrow.parquet")
bags = pytest.importorskip("support.bags", exc_type=ImportError)

URDF = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)})
ROBOT = Robot.from_urdf(URDF, backend="python")
NAMES = ROBOT.joint_names


def job(kind="parquet", part=100.0, **options):
    return BatchJob(pickle.dumps(ROBOT), {}, ReadingOptions(), None, kind, part)._replace(**options)


@pytest.fixture
def short_blocks(monkeypatch):
    monkeypatch.setattr(smoothing, "BLOCK_S", 5.0)
    monkeypatch.setattr(smoothing, "MIN_BLOCK_SAMPLES", 50)


@pytest.fixture
def recordings(tmp_path):
    """Two bags and a CSV: recordings and the folders for results."""
    for k, plugin in enumerate(("mcap", "sqlite3")):
        bags.recorded(tmp_path / "in" / f"run{k}", NAMES, k, 12.0, plugin=plugin, urdf=URDF)
    stamps, q = bags.motion(5, 2, 3.0)
    np.savetxt(tmp_path / "in" / "table.csv", np.column_stack((stamps * 1e-9, q)), delimiter=",", comments="",
               header=",".join(["t", *(f"q_{name}" for name in NAMES)]))
    return {path: tmp_path / "out" / name for path, name in files.find_recordings([str(tmp_path / "in")]).items()}


def run(work, targets, executor=None, workers=1):
    with executor or batch.local_executor(workers) as used:
        return {outcome.path: outcome for outcome in batch.run_batch(work, targets, used, workers)}


def content(folder: Path):
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def test_batch_results_equal_those_of_the_library(recordings, short_blocks):
    outcomes = run(job(part=5.0), recordings)
    assert not any(outcome.failed for outcome in outcomes.values())
    for path, folder in recordings.items():
        samples, _ = files.read_samples(path, RecordingRequest(NAMES))
        motion = estimate_recording(samples["t"], samples["q"])
        expected = ROBOT.torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd)
        result = json.loads((folder / "result.json").read_text())
        assert result["complete"] and result["samples"] == len(samples["t"]) == outcomes[path].rows
        assert len(result["parts"]) == (1 if path.suffix == ".csv" else 3)
        table = parquet.read_table([folder / part["file"] for part in result["parts"].values()])
        for kind, values in zip(("tau", "tau_rate"), expected):
            found = np.stack([table[f"{kind}_{name}"].to_numpy() for name in NAMES], axis=1)
            np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(table["t"].to_numpy(), samples["t"])
        if path.suffix != ".csv":
            stamps = table["stamp"].to_numpy().astype(np.int64)
            np.testing.assert_array_equal(stamps, bags.EPOCH + bags.motion(0, 2, 12.0)[0])


def test_processes_and_dask_cluster_write_identical_files(tmp_path, recordings):
    distributed = pytest.importorskip("distributed")
    run(job(), recordings)
    expected = content(tmp_path / "out")
    assert len(expected) == 3
    processes = {path: tmp_path / "two" / folder.name for path, folder in recordings.items()}
    run(job(), processes, workers=2)
    assert content(tmp_path / "two") == expected
    dask = {path: tmp_path / "dask" / folder.name for path, folder in recordings.items()}
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "protocol": "inproc://"}
    with (distributed.LocalCluster(processes=False, **options) as local,
          batch.connect_cluster(local.scheduler_address) as (executor, count)):
        assert count == 2
        outcomes = {outcome.path: outcome for outcome in batch.run_batch(job(), dask, executor, count)}
    assert not any(outcome.failed for outcome in outcomes.values())
    assert content(tmp_path / "dask") == expected


def test_failed_recording_does_not_affect_others(tmp_path, recordings):
    broken, strange = tmp_path / "in" / "broken.mcap", tmp_path / "in" / "strange.csv"
    broken.write_bytes(b"\x89MCAP0\r\n and no more")
    strange.write_text("t,q_j1,q_j2\n0,1,2\n1,1,what\n")
    targets = recordings | {path: tmp_path / "out" / path.stem for path in (broken, strange)}
    outcomes = run(job(), targets)
    assert "cannot be read" in outcomes[broken].failed and str(broken) not in outcomes[broken].failed
    assert "row 3, column 'q_j2' is 'what'" in outcomes[strange].failed
    assert all(not outcomes[path].failed and outcomes[path].rows for path in recordings)
    assert not (targets[broken] / "result.json").exists()


def test_complete_parts_are_kept_and_damaged_parts_are_recomputed(recordings, short_blocks, monkeypatch):
    path, folder = next(iter(recordings.items()))
    work, targets = job(part=5.0), {path: folder}
    assert not run(work, targets)[path].before
    expected, seen = content(folder), []
    compute = batch.compute_part
    monkeypatch.setattr(batch, "compute_part", lambda *given: seen.append(given[3]) or compute(*given))
    assert run(work, targets)[path].before and not seen
    (folder / "run0_0001.parquet").write_bytes(expected["run0_0001.parquet"][:-1])  # cut off
    (folder / "run0_0002.parquet").unlink()
    (folder / ".run0_0002.parquet.partial.parquet").write_bytes(b"of a run that was ended")
    assert not run(work, targets)[path].before and sorted(seen) == [1, 2]
    assert content(folder) == expected
    seen.clear()
    run(work._replace(window=0.2), targets)
    assert sorted(seen) == [0, 1, 2] and content(folder) != expected  # another option
    seen.clear()
    other = bags.recorded(folder.parent / "other", NAMES, 9, 12.0)
    path_in_bag = next(file for file in path.iterdir() if file.suffix == ".mcap")
    path_in_bag.write_bytes(other.read_bytes())
    run(work._replace(window=0.2), targets)
    assert sorted(seen) == [0, 1, 2]  # another content


def test_interrupted_batch_continues_where_it_ended(recordings, short_blocks, monkeypatch):
    path, folder = next(iter(recordings.items()))
    compute = batch.compute_part

    def stops(*given):
        if given[3] == 1:
            raise KeyboardInterrupt
        return compute(*given)

    monkeypatch.setattr(batch, "compute_part", stops)
    with pytest.raises(KeyboardInterrupt):
        run(job(part=5.0), {path: folder})
    result = json.loads((folder / "result.json").read_text())
    assert not result["complete"] and list(result["parts"]) == []  # the first was done, and not yet reported
    monkeypatch.setattr(batch, "compute_part", compute)
    run(job(part=5.0), {path: folder})
    assert json.loads((folder / "result.json").read_text())["complete"] and len(content(folder)) == 3


def test_batch_reads_the_robot_description_of_bags(recordings, tmp_path):
    outcomes = run(job(robot=None, options={"backend": "python"}), recordings)
    table = next(path for path in recordings if path.suffix == ".csv")
    assert "contains no robot description" in outcomes[table].failed
    first, second = (content(folder) for path, folder in recordings.items() if path != table)
    run(job(), {path: tmp_path / "given" / path.name for path in recordings if path != table})
    assert {*content(tmp_path / "given").values()} == {*first.values(), *second.values()}


def test_batch_writes_torques_as_a_bag_with_the_stamps_of_the_recording(recordings, short_blocks):
    path, folder = next(iter(recordings.items()))
    run(job("mcap", 5.0), {path: folder})
    names = ["metadata.yaml", "result.json", *(f"run0_{k:04}.mcap" for k in range(3))]
    assert sorted(file.name for file in folder.iterdir()) == names
    samples, _ = files.read_samples(path, RecordingRequest(NAMES))
    motion = estimate_recording(samples["t"], samples["q"])
    expected = dict(zip(("/rnea/joint_effort", "/rnea/joint_effort_rate"),
                        ROBOT.torque_and_rate(motion.q, motion.qd, motion.qdd, motion.qddd)))
    stamps = {message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
              for _, _, message in bags.messages_in(path) if hasattr(message, "effort")}
    for topic, values in expected.items():
        result = [(when, message) for name, when, message in bags.messages_in(folder) if name == topic]
        np.testing.assert_allclose([message.effort for _, message in result], values, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal([message.position for _, message in result], motion.q)
        assert {when for when, _ in result} == stamps and tuple(result[0][1].name) == NAMES
        assert all(message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == when for when, message in result)


def test_unreachable_scheduler_is_reported(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(batch, "SCHEDULER_TIMEOUT_S", 0.2)
    with pytest.raises(Exception, match=r"tcp://127\.0\.0\.1:9: no Dask scheduler answers"), batch.connect_cluster("tcp://127.0.0.1:9"):
        pass
