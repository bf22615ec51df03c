"""Patch sets of several channels, within masks, and with ranges of values."""

import shutil

import numpy as np
import pytest
import zarr

import dsc
from dsc import ArrayPatches, PatchConfig, extract_patches
from dsc.images import open_images
from dsc.patches.scan import Grid

RNG = np.random.default_rng(1)
COLOR = RNG.integers(0, 256, (40, 50, 3), dtype=np.uint8)
GREY = RNG.integers(0, 4096, (40, 50)).astype(np.uint16)


def cut(inputs, tmp_path, **options):
    return extract_patches(inputs, tmp_path / "a.zarr", PatchConfig(**options))


def squares(patches, image):
    """The windows of a set, from its image."""
    at, side = patches.positions(0, patches.n_patches), patches.diameter
    return np.stack([image[y : y + side, x : x + side] for y, x in zip(at.y, at.x, strict=True)])


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("kind", ["array", "zarr"])
def test_channels__are_those_of_the_image(tmp_path, kind, center, unit):
    inputs = COLOR
    if kind == "zarr":
        zarr.create_array(tmp_path / "in.zarr", data=COLOR, chunks=(16, 16, 3))
        inputs = tmp_path / "in.zarr"
    patches = cut(inputs, tmp_path, diameter=7, channel="all", center=center, unit=unit)
    assert (patches.n_channels, patches.reading) == (3, {"channel": "all"})
    source = ArrayPatches(squares(patches, COLOR.astype(np.float32) / 255), center, unit)
    found = patches.pixels(0, patches.n_patches)
    np.testing.assert_allclose(found, source.pixels(0, patches.n_patches), atol=1e-6)
    each = found.reshape(len(found), 3, -1)
    if center:
        np.testing.assert_allclose(each.mean(2), 0, atol=1e-6)  # of each channel
    if unit:
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)  # of all


def test_channels__rotated_in_their_image_are_those_of_each(tmp_path):
    together = cut(COLOR, tmp_path, diameter=7, channel="all", rotate=(0.0, 30.0, 77.0), stride=5)
    for c, name in enumerate("abc"):
        alone = extract_patches(
            COLOR,
            tmp_path / f"{name}1.zarr",
            PatchConfig(diameter=7, channel=str(c), rotate=(0.0, 30.0, 77.0), stride=5),
        )
        found = together.pixels(0, together.n_patches).reshape(together.n_patches, 3, -1)[:, c]
        np.testing.assert_array_equal(found, alone.pixels(0, alone.n_patches))


def test_channels__vary_if_one_of_them_does(tmp_path):
    flat = COLOR.copy()
    flat[:, :25] = 7
    flat[:, 25:, :2] = 7  # only the last channel varies, in the right half
    patches = cut(flat, tmp_path, diameter=7, channel="all", min_std=0.05)
    assert patches.n_patches > 0
    assert patches.positions(0, patches.n_patches).x.min() >= 25 - 6


def test_channels__order_counts(tmp_path):
    one = extract_patches(COLOR, tmp_path / "1", PatchConfig(channel="0,1"))
    other = extract_patches(COLOR, tmp_path / "2", PatchConfig(channel="1,0"))
    assert one.fingerprint != other.fingerprint


def test_channels__of_one_number_are_learned_from(tmp_path):
    patches = cut(COLOR, tmp_path, diameter=7, channel="all", center=True)
    model = dsc.learn(patches, n_atoms=5, sparsity=2, n_iterations=2, run=tmp_path / "run")
    assert (model.n_channels, model.basis.n_coords) == (3, 3 * dsc.disk_basis(7).n_coords)
    assert model.atoms_pixels.shape == (5, 7, 7, 3)
    again = dsc.Dictionary.load(tmp_path / "run/model.zarr")
    assert again.sha256 == model.sha256
    assert again.encode(patches).mse == pytest.approx(model.mse)
    assert "image/png" in model._repr_html_()
    with pytest.raises(dsc.DscError, match="found 1 channel, need 3, as the dictionary has"):
        model.encode(np.zeros((4, 7, 7)))


def test_channels__all_alike_code_as_one(tmp_path):
    """Grey as color: the same atoms, each channel with a third of the energy."""
    grey = np.repeat(COLOR[..., :1], 3, axis=2)
    patches = cut(grey, tmp_path, diameter=7, channel="all")
    alone = extract_patches(grey[..., 0], tmp_path / "1", PatchConfig(diameter=7))
    model, single = (
        dsc.learn(p, n_atoms=4, sparsity=2, n_iterations=3, init="patches")
        for p in (patches, alone)
    )
    assert model.mse == pytest.approx(single.mse, rel=1e-3)


def test_mask__keeps_disks_inside(tmp_path):
    mask = np.zeros(GREY.shape, bool)
    mask[10:30, 12:40] = True
    mask[15, 20] = False
    patches = cut(GREY, tmp_path, diameter=7, mask=mask)
    inside = squares(patches, mask)[:, dsc.disk_basis(7).mask]
    assert inside.all()
    grid = Grid.of(GREY.shape, PatchConfig(diameter=7))
    windows = np.lib.stride_tricks.sliding_window_view(mask, (7, 7)).reshape(-1, 7, 7)
    assert grid.n_y * grid.n_x == len(windows)
    assert patches.n_patches == windows[:, dsc.disk_basis(7).mask].all(1).sum()


def test_mask__one_for_each_image_or_one_for_all(tmp_path):
    left, right = np.zeros((2, 40, 50), bool)
    left[:, :20], right[:, 30:] = True, True
    config = PatchConfig(diameter=7, mask=[left, right])
    both = extract_patches([GREY, GREY], tmp_path / "1", config)
    at = both.positions(0, both.n_patches)
    assert at.x[at.image == 0].max() <= 14
    assert at.x[at.image == 1].min() >= 29
    one = extract_patches([GREY, GREY], tmp_path / "2", PatchConfig(diameter=7, mask=left))
    assert one.positions(0, one.n_patches).x.max() <= 14
    assert one.store.attributes["configuration"]["mask"] == ["array"]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((40, 49)), r"mask: found 40 × 49 pixels in array 0, need 40 × 50"),
        (np.zeros((40, 50)), r"found no patch inside the mask among 1496 windows"),
        ([np.ones((40, 50))] * 3, r"mask: found 3, need one, or one for each of 1"),
        ("nowhere.png", r"mask: nowhere.png: does not exist"),
    ],
)
def test_mask__that_does_not_fit_is_refused(tmp_path, mask, message):
    with pytest.raises(dsc.DscError, match=message):
        cut(GREY, tmp_path, diameter=7, mask=mask)
    assert not (tmp_path / "a.zarr").exists()


def test_missing__pixels_are_in_no_patch(tmp_path):
    image = GREY.astype(np.float32)
    image[5, 5] = image[30:, 40:] = np.nan
    patches = cut(image, tmp_path, diameter=7)
    windows = np.lib.stride_tricks.sliding_window_view(image, (7, 7)).reshape(-1, 7, 7)
    whole = ~np.isnan(windows[:, dsc.disk_basis(7).mask]).any(1)
    assert patches.n_patches == whole.sum()
    np.testing.assert_array_equal(
        patches.pixels(0, patches.n_patches), windows[whole][:, dsc.disk_basis(7).mask]
    )


def test_missing__pixels_cannot_be_rotated(tmp_path):
    image = GREY.astype(np.float32)
    image[5, 5] = np.nan
    with pytest.raises(dsc.DscError, match="missing pixels"):
        cut(image, tmp_path, diameter=7, rotate=(30.0,))


def test_percentile__is_that_of_all_images(tmp_path):
    images = [GREY, GREY // 2]
    patches = cut(images, tmp_path, diameter=7, percentile=(5.0, 90.0))
    low, high = np.percentile(np.concatenate([i.ravel() for i in images]), (5, 90))
    assert patches.reading == {"ranges": [[low, high]]}
    wanted = (squares(patches, images[0])[:1496] - low) / (high - low)
    found = patches.pixels(0, 1496)
    np.testing.assert_allclose(found, wanted[:, dsc.disk_basis(7).mask], rtol=1e-5, atol=1e-6)


def test_percentile__of_large_images_is_sampled_whatever_the_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("dsc.patches.looking.SAMPLE", 300)
    ranges = []
    for number, chunks in enumerate([(40, 50), (16, 16), (7, 50)]):
        zarr.create_array(tmp_path / f"{number}.zarr", data=GREY, chunks=chunks)
        config = PatchConfig(diameter=7, percentile=(1.0, 99.0))
        found = extract_patches(tmp_path / f"{number}.zarr", tmp_path / f"p{number}", config)
        ranges.append(found.reading["ranges"])
    assert ranges[0] == ranges[1] == ranges[2]


def test_percentile__of_each_channel(tmp_path):
    dark = COLOR.copy()
    dark[..., 1] //= 4
    patches = cut(dark, tmp_path, channel="all", percentile=(0.0, 100.0))
    assert patches.reading["ranges"] == [[dark[..., c].min(), dark[..., c].max()] for c in range(3)]


def test_percentile__of_nothing_is_refused(tmp_path):
    with pytest.raises(dsc.DscError, match="percentile: found 3 at 1 and 3 at 99, need two values"):
        cut(np.full((20, 20), 3, np.uint8), tmp_path, percentile=(1.0, 99.0))


def test_sliver__is_named_with_its_remedy(tmp_path):
    with pytest.raises(dsc.DscError, match=r"uint16 holds: say --range 0 4095 or --percentile"):
        cut(GREY, tmp_path, diameter=7, min_std=0.05)
    patches = cut(GREY, tmp_path, diameter=7)
    (note,) = patches.notes
    assert "are a small part of what uint16 holds: say --range 0 4095" in note
    scaled = extract_patches(GREY, tmp_path / "b", PatchConfig(diameter=7, range=(0.0, 4095.0)))
    assert scaled.notes == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"range": (1.0, 1.0)}, "range: found"),
        ({"range": (0.0, float("inf"))}, "range: found"),
        ({"percentile": (1.0, 101.0)}, "percentile: found .* from 0 to 100"),
        ({"range": (0.0, 1.0), "percentile": (1.0, 9.0)}, "range and percentile: found both"),
        ({"level": -1}, "level: found -1"),
        ({"channel": 3}, "channel: found 3"),
    ],
)
def test_config__refuses(options, message):
    with pytest.raises(dsc.DscError, match=message):
        PatchConfig(**options)


def test_mask__of_several_is_that_of_its_image(tmp_path):
    left, right = np.zeros((2, 40, 50), np.int64)
    left[:, :20], right[:, 30:] = 5, 7  # labels, as a segmentation gives them
    for name, pixels in (("b", GREY), ("a", GREY), ("left", left), ("right", right)):
        np.save(tmp_path / f"{name}.npy", pixels)
    masks = (tmp_path / "right.npy", tmp_path / "left.npy")
    config = PatchConfig(diameter=7, mask=masks)
    patches = extract_patches([tmp_path / "a.npy", tmp_path / "b.npy"], tmp_path / "1", config)
    at = patches.positions(0, patches.n_patches)
    assert at.x[at.image == 0].min() >= 29  # the first mask is that of a
    with pytest.raises(dsc.DscError, match="not given in the order of their paths"):
        extract_patches([tmp_path / "b.npy", tmp_path / "a.npy"], tmp_path / "2", config)


@pytest.mark.parametrize("option", [{"channel": "1"}, {"range": (0.0, 9.0)}, {"level": 1}])
def test_open_images__are_read_as_they_were_opened(tmp_path, option):
    with pytest.raises(dsc.DscError, match="found open ones beside a channel, level or range"):
        cut(open_images(COLOR), tmp_path, **option)


def test_open_images__of_a_channel_say_so(tmp_path):
    patches = cut(open_images(COLOR, channel="1"), tmp_path, diameter=7)
    assert patches.reading == {"channel": "1"}


def test_learn__takes_other_patches_for_another_reading(tmp_path):
    np.save(tmp_path / "a.npy", GREY)
    options = {"n_atoms": 2, "sparsity": 1, "n_iterations": 1, "diameter": 7}
    dsc.learn(tmp_path / "a.npy", run=tmp_path / "run", range=(0.0, 65535.0), **options)
    shutil.rmtree(tmp_path / "run")  # its patches stay
    with pytest.raises(dsc.DscError, match="found other patches than asked for"):
        dsc.learn(tmp_path / "a.npy", run=tmp_path / "run", **options)
