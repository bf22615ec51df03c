"""What the system adds to the kernels: threads, Dask, and patches cut out in the task."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dsc.basis import SteerableBasis, disk_basis
from dsc.bench.images import MIN_STD, net_file
from dsc.bench.timing import Say, best_of_each
from dsc.dictionary import LearnConfig, learn, workload_of
from dsc.engine import BLOCK, MergeTree, leaf_size
from dsc.patches import PatchConfig, PatchSource, extract_patches
from dsc.pursuit import Codes, encode
from dsc.update import UPDATES, MeasureStatistics, measure, random_atoms, solve

CODING = LearnConfig(n_atoms=20, sparsity=4, n_iterations=5)
NET = LearnConfig(n_atoms=10, sparsity=2, n_iterations=10)
CASE = """\
learning from {n_patches:,} patches of {image}, lazily, M = {n_atoms}, K = {sparsity}, \
{n_iterations} iterations and the final pass
  one thread {one_thread:.2f} s, two threads {two_threads:.2f} s: {speedup:.2f} × (bare threads \
with nothing but the pursuit kernel: {speedup_of_pursuit:.2f} ×)
  its kernels in a bare loop {bare_loop:.2f} s: one thread takes {over_kernels:.3f} ×, \
{dask_overhead:.3f} × without reading the patches ({reading:.2f} s)"""


def run(quick: bool, say: Say) -> dict[str, Any]:
    """Two threads against one, and the Dask path against its kernels in a bare loop."""
    with tempfile.TemporaryDirectory() as folder:
        name, image = net_file(Path(folder))

        def cut(per_image: int | None = None) -> PatchSource:
            config = PatchConfig(diameter=11, min_std=MIN_STD, unit=True, per_image=per_image)
            return extract_patches([str(image)], str(Path(folder) / f"{per_image}.zarr"), config)

        if quick:
            sample = cut(30_000)
            cases = [(sample, CODING, 2), (sample, NET, 2)]
        else:
            net = cut()
            cases = [(cut(100_000), CODING, 6), (net, CODING, 4), (net, NET, 6)]
        learning = []
        for case in cases:
            learning.append(_time_learning(*case))
            say(CASE.format(image=name, **learning[-1]))
        return {"image": name, "learning": learning}


def bare_loop(coords: NDArray[np.float32], basis: SteerableBasis, config: LearnConfig) -> None:
    """The same arithmetic as `learn` on coordinates in memory, without Dask, store or plan."""
    atoms = random_atoms(basis, config.n_atoms)
    size = leaf_size(workload_of(len(coords), basis, config))
    kinds = [UPDATES[config.update]] * config.n_iterations
    for kind in [*kinds, MeasureStatistics]:
        coder = config.coder(atoms, basis)
        tree = MergeTree[Any]()
        for start in range(0, len(coords), size):
            total: Any = None
            for begin in range(start, min(start + size, len(coords)), BLOCK):
                block = coords[begin : min(begin + BLOCK, start + size)]
                codes = coder.encode(block)
                usage, residual = measure(coder, block, codes, begin)
                merged = usage if total is None else total.usage.merge(usage)
                total = kind.zero(usage, coder) if total is None else replace(total, usage=merged)
                total.add(residual, codes, coder)
            tree.add(total)
        if kind is not MeasureStatistics:
            atoms = solve(tree.total(), atoms, basis)


def _time_learning(source: PatchSource, config: LearnConfig, repeats: int) -> dict[str, Any]:
    """Learning lazily from the image with two threads and with one; its parts beside it.

    The bare loop codes and updates with the same kernels and nothing else. What two cores of this
    machine can give is seen from two threads that do nothing but run the pursuit kernel.
    """
    basis = disk_basis(11)
    coords = source.read(basis, 0, source.n_patches)
    atoms = random_atoms(basis, config.n_atoms)
    halves = np.array_split(coords, 2)
    options = {name: getattr(config, name) for name in ("n_atoms", "sparsity", "n_iterations")}

    def bare() -> None:
        with threadpool_limits(limits=1):
            bare_loop(coords, basis, config)

    def pursue(half: NDArray[np.float32]) -> Codes:
        return encode(half, atoms, basis, config.sparsity)

    def pursue_at_once() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(pursue, halves))

    times = best_of_each(
        {
            "two_threads": lambda: learn(source, n_workers=2, **options),
            "one_thread": lambda: learn(source, n_workers=1, **options),
            "bare_loop": bare,
            "reading": lambda: source.read_with_rest(basis, 0, source.n_patches),
            "pursuit_in_two": pursue_at_once,
            "pursuit_in_one": lambda: list(map(pursue, halves)),
        },
        repeats,
    )
    return {
        **options,
        **times,
        "n_patches": source.n_patches,
        "speedup": times["one_thread"] / times["two_threads"],
        "speedup_of_pursuit": times["pursuit_in_one"] / times["pursuit_in_two"],
        "dask_overhead": (times["one_thread"] - times["reading"]) / times["bare_loop"],
        "over_kernels": times["one_thread"] / times["bare_loop"],
    }
