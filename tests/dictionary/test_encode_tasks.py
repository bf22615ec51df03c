"""Coding is cut into enough tasks to keep threads busy, and the cut changes no bit."""

import numpy as np
import pytest

import dsc
from dsc.dictionary.encode import chunk_size, encode_parts
from dsc.engine import BLOCK, Engine
from dsc.engine.plan import Resources
from dsc.patches import as_source
from dsc.show import Pulse

N_PATCHES = 60_000


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(5).random((N_PATCHES, 5, 5), np.float32)


@pytest.fixture(scope="module")
def many(pixels):
    return as_source(pixels)


@pytest.fixture(scope="module")
def model(pixels):
    return dsc.learn(pixels[:2000], 3, 2, n_iterations=1, n_angles=16, progress=False)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
def test_encode__sixty_thousand_patches_are_several_tasks_for_every_thread(many, n_threads):
    parts = encode_parts(many, Engine("threads", Resources(n_threads, 10**10)))
    assert len(parts) >= min(8, 2 * n_threads)
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == N_PATCHES
    assert all(part.start % chunk_size(N_PATCHES) == 0 for part in parts)  # whole chunks of a store


@pytest.mark.parametrize("n_patches", [1, 4096, 4097, 131_072, 131_073, 10**6, 10**9])
def test_chunk_size__is_whole_blocks_and_at_most_what_a_file_should_hold(n_patches):
    size = chunk_size(n_patches)
    assert size % BLOCK == 0
    assert size <= 2**16
    assert -(-n_patches // size) <= 32 or size == 2**16


def test_encode__has_the_same_bits_for_any_threads_and_any_place(many, model, tmp_path):
    first = model.encode(many, scheduler="threads", n_workers=1)
    others = {
        "three threads": model.encode(many, scheduler="threads", n_workers=3),
        "one thread, store": model.encode(many, tmp_path / "a", scheduler="threads", n_workers=1),
        "three threads, store": model.encode(many, tmp_path / "b", n_workers=3),
    }
    for name, other in others.items():
        assert other.mse == first.mse, name
        assert other.n_patches == N_PATCHES
        for array in ("atom", "angle", "coef", "error"):
            np.testing.assert_array_equal(getattr(other.codes, array), getattr(first.codes, array))
        np.testing.assert_array_equal(other.rest, first.rest)


def test_encode__says_how_far_it_is(many, model):
    class Recorder(list):
        __call__ = list.append

        def close(self):
            pass

    heard = Recorder()
    model.encode(many, progress=heard)
    pulses = [event for event in heard if isinstance(event, Pulse)]
    assert {pulse.stage.n_patches for pulse in pulses} == {N_PATCHES}
    assert all(0 <= pulse.done <= N_PATCHES for pulse in pulses)
