"""The report of a texture evaluation, made up, in headless Chromium; class maps as files."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
from skimage import data as textures
from skimage.color import rgb2lab

from dsc.basis import make_basis
from dsc.errors import DscError
from dsc.images import Image
from dsc.report import compared_method, paper, texture, write_maps, write_texture_report
from dsc.report.render import look_up
from dsc.report.texture import PLOTS
from dsc.report.texture_figures import (
    accuracy_axis,
    cell_strengths,
    plot_angles,
    plot_atoms,
    plot_errors,
)
from dsc.report.texture_images import Gallery, choose_images, label_shares
from dsc.texture import (
    Benchmark,
    Curve,
    Dataset,
    Evaluation,
    Method,
    Prediction,
    Scale,
    TextureConfig,
    TextureModel,
    class_colours,
    label_map,
    paint,
)
from dsc.texture.colours import FIRST_COLOURS
from dsc.texture.histograms import Feature
from dsc.texture.labelling import spread

ANGLES = (5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0)
NUMERICS = {"numpy": "2.3.1", "numba": "0.62.0", "cpu": "Some <Processor> 9000"}
OTHERS = (
    Method("LBP, 24 points", "uniform, χ²", 0.8312, "run here", "compared", "made <up>"),
    Method("Some network", "", 0.9978, "a paper", "cited", "Outex_TC_00010"),
    Method("Another network", "", None, "this run, not cited", "cited", "made <up>"),
)


def some_images(rng, labels, size=(128, 128)):
    """Cuts of photographed textures, one for each label."""
    photos = [
        np.asarray(getattr(textures, name)(), np.float32) / 255 for name in ("brick", "grass")
    ]
    images = []
    for number in range(len(labels)):
        photo = photos[rng.integers(2)]
        y, x = (rng.integers(0, 512 - side) for side in size)
        pixels = photo[y : y + size[0], x : x + size[1]]
        images.append(Image(f"{number:06d} & more.bmp", None, size, pixels))
    return tuple(images)


def some_model(rng, config, names, labels):
    """Random atoms, and random counts of training images with these labels."""
    n_labels, n_atoms = len(names), config.n_atoms
    scales = []
    for diameter in config.diameter:
        basis = make_basis(config.basis, diameter)
        atoms = rng.normal(size=(n_labels, n_atoms, basis.n_coords)).astype(np.float32)
        steps = 0.6 + 0.4 * np.exp(-np.arange(config.n_iterations + 1) / 2.5)
        scales.append(
            Scale(
                atoms=atoms / np.linalg.norm(atoms, axis=2, keepdims=True),
                basis=basis,
                history=0.02 * rng.uniform(0.3, 2.5, (n_labels, 1)) * steps,
                atom_count=rng.geometric(0.001, (n_labels, n_atoms)),
            )
        )
    return TextureModel(
        scales=tuple(scales),
        config=config,
        label_names=names,
        patches={},
        numerics=NUMERICS,
        image_count=rng.integers(0, 9, (len(scales), len(labels), n_labels, n_atoms)),
        image_label=np.array(labels),
        image_names=tuple(map(str, range(len(labels)))),
        order="",
    )


def some_evaluation(config, names, truth, predicted, **options):
    """A made-up evaluation with two training images of each class."""
    rng = np.random.default_rng(0)
    known = np.repeat(np.arange(len(names)), 2)
    train = Dataset(
        some_images(rng, known, options.get("size", (128, 128))),
        tuple(names[i] for i in known),
        (None,) * len(known),
    )
    test = Dataset(
        some_images(rng, truth, options.get("size", (128, 128))),
        tuple(names[i] for i in truth),
        options.get("angles", (None,) * len(truth)),
    )
    return Evaluation(
        data=Benchmark(options.get("name", "made <up>"), train, test),
        model=some_model(rng, config, names, known),
        truth=np.array(truth),
        prediction=Prediction(
            features=[
                Feature(tuple(rng.integers(0, 9, len(names) * config.n_atoms)), 900, 900, 0.125)
                for _ in truth
            ],
            histograms=np.ones((len(truth), 1)),
            distances=np.ones((len(truth), len(names))),
            scores=-np.ones((len(truth), len(names))),
            labels=np.array(predicted),
            neighbours=2 * np.array(predicted),
        ),
        seconds=options.get("seconds", {"total": 1834.25, "learning": 610.5, "labelling": 1190.0}),
    )


CLASSES = tuple(f"{kind}{i:03d}" for kind in ("canvas", "carpet", "tile") for i in range(1, 9))
WRONG = {(3, 5): 7, (8, 2): 4, (20, 21): 2, (0, 23): 1} | {(i, i + 1): 1 for i in range(10, 16)}


def large(**options):
    """24 classes with 100 atoms each, 16 test images at 8 angles, 10 pairs confused."""
    truth = np.repeat(np.arange(24), 16)
    predicted = truth.copy()
    for (true, other), count in WRONG.items():
        predicted[16 * true : 16 * true + count] = other
    sizes = {name: options.pop(name, usual) for name, usual in (("diameter", 15), ("stride", 8))}
    config = TextureConfig(n_atoms=100, **sizes)
    return some_evaluation(config, CLASSES, truth, predicted, angles=ANGLES * 48, **options)


def tiny():
    """Two classes: no angles, nothing confused, nothing pruned, few atoms, one pass."""
    names = ("a", "a rather long name of a <class> & more")
    config = TextureConfig(n_atoms=4, diameter=9, method="standard", stride=2, n_iterations=0)
    truth = [0, 0, 0, 1, 1, 1]
    seconds = {"total": 2.5, "learning": 2.0, "labelling": 0.4}
    return some_evaluation(config, names, truth, truth, size=(40, 33), seconds=seconds)


def one_wrong():
    """Three classes, of which one is always taken for another; 13 atoms, so not a whole row."""
    config = TextureConfig(n_atoms=13, diameter=7, stride=4, n_iterations=1)
    return some_evaluation(config, ("a", "b", "c"), [0, 1, 1, 2], [0, 2, 2, 2], size=(30, 50))


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
        bare=tab.evaluate(  # tables that are read without their head
            "[...document.querySelectorAll('table:not(.facts)')]"
            ".filter(e => !e.querySelector('th[scope=col]')).length"
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
def opened(browser):
    """opened(page, width, scheme): what Chromium finds on it."""
    return lambda page, width=1280, scheme="light": look(browser, page, width, scheme)


@pytest.fixture(scope="module", params=[large, tiny, one_wrong], ids=lambda make: make.__name__)
def report(request, tmp_path_factory):
    """(page, facts, evaluation)."""
    evaluation = request.param()
    folder = tmp_path_factory.mktemp("r") / "new"
    return folder / "index.html", write_texture_report(folder, evaluation, OTHERS), evaluation


def text_of(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_page__opens_quietly_from_disk_and_fits(opened, report, width, scheme):
    found = opened(report[0], width, scheme)
    assert found.messages == []
    assert [url for url in found.requests if not url.startswith("data:")] == [report[0].as_uri()]
    assert found.width <= width
    assert found.outside == []
    assert found.bare == 0


def test_page__is_one_small_file(report):
    text = report[0].read_text(encoding="utf-8")
    assert len(text) < 6e6
    assert "<script" not in text


def test_page__escapes_names(report):
    text = report[0].read_text(encoding="utf-8")
    assert "made &lt;up&gt;" in text
    assert "Some &lt;Processor&gt; 9000" in text
    assert not re.search("<(up|class|Processor)>", text)
    assert "& more" not in text


def test_page__images_are_loaded_and_described(opened, report):
    _, facts, evaluation = report
    images = opened(report[0]).images
    strips = len(facts["label_names"]) * (1 + (evaluation.model.config.n_atoms > 10))
    plots = 1 + bool(facts["accuracy_by_angle"])
    n_images = 2 * len(choose_images(evaluation)) + 3 * min(8, len(facts["confused_pairs"]))
    assert len(images) == plots + strips + n_images
    assert all(
        complete and natural > 0 and alt and shown for complete, natural, alt, shown in images
    )


def test_page__numbers_are_those_of_the_json(opened, report):
    page, facts, _ = report
    assert json.loads(page.with_name("report.json").read_text(encoding="utf-8")) == facts
    found = opened(page)
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
    expected |= {
        f"methods.{i}.accuracy"
        for i, row in enumerate(facts["methods"])
        if row["accuracy"] is not None
    }
    expected |= {
        f"accuracy_by_angle.{i}.{key}"
        for i, one in enumerate(facts["accuracy_by_angle"])
        for key in one
    }
    expected |= {f"confused_pairs.{i}.count" for i in range(len(facts["confused_pairs"]))}
    last = len(facts["history"][0]) - 1
    expected |= {f"history.{i}.{j}" for i in range(len(facts["label_names"])) for j in (0, last)}
    assert expected <= names
    counts = {name for name in names if name.startswith("confusion.")}
    some = np.argwhere(facts["confusion"])
    assert counts == {f"confusion.{i}.{j}" for i, j in some}  # only where there are some


def says(text, value):
    """Whether a text shows a value, to the digits that it has."""
    if value is None or isinstance(value, str):
        return text == (value or "none")
    if isinstance(value, bool):
        return text == ("yes" if value else "no")
    if isinstance(value, list):
        return text == ", ".join(map(str, value))
    scale = 100 if text.endswith(" %") else 1
    plain = text.removesuffix(" %").replace(",", "")
    if isinstance(value, int) and scale == 1:
        return plain == str(value)
    half = 0.5000001 * 10.0 ** -len(plain.partition(".")[2])
    return abs(float(plain) - scale * value) <= half


def test_page__what_is_computed_is_right(opened, report):
    _, facts, done = report
    confusion, names = np.array(facts["confusion"]), done.model.label_names
    expected = {
        "confusion": {f"{confusion.trace():,}"},
        "label_names": {str(len(names))},
        "config.histogram": {"classes and atoms"},
        "config.classifier": {
            "the class whose three nearest training images have the nearest histograms on average"
        },
        "seconds.total": {"30.6"},
        "accuracy_by_angle": {"50 %", "100 %"},
    }
    for i, wrong in enumerate([10, 3, 2, 2, 1, 1, 1, 0]):
        expected[f"accuracy_by_angle.{i}"] = {str(wrong)}
    for i, count in enumerate(done.model.scales[0].atom_count):
        expected[f"count.{i}.most"] = {f"{max(count):,}"}
        expected[f"count.{i}.least"] = {f"{min(count):,}"}
    for i, index in enumerate(choose_images(done)):
        image = done.data.test.images[index]
        expected[f"maps.{i}.name"] = {image.name}
        expected[f"maps.{i}.true"] = {names[done.truth[index]]}
        expected[f"maps.{i}.predicted"] = {names[done.prediction.labels[index]]}
        labelled = label_map(done.model.labellers, image)
        for label in np.unique(labelled[labelled >= 0]):
            share = 100 * np.mean(labelled[labelled >= 0] == label)
            expected[f"maps.{i}.share.{label}"] = {f"{share:.1f} %"}
    for i, pair in enumerate(facts["confused_pairs"][:8]):
        first = next(
            index
            for index, (t, p) in enumerate(zip(done.truth, done.prediction.labels, strict=True))
            if (names[t], names[p]) == (pair["true"], pair["predicted"])
        )
        expected[f"confused.{i}.query_name"] = {done.data.test.images[first].name}
        expected[f"confused.{i}.nearest_name"] = {
            done.model.image_names[done.prediction.neighbours[first]]
        }
    shown = opened(report[0]).derived
    assert [(name, text) for name, text in shown if text not in expected[name]] == []
    found = {name for name, _ in shown}
    assert {name for name in expected if ".share." in name or "_name" in name} <= found


@pytest.mark.parametrize("kind", ["neighbours", "learned"])
def test_page__draws_the_curve_and_says_what_it_is(opened, tmp_path, kind):
    lines = {"dictionaries": (0.5, 0.75, 0.9), "LBP": (0.25, 0.5, 0.625)}
    facts = write_texture_report(tmp_path, tiny(), (), Curve(kind, (1, 2, 5), (20, 20, 1), lines))
    found = opened(tmp_path / "index.html")
    named = {name: text for name, _, text in found.named}
    assert [named[f"curve.counts.{i}"] for i in range(3)] == ["1", "2", "5"]
    for number, line in enumerate(facts["curve"]["lines"]):
        for i, accuracy in enumerate(line["accuracy"]):
            assert says(named[f"curve.lines.{number}.accuracy.{i}"], accuracy)
    assert (["curve.n_draws", "20"] in found.derived) == (kind == "neighbours")
    assert re.findall(r"\d+", found.rest) == []
    assert any("number of training images" in alt for _, _, alt, _ in found.images)
    assert found.bare == 0
    assert write_texture_report(tmp_path, tiny())["curve"] is None


def test_page__lists_the_images_that_are_wrong(opened, report):
    _, facts, done = report
    wrong = np.flatnonzero(done.truth != done.prediction.labels)
    assert [row["image"] for row in facts["wrong"]] == [
        done.data.test.images[i].name for i in wrong
    ]
    named = {name: text for name, _, text in opened(report[0]).named}
    for i, row in enumerate(facts["wrong"]):
        for key in ("image", "true", "predicted", "nearest"):
            assert named[f"wrong.{i}.{key}"] == row[key]
        assert says(named[f"wrong.{i}.distance_true"], row["distance_true"])


def test_page__of_very_many_wrong_images_says_how_many(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(texture, "MOST_WRONG", 1)
    write_texture_report(tmp_path, one_wrong())
    found = opened(tmp_path / "index.html")
    assert ["wrong", "2"] in found.derived
    assert not any(name.startswith("wrong.1.") for name, _, _ in found.named)


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
    write_texture_report(tmp_path / "tiny", tiny())
    text = opened(tmp_path / "tiny" / "index.html").text
    assert "Nothing was confused" in text
    assert "angles of the test images are not known" in text
    assert "pruned" not in text
    assert "Cited" not in text
    write_texture_report(tmp_path / "large", large())
    text = opened(tmp_path / "large" / "index.html").text
    assert "Nothing was confused" not in text
    assert "not known" not in text
    assert "The others" in text
    assert "pruned" in text


# --- numbers --------------------------------------------------------------------------------------


def test_facts__are_those_of_the_evaluation(report):
    _, facts, done = report
    config = done.model.config
    options = {**asdict(config), "diameter": list(config.diameter)}
    assert facts["config"] == {**options, "n_angles": 120 if config.n_atoms > 4 else 1}
    assert facts["accuracy"] == np.mean(done.truth == done.prediction.labels)
    assert facts["n_train"] == 2 * len(facts["label_names"])
    assert facts["n_test"] == len(done.truth) == np.sum(facts["confusion"])
    height, width = done.data.train.images[0].shape
    windows = [(size - config.diameter[0]) // config.stride + 1 for size in (height, width)]
    assert facts["n_patches_labelled"] == 900 * len(done.truth) + facts["n_train"] * np.prod(
        windows
    )
    assert facts["patches_per_second"] == 900 / 0.125
    assert sum(pair["count"] for pair in facts["confused_pairs"]) == np.sum(
        done.truth != done.prediction.labels
    )


def test_methods__are_this_run_other_histograms_and_what_is_given(report):
    _, facts, done = report
    rows = facts["methods"]
    assert [row["group"] for row in rows] == ["ours"] + ["compared"] * 3 + ["cited"] * 2
    assert rows[0] == asdict(done.as_method("ours", "this run"))
    others = done.with_other_histograms()
    assert rows[1:3] == [asdict(one.as_method("compared", "the same labels")) for one in others]
    assert rows[3:] == [asdict(method) for method in OTHERS]


def tags(folder):
    """(group, is tagged as cited, as of another data set) of all rows of the table of methods."""
    text = text_of(folder)
    table = text[text.index("Beside other methods") : text.index("Confusion matrix")]
    rows = re.findall(r'<tr class="(ours|compared|cited)">(.*?)</tr>', table, re.S)
    return [(kind, row.count(">cited<"), row.count(">another data set<")) for kind, row in rows]


def test_methods__cited_ones_are_marked_by_their_group_and_suite_alone(tmp_path):
    write_texture_report(tmp_path, one_wrong(), OTHERS)
    mine = [("ours", 0, 0)] + [("compared", 0, 0)] * 3
    assert tags(tmp_path) == [*mine, ("cited", 1, 1), ("cited", 1, 0)]


@pytest.mark.parametrize(
    ("name", "n_missing", "n_cited"),
    [("Outex_TC_00010", 0, len(paper.CITED)), ("Outex_TC_00010", 1, 0), ("Outex_tl84", 0, 0)],
)
def test_methods__the_paper_is_cited_beside_its_own_suite(
    tmp_path, monkeypatch, name, n_missing, n_cited
):
    done = one_wrong()
    for size, n in (("CLASSES", 3), ("TRAIN", 6), ("TEST", len(done.truth) + n_missing)):
        monkeypatch.setattr(paper, size, n)
    facts = write_texture_report(tmp_path, replace(done, data=replace(done.data, name=name)))
    cited = [row for row in facts["methods"] if row["group"] == "cited"]
    assert cited == [asdict(method) for method in paper.CITED][:n_cited]
    assert tags(tmp_path)[3:] == [("cited", 1, 0)] * n_cited


def test_compared_method__is_the_first_row_of_another_report(tmp_path):
    done = one_wrong()
    facts = write_texture_report(tmp_path / "run" / "report", done)
    found = compared_method(tmp_path / "run", done.data)
    expected = {**facts["methods"][0], "source": "the run run", "group": "compared"}
    assert asdict(found) == expected


def test_page__without_training_images_names_the_nearest(opened, tmp_path):
    done = one_wrong()
    done = replace(done, data=replace(done.data, train=None))
    facts = write_texture_report(tmp_path, done)
    assert not facts["is_fitted_here"]
    assert (facts["n_train"], facts["label_names"]) == (6, ["a", "b", "c"])
    found = opened(tmp_path / "index.html")
    assert found.messages == []
    assert "training images were not at hand" in " ".join(found.text.split())
    assert sum("training image, " in alt for _, _, alt, _ in found.images) == 0
    assert dict(found.derived)["confused.0.nearest_name"] == done.model.image_names[4]
    assert compared_method_of(tmp_path, done).accuracy == facts["accuracy"]


def compared_method_of(folder, done):
    """The row of a report in a folder, as another evaluation of the same images sees it."""
    (folder / "run").mkdir()
    (folder / "run" / "report").symlink_to(folder)
    return compared_method(folder / "run", done.data, done.model)


def test_compared_method__refuses_other_images_and_what_is_no_report(tmp_path):
    done = one_wrong()
    write_texture_report(tmp_path / "run" / "report", done)
    fewer = Dataset(*(part[1:] for part in vars(done.data.test).values()))
    for other in (
        replace(done.data, name="other"),
        replace(done.data, test=fewer),
        replace(done.data, train=done.data.test),
        tiny().data,
    ):
        with pytest.raises(DscError, match=r"run is of other images .*need those of this run"):
            compared_method(tmp_path / "run", other)
    (tmp_path / "learn" / "report").mkdir(parents=True)
    (tmp_path / "learn" / "report" / "report.json").write_text('{"kind": "dsc report"}')
    for name in ("none", "learn"):
        with pytest.raises(DscError, match=f"found no report of an evaluation at .*{name}"):
            compared_method(tmp_path / name, done.data)


# --- files ----------------------------------------------------------------------------------------


def test_report__files_are_there_and_replaced_but_nothing_else_is(tmp_path):
    write_texture_report(tmp_path, large(), (), Curve("learned", (1,), (1,), {"ours": (0.5,)}))
    names = {path.name for path in tmp_path.iterdir()}
    plots = {f"{name}.{kind}" for name in PLOTS for kind in ("png", "svg")}
    assert names == {"index.html", "report.json"} | plots
    (tmp_path / "notes.txt").write_text("mine")
    done = tiny()
    write_texture_report(tmp_path, done)
    names = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in names
    assert not {"angles.png", "pairs.svg"} & names  # of the report before
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_texture_report(tmp_path, done)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("name", ["index.html", "report.json", "maps.png"])
def test_report__overwrites_nothing_that_is_not_its_own(tmp_path, name):
    (tmp_path / name).write_text('{"kind": "dsc report"}')
    with pytest.raises(DscError, match="is no part of a dsc texture report; it is not overwritten"):
        write_texture_report(tmp_path, tiny())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_report__of_large_images_and_patches_stays_small(tmp_path):
    done = large(diameter=41, stride=32)
    rng = np.random.default_rng(2)
    noise = [Image(f"{i}", None, (600, 400), rng.random((600, 400), np.float32)) for i in range(40)]
    parts = [
        replace(part, images=tuple(noise[i % 40] for i in range(len(part))))
        for part in (done.data.train, done.data.test)
    ]
    write_texture_report(tmp_path, replace(done, data=Benchmark("noise", *parts)))
    assert (tmp_path / "index.html").stat().st_size < 6e6
    assert "Only the most used are drawn" in text_of(tmp_path)


# --- colours and maps -----------------------------------------------------------------------------


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
def test_map__every_patch_is_painted_at_its_place(stride, diameter):
    rng = np.random.default_rng(stride)
    shape = (31, 24)
    labels = rng.integers(-1, 3, [(size - diameter) // stride + 1 for size in shape])
    painted = paint(spread(labels, shape, diameter // 2, stride), class_colours(3))
    assert painted.shape == (31, 24, 4)
    for (i, j), label in np.ndenumerate(labels):
        pixel = painted[diameter // 2 + i * stride, diameter // 2 + j * stride]
        expected = [0, 0, 0, 0] if label < 0 else [*class_colours(3)[label], 255]
        assert pixel.tolist() == expected
    n_clear = (painted[..., 3] == 0).sum()
    assert n_clear >= 31 * 24 - stride**2 * labels.size


def test_gallery__maps_are_painted_as_they_are_labelled():
    done = one_wrong()
    for one, index in zip(Gallery.of(done).maps, choose_images(done), strict=True):
        image = done.data.test.images[index]
        labels = label_map(done.model.labellers, image)
        np.testing.assert_array_equal(one.painted, paint(labels, class_colours(3)))
        assert one.image.shape == image.shape


def test_gallery__atoms_are_sorted_by_use():
    done = one_wrong()
    model = done.model
    drawn = Gallery.of(done).atoms
    assert [some.shape for some in drawn] == [(13, 7, 7, 2)] * 3
    scale = model.scales[0]
    first = scale.basis.to_image(scale.atoms[2, scale.atom_count[2].argmax()][None])[0]
    np.testing.assert_array_equal(drawn[2][0, ..., 1] == 255, np.isfinite(first))
    grey = drawn[2][0, ..., 0][np.isfinite(first)]
    assert (np.diff(grey[np.argsort(first[np.isfinite(first)])].astype(int)) >= 0).all()


def test_write_maps__a_image_of_colours_for_each(tmp_path):
    model, images = one_wrong().model, one_wrong().data.test.images[:2]
    images = (replace(images[0], name="a/x.png"), replace(images[1], name="b/x.png"))
    write_maps(model, images, tmp_path / "maps")
    files = sorted((tmp_path / "maps").iterdir())
    assert [file.name for file in files] == ["a_x.png.png", "b_x.png.png"]
    colours = np.concatenate([class_colours(3), np.zeros((1, 3), np.uint8)])  # black for −1
    for file, image in zip(files, images, strict=True):
        expected = colours[label_map(model.labellers, image)]
        np.testing.assert_array_equal(np.asarray(PIL.Image.open(file)), expected)


def test_write_maps__refuses_before_anything_is_written(tmp_path):
    model, (one, other, *_) = one_wrong().model, one_wrong().data.test.images
    (tmp_path / f"{other.name}.png").write_text("mine")
    with pytest.raises(DscError, match="exists already"):
        write_maps(model, [one, other], tmp_path)
    with pytest.raises(DscError, match="two images share it"):
        write_maps(model, [one, replace(other, name=one.name)], tmp_path)
    small = Image("small", None, (5, 5), np.zeros((5, 5), np.float32))
    with pytest.raises(DscError, match=r"small: found 5 × 5 pixels, need at least 7 × 7"):
        write_maps(model, [one, small], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{other.name}.png"]


def test_shares__leave_out_what_has_no_class():
    labels = np.array([[2, 2, -1], [0, 2, -1]])
    assert label_shares(labels, 4) == [(2, 0.75), (0, 0.25)]
    assert label_shares(np.full((2, 2), -1), 4) == []


@pytest.mark.parametrize(
    ("n", "accuracy", "low"),
    [(480, 1.0, 0.99), (480, 0.9, 0.8), (480, 0.985, 0.98), (5, 1.0, 0.0), (1, 0.0, 0.0)],
)
def test_axis__holds_the_worst_angle_and_some_images(n, accuracy, low):
    by_angle = [{"angle": 0.0, "n": 1000, "accuracy": 1.0}]
    by_angle.append({"angle": 9.0, "n": n, "accuracy": accuracy})
    assert accuracy_axis(by_angle) == low
    axes = plot_angles(by_angle, 0.99).axes[0]
    assert axes.get_ylim() == (low, 1)
    lengths = [-bar.get_height() for bar in axes.patches]
    assert lengths == pytest.approx([0, 1 - accuracy])


def test_confusion__a_single_wrong_image_is_seen_and_none_is_not():
    strength = cell_strengths([[159, 1], [0, 0]])
    assert strength[0, 0] > 0.5
    assert strength[0, 1] > 0.35
    assert (strength[1] == 0).all()


def test_errors__one_line_for_each_class():
    axes = plot_errors([[0.1, 0.05], [0.3, 0.2], []], ["a", "b", "c"]).axes[0]
    lines = [line.get_ydata().tolist() for line in axes.lines]
    assert lines == [[0.1, 0.05], [0.3, 0.2], []]
    assert {text.get_text() for text in axes.texts} == {"a", "b"}


def test_atoms__a_row_for_each_class_even_of_few_atoms():
    for n_atoms in (1, 13):
        disks = np.full((2, n_atoms, 5, 5, 2), 255, np.uint8)
        axes = plot_atoms(disks, ["a", "b"]).axes[0]
        assert len(axes.images) == 2
        assert {text.get_text() for text in axes.texts} == {"a", "b"}
