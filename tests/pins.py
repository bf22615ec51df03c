"""Hashes of fixed runs: what no change of the code may move.

`python tests/pins.py` prints them; with `--write` it pins them again, for a change that is meant to
give other bits. They hold for one type of CPU and one set of library versions, pinned with them.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import dsc

FILE = Path(__file__).with_name("pins.json")
OPTIONS = {"n_atoms": 6, "sparsity": 3, "n_iterations": 3, "seed": 2}


def waves(size: int, seed: int) -> np.ndarray:
    """An image of a few plane waves and noise, (y, x) in [0, 1]."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:size, :size]
    total = 0.3 * rng.standard_normal((size, size))
    for _ in range(5):
        v, u, phase = *rng.uniform(-0.9, 0.9, 2), rng.uniform(0, 6)
        total += np.cos(v * y + u * x + phase)
    return np.float32((total - total.min()) / np.ptp(total))


def sha256(*arrays: np.ndarray) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


class Stop(Exception):
    """The run ends here."""


def stop_after(n_passes: int):
    def progress(_: object, seen: list[int] = [0]) -> None:  # noqa: B006
        seen[0] += 1
        if seen[0] == n_passes:
            raise Stop

    return progress


def learned(folder: Path) -> dict[str, str]:
    """Dictionaries of arrays and of stored sets, and what is made with them."""
    windows = np.lib.stride_tricks.sliding_window_view(waves(90, 0), (9, 9))[::2, ::2]
    patches = np.ascontiguousarray(windows.reshape(-1, 9, 9))
    pins = {}
    for basis in ("disk", "annular", "pixels"):
        for update in ("ksvd", "mod"):
            model = dsc.learn(patches, basis=basis, update=update, **OPTIONS)
            pins[f"learn {basis} {update}"] = model.sha256
            pins[f"learn {basis} {update} history"] = sha256(model.history, model.count)
    centered = dsc.ArrayPatches(patches, center=True, unit=True)
    twins = dsc.learn(centered, init="patches", replace_twins=0.9, **{**OPTIONS, "n_iterations": 7})
    pins["learn from patches without twins"] = twins.sha256
    configs = [dsc.LearnConfig(4, 2, n_iterations=2), dsc.LearnConfig(3, 1, basis="pixels")]
    many = dsc.learn_many([(patches, configs[0]), (patches[:700], configs[1])])
    pins |= {f"learn_many {i}": model.sha256 for i, model in enumerate(many)}

    options = dsc.PatchConfig(diameter=9, stride=2, min_std=0.05, center=True, rotate=(0.0, 30.0))
    stored = dsc.extract_patches([waves(120, 1), waves(70, 2)], folder / "p.zarr", options)
    pins["patches"] = stored.fingerprint
    model = dsc.learn(stored, **OPTIONS)
    pins["learn stored"] = model.sha256
    coded = model.encode(stored)
    pins["encode"] = sha256(coded.codes.atom, coded.codes.angle, coded.codes.coef, coded.rest)
    pins["reconstruct"] = sha256(model.reconstruct(waves(60, 3), stride=2))
    try:
        dsc.learn(stored, run=folder / "run", progress=stop_after(2), **OPTIONS)
    except Stop:
        pins["resumed"] = dsc.learn(stored, run=folder / "run", resume=True, **OPTIONS).sha256
    assert pins["resumed"] == pins["learn stored"]
    return pins


def textures() -> dict[str, str]:
    """Classifiers of drawn textures: atoms, and histograms of other images."""
    train = [waves(40, seed) ** power for power in (1, 3) for seed in (10, 11, 12)]
    test = [waves(40, seed) ** power for power in (1, 3) for seed in (20, 21)]
    labels = ["flat"] * 3 + ["steep"] * 3
    pins = {}
    for method in ("rotational", "augmented", "standard"):
        for sparsity in (1, 2):
            model = dsc.TextureClassifier(
                n_components=5,
                diameter=7,
                n_nonzero_coefs=sparsity,
                method=method,
                patches_per_image=300,
                unit=False,
                max_iter=2,
            ).fit(train, labels)
            pins[f"texture {method} {sparsity}"] = model.model_.sha256
            pins[f"texture {method} {sparsity} histograms"] = sha256(model.transform(test))
    return pins


def current() -> dict[str, dict[str, str]]:
    """The hashes of this code on this machine, and what they depend on besides."""
    patches = np.ones((8, 5, 5), np.float32)
    numerics = dsc.learn(patches, 1, 1, n_iterations=0).numerics
    with tempfile.TemporaryDirectory() as folder:
        return {"numerics": numerics, "sha256": {**learned(Path(folder)), **textures()}}


if __name__ == "__main__":
    found = current()
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    pinned = json.loads(FILE.read_text())
    for name, value in found["sha256"].items():
        print("same " if pinned["sha256"].get(name) == value else "OTHER", name, value[:12])
    sys.exit(found != pinned)
