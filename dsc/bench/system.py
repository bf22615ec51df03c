"""What the system adds to the kernels: threads, Dask, and patches cut out in the task."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from skimage import data
from threadpoolctl import threadpool_limits

from dsc.basis import SteerableBasis, disk_basis
from dsc.bench.timing import best_of_each, seconds_of
from dsc.engine.plan import BLOCK, leaf_size
from dsc.engine.tree import merge_tree
from dsc.learning import accumulate, random_atoms, solve
from dsc.learning.config import LearnConfig
from dsc.learning.loop import Pass
from dsc.learning.statistics import measure, worth_merging
from dsc.model import learn
from dsc.patches import PatchConfig, PatchSource, extract_patches
from dsc.pursuit import encode

CODING = LearnConfig(n_atoms=20, sparsity=4, n_iterations=5)
NET = LearnConfig(n_atoms=10, sparsity=2, n_iterations=10)


def bench_system(quick: bool = False) -> dict[str, Any]:
    """Threads against one thread, Dask against a bare loop, and the whole of *net*."""
    with tempfile.TemporaryDirectory() as folder:
        name, picture = _net(Path(folder))
        net = extract_patches(
            [str(picture)],
            str(Path(folder) / "net.zarr"),
            PatchConfig(diameter=11, min_std=0.1, unit=True),
        )
        n_sample = 30_000 if quick else 100_000
        sample = extract_patches(
            [str(picture)],
            str(Path(folder) / "sample.zarr"),
            PatchConfig(diameter=11, min_std=0.1, unit=True, per_image=n_sample),
        )
        sources = [sample] if quick else [sample, net]
        return {
            "picture": name,
            "threads": [_time_threads(source, 2 if quick else 3) for source in sources],
            "net": _time_net(sources[-1]),
        }


def _net(folder: Path) -> tuple[str, Path]:
    """The paper's *net* where it is at hand, else a CC0 picture of about its size."""
    where = os.environ.get("DSC_DATA")
    if where and (path := Path(where) / "brodatz_D103.gif").is_file():
        return "net (Brodatz D103)", path
    path = folder / "gravel.png"
    Image.fromarray(data.gravel()).save(path)
    return "gravel (CC0, scikit-image)", path


def _options(config: LearnConfig) -> dict[str, Any]:
    return {
        "n_atoms": config.n_atoms,
        "sparsity": config.sparsity,
        "n_iterations": config.n_iterations,
    }


def bare_loop(
    coords: np.ndarray[Any, np.dtype[np.float32]], basis: SteerableBasis, config: LearnConfig
) -> None:
    """The same arithmetic as `learn` on coordinates in memory, without Dask, store or plan."""
    atoms = random_atoms(basis, config.n_atoms)
    worth = worth_merging(config.n_atoms, config.sparsity)
    size = leaf_size(len(coords), basis.n_coords, worth)
    for iteration in range(config.n_iterations + 1):
        update = iteration < config.n_iterations

        def leaf(start: int, update: bool = update, atoms: Any = atoms) -> Pass:
            total: Any = None
            stop = min(start + size, len(coords))
            for begin in range(start, stop, BLOCK):
                block = coords[begin : min(begin + BLOCK, stop)]
                codes = encode(block, atoms, basis, config.sparsity)
                if update:
                    total = accumulate(block, codes, atoms, basis, "ksvd", begin, total)
                else:
                    usage, _ = measure(block, codes, atoms, basis, begin)
                    total = usage if total is None else total.merge(usage)
            return Pass(total, 0.0)

        merged = merge_tree(leaf(start) for start in range(0, len(coords), size))
        if update:
            atoms = solve(merged.statistics, atoms, basis)  # type: ignore[arg-type]


def _time_threads(source: PatchSource, repeats: int) -> dict[str, float]:
    """Learning with two threads, with one, and as a bare loop over kernels."""
    basis = disk_basis(11)
    coords = source.read(basis, 0, source.n_patches)

    def bare() -> None:
        with threadpool_limits(limits=1):
            bare_loop(coords, basis, CODING)

    times = best_of_each(
        {
            "two_threads": lambda: learn(source, n_workers=2, **_options(CODING)),
            "one_thread": lambda: learn(source, n_workers=1, **_options(CODING)),
            "bare_loop": bare,
            "reading": lambda: source.read_with_rest(basis, 0, source.n_patches),
        },
        repeats,
    )
    return {
        **times,
        "n_patches": source.n_patches,
        "speedup": times["one_thread"] / times["two_threads"],
        "dask_overhead": (times["one_thread"] - times["reading"]) / times["bare_loop"],
    }


def _time_net(net: PatchSource) -> dict[str, float]:
    """Ten iterations and the final pass, lazily from the picture, against the kernels alone."""
    basis = disk_basis(11)
    coords = net.read(basis, 0, net.n_patches)

    def kernels() -> None:
        with threadpool_limits(limits=1):
            bare_loop(coords, basis, NET)

    seconds = {
        "lazy": seconds_of(lambda: learn(net, n_workers=1, **_options(NET))),
        "kernels": seconds_of(kernels),
        "two_threads": seconds_of(lambda: learn(net, n_workers=2, **_options(NET))),
    }
    return {
        **seconds,
        "n_patches": net.n_patches,
        "ratio": seconds["lazy"] / seconds["kernels"],
    }


def format_system(summary: dict[str, Any]) -> str:
    """The results for people."""
    lines = []
    for threads in summary["threads"]:
        lines += [
            f"learning, {threads['n_patches']:,} patches of {summary['picture']}, M = 20, K = 4, "
            f"{CODING.n_iterations} iterations",
            f"  one thread {threads['one_thread']:.2f} s, two threads {threads['two_threads']:.2f} "
            f"s: {threads['speedup']:.2f} ×",
            f"  the same arithmetic in a bare loop {threads['bare_loop']:.2f} s: Dask path "
            f"{threads['dask_overhead']:.3f} × (reading the patches, {threads['reading']:.2f} s, "
            "apart)",
        ]
    net = summary["net"]
    lines += [
        f"lazily from the picture, {net['n_patches']:,} patches, M = 10, K = 2, "
        f"{NET.n_iterations} iterations and the final pass, one thread",
        f"  {net['lazy']:.2f} s, its kernels alone {net['kernels']:.2f} s: {net['ratio']:.2f} ×"
        f" (two threads: {net['two_threads']:.2f} s)",
    ]
    return "\n".join(lines)
