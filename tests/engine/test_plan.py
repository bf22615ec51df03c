from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsc.engine.plan import (
    Resources,
    Workload,
    check_plan,
    leaf_size,
    make_plan,
    parse_bytes,
    readable,
)
from dsc.errors import DscError

MERGE = 320

PROBLEMS = {
    "n_patches": st.integers(1, 50_000_000),
    "n_coords": st.integers(5, 2600),
    "n_threads": st.integers(1, 64),
}


def plan_of(n_patches, n_coords, n_threads, memory=10**12, statistics_bytes=1000):
    resources = Resources(n_threads, memory)
    work = Workload(n_patches, n_coords, n_coords, statistics_bytes, MERGE)
    return make_plan(work, resources)


@given(**PROBLEMS)
def test_plan__spans_cover_every_patch_once_in_aligned_runs(n_patches, n_coords, n_threads):
    plan = plan_of(n_patches, n_coords, n_threads)
    spans = plan.spans()
    assert [start for start, _ in spans] == [0] + [stop for _, stop in spans[:-1]]
    assert spans[-1][1] == n_patches
    step = plan.leaf_size * plan.leaves_per_task
    assert step & (step - 1) == 0
    assert all(start % step == 0 for start, _ in spans)
    assert len(spans) == plan.n_tasks


@given(**PROBLEMS)
def test_plan__graph_has_at_most_sixteen_tasks_per_thread(n_patches, n_coords, n_threads):
    plan = plan_of(n_patches, n_coords, n_threads)
    assert plan.graph_size <= 16 * n_threads


@given(**PROBLEMS, memory=st.integers(10**6, 10**12))
def test_plan__leaves_depend_on_the_problem_alone(n_patches, n_coords, n_threads, memory):
    assert plan_of(n_patches, n_coords, n_threads, memory).leaf_size == leaf_size(
        Workload(n_patches, n_coords, n_coords, 1000, MERGE)
    )


@given(n_patches=st.integers(1, 10**7), n_coords=st.integers(5, 500), merge=st.integers(1, 10**5))
def test_leaf_size__is_merge_patches_where_that_leaves_several(n_patches, n_coords, merge):
    size = leaf_size(Workload(n_patches, n_coords, n_coords, 1000, merge))
    assert size & (size - 1) == 0
    assert size >= merge or -(-n_patches // size) <= 8
    assert size == 256 or n_patches > 4 * size


def test_plan__refuses_a_task_that_does_not_fit_and_names_the_cause():
    plan = plan_of(10**6, 1100, 2, memory=10**9, statistics_bytes=195 * 10**6)
    with pytest.raises(DscError, match=r"learning needs .*GB.*statistics.*update=\"mod\""):
        check_plan(plan, Resources(2, 10**9))
    check_plan(plan, Resources(2, 10**10))


def test_plan__has_memory_for_what_waits_of_the_many_pieces_of_a_batch():
    work = Workload(10**9, 95, 97, 10**6, MERGE)
    few = make_plan(work, Resources(2, 10**10))
    many = make_plan(replace(work, n_pieces=2**17), Resources(2, 10**10))
    assert few.n_tasks < 2**5
    assert (few.fan_in, many.fan_in) == (8, 8)
    assert many.n_waiting > few.n_waiting + 20
    assert many.total_bytes - few.total_bytes == 10**6 * (many.n_waiting - few.n_waiting)


def test_plan__refuses_a_block_that_does_not_fit_and_names_it():
    plan = plan_of(10**6, 2500, 1, memory=10**8, statistics_bytes=10)
    with pytest.raises(DscError, match=r"blocks of patches.*smaller diameter"):
        check_plan(plan, Resources(1, 10**8))


@pytest.mark.parametrize(("memory", "kept"), [(4 * 78 * 10**6 * 4, True), (10**9, False)])
def test_plan__keeps_coordinates_only_where_they_fit(memory, kept):
    assert plan_of(10**6, 78, 2, memory).keep_coords is kept


@pytest.mark.parametrize(("text", "value"), [("1GB", 10**9), ("512 MiB", 2**29), (1000, 1000)])
def test_parse_bytes__reads_words_and_numbers(text, value):
    assert parse_bytes(text) == value


@pytest.mark.parametrize("text", ["many", "-1GB", 0])
def test_parse_bytes__refuses_nonsense(text):
    with pytest.raises(DscError, match="memory_limit"):
        parse_bytes(text)


def test_readable__has_three_digits():
    assert [readable(n) for n in (12, 1234, 1_340_000_000)] == ["12 B", "1.23 kB", "1.34 GB"]
