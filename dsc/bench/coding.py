"""Time of rotational coding, and of learning, against other implementations in the same run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dsc.basis import SteerableBasis, disk_basis, make_basis
from dsc.bench.images import Grey, cut_windows, read_cameraman
from dsc.bench.rivals import RIVALS, Floats, augmented_dictionary
from dsc.bench.timing import Say, best_of
from dsc.pursuit import decode, encode
from dsc.update import accumulate, random_atoms, solve

PAPER_SECONDS = 45.0  # "10,000 patches of 11 × 11, ten iterations"
OURS = {"dsc, orthogonal least squares": "ols", "dsc, OMP": "omp"}
ROW = "  {method:<36}{seconds:>8.3f} s{ratio:>9.1f}×{error:>13.3f}{nanoseconds:>28.1f}"
LEARNING = "learning, {title}: {seconds:.2f} s (the paper: {paper_seconds:.0f} s on its machine)"
ORTHOGONALISED = (
    "SPAMS's omp is orthogonal least squares too: it scores an atom by what is new in it. OMP "
    "takes what\nresembles the rest most; for K > 1 it chooses other atoms, and leaves more."
)
FIRST = "first codes in a new process: {compiling:.1f} s compiling, {cached:.1f} s from the cache"


@dataclass(frozen=True)
class Setting:
    """One coding problem to time."""

    diameter: int
    n_atoms: int
    sparsity: int
    n_patches: int
    basis: str = "disk"
    n_angles: int = 60
    n_learning: int = 4  # iterations that make the dictionary
    repeats: int = 5
    sklearn_patches: int = 200

    @property
    def title(self) -> str:
        """The problem in one line."""
        kind = "rotational" if self.n_angles > 1 else "standard: nothing rotates"
        return (
            f"{kind}, N = {self.diameter}, M = {self.n_atoms}, K = {self.sparsity}, "
            f"R = {self.n_angles}, {self.n_patches:,} patches"
        )


SETTINGS = (
    Setting(diameter=11, n_atoms=20, sparsity=4, n_patches=17_330),
    Setting(diameter=15, n_atoms=100, sparsity=1, n_patches=8_000),
    Setting(11, n_atoms=100, sparsity=3, n_patches=17_330, basis="pixels", n_angles=1),
)


def run(quick: bool, say: Say) -> dict[str, Any]:
    """Time everything on one thread; numbers as plain values, ready for JSON."""
    name, image = read_cameraman()
    say(f"image: {name}; one thread each, best of several")
    summary: dict[str, Any] = {"image": name, "coding": []}
    with threadpool_limits(limits=1):
        for setting in SETTINGS:
            summary["coding"].append(_bench(image, setting, quick))
            say(_table(summary["coding"][-1]))
        say(f"\n{ORTHOGONALISED}\n")
        summary["learning"] = _time_learning(image, quick)
        say(LEARNING.format(**summary["learning"]))
        if not quick:
            summary["first_call"] = _time_first_call()
            say(FIRST.format(**summary["first_call"]))
    return summary


def _bench(image: Grey, setting: Setting, quick: bool) -> dict[str, Any]:
    """Time every implementation on the same coordinates and dictionary."""
    if quick:
        fewer = setting.n_patches // 4
        setting = replace(setting, n_patches=fewer, repeats=3, sklearn_patches=20)
    basis = make_basis(setting.basis, setting.diameter)
    coords = _unit_coords(image, basis, setting.n_patches)
    setting = replace(setting, n_patches=len(coords))
    atoms = _learn(coords, basis, setting)
    rows = _compare(coords, atoms, basis, setting)
    return {"setting": asdict(setting), "title": setting.title, "rows": rows}


def _unit_coords(image: Grey, basis: SteerableBasis, n_patches: int) -> Floats:
    """Coordinates of patches of unit norm, mean kept."""
    patches = cut_windows(image, basis.diameter, n_patches)[:, basis.mask]
    return basis.project(patches / np.linalg.norm(patches, axis=1, keepdims=True))


def _learn(coords: Floats, basis: SteerableBasis, setting: Setting) -> Floats:
    atoms = random_atoms(basis, setting.n_atoms)
    for _ in range(setting.n_learning):
        codes = encode(coords, atoms, basis, setting.sparsity)
        atoms = solve(accumulate(coords, codes, atoms, basis), atoms, basis)
    return atoms


def _compare(
    coords: Floats, atoms: Floats, basis: SteerableBasis, setting: Setting
) -> list[dict[str, Any]]:
    """The time of every implementation for all patches, best of several; None: not installed.

    Errors are mean residual energies of a patch, in coordinates; nanoseconds are those of an atom,
    a patch and a step.
    """
    k, n_angles, repeats = setting.sparsity, setting.n_angles, setting.repeats
    augmented = augmented_dictionary(atoms, basis, n_angles)
    rows: list[dict[str, Any]] = []

    def add(method: str, seconds: float, residual: Floats) -> None:
        row = {
            "method": method,
            "seconds": seconds,
            "ratio": seconds / (rows[0]["seconds"] if rows else seconds),
            "error": float((residual.astype(np.float64) ** 2).sum(axis=1).mean()),
            "nanoseconds": 1e9 * seconds / (len(coords) * len(atoms) * k),
        }
        rows.append(row)

    for method, pursuit in OURS.items():
        ours = partial(encode, coords, atoms, basis, k, n_angles, pursuit=pursuit)
        add(method, best_of(ours, 2 * repeats), coords - decode(ours(), atoms, basis))
    sizes = {"numpy": (len(coords), max(1, repeats // 2)), "spams": (len(coords), repeats)}
    for method, (package, encoder) in RIVALS.items():
        if not find_spec(package):
            rows.append({**dict.fromkeys(rows[0]), "method": method})
            continue
        n_patches, times = sizes.get(package, (setting.sklearn_patches, 1))
        part = coords[:: max(1, len(coords) // n_patches)]
        encoder(part[:2], augmented, k)  # loads the library
        run = partial(encoder, part, augmented, k)
        add(method, best_of(run, times) * len(coords) / len(part), run())
    return rows


def _time_learning(image: Grey, quick: bool) -> dict[str, float | str]:
    """Time the paper's own remark: 10,000 patches of 11 × 11, ten iterations."""
    setting = replace(SETTINGS[0], n_patches=10_000, n_learning=2 if quick else 10)
    basis = disk_basis(setting.diameter)
    coords = _unit_coords(image, basis, setting.n_patches)
    seconds = best_of(lambda: _learn(coords, basis, setting), 1) * 10 / setting.n_learning
    return {
        "title": f"{len(coords):,} patches of 11 × 11, M = 20, K = 4, ten iterations",
        "seconds": seconds,
        "paper_seconds": PAPER_SECONDS,
        "ratio": PAPER_SECONDS / seconds,
    }


def _time_first_call() -> dict[str, float]:
    """Seconds until a new process has its first codes: compiling, then from the cache."""
    program = (
        "import time, numpy; begin = time.perf_counter(); import dsc;"
        "b = dsc.disk_basis(11); a = dsc.random_atoms(b, 20);"
        "dsc.encode(b.project(numpy.ones((20, 11, 11))), a, b, 4);"
        "print(time.perf_counter() - begin)"
    )
    command = [sys.executable, "-c", program]
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        compiling, cached = (float(subprocess.check_output(command, env=env)) for _ in range(2))
    return {"compiling": compiling, "cached": cached}


def _table(result: dict[str, Any]) -> str:
    """The rows of one setting for people."""
    header = ("", "time", "vs dsc", "error × 10³", "ns per (atom, patch, step)")
    lines = ["", result["title"], "  {:<36}{:>10}{:>10}{:>13}{:>28}".format(*header)]
    for row in result["rows"]:
        if row["seconds"] is None:
            lines.append(f"  {row['method']:<36}{'not installed':>20}")
        else:
            lines.append(ROW.format(**{**row, "error": 1e3 * row["error"]}))
    return "\n".join(lines)
