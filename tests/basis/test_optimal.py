"""How the optimal basis is made: each step against what it claims, and against slow oracles."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import j0

import dsc
from dsc.basis import optimal, wedge

SPECTRUM = optimal.Spectrum()


def field(diameter, spectrum=SPECTRUM):
    on_wedge = wedge.wedge_of(diameter)
    radius = np.unique(np.hypot(on_wedge.x, on_wedge.y) / 2)
    return on_wedge, optimal.field_of(radius, spectrum)


def covariance(distance, of):
    """C(r) of the field, by its quadrature."""
    return j0(2 * np.pi * np.multiply.outer(distance, of.nodes)) @ of.weights


def pixels(diameter):
    """The disk's pixels as complex numbers, y upwards."""
    axis = np.arange(diameter) - (diameter - 1) / 2
    return (axis[None, :] - 1j * axis[:, None])[dsc.pixel_basis(diameter).mask]


def spread(one, on_wedge, s, functions):
    """Real-coordinate columns of a class as complex functions on all pixels, norm one."""
    values = optimal._on_wedge(one, on_wedge, s, functions)
    t = abs(s)
    psi = []
    for function in values:
        frequency = np.array([t] if t == 0 else [t, t])
        columns = on_wedge.spread(function[: frequency.size].T, frequency)
        psi.append(columns[:, 0] if t == 0 else columns @ np.array([1, 1j]) / 2**0.5)
    return np.array(psi).T


def test_quadrature__gives_the_fields_covariance():
    _, of = field(64)

    def density(f):
        return (f**2 + 0.02**2) ** -1.5 * min(1, (0.7 - f) / 0.02) * f

    def integral(r):
        parts = zip([0, 0.02, 0.1, 0.68], [0.02, 0.1, 0.68, 0.7], strict=True)
        return sum(
            quad(lambda f: density(f) * j0(2 * np.pi * f * r), a, b, limit=500)[0] for a, b in parts
        )

    distance = np.array([0, 0.5, 1, 7.3, 31, 63])
    expected = np.array([integral(r) for r in distance]) / integral(0)
    np.testing.assert_allclose(covariance(distance, of), expected, atol=1e-10)


@pytest.mark.parametrize("diameter", [5, 6, 9])
@pytest.mark.parametrize("t", [0, 1, 2, 3, 4, 7])
def test_modes__are_those_of_the_angular_coefficient_of_the_covariance(diameter, t):
    """F_t by brute quadrature over the angle on all pixels, the constant projected out."""
    on_wedge, of = field(diameter)
    z = pixels(diameter)
    angles = 2 * np.pi * np.arange(64) / 64
    f = np.zeros((z.size, z.size), complex)
    for u in angles:
        f += (
            covariance(np.abs(z[:, None] - z[None, :] * np.exp(-1j * u)), of)
            * np.exp(-1j * t * u)
            / 64
        )
    project = np.eye(z.size) - 1 / z.size
    f = project @ f @ project
    np.testing.assert_allclose(f, f.conj().T, atol=1e-12)
    expected = np.linalg.eigvalsh(f)
    assert expected[0] > -1e-12  # positive semidefinite
    one = optimal.class_of(on_wedge, {0: 0, 1: 1, 2: 2, 3: 1}[t % 4], of)
    mode = next(mode for mode in one.modes if abs(mode.s) == t)
    np.testing.assert_allclose(mode.values, expected[::-1][: mode.values.size], atol=1e-8)
    vectors = one_function_each(one, on_wedge, mode)
    strong = mode.values > 1e-4
    np.testing.assert_allclose(
        (f @ vectors)[:, strong], (vectors * mode.values)[:, strong], atol=1e-7
    )


def one_function_each(one, on_wedge, mode):
    scale = len(one.parts) ** 0.5 if mode.s else 1
    return spread(one, on_wedge, mode.s, mode.vectors * scale)


@pytest.mark.parametrize("diameter", [7, 8])
def test_energy_argument__is_the_rotation_error_over_all_angles(diameter):
    """E‖x‖² + E‖Φ*x‖² − 2 Σ tr(Φ*FΦ), against rotating the field itself by many angles."""
    on_wedge, of = field(diameter)
    basis = dsc.disk_basis(diameter)
    z = pixels(diameter)
    n = z.size
    project = np.eye(n) - 1 / n
    steered = basis.matrix[:, 1:]  # without the constant
    within = project @ covariance(np.abs(z[:, None] - z[None, :]), of) @ project
    brute = 0.0
    for u in 2 * np.pi * np.arange(96) / 96:
        rotation = np.stack(
            [basis.steer(row[None], u)[0] for row in np.eye(basis.n_coords)], axis=1
        )
        operator = steered @ rotation[1:, 1:].astype(float) @ steered.T
        across = (
            project @ covariance(np.abs(z[:, None] - z[None, :] * np.exp(-1j * u)), of) @ project
        )
        after = within  # a rotated field has the same covariance
        brute += np.trace(operator @ within @ operator.T - 2 * operator @ across + after) / 96
    classes = [optimal.class_of(on_wedge, number, of) for number in range(3)]
    explained = 0.0
    for one in classes:
        for mode in one.modes:
            vectors = one_function_each(one, on_wedge, mode)
            columns = basis.matrix[:, basis.frequency == abs(mode.s)]
            if mode.s == 0:
                psi = columns[:, 1:]
                explained += (mode.values[:, None] * np.abs(vectors.conj().T @ psi) ** 2).sum()
                continue
            cosines, sines = np.split(columns, 2, axis=1)
            psi = (cosines + 1j * sines) / 2**0.5
            explained += 2 * (mode.values[:, None] * np.abs(vectors.conj().T @ psi) ** 2).sum()
    expected = np.trace(within) + np.trace(steered.T @ within @ steered) - 2 * explained
    np.testing.assert_allclose(brute, expected, rtol=1e-4)


@pytest.mark.parametrize("diameter", [4, 7, 10, 11, 14, 15])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_ascent__never_falls_and_stands_still_after_ten_rounds(diameter, number):
    on_wedge, of = field(diameter)
    one = optimal.class_of(on_wedge, number, of)
    taken = optimal.fitting(one)
    taken = taken[: int(0.97 * len(taken))]  # the last ones, which have little, take longer
    functions, smallest = optimal.polar_factor(one, optimal._started(one, taken))
    assert smallest > 0.05
    explained = [optimal.explained(one, functions)]
    for _ in range(20):
        functions = optimal.ascend(one, functions)
        explained.append(optimal.explained(one, functions))
    assert (np.diff(explained) >= -1e-12 * explained[-1]).all()
    assert explained[20] - explained[10] <= 1e-5 * explained[20]
    ordered, gains = optimal.in_order(one, functions)
    np.testing.assert_allclose(optimal.explained(one, ordered), explained[-1], rtol=1e-12)
    assert all((np.diff(gain) <= 1e-15).all() and (gain > 0).all() for gain in gains)


def test_best__leaves_out_a_pair_that_does_not_fit_whole():
    pair, single = optimal.Taken(3.0, 1, 0, 0, 2), optimal.Taken(2.0, 0, 0, 0, 1)
    assert optimal.best([single, pair], 3) == [pair, single]
    assert optimal.best([single, pair], 2) == [pair]
    assert optimal.best([single, pair], 1) == [single]


@pytest.mark.parametrize("diameter", [3, 4, 7, 12])
def test_wedge__real_coordinates_are_orthonormal_and_complete(diameter):
    on_wedge = wedge.wedge_of(diameter)
    sizes = [wedge.class_coords(on_wedge, number).place.size for number in range(3)]
    assert sizes[0] + 2 * sizes[1] + sizes[2] == on_wedge.n_pixels == on_wedge.count.sum()
    for number, size in enumerate(sizes):
        coords = wedge.class_coords(on_wedge, number)
        harmonic = coords.harmonic(number)
        n_used = on_wedge.n_pixels - (diameter % 2 if number else 0)  # but the centre
        np.testing.assert_allclose(harmonic @ harmonic, n_used)
        if number == 0:
            rows = np.random.default_rng(0).standard_normal((size - 1, 3))
            back = optimal.without_constant(coords, optimal.with_constant(coords, rows))
            np.testing.assert_allclose(back, rows, atol=1e-14)
            constant = optimal.without_constant(coords, harmonic[:, None])
            np.testing.assert_allclose(constant, 0, atol=1e-13)


@pytest.mark.parametrize("diameter", [6, 9])
def test_wedge__spread_rotates_and_mirrors(diameter):
    on_wedge = wedge.wedge_of(diameter)
    z = pixels(diameter)
    radial = np.exp(-np.abs(z))
    expected = [radial]
    for t in (1, 2, 3, 4):
        expected += [radial * np.cos(t * np.angle(z)), radial * np.sin(t * np.angle(z))]
    place = (on_wedge.x + 1j * on_wedge.y) / 2
    values = [np.exp(-np.abs(place))]
    for t in (1, 2, 3, 4):
        values += [f(t * np.angle(place)) * values[0] for f in (np.cos, np.sin)]
    frequency = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4])
    spreaded = on_wedge.spread(np.stack(values, axis=1), frequency)
    off_center = np.abs(z) > 0
    np.testing.assert_allclose(
        spreaded[off_center], np.stack(expected, axis=1)[off_center], atol=1e-15
    )


def test_signs__make_the_largest_coordinate_positive():
    on_wedge, of = field(9)
    one = optimal.class_of(on_wedge, 1, of)
    functions, _ = optimal.polar_factor(one, optimal._started(one, optimal.fitting(one)))
    flipped = [-phi for phi in functions]
    for a, b in zip(
        optimal.in_order(one, functions)[0], optimal.in_order(one, flipped)[0], strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)
        assert (a.max(0) >= -a.min(0)).all()
