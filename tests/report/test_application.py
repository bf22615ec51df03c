"""Pages of commands with images in and images out."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from skimage import data

import dsc as library
from dsc.cli.main import main
from dsc.images import to_grey
from dsc.report import views
from dsc.report.views import view_image, view_maps

from .test_page import WIDTHS, opened

FAST = ["--n-atoms", "4", "--n-iterations", "1", "--diameter", "7"]
COMMANDS = {
    "denoise": ["noisy.png", "--out", "clean.png", "--sigma", "20", *FAST],
    "inpaint": ["color.png", "--mask", "mask.png", "--out", "filled.tif", *FAST],
    "orientation": ["color.png", "model.zarr", "--out", "angles.zarr"],
    "features": ["noisy.png", "model.zarr", "--out", "maps.zarr"],
    "reconstruct": ["color.png", "model.zarr", "--out", "rebuilt.zarr", "--stride", "3"],
}


def run(folder, name, *more):
    """A command in a folder: (result, page, its facts)."""
    words = [str(folder / w) if "." in w else w for w in COMMANDS[name]]
    page = folder / f"{name}.html"
    result = CliRunner().invoke(main, [name, *words, "--report", str(page), *more])
    return result, page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """{name: (page, facts, answer)} of every command, in one folder."""
    folder = tmp_path_factory.mktemp("applications")
    rng = np.random.default_rng(0)
    color = data.chelsea()[100:148, 150:206]
    Image.fromarray(color).save(folder / "color.png")
    grey = np.rint(255 * to_grey(color) + rng.normal(0, 20, color.shape[:2]))
    Image.fromarray(grey.clip(0, 255).astype(np.uint8)).save(folder / "noisy.png")
    mask = rng.random(color.shape[:2]) < 0.2
    Image.fromarray(np.uint8(255 * mask)).save(folder / "mask.png")
    options = {"diameter": 7, "center": True, "stride": 2, "n_iterations": 1}
    library.learn(folder / "noisy.png", 5, 2, **options).save(folder / "model.zarr")
    done = {}
    for name in COMMANDS:
        result, page = run(folder, name, "--json")
        assert result.exit_code == 0, result.output
        facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
        done[name] = (page, facts, json.loads(result.stdout))
    return done


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("name", COMMANDS)
def test_page__shows_its_images_and_fits(browser, made, name, width):
    with opened(browser, made[name][0], width, "dark") as (tab, requests, messages):
        assert messages == []
        assert all(url.startswith(("file://", "data:")) for url in requests)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        images = tab.evaluate("[...document.images].map(i => [i.naturalWidth, i.alt])")
    assert len(images) >= 2
    assert all(all(image) for image in images)
    assert images[0][0] == 56  # the image itself, not shrunken


@pytest.mark.parametrize("name", COMMANDS)
def test_page__leads_with_facts_and_ends_with_the_command(made, name):
    page, facts, _ = made[name]
    text = page.read_text(encoding="utf-8")
    assert text.index('class="key"') < text.index("<figure>") < text.index("How it was made")
    words = facts["command"].split()
    assert words[:2] == ["dsc", name]
    assert "--json" not in words
    context = main.get_command(None, name).make_context(name, words[2:])  # it can be repeated
    assert context.params["report"] == str(page)


def test_page__facts_are_those_that_the_command_answered(made):
    keys_of = {"reconstruct": ("share", "psnr", "mse"), "inpaint": ("share", "n_missing")}
    keys_of |= dict.fromkeys(("orientation", "features"), ("share",))
    for name, keys in keys_of.items():
        _, facts, answer = made[name]
        assert next(iter(answer)) == "share"
        assert [facts[key] for key in keys] == [answer[key] for key in keys]
    _, facts, answer = made["denoise"]
    assert [facts[key] for key in ("share", "removed")] == [answer[k] for k in ("share", "removed")]
    page = made["denoise"][0]
    before, after = (
        np.asarray(Image.open(page.with_name(name)), float) for name in ("noisy.png", "clean.png")
    )
    share = ((before - after) ** 2).sum() / ((before - before.mean()) ** 2).sum()
    assert facts["share"] == pytest.approx(share, rel=1e-6)
    assert f"{100 * share:.2f} %" in page.read_text(encoding="utf-8")
    _, facts, answer = made["inpaint"]
    assert facts["missing"] == answer["n_missing"] / (48 * 56)


def test_page__of_orientation_has_the_key_of_colors(made):
    text = made["orientation"][0].read_text(encoding="utf-8")
    assert re.search(r'alt="key: the color of each direction"', text)
    assert re.search(r'alt="the second direction in color"', text)  # two atoms a patch


def test_page__of_features_shows_the_strongest_atoms(made):
    page, facts, answer = made["features"]
    shown = re.findall(r'alt="map of ([^"]+)"', page.read_text(encoding="utf-8"))
    assert len(shown) == facts["n_shown"] == 5
    assert set(shown) <= set(answer["channels"])


@pytest.mark.parametrize("name", ["orientation", "features"])
def test_page__of_maps_with_missing_pixels_shows_the_others(made, tmp_path, name):
    folder = made["denoise"][0].parent
    pixels = np.asarray(Image.open(folder / "noisy.png"), np.float32) / 255
    pixels[20:23, 20:40] = np.nan
    np.save(tmp_path / "nan.npy", pixels)
    words = [tmp_path / "nan.npy", folder / "model.zarr", "--out", tmp_path / "a.zarr"]
    page = tmp_path / "page.html"
    words = [name, *map(str, words), "--report", str(page)]
    result = CliRunner().invoke(main, words, catch_exceptions=False)  # a warning is an error
    assert result.exit_code == 0, result.output
    facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    if name == "orientation":
        assert 0 < facts["coherence"] <= 1
        assert 0 <= facts["crossing"] <= 1
    else:
        assert facts["n_shown"] == 5


@pytest.mark.parametrize("page", ["noisy.png", "there.html"])
def test_page__is_refused_before_any_work(made, page):
    folder = made["denoise"][0].parent
    (folder / "there.html").write_text("mine")
    words = [str(folder / w) if "." in w else w for w in COMMANDS["denoise"]]
    words[2] = str(folder / "other.png")
    result = CliRunner().invoke(main, ["denoise", *words, "--report", str(folder / page)])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not (folder / "other.png").exists()
    assert (folder / "there.html").read_text() == "mine"


def test_page__of_ours_is_replaced_only_if_it_is_asked_for(made):
    page = made["denoise"][0]
    folder, before = page.parent, page.read_bytes()
    words = [str(folder / w) if "." in w else w for w in COMMANDS["denoise"]]
    words[2] = str(folder / "third.png")
    words += ["--report", str(page)]
    result = CliRunner().invoke(main, ["denoise", *words])
    assert result.exit_code == 2
    assert "exists already: choose another --report, or give --overwrite" in result.stderr
    assert page.read_bytes() == before
    assert not (folder / "third.png").exists()
    assert CliRunner().invoke(main, ["denoise", *words, "--overwrite"]).exit_code == 0
    assert page.read_bytes() != before


# --- views --------------------------------------------------------------------------------------


def test_view__of_a_large_image_is_the_mean_over_squares(tmp_path, monkeypatch):
    monkeypatch.setattr(views, "MOST", 20)
    monkeypatch.setattr(views, "WINDOW", 16)
    pixels = np.random.default_rng(0).integers(0, 256, (50, 71)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "i.png")
    view = view_image(tmp_path / "i.png")
    assert (view.shape, view.step, view.is_float) == ((50, 71), 4, False)
    assert view.pixels.shape == (13, 18)
    for y, x in ((0, 0), (5, 9), (12, 17)):
        square = pixels[4 * y : 4 * y + 4, 4 * x : 4 * x + 4] / 255
        assert view.pixels[y, x] == pytest.approx(square.mean(), rel=1e-6)


def test_view__of_a_small_image_keeps_its_colors(tmp_path):
    pixels = data.chelsea()[:20, :30]
    Image.fromarray(pixels).save(tmp_path / "i.png")
    np.testing.assert_allclose(view_image(tmp_path / "i.png").pixels, pixels / 255)


def test_view__of_maps_takes_every_so_many_pixels(made, monkeypatch):
    place = made["orientation"][0].with_name("angles.zarr")
    whole = library.open(place)["0"].values
    (angle,) = view_maps(place, [0])
    np.testing.assert_array_equal(angle, whole[0])
    monkeypatch.setattr(views, "MOST", 20)
    monkeypatch.setattr(views, "WINDOW", 12)
    small = list(view_maps(place, [0, 2]))
    np.testing.assert_array_equal(small, whole[[0, 2], ::3, ::3])


def test_page__of_a_large_image_says_how_much_it_is_shrunken(made, monkeypatch):
    monkeypatch.setattr(views, "MOST", 20)
    folder = made["denoise"][0].parent
    words = [str(folder / w) if "." in w else w for w in COMMANDS["reconstruct"]]
    words[3] = str(folder / "again.zarr")
    page = folder / "large.html"
    result = CliRunner().invoke(main, ["reconstruct", *words, "--report", str(page)])
    assert result.exit_code == 0, result.output
    assert json.loads((folder / "large.json").read_text())["size"] == {"y": 48, "x": 56, "step": 3}
    assert "one pixel here is" in page.read_text(encoding="utf-8")
    words = [str(folder / w) if "." in w else w for w in COMMANDS["denoise"]]
    words[2] = str(folder / "again.png")
    result = CliRunner().invoke(
        main, ["denoise", *words, "--report", str(page.with_name("n.html"))]
    )
    assert result.exit_code == 0, result.output
    assert 0 < json.loads((folder / "n.json").read_text())["share"] < 1  # of the whole image
