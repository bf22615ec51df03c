"""The way from a patch to its pixels goes straight down."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

import dsc
from dsc.images import CACHE
from dsc.patches import PatchConfig, extract_patches, kernels

PACKAGE = str(Path(dsc.__file__).parent)
MOST_TO_KERNEL, MOST_TO_ARRAY = 4, 7


def own_files():
    """The files of the frames inside the package, from the test down."""
    files, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return files[::-1]


@pytest.mark.parametrize("rotate", [(), (30.0,)])
@pytest.mark.parametrize("source", ["array", "zarr"])
def test_read__goes_straight_down(tmp_path, image, monkeypatch, source, rotate):
    inputs = image("camera")[:60, :70].astype(np.float32)
    if source == "zarr":
        zarr.create_array(tmp_path / "in.zarr", data=inputs)
        inputs = tmp_path / "in.zarr"
    patches = extract_patches(inputs, tmp_path / "a", PatchConfig(rotate=rotate))
    ways = {"kernel": [], "array": []}

    def watch(owner, name, goal):
        original = getattr(owner, name)

        def watched(*arguments):
            ways[goal].append(own_files())
            return original(*arguments)

        monkeypatch.setattr(owner, name, watched)

    watch(kernels, "cut_rotated" if rotate else "cut", "kernel")
    watch(zarr.Array, "__getitem__", "array")
    CACHE.clear()
    patches.read(dsc.disk_basis(11), 0, 100)
    assert len(ways["kernel"]) == 1
    assert len(ways["array"]) == (4 if not rotate else 5)  # image, y, x (turn), and one tile
    assert max(map(len, ways["kernel"])) <= MOST_TO_KERNEL
    assert max(map(len, ways["array"])) <= MOST_TO_ARRAY
    for files in (*ways["kernel"], *ways["array"]):  # who has handed on is not called again
        changes = [a for a, b in zip(files, [*files[1:], None], strict=True) if a != b]
        assert len(set(changes)) == len(changes)
