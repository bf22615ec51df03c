"""Bases that were tried beside the disk basis: a pair of bases, and a spectrum of real images.

*A pair*. Let analysis Ψ and synthesis Φ be two bases, a rotation by θ being
x ↦ Σ_t e^{jtθ} Φ_t Ψ_t* x. With C = E xx* and F_t as in `dsc.basis.optimal`, frequencies do not mix
in the mean over all angles, and the expected squared error is

    tr C + Σ_t ( tr(B_t C B_t*) − 2 Re tr(B_t* F_t) ) ,    B_t = Φ_t Ψ_t* .

Of all B_t of rank n_t the best is the truncated SVD of F_t C^{−½}, times C^{−½}, and the error
falls by the squares of the singular values that are kept: the largest ones of all frequencies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from dsc import SteerableBasis, pixel_basis
from dsc.basis import OptimalOptions, Spectrum, field_of, optimal_basis
from dsc.blas import one_blas_thread
from dsc.experiments.data import LabelledImage

SMALLEST_VARIANCE = 1e-6  # of the largest: directions below are left out of C^{−½}
PAIR_SIZES = (95, 121, 151)  # coordinates at N = 11, which has 97 pixels
N_BANDS = 60  # of the measured spectrum
USED = (0.02, 0.5)  # cycles per pixel, where it is fitted

Floats = NDArray[np.float64]


@one_blas_thread()
def pair_basis(diameter: int, n_coords: int) -> SteerableBasis:
    """The pair of bases that rotates best, Φ as `matrix` and Ψ as `dual`, with equal norms."""
    mask = pixel_basis(diameter).mask.copy()
    dy, dx = (axis - (diameter - 1) / 2 for axis in np.nonzero(mask))
    radius, place = np.unique(np.hypot(dx, dy).round(9), return_inverse=True)
    field, angle, n_pixels = field_of(radius, Spectrum()), np.arctan2(-dy, dx), dx.size
    modes = []  # (pixel, pixel) F_t without the constant
    for t in range(2 * diameter):
        root = np.exp(1j * t * angle)[:, None] * field.root(t)[place]
        root -= root.mean(0)
        modes.append(root @ root.conj().T)
    values, vectors = np.linalg.eigh(modes[0].real + 2 * sum(mode.real for mode in modes[1:]))
    used = values > SMALLEST_VARIANCE * values[-1]
    whitened = vectors[:, used] / np.sqrt(values[used])  # C^{−½}
    found = []
    for t, mode in enumerate(modes):
        left, gains, right = np.linalg.svd(mode @ whitened, full_matrices=False)
        pairs = zip(gains, left.T, gains[:, None] * (right @ whitened.T), strict=True)
        found += [(gain, t, phi, psi) for gain, phi, psi in pairs]
    columns: dict[int, list[list[tuple[Floats, Floats]]]] = {}
    room = n_coords - 1
    for _, t, phi, psi in sorted(found, key=lambda one: -one[0]):
        if room < (1 if t == 0 else 2):
            continue
        room -= 1 if t == 0 else 2
        balance = np.sqrt(np.linalg.norm(psi) / np.linalg.norm(phi))
        columns.setdefault(t, []).append(_real(t, phi * balance, psi / balance))
    constant = np.full(n_pixels, n_pixels**-0.5)
    frequency, both = [0], [(constant, constant)]
    for t, functions in sorted(columns.items()):
        for part in zip(*functions, strict=True):  # cosines, then sines
            both += part
            frequency += [t] * len(part)
    matrix, dual = (np.stack(side, axis=1) for side in zip(*both, strict=True))
    return SteerableBasis.restore(
        dual,
        name=f"pair, n = {len(frequency)}",
        diameter=diameter,
        mask=mask,
        frequency=np.array(frequency),
        matrix=matrix,
        level=np.zeros(len(frequency)),
    )


def _real(
    t: int, phi: NDArray[np.complex128], psi: NDArray[np.complex128]
) -> list[tuple[Floats, Floats]]:
    """φψ*x and its conjugate as real columns (of Φ, of Ψ): one at t = 0, else cosine and sine."""
    if t == 0:
        phase = np.exp(-1j * np.angle(phi[np.abs(phi).argmax()]))
        return [((phi * phase).real, (psi / phase).real)]
    phi, psi = phi * 2**0.5, psi * 2**0.5
    return [(phi.real, psi.real), (phi.imag, -psi.imag)]


def fitted_spectrum(images: list[LabelledImage]) -> Spectrum:
    """The exponent and corner that fit the spectra of images (mean of all, variance one)."""
    edges = np.linspace(*USED, N_BANDS + 1)
    middle = (edges[1:] + edges[:-1]) / 2
    power = np.zeros(N_BANDS)
    for image in images:
        grey = image.grey - image.grey.mean()
        for axis, size in enumerate(grey.shape):
            grey = grey * np.expand_dims(np.hanning(size), 1 - axis)
        energy = np.abs(np.fft.fft2(grey)) ** 2
        f = np.hypot(*np.meshgrid(*map(np.fft.fftfreq, grey.shape), indexing="ij"))
        n, _ = np.histogram(f, edges)
        power += np.histogram(f, edges, weights=energy / energy.mean())[0] / n

    def misfit(parameters: Floats) -> Floats:
        level, exponent, corner = parameters
        return np.asarray(level - exponent * np.log(middle**2 + corner**2) - np.log(power))

    _, exponent, corner = least_squares(misfit, [0.0, 1.5, 0.02]).x
    return Spectrum(float(exponent), float(abs(corner)))


def natural_basis(diameter: int, images: list[LabelledImage]) -> SteerableBasis:
    """The disk basis made for the spectrum of these images."""
    spectrum = fitted_spectrum(images)
    basis = optimal_basis(diameter, OptimalOptions(spectrum=spectrum))
    name = f"disk, spectrum of these images (exponent {spectrum.exponent:.2f}, corner "
    return SteerableBasis(
        name=f"{name}{spectrum.corner:.3f})",
        diameter=diameter,
        mask=basis.mask,
        frequency=basis.frequency,
        matrix=basis.matrix,
        level=basis.level,
    )
