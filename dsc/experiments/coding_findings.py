"""The curves of a coding experiment, and which claims of the paper they bear out."""

from __future__ import annotations

from dataclasses import dataclass

from dsc import Dictionary
from dsc.experiments.result import Finding

NAMES = {"standard": "K-SVD"}  # the paper's
PAPER_REACH = 30  # atoms up to which K=1 rotational is below K=2 standard

Groups = list[list[int]]  # of atoms that are rotations of one another
Printed = tuple[float, float] | None  # the paper's errors × 10³, standard and rotational, if known


@dataclass(frozen=True)
class Curves:
    """Errors by (kind, atoms, sparsity), and the least error the basis allows."""

    mse: dict[tuple[str, int, int], float]
    n_atoms: tuple[int, ...]
    sparsities: tuple[int, ...]
    bound: float

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of dictionaries, in the order they were made."""
        return tuple(dict.fromkeys(kind for kind, _, _ in self.mse))


def coding_findings(
    curves: Curves, groups: Groups, n_atoms: int, annular: Dictionary | None, printed: Printed
) -> tuple[Finding, ...]:
    """Every claim that these curves can decide; the groups are of so many standard atoms."""
    others = [kind for kind in curves.kinds if kind != "rotational"]
    found = [_everywhere(curves, kind) for kind in others]
    if {1, 2} <= set(curves.sparsities):
        found += [_one_below_two(curves, kind) for kind in others]
    if printed is not None and annular is not None and "SPAMS online" in curves.kinds:
        found.append(_printed(curves, annular, printed))
    n_alike = sum(map(len, groups))
    repeats = Finding.added(
        "a standard dictionary spends atoms on rotated copies",
        f"{n_alike} of {n_atoms} standard atoms are rotations of others, {len(groups)} group(s)",
        n_alike > 0,
    )
    return (*found, repeats)


def _everywhere(curves: Curves, kind: str) -> Finding:
    settings = [(m, k) for m in curves.n_atoms for k in curves.sparsities]
    ratios = {mk: curves.mse["rotational", *mk] / curves.mse[kind, *mk] for mk in settings}
    fails = [f"M={m}, K={k} ({ratio:.2f} ×)" for (m, k), ratio in ratios.items() if ratio >= 1]
    name = NAMES.get(kind, kind)
    return Finding(
        f"R-K-SVD is below {name} everywhere",
        f"error {min(ratios.values()):.2f} to {max(ratios.values()):.2f} × that of {name} at "
        f"{len(ratios)} settings",
        not fails,
        f"It fails at {', '.join(fails)}." if fails else "",
    )


def _one_below_two(curves: Curves, kind: str) -> Finding:
    below = {m: curves.mse["rotational", m, 1] < curves.mse[kind, m, 2] for m in curves.n_atoms}
    yes, no = (", ".join(str(m) for m in below if below[m] is is_so) for is_so in (True, False))
    return Finding(
        f"K=1 rotational is below K=2 {NAMES.get(kind, kind)} up to M ≈ {PAPER_REACH}",
        (f"below at M = {yes}" if yes else "below nowhere")
        + (f", not at M = {no}" if no else ", at every M tried"),
        all(is_below for m, is_below in below.items() if m <= PAPER_REACH),
    )


def _printed(curves: Curves, annular: Dictionary, printed: tuple[float, float]) -> Finding:
    m, k = annular.config.n_atoms, annular.config.sparsity
    ours, online = 1e3 * curves.mse["rotational", m, k], 1e3 * curves.mse["SPAMS online", m, k]
    paper_standard, paper_rotational = printed
    return Finding(
        f"error × 10³ at M={m}, K={k}: R-K-SVD {paper_rotational}, K-SVD {paper_standard} (ours "
        "no larger)",
        f"rotational {ours:.3f} (disk), {1e3 * annular.mse:.3f} (annular by OMP, the paper's way), "
        f"SPAMS online {online:.3f}, standard K-SVD {1e3 * curves.mse['standard', m, k]:.3f}",
        ours <= paper_rotational,
        "All are lower than the paper's: for SPAMS it names mode 1, an ℓ1 problem, where OMP is "
        "mode 3; the annular basis we use through its pseudo-inverse; the disk basis and least "
        "squares give the rest.",
    )
