import pytest

from dsc.files import append_records, partial_path, read_records, write_whole


def test_append_records__can_be_read_back(tmp_path):
    path = tmp_path / "log.jsonl"
    append_records(path, [{"a": 1}, {"b": "ü"}])
    append_records(path, [{"c": [1, 2]}])
    assert read_records(path) == [{"a": 1}, {"b": "ü"}, {"c": [1, 2]}]
    assert path.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("left", range(1, 9))
def test_read_records__a_line_cut_by_a_kill_does_not_count_nor_spoil_the_next(tmp_path, left):
    path = tmp_path / "log.jsonl"
    append_records(path, [{"a": 1}, {"b": 22}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-left])
    append_records(path, [{"c": 3}])
    kept = [{"a": 1}, {"b": 22}] if left == 1 else [{"a": 1}]  # without its line break it is whole
    assert read_records(path) == [*kept, {"c": 3}]


def test_read_records__no_file_is_no_record(tmp_path):
    assert read_records(tmp_path / "log.jsonl") == []


@pytest.mark.parametrize("content", ["text ü", b"\x00\xff"])
def test_write_whole__replaces_and_leaves_nothing_else(tmp_path, content):
    path = tmp_path / "file"
    path.write_text("before")
    write_whole(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(tmp_path.iterdir()) == [path]


def test_write_whole__what_was_there_stays_if_writing_fails(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    partial_path(path).mkdir()  # in the way
    with pytest.raises(OSError):  # noqa: PT011 (which one depends on the system)
        write_whole(path, "after")
    assert path.read_text() == "before"
