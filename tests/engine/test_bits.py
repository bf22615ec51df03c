"""The same bits, wherever tasks run, however patches are stored, cut and kept."""

import hashlib
import os
import signal
import threading
import time
from dataclasses import asdict

import dask.array
import numpy as np
import pytest
import xarray
import zarr
from threadpoolctl import threadpool_limits

from dsc.dictionary import learn, learn_many, loop
from dsc.dictionary.config import LearnConfig
from dsc.engine import Engine, Workload, make_plan, plan
from dsc.engine.plan import Resources
from dsc.patches import ArrayPatches, PatchConfig, extract, extract_patches, open_patches

N_PATCHES, DIAMETER = 6000, 5  # 24 leaves: 6, 12 and 24 tasks for one, two and four threads
BASE = {"n_atoms": 5, "sparsity": 2, "n_iterations": 2, "seed": 1}
CASES_ONLINE = ("disk", "pixels")
CASES = {
    f"{basis}-{update}": {**BASE, "basis": basis, "update": update}
    for basis in ("disk", "annular", "pixels")
    for update in ("ksvd", "mod")
}
CASES |= {f"{basis}-online": {**BASE, "basis": basis, "mode": "online"} for basis in CASES_ONLINE}


@pytest.fixture(scope="module")
def patches(windows):
    return windows(DIAMETER, N_PATCHES)


@pytest.fixture(scope="module")
def reference(patches):
    """reference(case): learned one task after the other."""
    made = {}

    def get(case):
        if case not in made:
            made[case] = learn(patches, scheduler="synchronous", **CASES[case])
        return made[case]

    return get


@pytest.fixture(scope="module")
def stored(patches, image, tmp_path_factory):
    """stored(**options): the url of a patch set in a store, made once."""
    folder = tmp_path_factory.mktemp("stored")
    images = [np.float32(image("camera")[:90, :40]), np.float32(image("coins")[:90, :40])]

    def get(**options):
        url = folder / (repr(sorted(options.items())) + ".zarr")
        if not url.exists():
            extract_patches(images, url, PatchConfig(diameter=DIAMETER, **options))
        return str(url)

    return get


def assert_same(one, other):
    assert one.sha256 == other.sha256
    assert one.history.tolist() == other.history.tolist()
    assert one.count.tolist() == other.count.tolist()
    assert one.mse == other.mse


# --- schedulers ---------------------------------------------------------------------------------


def test_sha256__is_that_of_little_endian_float32_coordinates(reference):
    atoms = reference("disk-ksvd").atoms
    assert atoms.dtype == np.float32
    digest = hashlib.sha256(b"".join(atoms.astype("<f4").ravel(order="C"))).hexdigest()
    assert reference("disk-ksvd").sha256 == digest


def test_learn__the_cases_have_different_bits(reference):
    assert len({reference(case).sha256 for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("n_workers", "case"),
    [(1, "disk-ksvd"), (1, "disk-mod"), (4, "disk-ksvd"), (4, "annular-mod")]
    + [(1, "disk-online"), (3, "disk-online")]
    + [(2, case) for case in CASES],
)
def test_learn__same_bits_on_any_number_of_threads(patches, reference, case, n_workers):
    found = learn(patches, scheduler="threads", n_workers=n_workers, **CASES[case])
    assert_same(found, reference(case))


@pytest.mark.parametrize("case", ["disk-ksvd", "pixels-mod", "disk-online"])
def test_learn__same_bits_on_processes(patches, reference, case, process_engine):
    assert_same(learn(patches, scheduler=process_engine, **CASES[case]), reference(case))


@pytest.mark.parametrize(
    "case", ["disk-ksvd", "disk-mod", "annular-ksvd", "pixels-ksvd", "disk-online"]
)
def test_learn__same_bits_on_a_client(patches, reference, case, client):
    assert_same(learn(patches, scheduler=client, **CASES[case]), reference(case))


@pytest.mark.parametrize(("which", "case"), [("address", "disk-ksvd"), ("file", "annular-mod")])
def test_learn__same_bits_on_workers_of_the_dask_command(
    patches, reference, case, which, command_cluster
):
    scheduler = command_cluster[which == "file"]
    assert_same(learn(patches, scheduler=scheduler, **CASES[case]), reference(case))


def test_learn__same_bits_again_in_one_process(patches, reference):
    assert_same(learn(patches, **CASES["disk-ksvd"]), reference("disk-ksvd"))


def test_learn__same_bits_whatever_blas_threads_the_machine_has(windows):
    """The basis of a large patch comes from an SVD, whose bits depend on them (design, 4)."""
    patches = windows(21, 600)
    found = []
    for n_threads in (1, 2, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(learn(patches, 3, 2, n_iterations=2))
    assert_same(found[1], found[0])
    assert_same(found[2], found[0])


# --- where patches are --------------------------------------------------------------------------

ARRAYS = {
    "read-only": lambda array, _: np.frombuffer(array.tobytes(), np.float32).reshape(array.shape),
    "fortran": lambda array, _: np.asfortranarray(array),
    "big-endian": lambda array, _: array.astype(">f4"),
    "float64": lambda array, _: array.astype(np.float64),
    "strided": lambda array, _: np.repeat(array, 2, axis=0)[::2],
    "dask one chunk": lambda array, _: dask.array.from_array(array, chunks=-1),
    "dask odd chunks": lambda array, _: dask.array.from_array(array, chunks=(701, 2, 5)),
    "dask computed": lambda array, _: dask.array.from_array(array / 2, chunks=999) * np.float32(2),
    "zarr small chunks": lambda array, folder: as_zarr(array, folder, (250, 5, 3)),
    "zarr one chunk": lambda array, folder: as_zarr(array, folder, array.shape),
    "xarray": lambda array, _: xarray.DataArray(array, dims=("patch", "y", "x")),
    "xarray of dask": lambda array, _: xarray.DataArray(
        dask.array.from_array(array, chunks=1000), dims=("patch", "y", "x")
    ),
}


def as_zarr(array, folder, chunks):
    made = zarr.create_array(folder / "user.zarr", shape=array.shape, chunks=chunks, dtype="f4")
    made[:] = array
    return zarr.open_array(folder / "user.zarr", mode="r")


@pytest.mark.parametrize("kind", ARRAYS)
def test_learn__same_bits_from_any_kind_of_array(patches, reference, kind, tmp_path):
    array = ARRAYS[kind](patches, tmp_path)
    assert_same(learn(array, **CASES["disk-mod"]), reference("disk-mod"))


@pytest.mark.parametrize("kind", ["dask odd chunks", "zarr small chunks"])
def test_learn__same_bits_from_lazy_arrays_on_a_client(patches, reference, kind, tmp_path, client):
    array = ARRAYS[kind](patches, tmp_path)
    assert_same(learn(array, scheduler=client, **CASES["disk-ksvd"]), reference("disk-ksvd"))


@pytest.mark.parametrize(
    ("basis", "normal"),
    [
        ("disk", {}),
        ("disk", {"center": True, "unit": True}),
        ("annular", {"center": True, "unit": True}),
        ("pixels", {}),
    ],
)
def test_learn__same_bits_lazily_materialised_and_in_memory(stored, basis, normal):
    options = {**BASE, "basis": basis}
    lazy = open_patches(stored(**normal))
    raw = open_patches(stored())
    images = learn(lazy, 1, 1, n_iterations=0).basis.to_image(raw.pixels(0, raw.n_patches), fill=0)
    from_store = learn(lazy, **options)
    assert_same(learn(stored(**normal, materialize=basis), **options), from_store)
    assert_same(learn(ArrayPatches(images, **normal), **options), from_store)


@pytest.mark.parametrize("materialize", [None, "disk"])
def test_learn__same_bits_from_a_store_on_a_cluster(stored, materialize, client, command_cluster):
    url = stored(unit=True, materialize=materialize)
    scheduler = command_cluster[0] if materialize else client
    expected = learn(url, scheduler="synchronous", **BASE)
    assert_same(learn(url, scheduler=scheduler, **BASE), expected)


@pytest.mark.parametrize(("chunk", "materialize"), [(256, "disk"), (1000, None), (4096, "disk")])
def test_learn__same_bits_for_any_chunks_of_the_store(
    stored, image, tmp_path, monkeypatch, chunk, materialize
):
    expected = learn(stored(center=True), **BASE)
    monkeypatch.setattr(extract, "CHUNK", chunk)
    url = tmp_path / "patches.zarr"
    images = [np.float32(image(name)[:90, :40]) for name in ("camera", "coins")]
    config = PatchConfig(diameter=DIAMETER, center=True, materialize=materialize)
    made = extract_patches(images, url, config)
    assert made.store.chunks("y") == (chunk,)
    assert_same(learn(url, n_workers=2, **BASE), expected)


def test_learn__a_larger_array_on_a_client_is_no_reason_to_warn(windows, client):
    """Dask warns of graphs above 10 MB; warnings are errors here."""
    patches = windows(9, 40_000)  # 13 MB
    options = {"n_atoms": 2, "sparsity": 1, "n_iterations": 1}
    assert_same(learn(patches, scheduler=client, **options), learn(patches, **options))


# --- how the work is cut ------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["disk-ksvd", "disk-mod", "disk-online"])
@pytest.mark.parametrize("keep", [0.25, 0.0])
def test_learn__same_bits_with_coordinates_kept_and_streamed(
    patches, reference, case, keep, monkeypatch
):
    monkeypatch.setattr(plan, "KEEP_FRACTION", keep)
    engine = Engine("synchronous", Resources(1, 10**10))
    basis = reference(case).basis
    made = make_plan(Workload(N_PATCHES, basis.n_coords, basis.n_pixels, 0, 320), engine.resources)
    assert made.keep_coords is (keep > 0)
    assert_same(learn(patches, scheduler=engine, **CASES[case]), reference(case))


@pytest.mark.parametrize("mode", ["batch", "online"])
def test_learn__streamed_on_a_client_has_the_same_bits(stored, client, monkeypatch, mode):
    url, options = stored(unit=True), {**BASE, "mode": mode}
    kept = learn(url, scheduler="synchronous", **options)
    monkeypatch.setattr(plan, "KEEP_FRACTION", 0)
    assert_same(learn(url, scheduler=client, **options), kept)


@pytest.mark.parametrize(
    ("tasks_per_thread", "case"),
    [(1, "disk-ksvd"), (3, "disk-mod"), (100, "disk-ksvd"), (1, "disk-online"), (4, "disk-online")],
)
def test_learn__same_bits_for_any_task_size(
    patches, reference, case, tasks_per_thread, monkeypatch
):
    monkeypatch.setattr(plan, "TASKS_PER_THREAD", tasks_per_thread)
    assert_same(learn(patches, n_workers=2, **CASES[case]), reference(case))


@pytest.mark.parametrize("case", ["disk-ksvd", "disk-mod"])
def test_learn__same_bits_with_several_blocks_in_a_leaf(patches, case, monkeypatch):
    monkeypatch.setattr(loop, "BLOCK", 64)  # of leaves of 256; really 4096 of 8192 and more
    kept = learn(patches, scheduler="threads", n_workers=2, **CASES[case])
    monkeypatch.setattr(plan, "KEEP_FRACTION", 0)
    engine = Engine("synchronous", Resources(1, 10**10))
    assert_same(learn(patches, scheduler=engine, **CASES[case]), kept)


def test_learn_many__same_bits_as_one_by_one_on_a_client(patches, stored, client):
    problems = [
        (patches[:3000], LearnConfig(n_atoms=3, sparsity=1, n_iterations=2)),
        (stored(unit=True), LearnConfig(n_atoms=4, sparsity=2, n_iterations=1, update="mod")),
    ]
    together = learn_many(problems, scheduler=client)
    for (source, config), found in zip(problems, together, strict=True):
        assert_same(found, learn(source, **asdict(config)))


# --- using --------------------------------------------------------------------------------------


def test_encode__same_bits_on_every_scheduler(reference, stored, client, process_engine):
    model, url = reference("disk-ksvd"), stored()
    expected = model.encode(url, scheduler="synchronous")
    for scheduler in ("threads", client, process_engine):
        found = model.encode(url, scheduler=scheduler)
        assert found.mse == expected.mse
        for name in ("atom", "angle", "coef", "error"):
            one, other = getattr(found.codes, name), getattr(expected.codes, name)
            assert one.tobytes() == other.tobytes()
        assert found.rest.tobytes() == expected.rest.tobytes()


def test_reconstruct__same_bits_on_every_scheduler(reference, image, client):
    model, crop = reference("disk-ksvd"), image("camera")[:200, :60]
    expected = model.reconstruct(crop, scheduler="synchronous")
    for scheduler in ("threads", client):
        assert (model.reconstruct(crop, scheduler=scheduler) == expected).all()


# --- failure ------------------------------------------------------------------------------------


def kill_a_busy_worker(client, pids, done, killed):
    """SIGKILL the first worker that is seen coding patches."""
    while not done.is_set():
        for address, keys in client.processing().items():
            if address in pids and any("code_part" in str(key) for key in keys):
                os.kill(pids[address], signal.SIGKILL)
                killed.append(pids[address])
                return
        time.sleep(0.002)


def test_learn__a_killed_worker_does_not_change_the_result(windows, client):
    patches = windows(9, 4000)
    options = {"n_atoms": 8, "sparsity": 4, "n_iterations": 3}
    expected = learn(patches, scheduler="synchronous", **options)
    done, killed = threading.Event(), []
    arguments = (client, client.run(os.getpid), done, killed)
    killer = threading.Thread(target=kill_a_busy_worker, args=arguments)
    killer.start()
    try:
        found = learn(patches, scheduler=client, **options)
    finally:
        done.set()
        killer.join()
    assert len(killed) == 1, "no worker was caught at work: the case is too small"
    assert_same(found, expected)
    client.wait_for_workers(2, timeout=60)  # its nanny starts another one
