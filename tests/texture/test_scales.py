"""Several diameters: dictionaries of each, as if it were alone, and joined histograms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import dsc
from dsc.cli.main import main
from dsc.dictionary import RunTarget
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.report import write_texture_report
from dsc.store import FORMAT, NEWEST
from dsc.texture import (
    Benchmark,
    SweepGrid,
    TextureConfig,
    TextureModel,
    chi_square,
    class_map,
    evaluate_texture,
    fit_texture,
    histograms_of,
    label_map,
    read_inputs,
)
from dsc.texture.labelling import NONE, most_voted
from dsc.tiling import as_image

DIAMETERS = (5, 9)
CONFIG = TextureConfig(
    n_atoms=2, diameter=DIAMETERS, n_iterations=1, patches_per_image=60, stride=2
)


def waves(numbers):
    """Images of two wavelengths, at random angles."""
    made = []
    for number in numbers:
        rng = np.random.default_rng(number)
        y, x = np.mgrid[:30, :30]
        angle = rng.uniform(0, 3)
        phase = (0.6, 1.5)[number % 2] * (y * np.cos(angle) + x * np.sin(angle))
        made.append((np.sin(phase) + 0.3 * rng.normal(size=y.shape)).astype(np.float32))
    return made


TRAIN = read_inputs(waves(range(8)), ["long", "short"] * 4)
TEST = read_inputs(waves(range(20, 26)), ["long", "short"] * 3)


@pytest.fixture(scope="module")
def engine():
    with open_engine("synchronous") as engine:
        yield engine


@pytest.fixture(scope="module")
def model(engine):
    return fit_texture(TRAIN, CONFIG, engine)


@pytest.fixture(scope="module")
def alone(engine):
    """A model of each diameter."""
    return [fit_texture(TRAIN, replace(CONFIG, diameter=(d,)), engine) for d in DIAMETERS]


def test_config__one_number_is_a_list_of_one_and_order_does_not_matter():
    assert TextureConfig(diameter=7) == TextureConfig(diameter=(7,)) == TextureConfig(diameter=[7])
    assert TextureConfig(diameter=np.array([15, 7])).diameter == (7, 15)
    assert CONFIG.sizes == "5 + 9"


@pytest.mark.parametrize(
    ("diameter", "message"),
    [((), "found none"), ((7, 7), "every one once"), ((7, 1), "diameter"), ("7", "diameter")],
)
def test_config__refuses_other_diameters(diameter, message):
    with pytest.raises(DscError, match=message):
        TextureConfig(diameter=diameter)


def test_sweep__tries_diameters_one_by_one():
    with pytest.raises(DscError, match="diameter"):
        SweepGrid(diameter=((7, 15),))


def test_fit__each_diameter_has_the_bits_it_has_alone(model, alone):
    assert [one.basis.diameter for one in model.scales] == list(DIAMETERS)
    for scale, counts, single in zip(model.scales, model.image_count, alone, strict=True):
        np.testing.assert_array_equal(scale.atoms, single.scales[0].atoms)
        np.testing.assert_array_equal(scale.history, single.scales[0].history)
        np.testing.assert_array_equal(scale.atom_count, single.scales[0].atom_count)
        np.testing.assert_array_equal(counts, single.image_count[0])
    assert len({model.sha256, *(one.sha256 for one in alone)}) == 3


@pytest.mark.parametrize("kind", ["both", "classes", "atoms"])
def test_histograms__are_joined_with_equal_weights(model, alone, kind):
    joined = histograms_of(model.image_count, kind)
    parts = [histograms_of(one.image_count, kind) for one in alone]
    np.testing.assert_allclose(joined, np.hstack(parts) / 2)
    np.testing.assert_allclose(joined.sum(1), 1)
    mean = np.mean([chi_square(part, part) for part in parts], axis=0)
    np.testing.assert_allclose(chi_square(joined, joined), mean, atol=1e-12)
    assert len(replace(model, config=replace(CONFIG, histogram=kind)).bin_names) == joined.shape[1]


def test_predict__by_the_mean_distance_of_all_diameters(model, alone, engine):
    found = model.predict(TEST.images, engine)
    each = [one.predict(TEST.images, engine) for one in alone]
    np.testing.assert_allclose(found.distances, np.mean([e.distances for e in each], 0), atol=0.2)
    distances = [
        chi_square(e.histograms, one.histograms) for e, one in zip(each, alone, strict=True)
    ]
    nearest = np.mean(distances, axis=0).argmin(1)
    np.testing.assert_array_equal(found.labels, model.image_label[nearest])
    assert [f.n_patches for f in found.features] == [13**2 + 11**2] * len(TEST)
    assert found.features[0].counts == each[0].features[0].counts + each[1].features[0].counts


def test_store__comes_back_and_says_its_format(model, alone, engine, tmp_path):
    model.save(tmp_path / "several")
    back = TextureModel.load(tmp_path / "several")
    assert (back.sha256, back.config, back.patches) == (model.sha256, CONFIG, model.patches)
    np.testing.assert_array_equal(back.image_count, model.image_count)
    for one, two in zip(back.scales, model.scales, strict=True):
        np.testing.assert_array_equal(one.basis.matrix, two.basis.matrix)
    one, two = (m.predict(TEST.images, engine) for m in (back, model))
    np.testing.assert_array_equal(one.distances, two.distances)
    alone[0].save(tmp_path / "one")
    formats = [dsc.open(tmp_path / name).attrs["dsc_format"] for name in ("one", "several")]
    assert formats == [FORMAT, NEWEST]
    assert not list((tmp_path / "one").glob("more_*"))
    assert dsc.check(tmp_path / "several").bad == ()


def test_store__a_lost_chunk_of_any_diameter_is_named(model, tmp_path):
    model.save(tmp_path / "model")
    chunks = (tmp_path / "model" / "more_atoms" / "9" / "c").rglob("*")
    next(path for path in chunks if path.is_file()).unlink()
    with pytest.raises(DscError, match=r"more_atoms/9"):
        TextureModel.load(tmp_path / "model")


def test_fit__is_resumed_to_the_same_bits(model, tmp_path):
    target = RunTarget(tmp_path / "run", resume=True)

    class Stop(Exception):
        pass

    def stop(event):
        if type(event).__name__ == "Iteration":
            raise Stop

    with open_engine("synchronous") as engine:
        with pytest.raises(Stop):
            fit_texture(TRAIN, CONFIG, engine.listening(stop), target)
        assert fit_texture(TRAIN, CONFIG, engine, target).sha256 == model.sha256


def test_fit__images_must_hold_the_largest_patch(engine):
    small = read_inputs([image[:8] for image in waves(range(4))], list("abab"))
    with pytest.raises(DscError, match="need at least 9 × 9"):
        fit_texture(small, CONFIG, engine)


# --- maps -------------------------------------------------------------------------------------


def test_map__the_larger_patch_wins_and_the_smaller_one_reaches_the_rim(model, alone):
    model, alone = (
        [replace(m, config=replace(m.config, stride=1)) for m in some] for some in ([model], alone)
    )
    image = TEST.images[0]
    joined = label_map(model[0].labellers, image)
    small, large = (label_map(one.labellers, image) for one in alone)
    np.testing.assert_array_equal(joined, np.where(large == NONE, small, large))
    assert (small[2] != NONE).any()
    assert (large[2] == NONE).all()
    np.testing.assert_array_equal(class_map(image.source, model[0]).astype(int) - 1, joined)


def test_vote__counts_the_pixels_of_diameters(model):
    rng = np.random.default_rng(3)
    labels = [rng.integers(-1, 2, (8, 9)) for _ in DIAMETERS]
    found = most_voted(labels, model.labellers, half=1)
    for (y, x), label in np.ndenumerate(found):
        votes = np.zeros(2)
        for some, diameter in zip(labels, DIAMETERS, strict=True):
            near = some[y : y + 3, x : x + 3]
            votes += [diameter * (near == k).sum() for k in range(2)]
        assert label == (votes.argmax() if votes.any() else NONE)


# --- as a command -------------------------------------------------------------------------------


def test_command__diameter_is_repeated_and_kept_in_run_toml(model, tmp_path):
    for name, image in zip("abcdefgh", TRAIN.images, strict=True):
        path = tmp_path / "images" / ("short" if name in "bdfh" else "long") / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        grey = image.source
        levels = np.rint(255 * (grey - grey.min()) / np.ptp(grey)).astype(np.uint8)
        Image.fromarray(levels).save(path)

    def call(*words):
        done = CliRunner().invoke(main, ["texture", "fit", str(tmp_path / "images"), *words])
        assert done.exit_code == 0, done.output
        return TextureModel.load(Path(words[1]))

    options = ["--n-atoms", "2", "--n-iterations", "1", "--patches-per-image", "60"]
    both = ["--diameter", "9", "--diameter", "5", "--stride", "2"]
    first = call("--out", str(tmp_path / "one"), *options, *both)
    assert first.config == CONFIG
    again = call("--out", str(tmp_path / "two"), "--config", str(tmp_path / "one" / "run.toml"))
    assert again.sha256 == first.sha256
    (tmp_path / "old.toml").write_text("diameter = 5\nn_atoms = 2\nn_iterations = 0\n")
    third = call("--out", str(tmp_path / "three"), "--config", str(tmp_path / "old.toml"))
    assert third.config.diameter == (5,)


def test_report__shows_the_dictionaries_of_all_diameters(engine, tmp_path):
    target = RunTarget(tmp_path / "run")
    done = evaluate_texture(Benchmark("waves", TRAIN, TEST), CONFIG, engine, target)
    facts = write_texture_report(tmp_path / "report", done)
    assert facts["dictionaries"] == [
        "long, 5 pixels", "short, 5 pixels", "long, 9 pixels", "short, 9 pixels",
    ]  # fmt: skip
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert all(name in page for name in facts["dictionaries"])
    assert "N = 5 + 9" in page


def test_unit__changes_what_is_learned_but_labels_know_no_contrast(engine, model):
    plain = fit_texture(TRAIN, replace(CONFIG, unit=False), engine)
    assert plain.sha256 != model.sha256
    for some in (plain, model):
        labels = [label_map(some.labellers, as_image(f * TEST.images[1].source)) for f in (1, 4)]
        np.testing.assert_array_equal(*labels)
