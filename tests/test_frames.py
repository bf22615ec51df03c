"""The way from a command to the kernel goes straight down."""

import frames
import pytest


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    return frames.ways(tmp_path_factory.mktemp("frames"))


@pytest.mark.parametrize(("command", "most"), frames.MOST.items())
def test_frames__from_the_command_to_the_pursuit(ways, command, most):
    way = ways[command]["pursuit"]
    assert 3 <= len(way) <= most, "\n".join(way)
