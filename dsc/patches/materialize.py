"""Coordinates computed once and stored."""

from __future__ import annotations

from dsc.patches.source import project
from dsc.patches.stored import of_store
from dsc.store import Store


def materialize_span(store: Store, start: int, stop: int) -> None:
    """Compute and write the coordinates of some patches of a set that is being written.

    The positions, the pictures and the basis are there already. A task for whole chunks: it may
    run anywhere, at the same time as others, and again.

    Parameters
    ----------
    store
        A store of patches with the variables `coords` and `rest`.
    start, stop
        The patches; whole chunks, or up to the last patch.
    """
    patches = of_store(store)
    basis = patches.basis
    assert basis is not None
    coords, rest = project(patches.fill, basis, start, stop, with_rest=True)
    store.write("coords", start, coords)
    store.write("rest", start, rest)
