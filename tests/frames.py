"""The way from a command to the kernel: own functions that are being called when a kernel is.

`python tests/frames.py` prints the longest way of each command, one function a line.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner
from PIL import Image

import dsc.pursuit
import dsc.texture
from dsc.cli.main import main
from dsc.experiments import write_suite

PACKAGE = str(Path(dsc.__file__).parent)
PURSUIT = (
    "dsc.pursuit.rotating.pursue",
    "dsc.pursuit.single.pursue",
    "dsc.pursuit.still.pursue",
    "dsc.texture.kernels.best_atoms",
)
CUT = ("dsc.patches.kernels.cut",)
MOST = {"learn": 9, "encode": 7, "texture evaluate": 10}


def longest_way(run: Callable[[], object], kernels: tuple[str, ...]) -> list[str]:
    """The longest way to one of the kernels while `run` is running, seen by a profiler."""
    longest: list[str] = []
    way: list[str] = []  # the functions of the package that are being called, the command first
    marks = []

    def watched(kernel: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:  # compiled kernels are invisible to a profiler
            return kernel(*arguments)

        marks.append(call.__code__)
        return call

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code in marks and len(way) > len(longest):
            longest[:] = way
        if code.co_filename.startswith(PACKAGE):
            if event == "call":
                path = Path(code.co_filename).relative_to(PACKAGE)
                way.append(f"{path}: {code.co_qualname}")
            elif event == "return" and way:
                way.pop()

    with ExitStack() as stack:
        for name in kernels:
            module, _, function = name.rpartition(".")
            stack.enter_context(patch(name, watched(getattr(sys.modules[module], function))))
        sys.setprofile(profile)
        try:
            run()
        finally:
            sys.setprofile(None)
    return longest


def command(*words: object) -> Callable[[], object]:
    """A command that must succeed."""

    def run() -> None:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code == 0, result.output

    return run


def ways(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The longest way of every command, to the pursuit and to the cutting of patches."""
    grey = np.random.default_rng(0).integers(0, 256, (60, 60), np.uint8)
    Image.fromarray(grey).save(folder / "image.png")
    command("patches", folder / "image.png", "--out", folder / "p.zarr", "--diameter", 7)()
    suite = write_suite(folder / "suite", n_train=2, n_test=1, angles=(0,), size=32)
    here = ("--scheduler", "synchronous")
    small = ("--n-atoms", 3, "--n-iterations", 1)
    texture = ("--diameter", 7, "--patches-per-image", 50, "--stride", 4, "--no-lbp")
    streamed = patch("dsc.engine.plan.KEEP_FRACTION", 0)  # so that tasks read patches themselves
    runs = {
        "learn": ("learn", folder / "p.zarr", "--out", "{}/run", *small, *here),
        "encode": ("encode", folder / "p.zarr", folder / "0/run", "--out", "{}/codes", *here),
        "texture evaluate": (
            "texture",
            "evaluate",
            suite,
            "--out",
            "{}/t",
            *small,
            *texture,
            *here,
        ),
    }
    found: dict[str, dict[str, list[str]]] = {name: {} for name in runs}
    for number, (name, kernels) in enumerate({"pursuit": PURSUIT, "cutting": CUT}.items()):
        (folder / str(number)).mkdir()
        for one, words in runs.items():
            run = command(*(str(word).format(folder / str(number)) for word in words))
            with streamed:
                found[one][name] = longest_way(run, kernels)
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for one, by_kernel in ways(Path(place)).items():
            for kernel, way in by_kernel.items():
                print(f"{one}, to the {kernel}: {len(way)}")
                for line in way:
                    print(f"    {line}")
