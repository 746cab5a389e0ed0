"""Cache of machine code on disk: reuse, damaged files, permissions, size, concurrency."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import rnea_ros
from rnea_ros import Robot
from rnea_ros.codegen import cache

pytest.importorskip("llvmlite")
ROOT = Path(rnea_ros.__file__).parents[1]
URDF = ROOT / "urdf" / "rr.urdf"
MOTION = np.random.default_rng(0).normal(size=(4, 2))


@pytest.fixture(autouse=True)
def cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kernels"))
    cache.counts.clear()
    return tmp_path / "kernels"


def result():
    return np.array(Robot.from_urdf(URDF).torque_and_rate(*MOTION))


def expected():
    return np.array(Robot.from_urdf(URDF, backend="python").torque_and_rate(*MOTION))


def test_compiled_functions_are_reused_from_the_cache(cache_folder):
    first = result()
    assert cache.counts == {"compiled": 1} and len(list(cache_folder.iterdir())) == 1
    assert cache_folder.stat().st_mode & 0o777 == 0o700 and next(cache_folder.iterdir()).stat().st_mode & 0o777 == 0o600
    np.testing.assert_array_equal(result(), first)
    assert cache.counts == {"compiled": 1, "found": 1}
    np.testing.assert_allclose(first, expected(), rtol=1e-12)


def test_single_and_vectorized_kernels_are_reused_from_the_cache(cache_folder):
    rows = np.repeat(MOTION[:, None], 300, axis=1)
    first = result(), Robot.from_urdf(URDF).torque_and_rate(*rows)
    cache.counts.clear()
    robot = Robot.from_urdf(URDF)
    np.testing.assert_array_equal(robot.torque_and_rate(*MOTION), first[0])
    np.testing.assert_array_equal(robot.torque_and_rate(*rows), first[1])
    assert cache.counts == {"found": 2} and type(robot.kernel().call).__name__ == "builtin_function_or_method"


@pytest.mark.parametrize("damage", [
    lambda b: b"", lambda b: b[:20], lambda b: b[:-1], lambda b: b + b"\0", lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:],
    lambda b: bytes([b[0] ^ 1]) + b[1:], lambda b: b[:30] + bytes([b[30] ^ 255]) + b[31:], lambda b: b"\x7fELF" * 1000])
def test_damaged_cache_files_are_compiled_again(cache_folder, damage):
    first = result()
    (file,) = cache_folder.iterdir()
    sound = file.read_bytes()
    file.write_bytes(damage(sound))
    np.testing.assert_array_equal(result(), first)
    assert cache.counts == {"compiled": 2, "damaged": 1} and file.read_bytes() == sound


def test_cache_key_depends_on_the_program_and_not_on_names(cache_folder):
    result()
    Robot.from_urdf(URDF, gravity=(0.0, 0.0, -9.80665)).torque_and_rate(*MOTION)
    Robot.from_urdf(URDF.read_text().replace("rr", "other")).torque_and_rate(*MOTION)
    assert cache.counts["compiled"] == 2 and cache.counts["found"] == 1, "a name is no content"
    first = cache.object_code(b"key", lambda: b"one")
    assert cache.object_code(b"key", lambda: b"two") == first == b"one" and cache.object_code(b"kez", lambda: b"two") == b"two"


def test_unusable_cache_folder_is_ignored(cache_folder, monkeypatch, tmp_path):
    for bad in (tmp_path / "file" / "below", Path("/proc/nothing"), Path("/dev/null")):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv(cache.FOLDER, str(bad))
        cache.counts.clear()
        np.testing.assert_allclose(result(), expected(), rtol=1e-12)
        assert cache.counts["compiled"] == 1 and cache.counts["unusable"] >= 1
    monkeypatch.setenv(cache.FOLDER, "")
    cache.counts.clear()
    result()
    assert cache.counts == {"compiled": 1} and cache.folder() is None


def test_full_disk_does_not_prevent_compilation(cache_folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    result()
    assert cache.counts == {"compiled": 1, "unusable": 1} and not list(cache_folder.iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_cache_folder_writable_by_others_is_not_used(cache_folder, mode):
    cache_folder.mkdir()
    cache_folder.chmod(mode)
    result()
    assert cache.counts["unusable"] and not list(cache_folder.iterdir())


def test_cache_folder_behind_a_link_of_another_user_is_not_used(cache_folder, monkeypatch, tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "mine")
    monkeypatch.setenv(cache.FOLDER, str(link))
    result()
    assert len(list((tmp_path / "mine").iterdir())) == 1  # one's own link is fine
    real = os.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: os.stat_result([*real(path)[:4], os.geteuid() + 1, *real(path)[5:]]))
    result()
    assert cache.counts["unusable"]


def test_cache_folder_follows_the_xdg_variables(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "rnea_ros"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache.folder() == tmp_path / "home" / ".cache" / "rnea_ros"


def test_cache_size_is_bounded_and_oldest_entries_are_removed(cache_folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    for k in range(30):
        cache.object_code(f"{k}".encode(), lambda: b"x" * 900)
        for file in cache_folder.iterdir():
            os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))
    assert sum(file.stat().st_size for file in cache_folder.iterdir()) <= 10_000
    assert cache.object_code(b"29", lambda: b"lost") == b"x" * 900, "the newest stays"
    assert cache.object_code(b"0", lambda: b"anew") == b"anew"


def test_foreign_files_in_the_cache_folder_are_kept(cache_folder, monkeypatch):
    """RNEA_ROS_CACHE may be a folder with other files."""
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    cache_folder.mkdir(mode=0o700)
    for name in ("thesis.tex", "old.o", "backup.part"):
        (cache_folder / name).write_bytes(b"x" * 9_000)
        os.utime(cache_folder / name, (0, 0))
    for k in range(30):
        cache.object_code(f"{k}".encode(), lambda: b"x" * 900)
    assert {"thesis.tex", "old.o", "backup.part"} < {file.name for file in cache_folder.iterdir()}
    assert len(list(cache_folder.iterdir())) < 15


PROCESS = """
import sys, numpy as np
from rnea_ros import Robot
from rnea_ros.codegen import cache
motion = np.random.default_rng(0).normal(size=(4, 2))
for k in range(6):
    robot = Robot.from_urdf(sys.argv[1], gravity=(float(k), 0.0, 0.0))
    print(*np.concatenate(robot.torque_and_rate(*motion)).tolist())
assert not cache.counts["damaged"] and not cache.counts["unusable"], cache.counts
"""


def test_processes_can_fill_the_cache_concurrently(cache_folder):
    started = [subprocess.Popen([sys.executable, "-c", PROCESS, str(URDF)], stdout=subprocess.PIPE, cwd=ROOT, text=True)
               for _ in range(4)]
    printed = {process.communicate(timeout=240)[0] for process in started}
    assert len(printed) == 1 and all(process.returncode == 0 for process in started)
    assert len(list(cache_folder.iterdir())) == 6 and not list(cache_folder.glob("*.part"))


def test_threads_can_fill_the_cache_concurrently(cache_folder):
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(result())) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 6
    for other in found:
        np.testing.assert_array_equal(other, found[0])
