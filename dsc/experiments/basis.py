"""The bases imaged, and measured against each other and against interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsc import SteerableBasis, annular_basis, bessel_basis, disk_basis
from dsc.experiments import basis_sizes, basis_trials
from dsc.experiments.data import natural_images
from dsc.experiments.result import AtomGrid, Experiment, Finding, Lines, Options, Result
from dsc.experiments.rotating import RotatedDisks, interpolate, rotated_disks

DIAMETERS, QUICK_DIAMETERS = (7, 9, 11, 15, 21, 31, 41, 51), (7, 11)
PAPER_DIAMETER, PAPER_COUNTS = 11, (97, 95)  # pixels, elements
ZEROS = "bicubic, zeros outside"
BASES = {"annular": annular_basis, "bessel": bessel_basis, "disk": disk_basis}
INTERPOLATIONS = ("bicubic", ZEROS, "nearest")
IMAGED_CUTOFFS = (1, 5, 8)  # T of the three rings in the paper's figure
MANY = 2000  # patches of an image, where small differences count
N_ROTATIONS = 25
FINE = 96  # pixels across a finely drawn element
COLUMNS = {  # key of a row and format of its values
    "N": ("diameter", "d"),
    "method": ("method", ""),
    "pixels": ("n_pixels", "d"),
    "n": ("n_coords", "d"),
    "rank": ("rank", "d"),
    "frame bound A": ("lower_bound", ".3g"),
    "frame bound B": ("upper_bound", ".3g"),
    "projection loss": ("projection_loss", ".4f"),
    "rotation error, mean removed": ("error_mean_removed", ".4f"),
    "brick": ("error_brick", ".4f"),
    "cameraman": ("error_cameraman", ".4f"),
    "in the trials": ("prototype", ""),
    "mean kept": ("error_mean_kept", ".5f"),
    "coding error × 10³": ("coding_error", ".3f"),
    "ms to code": ("coding_ms", ".0f"),
    "s to build": ("build_s", ".2f"),
}
PRINTED = 0.5e-4  # half a unit of the last digit that the trials printed
NO_VALUES = dict.fromkeys(key for key, _ in COLUMNS.values())
Row = dict[str, Any]  # one way to rotate, at one diameter; errors are fractions of the energy


def run(options: Options) -> Result:
    """Measure all bases and both interpolations at every diameter."""
    diameters = QUICK_DIAMETERS if options.quick else DIAMETERS
    images = natural_images(options.data)[: 2 if options.quick else None]
    n_rings = PAPER_DIAMETER // 2
    radii = PAPER_DIAMETER / 2 / n_rings * (np.arange(n_rings) + 0.5)  # of the middles of rings
    n_mid_ring = int((2 * np.floor(np.pi * radii) + 1).sum())
    coded, pixels = basis_sizes.coded_pixels(options.data, options.quick)
    single = basis_sizes.single_images(options.data)
    n_iterations, n_seeds = (2, 1) if options.quick else (10, 3)
    rows: list[Row] = []
    for diameter in diameters:
        sizes = basis_sizes.other_sizes(diameter)
        per_image = 100 if options.quick else MANY if sizes else 200
        disks = rotated_disks(images, diameter, per_image, N_ROTATIONS)
        each = {
            name: rotated_disks([image], diameter, per_image, N_ROTATIONS).without_mean()
            for name, image in single.items()
        }
        bases = [*(make(diameter) for make in BASES.values()), *sizes]
        if diameter == basis_sizes.CODED_DIAMETER:
            bases += [basis_trials.pair_basis(diameter, n) for n in basis_trials.PAIR_SIZES]
            bases.append(basis_trials.natural_basis(diameter, images))
        for basis in bases:
            row = _measure_basis(basis, disks)
            row |= {f"error_{name}": part.error(part.steered(basis)) for name, part in each.items()}
            if diameter == basis_sizes.CODED_DIAMETER:
                error, seconds = basis_sizes.coding(basis, pixels, n_iterations, n_seeds)
                row |= {"coding_error": 1e3 * error, "coding_ms": 1e3 * seconds}
            if basis.name == "disk":
                row["build_s"] = basis_sizes.build_seconds(diameter)
            rows.append(row)
        rows += [_measure_interpolation(method, diameter, disks) for method in INTERPOLATIONS]
    return Result(
        data=f"{', '.join(image.label for image in images)}; single ones: "
        f"{', '.join(image.label for image in single.values())}; coded: {coded}",
        header=tuple(COLUMNS),
        rows=tuple(
            tuple("" if row[key] is None else format(row[key], f) for key, f in COLUMNS.values())
            for row in rows
        ),
        figures=_figures(rows),
        numbers={"rows": rows},
        findings=_findings(rows),
        notes=(
            f"The paper's figure has S = 3 and T = {IMAGED_CUTOFFS}: that is ⌊π × mid-ring "
            f"radius⌋ on the first rings of N = 11, a rule that gives {n_mid_ring} elements "
            "there; T = ⌊πs⌋ gives the 95 of its text, and is what annular_basis builds.",
            "The truth is a 5th-order spline of the whole image, rotated before the disk is cut "
            "out. Interpolations see the disk alone; at the rim our matrices scale the weights "
            "that are left to sum to one, which helps them.",
            "Frame bounds are over the span. Rank below n means that (Φ*Φ)⁻¹ does not exist, and "
            "the pseudo-inverse takes its place.",
            f"Coding: M = {basis_sizes.N_ATOMS}, K = {basis_sizes.SPARSITY}, {n_iterations} "
            f"iterations from random atoms, mean of {n_seeds} seed(s), which differ by 5 % from "
            "each other; error per pixel, and CPU time of all threads to code all patches once.",
            f"In the trials: the errors (all images, brick, cameraman) measured with other patches "
            "before the basis was built. At the diameters with several sizes of the disk basis "
            f"{MANY} patches an image are rotated.",
            "A pair: analysis and synthesis functions that differ, the best ones in closed form. "
            "It rotates with half the error, since nothing asks it to give a patch back: its "
            "coordinates are not an isometry (frame bounds), on which tolerances, denoising and "
            "errors in coordinates rest. So the default stays orthonormal. The spectrum fitted to "
            "the images themselves makes no difference.",
            *basis_sizes.NOTES,
        ),
    )


def _measure_basis(basis: SteerableBasis, kept: RotatedDisks) -> Row:
    removed = kept.without_mean()
    rest = basis.project_with_rest(removed.before)[1]
    trial = _in_the_trials(basis.diameter, basis.name, basis.n_coords)
    return NO_VALUES | {
        "diameter": basis.diameter,
        "method": basis.name,
        "prototype": ", ".join(f"{error:.4f}" for error in trial) or None,
        "error_mean_removed": removed.error(removed.steered(basis)),
        "error_mean_kept": kept.error(kept.steered(basis)),
        "n_pixels": basis.n_pixels,
        "n_coords": basis.n_coords,
        "rank": basis.rank,
        "lower_bound": basis.frame_bounds[0],
        "upper_bound": basis.frame_bounds[1],
        "projection_loss": float(rest.sum(dtype=np.float64) / (removed.before**2).sum()),
    }


def _in_the_trials(diameter: int, method: str, n_coords: int) -> tuple[float, ...]:
    kind, _, other = method.partition(",")
    if "spectrum" in other:
        return ()
    return basis_sizes.PROTOTYPE.get((diameter, kind, n_coords), ())


def _measure_interpolation(method: str, diameter: int, kept: RotatedDisks) -> Row:
    removed, n = kept.without_mean(), len(kept.theta)
    both = removed.joined(kept)  # one matrix an angle for both
    rotated = interpolate(both, diameter, method.split(",")[0], method == ZEROS)
    return NO_VALUES | {
        "diameter": diameter,
        "method": method,
        "error_mean_removed": removed.error(rotated[:n]),
        "error_mean_kept": kept.error(rotated[n:]),
        "n_pixels": kept.before.shape[1],
    }


def _figures(rows: list[Row]) -> dict[str, AtomGrid | Lines]:
    figures: dict[str, AtomGrid | Lines] = {}
    for name, make in reversed(BASES.items()):
        basis = make(PAPER_DIAMETER)
        caption = f"the {basis.n_coords} elements of the {name} basis at N = 11"
        figures[name] = AtomGrid(caption, basis.to_image(np.eye(basis.n_coords)), columns=13)
    rule = "another rule than the one that gives 95 elements"
    caption = f"the paper's figure: S = 3, T = {IMAGED_CUTOFFS} ({rule})"
    rings = ring_images(IMAGED_CUTOFFS)
    figures["rings"] = AtomGrid(caption, rings, columns=max(IMAGED_CUTOFFS) + 1)
    figures["errors"] = Lines(
        "rotation error (mean removed, fraction of the energy) against the diameter",
        {
            method: [row["error_mean_removed"] for row in rows if row["method"] == method]
            for method in (*BASES, *INTERPOLATIONS)
        },
        list(dict.fromkeys(row["diameter"] for row in rows)),
        x_name="diameter N (pixels)",
        y_name="rotation error",
    )
    return figures


def ring_images(cutoffs: tuple[int, ...]) -> NDArray[np.float64]:
    """Circular harmonics on rings (element, y, x): one row a ring, the cosine above the sine."""
    y, x = (np.mgrid[:FINE, :FINE] - (FINE - 1) / 2) / (FINE / 2)
    radius, angle = np.hypot(x, y), np.arctan2(-y, x)
    n_rings, n_columns = len(cutoffs), max(cutoffs) + 1
    elements = np.full((n_rings, 2, n_columns, FINE, FINE), np.nan)
    for s, cutoff in enumerate(cutoffs):
        ring = (radius > s / n_rings) & (radius <= (s + 1) / n_rings)
        for t in range(cutoff + 1):
            for row, wave in enumerate([np.cos(t * angle), np.sin(t * angle)][: 1 + (t > 0)]):
                elements[s, row, t] = np.where(radius > 1, np.nan, ring * wave)
    return elements.reshape(-1, FINE, FINE)


def _findings(rows: list[Row]) -> tuple[Finding, ...]:
    error = {(row["diameter"], row["method"]): row["error_mean_removed"] for row in rows}
    diameters = list(dict.fromkeys(row["diameter"] for row in rows))
    annular = next(r for r in rows if (r["diameter"], r["method"]) == (PAPER_DIAMETER, "annular"))
    counts = (annular["n_pixels"], annular["n_coords"])
    measured = ("error_mean_removed", "error_brick", "error_cameraman")
    ratios, within = [], []
    for row in rows:
        if row["method"].startswith("disk"):
            tried = _in_the_trials(row["diameter"], row["method"], row["n_coords"])
            for key, then in zip(measured, tried, strict=False):
                ratios.append(row[key] / then)
                within.append(row[key] <= 1.02 * (then + PRINTED))
    pair = min(
        (row for row in rows if row["method"].startswith("pair")), key=lambda r: r["coding_error"]
    )
    coded = next(r for r in rows if (r["diameter"], r["method"]) == (PAPER_DIAMETER, "disk"))

    def better_than(other: str) -> Finding:
        n_better = sum(error[n, "disk"] < error[n, other] for n in diameters)
        return Finding.added(
            f"the disk basis rotates better than the {other} one",
            f"at N = 11 {error[11, 'disk']:.4f} against {error[11, other]:.4f}; better at "
            f"{n_better} of {len(diameters)} diameters",
            n_better == len(diameters),
        )

    def against_bicubic(method: str, which: str) -> Finding:
        better = [n for n in diameters if error[n, method] < error[n, "disk"]]
        worst = max(error[n, "disk"] / error[n, method] for n in diameters)
        return Finding.added(
            f"steering (disk) rotates better than bicubic interpolation {which}",
            f"at N = 11 {error[11, 'disk']:.4f} against {error[11, method]:.4f}",
            not better,
            f"Bicubic is better at N = {', '.join(map(str, better))} (disk up to {worst:.2f} × its "
            "error): it is made for one angle, while steering has one basis for all of them.",
        )

    return (
        Finding(
            f"(pixels, elements) at N = 11 are {PAPER_COUNTS}",
            f"{counts}, of rank {annular['rank']}",
            counts == PAPER_COUNTS,
            "The annular basis taken literally is rank-deficient: its second ring has 8 pixels "
            "and 13 harmonics.",
        ),
        better_than("annular"),
        better_than("bessel"),
        Finding.added(
            "the disk basis rotates as well as it did in the trials (error at most 1.02 ×, to half "
            "a unit of the last digit)",
            f"{min(ratios):.2f} to {max(ratios):.2f} × the {len(ratios)} errors of the trials",
            all(within),
            "Patches differ from those of the trials, and so does the error.",
        ),
        Finding.added(
            "no pair of bases that are not orthonormal codes better at as many coordinates",
            f"the best pair (n = {pair['n_coords']}) rotates with {pair['error_mean_removed']:.4f} "
            f"against {coded['error_mean_removed']:.4f} and codes with {pair['coding_error']:.3f} "
            f"against {coded['coding_error']:.3f} (n = {coded['n_coords']})",
            all(
                row["coding_error"] > coded["coding_error"]
                for row in rows
                if row["method"].startswith("pair") and row["n_coords"] <= coded["n_coords"]
            ),
        ),
        against_bicubic(ZEROS, "with zeros outside the disk"),
        against_bicubic("bicubic", "that makes the best of the rim"),
    )


EXPERIMENT = Experiment(
    name="basis",
    title="The steerable bases",
    paper="annular harmonics, imaged for S = 3, T = (1, 5, 8); 95 elements for 97 pixels at N = 11",
    ours="(97, 95) at N = 11, but of rank 86; the disk basis (n = 95) rotates with 0.022 of the "
    "energy wrong, bessel 0.032, annular 0.14, bicubic 0.013: bicubic is the more accurate at "
    "every N",
    needs="none (six CC0 images of scikit-image, and cameraman.tif if it is in DSC_DATA; --data "
    "paper or synthetic for others)",
    duration="about two minutes",
    run=run,
)
