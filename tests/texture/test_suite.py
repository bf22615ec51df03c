"""Suites in the layout of Outex, good and bad."""

import os
from collections import Counter
from pathlib import Path

import pytest

from dsc.errors import DscError
from dsc.texture.outex import Sample, Suite, is_suite, read_suite

CLASSES = "2\nwool 0 1\nfelt 1 1\n"
TRAIN = "2\n000000.ras 0\n000001.ras 1\n"
TEST = "3\n000004.ras 1\n000002.ras 0\n000003.ras 0\n"
DEFS = "5\n" + "".join(f"00000{n}.ras tl84 100dpi {angle}\n" for n, angle in enumerate("00579"))


def write(root, *, images=range(5), defs=DEFS, problem="000", **texts):
    """A suite of files without pixels: the reader does not open them. None leaves a file out."""
    (root / "images").mkdir(parents=True, exist_ok=True)
    (root / problem).mkdir()
    for number in images:
        (root / "images" / f"{number:06d}.bmp").touch()
    files = {"classes": CLASSES, "train": TRAIN, "test": TEST} | texts
    for name, text in files.items():
        if text is not None:
            (root / problem / f"{name}.txt").write_bytes(text.encode())
    if defs is not None:
        (root / "defs.txt").write_bytes(defs.encode())
    return root


def message_of(path, *args, **kwargs):
    with pytest.raises(DscError) as caught:
        read_suite(path, *args, **kwargs)
    return str(caught.value)


def test_suite__reads_both_splits_in_their_order(tmp_path):
    root = write(tmp_path / "wools")

    def sample(number, label, angle):
        return Sample(root / "images" / f"{number:06d}.bmp", label, angle)

    train = (sample(0, "wool", 0.0), sample(1, "felt", 0.0))
    test = (sample(4, "felt", 9.0), sample(2, "wool", 5.0), sample(3, "wool", 7.0))
    assert read_suite(root) == Suite("wools", "000", ("wool", "felt"), train, test, ())


def test_suite__classes_are_in_the_order_of_their_numbers(tmp_path):
    root = write(tmp_path / "s", classes="2\nfelt 1 1\nwool 0 1\n")
    assert read_suite(root).label_names == ("wool", "felt")


def test_suite__empty_lines_line_ends_and_a_mark_are_fine(tmp_path):
    plain = read_suite(write(tmp_path / "a" / "s"))
    texts = {name: "\ufeff" + text.replace("\n", "\r\n\r\n") for name, text in texts_of().items()}
    other = read_suite(write(tmp_path / "b" / "s", **texts))
    assert [s.path.name for s in other.test] == [s.path.name for s in plain.test]
    assert [s.label for s in other.train + other.test] == [
        s.label for s in plain.train + plain.test
    ]
    assert [s.angle for s in other.test] == [s.angle for s in plain.test]


def texts_of():
    return {"classes": CLASSES, "train": TRAIN, "test": TEST, "defs": DEFS}


def test_suite__without_angles(tmp_path):
    suite = read_suite(write(tmp_path / "s", defs=None))
    assert {sample.angle for sample in suite.train + suite.test} == {None}


@pytest.mark.parametrize("suffix", [".png", ".TIF", ".ras", ".npy"])
def test_suite__a_image_is_found_by_its_stem(tmp_path, suffix):
    root = write(tmp_path / "s", images=range(1, 5))
    (root / "images" / f"000000{suffix}").touch()
    assert read_suite(root).train[0].path == root / "images" / f"000000{suffix}"


def test_suite__keeps_the_classes_asked_for(tmp_path):
    root = write(tmp_path / "s", images=(1, 4))  # those of the other class are not needed
    for classes in (["felt"], "felt"):
        suite = read_suite(root, classes=classes)
        assert suite.label_names == ("felt",)
        assert [s.path.stem for s in suite.train + suite.test] == ["000001", "000004"]
    assert read_suite(write(tmp_path / "t"), classes=["felt", "wool"]).label_names == (
        "wool",
        "felt",
    )


def test_suite__extra_images_are_those_of_no_problem(tmp_path):
    root = write(tmp_path / "s", images=(0, 1, 2, 3, 4, 9, 7, 8))
    write(root, problem="001", test="1\n000008.ras 0\n", images=())
    (root / "images" / "notes.txt").touch()
    (root / "images" / ".000000.png").touch()
    assert read_suite(root).extra == ("000007.bmp", "000009.bmp")
    assert read_suite(root, classes=["felt"]).extra == ("000007.bmp", "000009.bmp")


def test_suite__other_problem(tmp_path):
    root = write(tmp_path / "s")
    write(root, problem="001", test="1\n000002.ras 0\n")
    suite = read_suite(root, "001")
    assert (suite.problem, len(suite.test)) == ("001", 1)


def test_suite__unknown_problem_says_which_exist(tmp_path):
    root = write(tmp_path / "s")
    write(root, problem="001")
    assert "unknown '002', need one of 000, 001" in message_of(root, "002")


def test_suite__unknown_classes_are_all_named_with_a_suggestion(tmp_path):
    message = message_of(write(tmp_path / "s"), classes=["woll", "velvet"])
    assert "unknown 'woll', need one of wool, felt; did you mean 'wool'?" in message
    assert "unknown 'velvet'" in message


def test_is_suite__by_its_layout(tmp_path):
    root = write(tmp_path / "s")
    assert is_suite(root)
    assert is_suite(str(root))
    assert not is_suite(root / "images")
    assert not is_suite(tmp_path / "nothing")
    (tmp_path / "classes" / "wool").mkdir(parents=True)
    assert not is_suite(tmp_path / "classes")
    assert is_suite(write(tmp_path / "t", test=None))  # reading it says what is missing


def test_suite__not_one_says_what_is_needed(tmp_path):
    for path in (tmp_path, tmp_path / "nothing"):
        assert "need folders images and 000 with classes.txt" in message_of(path)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"train": "3\n000000.ras 0\n000001.ras 1\n"}, "000/train.txt: the first line says 3, fou"),
        ({"classes": CLASSES.replace("2", "1")}, "000/classes.txt: the first line says 1, found 2"),
        ({"defs": DEFS[2:]}, "defs.txt: the first line is '000000.ras tl84 100dpi 0', need"),
        ({"test": "1\n000002.ras 7\n"}, "000/test.txt: found numbers of classes that are not in c"),
        (
            {"test": "1\n000002.ras\n"},
            "000/test.txt: cannot read '000002.ras' (line 2), need 'file",
        ),
        ({"test": "1\n000002.ras -1\n"}, "cannot read '000002.ras -1' (line 2)"),
        ({"test": "1\n\n000002.ras 0 0\n"}, "cannot read '000002.ras 0 0' (line 3)"),
        ({"classes": "2\nwool 0 1\nfelt one 1\n"}, "cannot read 'felt one 1' (line 3), need 'name"),
        ({"defs": DEFS.replace(" 5", " nan")}, "defs.txt: cannot read '000002.ras tl84 100dpi nan"),
        ({"test": "1\n000001.ras 1\n"}, "found images in both train.txt and test.txt: 000001:"),
        ({"test": "2\n000002.ras 0\n000002.png 0\n"}, "image on more than one line: 000002"),
        ({"classes": "2\nwool 0 1\nwool 1 1\n"}, "found a name of more than one class: wool"),
        ({"classes": "2\nwool 0 1\nfelt 0 1\n"}, "found a number of more than one class: 0"),
        ({"classes": "0\n"}, "000/classes.txt: found no class"),
        ({"train": "1\n000000.ras 0\n"}, "000/train.txt: found no training image of felt"),
        ({"train": "0\n"}, "000/train.txt: found no training image of wool, felt"),
        ({"train": ""}, "000/train.txt: is empty"),
        ({"train": None}, "000/train.txt: no such file"),
        ({"test": None}, "000/test.txt: no such file"),
        ({"classes": None}, "000/classes.txt: no such file"),
        ({"defs": "0\n"}, "defs.txt: found no line for 000000.ras, 000001.ras of 000/train.txt"),
    ],
)
def test_suite__bad_file_is_refused(tmp_path, texts, expected):
    message = message_of(write(tmp_path / "s", **texts))
    assert message.startswith(str(tmp_path / "s"))
    assert expected in message


def test_suite__text_that_is_not_text(tmp_path):
    root = write(tmp_path / "s")
    (root / "000" / "test.txt").write_bytes(b"1\n\xff\xfe 0\n")
    assert "000/test.txt: is no text" in message_of(root)


@pytest.mark.parametrize("n_missing", [1, 20, 21, 50])
def test_suite__missing_images_are_listed_up_to_twenty(tmp_path, n_missing):
    names = [f"{number:06d}.ras" for number in range(100, 100 + n_missing)]
    test = f"{n_missing}\n" + "".join(f"{name} 0\n" for name in names)
    message = message_of(write(tmp_path / "s", test=test, defs=None))
    assert [name for name in names if name in message] == names[:20]
    assert (f" and {n_missing - 20} more" in message) == (n_missing > 20)


def test_suite__no_images_at_all(tmp_path):
    root = write(tmp_path / "s", images=())
    message = message_of(root)
    assert "found no file in images for 000000.ras, 000001.ras" in message
    assert "no training image" not in message
    (root / "images").rmdir()
    assert "images: no such folder" in message_of(root)


def test_suite__two_files_with_one_stem(tmp_path):
    root = write(tmp_path / "s")
    (root / "images" / "000003.png").touch()
    assert "000003.bmp and 000003.png" in message_of(root)


def test_suite__all_problems_at_once(tmp_path):
    test = "9\n000002.ras 5\n000001.ras 1\n000008.ras 0\n???\n"
    root = write(tmp_path / "s", train="1\n000001.ras 1\n", test=test, classes=CLASSES + "silk 2 1")
    (root / "images" / "000003.png").touch()
    lines = message_of(root, classes=["wool", "velvet"]).splitlines()
    expected = (
        "000/classes.txt: the first line says 2, found 3",
        "classes: unknown 'velvet'",
        "images: found files that differ only in their suffix",
        "000/train.txt: found no training image of wool",
        "000/test.txt: cannot read '???' (line 5)",
        "000/test.txt: the first line says 9, found 4",
        "000/test.txt: found numbers of classes that are not in classes.txt: 5",
        "000/test.txt: found no file in images for 000008.ras",
        "defs.txt: found no line for 000008.ras",
        "000: found images in both train.txt and test.txt: 000001",
    )
    assert lines[0].endswith("10 problems")
    assert len(lines) == 11
    for line, start in zip(lines[1:], expected, strict=True):
        assert line.startswith(f"  {start}")


@pytest.mark.skipif("DSC_DATA" not in os.environ, reason="set DSC_DATA to the folder of Outex_tl84")
def test_outex__480_and_3840_images_of_24_classes():
    root = Path(os.environ["DSC_DATA"]) / "Outex_tl84"
    assert is_suite(root)
    suite = read_suite(root)
    assert (len(suite.train), len(suite.test), len(suite.label_names)) == (480, 3840, 24)
    assert set(Counter(sample.label for sample in suite.train).values()) == {20}
    assert set(Counter(sample.label for sample in suite.test).values()) == {160}
    assert {sample.angle for sample in suite.train} == {0.0}
    turned = Counter(sample.angle for sample in suite.test)
    assert turned == dict.fromkeys([5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 75.0, 90.0], 480)
    assert suite.extra == ()
