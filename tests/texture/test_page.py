"""The report of a texture evaluation, made up, in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from skimage import data
from skimage.color import rgb2lab

from dsc.basis import disk_basis
from dsc.errors import DscError
from dsc.report.numbers import look_up
from dsc.report.texture import (
    PLOTS,
    ClassMap,
    ConfusedPair,
    Pictures,
    class_colours,
    write_texture_report,
)
from dsc.report.texture_figures import accuracy_axis, cell_strengths, plot_angles, plot_errors
from dsc.report.texture_images import FIRST_COLOURS, label_shares, paint_map

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
ANGLES = (5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0)
TEXTURES = (data.brick, data.grass, data.gravel)


def texture(rng, size=128):
    picture = TEXTURES[rng.integers(len(TEXTURES))]()
    y, x = rng.integers(0, 512 - size, 2)
    return np.asarray(picture[y : y + size, x : x + size], np.float32) / 255


def some_map(rng, names, true, predicted, diameter=15, size=128):
    """Mostly the true class, in patches, with some of all others."""
    n_labels, inner = len(names), size - diameter + 1
    coarse = rng.integers(0, n_labels, (inner // 8 + 1, inner // 8 + 1))
    labels = np.repeat(np.repeat(coarse, 8, 0), 8, 1)[:inner, :inner]
    labels = np.where(rng.random(labels.shape) < 0.6, names.index(predicted), labels)
    labels[rng.random(labels.shape) < 0.02] = -1
    name = f"{rng.integers(0, 9999):06d}.bmp"
    return ClassMap(name, true, predicted, texture(rng, size), labels, diameter // 2, 1)


def some_atoms(rng, n_labels, n_atoms, diameter):
    mask = disk_basis(diameter).mask
    y, x = np.mgrid[:diameter, :diameter] / diameter
    waves, phase = rng.normal(0, 9, (2, n_labels, n_atoms, 1, 1)), rng.random((n_labels, n_atoms))
    images = np.cos(waves[0] * y + waves[1] * x + 6.28 * phase[..., None, None])
    images += rng.normal(0, 0.3, images.shape)
    return np.where(mask, images, np.nan).astype(np.float32)


def large():
    """(facts, pictures) of 24 classes with 100 atoms each."""
    rng = np.random.default_rng(0)
    names = [f"{kind}{i:03d}" for kind in ("canvas", "carpet", "tile") for i in range(1, 9)]
    wrong = {(3, 5): 7, (8, 2): 4, (20, 21): 2, (0, 23): 1}
    confusion = np.diag([160] * 24)
    for (i, j), count in wrong.items():
        confusion[i, j] += count
        confusion[i, i] -= count
    n_wrong = [0, 1, 0, 4, 6, 2, 1, 0]
    by_angle = [
        {"angle": angle, "n": 480, "accuracy": 1 - many / 480}
        for angle, many in zip(ANGLES, n_wrong, strict=True)
    ]
    pairs = [
        {"true": names[i], "predicted": names[j], "count": count} for (i, j), count in wrong.items()
    ]
    facts = {
        "kind": "dsc texture report",
        "title": "Textures of Outex_tl84 <made up>",
        "suite": "Outex_tl84",
        "data": "Outex_tl84, problem 000: made-up numbers for a test",
        "config": {
            "n_atoms": 100, "diameter": 15, "sparsity": 1, "method": "rotational",
            "patches_per_image": 4000, "stride": 1, "histogram": "both", "n_angles": 60,
            "n_iterations": 10, "update": "ksvd", "seed": 0,
        },
        "label_names": names,
        "n_train": 480,
        "n_test": 3840,
        "accuracy": 3826 / 3840,
        "accuracy_by_angle": by_angle,
        "confusion": confusion.tolist(),
        "confused_pairs": pairs,
        "methods": [
            {"method": "rotational (this run)", "accuracy": 3826 / 3840,
             "setting": "N = 15, M = 100, K = 1, stride 1", "source": "this run"},
            {"method": "LBP, 24 points, radius 3", "accuracy": 0.8312,
             "setting": "scikit-image, uniform, χ² nearest neighbour", "source": "run here"},
            {"method": "Some network", "accuracy": 0.9978,
             "source": "a paper, on Outex_TC_00010: cited, not run"},
            {"method": "Another network", "accuracy": 0.9983, "setting": "",
             "source": "a paper, on Outex_TC_00010: cited, not run"},
        ],
        "seconds": {"total": 1834.25, "learning": 610.5, "labelling": 1190.0, "reading": 33.75},
        "patches_per_second": 41894.2,
        "n_patches_labelled": 49893120,
        "pruned": 0.8734,
        "numerics": {"numpy": "2.3.1", "numba": "0.62.0", "cpu": "Some Processor 9000"},
        "version": "0.4.0",
        "history": [
            (0.02 * scale * (0.6 + 0.4 * np.exp(-np.arange(11) / 2.5))).tolist()
            for scale in rng.uniform(0.3, 2.5, 24)
        ],
    }  # fmt: skip
    pictures = Pictures(
        some_atoms(rng, 24, 100, 15),
        -np.sort(-rng.geometric(0.001, (24, 100)), axis=1),
        [some_map(rng, names, names[i], names[j]) for i, j in [(0, 0), (3, 5), (8, 8), (20, 21)]],
        [
            ConfusedPair(
                pair["true"], pair["predicted"], pair["count"], texture(rng), f"{i:06d}.bmp",
                texture(rng), f"{i + 70:06d}.bmp", texture(rng),
            )
            for i, pair in enumerate(pairs[:3])
        ],
    )  # fmt: skip
    return facts, pictures


def tiny():
    """(facts, pictures) of two classes: no angles, nothing confused, nothing pruned."""
    rng = np.random.default_rng(1)
    facts, _ = large()
    names = ["a", "a rather long name of a class & more"]
    facts |= {
        "title": "Two classes", "suite": "pictures", "label_names": names, "n_train": 4,
        "n_test": 6, "accuracy": 1.0, "accuracy_by_angle": [], "confusion": [[3, 0], [0, 3]],
        "confused_pairs": [], "methods": facts["methods"][:1], "pruned": None,
        "seconds": {"total": 2.5, "learning": 2.0, "labelling": 0.4, "reading": 0.1},
        "history": [[0.01], [0.02]],
    }  # fmt: skip
    facts["methods"][0]["accuracy"] = 1.0
    maps = [replace(some_map(rng, names, "a", "a", 9, 40), stride=1)]
    return facts, Pictures(some_atoms(rng, 2, 4, 9), np.array([[9, 5, 1, 0]] * 2), maps, [])


def look(browser, page, width, scheme):
    """What a browser finds on the page."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    tab = context.new_page()
    requests, messages = [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.goto(page.as_uri(), wait_until="load")
    tab.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    found = SimpleNamespace(
        requests=requests,
        messages=messages,
        width=tab.evaluate("document.documentElement.scrollWidth"),
        outside=tab.evaluate(
            "w => [...document.body.querySelectorAll('*')]"
            ".filter(e => !e.closest('.scroll > *'))"
            ".filter(e => e.getBoundingClientRect().right > w + 1).map(e => e.outerHTML)",
            width,
        ),
        images=tab.evaluate(
            "[...document.images].map(i => [i.complete, i.naturalWidth, i.alt, i.clientWidth])"
        ),
        named=tab.evaluate(
            "[...document.querySelectorAll('[data-name]')]"
            ".map(e => [e.dataset.name, e.dataset.value, e.textContent])"
        ),
        derived=tab.evaluate(
            "[...document.querySelectorAll('[data-derived]')]"
            ".map(e => [e.dataset.derived, e.textContent])"
        ),
        cells=tab.evaluate(
            "[...document.querySelectorAll('table.confusion td.right, table.confusion td.wrong')]"
            ".map(e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor])"
        ),
        title=tab.evaluate("document.querySelector('h1').textContent"),
        text=tab.evaluate("document.body.innerText"),
        rest=tab.evaluate(
            "() => { document.querySelectorAll('[data-name], [data-derived], h1, style')"
            ".forEach(e => e.remove()); return document.body.textContent }"
        ),
    )
    context.close()
    return found


@pytest.fixture(scope="module")
def opened():
    """opened(page, width, scheme): what Chromium finds on it.

    It has a thread of its own, since Playwright allows one session per thread.
    """
    program = shutil.which("chromium")
    if program is None and not os.environ.get("CI"):
        pytest.skip("found no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with ThreadPoolExecutor(1) as thread:
        playwright = thread.submit(sync_playwright().start).result()
        launch = playwright.chromium.launch
        browser = thread.submit(launch, executable_path=program, args=FLAGS).result()
        yield lambda page, width=1280, scheme="light": thread.submit(
            look, browser, page, width, scheme
        ).result()
        thread.submit(browser.close).result()
        thread.submit(playwright.stop).result()


@pytest.fixture(scope="module", params=[large, tiny], ids=["large", "tiny"])
def report(request, tmp_path_factory):
    """(page, facts, pictures)."""
    facts, pictures = request.param()
    return (
        write_texture_report(tmp_path_factory.mktemp("r") / "new", facts, pictures),
        facts,
        pictures,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_page__opens_quietly_from_disk_and_fits(opened, report, width, scheme):
    found = opened(report[0], width, scheme)
    assert found.messages == []
    assert [url for url in found.requests if not url.startswith("data:")] == [report[0].as_uri()]
    assert found.width <= width
    assert found.outside == []


def test_page__is_one_small_file(report):
    text = report[0].read_text(encoding="utf-8")
    assert len(text) < 6e6
    assert "<script" not in text


def test_page__images_are_loaded_and_described(opened, report):
    _, facts, pictures = report
    images = opened(report[0]).images
    strips = len(facts["label_names"]) * (1 + (pictures.atoms.shape[1] > 10))
    plots = 1 + bool(facts["accuracy_by_angle"])
    n_pictures = 2 * len(pictures.maps) + 3 * len(pictures.confused)
    assert len(images) == plots + strips + n_pictures
    assert all(
        complete and natural > 0 and alt and shown for complete, natural, alt, shown in images
    )


def test_page__numbers_are_those_of_the_facts(opened, report):
    _, facts, _ = report
    found = opened(report[0])
    for name, exact, text in found.named:
        value = look_up(facts, name)
        assert json.loads(exact) == value, name
        assert says(text, value), (name, value, text)
    assert found.title == facts["title"]
    names = {name for name, _, _ in found.named}
    expected = {"accuracy", "n_test", "n_train", "n_patches_labelled", "patches_per_second", "data"}
    expected |= {f"config.{key}" for key in facts["config"]}
    expected |= {f"seconds.{key}" for key in facts["seconds"]}
    expected |= {f"numerics.{key}" for key in facts["numerics"]}
    expected |= {f"methods.{i}.accuracy" for i in range(len(facts["methods"]))}
    expected |= {
        f"accuracy_by_angle.{i}.{key}"
        for i, one in enumerate(facts["accuracy_by_angle"])
        for key in one
    }
    expected |= {f"confused_pairs.{i}.count" for i in range(len(facts["confused_pairs"]))}
    assert expected <= names
    counts = {name for name in names if name.startswith("confusion.")}
    some = np.argwhere(facts["confusion"])
    assert counts == {f"confusion.{i}.{j}" for i, j in some}  # only where there are some


def says(text, value):
    """Whether a text shows a value, to the digits that it has."""
    if value is None or isinstance(value, str):
        return text == (value or "none")
    scale = 100 if text.endswith(" %") else 1
    plain = text.removesuffix(" %").replace(",", "")
    if isinstance(value, int) and scale == 1:
        return plain == str(value)
    half = 0.5000001 * 10.0 ** -len(plain.partition(".")[2])
    return abs(float(plain) - scale * value) <= half


def test_page__what_is_computed_is_right(opened, report):
    _, facts, pictures = report
    confusion = np.array(facts["confusion"])
    expected = {
        "confusion": {f"{confusion.trace():,}"},
        "label_names": {str(len(facts["label_names"]))},
        "config.histogram": {"classes and atoms"},
        "seconds.total": {"30.6"},
        "accuracy_by_angle": {"98 %", "100 %"},
    }
    for i, wrong in enumerate([0, 1, 0, 4, 6, 2, 1, 0]):
        expected[f"accuracy_by_angle.{i}"] = {str(wrong)}
    for i, count in enumerate(pictures.count):
        expected[f"count.{i}.most"] = {f"{max(count):,}"}
        expected[f"count.{i}.least"] = {f"{min(count):,}"}
    for i, one in enumerate(pictures.maps):
        expected |= {f"maps.{i}.{key}": {getattr(one, key)} for key in ("name", "true")}
        expected[f"maps.{i}.predicted"] = {one.predicted}
        labelled = one.labels[one.labels >= 0]
        for label in np.unique(labelled):
            share = 100 * np.mean(labelled == label)
            expected[f"maps.{i}.share.{label}"] = {f"{share:.1f} %"}
    for i, one in enumerate(pictures.confused):
        expected[f"confused.{i}.query_name"] = {one.query_name}
        expected[f"confused.{i}.nearest_name"] = {one.nearest_name}
    shown = opened(report[0]).derived
    assert [(name, text) for name, text in shown if text not in expected[name]] == []
    shares = {name for name in expected if ".share." in name}
    assert shares <= {name for name, _ in shown}


def test_page__shows_no_other_number(opened, report):
    assert re.findall(r"\d+", opened(report[0]).rest) == []


def test_page__counts_of_the_confusion_matrix_are_readable(opened, report):
    for scheme in ("light", "dark"):
        cells = opened(report[0], scheme=scheme).cells
        assert len(cells) == np.count_nonzero(report[1]["confusion"])
        assert min(contrast(*map(colour, cell)) for cell in cells) > 4.5  # of the WCAG


def colour(text):
    """RGB in [0, 1] of a computed colour of CSS."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", text)][:3]
    return np.array(numbers) / (1 if text.startswith("color(") else 255)


def contrast(one, other):
    """As in the WCAG."""
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (one, other)]
    low, high = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (high + 0.05) / (low + 0.05)


def test_page__says_what_is_not_there(opened, tmp_path):
    text = opened(write_texture_report(tmp_path / "tiny", *tiny())).text
    assert "Nothing was confused" in text
    assert "angles of the test pictures are not known" in text
    assert "pruned" not in text
    text = opened(write_texture_report(tmp_path / "large", *large())).text
    assert "Nothing was confused" not in text
    assert "not known" not in text


def test_methods__cited_ones_are_marked(tmp_path):
    facts, pictures = large()
    facts["methods"][3]["source"] = "a paper, on Outex_tl84: cited"
    text = write_texture_report(tmp_path, facts, pictures).read_text(encoding="utf-8")
    table = text[text.index("Beside other methods") : text.index("Confusion matrix")]
    rows = [
        (kind, row.count(">cited<"), row.count(">another data set<"))
        for kind, row in re.findall(r'<tr class="(ours|compared|cited)">(.*?)</tr>', table)
    ]
    assert rows == [("ours", 0, 0), ("compared", 0, 0), ("cited", 1, 1), ("cited", 1, 0)]


def test_report__files_are_there_and_replaced_but_nothing_else_is(tmp_path):
    write_texture_report(tmp_path, *large())
    names = {path.name for path in tmp_path.iterdir()}
    plots = {f"{name}.{kind}" for name in PLOTS for kind in ("png", "svg")}
    assert names == {"index.html", "report.json"} | plots
    (tmp_path / "notes.txt").write_text("mine")
    facts, pictures = tiny()
    write_texture_report(tmp_path, facts, pictures)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == facts
    names = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in names
    assert not {"angles.png", "pairs.svg"} & names  # of the report before
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_texture_report(tmp_path, facts, pictures)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["index.html", "report.json", "maps.png"])
def test_report__overwrites_nothing_that_is_not_its_own(tmp_path, name):
    (tmp_path / name).write_text('{"kind": "dsc report"}')
    with pytest.raises(DscError, match="is no texture report of dsc; it is not overwritten"):
        write_texture_report(tmp_path, *tiny())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_report__names_all_that_does_not_fit(tmp_path):
    facts, pictures = tiny()
    facts |= {"kind": "letter", "confusion": [[6]]}
    strange = replace(pictures, confused=large()[1].confused[:1])
    with pytest.raises(DscError) as caught:
        write_texture_report(tmp_path / "new", facts, strange)
    for part in ("1 rows of confusion, need 2", "not in confused_pairs", "kind 'letter'"):
        assert part in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_report__of_large_pictures_and_patches_stays_small(tmp_path):
    facts, pictures = large()
    rng = np.random.default_rng(2)
    noise = rng.random((600, 400), np.float32)
    labels = rng.integers(0, 24, (141, 91))
    maps = [replace(pictures.maps[0], grey=noise, labels=labels, offset=20, stride=4)] * 24
    pairs = [replace(pair, query=noise, nearest=noise) for pair in pictures.confused]
    atoms = rng.normal(size=(24, 100, 41, 41)).astype(np.float32)
    page = write_texture_report(tmp_path, facts, Pictures(atoms, pictures.count, maps, pairs))
    assert page.stat().st_size < 6e6
    assert "Only the most used are drawn" in page.read_text(encoding="utf-8")


def test_colours__are_distinct_and_stay_the_same():
    many = class_colours(24)
    assert (many.shape, many.dtype) == ((24, 3), np.uint8)
    assert (class_colours(7) == FIRST_COLOURS).all()
    assert (class_colours(100)[:24] == many).all()
    lab = rgb2lab(many / 255)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2) + 1000 * np.eye(24)
    assert apart.min() > 20  # 2.3 is just noticeable
    assert len(np.unique(class_colours(100), axis=0)) == 100


@pytest.mark.parametrize(("stride", "diameter"), [(1, 5), (2, 5), (3, 6), (4, 3)])
def test_map__every_patch_is_painted_where_it_is(stride, diameter):
    rng = np.random.default_rng(stride)
    grey = np.zeros((31, 24), np.float32)
    shape = [(size - diameter) // stride + 1 for size in grey.shape]
    labels = rng.integers(-1, 3, shape)
    shown = ClassMap("p", "a", "a", grey, labels, diameter // 2, stride)
    painted = paint_map(shown, class_colours(3))
    assert painted.shape == (31, 24, 4)
    for (i, j), label in np.ndenumerate(labels):
        pixel = painted[diameter // 2 + i * stride, diameter // 2 + j * stride]
        expected = [0, 0, 0, 0] if label < 0 else [*class_colours(3)[label], 255]
        assert pixel.tolist() == expected
    n_clear = (painted[..., 3] == 0).sum()
    assert n_clear >= grey.size - stride**2 * labels.size


def test_shares__leave_out_what_has_no_class():
    labels = np.array([[2, 2, -1], [0, 2, -1]])
    assert label_shares(labels, 4) == [(2, 0.75), (0, 0.25)]
    assert label_shares(np.full((2, 2), -1), 4) == []


@pytest.mark.parametrize(
    ("n", "accuracy", "low"),
    [(480, 1.0, 0.99), (480, 0.9, 0.8), (480, 0.985, 0.98), (5, 1.0, 0.0), (1, 0.0, 0.0)],
)
def test_axis__holds_the_worst_angle_and_some_pictures(n, accuracy, low):
    by_angle = [{"angle": 0.0, "n": 1000, "accuracy": 1.0}]
    by_angle.append({"angle": 9.0, "n": n, "accuracy": accuracy})
    assert accuracy_axis(by_angle) == low
    axes = plot_angles(by_angle, 0.99).axes[0]
    assert axes.get_ylim() == (low, 1)
    lengths = [-bar.get_height() for bar in axes.patches]
    assert lengths == pytest.approx([0, 1 - accuracy])


def test_confusion__a_single_wrong_picture_is_seen_and_none_is_not():
    strength = cell_strengths([[159, 1], [0, 0]])
    assert strength[0, 0] > 0.5
    assert strength[0, 1] > 0.35
    assert (strength[1] == 0).all()


def test_errors__one_line_for_each_class():
    axes = plot_errors([[0.1, 0.05], [0.3, 0.2], []], ["a", "b", "c"]).axes[0]
    lines = [line.get_ydata().tolist() for line in axes.lines]
    assert lines == [[0.1, 0.05], [0.3, 0.2], []]
    assert {text.get_text() for text in axes.texts} == {"a", "b"}
