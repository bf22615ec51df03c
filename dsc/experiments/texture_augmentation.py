"""Why augmentation does better here than in the paper: one thing changed at a time.

The paper's augmented dictionaries classify 0.5635 of its rotated photographs, ours far more. What
may differ: the angles, and which way they turn; whether a patch is rotated in its image or after it
was cut out (a square whose corners are then empty); the learner (SPAMS, by orthogonal matching
pursuit, or in the mode 1 that the paper names, which is an ℓ1 problem); whether patches keep their
means; the bins of the histogram. Each way learns from one half of the training images of a suite,
upright; the other half is seen upright, and rotated by a spline, as patches are and the other way.
No test image is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from dsc import ArrayPatches, LearnConfig, learn_many
from dsc.experiments.data import LabelledImage
from dsc.experiments.result import Experiment, Finding, Options, Result
from dsc.experiments.texture_suites import ANGLES, UPRIGHT, Halves, resampled, suites
from dsc.images import Image, open_images
from dsc.texture import ROTATIONS, check_classes, chi_square, histograms_of, label_indices

HISTOGRAMS = ("both", "classes", "atoms")
LIKE, AGAINST = "rotated as augmentation rotates", "rotated the other way"
VIEWS = (UPRIGHT, LIKE, AGAINST)
OURS, OMP, MODE_1 = "dsc", "SPAMS, OMP", "SPAMS, mode 1"
SIDE = 15  # pixels across a patch
BATCH = 400  # the paper's
THREE, ONE = 3, 1  # SPAMS: at most λ atoms; least ℓ1 norm with a squared error of λ at most

EIGHT = "the eight angles"
SQUARES = "SPAMS, squares"
BLACK, MEAN = "black", "mean"  # what comes in where a patch is rotated after it was cut out

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Way:
    """How dictionaries are learned from augmented patches."""

    name: str
    angles: str = "even"  # of `ROTATIONS`
    cut: str = ""  # empty: patches are rotated in their image; else `BLACK` or `MEAN`
    is_square: bool = False  # patches are squares, else disks
    learner: str = OURS
    is_centred: bool = True  # the means of patches are removed, in learning and labelling


PLAIN = Way("ours")
CUTS = {  # disks and squares, and what comes in
    (kind, cut): Way(
        f"{'SPAMS, squares' if kind else 'disks'} rotated when cut out, {cut} comes in",
        cut=cut,
        is_square=kind,
        learner=OMP if kind else OURS,
    )
    for kind in (False, True)
    for cut in (BLACK, MEAN)
}
ALIKE = (
    Way(EIGHT, angles="paper"),
    Way("learned by SPAMS with OMP", learner=OMP),
    Way("learned by SPAMS in mode 1", learner=MODE_1),
    Way("patches with their means", is_centred=False),
    Way(SQUARES, learner=OMP, is_square=True),
)
WAYS = (
    PLAIN,
    *ALIKE,
    *CUTS.values(),
    Way("SPAMS, squares rotated when cut out, black, by eight angles", "paper", BLACK, True, OMP),
    Way("the same in mode 1", "paper", BLACK, True, MODE_1),
    Way("the same, patches with their means", "paper", BLACK, True, MODE_1, False),
)


@dataclass(frozen=True)
class Size:
    """How large the experiment is."""

    n_classes: int | None
    n_atoms: int
    per_image: int  # patches to learn from
    n_passes: int  # of our learner
    n_batches: int  # of SPAMS
    stride: int  # of labelled patches


FULL = Size(None, 50, 300, 6, 300, 4)
QUICK = Size(2, 4, 30, 1, 10, 8)


def run(options: Options) -> Result:
    """Learn in all ways, and count the wrong images."""
    size = QUICK if options.quick else FULL
    outex = not options.quick and options.data in ("auto", "paper")
    halves = next(suites(size.n_classes, outex))
    ways = [way for way in WAYS if way.learner == OURS or find_spec("spams")]
    wrong = {way.name: _judge(way, halves, size) for way in ways}
    n = {view: len(halves.unseen) * (1 if view == UPRIGHT else len(ANGLES)) for view in VIEWS}
    error = {
        name: {view: {h: found[view][h] / n[view] for h in HISTOGRAMS} for view in n}
        for name, found in wrong.items()
    }
    return Result(
        data=f"one half of the training images of {halves.name}, seen by the other",
        header=("way", *(f"{view}, {h}: accuracy" for view in n for h in HISTOGRAMS)),
        rows=tuple(
            (name, *(f"{1 - error[name][view][h]:.4f}" for view in n for h in HISTOGRAMS))
            for name in error
        ),
        figures={},
        numbers={"error": error, "n": n},
        findings=_findings(error),
        notes=(
            f"N = {SIDE}, M = {size.n_atoms}, K = 1, {size.per_image} patches of each image to "
            f"learn from, stride {size.stride}. SPAMS: {size.n_batches} batches of {BATCH}, λ = 1. "
            "A patch has the class of the atom with the largest inner product, as K = 1 has it.",
        ),
    )


def _judge(way: Way, halves: Halves, size: Size) -> dict[str, dict[str, int]]:
    """How many images are wrong, by view and histogram."""
    names = check_classes(halves.known)
    labels, truth = (label_indices(one, names) for one in (halves.known, halves.unseen))
    atoms = learn_atoms(
        way, [_greys(halves.known.images, labels == k) for k in range(len(names))], size
    )
    known = _counts(way, atoms, halves.known.images, size)
    wrong = {view: dict.fromkeys(HISTOGRAMS, 0) for view in VIEWS}
    for view, images in _seen(halves):
        counts = _counts(way, atoms, images, size)
        for kind in HISTOGRAMS:
            rows, near = (histograms_of(one[None], kind) for one in (counts, known))
            found = labels[chi_square(rows, near).argmin(axis=1)]
            wrong[view][kind] += int((found != truth).sum())
    return wrong


def _seen(halves: Halves) -> Iterator[tuple[str, list[Image]]]:
    """The name of a view, and all unseen images in it."""
    greys = [image.whole().astype(np.float64) for image in halves.unseen.images]
    yield UPRIGHT, list(halves.unseen.images)
    for view, sign in ((LIKE, 1), (AGAINST, -1)):
        for angle in ANGLES:
            yield view, open_images([resampled(grey, sign * angle, 1.0) for grey in greys])


def _greys(images: Sequence[Image], chosen: NDArray[np.bool_]) -> list[Floats]:
    return [image.whole() for image, is_one in zip(images, chosen, strict=True) if is_one]


def learn_atoms(way: Way, classes: Sequence[Sequence[Floats]], size: Size) -> Floats:
    """(label, atom, pixel) of a dictionary for each class."""
    patches = [
        rotated_patches(way, greys, size.per_image, np.random.default_rng(label))
        for label, greys in enumerate(classes)
    ]
    inside = pixels_of(way)
    if way.learner == OURS:
        config = LearnConfig(
            size.n_atoms, 1, init="patches", basis="pixels", n_iterations=size.n_passes
        )
        jobs = [(ArrayPatches(some, center=way.is_centred), config) for some in patches]
        models = learn_many(jobs, progress=False)
        return np.stack([m.basis.reconstruct(m.atoms) for m in models]).astype(np.float32)
    import spams  # an extra: only its own rows need it

    learned = []
    for some in patches:
        rows = prepared(way, some[:, inside])
        signals = np.asfortranarray(rows.T, np.float64)
        mode = THREE if way.learner == OMP else ONE
        options: dict[str, Any] = {"numThreads": 1, "verbose": False, "batchsize": BATCH}
        found = spams.trainDL(
            signals, K=size.n_atoms, mode=mode, lambda1=1, iter=size.n_batches, **options
        )
        learned.append(np.asarray(found.T, np.float32))
    atoms = np.stack(learned)
    norms = np.linalg.norm(atoms, axis=2, keepdims=True)
    return np.asarray(atoms / np.where(norms > 0, norms, 1), np.float32)


def pixels_of(way: Way) -> NDArray[np.bool_]:
    """(y, x) the pixels of a patch."""
    axis = np.arange(SIDE) - (SIDE - 1) / 2
    return np.asarray(way.is_square | (np.hypot(axis[:, None], axis) <= SIDE / 2))


def rotated_patches(
    way: Way, greys: Sequence[Floats], per_image: int, rng: np.random.Generator
) -> Floats:
    """(patch, y, x) squares around random places, each rotated by a random one of the angles."""
    axis = np.arange(SIDE) - (SIDE - 1) / 2
    reach = int(np.ceil(SIDE / np.sqrt(2)))  # around the middle, at any angle
    found = []
    for grey in greys:
        angles = np.deg2rad(rng.choice(ROTATIONS[way.angles], per_image))
        middle = [rng.integers(reach, n - reach, per_image)[:, None, None] for n in grey.shape]
        still = np.zeros(per_image) if way.cut else angles
        cos, sin = np.cos(still)[:, None, None], np.sin(still)[:, None, None]
        y = middle[0] + axis[:, None] * cos + axis * sin
        x = middle[1] + axis * cos - axis[:, None] * sin
        patches = LabelledImage("", grey.astype(np.float64)).at(y, x)
        if way.cut:
            pairs = zip(patches, angles, strict=True)
            patches = np.stack([turn(patch, angle, way.cut) for patch, angle in pairs])
        found.append(patches.astype(np.float32))
    return np.concatenate(found)


def turn(patch: NDArray[np.floating], angle: float, comes_in: str) -> NDArray[np.floating]:
    """A cut-out patch, rotated (radians) by bilinear interpolation."""
    fill = float(patch.mean()) if comes_in == MEAN else 0.0
    rotated = ndimage.rotate(patch, np.rad2deg(angle), reshape=False, order=1, cval=fill)
    return np.asarray(rotated)


def prepared(way: Way, rows: Floats) -> Floats:
    """(patch, pixel) without their means, if they are removed."""
    return rows - rows.mean(axis=1, keepdims=True) if way.is_centred else rows


def _counts(way: Way, atoms: Floats, images: Sequence[Image], size: Size) -> Integers:
    """(image, label, atom) patches that an atom codes best."""
    n_labels, n_atoms, _ = atoms.shape
    inside, table = pixels_of(way), atoms.reshape(n_labels * n_atoms, -1).T
    counts = np.zeros((len(images), n_labels * n_atoms), np.int64)
    for row, image in zip(counts, images, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(image.whole(), (SIDE, SIDE))
        rows = prepared(
            way, windows[:: size.stride, :: size.stride][..., inside].reshape(-1, inside.sum())
        )
        row += np.bincount(np.abs(rows @ table).argmax(axis=1), minlength=len(row))
    return counts.reshape(len(images), n_labels, n_atoms)


def _findings(error: dict[str, Any]) -> tuple[Finding, ...]:
    """Which single change costs most, seen in histograms of classes, the paper's."""
    accuracy = {name: 1 - found[LIKE]["classes"] for name, found in error.items()}
    other = {name: 1 - found[AGAINST]["classes"] for name, found in error.items()}
    names = PLAIN.name, EIGHT
    ours, eight = ([100 * one[name] for one in (accuracy, other)] for name in names)
    one_way = Finding.added(
        "eight angles that all turn one way fail on images that turn the other way",
        "rotated images, histograms of classes: by the eight angles of the paper "
        f"{eight[0]:.1f} % are right where images turn as patches did, {eight[1]:.1f} % where they "
        f"turn the other way; by sixty, all around, {ours[0]:.1f} and {ours[1]:.1f} %",
        eight[0] - eight[1] > 2 * abs(ours[0] - ours[1]),
    )
    if SQUARES not in accuracy:  # without SPAMS
        return (one_way,)
    black, mean = (
        [accuracy[CUTS[kind, cut].name] for kind in (False, True)] for cut in (BLACK, MEAN)
    )
    lost = {way.name: accuracy[PLAIN.name] - accuracy[way.name] for way in ALIKE}
    worst = max(lost, key=lambda name: lost[name])
    gained = min(b - a for a, b in zip(black, mean, strict=True))
    return (
        one_way,
        Finding.added(
            "augmentation fails, too, where patches are rotated after they were cut out and what "
            "comes in is black",
            f"rotated images, histograms of classes: {black[0]:.3f} with disks and {black[1]:.3f} "
            f"with squares; {mean[0]:.3f} and {mean[1]:.3f} if the mean of the patch comes in, "
            f"{accuracy[PLAIN.name]:.3f} if patches are rotated in their image. Where images turn "
            f"as patches do, the worst other change, {worst}, costs {lost[worst]:.3f}",
            gained > max(0.0, lost[worst]),
        ),
    )


EXPERIMENT = Experiment(
    name="texture-augmentation",
    title="What augmentation depends on",
    paper="0.5635 of the rotated test images with augmented dictionaries",
    ours="0.83 are right, by the paper's eight angles 0.84, but 0.37 of images that turn the other "
    "way; patches that are rotated after they were cut out, where black comes in, take it to 0.31 "
    "and below; SPAMS, its mode 1 and squares cost 0.02 at most",
    needs="Outex_TC_00010 in DSC_DATA (else squares of free photographs); SPAMS for its rows",
    duration="about 5 minutes alone",
    run=run,
)
