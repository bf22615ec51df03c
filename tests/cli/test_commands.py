"""The commands: from images to codes and back, promised options, JSON, plans, configurations."""

import json
import re
import shlex
import tomllib
from itertools import pairwise

import click
import numpy as np
import psutil
import pytest
import tifffile
from PIL import Image

from dsc.cli.main import main
from dsc.dictionary import learn, load_dictionary
from dsc.patches import open_patches
from dsc.store import open_dataset

PROMISES = """
dsc patches IMAGES... --out PATCHES.zarr --diameter 11 --stride 1 --min-std 0.1 [--unit]
 [--center] [--per-image 4000] [--materialize disk] [--seed 0]
dsc learn PATCHES.zarr --out RUN --n-atoms 20 --sparsity 4 --n-angles 60 --n-iterations 10
 --basis disk|bessel|annular|pixels --update ksvd|mod [--resume]
 [--scheduler threads|processes|tcp://...] [--memory-limit 1GB] [--plan] [--seed 0]
dsc encode PATCHES.zarr RUN_OR_MODEL --out CODES.zarr
"""


def parse(words):
    """Parameters of a command line; refuses unknown options."""
    return command_of(words[0]).make_context(words[0], list(words[1:])).params


def command_of(name):
    return main.get_command(click.Context(main), name)


def promised(line):
    """Every way to read a promised line: with each of the alternatives."""
    words = shlex.split(re.sub(r"[\[\]]", " ", line))[1:]
    most = max(len(word.split("|")) for word in words)
    for i in range(most):
        yield [word.split("|")[min(i, len(word.split("|")) - 1)] for word in words]


# --- promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("line", PROMISES.replace("\n ", " ").strip().splitlines())
def test_commands__promised_lines_are_understood(line):
    for words in promised(line):
        params = parse(words)
        for name, value in pairwise(words):
            if name.startswith("--") and not value.startswith("--"):
                found = params[name[2:].replace("-", "_")]
                assert str(found) == value or float(found) == float(value)


def test_commands__all_are_there_with_help(dsc):
    names = main.list_commands(click.Context(main))
    assert {"patches", "learn", "encode", "reconstruct", "info", "demo", "bench"} <= set(names)
    inner = main.get_command(click.Context(main), "texture").commands
    assert set(inner) == {"fit", "predict", "map", "evaluate", "sweep"}
    lines = [[name] for name in names if name != "texture"] + [["texture", n] for n in inner]
    for words in lines:
        result = dsc(*words, "--help")
        assert result.exit_code == 0
        assert words == ["watch"] or "--json" in result.stdout  # a page has no answer


def test_commands__output_is_always_out_or_o():
    for name in ("patches", "learn", "encode", "reconstruct", "demo"):
        options = {word for param in command_of(name).params for word in param.opts}
        assert {"--out", "-o"} <= options, name


def test_help__shows_defaults_and_choices(dsc):
    text = " ".join(dsc("learn", "--help").stdout.split())
    assert "--n-atoms" in text
    for part in ("[default: 20]", "[default: 10]", "[disk|bessel|annular|pixels]", "[ksvd|mod]"):
        assert part in text


def test_version__is_printed(dsc):
    assert re.fullmatch(r"dsc, version \d+\.\d+.*\n", dsc("--version").stdout)


# --- the way through ----------------------------------------------------------------------------


def test_patches__summary_and_store(made, images):
    folder, summaries = made
    source = open_patches(folder / "patches.zarr")
    assert summaries["patches"]["n_patches"] == source.n_patches == 2 * (54 * 44)
    assert source.center


def test_learn__summary_has_what_was_promised(made):
    folder, summaries = made
    summary = summaries["learn"]
    assert summary.keys() >= {"n_patches", "mse", "history", "atoms_sha256", "n_tasks", "seconds"}
    expected = learn(folder / "patches.zarr", 4, 2, n_iterations=2)
    assert summary["n_unused"] == expected.n_unused
    assert summary["n_patches"] == 2 * (54 * 44)
    assert summary["atoms_sha256"] == expected.sha256
    assert summary["history"] == expected.history.tolist()
    assert (summary["share"], summary["mse"]) == (expected.share, expected.mse)
    assert summary["notes"] == expected.notes == []
    assert isinstance(summary["n_tasks"], int)
    assert 0 < summary["n_tasks"] <= 200
    assert summary["seconds"] > 0


@pytest.mark.parametrize("which", ["run", "run/model.zarr"])
def test_encode__takes_a_run_or_a_model(made, ask, tmp_path, which):
    folder, summaries = made
    out = tmp_path / "codes.zarr"
    summary = ask("encode", folder / "patches.zarr", folder / which, "--out", out)
    assert summary.keys() >= {"n_patches", "mse", "seconds"}
    assert summary["n_patches"] == summaries["patches"]["n_patches"]
    for name in ("share", "mse"):
        assert summary[name] == pytest.approx(summaries["learn"][name], rel=1e-9)
    stored = open_dataset(out, "codes")
    codes = load_dictionary(str(folder / "run")).encode(str(folder / "patches.zarr")).codes
    np.testing.assert_array_equal(stored["coef"], codes.coef)


@pytest.mark.parametrize("name", ["back.npy", "back.png", "back.tif", "BACK.PNG", "BACK.NPY"])
def test_reconstruct__writes_the_image_that_the_model_makes(made, images, ask, tmp_path, name):
    folder, _ = made
    summary = ask("reconstruct", images / "coins.png", folder / "run", "-o", tmp_path / name)
    grey = np.asarray(Image.open(images / "coins.png")) / np.float32(255)
    expected = load_dictionary(str(folder / "run")).reconstruct(grey)
    assert summary["mse"] == pytest.approx(((expected - grey) ** 2).mean(), rel=1e-4)
    read = {
        "npy": np.load,
        "png": lambda path: np.asarray(Image.open(path, formats=["PNG"])),
        "tif": tifffile.imread,
    }[name[-3:].lower()]
    back = read(tmp_path / name)
    assert back.dtype == np.uint8  # as the image is
    np.testing.assert_allclose(back / 255, expected.clip(0, 1), atol=0.5 / 255 + 1e-6)


def test_reconstruct__stride_has_an_effect(made, images, ask, tmp_path):
    folder, _ = made
    errors = [
        ask("reconstruct", images / "coins.png", folder / "run", "--out",
            tmp_path / f"{stride}.npy", "--stride", stride)["mse"]
        for stride in (1, 3)
    ]  # fmt: skip
    assert errors[0] != errors[1]


SLOW = dict.fromkeys(
    [
        "one_thread",
        "two_threads",
        "bare_loop",
        "reading",
        "speedup",
        "speedup_of_pursuit",
        "dask_overhead",
        "over_kernels",
        "n_atoms",
        "sparsity",
        "n_iterations",
        "n_patches",
    ],
    1,
)


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("run", {"kind": "run", "finished": True, "n_atoms": 4}),
        ("patches.zarr", {"kind": "patches", "diameter": 7}),
        ("run/model.zarr", {"kind": "model", "basis": "disk", "n_angles": 60}),
    ],
)
def test_info__says_what_is_there(made, dsc, ask, which, expected):
    folder, _ = made
    assert ask("info", folder / which).items() >= expected.items()
    text = dsc("info", folder / which).stdout
    for name in expected:
        assert re.search(rf"^{name}\s+\S", text, re.M)


def test_info__json_has_numbers_and_text_is_short(made, dsc, ask, tmp_path):
    folder, _ = made
    about = ask("info", folder / "run" / "model.zarr")
    assert about["arrays"]["atoms"] == [4, about["arrays"]["basis_matrix"][1]]
    assert about["arrays"]["count"] == [4]
    images = tmp_path / "many"
    images.mkdir()
    for i in range(300):
        Image.fromarray(np.full((9, 9), i % 256, np.uint8)).save(images / f"{i:04d}.png")
    ask("patches", images, "--out", tmp_path / "p.zarr", "--diameter", 9)
    text = dsc("info", tmp_path / "p.zarr").stdout
    assert len(text) < 2500
    assert re.search(r"^image_names\s+0000\.png, .* … \(300 in all\)$", text, re.M)
    assert len(ask("info", tmp_path / "p.zarr")["image_names"]) == 300


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("n_atoms = 2.5", "n_atoms: found 2.5, need a value of type integer"),
        ("sparsity = true", "sparsity: found true, need a value of type integer"),
        ('seed = "3"', 'seed: found "3", need a value of type integer'),
        ("min_improvement = false", "min_improvement: found false, need a value of type float"),
        ("basis = 3", "basis: found 3, need a value of type choice"),
        ('resume = "no"', 'resume: found "no", need a value of type boolean'),
    ],
)
def test_config__values_of_another_type_are_refused(made, dsc, tmp_path, line, message):
    (tmp_path / "o.toml").write_text(f"{line}\nn_iterations = 2.5\n")
    words = ["--out", tmp_path / "new", "--config", tmp_path / "o.toml"]
    result = dsc("learn", made[0] / "patches.zarr", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "n_iterations: found 2.5" in result.stderr  # all at once
    assert not (tmp_path / "new").exists()


def test_learn__of_a_image_says_what_to_do(dsc, images, tmp_path):
    result = dsc("learn", images / "coins.png", "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert "found an image, need a patch set" in result.stderr
    assert f"dsc patches {images / 'coins.png'} --out patches.zarr" in result.stderr


def test_bench__shows_rows_as_they_are_measured(monkeypatch):
    from dsc import bench

    seen, said = [], []
    monkeypatch.setattr(
        bench.system, "_time_learning", lambda *_: seen.append(len(said)) or SLOW | {"n": len(said)}
    )
    bench.run_bench("system", True, said.append)
    assert seen == [0, 1]  # the first row is out before the second is measured
    assert all("two threads" in text for text in said)


def test_plain_output__says_the_result_and_what_comes_next(made, dsc, images, tmp_path):
    folder, _ = made
    cut = dsc("patches", images, "--out", tmp_path / "p.zarr", "--diameter", 9, "--stride", 4)
    assert re.search(r"^\d+ patches of diameter 9", cut.stdout)
    assert f"dsc learn {tmp_path / 'p.zarr'} --out" in cut.stdout
    coded = dsc("encode", folder / "patches.zarr", folder / "run", "--out", tmp_path / "c.zarr")
    assert "4,752 patches coded" in coded.stdout
    assert re.search(r" % of the energy left, mse ", coded.stdout)
    assert re.search(r"^share +0\.", dsc("info", folder / "run").stdout, re.MULTILINE)


def test_notes__are_lines_on_stderr_and_in_the_json(dsc, ask, tmp_path):
    grey = np.full((30, 30), 255, np.uint8)
    Image.fromarray(grey).save(tmp_path / "white.png")
    cut = ("patches", tmp_path / "white.png", "--diameter", 7, "--stride", 8, "--out")
    result = dsc(*cut, tmp_path / "p.zarr")
    (note,) = ask(*cut, tmp_path / "q.zarr")["notes"]
    assert note.startswith("saturated images: 100 % of the pixels of patches are white (1)")
    assert f"note: {note}\n" in result.stderr
    words = ("learn", tmp_path / "p.zarr", "--n-atoms", 12, "--n-iterations", 0, "--out")
    result = dsc(*words, tmp_path / "run")
    notes = ask(*words, tmp_path / "again")["notes"]
    begins = ("more atoms than patches", "constant data", "11 of 12 atoms", "saturated images")
    for text, begin in zip(notes, begins, strict=True):
        assert text.startswith(begin)
        assert f"\nnote: {text}\n" in result.stderr


def test_patches__every_option_reaches_the_library(dsc, ask, images, tmp_path):
    words = ["--diameter", 5, "--stride", 2, "--min-std", 0.02, "--per-image", 50, "--unit"]
    words += ["--rotate", 0, "--rotate", 90, "--materialize", "annular", "--seed", 3]
    summary = ask("patches", images, "-o", tmp_path / "p.zarr", *words)
    source = open_patches(tmp_path / "p.zarr")
    assert (summary["n_patches"], source.diameter) == (100, 5)
    assert (source.unit, source.center, source.rotated) == (True, False, True)
    assert source.materialized == "annular"
    config = open_dataset(tmp_path / "p.zarr").attrs["configuration"]
    assert (config["stride"], config["min_std"], config["seed"]) == (2, 0.02, 3)


def test_learn__every_option_reaches_the_library(made, ask, tmp_path):
    folder, _ = made
    options = {
        "n_atoms": 3,
        "sparsity": 1,
        "n_angles": 12,
        "n_iterations": 1,
        "basis": "annular",
        "tolerance": 1e-4,
        "update": "mod",
        "init": "patches",
        "replace_twins": 0.9,
        "min_improvement": 0.5,
        "seed": 5,
    }
    words = [w for name, v in options.items() for w in ("--" + name.replace("_", "-"), v)]
    words += ["--scheduler", "synchronous", "--n-workers", 1, "--memory-limit", "100GB"]
    summary = ask("learn", folder / "patches.zarr", "-o", tmp_path / "run", *words)
    assert summary["atoms_sha256"] == learn(folder / "patches.zarr", **options).sha256
    saved = tomllib.loads((tmp_path / "run" / "run.toml").read_text())
    assert saved.items() >= options.items()


# --- plan ---------------------------------------------------------------------------------------


def test_plan__says_what_would_run_and_makes_nothing(made, dsc, ask, tmp_path):
    folder, _ = made
    words = ["learn", folder / "patches.zarr", "--out", tmp_path / "run", "--plan"]
    result = dsc(*words)
    assert result.exit_code == 0
    for part in ("blocks", "tasks", "statistics", "memory", "kept in memory", "estimated time"):
        assert part in result.stdout
    plan = ask(*words)
    assert plan["n_patches"] == 2 * (54 * 44)
    assert plan["seconds"] > 0
    assert not any(tmp_path.iterdir())


def test_plan__works_where_a_finished_run_is(made, dsc):
    folder, _ = made
    assert dsc("learn", folder / "patches.zarr", "-o", folder / "run", "--plan").exit_code == 0


def test_plan__is_for_the_workers_and_the_memory_given(made, ask, tmp_path):
    folder, _ = made
    words = ["learn", folder / "patches.zarr", "--out", tmp_path / "run", "--plan"]
    plan = ask(*words, "--n-workers", 3, "--memory-limit", "100GB")
    assert plan["n_threads"] == 3
    assert 90e9 < plan["memory"] < 100e9


def test_plan__refuses_what_does_not_fit(made, dsc, tmp_path):
    folder, _ = made
    limit = psutil.Process().memory_info().rss + 10**9  # the tests before have left something
    words = ["--n-atoms", 60000, "--memory-limit", limit, "--plan"]
    result = dsc("learn", folder / "patches.zarr", "--out", tmp_path / "run", *words)
    assert result.exit_code == 2
    assert re.search(r"learning needs about .* has .*: use update", result.stderr)


# --- configurations -----------------------------------------------------------------------------


def test_config__the_toml_of_a_run_repeats_it(made, ask, tmp_path):
    folder, summaries = made
    toml = folder / "run" / "run.toml"
    again = ask("learn", "--config", toml, "--out", tmp_path / "again")
    assert again["atoms_sha256"] == summaries["learn"]["atoms_sha256"]
    assert again["history"] == summaries["learn"]["history"]
    assert (tmp_path / "again" / "run.toml").read_text() == toml.read_text()


def test_config__the_command_line_comes_first(made, ask, tmp_path):
    folder, _ = made
    words = ["--config", folder / "run" / "run.toml", "--n-iterations", 0]
    summary = ask("learn", *words, "--out", tmp_path / "run")
    assert len(summary["history"]) == 1
    assert tomllib.loads((tmp_path / "run" / "run.toml").read_text())["n_atoms"] == 4


def test_config__of_patches(images, ask, tmp_path):
    toml = tmp_path / "patches.toml"
    toml.write_text('diameter = 5\nunit = true\nrotate = [0.0, 45.0]\nmaterialize = "disk"\n')
    ask("patches", images, "--config", toml, "--out", tmp_path / "p.zarr")
    source = open_patches(tmp_path / "p.zarr")
    assert (source.diameter, source.unit, source.rotated) == (5, True, True)
    assert source.materialized == "disk"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_atom = 3", r"unknown 'n_atom'.*did you mean 'n_atoms'\?"),
        ("n_atoms = 3\nsede = 1\nbasi = 2", r"(?s)'sede'.*'seed'\?.*'basi'.*'basis'\?"),
        ("n_atoms = ", "cannot be read as TOML"),
        ('n_atoms = "many"', "many"),
        ('basis = "disc"', "disc"),
        ("[learn]\nn_atoms = 3", "unknown 'learn'"),
        ("as_jso = true", "as_jso"),
    ],
)
def test_config__mistakes_are_named(made, dsc, tmp_path, text, message):
    folder, _ = made
    (tmp_path / "a.toml").write_text(text)
    words = ["--config", tmp_path / "a.toml", "--out", tmp_path / "run"]
    result = dsc("learn", folder / "patches.zarr", *words)
    assert result.exit_code == 2
    assert re.search(message, result.stderr)
    assert result.stdout == ""
    assert not (tmp_path / "run").exists()


def test_config__a_run_from_elsewhere_finds_its_patches(made, ask, tmp_path, monkeypatch):
    """run.toml repeats a run from any folder, also if the patches were named by a short path."""
    words = ["--n-atoms", 2, "--sparsity", 1, "--n-iterations", 0]
    monkeypatch.chdir(made[0])
    ask("learn", "patches.zarr", "--out", tmp_path / "run", *words)
    monkeypatch.chdir(tmp_path)
    ask("learn", "--config", "run/run.toml", "--out", "again", "--plan")


def test_json__is_strict(made, ask):
    """No NaN or Infinity, which JSON does not have."""
    folder, _ = made
    text = json.dumps(ask("info", folder / "run" / "model.zarr"))
    assert "NaN" not in text
    assert "Infinity" not in text
