"""Sweeps over settings, on a drawn suite."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from dsc.engine import Engine, Resources
from dsc.errors import DscError
from dsc.experiments.textures import CLASSES, write_suite
from dsc.texture.config import TextureConfig
from dsc.texture.dataset import Labelled, read_inputs
from dsc.texture.fit import extract_classes, fit_texture
from dsc.texture.neighbours import cross_validate
from dsc.texture.sweep import SettingResult, SweepGrid, best_of, run_sweep
from dsc.texture.sweep.run import expected_patches, group_size, make_groups

BASE = TextureConfig(n_iterations=2, patches_per_image=100, stride=3)
GRID = SweepGrid(n_atoms=(2, 4), diameter=(7,), sparsity=(1, 2), method=("rotational", "augmented"))
VALIDATION = {"held_out": 0.6, "repeats": 5}
FILES = {"sweep.jsonl", "table.md", "sweep.json", "index.html"}


class Stopped(Exception):
    """What interrupts a sweep."""


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "suite"
    return write_suite(folder, n_train=3, n_test=1, angles=(0,), size=48)


@pytest.fixture(scope="module")
def data(suite):
    return read_inputs(suite)


@pytest.fixture(scope="module")
def sweep(data, tmp_path_factory):
    """(result, progress events) of a whole sweep on two threads."""
    events = []
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    result = run_sweep(
        data,
        BASE,
        GRID,
        folder=folder,
        n_workers=2,
        options={"pictures": "a <suite>"},
        progress=events.append,
        **VALIDATION,
    )
    return result, events


def run(data, folder, base=BASE, grid=GRID, **options):
    defaults = {**VALIDATION, "n_workers": 2, "options": {"pictures": "a <suite>"}}
    return run_sweep(data, base, grid, folder=folder, **{**defaults, **options})


def stop_after(n_settings):
    def progress(event):
        if event.get("setting") == n_settings:
            raise Stopped

    return progress


def timeless(value):
    """The same without times."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if not k.startswith("seconds")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def numbers(folder):
    return timeless(json.loads((folder / "sweep.json").read_text(encoding="utf-8")))


def logged(folder):
    return (folder / "sweep.jsonl").read_text().splitlines()


def test_sweep_grid__every_combination_once_and_those_with_the_same_patches_together():
    settings = SweepGrid().settings(BASE)
    assert len(settings) == len(set(settings)) == 4 * 3 * 3 * 3
    pairs = [(config.method, config.diameter) for config in settings]
    assert sum(a != b for a, b in pairwise(pairs)) == 3 * 3 - 1
    same = {"n_atoms": 100, "diameter": 15, "sparsity": 1, "method": "rotational"}
    assert {replace(config, **same) for config in settings} == {replace(BASE, **same)}
    first = settings[:4]
    assert [config.n_atoms for config in first] == [10, 25, 50, 100]
    assert {(c.method, c.diameter, c.sparsity, c.stride) for c in first} == {
        ("rotational", 11, 1, 3)
    }


def test_sweep_grid__only_rotational_settings_have_the_angles_of_the_base():
    settings = SweepGrid((2,), (7,), (1,)).settings(replace(BASE, n_angles=12))
    assert [(c.method, c.n_angles) for c in settings] == [
        ("rotational", 12),
        ("augmented", None),
        ("standard", None),
    ]


def test_sweep_grid__refuses_all_that_is_wrong_at_once():
    with pytest.raises(DscError) as caught:
        SweepGrid(n_atoms=(0, 2, 2), diameter=(), sparsity=3, method=("rotational", "rotated"))
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "n_atoms", "n_atoms", "diameter", "sparsity", "method",
    ]  # fmt: skip
    with pytest.raises(DscError, match="method: found 'standard', need a sequence"):
        SweepGrid(method="standard")
    assert SweepGrid(n_atoms=np.array([2, 3])) == SweepGrid(n_atoms=[2, 3])


def test_group_size__at_least_four_dictionaries_per_thread():
    for n_threads in (1, 2, 7, 64):
        for n_classes in (2, 3, 24, 1000):
            size = group_size(n_threads, n_classes)
            assert size == 1 or (size - 1) * n_classes < 4 * n_threads <= size * n_classes


def test_make_groups__bounded_and_never_of_two_kinds_of_patches():
    settings = SweepGrid().settings(BASE)
    for size in (1, 5, 12, 100):
        groups = make_groups(settings, size)
        assert sum(groups, ()) == settings
        assert max(map(len, groups)) == min(size, 12)
        assert all(len({(c.method, c.diameter) for c in group}) == 1 for group in groups)


def test_run_sweep__a_setting_is_what_fit_and_cross_validation_give(data, sweep):
    result, _ = sweep
    for config in (GRID.settings(BASE)[1], GRID.settings(BASE)[6]):
        one = next(found for found in result.results if found.config == config)
        model = fit_texture(data, config, scheduler="synchronous")
        expected = cross_validate(model.histograms, model.image_label, 0.6, 5, config.seed)
        assert one.atoms_sha256 == model.sha256
        assert one.accuracy == tuple(expected.accuracy)
        assert (one.mean, one.std) == (expected.mean, expected.std)
        assert one.n_patches == 12 * 14**2


def test_run_sweep__every_setting_in_order_and_sparsity_one_prunes(sweep):
    result, _ = sweep
    assert tuple(one.config for one in result.results) == GRID.settings(BASE)
    assert result.label_names == CLASSES
    for one in result.results:
        assert len(one.accuracy) == 5
        assert one.seconds_learning > 0
        assert one.seconds_labelling > 0
        prunes = one.config.sparsity == 1 and one.config.method == "rotational"
        assert (0 < one.pruned < 1) if prunes else one.pruned is None
    assert len({one.atoms_sha256 for one in result.results}) == 8
    assert any(one.pruned is not None for one in result.results)


@pytest.mark.parametrize("n_threads", [1, 4])
def test_run_sweep__same_numbers_for_any_scheduler_and_group_size(n_threads, data, sweep, tmp_path):
    result, events = sweep
    sizes = {len(event["settings"]) for event in events if event.get("phase") == "learning"}
    assert sizes == {group_size(2, 4)} == {2}
    seen = []
    engine = Engine("synchronous", Resources(n_threads, 2**33))
    run(data, tmp_path / "s", scheduler=engine, progress=seen.append)
    sizes = {len(event["settings"]) for event in seen if event.get("phase") == "learning"}
    assert sizes == {n_threads}
    assert numbers(tmp_path / "s") == numbers(result.folder)


def test_run_sweep__leaves_the_results_and_no_patches(sweep):
    result, _ = sweep
    assert {path.name for path in result.folder.iterdir()} == FILES
    found = json.loads((result.folder / "sweep.json").read_text(encoding="utf-8"))
    assert found == json.loads(json.dumps(result.to_dict()))
    assert found["options"] == {"pictures": "a <suite>"}
    assert found["winner"] == result.winner.to_dict()
    assert set(found["winners"]) == {"rotational", "augmented"}
    lines = [json.loads(line) for line in logged(result.folder)]
    assert lines[0]["identity"] == found["identity"]
    assert lines[1:] == found["settings"]
    for one in lines[1:]:
        values = one["accuracy"]["values"]
        assert one["accuracy"]["mean"] == np.mean(values)
        assert one["accuracy"]["std"] == np.std(values)


def test_run_sweep__tells_how_far_it_is(sweep):
    result, events = sweep
    settings = [event for event in events if "setting" in event]
    assert [event["setting"] for event in settings] == list(range(1, 9))
    assert {event["total"] for event in settings} == {8}
    for event, one in zip(settings, result.results, strict=True):
        assert event["config"] == asdict(one.config)
        assert event["accuracy"] == one.mean
        assert event["seconds"] == one.seconds
    phases = [event["phase"] for event in events if "setting" not in event]
    assert phases.count("learning") == 4 * (BASE.n_iterations + 1)  # groups, passes
    assert phases.count("labelling") == 8


def test_run_sweep__interrupted_and_resumed_is_the_same(data, sweep, tmp_path):
    with pytest.raises(Stopped):
        run(data, tmp_path / "s", progress=stop_after(3))  # in the middle of a group
    assert not (tmp_path / "s" / "sweep.json").exists()
    assert len(logged(tmp_path / "s")) == 1 + 3
    with (tmp_path / "s" / "sweep.jsonl").open("a") as file:
        file.write('{"config": {"n_atoms": 2, "dia')  # a kill
    before = logged(tmp_path / "s")
    events = []
    result = run(data, tmp_path / "s", resume=True, progress=events.append)
    assert [event["setting"] for event in events if "setting" in event] == [4, 5, 6, 7, 8]
    assert sum(event.get("phase") == "labelling" for event in events) == 5
    assert logged(tmp_path / "s")[: len(before)] == before
    assert numbers(result.folder) == numbers(sweep[0].folder)
    assert {path.name for path in result.folder.iterdir()} == FILES


def test_run_sweep__patches_of_a_kind_go_when_it_is_done(data, tmp_path):
    seen = []

    def progress(event):
        if "setting" in event:
            seen.append(sorted(path.name for path in (tmp_path / "s" / "patches").iterdir()))

    run(data, tmp_path / "s", grid=replace(GRID, sparsity=(1,)), progress=progress)
    assert seen == [["rotational-007"]] * 2 + [["augmented-007"]] * 2


def test_run_sweep__resumed_when_finished_computes_nothing_and_mends_the_page(
    data, sweep, tmp_path
):
    grid = replace(GRID, sparsity=(1,), method=("rotational",))
    first = run(data, tmp_path / "s", grid=grid)
    (tmp_path / "s" / "index.html").unlink()
    before = (tmp_path / "s" / "sweep.json").read_bytes()
    events = []
    again = run(data, tmp_path / "s", grid=grid, resume=True, progress=events.append)
    assert (events, again) == ([], first)
    assert (tmp_path / "s" / "sweep.json").read_bytes() == before
    assert {path.name for path in (tmp_path / "s").iterdir()} == FILES
    more = run(data, tmp_path / "s", resume=True, progress=events.append)  # a larger grid
    assert sum("setting" in event for event in events) == 6
    assert numbers(more.folder) == numbers(sweep[0].folder)


def test_run_sweep__resume_is_refused_for_anything_else(suite, data, sweep, tmp_path):
    folder = sweep[0].folder
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(text, data=data, **options):
        with pytest.raises(DscError, match=text):
            run(data, folder, resume=True, **options)

    refused("config: n_iterations: 2 instead of 3", base=replace(BASE, n_iterations=3))
    refused("config: seed: 0 instead of 1; stride: 3 instead of 2",
            base=replace(BASE, seed=1, stride=2))  # fmt: skip
    refused("validation: held_out: 0.6 instead of 0.5", held_out=0.5)
    refused("validation: repeats: 5 instead of 6", repeats=6)
    labels = (data.labels[-1], *data.labels[1:-1], data.labels[0])
    refused("data: labels_sha256", data=Labelled(data.pictures, labels, data.angles))
    paths = [picture.source[0] for picture in data.pictures]
    pixels = np.array(Image.open(paths[4]))
    pixels[20, 20] ^= 1
    Image.fromarray(pixels).save(tmp_path / "other.png")
    paths[4] = tmp_path / "other.png"
    refused("data: pictures_sha256", data=read_inputs(paths, data.labels))
    refused("n_pictures: 12 instead of 11",
            data=Labelled(data.pictures[1:], data.labels[1:], data.angles[1:]))  # fmt: skip
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    base = replace(BASE, n_atoms=77, diameter=9, sparsity=3, method="standard")  # all swept
    assert run(data, folder, base=base, resume=True).winner == sweep[0].winner


def test_run_sweep__a_folder_of_others_or_a_finished_sweep_is_refused(data, sweep, tmp_path):
    with pytest.raises(DscError, match="finished sweep"):
        run(data, sweep[0].folder)
    (tmp_path / "index.html").write_text("mine")
    for resume in (False, True):
        with pytest.raises(DscError, match="no sweep of dsc"):
            run(data, tmp_path, resume=resume)
        with pytest.raises(DscError, match="cannot be read"):
            run(data, tmp_path / "index.html", resume=resume)
    (tmp_path / "sweep.jsonl").write_text('{"kind": "another"}\n')
    with pytest.raises(DscError, match="no sweep of dsc"):
        run(data, tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"


def test_run_sweep__an_unfinished_one_is_begun_anew_without_resume(data, tmp_path):
    grid = replace(GRID, sparsity=(1,), method=("rotational",))
    (tmp_path / "s").mkdir()  # an empty folder is taken
    with pytest.raises(Stopped):
        run(data, tmp_path / "s", grid=grid, progress=stop_after(1))
    assert (tmp_path / "s" / "patches").is_dir()
    events = []
    run(data, tmp_path / "s", grid=grid, repeats=3, progress=events.append)
    assert [event["setting"] for event in events if "setting" in event] == [1, 2]
    assert json.loads(logged(tmp_path / "s")[0])["identity"]["validation"]["repeats"] == 3
    assert len(logged(tmp_path / "s")) == 3


def test_run_sweep__refuses_before_it_computes_anything(data, tmp_path):
    small = read_inputs(list(np.random.default_rng(0).random((4, 16, 16))), list("aabb"))
    with pytest.raises(DscError, match="sparsity: found 60"):
        run(small, tmp_path / "s", grid=SweepGrid((2,), (7, 15), (1, 60)))
    grid = SweepGrid((2,), (7, 15), (1, 2))
    with pytest.raises(DscError) as caught:
        run(small, tmp_path / "s", grid=grid, held_out=1.5, repeats=0)
    text = str(caught.value)
    for part in ("held_out", "repeats", "pictures: 4 problems", "turned"):
        assert part in text
    with pytest.raises(DscError, match="held_out: found 'most'"):
        run(data, tmp_path / "s", held_out="most")
    with pytest.raises(DscError, match="need at least two"):
        run(Labelled(data.pictures[:2], ("a", "a"), (None, None)), tmp_path / "s")
    few = Engine("synchronous", Resources(1, 10**5))
    with pytest.raises(DscError, match=r"rotational, 4 atoms, diameter 7, sparsity 1: one task"):
        run(data, tmp_path / "s", scheduler=few)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("config", GRID.settings(replace(BASE, patches_per_image=1700))[::4])
def test_expected_patches__as_many_as_are_extracted(config, data, tmp_path):
    pictures = read_inputs(list(np.random.default_rng(0).random((3, 20, 50))), list("bab"))
    mixed = Labelled(
        data.pictures[:4] + pictures.pictures, (*"aabb", *pictures.labels), (None,) * 7
    )
    sources = extract_classes(mixed, ("a", "b"), config, tmp_path / "p")
    assert expected_patches(mixed, ("a", "b"), config) == [s.n_patches for s in sources]


def test_best_of__ties_go_to_the_simpler_setting():
    def result(mean, n_atoms=50, diameter=13, sparsity=2, method="augmented"):
        config = TextureConfig(n_atoms=n_atoms, diameter=diameter, sparsity=sparsity, method=method)
        return SettingResult(config, (mean, mean), "", 1, 1.0, 1.0, 1.0)

    ranked = [
        result(0.91, n_atoms=100, diameter=15, sparsity=3, method="standard"),
        result(0.9, n_atoms=25, diameter=15, sparsity=3, method="standard"),
        result(0.9, diameter=11, sparsity=3, method="standard"),
        result(0.9, sparsity=1, method="standard"),
        result(0.9, method="rotational"),
        result(0.9 + 1e-15, method="augmented"),  # rounding is no victory
        result(0.9, method="standard"),
        result(0.1, n_atoms=1, diameter=3, sparsity=1, method="rotational"),
    ]
    for place, expected in enumerate(ranked):
        assert best_of(ranked[place:]) == expected
        assert best_of(ranked[place:][::-1]) == expected
