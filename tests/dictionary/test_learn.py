"""`learn` and `learn_many`: what they return, what every option does, what they refuse."""

from dataclasses import asdict, fields
from functools import lru_cache

import numpy as np
import oracles
import psutil
import pytest

from dsc.basis import disk_basis
from dsc.dictionary import learn, learn_many, load_dictionary, plan
from dsc.dictionary.config import SETTLE, LearnConfig
from dsc.errors import DscError
from dsc.patches import ArrayPatches, PatchConfig, extract_patches

BASE = {"n_atoms": 4, "sparsity": 2, "n_iterations": 3, "seed": 0}


def assert_same(one, other):
    assert one.sha256 == other.sha256
    assert one.history.tolist() == other.history.tolist()
    assert one.count.tolist() == other.count.tolist()


# --- the result ---------------------------------------------------------------------------------


@pytest.mark.parametrize("update", ["ksvd", "mod"])
def test_learn__error_falls_on_planted_patches(planted, update):
    found = learn(planted, **{**BASE, "n_iterations": 12}, update=update)
    assert len(found.history) == 13
    assert (np.diff(found.history[:4]) < 0).all()
    assert found.history[-1] < 0.25 * found.history[0]
    assert found.mse == found.history[-1]


def test_learn__finds_planted_atoms_up_to_rotation(planted):
    """Twins are what keeps recovery below all; with `replace_twins` all four come back."""
    basis = disk_basis(7)
    rng = np.random.default_rng(5)
    truth = rng.standard_normal((4, basis.n_coords))
    found = learn(planted, 4, 2, n_iterations=20, replace_twins=0.8)
    alike = oracles.likeness(truth, found.atoms, basis.frequency)
    assert (alike.max(1) > 0.98).all()


@pytest.mark.parametrize("n_iterations", [0, 1, 3])
def test_learn__history_has_one_entry_more_than_iterations(patches, n_iterations):
    found = learn(patches, 3, 2, n_iterations=n_iterations)
    assert found.history.shape == (n_iterations + 1,)
    assert found.history.dtype == np.float64
    assert found.atoms.shape == (3, found.basis.n_coords)
    assert found.count.sum() == 2 * len(patches)  # natural patches need every slot


def test_learn__a_shorter_run_is_the_beginning_of_a_longer_one(patches):
    one, two = (learn(patches, 3, 2, n_iterations=n) for n in (2, 4))
    assert two.history[:3].tolist() == one.history.tolist()


def test_learn__progress_is_told_of_every_pass(patches):
    events = []
    found = learn(patches, 3, 2, n_iterations=3, progress=events.append)
    assert [event.mse for event in events] == found.history.tolist()
    assert [event.finished for event in events] == [False] * 3 + [True]
    assert [event.iteration for event in events] == [1, 2, 3, 3]
    for event in events:
        assert event.n_iterations == 3
        assert event.patches_per_second == pytest.approx(len(patches) / event.seconds)


@pytest.mark.parametrize(
    ("basis", "normal"),
    [
        ("disk", {}),
        ("disk", {"center": True, "unit": True}),
        ("annular", {"center": True, "unit": True}),
        ("pixels", {}),
    ],
)
def test_learn__mse_is_that_of_the_pixels_of_the_disk(patches, basis, normal):
    """Decoded in float64, compared with the pixels that went in; no coordinates involved."""
    source = ArrayPatches(patches, **normal)
    found = learn(source, 4, 2, n_iterations=1, basis=basis)
    coded = found.encode(source)
    atoms = oracles.decode(coded.codes, found.atoms, found.basis.frequency)
    pixels = patches[:, found.basis.mask].astype(np.float64)
    if normal:
        pixels -= pixels.mean(1, keepdims=True)
        pixels /= np.linalg.norm(pixels, axis=1, keepdims=True)
    by_hand = ((pixels - atoms @ found.basis.matrix.T) ** 2).mean()
    assert found.mse == pytest.approx(by_hand, rel=1e-4)
    assert coded.mse == pytest.approx(found.mse, rel=1e-9)


def test_learn__knows_what_it_was_learned_from(patches):
    source = ArrayPatches(patches, unit=True)
    found = learn(source, **BASE)
    assert found.patches == {
        "fingerprint": source.fingerprint,
        "n_patches": len(patches),
        "center": False,
        "unit": True,
    }
    assert asdict(found.config) == {**asdict(LearnConfig()), **BASE}
    assert {"numpy", "numba", "cpu", "blas"} <= found.numerics.keys()


def test_learn__takes_a_list_and_a_path(patches, image, tmp_path):
    options = {"n_iterations": 1, "sparsity": 1, "n_atoms": 2}
    assert_same(learn(patches[:300].tolist(), **options), learn(patches[:300], **options))
    made = extract_patches(image("camera")[:30, :30], tmp_path / "p.zarr", PatchConfig(7))
    assert_same(learn(tmp_path / "p.zarr", **options), learn(made, **options))


def test_learn__sparsity_may_exceed_the_number_of_atoms(planted):
    found = learn(planted, 1, 2, n_iterations=2)
    codes = found.encode(planted).codes
    assert (codes.used.sum(1) == 2).mean() > 0.9
    assert codes.atom[codes.used].max() == 0


def test_learn__fewer_patches_than_atoms_works(patches):
    found = learn(patches[:3], 8, 2, n_iterations=3)
    assert found.atoms.shape[0] == 8
    assert np.isfinite(found.atoms).all()
    np.testing.assert_allclose(np.linalg.norm(found.atoms, axis=1), 1, atol=1e-3)


def test_learn__one_constant_patch_works():
    found = learn(np.ones((1, 5, 5)), 1, 1, n_iterations=2)
    assert found.mse < 1e-10


def test_learn__patches_of_zeros_are_no_trouble(patches):
    half = np.concatenate([patches[:500], np.zeros((500, 7, 7), np.float32)])
    found = learn(ArrayPatches(half, center=True, unit=True), 3, 2, n_iterations=2)
    assert np.isfinite(found.history).all()
    assert np.isfinite(found.atoms).all()


# --- options ------------------------------------------------------------------------------------

CHANGES = {  # option: (another value, options of both runs)
    "n_atoms": (5, {}),
    "sparsity": (3, {}),
    "n_angles": (20, {}),
    "n_iterations": (5, {}),
    "mode": ("online", {"update": "mod"}),
    "batch_size": (150, {"mode": "online"}),
    "forget": (0.5, {"mode": "online"}),
    "basis": ("annular", {}),
    "pursuit": ("omp", {}),
    "refine": (True, {}),
    "tolerance": (0.1, {}),
    "update": ("mod", {}),
    "init": ("patches", {}),
    "replace_twins": (0.3, {"n_iterations": SETTLE + 2}),
    "min_improvement": (1.0, {}),
    "seed": (1, {}),
}


@pytest.fixture(scope="module")
def unchanged(planted):
    """unchanged(**options): learned once."""
    return lru_cache(lambda **options: learn(planted, **{**BASE, **options}))


def test_options__are_all_tested():
    assert set(CHANGES) == {field.name for field in fields(LearnConfig)}


@pytest.mark.parametrize("option", CHANGES)
def test_options__each_changes_the_result(planted, unchanged, option):
    value, common = CHANGES[option]
    changed = learn(planted, **{**BASE, **common, option: value})
    assert changed.sha256 != unchanged(**common).sha256


def test_n_angles__by_default_is_60_and_1_for_pixels(patches):
    disk, pixels = (learn(patches, 2, 1, n_iterations=0, basis=b) for b in ("disk", "pixels"))
    assert (disk.n_angles, pixels.n_angles) == (60, 1)
    assert_same(learn(patches, 2, 1, n_iterations=0, n_angles=60), disk)


def test_min_improvement__stops_at_the_first_pass_that_gains_less(planted):
    full = learn(planted, **{**BASE, "n_iterations": 10}).history
    gains = 1 - full[1:] / full[:-1]
    stopped = learn(planted, **{**BASE, "n_iterations": 10}, min_improvement=0.1).history
    assert len(stopped) < len(full)
    assert stopped.tolist() == full[: len(stopped)].tolist()
    assert (gains[: len(stopped) - 3] >= 0.1).all()
    assert (gains[: len(stopped) - 1] < 0.1).any()


def test_init_patches__starts_from_different_patches_of_the_set(patches):
    found = learn(patches, 5, 1, n_iterations=0, init="patches")
    coords = found.basis.project(patches).astype(np.float64)
    coords /= np.linalg.norm(coords, axis=1, keepdims=True)
    alike = found.atoms @ coords.T
    np.testing.assert_allclose(alike.max(1), 1, atol=1e-5)
    assert len(set(alike.argmax(1).tolist())) == 5


def test_init_patches__does_not_depend_on_how_the_set_is_read(patches, image, tmp_path):
    made = extract_patches(image("camera")[:40, :40], tmp_path / "p.zarr", PatchConfig(7))
    options = {**BASE, "init": "patches", "n_iterations": 1}
    images = disk_basis(7).to_image(made.pixels(0, made.n_patches), fill=0)
    assert_same(learn(made, **options), learn(images, **options))


def test_replace_twins__leaves_the_last_iterations_alone(planted):
    options = {**BASE, "n_iterations": SETTLE}
    assert_same(learn(planted, **options), learn(planted, **options, replace_twins=0.3))


def test_pixels__is_the_standard_dictionary(patches):
    """No rotation: the same code as an explicit K-SVD pass in float64."""
    found = learn(patches, 4, 1, n_iterations=1, basis="pixels", init="patches")
    start = learn(patches, 4, 1, n_iterations=0, basis="pixels", init="patches")
    pixels = patches[:, found.basis.mask].astype(np.float64)
    best = np.abs(pixels @ start.atoms.T.astype(np.float64)).argmax(1)
    for m in range(4):
        _, _, right = np.linalg.svd(pixels[best == m], full_matrices=False)
        assert abs(right[0] @ found.atoms[m]) == pytest.approx(1, abs=1e-5)


# --- many ---------------------------------------------------------------------------------------


def test_learn_many__equals_one_by_one(patches, planted, natural_patches):
    problems = [
        (patches, LearnConfig(3, 2, n_iterations=2)),
        (planted, LearnConfig(4, 2, n_iterations=12, min_improvement=0.1)),
        (natural_patches(5, 700), LearnConfig(2, 1, n_iterations=5, basis="annular")),
        (patches, LearnConfig(3, 2, n_iterations=0, update="mod", init="patches")),
    ]
    together = learn_many(problems, n_workers=2)
    for (source, config), found in zip(problems, together, strict=True):
        assert_same(found, learn(source, **asdict(config)))
        assert found.config == config


def test_learn_many__reports_the_mean_error_of_all(patches, planted):
    events = []
    found = learn_many(
        [
            (patches, LearnConfig(2, 1, n_iterations=1)),
            (planted, LearnConfig(2, 1, n_iterations=1)),
        ],
        progress=events.append,
    )
    assert len(events) == 2
    assert events[-1].mse == np.mean([model.mse for model in found])


def test_learn_many__of_nothing_is_nothing():
    assert learn_many([]) == []


def test_learn_many__of_nothing_makes_no_folder(tmp_path):
    assert learn_many([], run=tmp_path / "run") == []
    assert not (tmp_path / "run").exists()


class Stop(Exception):
    """The run ends here."""


def stop_after(n_passes):
    seen = []

    def progress(event):
        seen.append(event)
        if len(seen) == n_passes:
            raise Stop

    return progress


@pytest.mark.parametrize("n_passes", [1, 2, 3])
def test_learn_many__resumes_in_its_folder_to_the_same_bits(patches, planted, tmp_path, n_passes):
    """Dictionaries of other sizes, bases and lengths in one checkpoint."""
    problems = [
        (patches, LearnConfig(3, 2, n_iterations=3)),
        (planted, LearnConfig(2, 1, n_iterations=1, basis="annular", update="mod")),
        (patches[:500], LearnConfig(4, 1, n_iterations=2, basis="pixels")),
    ]
    expected = learn_many(problems)
    with pytest.raises(Stop):
        learn_many(problems, run=tmp_path / "run", progress=stop_after(n_passes))
    with pytest.raises(DscError, match="an unfinished run"):
        learn_many(problems, run=tmp_path / "run")
    events = []
    found = learn_many(problems, run=tmp_path / "run", resume=True, progress=events.append)
    assert len(events) == 4 - n_passes
    again = learn_many(problems, run=tmp_path / "run", resume=True)  # it is finished: only read
    for one, other, third in zip(found, expected, again, strict=True):
        assert one.sha256 == other.sha256 == third.sha256
        assert one.history.tolist() == other.history.tolist() == third.history.tolist()
        assert one.count.tolist() == other.count.tolist() == third.count.tolist()
    other = [(planted, problems[0][1]), *problems[1:]]
    with pytest.raises(DscError, match=r"(?s)cannot resume.*patches 0: fingerprint"):
        learn_many(other, run=tmp_path / "run", resume=True)


def test_learn_many__killed_between_two_models_goes_on(patches, planted, tmp_path):
    problems = [(patches, LearnConfig(2, 1, n_iterations=1)), (planted, LearnConfig(3, 1))]
    expected = learn_many(problems, run=tmp_path / "run")
    with pytest.raises(DscError, match=r"has no model\.zarr but models/00000\.zarr"):
        load_dictionary(tmp_path / "run")
    (tmp_path / "run" / "models" / "00001.zarr" / "manifest.json").unlink()
    found = learn_many(problems, run=tmp_path / "run", resume=True)
    assert [model.sha256 for model in found] == [model.sha256 for model in expected]


# --- the plan -----------------------------------------------------------------------------------


def test_plan__says_what_would_run(patches):
    made = plan(patches, 3, 2, n_workers=2, memory_limit="100GB").to_dict()
    assert made["n_patches"] == len(patches)
    assert made["n_threads"] == 2
    assert made["keep_coords"] is True
    assert made["graph_size"] <= 16 * 2 + 1
    assert made["task_bytes"] > made["statistics_bytes"] > 0
    assert 0 < made["seconds"] < 100


def test_learn__refuses_statistics_that_do_not_fit_before_the_first_task():
    patches = np.random.default_rng(0).random((300, 31, 31), np.float32)
    events = []
    limit = psutil.Process().memory_info().rss + 5 * 10**8  # the tests before have left something
    with pytest.raises(DscError, match=r"learning needs about .*statistics.*update=\"mod\""):
        learn(patches, 300, 2, memory_limit=limit, n_workers=1, progress=events.append)
    assert not events


# --- mistakes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atom": 3}, r"n_atom.*did you mean 'n_atoms'\?"),
        ({"n_iteration": 3, "sede": 1}, r"(?s)'n_iterations'\?.*'seed'\?"),
        ({"basis": "disc"}, r"basis: unknown 'disc'.*did you mean 'disk'\?"),
        ({"update": "k-svd"}, r"update: unknown 'k-svd'.*did you mean 'ksvd'\?"),
        ({"init": "patch"}, r"init: unknown 'patch'.*did you mean 'patches'\?"),
        ({"n_atoms": 0, "sparsity": 0}, r"(?s)n_atoms: found 0.*sparsity: found 0"),
        ({"n_atoms": 65535}, r"n_atoms: found 65535"),
        ({"n_atoms": 2.5}, r"n_atoms: found 2.5, need a whole number"),
        ({"n_iterations": -1}, r"n_iterations: found -1"),
        ({"n_angles": 0}, r"n_angles: found 0"),
        ({"seed": -1}, r"seed: found -1"),
        ({"min_improvement": 0}, r"min_improvement: found 0"),
        ({"tolerance": -1.0}, r"tolerance: found -1.0, need a number ≥ 0"),
        ({"replace_twins": 1.5}, r"replace_twins: found 1.5"),
        ({"mode": "on-line"}, r"mode: unknown 'on-line'.*did you mean 'online'\?"),
        ({"batch_size": 100, "forget": 0.5}, r"(?s)batch_size.*forget: .*need mode \"online\""),
        ({"mode": "online", "batch_size": 0}, r"batch_size: found 0"),
        ({"mode": "online", "forget": 1.5}, r"forget: found 1.5, need a number from 0 to 1"),
        ({"mode": "online", "update": "ksvd"}, r"update: found 'ksvd', need mod"),
        ({"mode": "online", "replace_twins": 0.8}, r"replace_twins: found 0.8 online"),
        ({"sparsity": 1000}, r"sparsity: found 1000, need at most \d+"),
        ({"scheduler": "treads"}, r"scheduler: found 'treads'"),
        ({"memory_limit": "lots"}, r"memory_limit: found 'lots'"),
    ],
)
def test_learn__refuses_bad_options_by_name(patches, options, message):
    with pytest.raises(DscError, match=message):
        learn(patches, **options)


def test_learn__numpy_integers_are_whole_numbers(patches):
    assert_same(
        learn(patches, np.int64(2), np.int32(1), n_iterations=1),
        learn(patches, 2, 1, n_iterations=1),
    )


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.zeros((0, 7, 7)), "found 0 of them, need .* at least one"),
        (np.zeros((7, 7)), r"found shape \(7, 7\), need \(patch, diameter, diameter\)"),
        (np.zeros((5, 7, 6)), r"found shape \(5, 7, 6\)"),
        (np.zeros((5, 1, 1)), "diameter: found 1"),
        (np.zeros((5, 7, 7), complex), "dtype complex128, need real"),
        (np.full((5, 7, 7), "a"), "need real"),
        ("no/such/patches.zarr", "nothing is there"),
        (42, "found int, need a patch set"),
        ({"patches": 1}, "found dict, need a patch set"),
    ],
)
def test_learn__refuses_what_are_no_patches(found, message):
    with pytest.raises(DscError, match=message):
        learn(found, 2, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_learn__refuses_numbers_that_are_none_and_names_the_patch(patches, value):
    bad = patches[:600].copy()
    bad[333, 3, 3] = value
    with pytest.raises(DscError, match=r"(?s)row 333|patch 333"):
        learn(bad, 2, 1)


def test_learn__a_bad_number_in_the_corner_outside_the_disk_does_not_count(patches):
    odd = patches[:300].copy()
    odd[:, 0, 0] = np.nan
    assert_same(learn(odd, 2, 1, n_iterations=1), learn(patches[:300], 2, 1, n_iterations=1))


@pytest.mark.parametrize("basis", ["annular", "pixels"])
def test_learn__refuses_a_set_materialised_in_another_basis(image, tmp_path, basis):
    config = PatchConfig(diameter=7, materialize="disk")
    extract_patches(image("camera")[:30, :30], tmp_path / "p.zarr", config)
    with pytest.raises(DscError, match=f"coordinates of the disk basis.*need .*{basis} basis"):
        learn(tmp_path / "p.zarr", 2, 1, basis=basis)


def test_learn_many__names_the_first_bad_problem(patches):
    with pytest.raises(DscError, match="sparsity: found 99"):
        learn_many([(patches, LearnConfig(2, 1)), (patches, LearnConfig(2, 99))])
