"""Every experiment in its quick version, on data that anyone has."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from dsc import DscError
from dsc.cli.main import main
from dsc.experiments import EXPERIMENTS, Options, run_experiment
from dsc.experiments.texture_bins import (
    ATOMS,
    CLASSES,
    DEFAULT,
    HISTOGRAMS,
    all_distances,
    compare,
)
from dsc.experiments.texture_trials import COLUMNS, rotated_middle
from dsc.report import write_result, write_summary
from dsc.texture import histograms_of
from dsc.texture.neighbours import chi_square

DATA = dict.fromkeys(EXPERIMENTS, "cc0") | {"toy": "auto", "net": "synthetic"}


@pytest.fixture(scope="module")
def results():
    """results(name): the quick version, run once."""
    known = {}

    def run(name):
        if name not in known:
            known[name] = run_experiment(name, Options(quick=True, data=DATA[name]))
        return known[name]

    return run


@pytest.fixture(scope="module")
def written(results, tmp_path_factory):
    """written(name): the folder of the quick version, written once."""
    folder = tmp_path_factory.mktemp("experiments")

    def write(name):
        if not (folder / name).exists():
            assert write_result(results(name), folder) == folder / name
        return folder / name

    return write


@pytest.fixture
def dsc_command():
    """dsc_command(*arguments): `dsc experiment`."""
    return lambda *arguments: CliRunner().invoke(main, ["experiment", *map(str, arguments)])


def numbers_in(value):
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers_in(part)]
    if isinstance(value, list):
        return [n for part in value for n in numbers_in(part)]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment__writes_all_its_files(name, results, written):
    result, out = results(name), written(name)
    saved = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert saved["data"] == result.data
    numbers = numbers_in(saved["numbers"])
    assert numbers
    assert all(map(math.isfinite, numbers))
    page = (out / "index.html").read_text(encoding="utf-8")
    table = (out / "table.md").read_text(encoding="utf-8")
    for cell in result.rows[0]:
        assert cell in table
        assert cell in page
    assert page.count("<img") == len(result.figures)
    assert "://" not in page
    for figure in result.figures:
        with Image.open(out / f"{figure}.png") as image:
            assert min(image.size) > 50
        assert (out / f"{figure}.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("name", ["cameraman", "net", "iterations", "angles", "toy"])
def test_experiment__says_in_every_output_what_data_it_ran_on(name, written):
    out = written(name)
    label = {"cc0": "(CC0)", "synthetic": "synthetic", "auto": "synthetic"}[DATA[name]]
    for file in ("result.json", "table.md", "index.html"):
        assert label in (out / file).read_text(encoding="utf-8")


def test_experiment__has_findings_that_are_sentences(results):
    for name in EXPERIMENTS:
        for finding in results(name).findings:
            assert finding.claim in finding.sentence
            assert ("does NOT hold" in finding.sentence) != finding.holds


def test_toy__recovers_the_template(results):
    numbers = results("toy").numbers
    assert numbers["correlation"] >= 0.99
    errors = numbers["relative_error"]
    rotational = errors.pop("rotational M=1, K=2")
    assert rotational < min(errors.values()) / 5


def test_texture_bins__judges_all_histograms_by_the_same_images(results):
    numbers = results("texture-bins").numbers
    assert set(numbers["wrong"]) == set(numbers["error"]) == set(HISTOGRAMS)
    for wrong in numbers["wrong"].values():
        assert tuple(wrong) == COLUMNS
        assert wrong["upright"] <= 12  # chance would be three quarters of 48
        assert max(wrong.values()) <= 36  # of 144
    for error in numbers["error"].values():
        assert 1 > error["1"] >= error["3"] >= 0  # more neighbours help


def test_texture_bins__chooses_the_first_that_is_not_clearly_worse_than_the_best():
    wrong = {
        "far worse": np.array([[1, 1, 1, 1, 1, 0], [1, 1, 0, 1, 1, 0]]),
        "a little worse": np.array([[0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]]),
        "best": np.array([[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]),
    }
    best, chosen, excess = compare(wrong)
    assert (best, chosen) == ("best", "a little worse")
    assert excess["best"] == (0, 0)
    more = np.array([-1, 1, 0, 1, 0, 0])
    assert excess["a little worse"] == (1, pytest.approx(6 * more.std(ddof=1) / np.sqrt(6)))
    assert excess["far worse"][0] == 8 > excess["far worse"][1]


def test_texture_bins__compares_what_the_classifier_uses():
    rng = np.random.default_rng(0)
    some, known = rng.poisson(3, (5, 3, 4)), rng.poisson(3, (7, 3, 4))
    distances = all_distances(some, known)
    for name, kind, weight in (
        (CLASSES, "classes", 0),
        (ATOMS, "atoms", 0),
        (DEFAULT, "both", 1 / 4),
    ):
        joined = chi_square(histograms_of(some[None], kind), histograms_of(known[None], kind))
        np.testing.assert_allclose(distances[name], (1 + weight) * joined, rtol=1e-12)
    squares = [(counts.sum(2) ** 2).astype(float) for counts in (some, known)]
    apart = chi_square(*(square / square.sum(1, keepdims=True) for square in squares))
    np.testing.assert_allclose(distances["0: classes, squares"], apart, rtol=1e-12)


def test_texture_bins__turned_middle_by_a_right_angle_is_exact():
    grey = np.random.default_rng(0).random((40, 40))
    side = 28
    middle = grey[6:34, 6:34]
    np.testing.assert_allclose(rotated_middle(grey, 0), middle, atol=1e-6)
    assert rotated_middle(grey, 90).shape == (side, side)
    np.testing.assert_allclose(rotated_middle(grey, 90), np.rot90(middle), atol=1e-6)


@pytest.mark.parametrize("name", ["cameraman", "net"])
def test_coding__rotational_is_below_standard_at_equal_size(name, results):
    numbers = results(name).numbers
    mse = {(r["kind"], r["n_atoms"], r["sparsity"]): r["mse"] for r in numbers["mse"]}
    settings = {key[1:] for key in mse}
    assert len(settings) == 4
    for setting in settings:
        assert numbers["bound"] < mse["rotational", *setting] < mse["standard", *setting]


def test_coding__leaves_out_the_curve_of_spams_where_it_is_missing(monkeypatch):
    monkeypatch.setattr("dsc.experiments.learning.find_spec", lambda name: None)
    result = run_experiment("net", Options(quick=True, data="synthetic"))
    assert "SPAMS online" not in result.header
    assert any("not installed" in note for note in result.notes)


def test_basis__disk_rotates_better_than_annular(results):
    rows = {(r["diameter"], r["method"]): r for r in results("basis").numbers["rows"]}
    for diameter in (7, 11):
        disk, annular = rows[diameter, "disk"], rows[diameter, "annular"]
        for error in ("error_mean_removed", "error_mean_kept"):
            assert disk[error] < annular[error]
        assert disk["rank"] == disk["n_coords"]
        assert disk["lower_bound"] == pytest.approx(1)
    assert (rows[11, "annular"]["n_pixels"], rows[11, "annular"]["n_coords"]) == (97, 95)


def test_basis__compares_sizes_of_the_disk_basis(results):
    rows = [r for r in results("basis").numbers["rows"] if r["diameter"] == 11]
    disks = [r for r in rows if r["method"].startswith("disk") and "spectrum" not in r["method"]]
    disks.sort(key=lambda r: r["n_coords"])
    assert [r["n_coords"] for r in disks] == [78, 87, 91, 93, 95]
    assert disks[-1]["method"] == "disk"
    losses = [r["projection_loss"] for r in disks]
    assert losses == sorted(losses, reverse=True)  # more coordinates leave less outside
    bessel = next(r for r in rows if r["method"] == "bessel")
    for row in disks:
        assert row["coding_error"] > 0 < row["coding_ms"]
        for error in ("error_mean_removed", "error_brick", "error_cameraman"):
            assert row[error] < bessel[error]


def test_basis__pairs_rotate_better_than_any_orthonormal_basis(results):
    rows = [r for r in results("basis").numbers["rows"] if r["diameter"] == 11]
    pairs = [r for r in rows if r["method"].startswith("pair")]
    best = min(r["error_mean_removed"] for r in rows if r["method"].startswith("disk"))
    errors = [r["error_mean_removed"] for r in pairs]
    assert best > errors[0]
    assert errors == sorted(errors, reverse=True)


def test_angles__turning_lowers_the_error(results):
    for errors in results("angles").numbers["mse"].values():
        assert errors[-1] < errors[0]


def test_iterations__lower_the_error(results):
    for errors in results("iterations").numbers["history"].values():
        assert errors[-1] < errors[0]


def test_rotation_quality__a_lower_cut_off_loses_detail(results):
    errors = results("rotation-quality").numbers["mean_removed"]
    assert errors["steering"] < errors["steering_low"]
    assert errors["steering"] < errors["nearest"]


def test_rotation_speed__steering_is_faster_than_bicubic(results):
    for row in results("rotation-speed").numbers["rows"]:
        assert row["seconds"]["steering_low"] < row["seconds"]["bicubic"]
        assert row["seconds"]["steering"] < row["seconds"]["bicubic"]


def test_summary__has_a_row_for_every_finding(results, tmp_path):
    some = [results("basis"), results("toy")]
    table = write_summary(some, tmp_path)
    assert len(table.splitlines()) == 2 + sum(len(result.findings) for result in some)
    assert table in (tmp_path / "summary.md").read_text(encoding="utf-8")
    saved = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert [e["name"] for e in saved["experiments"]] == ["basis", "toy"]
    assert "toy/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_command__list_describes_every_experiment(dsc_command):
    shown = dsc_command("--list").output
    listed = json.loads(dsc_command("--list", "--json").output)["experiments"]
    assert [about["name"] for about in listed] == list(EXPERIMENTS)
    for about in listed:
        for key in ("name", "title", "paper", "ours", "needs", "duration"):
            assert about[key]
            assert about[key] in shown


def test_command__runs_and_prints_json(dsc_command, tmp_path):
    done = dsc_command("rotation-quality", "--quick", "--out", tmp_path, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["experiments"][0]["name"] == "rotation-quality"
    assert (tmp_path / "rotation-quality" / "index.html").is_file()
    again = dsc_command("rotation-quality", "--quick", "--out", tmp_path)
    assert again.exit_code == 2
    assert "exists already" in again.output


@pytest.mark.parametrize("where", [None, "empty"])
def test_command__missing_images_are_named_with_their_source(
    where, dsc_command, tmp_path, monkeypatch
):
    monkeypatch.delenv("DSC_DATA", raising=False)
    if where:
        monkeypatch.setenv("DSC_DATA", str(tmp_path))
    for name, files in (("net", ["brodatz_D103.gif"]), ("all", ["cameraman.tif", "D103"])):
        done = dsc_command(name, "--out", tmp_path / "out")
        assert done.exit_code == 2
        for text in (*files, "DSC_DATA", "--data cc0", "brodatz.html"):
            assert text in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["camerman"], "did you mean 'cameraman'?"),
        ([], "found no name"),
        (["toy", "--dense"], "cameraman, net"),
        (["net", "--dense", "--quick"], "at most"),
    ],
)
def test_command__says_what_is_wrong(arguments, message, dsc_command):
    done = dsc_command(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_run_experiment__refuses_other_data():
    with pytest.raises(DscError, match="did you mean 'paper'"):
        run_experiment("toy", Options(data="papers"))


def test_run_experiment__dense_adds_points(monkeypatch):
    from dsc.experiments import coding

    sizes = [coding._size(Options(dense=dense), coding.NET) for dense in (False, True)]
    assert set(sizes[0].n_atoms) < set(sizes[1].n_atoms)
