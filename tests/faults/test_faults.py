"""Everything that can break while a command writes, or between two: same bits, or a clear error."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from harness import CLEAR, COMMANDS, KINDS, SAME, all_faults, damage, table

N_SOAK = int(os.environ.get("DSC_FAULTS", "1000"))
QUICK = {  # the default run meets every kind once with commands that write and read most
    kind: [name for name in names if name in ("learn", "encode")] for kind, names in KINDS.items()
}
QUICK["kill"] += ["denoise", "features"]


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in QUICK.items() for name in names]
)
def test_fault__ends_in_the_same_bits_or_a_clear_error(bench, kind, name):
    assert bench.attempt(kind, name, seed=0) in (SAME, CLEAR)


@pytest.mark.soak
def test_soak__every_fault_with_every_command(bench, tmp_path):
    """`DSC_FAULTS=100 pytest -m soak tests/faults -s` for fewer; `DSC_TABLE` names a file."""
    outcomes, wrong = defaultdict(Counter), []
    faults = [
        (seed, *one) for seed in range(1 + N_SOAK // len(all_faults())) for one in all_faults()
    ]
    began = time.monotonic()
    for seed, kind, name in faults[:N_SOAK]:
        try:
            outcomes[kind, name][bench.attempt(kind, name, seed)] += 1
        except AssertionError as error:
            outcomes[kind, name]["WRONG"] += 1
            wrong.append(str(error))
            print(f"WRONG {error}", flush=True)
        totals = sum(outcomes.values(), Counter())
        counts = ", ".join(f"{n} {what}" for what, n in sorted(totals.items()))
        text = f"{totals.total()} faults in {time.monotonic() - began:.0f} s: {counts}"
        path = Path(os.environ.get("DSC_TABLE", tmp_path / "table.md"))
        path.write_text(f"{text}\n\n{table(outcomes)}\n")
    print(path.read_text())
    assert not wrong, f"{len(wrong)} of {N_SOAK}:\n" + "\n\n".join(wrong)


# --- the promises, one by one -------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"\0" * 300])
def test_manifest__a_broken_one_of_the_last_checkpoint_is_passed_over(bench, content):
    with bench.place() as place:
        at = bench.n_events["learn"] * 3 // 5
        words = bench_words("learn")
        bench.run(place, [words], fault="kill", at=at)
        *_, last = sorted((place / "new" / "checkpoints").glob("*/manifest.json"))
        last.write_bytes(content)
        [checked] = bench.run(place, [["check", "new"]])
        assert checked.code == 1
        assert str(last.parent) in checked.stdout
        [done] = bench.run(place, [[*words, "--resume"]])
        assert bench.judge("learn", place, done, "a broken manifest") == SAME


def test_checkpoint__a_damaged_one_is_named_and_an_earlier_one_taken(bench):
    with bench.place() as place:
        words = bench_words("learn")
        bench.run(place, [words], fault="kill", at=bench.n_events["learn"] * 3 // 5)
        *_, last = sorted(p.parent for p in (place / "new" / "checkpoints").glob("*/manifest.json"))
        chunk = last / "atoms" / "c" / "0"
        chunk.write_bytes(chunk.read_bytes()[:-9])
        [checked] = bench.run(place, [["check", "new"]])
        assert "atoms/c/0" in checked.stdout
        assert "--resume goes on from" in checked.stdout
        [done] = bench.run(place, [[*words, "--resume"]])
        assert "going on from an earlier checkpoint" in done.stderr
        assert bench.judge("learn", place, done, "a damaged checkpoint") == SAME


@pytest.mark.parametrize("name", ["events.jsonl", "run.json", "run.toml"])
def test_check__names_the_record_with_a_changed_digit(bench, name):
    with bench.place() as place:
        path = place / "run" / name
        text = path.read_text()
        digit = next(i for i in range(len(text) // 2, len(text)) if text[i] in "123")
        path.write_text(text[:digit] + "7" + text[digit + 1 :])
        [done] = bench.run(place, [["check", "run", "--json"]])
        found = json.loads(done.stdout)
        assert done.code == 1
        assert not found["good"]
        assert [one for one in found["bad"] if name in one]
        assert found["saved"]


def test_sweep__a_changed_digit_in_its_result_is_named_and_made_right_again(bench):
    with bench.place() as place:
        words = bench_words("texture sweep")
        bench.run(place, [words])
        path = place / "new" / "sweep.json"
        right = path.read_text()
        digits = [i for i, sign in enumerate(right) if sign in "123"]
        for digit in random.Random(0).sample(digits, 5):
            path.write_text(right[:digit] + "7" + right[digit + 1 :])
            [checked] = bench.run(place, [["check", "new"]])
            assert checked.code == 1
            assert f"{path.relative_to(place)}: is damaged" in checked.stdout
            [refused] = bench.run(place, [words])
            assert "holds an unfinished run: use --resume" in refused.stderr
            [done] = bench.run(place, [[*words, "--resume"]])
            assert bench.judge("texture sweep", place, done, "a changed digit") == SAME
            assert path.read_text() == right


def test_features__a_changed_digit_is_left_out_and_counted_again(bench):
    with bench.place() as place:
        words = [*bench_words("texture evaluate"), "--json"]
        [first] = bench.run(place, [words])
        path = place / "new" / "features.jsonl"
        right = path.read_text()
        for number, line in enumerate(right.splitlines(keepends=True)[1:], 1):
            assert '"counts": [' in line
            digit = right.index(line) + line.index("[") + 1
            path.write_text(right[:digit] + str(9 - int(right[digit])) + right[digit + 1 :])
            shutil.rmtree(place / "new" / "model.zarr")  # whose histograms are these counts
            [checked] = bench.run(place, [["check", "new"]])
            assert f"features.jsonl: record {number + 1} is damaged" in checked.stdout
            [done] = bench.run(place, [[*words, "--resume"]])
            assert "1 damaged lines are left out" in done.stderr
            assert bench.judge("texture evaluate", place, done, "a changed digit") == SAME
            for name in ("accuracy", "confused_pairs", "atoms_sha256"):
                assert json.loads(done.stdout)[name] == json.loads(first.stdout)[name]
            path.write_text(right)


def test_check__lists_every_bad_chunk(bench):
    with bench.place() as place:
        chunks = sorted(p for p in (place / "p.zarr").rglob("*") if "/c/" in str(p) and p.is_file())
        for path in chunks:
            path.write_bytes(b"0123456789")
        [done] = bench.run(place, [["check", "p.zarr"]])
        assert done.code == 1
        assert done.stdout.count("bad: ") == len(chunks)
        for path in chunks:
            assert path.relative_to(place / "p.zarr").as_posix() in done.stdout


def test_check__says_that_all_is_good(bench):
    with bench.place() as place:
        for name in ("p.zarr", "run", "run/model.zarr", "t"):
            [done] = bench.run(place, [["check", name]])
            assert (done.code, done.stderr) == (0, "")
            assert "all good" in done.stdout
        [done] = bench.run(place, [["check", "images"]])
        done.check_clear("no store")
        assert done.code == 2


def test_check__finds_what_stops_a_command(bench):
    for seed in range(12):
        with bench.place() as place:
            rng = random.Random(seed)
            story = damage(rng.choice(["flip", "truncate", "delete"]), [place / "p.zarr"], rng)
            learned, checked = (
                bench.run(place, [words])[0]
                for words in (bench_words("learn"), ["check", "p.zarr"])
            )
            assert checked.code in (0, 1), f"{story}: {checked.stderr}"
            if learned.code:
                assert checked.code == 1, f"{story}: {learned.stderr}"


def test_lock__the_second_of_two_is_refused_in_one_line(bench):
    with bench.place() as place:
        both = bench.run(place, [bench_words("learn"), bench_words("learn")])
        codes = sorted(done.code for done in both)
        assert codes == [0, 2]
        [refused] = [done for done in both if done.code == 2]
        assert len(refused.said) == 1
        assert "works on it since" in refused.said[0] or "holds" in refused.said[0]


def test_lock__of_a_killed_process_is_taken_over(bench):
    with bench.place() as place:
        bench.run(place, [bench_words("learn")], fault="kill", at=bench.n_events["learn"] // 2)
        assert (place / ".new.lock").exists()
        [done] = bench.run(place, [[*bench_words("learn"), "--resume"]])
        assert bench.judge("learn", place, done, "a stale lock") == SAME
        assert not (place / ".new.lock").exists()


def test_disk__a_full_one_is_one_line_with_what_is_free(bench):
    with bench.place() as place:
        [done] = bench.run(place, [bench_words("encode")], fault="full", at=20)
        assert done.code == 2
        assert len(done.said) == 1
        assert "No space left on device" in done.said[0]
        assert "are free there" in done.said[0]


def test_run__a_folder_that_is_removed_meanwhile_is_an_error(bench):
    with bench.place() as place:
        at = bench.n_events["learn"] // 2
        words = bench_words("learn")
        [done] = bench.run(place, [words], fault="gone", at=at, gone=str(place / "new"))
        assert done.code == 2
        done.check_clear("removed")


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
def test_patches__removed_meanwhile_are_an_error_and_the_same_again_works(bench, share):
    with bench.place() as place:
        at = int(bench.n_events["patches"] * share)
        words, gone = bench_words("patches"), place / "new.zarr"
        [done] = bench.run(place, [words], fault="gone", at=at, gone=str(gone))
        assert done.code == 2
        assert len(done.said) == 1
        assert "was removed while it was written: repeat the command" in done.said[0]
        assert not gone.exists()
        [done] = bench.run(place, [words])
        assert bench.judge("patches", place, done, "again") == SAME


def bench_words(name):
    return list(COMMANDS[name].words)
