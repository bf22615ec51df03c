"""Sweeps over settings, on a drawn suite."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from dsc.dictionary import Iteration, RunTarget
from dsc.engine import Engine, Resources, open_engine
from dsc.errors import DscError
from dsc.experiments import CLASSES, write_suite
from dsc.files import unseal
from dsc.texture import (
    Dataset,
    Labelling,
    Setting,
    Sweep,
    SweepGrid,
    TextureConfig,
    Validation,
    fit_texture,
    read_inputs,
    run_sweep,
)
from dsc.texture import sweep as sweep_module
from dsc.texture.deciding import cross_validate
from dsc.texture.fit import expected_patches, extract_classes
from dsc.texture.settings import SettingResult, best_of
from dsc.texture.sweep import group_size, make_groups

BASE = TextureConfig(n_iterations=2, patches_per_image=100, stride=3)
GRID = SweepGrid(n_atoms=(2, 4), diameter=(7,), sparsity=(1, 2), method=("rotational", "augmented"))
VALIDATION = {"held_out": 0.6, "repeats": 5}
FILES = {"run.json", "events.jsonl", "progress.json", "sweep.json"}


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
    result = run(data, folder, progress=events.append)
    return result, events


def run(data, folder, base=BASE, grid=GRID, engine=None, **options):
    """`run_sweep` in a folder, on two threads."""
    validation = Validation(*(options.pop(name, VALIDATION[name]) for name in VALIDATION))
    start = {name: options.pop(name, False) for name in ("resume", "overwrite")}
    target = RunTarget(folder, **start, options={"images": "a <suite>"})
    with open_engine(engine or "threads", 2, **options) as opened:
        return run_sweep(data, Sweep(base, grid, validation), opened, target)


def settings_of(events):
    return [event for event in events if isinstance(event, Setting)]


def stop_after(n_settings):
    def progress(event):
        if isinstance(event, Setting) and event.index == n_settings:
            raise Stopped

    return progress


def timeless(value):
    """The same without times."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if not k.startswith("seconds")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def numbers(folder):
    return timeless(unseal((folder / "sweep.json").read_text(encoding="utf-8")))


def logged(folder):
    return (folder / "events.jsonl").read_text().splitlines()


def test_sweep_grid__every_combination_once_and_those_with_the_same_patches_together():
    settings = SweepGrid().settings(BASE)
    assert len(settings) == len(set(settings)) == 4 * 3 * 3 * 3
    pairs = [(config.method, config.diameter) for config in settings]
    assert sum(a != b for a, b in pairwise(pairs)) == 3 * 3 - 1
    same = {"n_atoms": 100, "diameter": (15,), "sparsity": 1, "method": "rotational"}
    assert {replace(config, **same) for config in settings} == {replace(BASE, **same)}
    first = settings[:4]
    assert [config.n_atoms for config in first] == [10, 25, 50, 100]
    assert {(c.method, c.diameter, c.sparsity, c.stride) for c in first} == {
        ("rotational", (11,), 1, 3)
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
        with open_engine("synchronous") as engine:
            model = fit_texture(data, config, engine)
        expected = cross_validate(model.histograms, model.image_label, 0.6, 5, config.seed)
        assert one.atoms_sha256 == model.sha256
        assert one.accuracy == tuple(expected)
        assert (one.mean, one.std) == (expected.mean(), expected.std())
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
def test_run_sweep__same_numbers_for_any_scheduler_and_group_size(
    n_threads, data, sweep, tmp_path, monkeypatch
):
    sizes = set()
    advance = sweep_module.advance

    def watched(problems, *arguments, **options):
        sizes.add(len(problems) // len(CLASSES))
        return advance(problems, *arguments, **options)

    monkeypatch.setattr(sweep_module, "advance", watched)
    run(data, tmp_path / "s", engine=Engine("synchronous", Resources(n_threads, 2**33)))
    assert sizes == {group_size(n_threads, 4)} == {n_threads}
    assert numbers(tmp_path / "s") == numbers(sweep[0].folder)


def test_run_sweep__leaves_the_results_and_no_patches(sweep):
    result, _ = sweep
    assert {path.name for path in result.folder.iterdir()} == FILES
    found = unseal((result.folder / "sweep.json").read_text(encoding="utf-8"))
    assert found == json.loads(json.dumps(result.to_dict()))
    assert found["options"] == {"images": "a <suite>"}
    assert found["winner"] == result.winner.to_dict()
    assert set(found["winners"]) == {"rotational", "augmented"}
    assert json.loads((result.folder / "run.json").read_text())["identity"] == found["identity"]
    lines = [json.loads(line)["result"] for line in logged(result.folder)]
    for one, setting in zip(lines, found["settings"], strict=True):
        values = one["accuracy"]
        assert setting == {**one, "accuracy": setting["accuracy"]}
        assert setting["accuracy"]["values"] == values
        assert setting["accuracy"]["mean"] == np.mean(values)
        assert setting["accuracy"]["std"] == np.std(values)


def test_run_sweep__tells_how_far_it_is(sweep):
    result, events = sweep
    settings = settings_of(events)
    assert [event.index for event in settings] == list(range(1, 9))
    assert {event.total for event in settings} == {8}
    assert [event.result for event in settings] == list(result.results)
    n_passes = sum(isinstance(event, Iteration) for event in events)
    assert n_passes == 4 * (BASE.n_iterations + 1)  # groups, passes
    assert sum(isinstance(event, Labelling) for event in events) == 8


def test_run_sweep__interrupted_and_resumed_is_the_same(data, sweep, tmp_path):
    with pytest.raises(Stopped):
        run(data, tmp_path / "s", progress=stop_after(3))  # in the middle of a group
    assert not (tmp_path / "s" / "sweep.json").exists()
    assert len(logged(tmp_path / "s")) == 3
    with (tmp_path / "s" / "events.jsonl").open("a") as file:
        file.write('{"config": {"n_atoms": 2, "dia')  # a kill
    before = logged(tmp_path / "s")
    events = []
    result = run(data, tmp_path / "s", resume=True, progress=events.append)
    assert [event.index for event in settings_of(events)] == [4, 5, 6, 7, 8]
    assert sum(isinstance(event, Labelling) for event in events) == 5
    assert logged(tmp_path / "s")[: len(before)] == before
    assert numbers(result.folder) == numbers(sweep[0].folder)
    assert {path.name for path in result.folder.iterdir()} == FILES


def test_run_sweep__patches_of_a_kind_go_when_it_is_done(data, tmp_path):
    seen = []

    def progress(event):
        if isinstance(event, Setting):
            seen.append(sorted(path.name for path in (tmp_path / "s").glob("patches-*/*")))

    run(data, tmp_path / "s", grid=replace(GRID, sparsity=(1,)), progress=progress)
    assert seen == [["rotational-007"]] * 2 + [["augmented-007"]] * 2


def test_run_sweep__resumed_when_finished_computes_nothing(data, sweep, tmp_path):
    grid = replace(GRID, sparsity=(1,), method=("rotational",))
    first = run(data, tmp_path / "s", grid=grid)
    before = (tmp_path / "s" / "sweep.json").read_bytes()
    events = []
    again = run(data, tmp_path / "s", grid=grid, resume=True, progress=events.append)
    assert (events, again) == ([], first)
    assert (tmp_path / "s" / "sweep.json").read_bytes() == before
    assert {path.name for path in (tmp_path / "s").iterdir()} == FILES
    more = run(data, tmp_path / "s", resume=True, progress=events.append)  # a larger grid
    assert len(settings_of(events)) == 6
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
    refused("data: labels_sha256", data=Dataset(data.images, labels, data.angles))
    paths = [image.source[0] for image in data.images]
    pixels = np.array(Image.open(paths[4]))
    pixels[20, 20] ^= 1
    Image.fromarray(pixels).save(tmp_path / "other.png")
    paths[4] = tmp_path / "other.png"
    refused("data: images_sha256", data=read_inputs(paths, data.labels))
    refused("n_images: 12 instead of 11",
            data=Dataset(data.images[1:], data.labels[1:], data.angles[1:]))  # fmt: skip
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    base = replace(BASE, n_atoms=77, diameter=9, sparsity=3, method="standard")  # all swept
    assert run(data, folder, base=base, resume=True).winner == sweep[0].winner


def test_run_sweep__a_folder_of_others_or_a_finished_sweep_is_refused(data, sweep, tmp_path):
    with pytest.raises(DscError, match="a finished run"):
        run(data, sweep[0].folder)
    (tmp_path / "sweep.json").write_text("mine")
    for start in ({}, {"resume": True}, {"overwrite": True}):
        for path in (tmp_path, tmp_path / "sweep.json"):
            with pytest.raises(DscError, match="exists and is no run of dsc"):
                run(data, path, **start)
    assert (tmp_path / "sweep.json").read_text() == "mine"


def test_run_sweep__an_unfinished_one_is_begun_anew_only_on_purpose(data, tmp_path):
    grid = replace(GRID, sparsity=(1,), method=("rotational",))
    (tmp_path / "s").mkdir()  # an empty folder is taken
    with pytest.raises(Stopped):
        run(data, tmp_path / "s", grid=grid, progress=stop_after(1))
    assert len(logged(tmp_path / "s")) == 1
    with pytest.raises(DscError, match="an unfinished run"):
        run(data, tmp_path / "s", grid=grid)
    mine = tmp_path / "s" / "patches" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    events = []
    run(data, tmp_path / "s", grid=grid, repeats=3, overwrite=True, progress=events.append)
    assert [event.index for event in settings_of(events)] == [1, 2]
    mark = json.loads((tmp_path / "s" / "run.json").read_text())
    assert mark["identity"]["validation"]["repeats"] == 3
    assert len(logged(tmp_path / "s")) == 2
    assert mine.read_text() == "mine"


def test_run_sweep__refuses_before_it_computes_anything(data, tmp_path):
    small = read_inputs(list(np.random.default_rng(0).random((4, 16, 16))), list("aabb"))
    with pytest.raises(DscError, match="sparsity: found 60"):
        run(small, tmp_path / "s", grid=SweepGrid((2,), (7, 15), (1, 60)))
    grid = SweepGrid((2,), (7, 15), (1, 2))
    with pytest.raises(DscError) as caught:
        run(small, tmp_path / "s", grid=grid, held_out=1.5, repeats=0)
    text = str(caught.value)
    for part in ("held_out", "repeats", "images: 4 problems", "rotated"):
        assert part in text
    with pytest.raises(DscError, match="held_out: found 'most'"):
        run(data, tmp_path / "s", held_out="most")
    with pytest.raises(DscError, match="need at least two"):
        run(Dataset(data.images[:2], ("a", "a"), (None, None)), tmp_path / "s")
    few = Engine("synchronous", Resources(1, 10**5))
    with pytest.raises(DscError, match=r"rotational, 4 atoms, diameter 7, sparsity 1: learning"):
        run(data, tmp_path / "s", engine=few)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("config", GRID.settings(replace(BASE, patches_per_image=1700))[::4])
def test_expected_patches__as_many_as_are_extracted(config, data, tmp_path):
    images = read_inputs(list(np.random.default_rng(0).random((3, 20, 50))), list("bab"))
    mixed = Dataset(data.images[:4] + images.images, (*"aabb", *images.labels), (None,) * 7)
    with open_engine("threads") as engine:
        sources = extract_classes(mixed, ("a", "b"), config, tmp_path / "p", engine)
    assert expected_patches(mixed, config, *config.diameter) == [s.n_patches for s in sources]


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
