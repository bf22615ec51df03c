"""Random numbers by counter: a pure function of (seed, purpose, number), whatever the chunking."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def uniform_bits(seed: int, purpose: str, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """64 random bits for each number.

    Two rounds of splitmix64, keyed by the SHA-256 of (seed, purpose). Distinct numbers have
    distinct bits, and the bits of a number do not depend on what else is asked for.

    Parameters
    ----------
    seed
        The user's seed.
    purpose
        What the numbers are for; another purpose gives unrelated bits.
    numbers
        Counters, of any shape.

    Examples
    --------
    >>> import numpy as np
    >>> bits = uniform_bits(0, "example", np.arange(6))
    >>> bool((bits[4:] == uniform_bits(0, "example", np.array([4, 5]))).all())
    True
    """
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    key, twist = np.frombuffer(digest[:16], "<u8")
    with np.errstate(over="ignore"):
        state = np.asarray(numbers, np.int64).astype(np.uint64) * _GOLDEN + key
        return np.asarray(_mix((_mix(state) ^ twist) + _GOLDEN))


def choose(seed: int, purpose: str, numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The `n` numbers with the smallest bits (ties to the lowest number), sorted.

    All of them if there are no more than `n`. Choosing again among the chosen ones of several
    parts gives the choice among all, so parts of any size may be looked at one after the other.
    """
    numbers = np.asarray(numbers, np.int64)
    if n <= 0:
        return numbers[:0]
    if n >= numbers.size:
        return np.sort(numbers)
    bits = uniform_bits(seed, purpose, numbers)
    limit = np.partition(bits, n - 1)[n - 1]
    sure = numbers[bits < limit]
    ties = np.sort(numbers[bits == limit])[: n - sure.size]
    return np.sort(np.concatenate([sure, ties]))


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a bijection in which every input bit moves every output bit."""
    state = (state ^ (state >> _SHIFTS[0])) * _FACTORS[0]
    state = (state ^ (state >> _SHIFTS[1])) * _FACTORS[1]
    return state ^ (state >> _SHIFTS[2])
