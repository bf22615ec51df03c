"""Training and test parts of labelled images."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsc.engine import open_engine
from dsc.errors import DscError
from dsc.texture import Dataset, dataset, read_inputs, split_dataset
from dsc.texture.dataset import _advice, pixel_hash, with_contents
from dsc.texture.parts import check_apart


def some_data(sizes, order=None):
    """As many tiny images of each class as said, none the same, in some order."""
    labels = [f"class{k}" for k, n in enumerate(sizes) for _ in range(n)]
    images = [np.full((4, 4), float(i), np.float32) for i in range(len(labels))]
    data = read_inputs(images, labels)
    order = range(len(labels)) if order is None else order
    return Dataset(
        *(tuple(some[i] for i in order) for some in (data.images, data.labels, data.angles))
    )


def names(data):
    return [image.name for image in data.images]


@given(
    sizes=st.lists(st.integers(2, 12), min_size=2, max_size=4),
    share=st.floats(0.01, 0.99),
    seed=st.integers(0, 9),
    data=st.data(),
)
def test_split__is_a_partition_of_every_class_whatever_the_order(sizes, share, seed, data):
    whole = some_data(sizes)
    parts = split_dataset(whole, share, seed)
    assert sorted(names(parts[0]) + names(parts[1])) == sorted(names(whole))
    for k, n in enumerate(sizes):
        n_train = parts[0].labels.count(f"class{k}")
        assert n_train == min(max(1, round(share * n)), n - 1)
        assert n_train + parts[1].labels.count(f"class{k}") == n
    order = data.draw(st.permutations(range(len(whole))))
    mixed = split_dataset(some_data(sizes, order), share, seed)
    assert [set(names(part)) for part in mixed] == [set(names(part)) for part in parts]


def test_split__draws_anew_with_another_seed():
    whole = some_data([20, 20])
    drawn = {tuple(names(split_dataset(whole, 0.5, seed)[0])) for seed in range(5)}
    assert len(drawn) == 5


@pytest.mark.parametrize("share", [0, 1, -0.5, 2, float("nan"), True])
def test_split__refuses_what_is_no_share(share):
    with pytest.raises(DscError, match="need a share between 0 and 1"):
        split_dataset(some_data([3, 3]), share)


def test_apart__pixels_decide_not_names():
    with open_engine("synchronous", progress=False) as engine:
        whole = with_contents(some_data([3, 3]), engine)
    train, test = split_dataset(whole, 0.5)
    check_apart(test, ["one"] * len(train), train.contents)
    with pytest.raises(DscError, match=r"6 problems(.|\n)*image 0: found the same pixels") as error:
        check_apart(whole, [f"known {i}" for i in range(6)], whole.contents)
    assert "known 5" in str(error.value)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_contents__are_hashed_in_tasks_and_once(tmp_path, monkeypatch, scheduler):
    images = np.random.default_rng(0).random((5, 20, 30), np.float32)
    for number, image in enumerate(images[:4]):
        np.save(tmp_path / f"{number}.npy", image)
    data = read_inputs([*sorted(tmp_path.glob("*.npy"))], list("aabb"))
    mixed = replace(data, images=(*data.images, *read_inputs([images[4]], ["a"]).images))
    wanted = tuple(pixel_hash(image) for image in mixed.images)
    with open_engine(scheduler, 2, progress=False) as engine:
        found = with_contents(mixed, engine)
        assert found.contents == wanted
        assert with_contents(found, None) is found
        if scheduler == "processes":  # not in this one
            monkeypatch.setattr(dataset.Image, "read", None)
            assert with_contents(data, engine).contents == wanted[:4]


def flat(tmp_path, files):
    for number, file in enumerate(files):
        np.save(tmp_path / file, np.full((4, 4), number, np.float32))
    with pytest.raises(DscError) as error:
        split_dataset(read_inputs(tmp_path), 0.5)
    return str(error.value)


def test_flat_folder__says_which_folders_to_make(tmp_path):
    text = flat(tmp_path, ["brick_1.npy", "brick_2.npy", "grass-1.npy", "grass07.npy"])
    assert "carry the class (brick, grass): move the files into folders" in text
    assert "such as brick/brick_1.npy" in text


@pytest.mark.parametrize(
    "files", [["1.npy", "2.npy"], ["scan_1.npy", "scan_2.npy"], ["a.npy", "b.npy", "c.npy"]]
)
def test_flat_folder__names_without_classes_say_nothing(tmp_path, files):
    text = flat(tmp_path, files)
    assert "one folder per class" in text
    assert "carry" not in text


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["canvas001_01.png", "canvas001_02.png", "canvas002_1.png", "canvas002_2.png"],
         "canvas001, canvas002"),
        (["grass1.png", "grass2.png", "moss-1.png", "moss-22.png"], "grass, moss"),
        (["a1.png", "a2.png"], ""),  # one class
        (["a1.png", "b1.png"], ""),  # nothing twice
        (["01.png", "02.png", "1.png", "2.png"], ""),
    ],
)  # fmt: skip
def test_advice__the_class_is_what_stands_before_the_last_number(names, said):
    advice = _advice(names)
    assert (f"({said})" in advice) if said else not advice
