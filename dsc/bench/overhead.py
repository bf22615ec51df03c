"""What limits a large cluster: bytes that travel, solves, store requests, the scheduler's time."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
import time
from collections import Counter
from dataclasses import replace
from typing import Any, ClassVar

import fsspec
import numpy as np
from fsspec.implementations.memory import MemoryFileSystem
from numpy.typing import NDArray
from skimage import data
from threadpoolctl import threadpool_limits

from dsc.basis import SteerableBasis, disk_basis
from dsc.bench.simulated import plan_of, time_passes
from dsc.bench.timing import Say, best_of
from dsc.dictionary import FORGET, LONGEST, LearnConfig, workload_of
from dsc.engine import BLOCK
from dsc.errors import readable
from dsc.patches import PatchConfig, PatchSource, cut_grid, extract_patches, open_patches
from dsc.pursuit import Codes
from dsc.update import UPDATES, Running, accumulate, random_atoms, solve, update_online

CASES = {11: LearnConfig(n_atoms=20, sparsity=4), 15: LearnConfig(n_atoms=100, sparsity=1)}
N_SOLVES = 2_400  # 24 classes with 100 atoms each
N_CODED = 20_000
N_PATCHES = 10**9
BATCHES = (2**16, 2**20, 2**23)  # patches; the first is the largest default
SIZES = """\
N = {diameter}, n = {n_coords}, M = {n_atoms}, K = {sparsity}, one thread
  codes and sums {pace:,.0f} patches/s
  atoms and basis, shared by all tasks of a pass: {shared}; what one task has besides: {part}
  statistics of a task: {statistics}; what online is kept between batches: {kept}
  {n_solves:,} eigenproblems of this n: {solving:.2f} s; the update after a batch: \
{solving_online:.3f} s"""
FORECAST = """\
  N = {diameter}, {n_workers:>6,} workers: {n_tasks:>7,} tasks, coding {working:.1f} s, scheduler \
{scheduling:.1f} s, solving {solving:.2f} s, at most {reduced} of statistics travel"""
BATCH = """\
  N = {diameter}, a batch of {size:>9,}: {n_tasks:>5,} tasks over patches, {graph_size:>5,} in \
all, scheduler {scheduling:.2f} s, a task {working:.2f} s, update {solving:.2f} s, at most \
{reduced} of statistics travel; from {limit:.0f} threads on the scheduler is the slower one"""
ALONE = """\
  cutting {n_patches:,} patches: {kept} in its memory, a bit for each; {hashed} of positions \
hashed, {longest} by one thread, {seconds:.0f} s at {pace} a second"""
REQUESTS = (
    "  {kind}: {gets} requests for {size}, {n_patches:,} patches of one image, N = {diameter}"
)


class CountingStore(MemoryFileSystem):  # type: ignore[misc]
    """Objects in memory, with the number and bytes of what was read."""

    protocol = "counted"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    gets: ClassVar[Counter[str]] = Counter()

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        """Bytes of an object."""
        found = bytes(super().cat_file(path, start, end, **options))
        type(self).gets.update(requests=1, bytes=len(found))
        return found


def run(quick: bool, say: Say) -> dict[str, Any]:
    """All of it; quick leaves out the larger clusters, and nine tenths of the solves."""
    sizes = []
    for diameter, config in CASES.items():
        sizes.append(measure_sizes(disk_basis(diameter), config, N_SOLVES // (10 if quick else 1)))
        say(SIZES.format(**sizes[-1]))
    say("what a task reads from a store, with nothing in memory")
    requests = [count_requests(kind) for kind in ("none", "disk")]
    for one in requests:
        say(REQUESTS.format(**one))
    passes = time_passes(quick, say)
    say(f"what that makes of {N_PATCHES:,} patches, a pass, with as many workers of one thread")
    each = passes["apart"][-1]["each"]
    forecasts = [forecast(one, n, each) for one in sizes for n in (100, 1_000, 10_000)]
    for one in forecasts:
        say(FORECAST.format(**one))
    alone = client_work(N_PATCHES)
    say("what the client does alone, while the cluster waits")
    say(ALONE.format(**alone))
    say(f"online, of as many patches; tasks of a batch do not depend on workers: {LONGEST:,} each")
    batches = [forecast_batch(one, size, each) for one in sizes for size in BATCHES]
    for one in batches:
        say(BATCH.format(**one))
    found = {"sizes": sizes, "requests": requests, "passes": passes}
    return {**found, "forecasts": forecasts, "batches": batches, "alone": alone}


def forecast(size: dict[str, Any], n_workers: int, each: float) -> dict[str, Any]:
    """A pass by arithmetic: work that the workers share, and what nobody shares."""
    diameter = size["diameter"]
    plan = plan_of(n_workers, N_PATCHES, disk_basis(diameter), CASES[diameter])
    return {
        "diameter": diameter,
        "n_workers": n_workers,
        "n_tasks": plan.graph_size,
        "working": N_PATCHES / (n_workers * size["pace"]),
        "scheduling": plan.graph_size * each / 1e3,
        "reduced": readable(plan.n_tasks * size["statistics_bytes"]),
        "solving": size["solving"] / size["n_solves"] * size["n_atoms"],
    }


def client_work(n_patches: int) -> dict[str, Any]:
    """What of extraction no worker does: the fingerprint, a SHA-256 of every column by one thread.

    The columns are image, y and x; all windows of the images are patches.
    """
    column = np.arange(2**22, dtype=np.int32)
    pace = column.nbytes / best_of(lambda: hashlib.sha256(column.data).digest(), 3)
    longest = n_patches * column.itemsize
    return {
        "n_patches": n_patches,
        "kept": readable(n_patches // 8),
        "hashed": readable(3 * longest),
        "longest": readable(longest),
        "seconds": longest / pace,
        "pace": readable(pace),
    }


def forecast_batch(size: dict[str, Any], batch_size: int, each: float) -> dict[str, Any]:
    """A batch of an online pass by arithmetic, with a worker for each of its tasks."""
    diameter = size["diameter"]
    basis, config = disk_basis(diameter), CASES[diameter]
    online = LearnConfig(config.n_atoms, config.sparsity, mode="online", batch_size=batch_size)
    n_tasks = workload_of(N_PATCHES, basis, online).n_pieces
    plan = replace(plan_of(n_tasks, N_PATCHES, basis, online), n_tasks=n_tasks)
    scheduling = plan.graph_size * each / 1e3
    working = min(LONGEST, batch_size // n_tasks) / size["pace"]
    return {
        "diameter": diameter,
        "size": batch_size,
        "n_tasks": n_tasks,
        "graph_size": plan.graph_size,
        "scheduling": scheduling,
        "working": working,
        "limit": n_tasks * working / scheduling,
        "solving": size["solving_online"],
        "reduced": readable(n_tasks * size["statistics_bytes_online"]),
    }


def measure_sizes(basis: SteerableBasis, config: LearnConfig, n_solves: int) -> dict[str, Any]:
    """Bytes of what tasks get and give, and the time of coding and of solving on one thread."""
    coords = _coords(basis)
    atoms = random_atoms(basis, config.n_atoms)
    coder = config.coder(atoms, basis)

    def code(update: str = config.update) -> Any:
        return accumulate(coords, coder.encode(coords), atoms, basis, update)

    with threadpool_limits(limits=1):
        sent = {name: len(pickle.dumps(code(name))) for name in UPDATES}
        seconds = best_of(code, 3)
        solving = _time_solves(coords, basis, n_solves)
        batch = code("mod")
        running = Running.start(config.n_atoms, basis)
        solving_online = best_of(lambda: update_online(running, batch, coder, FORGET), 3)
    with tempfile.TemporaryDirectory() as folder:
        source = _extract(f"{folder}/patches.zarr", basis.diameter, "none")
        part = len(pickle.dumps(source.part(0, source.n_patches)))
    return {
        "diameter": basis.diameter,
        "n_coords": basis.n_coords,
        "n_atoms": config.n_atoms,
        "sparsity": config.sparsity,
        "pace": len(coords) / seconds,
        "shared": readable(len(pickle.dumps(coder))),
        "part": readable(part),
        "statistics": ", ".join(f"{name} {readable(size)}" for name, size in sent.items()),
        "statistics_bytes": sent[config.update],
        "statistics_bytes_online": sent["mod"],
        "kept": readable(len(pickle.dumps(running))),
        "solving_online": solving_online,
        "n_solves": n_solves,
        "solving": solving,
    }


def _time_solves(coords: NDArray[np.float32], basis: SteerableBasis, n_solves: int) -> float:
    """Seconds for new atoms from statistics, a hundred atoms at a time, as classes have them."""
    atoms = random_atoms(basis, 100)
    codes: Codes = LearnConfig(n_atoms=100, sparsity=1).coder(atoms, basis).encode(coords)
    statistics = accumulate(coords, codes, atoms, basis)
    begin = time.perf_counter()
    for _ in range(n_solves // 100):
        solve(statistics, atoms, basis)
    return time.perf_counter() - begin


def count_requests(materialize: str) -> dict[str, Any]:
    """What is read from an object store by a task over all patches of an image."""
    fsspec.register_implementation("counted", CountingStore, clobber=True)
    url, basis = f"counted://bench/{materialize}.zarr", disk_basis(11)
    _extract(url, basis.diameter, materialize)
    source = open_patches(url)
    CountingStore.gets.clear()
    for start in range(0, source.n_patches, BLOCK):
        source.read(basis, start, min(start + BLOCK, source.n_patches))
    found = dict(CountingStore.gets)
    CountingStore.store.clear()
    return {
        "kind": {"none": "lazy patches", "disk": "materialised coordinates"}[materialize],
        "gets": found["requests"],
        "size": readable(found["bytes"]),
        "n_patches": source.n_patches,
        "diameter": basis.diameter,
    }


def _extract(url: str, diameter: int, materialize: str) -> PatchSource:
    """All patches of an image, which is kept with them."""
    basis = None if materialize == "none" else materialize
    config = PatchConfig(diameter=diameter, center=True, materialize=basis)
    return extract_patches(data.camera().astype(np.float32), url, config)


def _coords(basis: SteerableBasis) -> NDArray[np.float32]:
    patches = cut_grid(data.camera().astype(np.float32), basis.diameter, 1, center=True)
    chosen = np.linspace(0, len(patches) - 1, N_CODED).astype(int)
    return np.asarray(basis.project(patches[chosen]))
