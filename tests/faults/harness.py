"""A bench for faults: commands with known results, things that go wrong, and what came of it.

Every fault is a kind, a command and a seed, by which it can be repeated. It ends in *same bits* or
in a *clear error*; anything else is an `AssertionError` that tells the story.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from dsc.files import unseal

SAME, CLEAR = "same bits", "clear error"
LEARN = ["learn", "p.zarr", "--n-atoms", "4", "--sparsity", "2", "--n-iterations", "3"]
TEXTURE = ["tex", "--diameter", "7", "--n-atoms", "3", "--n-iterations", "2"]


@dataclass(frozen=True)
class Command:
    """A command, what it reads and makes, and how it is said again after a fault."""

    words: tuple[str, ...]
    reads: tuple[str, ...] = ()  # stores and runs that may be damaged
    makes: str = ""  # a store, run folder or file
    resume: bool = False  # whether it has --resume

    def again(self):
        return [*self.words, *["--resume"] * self.resume]


def _command(words, reads="", makes="", resume=False):
    return Command(tuple(words), tuple(reads.split()), makes, resume)


RESTORE = ["--out", "new.zarr", "--n-atoms", "3", "--n-iterations", "1", "--diameter", "5"]
PREDICT = ["texture", "predict", "t", "tex/brick/0.png", "tex/grass/1.png", "--json"]
COMMANDS = {
    "patches": _command(
        ["patches", "images", "--out", "new.zarr", "--diameter", "7", "--center"], "", "new.zarr"
    ),
    "learn": _command([*LEARN, "--out", "new"], "p.zarr", "new", True),
    "encode": _command(["encode", "p.zarr", "run", "--out", "new.zarr"], "p.zarr run", "new.zarr"),
    "reconstruct": _command(
        ["reconstruct", "images/camera.png", "run", "--out", "new.npy"], "run", "new.npy"
    ),
    "denoise": _command(["denoise", "wide.png", *RESTORE], "", "new.zarr", True),
    "inpaint": _command(
        ["inpaint", "wide.png", "--mask", "holes.png", *RESTORE], "", "new.zarr", True
    ),
    "orientation": _command(
        ["orientation", "wide.png", "run", "--out", "new.zarr"], "run", "new.zarr", True
    ),
    "features": _command(
        ["features", "wide.png", "run", "--out", "new.zarr"], "run", "new.zarr", True
    ),
    "info": _command(["info", "run", "--json"], "run"),
    "check": _command(["check", "run"], "run"),
    "report": _command(["report", "run"], "run", "run/report"),
    "texture fit": _command(["texture", "fit", *TEXTURE, "--out", "new"], "", "new", True),
    "texture predict": _command([*PREDICT, "--features", "new.jsonl"], "t", "new.jsonl"),
    "texture evaluate": _command(
        ["texture", "evaluate", *TEXTURE, "--test", "other", "--no-lbp", "--out", "new"],
        "", "new", True,
    ),
    "texture sweep": _command(
        ["texture", "sweep", "tex", "--diameter", "7", "--n-atoms", "3", "--sparsity", "1",
         "--sparsity", "2", "--method", "rotational", "--n-iterations", "2", "--held-out", "0.5",
         "--repeats", "3", "--out", "new"],
        "", "new", True,
    ),
}  # fmt: skip
WRITERS = [name for name, one in COMMANDS.items() if one.makes]
READERS = [name for name, one in COMMANDS.items() if one.reads]
RESUMED = [name for name, one in COMMANDS.items() if one.resume]

EVENTS = ("kill", "stop", "full", "inodes", "read-only", "gone")  # while a command writes
DAMAGES = ("flip", "truncate", "zero", "delete", "exchange")  # of what is on a disk
KINDS = {
    **dict.fromkeys(EVENTS, WRITERS),
    **dict.fromkeys(DAMAGES, READERS),
    **{f"kill, then {one}": RESUMED for one in DAMAGES},
    "crafted": READERS,
    "two at once": [name for name in WRITERS if name != "report"],
}


def all_faults():
    """Every kind of fault with every command that it can meet."""
    return [(kind, name) for kind, names in KINDS.items() for name in names]


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int | None
    stdout: str
    stderr: str
    n_events: int

    @property
    def said(self):
        """What stderr has but for the lines of progress."""
        lines = self.stderr.splitlines()
        first = next((i for i, line in enumerate(lines) if line.startswith("dsc: ")), None)
        return lines[first:] if first is not None else lines

    def check_clear(self, story):
        """It must have ended with an error that people understand."""
        where = f"{story}\nexit code {self.code}\n{self.stdout[-500:]}\n{self.stderr[-1000:]}"
        assert self.code is not None, f"did not end: {where}"
        assert "Traceback" not in self.stderr, f"a traceback: {where}"
        assert self.code in (1, 2, 130, 143), f"exit code: {where}"
        if self.code == 1:  # of `dsc check`, which lists what is bad
            assert "bad: " in self.stdout, where
        elif self.code == 2:
            assert any(line.startswith("dsc: ") for line in self.said[:1]), f"no message: {where}"
            assert len(self.said) <= 10, f"says too much: {where}"
            assert "Error(" not in self.said[0], where


class Bench:
    """A folder with what all commands need, the right results, and the process that runs them."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.template = self.folder / "template"
        self.names = count()
        self.server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.server.stdout.readline().split() == ["ready", "1"]  # threads: forks have none
        self.can_mount = os.geteuid() == 0 and self._try_mount()
        self._make_template()
        self.right, self.n_events, self.grown = {}, {}, {}
        for name, command in COMMANDS.items():
            with self.place() as place:
                before = _used(place)
                [done] = self.run(place, [command.words])
                assert done.code == 0, done.stderr
                self.right[name] = bits(name, place, done)
                self.n_events[name] = done.n_events
                self.grown[name] = [b - a for a, b in zip(before, _used(place), strict=True)]

    def close(self):
        self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def _try_mount(self):
        place = self.folder / "disk"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "none", place], capture_output=True)
        if done.returncode == 0:
            subprocess.run(["umount", place], check=True)
        return done.returncode == 0

    def _make_template(self):
        for name in ("camera", "coins"):
            _save(self.template / "images" / f"{name}.png", getattr(data, name)()[100:140, 100:140])
        _save(self.template / "wide.png", data.camera()[100:130, 100:240])  # two tiles
        _save(self.template / "holes.png", np.uint8(data.camera()[:30, :140] % 7 == 0))
        for name in ("brick", "grass"):
            for i in range(3):
                grey = getattr(data, name)()[40 * i : 40 * i + 24, :24]
                _save(self.template / "tex" / name / f"{i}.png", grey)
                other = getattr(data, name)()[40 * i : 40 * i + 24, 100:124]
                _save(self.template / "other" / name / f"{i}.png", other)
        for words in (
            ["patches", "images", "--out", "p.zarr", "--diameter", "7", "--center"],
            [*LEARN, "--out", "run"],
            ["texture", "fit", *TEXTURE, "--out", "t"],
        ):
            [done] = self.run(self.template, [words])
            assert done.code == 0, done.stderr

    @contextmanager
    def place(self, on_disk=False):
        """A copy of the template, on a small disk of its own if that is wanted."""
        place = self.folder / f"place{next(self.names)}"
        place.mkdir()
        if on_disk:
            subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        try:
            shutil.copytree(self.template, place, dirs_exist_ok=True)
            yield place
        finally:
            if on_disk:
                subprocess.run(["umount", "-l", place], check=True)
            shutil.rmtree(place, ignore_errors=True)

    def run(self, place, many, **fault):
        """Run commands, all at the same time."""
        logs = [self.folder / f"log{i}" for i in range(len(many))]
        orders = [
            {"words": list(words), "folder": str(place), "stdout": f"{log}.out",
             "stderr": f"{log}.err", "counter": f"{log}.n", **fault}
            for words, log in zip(many, logs, strict=True)
        ]  # fmt: skip
        self.server.stdin.write(json.dumps(orders) + "\n")
        self.server.stdin.flush()
        codes = json.loads(self.server.stdout.readline())
        return [
            Done(
                code,
                Path(f"{log}.out").read_text(),
                Path(f"{log}.err").read_text(),
                int.from_bytes(Path(f"{log}.n").read_bytes(), "little"),
            )
            for code, log in zip(codes, logs, strict=True)
        ]

    # --- faults ---------------------------------------------------------------------------------

    def attempt(self, kind, name, seed):
        """Let a fault happen; what came of it, *same bits* or *clear error*."""
        rng = random.Random(f"{kind} {name} {seed}")
        story = f"{kind}, dsc {name}, seed {seed}"
        if kind in ("full", "inodes") and self.can_mount:
            return self._small_disk(kind, name, rng, story)
        if kind in EVENTS:
            return self._event(kind, name, rng, story)
        if kind == "two at once":
            return self._two(name, story)
        with self.place() as place:
            command = COMMANDS[name]
            words, targets = list(command.words), [place / one for one in command.reads]
            if kind.startswith("kill, then "):
                kind = kind.removeprefix("kill, then ")
                at = rng.randint(1, self.n_events[name])
                self.run(place, [words], fault="kill", at=at)
                words, targets = command.again(), [place / command.makes]
                story += f", killed at {at}"
            change = craft if kind == "crafted" else damage
            story += ", " + change(kind, targets, rng)
            [done] = self.run(place, [words])
            return self.judge(name, place, done, story)

    def _event(self, kind, name, rng, story):
        fault = {"read-only": "denied"}.get(kind, kind)
        at = rng.randint(1, self.n_events[name])
        story += f", at {at} of {self.n_events[name]}"
        command = COMMANDS[name]
        with self.place() as place:
            gone = str(place / command.makes)
            [done] = self.run(place, [command.words], fault=fault, at=at, gone=gone)
            if kind != "kill" or done.code != -9:
                first = self.judge(name, place, done, story)
                if first == SAME:
                    return SAME
            return self._repeat(name, place, story)

    def _small_disk(self, kind, name, rng, story):
        what, option = (0, "size") if kind == "full" else (1, "nr_inodes")
        with self.place(on_disk=True) as place:
            room = rng.randint(0, max(1, self.grown[name][what]))
            limit = _used(place)[what] + room
            unit = "k" if kind == "full" else ""
            _remount(place, f"{option}={limit}{unit}")
            story += f", {option} {limit}{unit} ({room} free)"
            [done] = self.run(place, [COMMANDS[name].words])
            if self.judge(name, place, done, story) == SAME:
                return SAME
            if kind == "full":
                assert "are free there" in done.stderr, f"{story}: {done.stderr}"
            _remount(place, f"{option}={limit + 10**6}{unit}")
            return self._repeat(name, place, story)

    def _repeat(self, name, place, story):
        """After a command was stopped, the same again ends in the same bits."""
        [done] = self.run(place, [COMMANDS[name].again()])
        finished = "exists, a finished store" in done.stderr  # stopped when only its lock was left
        if finished or (name == "reconstruct" and "exists" in done.stderr):
            done = Done(0, "", "", 0)  # it is never overwritten, but must be the right one
        found = self.judge(name, place, done, f"{story}, then again")
        assert found == SAME, f"{story}: cannot go on: {done.stderr}"
        return SAME

    def _two(self, name, story):
        command = COMMANDS[name]
        with self.place() as place:
            both = self.run(place, [command.again(), command.again()])
            for done in both:
                assert done.code is not None, story
                if done.code:
                    done.check_clear(story)
                    assert len(done.said) == 1, f"{story}: {done.stderr}"
            assert any(done.code == 0 for done in both), f"{story}: {both}"
            best = next(done for done in both if done.code == 0)
            assert bits(name, place, best) == self.right[name], f"{story}: other bits"
            return SAME if all(done.code == 0 for done in both) else CLEAR

    def judge(self, name, place, done, story):
        """Same bits, clear error, or an AssertionError."""
        if done.code != 0:
            done.check_clear(story)
            return CLEAR
        assert bits(name, place, done) == self.right[name], (
            f"{story}: exit code 0 and other bits\n{done.stdout}\n{done.stderr}"
        )
        return SAME


def bits(name, place, done):
    """What decides whether a result is the right one."""
    if name == "info":
        return done.stdout.replace(str(place), "")
    if name == "check":
        return "all good" in done.stdout
    if name == "texture predict":
        return json.dumps(json.loads(done.stdout)["predictions"])
    made = place / COMMANDS[name].makes
    if name == "report":
        facts = json.loads((made / "report.json").read_text())
        return json.dumps([facts["history"], facts["run"]["atoms_sha256"]])
    if name == "texture sweep":
        found = unseal((made / "sweep.json").read_text())
        return json.dumps(_timeless(found["settings"]))
    if not made.exists():
        return None
    if made.is_file():
        return hashlib.sha256(made.read_bytes()).hexdigest()
    stores = [made] if made.suffix == ".zarr" else [made / "model.zarr"]
    total = hashlib.sha256()
    for store in stores:
        assert (store / "manifest.json").is_file(), f"{store}: exit code 0 and not finished"
        for path in sorted(p for p in store.rglob("*") if p.is_file() and "/c/" in str(p)):
            total.update(str(path.relative_to(store)).encode() + path.read_bytes())
    return total.hexdigest()


def _timeless(tree):
    """JSON without seconds, which differ from run to run."""
    if isinstance(tree, dict):
        return {k: _timeless(v) for k, v in tree.items() if not k.startswith("seconds")}
    return [_timeless(one) for one in tree] if isinstance(tree, list) else tree


def files_of(targets):
    """All files that are read; what is only for people is left out."""
    return sorted(
        path
        for target in targets
        for path in ([target] if target.is_file() else target.rglob("*"))
        if path.is_file() and "report" not in path.parts and path.name != "progress.json"
    )


def damage(kind, targets, rng):
    """Spoil a file; what was done."""
    files = files_of(targets)
    if not files:
        return "nothing there yet"
    path = rng.choice(files)
    content = bytearray(path.read_bytes())
    name = f"{kind} {path}"
    if kind == "delete":
        path.unlink()
    elif kind == "truncate":
        path.write_bytes(content[: rng.randrange(len(content) or 1)])
    elif kind == "zero":
        begin = rng.randrange(len(content) or 1)
        content[begin:] = bytes(len(content) - begin)
        path.write_bytes(content)
    elif kind == "flip" and content:
        place = rng.randrange(len(content))
        content[place] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        name += f" at {place}"
    elif kind == "exchange":
        alike = [p for p in files if p != path and p.name == path.name] or files
        other = rng.choice(alike)
        theirs = other.read_bytes()
        other.write_bytes(content)
        path.write_bytes(theirs)
        name += f" with {other}"
    return name


STRANGE = (None, -1, 0, 10**15, "", "x", [], {}, [[]], 1e400, "../../x", True)


def craft(_, targets, rng):
    """Change a value in the metadata of a store and make all its hashes fit again."""
    stores = sorted({p.parent for target in targets for p in target.rglob("manifest.json")})
    store = rng.choice(stores)
    manifest = json.loads((store / "manifest.json").read_text())
    arrays = [key for key in manifest["metadata"] if "/" in key]
    inside = rng.random() < 0.6
    key = rng.choice(arrays)
    tree = json.loads((store / key).read_text()) if inside else manifest
    changed = dict(tree) if inside else {k: tree[k] for k in ("metadata", "chunks", "checksums")}
    changed.pop("attributes", None)
    node, name = rng.choice(list(_nodes(changed)))
    value = rng.choice(STRANGE)
    node[name] = value
    tree |= changed
    if inside:
        (store / key).write_text(json.dumps(tree))
        manifest["metadata"][key] = hashlib.sha256((store / key).read_bytes()).hexdigest()
    manifest.pop("sha256")
    own = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    (store / "manifest.json").write_text(json.dumps({**manifest, "sha256": own}))
    return f"{store / key if inside else store / 'manifest.json'}: {name} is {value!r}"


def _nodes(tree):
    """Every place in a tree of JSON at which a value stands."""
    names = tree if isinstance(tree, dict) else range(len(tree))
    for name in list(names):
        yield tree, name
        if isinstance(tree[name], dict | list):
            yield from _nodes(tree[name])


def _save(path, grey):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.ascontiguousarray(grey)).save(path)


def _used(place):
    """Kilobytes and inodes, as a small disk counts them."""
    paths = [place, *place.rglob("*")]
    pages = sum(-(-p.stat().st_size // 4096) for p in paths if p.is_file())
    return [4 * pages, len(paths)]


def _remount(place, option):
    subprocess.run(["mount", "-o", f"remount,{option}", place], check=True)


def table(outcomes):
    """fault × command × outcome as Markdown, from {(kind, name): {outcome: number}}."""
    names = list(COMMANDS)
    lines = ["| fault | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for kind in KINDS:
        cells = []
        for name in names:
            found = outcomes.get((kind, name), {})
            cells.append(", ".join(f"{n} {what}" for what, n in sorted(found.items())) or "")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
