"""What is written, from which runs, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import dsc
from dsc.cli.report import report as command
from dsc.dictionary import Run, load_dictionary
from dsc.errors import DscError
from dsc.report import write_report
from dsc.report.learn import PLOTS
from dsc.report.sample import find_patches


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_report__has_its_page_its_numbers_and_every_plot_twice(small_run, report):
    plots = {f"{name}.{kind}" for name in PLOTS for kind in ("png", "svg")}
    assert names_in(report[0].parent) == {"index.html", "report.json"} | plots


def test_report__numbers_are_those_of_the_model(small_run, report):
    model, facts = load_dictionary(str(small_run[0])), report[1]
    assert facts["history"] == model.history.tolist()
    assert facts["atoms"]["count"] == sorted(model.count.tolist(), reverse=True)
    assert [int(model.count[m]) for m in facts["atoms"]["order"]] == facts["atoms"]["count"]
    assert facts["patches"]["fingerprint"] == model.patches["fingerprint"]
    assert facts["configuration"]["n_angles"] == 24
    assert facts["sample"]["mse"] == pytest.approx(model.mse, rel=1e-4)
    assert facts["time"]["n_passes"] == 4
    assert [one["kind"] for one in facts["time"]["passes"]] == [
        "first",
        "update",
        "update",
        "final",
    ]


@pytest.mark.parametrize("basis", ["annular", "pixels"])
def test_report__coding_all_patches_gives_the_error_of_the_run(small_run, tmp_path, basis):
    model = dsc.learn(str(small_run[1]), 5, 2, n_iterations=1, basis=basis, run=tmp_path / "run")
    facts = write_report(tmp_path / "run")
    sample = facts["sample"]
    assert sample["is_all"]
    assert sample["mse"] == pytest.approx(model.mse, rel=1e-4)
    assert sample["n_used"] == facts["atoms"]["total"] == sum(sample["angles"])
    assert ("angles.png" in names_in(tmp_path / "run" / "report")) == (basis != "pixels")


def test_report__examples_and_worst_are_coded_as_told(small_run, report):
    model, source = load_dictionary(str(small_run[0])), dsc.open_patches(small_run[1])
    images = model.basis.to_image(source.pixels(0, source.n_patches), fill=0)
    codes = model.encode(images).codes
    missed = np.nansum((images - model.decode(codes)) ** 2, axis=(1, 2))
    errors = missed / model.basis.n_pixels
    sample = report[1]["sample"]
    for entry in sample["examples"] + sample["worst"]:
        assert entry["error"] == pytest.approx(errors[entry["patch"]], rel=1e-3)
        assert entry["left"] == pytest.approx(missed[entry["patch"]], rel=1e-3)  # unit norm
    assert sample["worst"][0]["patch"] == errors.argmax()
    worst = [entry["error"] for entry in sample["worst"]]
    assert worst == sorted(worst, reverse=True)
    places = [(entry["image"], entry["y"], entry["x"]) for entry in sample["worst"]]
    for i, (image, y, x) in enumerate(places):
        assert all(
            p != image or max(abs(y - v), abs(x - u)) >= source.diameter for p, v, u in places[:i]
        )


def test_report__says_that_the_patch_set_is_gone_and_shows_the_rest(copied_run):
    run, patches = copied_run
    shutil.rmtree(patches)
    facts = write_report(run)
    text = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert facts["sample"] is None
    assert "cannot be opened at old/patches.zarr" in text
    assert text.count('alt="atom ') == 7
    gone = {"examples.png", "worst.svg", "angles.png"}
    assert not gone & names_in(run / "report")  # of the report before


def test_report__says_that_the_patch_set_is_damaged_and_shows_the_rest(copied_run):
    run, patches = copied_run
    shutil.rmtree(patches / "images" / "stack_00000" / "c")
    facts = write_report(run)
    assert facts["sample"] is None
    assert "The patches cannot be read" in facts["sample_missing"]


def test_find_patches__does_not_take_another_patch_set(copied_run):
    run, patches = copied_run
    shutil.rmtree(patches)
    dsc.extract_patches(np.eye(40), patches, dsc.PatchConfig(diameter=9))
    found = find_patches(Run(run), load_dictionary(str(run)))
    assert found == "The patch set at old/patches.zarr is not the one that the run learned from."


def test_report__of_a_run_of_arrays(tmp_path):
    rng = np.random.default_rng(0)
    dsc.learn(rng.normal(size=(300, 7, 7)), 3, 1, n_iterations=1, run=tmp_path / "run")
    facts = write_report(tmp_path / "run")
    assert facts["patches"]["path"] is None
    assert "learned from an array" in (tmp_path / "run/report/index.html").read_text(
        encoding="utf-8"
    )


def test_report__refuses_an_unfinished_run_and_what_is_no_run(copied_run, tmp_path):
    shutil.rmtree(copied_run[0] / "report")
    (copied_run[0] / "model.zarr" / "manifest.json").unlink()
    with pytest.raises(DscError, match="not finished: continue it with `dsc learn --resume`"):
        write_report(copied_run[0])
    with pytest.raises(DscError, match="need a run folder"):
        write_report(tmp_path / "nothing")
    assert not (copied_run[0] / "report").exists()


def test_report__again_replaces_its_own_with_the_same_bytes(copied_run):
    run = copied_run[0]
    before = {path.name: path.read_bytes() for path in (run / "report").iterdir()}
    (run / "report" / "notes.txt").write_text("mine")
    write_report(run)
    assert (run / "report" / "notes.txt").read_text() == "mine"
    (run / "report" / "notes.txt").unlink()
    assert {path.name: path.read_bytes() for path in (run / "report").iterdir()} == before


def test_report__escapes_names(copied_run):
    run = copied_run[0].rename(copied_run[0].with_name('<b>&"run"'))
    write_report(run)
    text = (run / "report" / "index.html").read_text(encoding="utf-8")
    assert "<b>" not in text
    assert "<title>Run &lt;b&gt;&amp;&#34;run&#34;</title>" in text


@pytest.mark.parametrize("name", ["page.html", "page.json", "page-atoms.png"])
def test_report__overwrites_nothing_that_is_not_its_own(copied_run, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text('{"kind": "letter"}')
    with pytest.raises(DscError, match="is no part of a dsc report; it is not overwritten"):
        write_report(copied_run[0], tmp_path / "out" / "page.html")
    assert names_in(tmp_path / "out") == {name}


def test_report__out_must_be_html(copied_run, tmp_path):
    with pytest.raises(DscError, match=r"need a file that ends in \.html"):
        write_report(copied_run[0], tmp_path / "page.pdf")


def test_command__writes_where_it_is_told(copied_run, tmp_path):
    shutil.rmtree(copied_run[0] / "report")
    out = tmp_path / "out" / "page.html"
    done = CliRunner().invoke(command, [str(copied_run[0]), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["out"] == str(out)
    assert {"page.html", "page.json", "page-atoms.svg"} <= names_in(out.parent)
    assert facts["history"] == json.loads(out.with_suffix(".json").read_text())["history"]
    assert not (copied_run[0] / "report").exists()


def test_overwrite__takes_the_report_of_the_earlier_run_away_and_nothing_else(copied_run):
    folder = copied_run[0]
    write_report(folder)
    (folder / "report" / "thesis.tex").write_text("do not lose me")
    patches = np.random.default_rng(0).random((300, 7, 7), dtype=np.float32)
    dsc.learn(patches, 2, 1, n_iterations=1, run=folder, overwrite=True)
    assert [path.name for path in (folder / "report").iterdir()] == ["thesis.tex"]


def test_report__takes_nothing_away_that_another_page_wrote(copied_run, tmp_path):
    write_report(copied_run[0], tmp_path / "page.html")
    shutil.copy(tmp_path / "page.json", tmp_path / "two.json")
    before = {path.name for path in tmp_path.iterdir()}
    write_report(copied_run[0], tmp_path / "two.html")
    assert {path.name for path in tmp_path.iterdir()} > before


@pytest.mark.parametrize("files", [None, [5, "../../x", "/x"], "x"])
def test_report__of_strange_files_is_replaced(copied_run, files):
    numbers = copied_run[0] / "report" / "report.json"
    facts = json.loads(numbers.read_text())
    numbers.write_text(json.dumps({**facts, "files": files}))
    for path in numbers.parent.glob("*.[ps][nv]g"):
        path.unlink()
    assert write_report(copied_run[0])["kind"] == facts["kind"]
