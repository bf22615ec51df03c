"""Counted labels: the same for any tasks and scheduler, kept in a log that survives a kill."""

import numpy as np
import pytest
import zarr
from PIL import Image

import dsc
from dsc.engine import Engine, Resources, open_engine
from dsc.errors import DscError
from dsc.images.image import open_images
from dsc.texture import histograms as features
from dsc.texture.histograms import (
    FeatureLog,
    Labelling,
    check_images,
    count_labels,
    histograms_of,
    image_hash,
    joined_counts,
    label_part,
)
from dsc.texture.labelling import Labeller, Labellers

N_IMAGES = 9


@pytest.fixture(scope="module")
def labeller():
    basis = dsc.disk_basis(7)
    atoms = dsc.random_atoms(basis, 6, seed=0).reshape(3, 2, -1)
    return Labellers((Labeller(atoms, basis, 1, 60, 2),))


@pytest.fixture(scope="module")
def arrays(image):
    """Images of several sizes, one of them partly flat."""
    made = [
        image(name)[40 * i : 40 * i + 24 + i, 30 : 60 + 2 * i].astype(np.float32)
        for i, name in enumerate(["gravel", "brick", "grass"] * (N_IMAGES // 3))
    ]
    made[4] = made[4].copy()
    made[4][:, :16] = 0.25
    return made


@pytest.fixture(scope="module")
def images(arrays):
    return open_images(arrays)


@pytest.fixture
def engine():
    with open_engine("synchronous") as engine:
        yield engine


@pytest.fixture(scope="module")
def process_engine():
    """A cluster of two worker processes."""
    with open_engine("processes", 2) as engine:
        yield engine


@pytest.fixture(scope="module")
def expected(images, labeller):
    """Counts and number of patches, from the best atoms themselves."""
    found = []
    for image in images:
        atoms = np.concatenate([best.ravel() for _, best, _ in labeller.each[0].best_pieces(image)])
        counts = np.bincount(atoms[atoms >= 0], minlength=6)
        found.append((tuple(counts.tolist()), atoms.size))
    return found


@pytest.fixture
def one_by_one(monkeypatch):
    """A round is one task of one image."""
    monkeypatch.setattr(features, "TASKS", 1)
    monkeypatch.setattr(features, "TASK_PATCHES", 1)


@pytest.fixture
def labelled(monkeypatch):
    """The names of the images that are labelled from now on."""
    names = []

    def watched(images, labeller):
        names.extend(image.name for image in images)
        return label_part(images, labeller)

    monkeypatch.setattr(features, "label_part", watched)
    return names


def counted(found):
    return [(tuple(feature.counts), feature.n_patches) for feature in found]


def stop_after(n_rounds):
    """A progress that raises when so many rounds are done."""
    seen = []

    def progress(event):
        seen.extend([event] * isinstance(event, Labelling))
        if len(seen) == n_rounds:
            raise KeyboardInterrupt

    return progress


# --- counts -------------------------------------------------------------------------------------


def test_count_labels__counts_the_labels_of_every_image(images, labeller, engine, expected):
    found = count_labels(images, labeller, engine)
    assert counted(found) == expected
    for image, feature in zip(images, found, strict=True):
        assert feature.n_patches == labeller.n_windows(image.shape)
        assert feature.n_patches <= feature.evaluated + (feature.n_patches - sum(feature.counts))
        assert feature.evaluated <= feature.n_patches * 6


def test_count_labels__all_patches_are_counted_but_flat_ones(images, labeller, engine):
    found = count_labels(images, labeller, engine)
    missing = [feature.n_patches - sum(feature.counts) for feature in found]
    assert missing[4] > 0
    assert sum(missing) == missing[4]


def test_count_labels__of_nothing_is_nothing(labeller, engine):
    assert count_labels([], labeller, engine) == []


def test_count_labels__a_image_may_come_twice(images, labeller, engine, expected, tmp_path):
    log = FeatureLog(tmp_path / "log", labeller.identity)
    places = [0, 1, 0, 2, 1, 0]
    for _ in range(2):
        found = count_labels([images[i] for i in places], labeller, engine, log)
        assert counted(found) == [expected[i] for i in places]


def test_count_labels__reports_rounds(images, labeller, engine, one_by_one):
    events = []
    count_labels(images, labeller, engine.listening(events.append))
    events = [event for event in events if isinstance(event, Labelling)]
    assert [event.done for event in events] == list(range(1, N_IMAGES + 1))
    assert {event.total for event in events} == {N_IMAGES}


@pytest.mark.parametrize(("tasks", "rows"), [(1, 1), (1, 700), (3, 1), (100, 300), (2, 10**6)])
def test_count_labels__task_size_does_not_matter(
    images, labeller, engine, expected, monkeypatch, tasks, rows
):
    monkeypatch.setattr(features, "TASKS", tasks)
    monkeypatch.setattr(features, "TASK_PATCHES", rows)
    assert counted(count_labels(images, labeller, engine)) == expected


@pytest.mark.parametrize(("scheduler", "n_workers"), [("threads", 1), ("threads", 3)])
def test_count_labels__same_counts_on_threads(
    images, labeller, expected, scheduler, n_workers, monkeypatch
):
    monkeypatch.setattr(features, "TASK_PATCHES", 1)
    with open_engine(scheduler, n_workers) as engine:
        assert counted(count_labels(images, labeller, engine)) == expected


def test_count_labels__same_counts_on_processes(
    images, labeller, expected, process_engine, monkeypatch
):
    monkeypatch.setattr(features, "TASK_PATCHES", 1)
    assert counted(count_labels(images, labeller, process_engine)) == expected


def test_count_labels__same_counts_from_files_and_zarr_on_processes(
    arrays, labeller, engine, process_engine, tmp_path, monkeypatch
):
    grey = np.round(255 * arrays[0]).astype(np.uint8)
    Image.fromarray(grey).save(tmp_path / "a.png")
    stored = zarr.create_array(
        tmp_path / "b.zarr", shape=arrays[1].shape, chunks=(9, 9), dtype="f4"
    )
    stored[:] = arrays[1]
    np.save(tmp_path / "c.npy", arrays[2])
    files = [open_images(tmp_path / name)[0] for name in ("a.png", "b.zarr", "c.npy")]
    same = open_images([grey, arrays[1], arrays[2]])
    monkeypatch.setattr(features, "TASK_PATCHES", 1)
    wanted = counted(count_labels(same, labeller, engine))
    assert counted(count_labels(files, labeller, process_engine)) == wanted


# --- the log ------------------------------------------------------------------------------------


def test_log__an_interrupted_run_continues(
    images, labeller, engine, expected, one_by_one, labelled, tmp_path
):
    log = FeatureLog(tmp_path / "log", labeller.identity)
    with pytest.raises(KeyboardInterrupt):
        count_labels(images, labeller, engine.listening(stop_after(3)), log)
    names = [image.name for image in images]
    assert labelled == names[:3]
    assert set(log.read()) == {image_hash(image) for image in images[:3]}
    labelled.clear()
    assert counted(count_labels(images, labeller, engine, log)) == expected
    assert labelled == names[3:]
    labelled.clear()
    assert counted(count_labels(images, labeller, engine, log)) == expected
    assert labelled == []


def test_log__a_run_continues_on_another_scheduler(
    images, labeller, engine, process_engine, expected, one_by_one, tmp_path
):
    log = FeatureLog(tmp_path / "log", labeller.identity)
    with pytest.raises(KeyboardInterrupt):
        count_labels(images, labeller, process_engine.listening(stop_after(1)), log)
    done = len(log.read())
    assert 0 < done < N_IMAGES
    assert counted(count_labels(images, labeller, engine, log)) == expected


def test_log__the_same_image_elsewhere_is_known(arrays, labeller, engine, labelled, tmp_path):
    """An image is what is in its file, not where that is."""
    log = FeatureLog(tmp_path / "log", labeller.identity)
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / f"{folder}.npy", arrays[0])
        images = open_images(tmp_path / folder / f"{folder}.npy")
        count_labels(images, labeller, engine, log)
    assert len(labelled) == 1


def test_log__a_changed_image_is_labelled_again(arrays, labeller, engine, labelled, tmp_path):
    log = FeatureLog(tmp_path / "log", labeller.identity)
    found = []
    for array in arrays[:2]:
        np.save(tmp_path / "image.npy", array)
        found += count_labels(open_images(tmp_path / "image.npy"), labeller, engine, log)
    assert len(labelled) == 2
    assert found[0].counts != found[1].counts


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_log__a_line_cut_by_a_kill_does_not_count(
    images, labeller, engine, expected, labelled, tmp_path, cut
):
    path = tmp_path / "log"
    log = FeatureLog(path, labeller.identity)
    count_labels(images, labeller, engine, log)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    labelled.clear()
    names = [image.name for image in images]
    kept = log.read()
    assert len(kept) >= N_IMAGES - 1
    assert counted(count_labels(images, labeller, engine, log)) == expected
    assert labelled == names[-1:] or (cut == 1 and not labelled)  # only the line's end was cut
    assert len(log.read()) == N_IMAGES  # what came after the cut line is not lost with it
    labelled.clear()
    assert counted(count_labels(images, labeller, engine, log)) == expected
    assert labelled == []


@pytest.mark.parametrize("size", [0, 1, 12, 40, "line"])
def test_log__a_kill_in_its_first_line_leaves_an_empty_log(
    images, labeller, engine, expected, labelled, tmp_path, size
):
    path = tmp_path / "log"
    log = FeatureLog(path, labeller.identity)
    count_labels(images[:1], labeller, engine, log)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b"\n") if size == "line" else size])
    labelled.clear()
    for _ in range(2):
        assert counted(count_labels(images, labeller, engine, log)) == expected
    assert len(labelled) == N_IMAGES


@pytest.mark.parametrize("content", [b"notes\n", b"\x89PNG\r\n", b"{", b'{"model": 3}\n'])
def test_log__a_file_that_is_not_ours_is_refused(images, labeller, engine, tmp_path, content):
    path = tmp_path / "notes"
    path.write_bytes(content * 20)
    with pytest.raises(DscError, match="notes"):
        count_labels(images, labeller, engine, FeatureLog(path, labeller.identity))
    assert path.read_bytes() == content * 20


@pytest.mark.parametrize("name", ["", "missing/log"])
def test_log__a_place_that_cannot_be_written_is_refused_first(
    images, labeller, engine, labelled, tmp_path, name
):
    with pytest.raises(DscError, match="folder that exists"):
        count_labels(images, labeller, engine, FeatureLog(tmp_path / name, labeller.identity))
    assert labelled == []


def test_log__of_another_way_of_counting_is_refused(images, labeller, engine, tmp_path):
    known = {name: value for name, value in labeller.identity.items() if name != "counted_by"}
    count_labels(images[:1], labeller, engine, FeatureLog(tmp_path / "log", known))
    with pytest.raises(DscError, match="another model"):
        count_labels(images, labeller, engine, FeatureLog(tmp_path / "log", labeller.identity))


def test_log__of_another_model_is_refused(images, labeller, engine, tmp_path):
    path = tmp_path / "log"
    count_labels(images[:2], labeller, engine, FeatureLog(path, labeller.identity))
    before = path.read_bytes()
    one = labeller.each[0]
    other = Labellers((Labeller(one.atoms[:, ::-1].copy(), one.basis, 1, 60, 2),))
    with pytest.raises(DscError, match=r"log.*another model"):
        count_labels(images, other, engine, FeatureLog(path, other.identity))
    assert path.read_bytes() == before


def test_log__without_one_nothing_is_written(images, labeller, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count_labels(images, labeller, engine)
    assert not any(tmp_path.iterdir())


# --- histograms and bad images ----------------------------------------------------------------


def test_histograms__are_the_shares_of_labelled_patches(images, labeller, engine, expected):
    counted, names = count_labels(images, labeller, engine), [p.name for p in images]
    counts = joined_counts(counted, names, labeller)
    by_atom, by_class, both = (histograms_of(counts, kind) for kind in ("atoms", "classes", "both"))
    for row, (in_atoms, _) in zip(by_atom, expected, strict=True):
        np.testing.assert_allclose(row, np.array(in_atoms) / sum(in_atoms))
    for row, image in zip(by_class, images, strict=True):
        labels = labeller.each[0].label_image(image)[0]
        np.testing.assert_allclose(
            row, [(labels == n).sum() / (labels >= 0).sum() for n in range(3)]
        )
    np.testing.assert_allclose(both * 1.25, np.hstack([by_class, by_atom / 4]))
    np.testing.assert_allclose(both.sum(1), 1, rtol=1e-12)


def test_count_labels__too_little_memory_is_refused_by_name(images, labeller):
    engine = Engine("synchronous", Resources(4, 4 * (labeller.task_bytes(images) - 1)))
    with pytest.raises(DscError, match=r"labelling needs .* for each of 4 threads"):
        count_labels(images, labeller, engine)


def test_histograms__equal_counts_of_classes_are_equal_to_the_bit():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 99, (1, 50, 3, 7))
    other = rng.permuted(one, axis=3)
    np.testing.assert_array_equal(histograms_of(one, "classes"), histograms_of(other, "classes"))
    assert (histograms_of(one, "both") != histograms_of(other, "both")).any()


def test_histograms__constant_images_are_refused_all_at_once(arrays, labeller, engine):
    flat = [np.full((20, 20), value, np.float32) for value in (0.0, 0.3, 1 / 3)]
    images = open_images([flat[0], arrays[0], flat[1], arrays[1], flat[2]])
    counts = count_labels(images, labeller, engine)
    names = ["plain", "gravel", "bare", "brick", "smooth"]
    with pytest.raises(DscError, match="constant") as caught:
        joined_counts(counts, names, labeller)
    for name, bad in zip(names, (1, 0, 1, 0, 1), strict=True):
        assert (name in str(caught.value)) == bool(bad)


def test_check_images__too_small_ones_are_refused_all_at_once(arrays):
    small = [arrays[0][:6, :20], arrays[0], arrays[1][:, :3], arrays[2][:7, :7]]
    images = open_images(small)
    with pytest.raises(DscError, match="2 problems") as caught:
        check_images(images, 7)
    message = str(caught.value)
    assert "array 0: found 6 × 20 pixels, need at least 7 × 7" in message
    assert f"array 2: found {len(arrays[1])} × 3 pixels" in message
    assert "array 1" not in message
    assert "array 3" not in message
    check_images(images[1::2], 7)


def test_check_images__of_very_many_it_names_some_and_says_how_many(arrays):
    images = open_images([arrays[0][:5, :5]] * 130)
    with pytest.raises(DscError, match="130 problems") as caught:
        check_images(images, 7)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 + 100 + 1
    assert lines[-1] == "  and 30 more"
