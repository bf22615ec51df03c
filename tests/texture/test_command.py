"""`dsc texture`: fit, predict, evaluate, as commands and as a process that is killed."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import dsc as library
from dsc.cli.main import main
from dsc.engine import open_engine
from dsc.estimators import ALIASES
from dsc.experiments.textures import CLASSES, write_suite
from dsc.files import from_toml
from dsc.report import paper
from dsc.texture import Benchmark, Evaluation, label_indices
from dsc.texture import histograms as features
from dsc.texture.dataset import read_inputs
from dsc.texture.neighbours import chi_square
from dsc.texture.outex import read_suite

OPTIONS = {"n_atoms": 2, "diameter": 7, "n_iterations": 2, "patches_per_image": 100, "stride": 3}


def words_of(options):
    return [str(w) for name, v in options.items() for w in ("--" + name.replace("_", "-"), v)]


WORDS = words_of(OPTIONS)


def classifier(**options):
    """The library's, from the options of the command."""
    return library.TextureClassifier(**{ALIASES.get(n, n): v for n, v in options.items()})


def dsc(*words):
    """The result of a command, run in this process."""
    return CliRunner().invoke(main, [str(word) for word in words])


def ask(*words):
    """The JSON of a command that must succeed with exactly that on stdout."""
    result = dsc(*words, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """12 training images, 12 turned test images."""
    folder = tmp_path_factory.mktemp("drawn") / "suite"
    return write_suite(folder, n_train=3, n_test=1, angles=(0, 30, 90), size=48)


@pytest.fixture(scope="module")
def class_folders(suite, tmp_path_factory):
    """The same images as folders of classes: train/CLASS/…, test/CLASS/…"""
    folder = tmp_path_factory.mktemp("folders")
    for part in ("train", "test"):
        for sample in getattr(read_suite(suite), part):
            (folder / part / sample.label).mkdir(parents=True, exist_ok=True)
            shutil.copy(sample.path, folder / part / sample.label)
    return folder


@pytest.fixture(scope="module")
def fitted(suite, tmp_path_factory):
    """(run, summary) of `dsc texture fit`."""
    run = tmp_path_factory.mktemp("fit") / "run"
    return run, ask("texture", "fit", suite, "--out", run, *WORDS)


@pytest.fixture(scope="module")
def evaluated(suite, tmp_path_factory):
    """(run, summary) of `dsc texture evaluate`; not to be changed."""
    run = tmp_path_factory.mktemp("evaluate") / "run"
    return run, ask("texture", "evaluate", suite, "--out", run, *WORDS)


# --- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fit", "predict", "evaluate"])
def test_help__names_the_options_of_every_command(name):
    result = dsc("texture", name, "--help")
    assert result.exit_code == 0
    promised = ["--json", "--scheduler"]
    if name != "predict":
        promised += ["--out", "--resume", "--diameter", "--n-atoms", "--sparsity", "--stride"]
        promised += ["--patches-per-image", "--method", "--config", "--classes"]
    for option in promised:
        assert option in result.stdout


# --- fit ----------------------------------------------------------------------------------------


def test_fit__summary_is_that_of_the_library(fitted, suite):
    _, summary = fitted
    model = classifier(**OPTIONS).fit(suite).model_
    assert summary["atoms_sha256"] == model.sha256
    assert summary["classes"] == list(CLASSES)
    assert summary["n_images"] == 12
    assert summary["seconds"] > 0


def test_fit__every_option_reaches_the_library(suite, tmp_path):
    options = {
        "n_atoms": 3, "diameter": 9, "sparsity": 2, "method": "augmented", "n_angles": 1,
        "patches_per_image": 50, "stride": 4, "n_iterations": 1, "update": "mod",
    }  # fmt: skip
    ask("texture", "fit", suite, "-o", tmp_path / "run", *words_of(options), "--seed", 5)
    params = library.TextureClassifier.load(tmp_path / "run").get_params()
    expected = {ALIASES.get(n, n): v for n, v in {**options, "seed": 5}.items()}
    assert params.items() >= expected.items()


def test_fit__takes_one_folder_per_class(class_folders, fitted, tmp_path):
    found = ask("texture", "fit", class_folders / "train", "--out", tmp_path / "run", *WORDS)
    assert found["atoms_sha256"] == fitted[1]["atoms_sha256"]


def test_fit__resume_of_a_finished_run_is_that_run(fitted, suite, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(fitted[0], run)
    monkeypatch.setattr(features, "label_part", None)  # whoever calls it fails
    found = ask("texture", "fit", suite, "--out", run, *WORDS, "--resume")
    assert found["atoms_sha256"] == fitted[1]["atoms_sha256"]


def test_fit__plain_output_says_the_result_and_what_comes_next(suite, tmp_path):
    result = dsc("texture", "fit", suite, "--out", tmp_path / "run", *WORDS)
    assert result.exit_code == 0
    assert "4 classes from 12 images" in result.stdout
    assert f"dsc texture predict {tmp_path / 'run'}" in " ".join(result.stdout.split())
    assert re.search(r"^iteration 1 of 2: .* of the energy left, mse", result.stderr, re.M)
    assert re.search(r"^labelled 12 of 12 images", result.stderr, re.M)


# --- predict ------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["", "model.zarr"])
def test_predict__is_that_of_the_library(fitted, suite, which):
    paths = [sample.path for sample in read_suite(suite).test]
    found = ask("texture", "predict", fitted[0] / which, *paths)
    expected = library.TextureClassifier.load(fitted[0])
    assert found["n_images"] == 12
    assert [row["image"] for row in found["predictions"]] == [path.name for path in paths]
    assert [row["label"] for row in found["predictions"]] == expected.predict(paths).tolist()
    distances = [row["distance"] for row in found["predictions"]]
    np.testing.assert_allclose(distances, expected.distances(paths).min(1), atol=1e-9)


def test_predict__takes_folders_and_globs(fitted, suite):
    whole = ask("texture", "predict", fitted[0], suite / "images")
    assert whole["n_images"] == 24
    some = ask("texture", "predict", fitted[0], suite / "images" / "00001*.png")
    assert some["predictions"] == whole["predictions"][10:20]


def test_predict__plain_output_has_a_line_per_image(fitted, suite):
    result = dsc("texture", "predict", fitted[0], suite / "images" / "000000.png")
    assert re.search(r"^000000\.png\s+dashes", result.stdout, re.M)


def test_predict__features_that_are_noted_are_not_counted_again(
    fitted, suite, tmp_path, monkeypatch
):
    images, log = suite / "images", tmp_path / "features.jsonl"
    few = ask("texture", "predict", fitted[0], *sorted(images.iterdir())[:3], "--features", log)
    whole = ask("texture", "predict", fitted[0], images, "--features", log)
    assert whole["predictions"][:3] == few["predictions"]
    assert len(log.read_text(encoding="utf-8").splitlines()) == 1 + whole["n_images"]
    monkeypatch.setattr(features, "label_part", None)
    again = ask("texture", "predict", fitted[0], images, "--features", log)
    assert again["predictions"] == whole["predictions"]


def test_predict__maps_are_images_of_the_classes(fitted, suite, tmp_path):
    paths = [sample.path for sample in read_suite(suite).test[:3]]
    ask("texture", "predict", fitted[0], *paths, "--maps", tmp_path / "maps")
    maps = sorted((tmp_path / "maps").rglob("*.png"))
    assert len(maps) == 3
    model = library.TextureClassifier.load(fitted[0])
    for path, file in zip(paths, maps, strict=True):
        assert path.stem in file.name
        drawn = np.asarray(Image.open(file).convert("RGB")).astype(int)
        labels = model.label_map(np.asarray(Image.open(path)))
        assert drawn.shape == (48, 48, 3)
        np.testing.assert_array_equal(drawn.sum(2) == 0, labels == -1)
        colours = {label: np.unique(drawn[labels == label], axis=0) for label in range(4)}
        assert all(len(found) <= 1 for found in colours.values())
        shown = np.concatenate(list(colours.values()))
        assert len(np.unique(shown, axis=0)) == len(shown) == len(np.unique(labels[labels >= 0]))


def test_predict__an_existing_map_is_refused_before_anything_is_labelled(
    fitted, suite, tmp_path, monkeypatch
):
    path = sorted((suite / "images").iterdir())[0]
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / f"{path.name}.png").write_text("mine")
    monkeypatch.setattr(features, "label_part", None)  # whoever calls it fails
    result = dsc("texture", "predict", fitted[0], path, "--maps", tmp_path / "maps")
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert (tmp_path / "maps" / f"{path.name}.png").read_text() == "mine"


def test_predict__images_of_the_same_name_have_maps_of_their_own(fitted, suite, tmp_path):
    for folder, number in (("a", 0), ("b", 1)):
        (tmp_path / folder).mkdir()
        shutil.copy(read_suite(suite).test[number].path, tmp_path / folder / "x.png")
    paths = [tmp_path / "a" / "x.png", tmp_path / "b" / "x.png"]
    ask("texture", "predict", fitted[0], *paths, "--maps", tmp_path / "maps")
    maps = sorted((tmp_path / "maps").rglob("*.png"))
    assert len(maps) == 2
    assert maps[0].read_bytes() != maps[1].read_bytes()


# --- evaluate -----------------------------------------------------------------------------------


def test_evaluate__summary_has_what_was_promised(evaluated, fitted):
    _, summary = evaluated
    assert summary.keys() >= {"accuracy", "accuracy_by_angle", "n_test", "seconds", "atoms_sha256"}
    assert summary["accuracy"] >= 11 / 12
    assert summary["n_test"] == 12
    assert summary["seconds"] > 0
    assert summary["patches_per_second"] > 0
    assert 0 < summary["pruned"] < 1
    assert summary["atoms_sha256"] == fitted[1]["atoms_sha256"]


def test_evaluate__accuracy_by_angle_adds_up(evaluated):
    _, summary = evaluated
    rows = summary["accuracy_by_angle"]
    assert [row["angle"] for row in rows] == [0, 30, 90]
    total = sum(row["n"] * row["accuracy"] for row in rows)
    assert sum(row["n"] for row in rows) == 12
    assert total / 12 == pytest.approx(summary["accuracy"])


def test_evaluate__accuracy_is_that_of_the_library(evaluated, suite):
    model = library.TextureClassifier.load(evaluated[0])
    samples = read_suite(suite).test
    truth = [sample.label for sample in samples]
    assert model.score([s.path for s in samples], truth) == evaluated[1]["accuracy"]


def test_evaluate__writes_a_report(evaluated):
    run, summary = evaluated
    page = (run / "report" / "index.html").read_text(encoding="utf-8")
    for name in CLASSES:
        assert name in page
    facts = json.loads((run / "report" / "report.json").read_text(encoding="utf-8"))
    assert facts["accuracy"] == summary["accuracy"]


def test_evaluate__lbp_is_a_row_beside_it_or_not(evaluated, suite, tmp_path):
    assert any("LBP" in row["method"] for row in evaluated[1]["methods"])
    words = ["--out", tmp_path / "run", *WORDS, "--no-lbp"]
    without = ask("texture", "evaluate", suite, *words)
    assert not any("LBP" in row["method"] for row in without["methods"])
    assert without["accuracy"] == evaluated[1]["accuracy"]


def test_evaluate__the_suite_of_the_paper_has_its_rows_cited(
    suite, evaluated, tmp_path, monkeypatch
):
    outex = tmp_path / "Outex_TC_00010"
    shutil.copytree(suite, outex)
    facts = json.loads((evaluated[0] / "report" / "report.json").read_text(encoding="utf-8"))
    for size, n in (
        ("CLASSES", len(CLASSES)),
        ("TRAIN", facts["n_train"]),
        ("TEST", facts["n_test"]),
    ):
        monkeypatch.setattr(paper, size, n)
    result = dsc("texture", "evaluate", outex, "--out", tmp_path / "run", *WORDS, "--no-lbp")
    assert result.exit_code == 0, result.output
    cited = [line for line in result.stdout.splitlines() if "cited, not run" in line]
    accuracies = [line.split("  ")[1].strip() for line in cited]
    assert accuracies[:4] == ["1.0000", "0.4432", "0.5635", "0.5471"]
    assert len(accuracies) == 39
    assert all("Outex_TC_00010" in line for line in cited)
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count('<tr class="cited">') == 39


def test_evaluate__other_histograms_have_other_neighbours(suite):
    options = {**OPTIONS, "n_iterations": 0, "stride": 9}  # few patches, poor atoms
    model = classifier(**options).fit(suite).model_
    test = read_inputs(suite, part="test")
    with open_engine("synchronous") as engine:
        prediction = model.predict(test.images, engine)
    data = Benchmark("drawn", read_inputs(suite), test)
    done = Evaluation(data, model, label_indices(test, model.label_names), prediction, {})
    found = {one.model.config.histogram: one for one in (done, *done.with_other_histograms())}
    assert list(found) == ["both", "classes", "atoms"]
    for kind, one in found.items():
        alone = classifier(**options, histogram=kind).fit(suite)
        shares = alone.transform([sample.path for sample in read_suite(suite).test])
        nearest = chi_square(shares, alone.model_.histograms).argmin(1)
        np.testing.assert_array_equal(one.prediction.neighbours, nearest)
    assert len({tuple(one.prediction.neighbours) for one in found.values()}) == 3


def test_evaluate__other_histograms_are_rows_beside_it(evaluated, suite):
    rows = evaluated[1]["methods"][:3]
    names = [row["method"].split("histograms of ")[1] for row in rows]
    assert names == ["classes and atoms", "classes", "atoms"]
    for row, histogram in zip(rows, ("both", "classes", "atoms"), strict=True):
        alone = classifier(**OPTIONS, histogram=histogram).fit(suite)
        assert row["accuracy"] == alone.score(suite)


@pytest.mark.parametrize("kind", ["class-nearest", "svm"])
def test_evaluate__with_another_classifier_is_that_of_the_library(suite, tmp_path, kind):
    words = ["--out", tmp_path / "run", *WORDS, "--no-lbp", "--classifier", kind]
    found = ask("texture", "evaluate", suite, *words)
    assert found["accuracy"] == classifier(**OPTIONS, classifier=kind).fit(suite).score(suite)
    assert f", {kind}, norm one" in found["methods"][0]["setting"]
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    said = {"class-nearest": "three nearest training images", "svm": "support vector machine"}
    assert said[kind] in page
    rows = ask("texture", "predict", tmp_path / "run", suite / "images")["predictions"]
    assert all(0.25 <= row["probability"] <= 1 for row in rows)


def test_evaluate__another_run_is_a_row_beside_it(evaluated, suite, tmp_path):
    words = ["--out", tmp_path / "run", *WORDS, "--method", "standard", "--no-lbp"]
    found = ask("texture", "evaluate", suite, *words, "--compare", evaluated[0])
    assert found["accuracy"] <= evaluated[1]["accuracy"] - 0.2
    beside = [row for row in found["methods"] if "rotational" in row["method"]]
    assert [row["accuracy"] for row in beside] == [evaluated[1]["accuracy"]]
    assert found["pruned"] is None


def test_evaluate__folders_of_classes_with_test(class_folders, evaluated, tmp_path):
    words = ["--test", class_folders / "test", "--out", tmp_path / "run", *WORDS, "--no-lbp"]
    found = ask("texture", "evaluate", class_folders / "train", *words)
    for name in ("accuracy", "n_test", "atoms_sha256"):
        assert found[name] == evaluated[1][name]
    assert found["accuracy_by_angle"] == []
    config = ["--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again"]
    again = ask("texture", "evaluate", class_folders / "train", *config)
    assert again["atoms_sha256"] == found["atoms_sha256"]
    assert again["n_test"] == 12


def test_evaluate__a_fitted_model_on_test_images(
    fitted, suite, class_folders, evaluated, tmp_path, monkeypatch
):
    from dsc.texture import fit as learning

    monkeypatch.setattr(learning, "advance", None)  # whoever learns fails
    words = ["texture", "evaluate", "--model", fitted[0], "--out", tmp_path / "run"]
    result = dsc(*words, "--test", class_folders / "test", "--json")
    assert "not compared with LBP: the training images are not at hand" in result.stderr
    found = json.loads(result.stdout)
    for name in ("accuracy", "n_test", "n_train", "atoms_sha256", "confused_pairs"):
        assert found[name] == evaluated[1][name]
    rows = [row["method"] for row in found["methods"]]
    assert not any("LBP" in name for name in rows)  # which would need training images
    assert len(rows) == 3
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert "before this run" in page
    rows = ask("texture", "predict", tmp_path / "run", suite / "images")["predictions"]
    assert rows == ask("texture", "predict", fitted[0], suite / "images")["predictions"]
    other = ask(*words[:4], "--test", suite, "-o", tmp_path / "svm", "--classifier", "svm")
    assert [row["angle"] for row in other["accuracy_by_angle"]] == [0, 30, 90]
    assert library.TextureClassifier.load(tmp_path / "svm").classifier == "svm"
    ask("texture", "evaluate", "--config", tmp_path / "svm" / "run.toml", "-o", tmp_path / "again")
    assert library.TextureClassifier.load(tmp_path / "again").classifier == "svm"


def test_evaluate__a_fitted_model_continues_where_it_was(
    fitted, class_folders, tmp_path, monkeypatch
):
    words = ["texture", "evaluate", "--model", fitted[0], "--test", class_folders / "test"]
    words += ["--out", tmp_path / "run"]
    found = ask(*words)
    shutil.rmtree(tmp_path / "run" / "model.zarr")
    log = tmp_path / "run" / "features.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:5]))
    counted = []
    whole = features.label_part
    monkeypatch.setattr(
        features, "label_part", lambda images, one: counted.extend(images) or whole(images, one)
    )
    again = ask(*words, "--resume")
    assert len(counted) == len(lines) - 5
    assert log.read_bytes().count(b"\n") == len(lines)
    for name in ("accuracy", "confused_pairs", "atoms_sha256"):
        assert again[name] == found[name]
    config = ["--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again"]
    assert ask("texture", "evaluate", *config)["accuracy"] == found["accuracy"]


def test_evaluate__predictions_are_a_table_and_in_json(fitted, suite, tmp_path):
    file = tmp_path / "predictions.csv"
    words = ["texture", "evaluate", "--model", fitted[0], "--test", suite, "--predictions", file]
    found = ask(*words, "--out", tmp_path / "run")
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    samples = read_suite(suite).test
    paths = [sample.path for sample in samples]
    model = library.TextureClassifier.load(fitted[0])
    assert [row["image"] for row in rows] == [path.name for path in paths]
    assert [row["true"] for row in rows] == [sample.label for sample in samples]
    assert [row["predicted"] for row in rows] == model.predict(paths).tolist()
    distances = [[float(row[f"distance {name}"]) for name in CLASSES] for row in rows]
    np.testing.assert_array_equal(distances, model.distances(paths))
    chances = [float(row["probability"]) for row in rows]
    np.testing.assert_allclose(chances, model.predict_proba(paths).max(1))
    nearest = chi_square(model.transform(paths), model.model_.histograms).argmin(1)
    assert [row["nearest"] for row in rows] == [model.model_.image_names[i] for i in nearest]
    for row, told in zip(rows, found["predictions"], strict=True):
        assert {name: row[name] for name in ("image", "true", "predicted", "nearest")}.items() <= (
            told.items()
        )
        assert list(told["distances"]) == list(CLASSES)
    refused = dsc(*words, "--out", tmp_path / "other")
    assert refused.exit_code == 2
    assert "predictions.csv: exists already" in refused.stderr
    assert not (tmp_path / "other").exists()
    assert "predictions" not in ask(*words[:-2], "--out", tmp_path / "other")


def test_evaluate__split_is_by_class_and_seed(class_folders, tmp_path):
    words = [class_folders / "train", "--split", 0.6, *WORDS, "--no-lbp"]
    found = ask("texture", "evaluate", *words, "--out", tmp_path / "run")
    assert (found["n_train"], found["n_test"]) == (8, 4)
    learned = library.TextureClassifier.load(tmp_path / "run").model_
    assert np.bincount(learned.image_label).tolist() == [2, 2, 2, 2]
    other = ask("texture", "evaluate", *words, "--out", tmp_path / "other", "--seed", 1)
    assert other["n_test"] == 4
    names = library.TextureClassifier.load(tmp_path / "other").model_.image_names
    assert set(names) != set(learned.image_names)
    again = ["--config", tmp_path / "run" / "run.toml", "--out", tmp_path / "again"]
    assert ask("texture", "evaluate", words[0], *again)["atoms_sha256"] == found["atoms_sha256"]


def test_evaluate__classes_are_a_part_of_the_suite(suite, evaluated, tmp_path):
    words = ["--classes", "wide", "--classes", "mesh", "--out", tmp_path / "run", "--no-lbp"]
    found = ask("texture", "evaluate", suite, *words, *WORDS)
    assert (found["n_train"], found["n_test"]) == (6, 6)
    model = library.TextureClassifier.load(tmp_path / "run").model_
    assert model.label_names == ("mesh", "wide")
    whole = library.TextureClassifier.load(evaluated[0]).model_
    np.testing.assert_array_equal(model.scales[0].atoms, whole.scales[0].atoms[[1, 3]])


def test_evaluate__config_repeats_the_run(evaluated, suite, tmp_path):
    run, summary = evaluated
    words = ["--config", run / "run.toml", "--out", tmp_path / "run"]
    again = ask("texture", "evaluate", suite, *words)
    assert again["atoms_sha256"] == summary["atoms_sha256"]
    assert again["accuracy"] == summary["accuracy"]
    assert from_toml(tmp_path / "run" / "run.toml") == from_toml(run / "run.toml")


def test_evaluate__resume_after_the_end_labels_nothing(evaluated, suite, tmp_path, monkeypatch):
    run = tmp_path / "run"
    shutil.copytree(evaluated[0], run)
    monkeypatch.setattr(features, "label_part", None)  # whoever calls it fails
    found = ask("texture", "evaluate", suite, "--out", run, *WORDS, "--resume")
    for name in ("accuracy", "accuracy_by_angle", "n_test", "atoms_sha256"):
        assert found[name] == evaluated[1][name]


def test_evaluate__a_fitted_run_continues_as_an_evaluation(fitted, suite, tmp_path, evaluated):
    run = tmp_path / "run"
    shutil.copytree(fitted[0], run)
    words = ["--out", run, *WORDS, "--no-lbp", "--resume"]
    found = ask("texture", "evaluate", suite, *words)
    assert found["accuracy"] == evaluated[1]["accuracy"]
    assert (run / "report" / "index.html").is_file()


def test_evaluate__same_result_on_processes(evaluated, suite, tmp_path):
    words = ["--out", tmp_path / "run", *WORDS, "--scheduler", "processes", "--n-workers", 2]
    found = ask("texture", "evaluate", suite, *words)
    for name in ("accuracy", "accuracy_by_angle", "atoms_sha256", "methods"):
        assert found[name] == evaluated[1][name]


# --- the store ----------------------------------------------------------------------------------


def test_store__opens_as_a_dataset_and_is_described(evaluated):
    run, summary = evaluated
    opened = library.open(run / "model.zarr")
    assert dict(opened.sizes).items() >= {"label": 4, "atom": 2, "image": 12}.items()
    assert opened["atoms"].dims == ("label", "atom", "coord")
    told = ask("info", run / "model.zarr")
    assert told.items() >= {"kind": "texture", "diameter": 7, "basis": "disk"}.items()
    assert told["atoms_sha256"] == summary["atoms_sha256"]
    assert told["label_names"] == list(CLASSES)
    assert ask("info", run).items() >= {"kind": "run", "finished": True, "n_atoms": 2}.items()


def test_sweep__overwritten_and_resumed_writes_its_pages_again(suite, tmp_path):
    words = ["texture", "sweep", suite, "--out", tmp_path / "s", "--n-atoms", 2, "--diameter", 7]
    words += ["--sparsity", 1, "--method", "rotational", "--n-iterations", 1, "--stride", 9]
    words += ["--patches-per-image", 50, "--repeats", 2, "--held-out", 0.6]
    for start in ([], ["--overwrite"], ["--resume"]):
        result = dsc(*words, *start)
        assert result.exit_code == 0, result.stderr
        names = {path.name for path in (tmp_path / "s" / "report").iterdir()}
        assert names >= {"index.html", "report.json", "table.md", "rotational.png"}


# --- mistakes -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(suite, class_folders, evaluated, tmp_path_factory):
    """A folder with things to get wrong."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(suite, folder / "suite")
    shutil.copytree(evaluated[0], folder / "run")
    shutil.copytree(class_folders / "train", folder / "train")
    shutil.copytree(class_folders / "test", folder / "unknown")
    (folder / "unknown" / "mesh").rename(folder / "unknown" / "marble")
    shutil.copytree(class_folders / "train", folder / "empty")
    (folder / "empty" / "zigzag").mkdir()
    Image.fromarray(np.full((48, 48), 9, np.uint8)).save(folder / "flat.png")
    Image.fromarray(np.arange(25, dtype=np.uint8).reshape(5, 5)).save(folder / "tiny.png")
    shutil.copytree(class_folders / "test", folder / "leak")
    with Image.open(next((class_folders / "train" / "mesh").iterdir())) as image:
        image.save(folder / "leak" / "mesh" / "copy.bmp")  # the same pixels in another file
    shutil.copytree(class_folders / "train", folder / "single")
    for path in sorted((folder / "single" / "mesh").iterdir())[1:]:
        path.unlink()
    (folder / "named").mkdir()
    for path in (class_folders / "train").rglob("*.png"):
        shutil.copy(path, folder / "named" / f"{path.parent.name}_{path.name}")
    shutil.copytree(suite, folder / "leaky")
    images = read_suite(folder / "leaky")
    shutil.copy(images.train[0].path, images.test[1].path)
    shutil.copytree(suite, folder / "torn")
    sorted((folder / "torn" / "images").iterdir())[0].unlink()
    (folder / "notes").mkdir()
    (folder / "notes" / "notes.txt").write_text("mine")
    return folder


MISTAKES = {
    "fit: exists": ("fit {0}/suite --out {0}/run", "run.*another --out"),
    "evaluate: exists": ("evaluate {0}/suite --out {0}/run", "run.*another --out"),
    "fit: not a run": ("fit {0}/suite --out {0}/notes", "notes"),
    "fit: not a run to resume": ("fit {0}/suite --out {0}/notes --resume", "notes"),
    "fit: nothing": ("fit {0}/none --out {0}/new", "none"),
    "fit: no out": ("fit {0}/suite", "--out"),
    "fit: class": ("fit {0}/suite --out {0}/new --classes wise --classes mesh", "wise"),
    "fit: one class": ("fit {0}/suite --out {0}/new --classes wide", "class"),
    "fit: problem": ("fit {0}/suite --out {0}/new --problem 007", "007"),
    "fit: empty class": ("fit {0}/empty --out {0}/new", "zigzag"),
    "fit: missing image": ("fit {0}/torn --out {0}/new", "000000"),
    "fit: method": ("fit {0}/suite --out {0}/new --method turned", "turned"),
    "fit: option": ("fit {0}/suite --out {0}/new --n-atom 3", "--n-atoms"),
    "fit: atoms": ("fit {0}/suite --out {0}/new --n-atoms 0", "n_atoms: found 0"),
    "fit: diameter": ("fit {0}/suite --out {0}/new --diameter 51", "48 × 48"),
    "fit: other options": ("fit {0}/suite --out {0}/run --resume --n-atoms 3", "n_atoms"),
    "evaluate: no test": ("evaluate {0}/train --out {0}/new", "--test"),
    "evaluate: unknown class": (
        "evaluate {0}/train --test {0}/unknown --out {0}/new --n-iterations 0",
        "marble",
    ),
    "evaluate: the same folder": (
        "evaluate {0}/train --test {0}/train --out {0}/new",
        r"12 problems.*dashes/000000\.png: found the same pixels in.* dashes/000000\.png",
    ),
    "evaluate: a copy": (
        "evaluate {0}/train --test {0}/leak --out {0}/new",
        r"1 problem .*mesh/copy\.bmp: found the same pixels",
    ),
    "evaluate: a copy in a suite": (
        "evaluate {0}/leaky --out {0}/new",
        r"1 problem 000004\.png: found the same pixels in the training image 000000\.png",
    ),
    "evaluate: nothing": ("evaluate --out {0}/new --n-atoms 2", "IMAGES.*--model"),
    "evaluate: model and images": (
        "evaluate {0}/train --model {0}/run --test {0}/suite --out {0}/new",
        "model: found images to learn from",
    ),
    "evaluate: model alone": ("evaluate --model {0}/run --out {0}/new", "give them by --test"),
    "evaluate: model and options": (
        "evaluate --model {0}/run --test {0}/suite --out {0}/new --seed 3 --histogram atoms",
        "model: it is fitted, --seed, --n-atoms.* would have no effect",
    ),
    "evaluate: model has seen it": (
        "evaluate --model {0}/run --test {0}/train --out {0}/new @",
        r"12 problems.*dashes/000000\.png: found the same pixels in.* 000000\.png",
    ),
    "evaluate: predictions": (
        "evaluate {0}/suite --out {0}/new --predictions {0}/table.txt",
        r"table\.txt.*ends in \.csv",
    ),
    "evaluate: split of a suite": ("evaluate {0}/suite --split 0.5 --out {0}/new", "split.*alone"),
    "evaluate: split": ("evaluate {0}/train --split 1 --out {0}/new", "split: found 1.*between"),
    "evaluate: split alone": (
        "evaluate {0}/single --split 0.5 --out {0}/new",
        "class mesh: found 1 image, need two",
    ),
    "evaluate: flat folder": (
        "evaluate {0}/named --split 0.5 --out {0}/new",
        r"names of the files seem to carry the class \(dashes, mesh, narrow, wide\): move.*"
        r"such as dashes/dashes_000000\.png",
    ),
    "evaluate: compare": (
        "evaluate {0}/suite --out {0}/new --compare {0}/notes --n-iterations 0",
        "notes",
    ),
    "predict: nothing": ("predict {0}/none {0}/suite/images", "none"),
    "predict: no model": ("predict {0}/notes {0}/suite/images", "notes"),
    "predict: no image": ("predict {0}/run {0}/none.png", r"none\.png"),
    "predict: flat": ("predict {0}/run {0}/flat.png", r"flat\.png.*constant"),
    "predict: tiny": ("predict {0}/run {0}/tiny.png", r"tiny\.png.*5 × 5.*7 × 7"),
    "no command": ("sort", "sort"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes__one_message_and_exit_code_2(place, mistake):
    line, message = MISTAKES[mistake]
    words = line.format(place).split()
    small = {name: v for name, v in OPTIONS.items() if f"--{name.replace('_', '-')}" not in words}
    if words[-1] == "@":  # without options of learning
        words.pop()
    elif words[0] in ("fit", "evaluate"):
        words += words_of(small)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}
    result = dsc("texture", *words)
    assert result.exit_code == 2, result.output + repr(result.exception)
    assert re.search(message, " ".join(result.stderr.split())), result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 24  # one screen
    after = {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}
    assert after == before


# --- as a process -------------------------------------------------------------------------------

SLOW = {
    "n_atoms": 8, "diameter": 11, "sparsity": 3, "n_iterations": 5, "patches_per_image": 300,
    "stride": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(suite, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    return ask("texture", "evaluate", suite, "--out", out, *words_of(SLOW), "--no-lbp")


def has_checkpoint(run):
    return any(run.glob("checkpoints/*/manifest.json"))


def has_features(run):
    path = run / "features.jsonl"
    return path.is_file() and path.read_bytes().count(b"\n") >= 13  # all training images


@pytest.mark.parametrize("reached", [has_checkpoint, has_features])
def test_evaluate__killed_and_resumed_ends_in_the_same_bits(suite, undisturbed, tmp_path, reached):
    run = tmp_path / "run"
    words = ["texture", "evaluate", str(suite), "--out", str(run), *words_of(SLOW), "--no-lbp"]
    command = str(Path(sys.executable).parent / "dsc")
    process = subprocess.Popen(
        [command, *words],
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(6000):
            assert process.poll() is None, "the run ended before it could be killed"
            if reached(run):
                break
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    assert process.returncode == -signal.SIGKILL
    assert not (run / "report" / "report.json").exists()
    found = ask(*words, "--resume")
    for name in ("atoms_sha256", "accuracy", "accuracy_by_angle", "confused_pairs"):
        assert found[name] == undisturbed[name]
    assert ask(*words, "--resume")["accuracy"] == undisturbed["accuracy"]
