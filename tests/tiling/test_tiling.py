"""The tile machine: the same bits for all tiles and schedulers, whole stores or none."""

import json
from dataclasses import replace

import numpy as np
import pytest
import zarr
from scipy.ndimage import uniform_filter

import dsc
from dsc.errors import DscError
from dsc.images import open_images
from dsc.store import create
from dsc.tiling import (
    VALUES,
    Output,
    Pick,
    TileJob,
    as_image,
    check_size,
    image_for,
    machine,
    map_tiles,
)
from dsc.tiling.sums import CELL, cell_sums, merge_cells
from dsc.tiling.windows import cut_window

MARGIN = 4


def mean_and_value(window, factor):
    """A mean over 9 × 9 pixels of the mirrored image, tap by tap, and the pixels."""
    padded = window.mirrored().astype(np.float64)
    height, width = (part.stop - part.start for part in (window.y, window.x))
    total = np.zeros((height, width))
    for dy in range(2 * MARGIN + 1):
        for dx in range(2 * MARGIN + 1):
            total += padded[dy : dy + height, dx : dx + width]
    return np.stack([factor * total / (2 * MARGIN + 1) ** 2, window.inner()])


def squares(window, maps):
    return maps[1:] ** 2


def refuse_all(window, step):
    raise RuntimeError("stopped")


JOB = TileJob("mean", mean_and_value, 2.0, MARGIN, ("mean", "value"), measure=squares)


@pytest.fixture(scope="module")
def grey():
    return np.random.default_rng(0).random((200, 150)).astype(np.float32)


@pytest.fixture(scope="module")
def expected(grey):
    return np.stack([2 * uniform_filter(grey.astype(float), 9, mode="reflect"), grey])


@pytest.mark.parametrize("tile", [64, 128, 256])
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_tiles__give_what_the_whole_image_gives(grey, expected, tile, scheduler):
    job = replace(JOB, tile=tile)
    found = map_tiles(as_image(grey), job, scheduler=scheduler)
    whole = map_tiles(as_image(grey), replace(JOB, tile=512), scheduler="synchronous")
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    for name in ("values", "sums", "low", "high"):
        assert (getattr(found, name) == getattr(whole, name)).all()
    assert found.sums[1:] == pytest.approx([grey.sum(dtype=float), (grey.astype(float) ** 2).sum()])
    assert found.low[1], found.high[1] == (grey.min(), grey.max())


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (64, 64), (65, 5), (129, 190)])
def test_mirrored__is_a_window_of_the_mirrored_image(shape):
    grey = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    whole = np.pad(grey, 9, mode="symmetric")
    for y in range(0, shape[0], 64):
        for x in range(0, shape[1], 64):
            part = [slice(a, min(a + 64, n)) for a, n in zip((y, x), shape, strict=True)]
            window = cut_window(as_image(grey), *part, 9)
            inside = tuple(slice(p.start, p.stop + 18) for p in part)
            np.testing.assert_array_equal(window.mirrored(), whole[inside])
            np.testing.assert_array_equal(window.inner(), grey[tuple(part)])


def test_sums__do_not_depend_on_the_level_of_the_tiles():
    values = np.random.default_rng(1).random((2, 5 * CELL + 7, 3 * CELL + 1))
    values[0, 3, 4] = np.nan
    cells = cell_sums(values)
    total = merge_cells(cells)[:, 0, 0]
    np.testing.assert_allclose(total, np.nansum(values, (1, 2)))
    for level in (1, 2, 3):
        assert (merge_cells(merge_cells(cells, level))[:, 0, 0] == total).all()


@pytest.mark.parametrize("tile", [64, 128])
def test_store__is_an_ome_zarr_with_the_same_values(grey, tmp_path, tile):
    found = map_tiles(as_image(grey), replace(JOB, tile=tile), Output(tmp_path / "a.zarr"))
    expected = map_tiles(as_image(grey), JOB)
    assert found.values is None
    assert (found.store.read(VALUES) == expected.values).all()
    assert found.store.chunks(VALUES) == (1, tile, tile)
    assert (found.sums == expected.sums).all()
    ome = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["attributes"]["ome"]
    assert ome["version"] == "0.5"
    assert [axis["name"] for axis in ome["multiscales"][0]["axes"]] == ["c", "y", "x"]
    assert [one["label"] for one in ome["omero"]["channels"]] == ["mean", "value"]
    window = ome["omero"]["channels"][1]["window"]
    assert (window["min"], window["max"]) == (grey.min(), grey.max())
    plain = zarr.open_group(tmp_path / "a.zarr", mode="r")
    np.testing.assert_array_equal(plain[ome["multiscales"][0]["datasets"][0]["path"]][1], grey)
    assert [image.shape for image in open_images(tmp_path / "a.zarr")] == 2 * [grey.shape]
    assert dsc.open(tmp_path / "a.zarr")["0"].shape == (2, *grey.shape)
    assert dsc.check(tmp_path / "a.zarr").good


def test_image__from_zarr_is_read_by_window(grey, tmp_path):
    array = zarr.create_array(tmp_path / "in.zarr", data=grey, chunks=(50, 60))
    expected = map_tiles(as_image(grey), JOB).values
    for given in (tmp_path / "in.zarr", array):
        for image in (as_image(given), as_image(given, raw=True), image_for(given, {})):
            assert not image.in_memory
            assert (map_tiles(image, replace(JOB, tile=64)).values == expected).all()


def test_cluster__gives_the_same_bits(grey, tmp_path):
    expected = map_tiles(as_image(grey), JOB)
    with dsc_client() as client:
        found = map_tiles(as_image(grey), replace(JOB, tile=64), scheduler=client)
        assert (found.values == expected.values).all()
        assert (found.sums == expected.sums).all()
        out = Output(tmp_path / "a.zarr")
        stored = map_tiles(as_image(grey), replace(JOB, tile=64), out, scheduler=client)
    assert (stored.store.read(VALUES) == expected.values).all()


def dsc_client():
    from distributed import Client

    return Client(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    )  # fmt: skip


def test_resume__skips_what_is_there(grey, tmp_path, monkeypatch):
    expected = map_tiles(as_image(grey), JOB)
    job, out = replace(JOB, tile=64), Output(tmp_path / "a.zarr")
    stopped, run_tile = [], machine.run_tile

    def some(part, shared):
        stopped.append(part)
        if len(stopped) > 5:
            raise RuntimeError("killed")
        return run_tile(part, shared)

    monkeypatch.setattr(machine, "run_tile", some)
    with pytest.raises(RuntimeError, match="killed"):
        map_tiles(as_image(grey), job, out, scheduler="synchronous")
    monkeypatch.undo()
    attributes = json.loads((tmp_path / "a.zarr/zarr.json").read_text())["attributes"]
    assert "ome" not in attributes  # no viewer takes it for whole
    with pytest.raises(DscError, match="begun with another identity"):
        map_tiles(as_image(grey + 1), job, replace(out, resume=True))
    calls = []
    counted = replace(job, step=_Counted(calls), function=count_calls)
    found = map_tiles(as_image(grey), counted, replace(out, resume=True), scheduler="synchronous")
    assert len(calls) == 12 - 5
    assert (found.store.read(VALUES) == expected.values).all()
    assert (found.sums == expected.sums).all()


class _Counted:
    def __init__(self, calls):
        self.calls = calls


def count_calls(window, step):
    step.calls.append(window.y)
    return mean_and_value(window, 2.0)


def test_out__is_never_replaced_unless_it_is_asked_for(grey, tmp_path):
    out = Output(tmp_path / "a.zarr")
    map_tiles(as_image(grey), JOB, out)
    before = (tmp_path / "a.zarr/manifest.json").read_bytes()
    bad = replace(JOB, function=refuse_all)
    for again in (out, replace(out, resume=True)):
        with pytest.raises(DscError, match="finished store of maps; it is not overwritten"):
            map_tiles(as_image(grey), bad, again)
    assert (tmp_path / "a.zarr/manifest.json").read_bytes() == before
    map_tiles(as_image(grey * 2), JOB, replace(out, overwrite=True))
    assert (tmp_path / "a.zarr/manifest.json").read_bytes() != before
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").write_text("mine")
    with pytest.raises(DscError, match="no store of dsc"):
        map_tiles(as_image(grey), JOB, Output(tmp_path / "other", overwrite=True))
    with pytest.raises(DscError, match="is the image itself"):
        map_tiles(open_images(tmp_path / "a.zarr")[0], JOB, replace(out, overwrite=True))
    codes = create(tmp_path / "codes", "codes", {"patch": 0, "slot": 1}, {}, {})
    codes.finish()
    with pytest.raises(DscError, match="found a store of codes, need one of maps"):
        map_tiles(as_image(grey), JOB, Output(tmp_path / "codes", overwrite=True))
    with pytest.raises(DscError, match="out: found none"):
        map_tiles(as_image(grey), JOB, Output(overwrite=True))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_pixels__that_are_no_numbers_are_named_and_leave_nothing(grey, tmp_path, value):
    bad = grey.copy()
    bad[190, 30] = value
    with pytest.raises(DscError, match=rf"image: found {value} at row 190, column 30"):
        map_tiles(as_image(bad), replace(JOB, tile=64), Output(tmp_path / "a.zarr"))
    assert not (tmp_path / "a.zarr").exists()
    zarr.create_array(tmp_path / "in.zarr", data=bad, chunks=(50, 60))
    map_tiles(as_image(grey), JOB, Output(tmp_path / "b.zarr"))
    before = (tmp_path / "b.zarr/manifest.json").read_bytes()
    with pytest.raises(DscError, match=r"found -?(nan|inf) at row 190, column 30"):
        map_tiles(as_image(tmp_path / "in.zarr"), JOB, Output(tmp_path / "b.zarr", overwrite=True))
    assert (tmp_path / "b.zarr/manifest.json").read_bytes() == before


def test_memory__makes_tiles_smaller_or_refuses(grey, monkeypatch):
    large = as_image(np.zeros((600, 600), np.float32))

    def tile_of(memory, pixel_bytes=4000):
        resources = machine.Engine("threads", replace(_resources(), memory=memory))
        job = replace(JOB, pixel_bytes=pixel_bytes)
        return machine._tile_size(large, job, resources, in_memory=False)

    assert tile_of(10**10) == 256  # nine tiles for two threads
    assert tile_of(2 * 10**8) == 128
    assert tile_of(10**8) == 64
    with pytest.raises(DscError, match="one tile of 64 × 64 pixels takes 20"):
        tile_of(10**6)
    resources = machine.Engine("threads", replace(_resources(), memory=10**6))
    with pytest.raises(DscError, match=r"its 2 maps take 2.88 MB.*out="):
        machine._tile_size(large, JOB, resources, in_memory=True)


def _resources():
    from dsc.engine import Resources

    return Resources(2, 10**9)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(5), r"found shape \(5,\)"),
        (np.zeros((5, 5, 5)), r"found shape \(5, 5, 5\)"),
        (np.zeros((0, 5)), r"found shape \(0, 5\)"),
        (np.zeros((5, 5), complex), "type complex128"),
        (np.full((5, 5), "a"), "type <U1"),
    ],
)
def test_image__that_cannot_be_used_is_refused(value, message):
    with pytest.raises(DscError, match=message):
        as_image(value)


def test_size__smaller_than_the_diameter_is_refused():
    with pytest.raises(DscError, match=r"found shape \(5, 20\), need .* at least 7 × 7"):
        check_size(as_image(np.zeros((5, 20))), 7)


def test_tile__must_be_a_power_of_two_of_cells(grey):
    with pytest.raises(DscError, match="tile: found 192"):
        map_tiles(as_image(grey), replace(JOB, tile=192))


def all_missing(window, step):
    return np.full((1, *window.inner().shape), np.nan, np.float32)


@pytest.mark.parametrize("resume", [False, True])
def test_store__of_an_image_without_a_whole_disk_is_not_left_behind(grey, tmp_path, resume):
    job = TileJob("nothing", all_missing, None, 0, ("nothing",), missing=True)
    with pytest.raises(DscError, match="missing pixels"):
        map_tiles(as_image(grey), job, Output(tmp_path / "a.zarr", resume=resume))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("version", [0.4, 0.5])
def test_store__has_the_size_of_the_pixels_that_were_read(grey, tmp_path, version):
    group = zarr.create_group(tmp_path / "in.zarr", zarr_format=2 if version < 0.5 else 3)
    steps = []
    for level, size in (("0", 0.25), ("1", 0.5)):
        group.create_array(level, data=grey[None, :: int(4 * size), :: int(4 * size)])
        steps.append([{"type": "scale", "scale": [1, size, 2 * size]}])
    steps[1].append({"type": "translation", "translation": [0, 0.125, 0.25]})
    names = [{"name": n, "type": "space", "unit": "micrometer"} for n in "yx"]
    scales = {
        "axes": [{"name": "c", "type": "channel"}, *names],
        "datasets": [{"path": str(n), "coordinateTransformations": s} for n, s in enumerate(steps)],
    }
    about = {"multiscales": [scales]}
    group.attrs.update({"ome": about} if version > 0.4 else about)
    for level in (0, 1):
        image = as_image(tmp_path / "in.zarr", wanted=Pick(level=level))
        map_tiles(image, JOB, Output(tmp_path / f"{level}.zarr"))
        found = json.loads((tmp_path / f"{level}.zarr/zarr.json").read_text())["attributes"]["ome"]
        scales = found["multiscales"][0]
        assert [axis.get("unit") for axis in scales["axes"]] == [None, "micrometer", "micrometer"]
        size, *more = scales["datasets"][0]["coordinateTransformations"]
        assert size["scale"] == [1.0, 0.25 * (level + 1), 0.5 * (level + 1)]
        assert [one["translation"] for one in more] == [[0.0, 0.125, 0.25]] * level
    clean = dsc.denoise(tmp_path / "in.zarr", 0, out=tmp_path / "c.zarr", diameter=5, n_atoms=2)
    assert clean.shape == (1, *grey.shape)
    found = json.loads((tmp_path / "c.zarr/zarr.json").read_text())["attributes"]["ome"]
    (size,) = found["multiscales"][0]["datasets"][0]["coordinateTransformations"]
    assert size["scale"] == [1.0, 0.25, 0.5]
