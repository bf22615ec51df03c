"""The bench on which faults are made, one for all tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from harness import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    made = Bench(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()
