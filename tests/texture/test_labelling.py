"""Labels of patches: the fused kernel against every rotation of every atom, in NumPy."""

import pickle

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import dsc
from dsc.images.image import Image, open_images
from dsc.texture import labelling
from dsc.texture.labelling import NONE, Labeller

CLOSE = 1e-5  # relative; float32 kernels cannot tell closer scores apart

# classes, atoms of each: alone, pairs, odd totals, and more than a register holds
SIZES = [(1, 1), (2, 1), (3, 1), (2, 4), (3, 3), (5, 7)]
BASES = {"disk": dsc.disk_basis, "pixels": dsc.pixel_basis}
TURNING = [("disk", 1), ("disk", 7), ("disk", 60), ("pixels", 1)]


def make(basis, n_labels, n_atoms, sparsity=1, n_angles=60, stride=1, seed=0):
    """Random dictionaries; the basis by its name, of diameter 7."""
    basis = BASES[basis](7)
    atoms = dsc.random_atoms(basis, n_labels * n_atoms, seed=seed)
    return Labeller(atoms.reshape(n_labels, n_atoms, -1), basis, sparsity, n_angles, stride)


def scores(labeller, coords):
    """(patch, label) the largest |correlation| with any atom at any angle, float64."""
    coords = np.asarray(coords, np.float64)
    best = np.zeros((len(coords), len(labeller.atoms)))
    for label, atoms in enumerate(labeller.atoms):
        for step in range(labeller.n_angles):
            turned = labeller.basis.steer(atoms, 2 * np.pi * step / labeller.n_angles)
            found = np.abs(coords @ turned.astype(np.float64).T).max(1)
            best[:, label] = np.maximum(best[:, label], found)
    return best


def gains(labeller, coords):
    """(patch, label) the energy of a patch less the error that OMP leaves."""
    energy = (np.asarray(coords, np.float64) ** 2).sum(1)
    errors = [
        dsc.encode(coords, atoms, labeller.basis, labeller.sparsity, labeller.n_angles).error
        for atoms in labeller.atoms
    ]
    return energy[:, None] - np.stack(errors, 1)


def assert_best(labels, goodness, scale):
    """Each label is that of the largest value, or of one that rounding cannot tell from it."""
    assert labels.shape == goodness.shape[:1]
    best = goodness.argmax(1)
    rows = np.flatnonzero(labels != best)
    assert len(rows) <= 0.01 * len(labels) + 1
    lost = goodness[rows, best[rows]] - goodness[rows, labels[rows]]
    assert (lost <= CLOSE * scale[rows]).all()


@pytest.fixture(scope="module")
def coords(natural_coords):
    """coords(basis name, n_patches): centred patches of diameter 7."""
    return lambda basis, n_patches: natural_coords(BASES[basis](7), 400)[:n_patches]


@pytest.fixture(scope="module")
def grey(image):
    return image("gravel")[60:97, 80:127].astype(np.float32)


# --- one atom -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("basis", "n_angles"), TURNING)
@pytest.mark.parametrize(("n_labels", "n_atoms"), SIZES)
def test_label__one_atom_is_the_class_of_the_largest_correlation(
    coords, basis, n_angles, n_labels, n_atoms
):
    labeller = make(basis, n_labels, n_atoms, n_angles=n_angles)
    patches = coords(basis, 333)
    labels, _ = labeller.label(patches)
    assert labels.dtype == np.int64
    goodness = scores(labeller, patches)
    assert_best(labels, goodness, goodness.max(1))
    assert len(np.unique(labels)) == n_labels


@pytest.mark.parametrize("n_patches", [1, 15, 16, 17, 31, 33, 100])
@pytest.mark.parametrize("basis", BASES)
def test_label__any_number_of_patches(coords, basis, n_patches):
    labeller = make(basis, 3, 5, n_angles=60 if basis == "disk" else 1)
    patches = coords(basis, n_patches)
    goodness = scores(labeller, patches)
    assert_best(labeller.label(patches)[0], goodness, goodness.max(1))


@pytest.mark.parametrize("sparsity", [1, 2, 3])
def test_best_atoms__is_the_first_atom_of_the_best_class(coords, sparsity):
    labeller = make("disk", 3, 5, sparsity)
    patches = coords("disk", 200)
    atoms, _ = labeller.best_atoms(patches)
    labels, _ = labeller.label(patches)
    np.testing.assert_array_equal(atoms // 5, labels)
    for label, mine in enumerate(labeller.atoms):
        alone = Labeller(mine[:, None], labeller.basis, 1, labeller.n_angles, 1)  # atoms as classes
        rows = labels == label
        goodness = scores(alone, patches[rows])
        assert_best(atoms[rows] % 5, goodness, goodness.max(1))
    assert (labeller.best_atoms(np.zeros_like(patches))[0] == NONE).all()


@pytest.mark.parametrize("sparsity", [1, 2])
def test_best_atoms__a_patch_that_no_atom_codes_has_none(sparsity):
    basis = dsc.pixel_basis(7)
    atoms = np.eye(basis.n_coords, dtype=np.float32)[:6].reshape(3, 2, -1)
    patches = np.eye(basis.n_coords, dtype=np.float32)[[0, 3, 8, 5]]
    labeller = Labeller(atoms, basis, sparsity, 1, 1)
    assert labeller.best_atoms(patches)[0].tolist() == [0, 3, NONE, 5]
    assert labeller.label(patches)[0].tolist() == [0, 1, NONE, 2]


def test_label__no_patches_have_no_labels():
    labels, evaluated = make("disk", 2, 3).label(np.zeros((0, dsc.disk_basis(7).n_coords), "f4"))
    assert labels.shape == (0,)
    assert evaluated == 0


@pytest.mark.parametrize("sparsity", [1, 2])
def test_label__a_turned_atom_belongs_to_its_class(sparsity):
    """Every atom at every angle of the grid, of either sign and any size."""
    labeller = make("disk", 4, 3, sparsity, n_angles=12)
    atoms = labeller.atoms.reshape(12, -1)
    turned = np.concatenate([labeller.basis.steer(atoms, np.pi * r / 6) for r in range(12)])
    expected = np.tile(np.repeat(np.arange(4), 3), 12)
    for size in (1.0, -1.0, 1e-3, 250.0):
        labels, _ = labeller.label((size * turned).astype(np.float32))
        np.testing.assert_array_equal(labels, expected)


# --- several atoms ------------------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", [2, 3])
@pytest.mark.parametrize(("basis", "n_angles"), TURNING)
@pytest.mark.parametrize(("n_labels", "n_atoms"), [(1, 1), (3, 1), (3, 3), (2, 8)])
def test_label__several_atoms_is_the_class_of_the_smallest_error(
    coords, basis, n_angles, n_labels, n_atoms, sparsity
):
    labeller = make(basis, n_labels, n_atoms, sparsity, n_angles)
    patches = coords(basis, 133)
    energy = (patches.astype(np.float64) ** 2).sum(1)
    labels, _ = labeller.label(patches)
    assert_best(labels, gains(labeller, patches), energy)
    assert len(np.unique(labels)) == n_labels


# --- zeros, ties, scale -------------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", [1, 2, 3])
@pytest.mark.parametrize("basis", BASES)
def test_label__zeros_have_no_class_and_disturb_no_others(coords, basis, sparsity):
    labeller = make(basis, 3, 3, sparsity, 60 if basis == "disk" else 1)
    patches = coords(basis, 50).copy()
    expected = labeller.label(patches)[0]
    empty = np.isin(np.arange(50), [0, 3, 17, 18, 49])
    patches[empty] = 0
    labels = labeller.label(patches)[0]
    assert (labels[empty] == NONE).all()
    np.testing.assert_array_equal(labels[~empty], expected[~empty])
    assert (labeller.label(np.zeros_like(patches))[0] == NONE).all()


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize("order", [(0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 1, 1, 0, 1), (0, 0)])
@pytest.mark.parametrize(("basis", "n_angles"), [("disk", 60), ("pixels", 1)])
def test_label__ties_go_to_the_lowest_class(coords, basis, n_angles, order, sparsity):
    pair = make(basis, 2, 3, sparsity, n_angles)
    first = np.array([order.index(label) if label in order else 0 for label in (0, 1)])
    several = Labeller(pair.atoms[list(order)], pair.basis, sparsity, n_angles, 1)
    patches = coords(basis, 333)
    known = Labeller(pair.atoms[: max(order) + 1], pair.basis, sparsity, n_angles, 1)
    expected = first[known.label(patches)[0]]
    np.testing.assert_array_equal(several.label(patches)[0], expected)


def test_label__the_sign_of_an_atom_does_not_matter(coords):
    labeller = make("disk", 2, 3)
    signs = Labeller(
        np.concatenate([labeller.atoms, -labeller.atoms]), labeller.basis, 1, labeller.n_angles, 1
    )
    patches = coords("disk", 200)
    np.testing.assert_array_equal(signs.label(patches)[0], labeller.label(patches)[0])


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize("scale", [2.0**-12, 2.0**12])
def test_label__contrast_does_not_matter(coords, sparsity, scale):
    labeller = make("disk", 3, 4, sparsity)
    patches = coords("disk", 200)
    scaled = (scale * patches).astype(np.float32)
    np.testing.assert_array_equal(labeller.label(scaled)[0], labeller.label(patches)[0])


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize(("basis", "n_angles"), TURNING)
@pytest.mark.parametrize("scale", [2.0**-140, 2.0**-80, 2.0**40])
def test_label__the_smallest_and_largest_patches_have_the_labels_of_others(
    coords, basis, n_angles, sparsity, scale
):
    labeller = make(basis, 4, 3, sparsity, n_angles)
    patches = np.round(64 * coords(basis, 60) / np.abs(coords(basis, 60)).max())
    scaled = (scale * patches.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(labeller.label(scaled)[0], labeller.label(patches)[0])


@pytest.mark.parametrize("basis", ["disk", "pixels"])
def test_label__one_atom_by_what_it_sees_however_little(basis):
    """Beside a part that no class sees: the errors of all classes are the same in float32."""
    basis = BASES[basis](7)
    labeller = Labeller(np.eye(basis.n_coords, dtype=np.float32)[:2, None], basis, 1, 1, 1)
    patch = np.zeros((1, basis.n_coords), np.float32)
    patch[0, [0, 1, 8]] = 1e-5, 2e-4, 1
    assert labeller.label(patch)[0].tolist() == [1]


# --- pruning ------------------------------------------------------------------------------------


def test_label__counts_the_pairs_whose_angles_were_tried(coords):
    labeller, patches = make("disk", 4, 10), coords("disk", 400)
    _, evaluated = labeller.label(patches)
    assert 400 <= evaluated < 400 * 40


@pytest.mark.parametrize(("n_labels", "n_atoms"), SIZES)
def test_label__counts_no_more_pairs_than_there_are(coords, n_labels, n_atoms):
    labeller = make("disk", n_labels, n_atoms)
    patches = coords("disk", 40).copy()
    patches[::3] = 0
    for some in (patches, np.zeros_like(patches)):
        assert labeller.label(some)[1] <= 40 * n_labels * n_atoms


def test_label__prunes_nearly_all_atoms_of_patches_that_are_atoms():
    """A perfect match leaves nothing to be gained by another class."""
    labeller = make("disk", 10, 10)
    atoms = labeller.atoms.reshape(100, -1)
    patches = np.repeat(atoms, 20, axis=0)
    labels, evaluated = labeller.label(patches)
    np.testing.assert_array_equal(labels, np.repeat(np.arange(10), 200))
    assert 2000 <= evaluated < 0.5 * 2000 * 100


@pytest.mark.parametrize("sparsity", [2, 3])
def test_label__counts_all_pairs_and_steps_without_pruning(coords, sparsity):
    _, evaluated = make("disk", 3, 4, sparsity).label(coords("disk", 50))
    assert evaluated == 50 * 12 * sparsity


# --- rows by themselves -------------------------------------------------------------------------


@pytest.mark.parametrize("sparsity", [1, 2])
@given(cuts=st.lists(st.integers(0, 200), max_size=6).map(sorted))
def test_label__same_labels_however_rows_are_split(coords, sparsity, cuts):
    labeller, patches = make("disk", 3, 5, sparsity), coords("disk", 200)
    expected = labeller.label(patches)[0]
    parts = [labeller.label(part)[0] for part in np.split(patches, cuts)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


@pytest.mark.parametrize("sparsity", [1, 2])
@given(order=st.permutations(range(100)))
def test_label__same_labels_in_any_order(coords, sparsity, order):
    """The kernel tries first what won before: that may cost time, never change a label."""
    labeller, patches = make("disk", 3, 5, sparsity), coords("disk", 100)
    expected = labeller.label(patches)[0]
    np.testing.assert_array_equal(labeller.label(patches[order])[0], expected[order])


def test_label__same_labels_in_any_order_where_classes_tie(coords):
    """Turned copies of the same atoms differ by rounding alone."""
    base = make("disk", 1, 4)
    turned = [base.basis.steer(base.atoms[0], 2 * np.pi * r / 60) for r in (0, 7, 31)]
    labeller = Labeller(np.stack(turned), base.basis, 1, 60, 1)
    patches = coords("disk", 400)
    expected = labeller.label(patches)[0]
    rng = np.random.default_rng(0)
    for _ in range(10):
        order = rng.permutation(400)
        np.testing.assert_array_equal(labeller.label(patches[order])[0], expected[order])
        alone = [labeller.label(patches[[row]])[0][0] for row in order[:20]]
        np.testing.assert_array_equal(alone, expected[order[:20]])


# --- images -----------------------------------------------------------------------------------


def centred(labeller, grey, stride):
    """Coordinates of explicitly cut windows: (y, x) of the grid, (patch, coord)."""
    basis = labeller.basis
    windows = sliding_window_view(grey.astype(np.float64), basis.mask.shape)[::stride, ::stride]
    pixels = windows[..., basis.mask]
    pixels = pixels - pixels.mean(-1, keepdims=True)
    return pixels.shape[:2], basis.project(pixels.reshape(-1, basis.n_pixels))


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize(("basis", "sparsity"), [("disk", 1), ("disk", 2), ("pixels", 1)])
def test_label_image__is_that_of_explicitly_cut_windows(grey, basis, sparsity, stride):
    labeller = make(basis, 3, 3, sparsity, 60 if basis == "disk" else 1, stride)
    labels, evaluated = labeller.label_image(open_images(grey)[0])
    shape, patches = centred(labeller, grey, stride)
    assert labels.shape == labeller.grid(grey.shape) == shape
    assert shape == (30 // stride + 1, 40 // stride + 1)
    goodness = scores(labeller, patches) ** 2 if sparsity == 1 else gains(labeller, patches)
    assert_best(labels.ravel(), goodness, (patches.astype(np.float64) ** 2).sum(1))
    assert 0 < evaluated <= labels.size * 9 * sparsity


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 10, 50, 333])
def test_label_image__same_labels_in_pieces(grey, monkeypatch, stride, rows):
    labeller = make("disk", 3, 3, stride=stride)
    expected = labeller.label_image(open_images(grey)[0])[0]
    asked = []
    best = Labeller.best_atoms
    monkeypatch.setattr(labelling.Labeller, "piece_size", rows)
    monkeypatch.setattr(
        Labeller, "best_atoms", lambda self, coords: asked.append(len(coords)) or best(self, coords)
    )
    found = labeller.label_image(open_images(grey)[0])[0]
    np.testing.assert_array_equal(found, expected)
    assert sum(asked) == expected.size
    assert max(asked) <= 2 * rows
    assert len(asked) > 1 or expected.size <= 2 * rows


def test_label_image__a_image_of_one_patch(grey):
    labeller = make("disk", 3, 3, stride=4)
    labels, _ = labeller.label_image(open_images(grey[:7, :7])[0])
    _, patches = centred(labeller, grey[:7, :7], 4)
    assert labels.tolist() == [labeller.label(patches)[0].tolist()]


@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("turns", [1, 2, 3])
def test_label_image__turning_a_image_turns_its_labels(grey, stride, turns):
    """The grid of angles has the quarter turns; all strides here end at the image's rim."""
    labeller = make("disk", 3, 4, stride=stride)
    still = labeller.label_image(open_images(grey)[0])[0]
    turned = labeller.label_image(open_images(np.rot90(grey, turns).copy())[0])[0]
    assert np.mean(turned == np.rot90(still, turns)) >= 0.99
    assert len(np.unique(still)) == 3


def test_label_image__without_angles_a_turn_changes_labels(grey):
    labeller = make("pixels", 3, 4, n_angles=1)
    still = labeller.label_image(open_images(grey)[0])[0]
    turned = labeller.label_image(open_images(np.rot90(grey).copy())[0])[0]
    assert np.mean(turned == np.rot90(still)) < 0.8


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 200 / 255, 1000.1])
@pytest.mark.parametrize("sparsity", [1, 2])
def test_label_image__flat_windows_have_no_class(grey, value, sparsity):
    """Whatever rounding leaves of a flat window's mean is not a texture."""
    labeller = make("disk", 3, 3, sparsity)
    half = grey.copy()
    half[:, :20] = value
    labels = labeller.label_image(open_images(half)[0])[0]
    assert (labels[:, :14] == NONE).all()  # windows of columns 0 to 19
    assert (labels[:, 20:] != NONE).all()


def test_label_image__brightness_does_not_matter(grey):
    labeller = make("disk", 3, 3)
    dark, bright = (
        labeller.label_image(open_images(grey + np.float32(shift))[0])[0] for shift in (0, 2)
    )
    assert np.mean(dark == bright) >= 0.99


@pytest.mark.parametrize("chunks", [(8, 8), (37, 5), (13, 64)])
def test_label_image__zarr_is_read_by_window(grey, tmp_path, monkeypatch, chunks):
    array = zarr.create_array(tmp_path / "image.zarr", shape=grey.shape, chunks=chunks, dtype="f4")
    array[:] = grey
    labeller = make("disk", 3, 3, stride=2)
    expected = labeller.label_image(open_images(grey)[0])[0]
    image = open_images(tmp_path / "image.zarr")[0]
    np.testing.assert_array_equal(labeller.label_image(image)[0], expected)
    read, areas = Image.read, []

    def watched(self, y0, y1, x0, x1):
        areas.append((y1 - y0) * (x1 - x0))
        return read(self, y0, y1, x0, x1)

    monkeypatch.setattr(Image, "read", watched)
    monkeypatch.setattr(labelling.Labeller, "piece_size", 40)
    image = open_images(tmp_path / "image.zarr")[0]
    np.testing.assert_array_equal(labeller.label_image(image)[0], expected)
    assert max(areas) < grey.size / 2


# --- identity -----------------------------------------------------------------------------------


def test_identity__names_what_labels_depend_on():
    base = make("disk", 2, 3)
    others = [
        make("disk", 2, 3, seed=1),
        make("pixels", 2, 3),
        make("disk", 2, 3, sparsity=2),
        make("disk", 2, 3, n_angles=30),
        make("disk", 2, 3, stride=2),
    ]
    assert base.identity == make("disk", 2, 3).identity
    for other in others:
        assert other.identity != base.identity


@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize(("basis", "n_angles"), TURNING)
def test_labeller__travels_without_its_tables(coords, basis, n_angles, sparsity):
    labeller = make(basis, 3, 4, sparsity, n_angles)
    before = pickle.dumps(labeller)
    labels, _ = labeller.label(coords(basis, 40))
    assert pickle.dumps(labeller) == before
    np.testing.assert_array_equal(pickle.loads(before).label(coords(basis, 40))[0], labels)
