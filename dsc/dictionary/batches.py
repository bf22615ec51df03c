"""How the patches of an online pass are taken: batches of short runs of neighbours.

A **span** is an aligned run of consecutive patches, which is cheap to read and lies inside one leaf
of the plan. A pass visits all spans once, in an order by counter: a pure function of the seed and
the number of the pass. A batch is some spans that follow in this order; its statistics are merged
on the aligned tree over the spans in the order of their numbers. So batches, and their sums, depend
on the problem alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dsc.counter import uniform_bits
from dsc.dictionary.config import LearnConfig
from dsc.update import merge_patches

SPANS = 8  # of a batch, at least: neighbours are alike
SHORTEST = 64  # patches of a span
LONGEST = 2**13  # a larger batch has more tasks, not longer ones
BATCHES = 128  # of a pass by default, at most
LARGEST = 2**16  # patches of a batch by default


@dataclass(frozen=True)
class Batches:
    """The batches of every pass over some patches; the one of a pass of the batch mode is whole."""

    n_patches: int
    span: int  # patches, a power of two
    n_batches: int

    @staticmethod
    def of(n_patches: int, leaf_size: int, config: LearnConfig) -> Batches:
        """Those of a problem whose leaves have so many patches, a power of two."""
        if config.mode == "batch":
            return Batches(n_patches, n_patches, 1)
        size = config.batch_size or default_size(n_patches, config)
        longest = min(leaf_size, LONGEST)
        span = 1 << (max(SHORTEST, min(size // SPANS, longest)).bit_length() - 1)
        per_batch = -(-size // span)
        return Batches(n_patches, span, -(-n_patches // (span * per_batch)))

    @property
    def n_spans(self) -> int:
        """Spans of a pass."""
        return -(-self.n_patches // self.span)

    @property
    def n_tasks(self) -> int:
        """Spans of a batch, at most: each is a task."""
        return -(-self.n_spans // self.n_batches)

    @property
    def size(self) -> int:
        """Patches of a batch, at most."""
        return min(self.n_patches, self.n_tasks * self.span)

    def spans(self, seed: int, index: int, batch: int) -> list[tuple[int, int]]:
        """(first, last + 1) patch of the spans of a batch, sorted; `index` numbers the pass."""
        order = _order(seed, index, self.n_spans)
        begin, end = (i * self.n_spans // self.n_batches for i in (batch, batch + 1))
        starts = (np.sort(order[begin:end]) * self.span).tolist()
        return [(start, min(start + self.span, self.n_patches)) for start in starts]


def default_size(n_patches: int, config: LearnConfig) -> int:
    """Patches of a batch: few of a pass, but many for each atom."""
    few = min(LARGEST, -(-n_patches // BATCHES))
    wanted = max(SPANS * SHORTEST, merge_patches(config.n_atoms, config.sparsity), few)
    return 1 << (wanted - 1).bit_length()


@lru_cache(maxsize=4)
def _order(seed: int, index: int, n_spans: int) -> NDArray[np.intp]:
    """In which a pass visits its spans."""
    return np.argsort(uniform_bits(seed, f"pass {index}", np.arange(n_spans)), kind="stable")
