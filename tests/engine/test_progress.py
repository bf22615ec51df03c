"""Signs of life while tasks run: what listeners hear on every scheduler, and where tasks run."""

import asyncio
import time
from itertools import pairwise

import dask
import psutil
import pytest
from distributed import Client, LocalCluster, default_client

import dsc
from dsc.dictionary import loop
from dsc.dictionary.events import Iteration
from dsc.engine import schedulers
from dsc.errors import DscError
from dsc.show import Place, Pulse, events

N_PATCHES = 8000
OPTIONS = {"n_atoms": 3, "sparsity": 2, "n_iterations": 2, "n_angles": 16}


class Recorder:
    """Keeps what it hears."""

    def __init__(self):
        self.heard = []
        self.n_closed = 0

    def __call__(self, event):
        assert not self.n_closed
        self.heard.append(event)

    def close(self):
        self.n_closed += 1

    def all(self, kind):
        return [event for event in self.heard if isinstance(event, kind)]


@pytest.fixture(scope="module")
def patches(windows):
    return windows(7, N_PATCHES)


@pytest.fixture(scope="module")
def expected(patches):
    return dsc.learn(patches, scheduler="synchronous", **OPTIONS).sha256


@pytest.fixture
def slow_tasks(monkeypatch):
    """Every task over a part of the patches takes some time, on all schedulers."""
    code_part = loop.code_part

    def slow(part, step):
        time.sleep(0.08)
        return code_part(part, step)

    monkeypatch.setattr(loop, "code_part", slow)


@pytest.fixture
def quick_pulses(monkeypatch):
    """Pulses come more often, so that short runs have some."""
    monkeypatch.setattr(events, "PERIOD", 0.03)
    monkeypatch.setattr(schedulers, "PERIOD", 0.03)


# --- what is heard ------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["threads", "synchronous", "processes", "client"])
def test_progress__grows_inside_an_iteration_on_every_scheduler(
    request, patches, expected, slow_tasks, quick_pulses, where
):
    scheduler = request.getfixturevalue("client") if where == "client" else where
    recorder = Recorder()
    model = dsc.learn(patches, scheduler=scheduler, n_workers=2, progress=recorder, **OPTIONS)
    assert model.sha256 == expected
    assert isinstance(recorder.heard[0], Place)  # before any work
    assert len(recorder.all(Place)) == 1
    assert recorder.n_closed == 1
    by_stage = {}
    for pulse in recorder.all(Pulse):
        by_stage.setdefault(pulse.stage, []).append(pulse)
    names = [stage.name for stage in by_stage]
    assert {"iteration 1 of 2", "iteration 2 of 2", "final pass"} <= set(names)
    inside = 0
    for stage, pulses in by_stage.items():
        done = [pulse.done for pulse in pulses]
        assert done == sorted(done)
        assert done[0] >= 0
        assert done[-1] <= stage.n_patches == N_PATCHES
        inside += sum(0 < one < N_PATCHES for one in done)
        shares = [pulse.bar()[0] for pulse in pulses]
        assert all(0 <= share <= 1 for share in shares)
        for pulse in pulses:
            if pulse.done:
                assert pulse.patches_per_second > 0
                assert pulse.seconds_left >= 0
                assert "patches/s" in pulse.bar()[1]
                assert " left" in pulse.bar()[1]
            else:
                assert pulse.seconds_left is None
    assert inside >= 3
    assert [event.finished for event in recorder.all(Iteration)] == [False, False, True]


def test_progress__is_at_most_two_pulses_in_a_second(patches, slow_tasks):
    recorder = Recorder()
    began = time.perf_counter()
    dsc.learn(patches, scheduler="synchronous", progress=recorder, **OPTIONS)
    lasted = time.perf_counter() - began
    pulses = recorder.all(Pulse)
    assert 3 <= len(pulses) <= 2 * lasted + 2
    for first, second in pairwise(pulses):
        if first.stage == second.stage:
            assert second.seconds > first.seconds
    for first, third in zip(pulses, pulses[2:], strict=False):
        if first.stage == third.stage:
            assert third.seconds - first.seconds > 0.999  # but for rounding


def test_progress__a_pulse_is_never_late_by_the_listeners_of_a_run(
    patches, slow_tasks, quick_pulses, tmp_path
):
    """A run folder listens too, and has the last sign of life that the others heard."""
    recorder = Recorder()
    dsc.learn(patches, scheduler="threads", progress=recorder, run=tmp_path / "run", **OPTIONS)
    run = dsc.dictionary.Run(tmp_path / "run")
    assert recorder.all(Pulse)
    assert run.pulse()["share"] == 1
    assert run.pulse()["text"] == recorder.heard[-1].bar()[1]
    assert not [event for event in run.events() if event["event"] == "pulse"]


def test_progress__a_function_hears_of_rounds_alone(patches, slow_tasks, quick_pulses):
    heard = []
    dsc.learn(patches, scheduler="threads", progress=heard.append, **OPTIONS)
    assert [type(event) for event in heard] == [Iteration] * 3


def test_progress__false_says_nothing(patches, capfd):
    dsc.learn(patches, progress=False, **OPTIONS)
    dsc.learn(patches, **OPTIONS)  # this is no notebook
    assert capfd.readouterr() == ("", "")


def test_progress__true_writes_lines_where_there_is_no_terminal(patches, capfd):
    dsc.learn(patches, scheduler="threads", progress=True, **OPTIONS)
    out, err = capfd.readouterr()
    assert out == ""
    words = [" ".join(line.split()[:2]) for line in err.splitlines()]
    assert words == ["running on", "iteration 1", "iteration 2", "final pass"]


@pytest.mark.parametrize("wrong", ["yes", 1, 0, 3.5, ["a"]])
def test_progress__a_wrong_value_is_refused(patches, wrong, tmp_path):
    with pytest.raises(DscError, match="progress: found"):
        dsc.learn(patches, progress=wrong, run=tmp_path / "run", **OPTIONS)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("where", ["threads", "client"])
def test_progress__is_closed_also_when_a_task_fails(request, patches, monkeypatch, where):
    def fail(part, step):
        raise DscError("no")

    monkeypatch.setattr(loop, "code_part", fail)
    scheduler = request.getfixturevalue("client") if where == "client" else where
    recorder = Recorder()
    with pytest.raises(DscError, match="no"):
        dsc.learn(patches, scheduler=scheduler, progress=recorder, **OPTIONS)
    assert recorder.n_closed == 1


def test_progress__is_closed_when_the_plan_is_refused(patches):
    recorder = Recorder()
    limit = psutil.Process().memory_info().rss + 300 * 10**6
    with pytest.raises(DscError, match="learning needs"):
        dsc.learn(patches, n_atoms=40_000, n_workers=2, memory_limit=limit, progress=recorder)
    assert recorder.n_closed == 1


def test_progress__is_closed_when_the_listener_itself_fails(patches):
    class Fragile(Recorder):
        def __call__(self, event):
            raise ZeroDivisionError

    fragile = Fragile()
    with pytest.raises(ZeroDivisionError):
        dsc.learn(patches, progress=fragile, **OPTIONS)
    assert fragile.n_closed == 1


def test_progress__other_callbacks_of_dask_are_called_too(patches):
    seen = []
    with dask.callbacks.Callback(posttask=lambda key, *_: seen.append(key)):
        dsc.learn(patches, scheduler="threads", progress=Recorder(), **OPTIONS)
    assert seen


# --- where --------------------------------------------------------------------------------------


@pytest.fixture
def active_client(client):
    """The client of the session, as the default of this process."""
    with client.as_current():
        yield client


def place_of(patches, **options):
    """(the words of the place, hash of the atoms)."""
    recorder = Recorder()
    model = dsc.learn(patches, progress=recorder, **OPTIONS, **options)
    return recorder.heard[0].text, model.sha256


def test_client__that_is_active_is_used_by_default(patches, expected, active_client):
    place, atoms = place_of(patches)
    assert active_client.scheduler.address in place
    assert atoms == expected


def test_client__that_is_active_gives_way_to_what_is_asked_for(patches, expected, active_client):
    place, atoms = place_of(patches, scheduler="threads")
    assert "of this process" in place
    assert atoms == expected


def test_client__tasks_run_on_its_workers(patches, active_client, monkeypatch):
    code_part = loop.code_part

    def mark(part, step):
        from distributed import get_worker

        get_worker().log_event("who-codes", get_worker().address)
        return code_part(part, step)

    monkeypatch.setattr(loop, "code_part", mark)
    dsc.learn(patches, progress=False, **OPTIONS)
    who = {address for _, address in active_client.get_events("who-codes")}
    assert who
    assert who <= set(active_client.scheduler_info(n_workers=-1)["workers"])


def test_client__is_used_by_encode_and_reconstruct_too(patches, image, active_client):
    model = dsc.learn(patches, scheduler="threads", progress=False, **OPTIONS)
    for work in (
        lambda heard: model.encode(patches, progress=heard),
        lambda heard: model.reconstruct(image("coins")[:40, :40], progress=heard),
    ):
        recorder = Recorder()
        work(recorder)
        assert active_client.scheduler.address in recorder.heard[0].text
        assert recorder.n_closed == 1


def test_client__that_is_asynchronous_is_not_used(patches, expected):
    async def learn():
        async with (
            LocalCluster(
                n_workers=1, processes=False, asynchronous=True, dashboard_address=":0"
            ) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert default_client() is client
            return place_of(patches)

    place, atoms = asyncio.run(learn())
    assert "of this process" in place
    assert atoms == expected


def test_processes__never_become_the_default_client(patches, expected):
    found = []

    def look(event):
        with pytest.raises(ValueError, match="No client"):
            default_client()
        found.append(event)

    model = dsc.learn(patches, scheduler="processes", n_workers=1, progress=look, **OPTIONS)
    assert len(found) == 3
    assert model.sha256 == expected
    with pytest.raises(ValueError, match="No client"):
        default_client()


def test_client__one_that_was_closed_is_not_used(patches):
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        pass
    assert "of this process" in place_of(patches)[0]


def test_client__a_failing_log_of_the_cluster_breaks_nothing(
    patches, expected, active_client, monkeypatch
):
    def fail(*_):
        raise OSError

    monkeypatch.setattr(active_client, "log_event", fail)
    assert place_of(patches)[1] == expected


def test_client__is_left_without_our_plugins(patches, active_client):
    before = set(active_client.run(lambda dask_worker: list(dask_worker.plugins)).popitem()[1])
    place_of(patches)
    after = set(active_client.run(lambda dask_worker: list(dask_worker.plugins)).popitem()[1])
    assert after == before
