"""`learn(mode="online")`: batches, what is kept between them, resuming, and the warm start."""

import json
import pickle
import time
from dataclasses import asdict, replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dsc.cli.main import main
from dsc.dictionary import Run, batches, learn, learn_many, learning, load_dictionary, loop, plan
from dsc.dictionary.batches import LONGEST, SHORTEST, SPANS, Batches
from dsc.dictionary.checkpoint import load_checkpoint, save_checkpoint
from dsc.dictionary.config import FORGET, LearnConfig
from dsc.dictionary.learning import make_problem, start_atoms
from dsc.dictionary.loop import State, iterate
from dsc.engine import job_graph, open_engine
from dsc.errors import DscError
from dsc.patches import PatchConfig, extract_patches

ONLINE = {"n_atoms": 4, "sparsity": 2, "n_iterations": 2, "mode": "online", "batch_size": 512}
N_BATCHES = 4  # of 2000 patches


def assert_same(one, other):
    assert one.sha256 == other.sha256
    assert one.history.tolist() == other.history.tolist()
    assert one.count.tolist() == other.count.tolist()


@pytest.fixture(scope="module")
def online(patches):
    return learn(patches, **ONLINE)


# --- batches ------------------------------------------------------------------------------------


@st.composite
def cuts(draw):
    """(batches, size that was asked for, size of a leaf)."""
    n_patches = draw(st.integers(1, 10**6))
    size = draw(st.none() | st.integers(1, 10**5))
    leaf = 2 ** draw(st.integers(8, 13))
    config = LearnConfig(draw(st.integers(1, 50)), 2, mode="online", batch_size=size)
    return Batches.of(n_patches, leaf, config), size, leaf


@given(cut=cuts(), seed=st.integers(0, 9), index=st.integers(0, 3))
def test_batches__visit_every_patch_once_in_spans_inside_leaves(cut, seed, index):
    cut, size, leaf = cut
    batches = [cut.spans(seed, index, batch) for batch in range(cut.n_batches)]
    for spans in batches:
        assert 1 <= len(spans) <= cut.n_tasks
        assert spans == sorted(spans)
        assert sum(stop - start for start, stop in spans) <= cut.size
    every = sorted(span for spans in batches for span in spans)
    assert [start for start, _ in every] == [0, *(stop for _, stop in every[:-1])]
    assert every[-1][1] == cut.n_patches
    assert all(start // leaf == (stop - 1) // leaf for start, stop in every)
    if size is not None and SPANS * SHORTEST <= size <= cut.n_patches / 2:
        assert cut.size <= 2 * size
        assert cut.n_tasks >= SPANS
        assert cut.n_patches / cut.n_batches >= size / 2


def test_batches__come_in_another_order_in_another_pass_and_of_another_seed():
    cut = Batches.of(10**5, 4096, LearnConfig(4, 2, mode="online"))
    orders = [
        tuple(tuple(cut.spans(seed, index, batch)) for batch in range(cut.n_batches))
        for seed, index in ((0, 0), (0, 1), (1, 0))
    ]
    assert len(set(orders)) == 3
    first = [start for start, _ in cut.spans(0, 0, 0)]
    assert max(first) - min(first) > cut.n_patches / 4  # from all over the set


@pytest.mark.parametrize(
    ("n_patches", "n_atoms", "sparsity", "size"),
    [
        (2_000, 4, 2, 512),
        (396_855, 10, 2, 4096),
        (2_000, 100, 1, 8192),
        (20_000_000, 10, 2, 65536),
    ],
)
def test_batches__by_default_are_a_hundredth_but_enough_for_every_atom(
    n_patches, n_atoms, sparsity, size
):
    cut = Batches.of(n_patches, 8192, LearnConfig(n_atoms, sparsity, mode="online"))
    assert cut.size == min(n_patches, size)


@pytest.mark.parametrize("power", [16, 20, 24, 27])
def test_batches__that_are_larger_have_more_tasks_and_not_longer_ones(power):
    """Of many atoms: a leaf is as large as a batch."""
    config = LearnConfig(2400, 1, mode="online", batch_size=2**power)
    cut = Batches.of(10**9, 2**27, config)
    assert cut.span == LONGEST
    assert cut.n_tasks == pytest.approx(2**power / LONGEST, rel=0.2)


def test_online__has_the_same_bits_however_the_threads_share_a_large_batch(patches, monkeypatch):
    """A task of every span, of patches that are kept or read again, by one thread or by three."""
    monkeypatch.setattr(batches, "LONGEST", 64)
    options = {**ONLINE, "batch_size": 2000}
    assert plan(patches, **options).to_dict()["batch_tasks"] == 32
    found = learn(patches, **options, scheduler="synchronous")
    assert_same(found, learn(patches, **options, n_workers=3))
    with monkeypatch.context() as keeping_nothing:
        keeping_nothing.setattr("dsc.engine.plan.KEEP_FRACTION", 0)
        assert_same(found, learn(patches, **options, n_workers=3))


# --- the result ---------------------------------------------------------------------------------


def test_online__one_pass_leaves_less_than_three_of_the_batch_mode(planted):
    found = learn(planted, **{**ONLINE, "n_iterations": 1, "batch_size": 128})
    batch = learn(planted, 4, 2, n_iterations=3)
    assert found.mse < batch.mse
    assert len(found.history) == 2


def test_online__history_is_of_patches_as_they_were_coded_and_last_of_all(patches, online):
    """An oracle that goes through the batches by hand."""
    problem = make_problem(patches, LearnConfig(**ONLINE))
    states = [State.start(start_atoms(problem))]
    with open_engine("synchronous", progress=False) as engine:
        states += [state for (state,) in iterate([problem], states, engine)]
    assert [state.batch for state in states] == [0, 1, 2, 3, 0, 1, 2, 3, 0, 0]
    coords, rest = problem.source.read_with_rest(problem.basis, 0, len(patches))
    for index in (0, 1):
        total = count = 0
        for batch in range(N_BATCHES):
            before = states[index * N_BATCHES + batch]
            coder = problem.config.coder(before.atoms, problem.basis)
            for start, stop in problem.batches.spans(0, index, batch):
                codes = coder.encode(coords[start:stop])
                total += coder.measure(coords[start:stop], codes)[1]
                count += np.bincount(codes.atom[codes.used], minlength=4)
        after = states[(index + 1) * N_BATCHES]
        assert after.history[-1] == pytest.approx(
            (total + rest.sum(dtype=float)) / (len(patches) * problem.basis.n_pixels), rel=1e-9
        )
        assert after.count.tolist() == count.tolist()
    assert online.history.tolist() == list(states[-1].history)
    assert online.mse == pytest.approx(online.encode(patches).mse, rel=1e-9)
    assert online.count.tolist() == states[-1].count.tolist()


def test_online__progress_is_told_of_every_pass(patches, online):
    events = []
    learn(patches, **ONLINE, progress=events.append)
    assert [event.mse for event in events] == online.history.tolist()
    assert [event.iteration for event in events] == [1, 2, 2]


def test_online__of_one_batch_that_forgets_all_is_mod(patches):
    options = {**ONLINE, "batch_size": len(patches), "forget": 1.0}
    found = learn(patches, **options)
    expected = learn(patches, 4, 2, n_iterations=2, update="mod")
    np.testing.assert_allclose(found.history, expected.history, rtol=1e-4)
    np.testing.assert_allclose(found.atoms, expected.atoms, atol=1e-3)


def test_online__unused_atoms_start_again_apart_from_others(planted):
    found = learn(planted, **{**ONLINE, "n_atoms": 12})
    assert found.n_unused == 0


def test_online__fewer_patches_than_atoms_work(patches):
    found = learn(patches[:3], 8, 2, mode="online", n_iterations=2)
    assert np.isfinite(found.history).all()
    np.testing.assert_allclose(np.linalg.norm(found.atoms, axis=1), 1, atol=1e-3)


def test_online__together_with_others_equals_one_by_one(patches, planted):
    """Passes of many batches, of some, of one, and none at all."""
    problems = [
        (patches, LearnConfig(**ONLINE)),
        (planted, LearnConfig(**{**ONLINE, "batch_size": 1000, "n_iterations": 1})),
        (patches, LearnConfig(3, 2, n_iterations=3)),
        (planted, LearnConfig(3, 1, n_iterations=0, mode="online")),
    ]
    events = []
    together = learn_many(problems, progress=events.append)
    assert [event.iteration for event in events] == [1, 2, 3, 3]
    for (source, config), found in zip(problems, together, strict=True):
        assert_same(found, learn(source, **asdict(config)))


def test_online__what_is_kept_of_earlier_batches_goes_to_the_update_alone(patches, monkeypatch):
    """Not to every worker with the atoms: it is as large as the statistics of a task."""
    jobs = []
    monkeypatch.setattr(loop, "job_graph", lambda job: jobs.append(job) or job_graph(job))
    learn(patches, **{**ONLINE, "n_iterations": 1, "n_atoms": 64}, scheduler="synchronous")
    running, forget = jobs[0].last
    assert forget == FORGET
    size = running.normal.nbytes
    assert len(pickle.dumps(running)) > size
    assert all(len(pickle.dumps(job.shared)) < size for job in jobs)
    assert jobs[-1].last == ()  # the final pass only measures


# --- checkpoints --------------------------------------------------------------------------------


class Stop(Exception):
    """The run ends here."""


@pytest.fixture
def stopping(monkeypatch):
    """stopping(n): a run ends after n more checkpoints, of which there is one for each batch."""
    monkeypatch.setattr(learning, "SAVING", 0)
    save = Run.save
    names = []

    def stop_after(n_saved):
        def counted(run, problems, states):
            save(run, problems, states)
            names.append(run.checkpoints()[-1].stem)
            if len(names) == n_saved:
                raise Stop

        names.clear()
        monkeypatch.setattr(Run, "save", counted)
        return names

    return stop_after


def test_online__resumes_after_any_batch_to_the_same_bits(patches, online, tmp_path, stopping):
    stops = [1, 2, 1, 1, 3]  # inside the first pass, at its end, and inside the second
    saved = []
    for n_saved in stops:
        names = stopping(n_saved)
        with pytest.raises(Stop):
            learn(patches, **ONLINE, run=tmp_path / "run", resume=True)
        saved += names
    inside = [[f"00000{index}-00000{batch}" for batch in (1, 2, 3)] for index in (0, 1)]
    assert saved == [*inside[0], "000001", *inside[1], "000002"]
    stopping(99)
    assert_same(learn(patches, **ONLINE, run=tmp_path / "run", resume=True), online)


def test_online__resumes_many_at_once_to_the_same_bits(patches, planted, tmp_path, stopping):
    problems = [
        (patches, LearnConfig(**ONLINE)),
        (planted, LearnConfig(3, 2, n_iterations=2)),
        (planted, LearnConfig(**{**ONLINE, "batch_size": 1000, "basis": "pixels"})),
    ]
    expected = learn_many(problems)
    for n_saved in (1, 2, 2):
        stopping(n_saved)
        with pytest.raises(Stop):
            learn_many(problems, run=tmp_path / "run", resume=True)
    stopping(99)
    found = learn_many(problems, run=tmp_path / "run", resume=True)
    for one, other in zip(found, expected, strict=True):
        assert_same(one, other)


def test_online__a_damaged_checkpoint_of_a_batch_is_passed_over(
    patches, online, tmp_path, stopping
):
    stopping(3)
    with pytest.raises(Stop):
        learn(patches, **ONLINE, run=tmp_path / "run")
    last = Run(tmp_path / "run").checkpoints()[-1]
    chunk = next(path for path in (last / "normal" / "c").rglob("*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1])
    stopping(99)
    assert_same(learn(patches, **ONLINE, run=tmp_path / "run", resume=True), online)


def test_checkpoint__keeps_all_bits_of_what_is_between_batches(patches, tmp_path):
    problem = make_problem(patches, LearnConfig(**ONLINE))
    with open_engine("synchronous", progress=False) as engine:
        states = iterate([problem], [State.start(start_atoms(problem))], engine)
        state = [next(states)[0] for _ in range(2)][-1]
    save_checkpoint(tmp_path / "c.zarr", [problem], [state])
    ((found,), _) = load_checkpoint(tmp_path / "c.zarr")
    assert (found.batch, found.sums, found.history) == (2, state.sums, ())
    for name in ("normal", "right", "idle"):
        one, other = (getattr(some.running, name) for some in (found, state))
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def test_checkpoint__of_the_batch_mode_has_nothing_of_batches(patches, tmp_path):
    learn(patches, 3, 2, n_iterations=2, run=tmp_path / "run")
    path = Run(tmp_path / "run").checkpoints()[-1]
    assert not {"normal", "right", "idle", "batch", "sums"} & {one.name for one in path.iterdir()}


def test_online__checkpoints_inside_a_pass_take_a_twentieth_of_the_time(
    patches, tmp_path, monkeypatch
):
    save = Run.save
    saves = []

    def slow(run, problems, states):
        begin = time.perf_counter()
        save(run, problems, states)
        time.sleep(0.05)
        if states[0].batch:
            saves.append(time.perf_counter() - begin)

    monkeypatch.setattr(Run, "save", slow)
    begin = time.perf_counter()
    options = {**ONLINE, "batch_size": 100, "n_iterations": 3}
    learn(patches, **options, run=tmp_path / "run")
    assert saves
    assert sum(saves) <= max(saves) + 0.05 * (time.perf_counter() - begin)


def test_run__of_the_batch_mode_can_be_resumed_whatever_version_began_it(patches, tmp_path):
    """Its identity says nothing of options that it does not have."""
    learn(patches, 3, 2, n_iterations=1, run=tmp_path / "run")
    config = json.loads((tmp_path / "run" / "run.json").read_text())["identity"]["config"]
    assert not {"mode", "batch_size", "forget"} & config.keys()
    with pytest.raises(DscError, match=r"(?s)cannot resume.*mode: None instead of online"):
        learn(patches, **{**ONLINE, "n_atoms": 3}, run=tmp_path / "run", resume=True)


def test_check__names_a_checkpoint_by_its_batch(patches, tmp_path, stopping):
    import dsc

    stopping(2)
    with pytest.raises(Stop):
        learn(patches, **ONLINE, run=tmp_path / "run")
    found = dsc.check(tmp_path / "run")
    assert found.good
    assert any("goes on from checkpoint 0-2" in line for line in found.saved)
    card = Run(tmp_path / "run").card().html()
    assert "4 atoms" in card


# --- the plan -----------------------------------------------------------------------------------


def test_plan__says_how_a_pass_is_taken(patches, tmp_path):
    made = plan(patches, **ONLINE, n_workers=2)
    assert made.to_dict()["n_batches"] == N_BATCHES
    assert made.to_dict()["batch_patches"] == 512
    assert made.to_dict()["batch_tasks"] == 8
    assert "4 in a pass, of 512 patches in 8 tasks" in str(made)
    learn(patches, **ONLINE, n_workers=2, run=tmp_path / "run")
    start = Run(tmp_path / "run").events()[0]
    assert start["plan"]["batch_tasks"] == 8
    assert "n_batches" not in plan(patches, 4, 2).to_dict()


# --- the warm start -----------------------------------------------------------------------------


def test_init__starts_from_the_atoms_of_a_dictionary(patches, model):
    found = learn(patches, 6, 3, n_iterations=1, init=model)
    assert found.history[0] == pytest.approx(model.mse, rel=1e-12)
    assert found.config.init == f"sha256:{model.sha256}"
    assert found.mse < model.mse


def test_init__may_be_the_path_of_a_run_or_of_a_model(patches, model, tmp_path):
    learn(patches, 6, 3, n_iterations=3, run=tmp_path / "run")
    model.save(tmp_path / "model.zarr")
    expected = learn(patches, 6, 3, mode="online", n_iterations=1, init=model)
    for init in (tmp_path / "run", str(tmp_path / "model.zarr")):
        found = learn(patches, 6, 3, mode="online", n_iterations=1, init=init)
        assert_same(found, expected)
        assert found.config == expected.config


def test_init__model_of_it_can_be_kept_and_read_when_the_first_is_gone(patches, model, tmp_path):
    model.save(tmp_path / "first.zarr")
    again = learn(patches, 6, 3, n_iterations=1, init=tmp_path / "first.zarr", run=tmp_path / "r")
    (tmp_path / "first.zarr").rename(tmp_path / "gone.zarr")
    assert_same(load_dictionary(tmp_path / "r"), again)
    with pytest.raises(DscError, match=r"init: found sha256:.* need the dictionary itself"):
        learn(patches, **asdict(again.config))


def test_init__another_dictionary_is_another_run(patches, model, tmp_path, stopping):
    options = {"n_iterations": 2, "run": tmp_path / "run"}
    stopping(1)
    with pytest.raises(Stop):
        learn(patches, 6, 3, init=model, **options)
    other = replace(model, atoms=model.atoms[::-1].copy())
    with pytest.raises(DscError, match=r"(?s)cannot resume.*init: sha256:.* instead of sha256:"):
        learn(patches, 6, 3, init=other, resume=True, **options)
    stopping(99)
    found = learn(patches, 6, 3, init=model, resume=True, **options)
    assert_same(found, learn(patches, 6, 3, init=model, n_iterations=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_atoms": 7}, "of n_atoms 6, need n_atoms 7"),
        ({"basis": "annular"}, r"of basis disk, coordinates \d+, need basis annular"),
        ({"n_atoms": 7, "basis": "annular"}, "of basis disk, .*s 6, need .* 7"),
    ],
)
def test_init__refuses_other_atoms_than_are_learned(patches, model, options, message):
    with pytest.raises(DscError, match=f"init: found a dictionary {message}"):
        learn(patches, **{"n_atoms": 6, "sparsity": 3, **options}, init=model)


def test_init__refuses_another_diameter_and_other_channels(natural_patches, model):
    with pytest.raises(DscError, match=r"diameter 7, .*need diameter 9"):
        learn(natural_patches(9, 300), 6, 3, init=model)
    colors = np.repeat(natural_patches(7, 300)[..., None], 3, axis=3)
    with pytest.raises(DscError, match=r"channels 1, .*need channels 3"):
        learn(colors, 6, 3, init=model)


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("patchs", r"init: unknown 'patchs'.*did you mean 'patches'\?"),
        ("no/such/run", "nothing is there"),
        (3, "init: found int, need random or patches, a Dictionary, or the path"),
        (np.zeros((6, 30)), "init: found ndarray"),
    ],
)
def test_init__refuses_what_is_no_dictionary(patches, init, message):
    with pytest.raises(DscError, match=message):
        learn(patches, 6, 3, init=init)


def test_command__learns_online_from_a_dictionary(image, tmp_path):
    extract_patches(image("camera")[:50, :50], tmp_path / "p.zarr", PatchConfig(7))
    common = ["--n-atoms", "4", "--sparsity", "2", "--n-iterations", "1", "--json"]
    online = [*common, "--mode", "online", "--batch-size", "600", "--forget", "0.2"]
    first = learn(tmp_path / "p.zarr", 4, 2, n_iterations=1, run=tmp_path / "first")
    runs = {
        "second": [*online, "--init", str(tmp_path / "first")],
        "again": ["--config", str(tmp_path / "second" / "run.toml"), "--json"],
    }
    found = {}
    for name, words in runs.items():
        out = ["learn", str(tmp_path / "p.zarr"), "--out", str(tmp_path / name), *words]
        result = CliRunner().invoke(main, out)
        assert result.exit_code == 0, result.output
        found[name] = json.loads(result.stdout)
    options = {"n_iterations": 1, "mode": "online", "batch_size": 600, "forget": 0.2}
    expected = learn(tmp_path / "p.zarr", 4, 2, init=first, **options)
    assert found["second"]["atoms_sha256"] == expected.sha256 == found["again"]["atoms_sha256"]
    result = CliRunner().invoke(
        main, ["learn", str(tmp_path / "p.zarr"), "--out", str(tmp_path / "x"), *online, "--plan"]
    )
    assert json.loads(result.stdout)["n_batches"] == 4  # of 640 patches
