"""Accuracy against the number of training images of each class."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dsc.cli.main import main
from dsc.dictionary import RunTarget
from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.experiments.textures import write_suite
from dsc.texture import (
    Benchmark,
    TextureConfig,
    chi_square,
    evaluate_model,
    evaluate_texture,
    lbp_methods,
    lbp_patterns,
    learned_curve,
    neighbour_curve,
    read_inputs,
)
from dsc.texture.curve import DRAWS, OURS, curve_counts, draws
from dsc.texture.parts import part_of

OPTIONS = {"n_atoms": 2, "diameter": 7, "n_iterations": 1, "patches_per_image": 60, "stride": 5}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curve") / "suite"
    return write_suite(folder, n_train=5, n_test=1, angles=(0, 30), size=32)


@pytest.fixture(scope="module")
def done(suite, tmp_path_factory):
    """(evaluation, patterns, run folder)."""
    data = Benchmark("drawn", read_inputs(suite), read_inputs(suite, part="test"))
    run = tmp_path_factory.mktemp("done") / "run"
    with open_engine("synchronous") as engine:
        evaluation = evaluate_texture(data, TextureConfig(**OPTIONS), engine, RunTarget(run))
        return evaluation, lbp_patterns(data, engine), run


@given(
    sizes=st.lists(st.integers(1, 8), min_size=2, max_size=4),
    seed=st.integers(0, 9),
    data=st.data(),
)
def test_draws__have_so_many_of_each_class_whatever_the_order(sizes, seed, data):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    names = [f"{i:02d}" for i in range(len(labels))]
    n = data.draw(st.integers(1, min(sizes)))
    found = draws(labels, names, n, seed)
    assert len(found) == (1 if set(sizes) == {n} else DRAWS)
    for some in found:
        assert len(set(some)) == len(some)
        assert np.bincount(labels[some]).tolist() == [n] * len(sizes)
    order = np.array(data.draw(st.permutations(range(len(labels)))))
    mixed = draws(labels[order], [names[i] for i in order], n, seed)
    for one, other in zip(found, mixed, strict=True):
        assert {names[i] for i in one} == {names[order[i]] for i in other}


def test_counts__are_those_that_every_class_has():
    assert curve_counts(np.repeat([0, 1, 2], [30, 12, 25])) == (1, 2, 5, 10)
    assert curve_counts(np.array([0, 1, 1])) == (1,)


def test_neighbours__are_the_mean_over_draws(done):
    evaluation, patterns, _ = done
    curve = neighbour_curve(evaluation, patterns)
    model, labels = evaluation.model, evaluation.model.image_label
    assert (curve.counts, curve.n_draws) == ((1, 2, 5), (DRAWS, DRAWS, 1))
    distances = chi_square(evaluation.prediction.histograms, model.histograms)
    for place, n in enumerate(curve.counts):
        right = [
            np.mean(labels[some][distances[:, some].argmin(1)] == evaluation.truth)
            for some in draws(labels, model.image_names, n, model.config.seed)
        ]
        assert curve.lines[OURS][place] == pytest.approx(np.mean(right))


def test_neighbours__with_all_images_are_the_evaluation_and_lbp(done):
    evaluation, patterns, _ = done
    curve = neighbour_curve(evaluation, patterns)
    rows = lbp_methods(evaluation.data, patterns)
    ends = [line[-1] for line in curve.lines.values()]
    assert ends == [evaluation.accuracy, *(row.accuracy for row in rows)]
    assert len(curve.lines) == 3
    assert all(row.setting in name for row, name in zip(rows, list(curve.lines)[1:], strict=True))


def test_learned__is_an_evaluation_of_the_drawn_images(done, tmp_path):
    evaluation, patterns, _ = done
    data, model = evaluation.data, evaluation.model
    (tmp_path / "run").mkdir()
    target = RunTarget(tmp_path / "run")
    with open_engine("synchronous") as engine:
        curve = learned_curve(evaluation, engine, target, patterns)
        some = draws(model.image_label, model.image_names, 2, model.config.seed)[0]
        part = Benchmark("part", part_of(data.train, some), data.test)
        alone = evaluate_texture(part, model.config, engine, RunTarget(tmp_path / "alone"))
        resumed = RunTarget(tmp_path / "run", resume=True)
        again = learned_curve(evaluation, engine, resumed, patterns)
    assert curve.lines[OURS][1:] == (alone.accuracy, evaluation.accuracy)
    assert again == curve
    assert curve.n_draws == (1, 1, 1)
    assert sorted(path.name for path in (tmp_path / "run" / "curve").iterdir()) == ["001", "002"]


def test_learned__needs_images_to_learn_from(done, tmp_path):
    evaluation, _, _ = done
    fitted = Benchmark("fitted", None, evaluation.data.test)
    with open_engine("synchronous") as engine:
        other = evaluate_model(evaluation.model, fitted, engine, RunTarget(tmp_path / "run"))
        assert neighbour_curve(other).lines[OURS][-1] == evaluation.accuracy
        with pytest.raises(DscError, match="need training images"):
            learned_curve(other, engine, RunTarget(tmp_path / "run"))


def test_model__of_an_earlier_version_says_that_it_cannot_tell(done, tmp_path):
    evaluation, _, _ = done
    data, model = evaluation.data, evaluation.model
    known = Benchmark("known", None, data.train)
    seen = []
    with open_engine("synchronous", progress=seen.append) as engine:
        with pytest.raises(DscError, match="20 problems"):
            evaluate_model(model, known, engine, RunTarget(tmp_path / "run"))
        assert not seen
        old = replace(model, image_contents=())
        found = evaluate_model(old, known, engine, RunTarget(tmp_path / "run"))
    assert found.accuracy == 1
    assert any("cannot tell" in getattr(event, "text", "") for event in seen)


@pytest.mark.parametrize("kind", ["neighbours", "learned"])
def test_command__has_the_curve_in_the_report(done, suite, tmp_path, kind):
    shutil.copytree(done[2], tmp_path / "run")
    words = ["texture", "evaluate", suite, "--out", tmp_path / "run", "--resume", "--curve", kind]
    words += [w for name, v in OPTIONS.items() for w in ("--" + name.replace("_", "-"), v)]
    result = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    curve = json.loads(result.stdout)["curve"]
    assert (curve["kind"], curve["counts"]) == (kind, [1, 2, 5])
    page = " ".join((tmp_path / "run" / "report" / "index.html").read_text("utf-8").split())
    said = {
        "neighbours": "dictionaries are those of all",
        "learned": "learned anew for every point",
    }
    assert said[kind] in page
    assert (tmp_path / "run" / "report" / "curve.png").is_file()
    plain = CliRunner().invoke(main, [*map(str, words)])
    assert f"accuracy with 1, 2, 5 training images of each class ({kind})" in plain.stdout
    assert plain.stdout.count("  LBP, rotation-invariant uniform, 8 points at 1\n") == 1


def test_command__a_fitted_model_has_no_images_to_learn_from(done, suite, tmp_path):
    words = ["texture", "evaluate", "--model", done[2], "--test", suite, "-o", tmp_path / "run"]
    result = CliRunner().invoke(main, [*map(str, words), "--curve", "learned"])
    assert result.exit_code == 2
    assert "curve: found a fitted model" in result.stderr
