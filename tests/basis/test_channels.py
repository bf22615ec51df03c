"""Bases of several channels: one rotation for all of them."""

import pickle

import numpy as np
import pytest

import dsc
from dsc.basis import SteerableBasis

ONE = dsc.disk_basis(9)
BASES = [make(9) for make in (dsc.disk_basis, dsc.annular_basis, dsc.pixel_basis)]


@pytest.fixture(scope="module")
def patches():
    return np.random.default_rng(0).normal(size=(7, 9, 9, 3))


@pytest.mark.parametrize("one", BASES, ids=lambda basis: basis.name)
def test_channels__are_projected_each_by_itself(one, patches):
    many = one.for_channels(3)
    coords, rest = many.project_with_rest(patches)
    each = [one.project_with_rest(patches[..., c]) for c in range(3)]
    np.testing.assert_allclose(rest, sum(part[1] for part in each), rtol=1e-6)
    for t in range(one.max_frequency + 1):
        ours = coords[:, many.frequency == t]
        theirs = [part[0][:, one.frequency == t] for part in each]
        halves = [np.array_split(part, 2 if t else 1, axis=1) for part in theirs]
        wanted = [half for kind in zip(*halves, strict=True) for half in kind]
        np.testing.assert_array_equal(ours, np.concatenate(wanted, axis=1))


@pytest.mark.parametrize("one", BASES, ids=lambda basis: basis.name)
def test_channels__are_reconstructed_each_by_itself(one, patches):
    many = one.for_channels(3)
    images = many.to_image(many.project(patches))
    for c in range(3):
        np.testing.assert_array_equal(
            images[..., c], one.to_image(one.reconstruct(one.project(patches[..., c])))
        )


def test_channels__rotate_together(patches):
    many = ONE.for_channels(3)
    rotated = many.to_image(many.steer(many.project(patches), 0.7))
    for c in range(3):
        alone = ONE.to_image(ONE.steer(ONE.project(patches[..., c]), 0.7))
        np.testing.assert_allclose(rotated[..., c], alone, atol=1e-5)


@pytest.mark.parametrize("one", BASES, ids=lambda basis: basis.name)
def test_channels__are_stored_and_read_again(one, patches):
    many = one.for_channels(2)
    again = SteerableBasis.restore(
        many.array("dual"),
        name=many.name,
        diameter=9,
        mask=many.mask,
        **{name: many.array(name) for name in ("matrix", "frequency", "level")},
    )
    sent = pickle.loads(pickle.dumps(many))
    for other in (again, sent):
        assert other.n_channels == 2
        coords = other.project(patches[..., :2])
        np.testing.assert_array_equal(coords, many.project(patches[..., :2]))


def test_channels__that_differ_are_refused():
    many = ONE.for_channels(2)
    matrix = many.array("matrix").copy()
    matrix[-1, matrix[-1] != 0] *= 2
    with pytest.raises(dsc.DscError, match="basis_matrix: found channels that differ"):
        SteerableBasis.restore(
            many.array("dual"),
            name="disk",
            diameter=9,
            mask=many.mask,
            matrix=matrix,
            frequency=many.frequency,
            level=many.level,
        )


def test_channels__energy_is_kept_by_gram(patches):
    many = dsc.annular_basis(9).for_channels(3)
    coords = many.project(patches).astype(np.float64)
    energy = np.einsum("pi,ij,pj->p", coords, many.gram, coords)
    np.testing.assert_allclose(energy, (many.reconstruct(coords) ** 2).sum(1), rtol=1e-4)
    assert many.rank == 3 * dsc.annular_basis(9).rank
    assert many.frame_bounds == dsc.annular_basis(9).frame_bounds


def test_channels__lowpass_is_that_of_each():
    low = ONE.for_channels(3).lowpass(0.5)
    assert (low.n_channels, low.n_coords) == (3, 3 * ONE.lowpass(0.5).n_coords)


def test_channels__of_another_number_are_refused(patches):
    with pytest.raises(dsc.DscError, match="need 9 × 9 × 2: this basis has diameter 9 and 2 chan"):
        ONE.for_channels(2).project(patches)
