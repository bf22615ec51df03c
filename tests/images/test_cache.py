"""What is kept in memory stays below its limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dsc.images.cache import ByteCache


def test_cache__oldest_go_first():
    cache, made = ByteCache(300), []
    for key in (1, 2, 3, 1, 4, 1, 2):
        value = cache.get(key)
        if value is None:
            made.append(key)
            value = cache.put(key, np.full(100, key, np.uint8))
        assert value[0] == key
    assert made == [1, 2, 3, 4, 2]
    assert cache._size == 300


def test_cache__can_be_emptied():
    cache = ByteCache(300)
    cache.put(1, np.zeros(100, np.uint8))
    cache.clear()
    assert cache.get(1) is None
    cache.put(1, np.zeros(100, np.uint8))
    assert cache._size == 100


def test_cache__one_value_may_be_too_large():
    cache = ByteCache(10)
    large = cache.put("a", np.zeros(100, np.uint8))
    assert cache.get("a") is large
    assert cache.put("a", np.ones(1)) is large  # the first one stays
    cache.put("b", np.zeros(5, np.uint8))
    assert cache._size == 5


def test_cache__threads_see_right_values():
    cache = ByteCache(2000)

    def read(number):
        key = number % 37
        value = cache.get(key)
        return (cache.put(key, np.full(100, key)) if value is None else value)[0] == key

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(5000)))
    assert cache._size <= 2000
