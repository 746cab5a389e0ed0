"""Short run of `make fuzz`: fast targets in this process, and the report of a finding."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rosbags")

from fuzz.campaign import TARGETS, Campaign
from fuzz.mutation import Choices, mutated
from fuzz.target import Target, WrongNumber, outcome

from rnea_ros import InputError

ROOT = Path(__file__).resolve().parents[2]
IN_PROCESS = {"urdf": 60, "robot_file": 6, "yaml": 150, "csv": 100, "bag": 60, "services": 300, "retime": 8, "goals": 5,
              "estimator": 12, "sections": 100, "limits": 60, "muscles": 60, "people": 100, "chunks": 30}


@pytest.mark.parametrize("name", IN_PROCESS)
def test_short_fuzz_campaign_finds_no_error(name, tmp_path):
    campaign = Campaign(TARGETS[name], 1, tmp_path)
    campaign.run(3600.0, IN_PROCESS[name])
    assert campaign.became.total() == IN_PROCESS[name] and not campaign.findings
    assert len(campaign.became) >= 2 or name in ("robot_file", "estimator")
    assert not list(tmp_path.iterdir())


def test_node_answers_short_streams_of_odd_messages(tmp_path):
    """Regression: after a method of the node was renamed, every input of `states` and `estimates` was an AttributeError."""
    options = "estimates", "--count", "20", "--seconds", "300", "--folder", str(tmp_path)
    command = [sys.executable, "-m", "fuzz.campaign", *options]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'test'}"}, capture_output=True,
                          text=True, timeout=400, check=True)
    assert json.loads(done.stdout)["became"] == {"went on": 20}


def test_remaining_fuzz_targets_have_seeds():
    """These targets need a node or a separate process; `make fuzz` runs them, and test_cdr.py runs the messages."""
    assert set(TARGETS) - set(IN_PROCESS) == {"messages", "states", "estimates", "parameters"}
    assert all(len(target.seeds()) >= 2 for target in TARGETS.values())


def test_findings_are_detected_and_stored(tmp_path):
    raised = [InputError("what was given, what is allowed"), InputError(""), WrongNumber("1 instead of 2"), KeyError("x"),
              MemoryError(), RecursionError()]

    def make(_folder):
        def attempt(data):
            raise raised[len(data) % len(raised)]

        return attempt

    campaign = Campaign(Target("bad", lambda: [b"seed" * 6], make), 1, tmp_path)
    campaign.run(3600.0, 400)
    kinds = {where.split()[0] for where in campaign.findings}
    assert kinds == {"AssertionError", "WrongNumber", "KeyError", "MemoryError", "RecursionError"}
    assert 5 <= len(list(tmp_path.glob("bad-*.txt"))) <= 25 and not list(tmp_path.glob("*.last"))
    assert outcome(make(tmp_path), b"seed" * 6) == "refused: InputError"


def test_inputs_of_a_target_do_not_repeat(tmp_path):
    """Regression: mutations of short seeds repeated; of 20 000 inputs, 6 500 were different."""
    seen = []

    def make(_folder):
        return lambda data: seen.append(data) or "estimated"

    Campaign(TARGETS["estimator"]._replace(make=make), 1, tmp_path).run(3600.0, 3000)
    assert len(set(seen)) == 3000


def test_mutations_are_reproducible_by_seed():
    corpus = [b"<mass value='1.5'/>" * 3, b"t,q\n0,1\n"]
    first, again, other = ([mutated(random.Random(seed), corpus, [b"nan"]) for _ in range(5)] for seed in (1, 1, 2))
    assert first == again != other
    choose = Choices(b"\x01\xff\0")
    assert (choose.pick("abc") == "b" and choose.number() == choose.number() == 0.0) or not choose
