"""Torques of many recordings: how much memory a worker takes, and what a second worker brings.

    python benchmark/recordings.py [--gigabytes 1] [--folder FOLDER]

Bags of a 7-joint arm at 500 Hz are made in the folder (or one that is removed), then `rnea torque` computes them with one
worker, with two, and on a Dask cluster of two; results are compared byte for byte. Needs the extras [bags] and [dask].
"""

from __future__ import annotations

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import Robot

ROOT = Path(__file__).resolve().parents[1]
URDF = ROOT / "urdf" / "seven_r.urdf"
RATE, MINUTES = 500.0, 10  # Hz; of a bag: 105 MB
EPOCH = 1_700_000_000_123_456_789


def make(folder: Path, seed: int) -> None:
    """Write a bag of MINUTES of sines, through an encoder with 2^17 counts."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    from support.bags import JOINT_STATE, STORE, joint_state

    rng, names = np.random.default_rng(seed), Robot.from_urdf(URDF, backend="python").joint_names
    w, phase = rng.uniform(0.5, 3.0, len(names)), rng.uniform(0.0, 6.0, len(names))
    step = 2.0 * np.pi / 2**17
    with Writer(folder, version=8, storage_plugin=StoragePlugin.MCAP) as bag:
        topic = bag.add_connection("/joint_states", JOINT_STATE, typestore=STORE)
        for k in range(int(60 * MINUTES * RATE)):
            t = k / RATE
            q = np.round(0.7 * np.sin(w * t + phase) / step) * step
            stamp = EPOCH + round(1e9 * t)
            bag.write(topic, stamp + 300_000, joint_state(stamp, names, q, 0.0 * q, 0.7 * w * np.cos(w * t + phase)))


def command(*words: object) -> tuple[float, float]:
    """Seconds that `rnea torque` takes with these words, and the most memory of one of its processes [MB]."""
    before = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "rnea_ros.cli.main", "torque", *map(str, words)], cwd=ROOT)
    most, children = 0.0, set()
    while process.poll() is None:
        children |= _below(process.pid)
        most = max([most, *(_peak(child) for child in (process.pid, *children))])
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(process.returncode)
    return time.perf_counter() - before, most


def _below(pid: int) -> set[int]:
    """Children of a process."""
    try:
        return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except OSError:
        return set()


def _peak(pid: int) -> float:
    """Largest resident size of a process so far [MB]."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
    except OSError:
        return 0.0


def digest(folder: Path) -> str:
    """Return a digest of all results."""
    found = hashlib.sha256()
    for file in sorted(folder.rglob("*.parquet")):
        found.update(file.read_bytes())
    return found.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where bags are made, or lie already; default: one that is removed")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        bags = folder / "bags"
        while not (made := [*bags.glob("*/*.mcap")]) or sum(file.stat().st_size for file in made) < 1e9 * options.gigabytes:
            make(bags / f"run{len(made)}", len(made))
        size = sum(file.stat().st_size for file in made) / 1e9
        print(f"{len(made)} bags, {size:.3g} GB, load before: {os.getloadavg()[0]:.1f}")
        one = measured("1 worker", size, folder / "one", bags, "--workers", 1)
        two = measured("2 workers", size, folder / "two", bags, "--workers", 2)
        same = digest(folder / "one") == digest(folder / "two")
        print(f"2 workers are {one / two:.2f} x as fast as 1; the same bytes: {same}")
        on_cluster(folder, bags)


def measured(name: str, size: float, out: Path, bags: Path, *words: object) -> float:
    seconds, most = command(URDF, bags, "-o", out, *words)
    print(f"{name:<10} {seconds:8.1f} s, {1e3 * size / seconds:6.2f} MB/s, at most {most:5.0f} MB in a process")
    return seconds


def on_cluster(folder: Path, bags: Path) -> None:
    from distributed import LocalCluster

    one = next(bags.iterdir())
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        command(URDF, one, "-o", folder / "dask", "--dask", cluster.scheduler_address)
    same = digest(folder / "dask") == digest(folder / "one" / one.name)
    print(f"Dask, of one bag: the same bytes: {same}; peak of this process "
          f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
