"""The card of a run folder: where it stands, whatever state the folder is in."""

import json
import re
import shutil
import time
from contextlib import suppress

import numpy as np
import pytest

import dsc
from dsc.dictionary import Run
from dsc.dictionary.cards import SILENCE
from dsc.errors import DscError
from dsc.report.watch import watch_card

OPTIONS = {"n_atoms": 4, "sparsity": 2, "n_iterations": 3, "n_angles": 16}


class Stop(Exception):
    """The run ends here."""


def stop(event):
    if event.iteration == 2:
        raise Stop


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Runs to be copied: one that ended after two passes, and one that is finished."""
    folder = tmp_path_factory.mktemp("runs")
    patches = np.random.default_rng(1).random((600, 7, 7), np.float32)
    with pytest.raises(Stop):
        dsc.learn(patches, run=folder / "half", progress=stop, **OPTIONS)
    dsc.learn(patches, run=folder / "whole", progress=False, **OPTIONS)
    return folder


@pytest.fixture
def half(made, tmp_path):
    return Run(shutil.copytree(made / "half", tmp_path / "half"))


@pytest.fixture
def whole(made, tmp_path):
    return Run(shutil.copytree(made / "whole", tmp_path / "whole"))


def age(run, seconds):
    """Let the last sign of life be so old."""
    pulse = json.loads((run.path / "progress.json").read_text())
    (run.path / "progress.json").write_text(json.dumps({**pulse, "time": time.time() - seconds}))


def chunks(run):
    """Files of the last checkpoint with values in them, the largest first."""
    files = [path for path in run.checkpoints()[-1].rglob("c/*") if path.is_file()]
    return sorted(files, key=lambda path: -path.stat().st_size)


# --- as it should be ----------------------------------------------------------------------------


def test_card__of_a_run_that_goes_on_has_atoms_curve_and_how_far_it_is(half):
    card = half.card()
    assert card.image is not None
    assert len(card.curve) == 2
    assert card.numbers["passes"] == "2"
    assert re.fullmatch(r"running on \d+ threads? of this process", card.note)
    share, text = card.progress
    assert 0 < share < 1
    assert text.startswith("iteration 2 of 3")
    assert card.alert == ""
    assert half.path.name in card.title


def test_card__of_a_finished_run_says_so_and_has_no_bar(whole):
    age(whole, 100 * SILENCE)  # a finished run is silent for good
    card = whole.card()
    assert card.note == "finished"
    assert card.progress is None
    assert card.alert == ""
    assert card.numbers["passes"] == "4"


def test_card__of_a_silent_run_says_for_how_long_and_what_to_do(half):
    age(half, SILENCE - 5)
    assert half.card().alert == ""
    age(half, SILENCE + 60)
    assert re.search(r"no sign of life for 2 min.*--resume", half.card().alert)


def test_card__of_a_run_that_writes_in_the_future_is_not_silent(half):
    """Clocks of two machines may differ."""
    age(half, -10 * SILENCE)
    assert half.card().alert == ""


def test_card__of_a_silent_run_still_tells_of_damage(half):
    age(half, 2 * SILENCE)
    chunks(half)[0].write_bytes(b"")
    alert = half.card().alert
    assert "no sign of life" in alert
    assert "checkpoint cannot be read" in alert


def test_card__is_what_a_notebook_shows(half):
    html = half._repr_html_()
    assert "<img" in html
    assert "<polyline" in html


# --- missing, empty and foreign folders ---------------------------------------------------------


def test_card__of_nothing_says_that_there_is_nothing_yet(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("words")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "run.json").write_text('{"kind": "something else"}')
    for name in ("missing", "empty", "file", "file/below", "foreign"):
        card = Run(tmp_path / name).card()
        assert "no run here yet" in card.alert
        assert card.image is None


# --- damage -------------------------------------------------------------------------------------


def damage_truncated(run):
    chunks(run)[0].write_bytes(chunks(run)[0].read_bytes()[:10])


def damage_flipped(run):
    data = bytearray(chunks(run)[0].read_bytes())
    data[len(data) // 2] ^= 255
    chunks(run)[0].write_bytes(bytes(data))


def damage_missing_chunk(run):
    chunks(run)[0].unlink()


def damage_missing_array(run):
    shutil.rmtree(run.checkpoints()[-1] / "atoms")


def damage_metadata(run):
    for path in run.checkpoints()[-1].rglob("zarr.json"):
        path.write_text('{"zarr_format": 3}')


def damage_manifest(run):
    (run.checkpoints()[-1] / "manifest.json").write_text('{"kind": 3}')


def damage_no_json_manifest(run):
    (run.checkpoints()[-1] / "manifest.json").write_text("…")


def damage_checkpoint_is_a_file(run):
    last = run.checkpoints()[-1]
    shutil.rmtree(last)
    last.write_text("words")


def damage_checkpoints_is_a_file(run):
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "checkpoints").write_text("words")


def damage_mark(run):
    mark = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**mark, "format": 99}))


def damage_cut_mark(run):
    (run.path / "run.json").write_bytes((run.path / "run.json").read_bytes()[:30])


def damage_log(run):
    (run.path / "events.jsonl").write_bytes(b"\xff\xfe not json\n[1]\n3\n")


def damage_log_without_names(run):
    (run.path / "events.jsonl").write_text('{"a": 1}\n{"event": "start"}\n{"event": "iteration"}\n')


def damage_log_of_other_types(run):
    lines = [
        {"event": "start", "place": 3, "names": 5},
        {"event": "iteration", "mse": "small"},
        {"event": ["iteration"]},
    ]
    (run.path / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))


def damage_log_is_a_folder(run):
    (run.path / "events.jsonl").unlink()
    (run.path / "events.jsonl").mkdir()


DAMAGES = {name: one for name, one in list(globals().items()) if name.startswith("damage_")}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_card__of_a_damaged_run_is_a_card_or_our_error(half, damage):
    last = half.checkpoints()[-1]
    images = [half.card().image]
    hidden = last.rename(last.with_name("hidden"))
    images.append(half.card().image)  # of the checkpoint before
    hidden.rename(last)
    damage(half)
    with suppress(DscError):  # nothing else is raised
        card = half.card()
        assert card.html()
        # nothing is shown that is not there
        assert card.image is None or any(np.array_equal(card.image, one) for one in images)
    assert watch_card(half.path).html()


@pytest.mark.parametrize(
    "damage", [damage_truncated, damage_flipped, damage_missing_chunk], ids=lambda d: d.__name__
)
def test_card__of_a_damaged_checkpoint_says_so_and_recovers(half, damage):
    saved = shutil.copytree(half.path, half.path.with_name("saved"))
    damage(half)
    assert "checkpoint cannot be read" in half.card().alert
    shutil.rmtree(half.path)
    shutil.copytree(saved, half.path)
    card = half.card()
    assert card.alert == ""
    assert card.image is not None


# --- garbage in progress.json -------------------------------------------------------------------

NOW = {"time": 0, "share": 0.5, "text": "words"}
GARBAGE = {
    "no json": "…",
    "nothing": "",
    "cut": '{"time": 17',
    "not text": b"\xff\xfe\x00",
    "an array": "[1, 2]",
    "a number": "3",
    "nested": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "no names": '{"a": 1}',
    "no share": json.dumps({"time": 1, "text": "a"}),
    "share of words": json.dumps({**NOW, "share": "half"}),
    "share of nothing": json.dumps({**NOW, "share": None}),
    "share of a list": json.dumps({**NOW, "share": [1]}),
    "share not finite": '{"time": 1, "share": NaN, "text": "a"}',
    "share infinite": '{"time": 1, "share": 1e999, "text": "a"}',
    "share huge": '{"time": 1, "share": 1' + 400 * "0" + ', "text": "a"}',
    "share longer": '{"time": 1, "share": 1' + 5000 * "0" + ', "text": "a"}',
    "share negative": json.dumps({**NOW, "share": -7}),
    "share above one": json.dumps({**NOW, "share": 7}),
    "time of words": json.dumps({**NOW, "time": "noon"}),
    "time of nothing": json.dumps({**NOW, "time": None}),
    "time not finite": '{"time": NaN, "share": 0.5, "text": "a"}',
    "time infinite": '{"time": -1e999, "share": 0.5, "text": "a"}',
    "time huge": '{"time": 1' + 400 * "0" + ', "share": 0.5, "text": "a"}',
    "text is an object": json.dumps({**NOW, "text": {"a": [1]}}),
    "text of a million": json.dumps({**NOW, "text": "long " * 200_000}),
    "half a character": '{"time": 1, "share": 0.5, "text": "\\ud800"}',
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_card__of_garbage_in_progress_json_is_a_card(half, garbage):
    data = garbage if isinstance(garbage, bytes) else garbage.encode()
    (half.path / "progress.json").write_bytes(data)
    card = half.card()
    assert card.image is not None
    html = card.html()
    html.encode()  # it can be sent
    assert len(html) < 200_000
    for width in re.findall(r"width: ([^;\"]*)%", html):
        assert 0 <= float(width) <= 100
    assert "inf" not in card.alert
    assert "nan" not in card.alert
    assert watch_card(half.path).image is not None


def test_card__of_a_folder_in_the_place_of_progress_json_is_a_card(half):
    (half.path / "progress.json").unlink()
    (half.path / "progress.json").mkdir()
    assert half.card().image is not None
