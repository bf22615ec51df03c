"""The share of energy left, and the notes about odd data: in models, codes, cards and logs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dsc.basis import disk_mask
from dsc.dictionary import Dictionary, LearnConfig, Run, image_notes, learn, learn_many
from dsc.dictionary.checkpoint import load_checkpoint
from dsc.patches import ArrayPatches, PatchConfig, extract_patches

OPTIONS = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2, "n_angles": 12}


def energy_of(patches, center=False):
    """Mean energy per pixel of the disk: the slow way."""
    pixels = patches[:, disk_mask(patches.shape[1])].astype(np.float64)
    if center:
        pixels -= pixels.mean(axis=1, keepdims=True)
    return (pixels**2).mean()


# --- the share ----------------------------------------------------------------------------------


@pytest.mark.parametrize("basis", ["disk", "annular", "pixels"])
def test_share__is_the_error_over_the_energy_of_the_patches(patches, basis):
    options = {**OPTIONS, "n_angles": None} if basis == "pixels" else OPTIONS
    model = learn(patches, basis=basis, **options)
    assert model.energy == pytest.approx(energy_of(patches), rel=1e-5)
    assert model.variation == pytest.approx(energy_of(patches, center=True), rel=1e-3)
    assert model.share == model.mse / model.energy
    assert model.encode(patches).share == pytest.approx(model.share, rel=1e-9)


def test_share__is_of_patches_as_they_are_prepared(patches):
    centered = learn(ArrayPatches(patches, center=True), **OPTIONS)
    assert centered.energy == pytest.approx(energy_of(patches, center=True), rel=1e-5)
    unit = learn(ArrayPatches(patches, center=True, unit=True), **OPTIONS)
    assert unit.energy == pytest.approx(1 / unit.basis.n_pixels, rel=1e-5)


@pytest.mark.parametrize("is_kept", [True, False])
def test_share__has_the_same_bits_for_any_tasks(natural_patches, monkeypatch, is_kept):
    many = np.concatenate([natural_patches(7, 2000)] * 5)  # three blocks
    monkeypatch.setattr("dsc.engine.plan.KEEP_FRACTION", 0.5 if is_kept else 0)
    found = [learn(many, **OPTIONS, n_workers=n) for n in (1, 3)]
    base = learn(many, **OPTIONS, scheduler="synchronous")
    assert {(m.energy, m.variation, m.share) for m in found} == {
        (base.energy, base.variation, base.share)
    }
    assert len({base.encode(many, n_workers=n).share for n in (1, 2)}) == 1


def test_share__of_many_is_that_of_all_their_patches(patches):
    events = []
    config = LearnConfig(3, 1, n_iterations=1, n_angles=12)
    models = learn_many([(patches, config), (10 * patches[:700], config)], progress=events.append)
    sizes = [m.patches["n_patches"] for m in models]
    error = sum(n * m.mse for n, m in zip(sizes, models, strict=True))
    energy = sum(n * m.energy for n, m in zip(sizes, models, strict=True))
    assert events[-1].share == pytest.approx(error / energy, rel=1e-12)


def test_share__comes_first_in_what_people_see(model, patches, tmp_path):
    left = f"{100 * model.share:.3g} %"
    assert next(iter(model.card().numbers.items())) == ("energy left", left)
    assert f" → {left} in 4 passes" in model.card().html()
    assert next(iter(model.encode(patches).card().numbers)) == "energy left"
    assert f"{left} of the energy left, mse" in repr(model)
    events = []
    learn(patches, **OPTIONS, run=tmp_path / "run", progress=events.append)
    assert all(" % of the energy left, mse " in event.line() for event in events)
    card = Run(tmp_path / "run").card()
    assert list(card.numbers)[:2] == ["energy left", "error per pixel"]
    log = [event for event in Run(tmp_path / "run").events() if event["event"] != "start"]
    assert log[-1]["share"] == log[-2]["share"] == events[-1].share


def test_share__is_kept_with_the_model(model, tmp_path):
    model.save(tmp_path / "m.zarr")
    found = Dictionary.load(tmp_path / "m.zarr")
    assert (found.energy, found.variation, found.share) == (
        model.energy, model.variation, model.share,
    )  # fmt: skip


def test_share__of_a_model_of_an_earlier_version_is_not_known(model, tmp_path):
    old = replace(model, energy=np.nan, variation=np.nan)
    old.save(tmp_path / "m.zarr")
    found = Dictionary.load(tmp_path / "m.zarr")
    assert np.isnan(found.share)
    assert "energy left" not in found.card().numbers
    assert found.notes == []
    json.dumps(found.to_xarray().attrs, allow_nan=False)


class _Stop(Exception):
    pass


def _stop(event):
    if event.iteration == 1:
        raise _Stop


def test_share__is_summed_anew_after_a_checkpoint_of_an_earlier_version(
    patches, tmp_path, monkeypatch
):
    whole = learn(patches, **OPTIONS)
    with monkeypatch.context() as earlier:
        earlier.setattr("dsc.dictionary.checkpoint.ENERGIES", ())
        with pytest.raises(_Stop):
            learn(patches, **OPTIONS, run=tmp_path / "run", progress=_stop)
    (state,), _ = load_checkpoint(Run(tmp_path / "run").checkpoints()[-1])
    assert np.isnan(state.energy)
    resumed = learn(patches, **OPTIONS, run=tmp_path / "run", resume=True)
    assert resumed.sha256 == whole.sha256
    assert (resumed.share, resumed.energy) == (whole.share, whole.energy)


# --- notes --------------------------------------------------------------------------------------


def notes_of_learning(patches, **options):
    """What the last event of learning says, besides the numbers."""
    events = []
    model = learn(patches, **{**OPTIONS, **options}, progress=events.append)
    assert not any(event.notes for event in events[:-1])
    return model, list(events[-1].notes), events[-1].line()


def test_notes__are_silent_about_good_data(patches):
    model, notes, line = notes_of_learning(patches)
    assert model.notes == notes == []
    assert "\n" not in line
    assert not model.card().alert


def test_notes__tell_of_unused_atoms(patches):
    planted = np.repeat(patches[:1], 50, axis=0)  # one atom is enough
    model, notes, line = notes_of_learning(planted, sparsity=1)
    assert notes == model.notes
    assert notes == [
        f"{model.n_unused} of 4 atoms are unused: ask for fewer, or learn from more patches"
    ]
    assert line.splitlines()[1:] == [f"note: {notes[0]}"]
    assert notes[0] in model.card().alert


@pytest.mark.parametrize("center", [False, True])
def test_notes__tell_of_constant_data(center):
    flat = np.linspace(0.1, 0.9, 60, dtype=np.float32)[:, None, None] * np.ones((60, 7, 7), "f4")
    model, notes, _ = notes_of_learning(ArrayPatches(flat, center=center))
    assert [note for note in notes if note.startswith("constant data")] == [
        "constant data: all patches are flat: look at the images"
    ]
    assert notes == model.notes


def test_notes__tell_of_more_atoms_than_patches(patches):
    _, notes, _ = notes_of_learning(patches[:3], sparsity=1)
    assert "more atoms than patches (4 atoms, 3 patches): ask for fewer atoms" in notes


def test_notes__count_dictionaries_where_there_are_many(patches):
    events = []
    config = LearnConfig(4, 1, n_iterations=0, n_angles=12)
    learn_many([(patches, config), (patches[:3], config)], progress=events.append)
    (small,) = [note for note in events[-1].notes if note.startswith("more atoms")]
    assert small.endswith("in 1 of 2 dictionaries: ask for fewer atoms")


def test_notes__stay_with_the_run(patches, tmp_path):
    model = learn(patches[:3], **OPTIONS, run=tmp_path / "run")
    run = Run(tmp_path / "run")
    assert run.notes == model.notes != []
    assert all(note in run.card().alert for note in run.notes)


@pytest.mark.parametrize(("level", "name"), [(0, "black (0)"), (255, "white (1)")])
def test_notes__tell_of_saturated_images(tmp_path, level, name):
    image = np.random.default_rng(0).integers(1, 255, (60, 60)).astype(np.uint8)
    config = PatchConfig(diameter=7, center=True, unit=True)
    fine = extract_patches(image, tmp_path / "fine.zarr", config)
    assert image_notes([fine]) == []
    image[:, ::10] = level
    patches = extract_patches(image, tmp_path / "p.zarr", config)
    (note,) = image_notes([patches])
    share = float(note.split(": ")[1].split(" %")[0])
    assert share == pytest.approx(10, abs=1)
    assert name in note
    _, notes, _ = notes_of_learning(patches)
    assert note in notes


def test_notes__about_what_cannot_be_read_here_are_left_out(tmp_path, monkeypatch):
    white = extract_patches(np.ones((30, 30)), tmp_path / "p.zarr", PatchConfig(diameter=7))
    assert image_notes([white])
    monkeypatch.setattr(type(white), "pixels", lambda *_: open_nothing(tmp_path))
    assert not [note for note in notes_of_learning(white)[1] if note.startswith("saturated")]


def open_nothing(folder):
    return (folder / "nothing").open()


def test_notes__count_saturated_sets_where_there_are_many(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.uniform(0.1, 0.9, (40, 40)), np.ones((40, 40)), np.zeros((40, 40))
    sets = [
        extract_patches(image, tmp_path / f"{i}.zarr", PatchConfig(diameter=7))
        for i, image in enumerate(images)
    ]
    black, white = image_notes([*sets, np.ones((3, 7, 7))])
    assert black.startswith("saturated images: 100 % of the pixels of patches are black (0), in 1 ")
    assert white.endswith("in 1 of 3 dictionaries: expose less, or leave such images out")


def test_notes__floats_beyond_one_have_no_white(tmp_path):
    image = np.random.default_rng(0).integers(0, 3, (40, 40)).astype(np.float32)
    patches = extract_patches(image, tmp_path / "p.zarr", PatchConfig(diameter=7))
    assert image_notes([patches]) == []
