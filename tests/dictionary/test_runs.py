"""Run folders: complete or absent, resumed to the bit, never a wrong number, never overwritten."""

import json
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dsc.dictionary import Dictionary, Run, learn, load_dictionary
from dsc.dictionary.run import describe
from dsc.errors import DscError
from dsc.files import seal
from dsc.patches import ArrayPatches, PatchConfig, extract_patches

OPTIONS = {"n_atoms": 4, "sparsity": 2, "n_iterations": 3, "seed": 3}


class Stop(Exception):
    """The run ends here."""


def stop_after(n_passes):
    """A progress function that ends the run, after the checkpoint of that pass."""
    seen = []

    def progress(event):
        seen.append(event)
        if len(seen) == n_passes:
            raise Stop

    return progress


def interrupted(patches, run, n_passes=2, **options):
    """A run that ended after some passes."""
    with pytest.raises(Stop):
        learn(patches, run=run, progress=stop_after(n_passes), **{**OPTIONS, **options})
    return run


def assert_same(one, other):
    assert one.sha256 == other.sha256
    assert one.history.tolist() == other.history.tolist()
    assert one.count.tolist() == other.count.tolist()


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def undisturbed(patches):
    return learn(patches, **OPTIONS)


@pytest.fixture(scope="module")
def made(patches, tmp_path_factory):
    """Runs to be copied: one that ended after two passes, and one that is finished."""
    folder = tmp_path_factory.mktemp("runs")
    interrupted(patches, folder / "unfinished")
    learn(patches, run=folder / "finished", **OPTIONS)
    return folder


@pytest.fixture
def run(made, tmp_path):
    """A run that ended after two passes."""
    return shutil.copytree(made / "unfinished", tmp_path / "run")


@pytest.fixture
def done(made, tmp_path):
    """A finished run."""
    return shutil.copytree(made / "finished", tmp_path / "done")


# --- what a run leaves --------------------------------------------------------------------------


def test_run__has_the_options_the_log_and_the_model(patches, undisturbed, tmp_path):
    found = learn(patches, run=tmp_path / "run", **OPTIONS)
    assert_same(found, undisturbed)
    assert_same(load_dictionary(str(tmp_path / "run")), undisturbed)
    assert_same(Dictionary.load(str(tmp_path / "run" / "model.zarr")), undisturbed)
    options = tomllib.loads((tmp_path / "run" / "run.toml").read_text())
    assert options.items() >= OPTIONS.items()
    lines = (tmp_path / "run" / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["start", *["iteration"] * 4, "end"]
    assert [e["mse"] for e in events if e["event"] == "iteration"] == undisturbed.history.tolist()
    assert events[-1]["atoms_sha256"] == undisturbed.sha256
    assert Run(tmp_path / "run").n_tasks > 0


def test_run__toml_repeats_it(image, tmp_path):
    made = extract_patches(image("camera")[:40, :40], tmp_path / "p.zarr", PatchConfig(7))
    options = {**OPTIONS, "min_improvement": 1e-5, "replace_twins": 0.9, "update": "mod"}
    found = learn(str(tmp_path / "p.zarr"), run=tmp_path / "run", **options)
    repeat = tomllib.loads((tmp_path / "run" / "run.toml").read_text())
    assert repeat.pop("patches") == str(tmp_path / "p.zarr")
    assert_same(learn(made, **repeat), found)


def test_run__keeps_the_last_checkpoints_only(patches, tmp_path):
    run = interrupted(patches, tmp_path / "run", n_passes=3)
    kept = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert 1 <= len(kept) <= 2
    assert "3" in kept[-1]


def test_describe__says_what_a_run_is(run, done):
    about = describe(str(run))
    assert (about["kind"], about["finished"], about["n_atoms"]) == ("run", False, 4)
    assert describe(str(done))["finished"] is True


# --- resuming -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_passes", "update", "basis"),
    [(1, "mod", "disk"), (2, "ksvd", "annular"), (2, "mod", "pixels"), (3, "ksvd", "disk")],
)
def test_resume__ends_in_the_same_bits(patches, tmp_path, n_passes, update, basis):
    options = {"update": update, "basis": basis}
    run = interrupted(patches, tmp_path / "run", n_passes, **options)
    events = []
    found = learn(patches, run=run, resume=True, progress=events.append, **{**OPTIONS, **options})
    assert_same(found, learn(patches, **{**OPTIONS, **options}))
    assert_same(load_dictionary(str(run)), found)
    assert len(events) == 4 - n_passes  # what was done is not done again


def test_resume__on_another_scheduler_has_the_same_bits(patches, undisturbed, run):
    found = learn(patches, run=run, resume=True, scheduler="synchronous", **OPTIONS)
    assert_same(found, undisturbed)


def test_resume__several_times(patches, undisturbed, tmp_path):
    run = interrupted(patches, tmp_path / "run", 1)
    for _ in range(2):
        with pytest.raises(Stop):
            learn(patches, run=run, resume=True, progress=stop_after(1), **OPTIONS)
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)


@pytest.mark.parametrize("n_passes", [2, 3])
def test_resume__early_stop_is_where_it_would_have_been(planted, tmp_path, n_passes):
    options = {"n_iterations": 9, "min_improvement": 0.1}
    expected = learn(planted, **{**OPTIONS, **options})
    run = interrupted(planted, tmp_path / "run", n_passes, **options)
    assert_same(learn(planted, run=run, resume=True, **{**OPTIONS, **options}), expected)


def test_resume__of_nothing_starts(patches, undisturbed, tmp_path):
    assert_same(learn(patches, run=tmp_path / "new", resume=True, **OPTIONS), undisturbed)


def test_resume__before_the_first_checkpoint_starts(patches, undisturbed, run):
    shutil.rmtree(run / "checkpoints")
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)


def test_resume__of_a_finished_run_returns_it_without_work(patches, undisturbed, done):
    before = contents(done)
    events = []
    again = learn(patches, run=done, resume=True, progress=events.append, **OPTIONS)
    assert_same(again, undisturbed)
    assert not events
    assert contents(done) == before


def test_resume__killed_before_the_model_was_whole(patches, undisturbed, done):
    (done / "model.zarr" / "manifest.json").unlink()
    with pytest.raises(DscError, match=r"not finished: .*--resume"):
        load_dictionary(str(done))
    assert_same(learn(patches, run=done, resume=True, **OPTIONS), undisturbed)


def test_resume__killed_while_a_checkpoint_was_written(patches, undisturbed, run):
    last = sorted((run / "checkpoints").iterdir())[-1]
    (last / "manifest.json").unlink()
    shutil.rmtree(last / "atoms" / "c")
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)


def test_resume__the_log_says_from_where(patches, run):
    (sorted((run / "checkpoints").iterdir())[-1] / "manifest.json").unlink()
    learn(patches, run=run, resume=True, **OPTIONS)
    starts = [e["iteration"] for e in Run(run).events() if e["event"] == "start"]
    assert starts == [0, 1]  # the second checkpoint is not complete


def test_resume__killed_while_an_event_was_written(patches, undisturbed, run):
    log = run / "events.jsonl"
    log.write_text(log.read_text()[:-20])
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)
    assert Run(run).events()[-1]["event"] == "end"
    assert Run(run).n_tasks > 0
    assert describe(str(run))["finished"] is True


@pytest.mark.parametrize("what", ["nothing", "half a mark", "the mark", "half a run.toml"])
def test_run__killed_while_its_folder_was_made(patches, undisturbed, made, tmp_path, what):
    """Whatever the first moments of a run leave, it is ours, and can be taken up again."""
    finished, run = made / "finished", tmp_path / "run"
    run.mkdir()
    mark, text = ((finished / name).read_bytes() for name in ("run.json", "run.toml"))
    if what == "half a mark":
        (run / ".run.json.partial").write_bytes(mark[:10])
    elif what != "nothing":
        (run / "run.json").write_bytes(mark)
    if what == "half a run.toml":
        (run / "checkpoints").mkdir()
        (run / ".run.toml.partial").write_bytes(text[: len(text) // 2])
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)
    assert (run / "run.toml").read_bytes() == text


# --- what is not ours stays ---------------------------------------------------------------------


def test_run__a_patch_set_inside_the_folder_is_kept(image, tmp_path):
    made = extract_patches(image("camera")[:40, :40], tmp_path / "exp/patches", PatchConfig(7))
    before = contents(tmp_path / "exp")
    for start in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(DscError, match="exists and is no run of dsc"):
            learn(made, run=tmp_path / "exp", **start, **OPTIONS)
    assert contents(tmp_path / "exp") == before


@pytest.mark.parametrize("name", ["report", "checkpoints", "patches", "model.zarr"])
def test_run__a_folder_with_a_name_of_ours_is_kept(patches, tmp_path, name):
    thesis = tmp_path / "mine" / name / "thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("do not lose me")
    for start in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(DscError, match="exists and is no run of dsc"):
            learn(patches, run=tmp_path / "mine", **start, **OPTIONS)
    assert thesis.read_text() == "do not lose me"


@pytest.mark.parametrize("which", ["run", "done"])
def test_overwrite__removes_what_the_run_wrote_and_nothing_else(patches, run, done, which):
    run = {"run": run, "done": done}[which]
    mine = [
        run / "notes.txt",
        run / "features.jsonl",  # this run is of no textures: it is not ours
        run / "report" / "thesis.tex",
        run / "patches" / "a.zarr" / "zarr.json",
        run / "checkpoints" / "best.zarr" / "zarr.json",
        run / "checkpoints" / "000009.zarr" / "data.csv",
    ]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    options = {**OPTIONS, "seed": 8, "n_iterations": 1}
    assert_same(learn(patches, run=run, overwrite=True, **options), learn(patches, **options))
    assert all(path.read_text() == "{}" for path in mine)
    assert tomllib.loads((run / "run.toml").read_text())["seed"] == 8
    assert sum(event["event"] == "start" for event in Run(run).events()) == 1


@pytest.mark.parametrize("text", ['{"kind": "thesis", "files": ["a.txt"]}', "[1]", "half a {"])
def test_overwrite__a_report_of_others_is_kept(patches, done, text):
    report = done / "report"
    report.mkdir(exist_ok=True)
    (report / "report.json").write_text(text)
    (report / "a.txt").write_text("mine")
    learn(patches, run=done, overwrite=True, **OPTIONS)
    assert (report / "report.json").read_text() == text
    assert (report / "a.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["../precious.txt", "/tmp/dsc-precious.txt"])
def test_overwrite__never_leaves_the_folder(patches, done, tmp_path, name):
    (tmp_path / "precious.txt").write_text("mine")
    mark = json.loads((done / "run.json").read_text())
    mark["results"].append(name)
    mark["logs"].append(name)
    (done / "run.json").write_text(json.dumps(mark))
    before = contents(done)
    with pytest.raises(DscError, match="is damaged"):
        learn(patches, run=done, overwrite=True, **OPTIONS)
    assert (tmp_path / "precious.txt").read_text() == "mine"
    assert contents(done) == before


def test_overwrite__what_is_behind_a_link_is_kept(patches, done, tmp_path):
    for name in ("model.zarr", "checkpoints/000003.zarr"):
        kept = tmp_path / Path(name).name
        shutil.move(done / name, kept)
        (done / name).symlink_to(kept)
    before = contents(tmp_path / "model.zarr"), contents(tmp_path / "000003.zarr")
    options = {**OPTIONS, "seed": 8}
    assert_same(learn(patches, run=done, overwrite=True, **options), learn(patches, **options))
    assert (contents(tmp_path / "model.zarr"), contents(tmp_path / "000003.zarr")) == before


@pytest.mark.parametrize("part", ["results", "logs", "token", "identity"])
def test_run__a_mark_without_a_part_is_an_error(patches, done, part):
    mark = json.loads((done / "run.json").read_text())
    del mark[part]
    (done / "run.json").write_text(json.dumps(mark))
    before = contents(done)
    for start in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(DscError, match="is damaged"):
            learn(patches, run=done, **start, **OPTIONS)
    assert contents(done) == before


@pytest.mark.parametrize("start", [{}, {"resume": True}, {"overwrite": True}])
def test_run__of_another_format_is_refused(patches, done, start):
    mark = json.loads((done / "run.json").read_text())
    del mark["crc32c"]
    (done / "run.json").write_text(seal({**mark, "format": 2}))
    before = contents(done)
    with pytest.raises(DscError, match="another format than 3"):
        learn(patches, run=done, **start, **OPTIONS)
    assert contents(done) == before


def test_run__resume_and_overwrite_together_are_refused(patches, run):
    before = contents(run)
    with pytest.raises(DscError, match="found both"):
        learn(patches, run=run, resume=True, overwrite=True, **OPTIONS)
    assert contents(run) == before


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_atoms": 5}, "config: n_atoms: 4 instead of 5"),
        ({"sparsity": 1, "seed": 4}, "config: seed: 3 instead of 4; sparsity: 2 instead of 1"),
        ({"update": "mod"}, "config: update: ksvd instead of mod"),
        ({"basis": "annular"}, "config: basis: disk instead of annular"),
        ({"n_iterations": 6}, "config: n_iterations: 3 instead of 6"),
        ({"min_improvement": 0.1}, "config: min_improvement: None instead of 0.1"),
    ],
)
@pytest.mark.parametrize("which", ["run", "done"])
def test_resume__with_other_options_is_refused_by_name(patches, run, done, change, message, which):
    run = {"run": run, "done": done}[which]
    before = contents(run)
    with pytest.raises(DscError, match=f"(?s)cannot resume.*{message}"):
        learn(patches, run=run, resume=True, **{**OPTIONS, **change})
    assert contents(run) == before


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda p: p[:-1], "n_patches: 2000 instead of 1999"),
        (lambda p: ArrayPatches(p, center=True), "center: False instead of True"),
        (lambda p: np.where(np.arange(2000)[:, None, None] == 77, p + 1e-3, p), "fingerprint: "),
    ],
)
def test_resume__with_other_patches_is_refused_by_name(patches, run, other, message):
    with pytest.raises(DscError, match=f"(?s)cannot resume.*patches: .*{message}"):
        learn(other(patches), run=run, resume=True, **OPTIONS)


def test_resume__on_another_cpu_is_refused_by_name(patches, run, monkeypatch):
    monkeypatch.setattr("dsc.engine.numerics.binding.get_host_cpu_name", lambda: "pentium")
    with pytest.raises(DscError, match=r"(?s)cannot resume.*numerics: cpu: .* instead of pentium"):
        learn(patches, run=run, resume=True, **OPTIONS)


def test_run__a_finished_one_is_not_overwritten(patches, done):
    before = contents(done)
    with pytest.raises(DscError, match="a finished run: use --overwrite"):
        learn(patches, run=done, **{**OPTIONS, "seed": 9})
    assert contents(done) == before


def test_run__an_unfinished_one_is_not_started_over(patches, undisturbed, run):
    before = contents(run)
    with pytest.raises(DscError, match=r"unfinished run: use --resume .* or --overwrite"):
        learn(patches, run=run, **OPTIONS)
    assert contents(run) == before
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)


@pytest.mark.parametrize("resume", [False, True])
def test_run__a_path_that_is_not_ours_is_refused(patches, tmp_path, resume):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("do not lose me")
    (tmp_path / "file").write_text("nor me")
    for name in ("mine", "file"):
        with pytest.raises(DscError, match="exists and is no run of dsc"):
            learn(patches, run=tmp_path / name, resume=resume, **OPTIONS)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "do not lose me"
    assert (tmp_path / "file").read_text() == "nor me"


def test_run__a_patch_set_is_not_taken_for_a_run(image, tmp_path):
    extract_patches(image("camera")[:30, :30], tmp_path / "p.zarr", PatchConfig(7))
    with pytest.raises(DscError, match="no run of dsc"):
        learn(tmp_path / "p.zarr", 2, 1, run=tmp_path / "p.zarr")


@pytest.mark.parametrize("bad", [{"sparsity": 500}, {"memory_limit": "1MB"}, {"n_angles": 0}])
def test_run__a_mistake_neither_makes_a_folder_nor_destroys_a_run(patches, run, tmp_path, bad):
    with pytest.raises(DscError):
        learn(patches, run=tmp_path / "new", **{**OPTIONS, **bad})
    assert not (tmp_path / "new").exists()
    before = contents(run)
    with pytest.raises(DscError):
        learn(patches, run=run, **{**OPTIONS, **bad})
    assert contents(run) == before


# --- damage -------------------------------------------------------------------------------------


def flip(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def outcome(patches, run):
    """The resumed dictionary, or the error."""
    try:
        return learn(patches, run=run, resume=True, **OPTIONS)
    except DscError as error:
        return error


@pytest.mark.parametrize("how", [flip, lambda file: file.unlink()], ids=["flipped", "lost"])
def test_resume__a_damaged_checkpoint_never_gives_a_wrong_number(
    patches, undisturbed, made, tmp_path, how
):
    """Every file in turn: the run is refused with a clear error, or goes on from an earlier one."""
    last = sorted((made / "unfinished" / "checkpoints").iterdir())[-1]
    files = sorted(p.relative_to(made / "unfinished") for p in last.rglob("*") if p.is_file())
    assert len(files) > 15
    for file in files:
        run = shutil.copytree(made / "unfinished", tmp_path / str(file).replace("/", "-"))
        how(run / file)
        found = outcome(patches, run)
        if isinstance(found, DscError):
            assert last.name in str(found)
            assert "damaged" in str(found) or "missing" in str(found)
        else:
            assert_same(found, undisturbed)


def test_resume__goes_on_from_an_earlier_checkpoint(patches, undisturbed, run):
    shutil.rmtree(sorted((run / "checkpoints").iterdir())[-1])
    assert_same(learn(patches, run=run, resume=True, **OPTIONS), undisturbed)
