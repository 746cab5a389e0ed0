"""Matrix of supported platforms: workflow and documentation contain the same combinations."""

import importlib.util
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def matrix():
    found = importlib.util.spec_from_file_location("matrix", ROOT / ".ci" / "matrix.py")
    module = sys.modules["matrix"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_workflow_tests_every_combination_with_its_python(matrix):
    jobs = yaml.safe_load((ROOT / ".github/workflows/matrix.yml").read_text())["jobs"]
    tried = {one["combination"]: one["python"] for one in jobs["combination"]["strategy"]["matrix"]["include"]}
    assert tried == {one.name: one.python for one in matrix.COMBINATIONS}
    names = list(tried)
    assert not any(name in other for name in names for other in names if name != other), "--only would try another one, too"


def test_platforms_page_shows_every_combination(matrix):
    page = (ROOT / "docs" / "platforms.md").read_text()
    for combination in matrix.COMBINATIONS:
        assert f"| {combination.name} |" in page
        for test in combination.tests:
            assert (ROOT / test.partition("::")[0]).exists(), test


def test_missing_requirements_are_reported(matrix):
    combination = matrix.Combination("x", "3.12", tools=("no-such-tool",))
    assert combination.missing({}) == "no Python 3.12 here" and combination.missing({"3.12": "p"}) == "no no-such-tool here"
    assert "| x | 3.12 | numpy 2 | 3 passed | 2026-01-01 |" in matrix.table(
        {"x": {"python": "3.12", "versions": "numpy 2", "result": "3 passed", "date": "2026-01-01"}})
