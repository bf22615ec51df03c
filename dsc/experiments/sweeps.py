"""What `iterations` and `angles` share: four dictionaries of the same patches."""

from __future__ import annotations

from collections.abc import Sequence

from dsc import Dictionary, LearnConfig, learn_many
from dsc.experiments.data import coding_patches

DIAMETER, N_ATOMS, SPARSITY = 11, 20, 5
QUICK_PATCHES = 2000
KINDS = tuple((basis, update) for basis in ("disk", "annular") for update in ("ksvd", "mod"))
FLAT = 0.05  # an error within this of the last one counts as the same


def learn_all(
    choice: str, quick: bool, n_iterations: int, angles: Sequence[int]
) -> tuple[str, dict[tuple[str, str, int], Dictionary]]:
    """Dictionaries of *cameraman* by (basis, update, number of angles), and the data's label."""
    configs = {
        (basis, update, n): LearnConfig(
            N_ATOMS, SPARSITY, n_angles=n, n_iterations=n_iterations, basis=basis, update=update
        )
        for basis, update in KINDS
        for n in angles
    }
    at_most = QUICK_PATCHES if quick else None
    with coding_patches("cameraman", choice, DIAMETER, at_most) as (label, patches):
        models = learn_many([(patches, config) for config in configs.values()])
    return label, dict(zip(configs, models, strict=True))


def flat_from(at: Sequence[int], errors: Sequence[float]) -> int:
    """The first place from which all errors stay within `FLAT` of the last one.

    Examples
    --------
    >>> flat_from([1, 2, 4, 8], [3.0, 1.04, 1.0, 1.0])
    2
    """
    limit = (1 + FLAT) * errors[-1]
    first = len(at) - 1
    while first > 0 and errors[first - 1] <= limit:
        first -= 1
    return at[first]
