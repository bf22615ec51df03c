"""The parts of the report: timing, the choice of patches, shades of grey."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dsc.report import figures as plots
from dsc.report import sample
from dsc.report.learn import time_facts
from dsc.show import atom_shades, shades


def event(time, iteration, seconds, finished=False):
    return {
        "event": "iteration", "time": time, "iteration": iteration, "finished": finished,
        "seconds": seconds, "patches_per_second": 1000 / seconds, "mse": 0.1,
    }  # fmt: skip


def test_time__of_a_resumed_run_counts_every_session_and_not_the_break():
    start = {"event": "start", "time": 0.0}
    events = [
        start, event(5, 1, 5), event(6, 2, 1),
        {**start, "time": 1000.0}, event(1004, 3, 4), event(1006, 4, 2), event(1007, 4, 0.5, True),
        {"event": "end", "time": 1007.25},
    ]  # fmt: skip
    facts = time_facts(events)
    assert [one["kind"] for one in facts["passes"]] == [
        "first", "update", "first", "update", "final",
    ]  # fmt: skip
    assert (facts["first"], facts["updates"], facts["final"], facts["saving"]) == (9, 3, 0.5, 0.25)
    assert (facts["total"], facts["n_sessions"]) == (12.75, 2)
    assert (facts["update_median"], facts["patches_per_second"]) == (1.5, 750)


def test_time__without_a_log_has_no_passes():
    facts = time_facts([])
    assert facts["passes"] == []
    assert facts["total"] == 0


def model_of(n_atoms=20, sparsity=4, n_coords=78, seed=0):
    return SimpleNamespace(
        atoms=np.zeros((n_atoms, n_coords), np.float32),
        config=SimpleNamespace(sparsity=sparsity, seed=seed),
        basis=SimpleNamespace(n_coords=n_coords),
    )


def test_sample__of_a_huge_set_is_bounded_spread_and_repeatable():
    numbers = sample._numbers(2_000_000, model_of())
    assert len(numbers) == len(set(numbers.tolist())) == sample.SAMPLE
    assert numbers.min() >= 0
    assert numbers.max() < 2_000_000
    assert (np.histogram(numbers, 4, (0, 2_000_000))[0] > 0.15 * sample.SAMPLE).all()
    assert (numbers == sample._numbers(2_000_000, model_of())).all()
    assert (numbers != sample._numbers(2_000_000, model_of(seed=1))).any()
    spans = sample._spans(numbers)
    assert sum(last - first for first, last in spans) == sample.SAMPLE
    assert len(spans) <= sample.SAMPLE // sample.SPAN


def test_sample__is_smaller_where_a_patch_is_more_work():
    few = sample._numbers(2_000_000, model_of(500, 10, 1100))
    assert sample.LEAST <= len(few) < 1000
    assert len(sample._numbers(123, model_of(500, 10, 1100))) == 123


def test_shades__span_the_patch_and_are_clear_outside_the_disk():
    image = np.array([[[np.nan, -1.0], [0.0, 3.0]]], np.float32)
    disks = shades(image, np.array([-1.0]), np.array([3.0]))
    assert disks[0, ..., 0].tolist() == [[0, 0], [64, 255]]
    assert disks[0, ..., 1].tolist() == [[0, 255], [255, 255]]


def test_shades__of_a_flat_patch_are_no_error():
    flat = np.full((2, 3, 3), 0.5, np.float32)
    triple = sample.Comparison(flat, flat).shades()
    assert (triple["residual"][..., 1] == 255).all()
    assert (atom_shades(0 * flat)[..., 1] == 255).all()


@pytest.mark.parametrize(
    "figure",
    [
        plots.plot_history([1.0, 0.0]),
        plots.plot_history([0.5]),
        plots.plot_use([5] * 300, 5.0),
        plots.plot_angles([0, 0]),
        plots.plot_angles(list(range(1009))),
    ],
    ids=["zero", "single", "many atoms", "no use", "many angles"],
)
def test_plots__draw_corner_cases_without_warnings(figure):
    drawn = plots.draw(figure)
    assert drawn.png.startswith(b"\x89PNG")
    assert b"<svg" in drawn.svg
