"""What a finished run has to say about itself, in plain values: the content of report.json."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

from dsc.dictionary import Dictionary
from dsc.dictionary.run import RunFolder, from_toml
from dsc.patches import StoredPatches
from dsc.report.sample import Sample
from dsc.report.timing import time_facts
from dsc.store import open_store
from dsc.version import __version__

KIND = "dsc report"  # by which we know a report.json of ours


def run_facts(folder: RunFolder, model: Dictionary) -> dict[str, Any]:
    """All that is known without looking at the patches."""
    options = from_toml(folder.path / "run.toml")
    basis = model.basis
    return {
        "kind": KIND,
        "run": {
            "name": folder.path.absolute().name,
            "dsc": open_store(folder.model).attributes["dsc_version"],
            "atoms_sha256": model.sha256,
        },
        "configuration": {**asdict(model.config), "n_angles": model.n_angles},
        "basis": {"name": basis.name, "n_coords": basis.n_coords, "n_pixels": basis.n_pixels},
        "patches": {
            "path": options.get("patches"),
            "diameter": basis.diameter,
            **{name: model.patches[name] for name in ("n_patches", "center", "unit")},
            "fingerprint": model.patches["fingerprint"],
        },
        "numerics": model.numerics,
        "report": {
            "dsc": __version__,
            "python": platform.python_version(),
            "matplotlib": matplotlib.__version__,
            "system": f"{platform.system()} {platform.machine()}",
            "n_cores": os.cpu_count(),
        },
        "history": model.history.tolist(),
        "error": _error_facts(model),
        "atoms": _atom_facts(model),
        "time": time_facts(folder.events()),
    }


def _error_facts(model: Dictionary) -> dict[str, Any]:
    first, last = float(model.history[0]), model.mse
    return {
        "first": first,
        "last": last,
        "ratio": last / first if first > 0 else None,
        "n_updates": len(model.history) - 1,
    }


def _atom_facts(model: Dictionary) -> dict[str, Any]:
    order = np.argsort(-model.count, kind="stable")
    total = int(model.count.sum())
    n_patches = model.patches["n_patches"]
    return {
        "order": order.tolist(),
        "count": model.count[order].tolist(),
        "total": total,
        "n_atoms": len(order),
        "n_unused": int((model.count == 0).sum()),
        "even": total / len(order),
        "per_patch": total / n_patches,
    }


def sample_facts(
    source: StoredPatches,
    model: Dictionary,
    sample: Sample,
    examples: NDArray[np.int64],
    worst: NDArray[np.int64],
) -> dict[str, Any]:
    """What coding a sample of the patches adds."""
    used = sample.codes.angle[sample.codes.used]
    n_pixels = model.basis.n_pixels
    return {
        "n_patches": len(sample),
        "is_all": len(sample) == source.n_patches,
        "mse": float(sample.error.mean() / n_pixels),
        "median": float(np.median(sample.error) / n_pixels),
        "left": float(sample.error.sum() / max(sample.energy.sum(), np.finfo(float).tiny)),
        "angles": np.bincount(used, minlength=model.n_angles).tolist(),
        "n_used": int(used.size),
        "n_pictures": len(source.store.attributes.get("picture_names", ())),
        "examples": [_patch_facts(source, sample, int(i), n_pixels) for i in examples],
        "worst": [_patch_facts(source, sample, int(i), n_pixels) for i in worst],
    }


def _patch_facts(
    source: StoredPatches, sample: Sample, place: int, n_pixels: int
) -> dict[str, Any]:
    number, energy = int(sample.number[place]), float(sample.energy[place])
    positions = source.positions(number, number + 1)
    image = int(positions.image[0])
    names = source.store.attributes.get("picture_names", ())
    return {
        "patch": number,
        "picture": names[image] if image < len(names) else f"picture {image}",
        "y": int(positions.y[0]),
        "x": int(positions.x[0]),
        "error": float(sample.error[place]) / n_pixels,
        "left": float(sample.error[place]) / energy if energy > 0 else 0.0,
        "n_atoms": int(sample.codes.used[place].sum()),
    }
