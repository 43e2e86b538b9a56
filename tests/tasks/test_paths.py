"""What a path means: files, patterns, folders, several, and which of them are to evaluate."""

import pytest

from rlvr_jax.tasks.data.paths import find_files, listed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    def with_files(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        return tmp_path

    monkeypatch.chdir(tmp_path)
    return with_files


def names(files):
    return [file.name for file in files]


def test_home_is_found(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder("a.jsonl")))
    assert find_files("jsonl", "~/a.jsonl").train == (folder() / "a.jsonl",)


@pytest.mark.parametrize(
    ("path", "found"),
    (
        ("a_1.jsonl", ["a_1.jsonl"]),
        ("a_*.jsonl", ["a_1.jsonl", "a_2.jsonl"]),
        ("a_[2-9].jsonl", ["a_2.jsonl"]),
        ("./a_?.jsonl", ["a_1.jsonl", "a_2.jsonl"]),
        ("**/*.jsonl", ["a_1.jsonl", "a_2.jsonl", "comma,name=.jsonl", "b.jsonl"]),
        ("a_2.jsonl,a_1.jsonl", ["a_2.jsonl", "a_1.jsonl"]),
        ("a_1.jsonl, deep/b.jsonl", ["a_1.jsonl", "b.jsonl"]),
        ("a_1.jsonl,a_*.jsonl", ["a_1.jsonl", "a_2.jsonl"]),
        ("comma,name=.jsonl", ["comma,name=.jsonl"]),
        ("deep", ["b.jsonl", "c.jsonl.gz"]),
    ),
)
def test_a_path_means_files(path, found, folder):
    folder("a_1.jsonl", "a_2.jsonl", "deep/b.jsonl", "deep/c.jsonl.gz", "comma,name=.jsonl")
    files = find_files("jsonl", path)
    assert (names(files.train), files.test) == (found, ())


def test_a_pattern_may_begin_at_the_root(folder):
    assert names(find_files("jsonl", str(folder("a.jsonl") / "*.jsonl")).train) == ["a.jsonl"]


def test_a_folder_has_what_ends_like_its_kind_and_nothing_hidden(folder):
    folder("a.csv", "b.TSV", "c.json", "dataset_info.json", "README.md", ".cache/d.csv", "e.csv.gz")
    assert names(find_files("csv", ".").train) == ["a.csv", "b.TSV", "e.csv.gz"]
    assert names(find_files("json", ".").train) == ["c.json"]


def test_caches_beside_saved_data_are_not_data(folder):
    folder("data-0.arrow", "cache-1a2b.arrow", "state.json")
    assert names(find_files("arrow", ".").train) == ["data-0.arrow"]


@pytest.mark.parametrize(
    ("files", "train", "test", "notes"),
    (
        (["train.jsonl", "test.jsonl"], ["train.jsonl"], ["test.jsonl"], 1),
        (["data/train-0.jsonl", "data/test-0.jsonl"], ["train-0.jsonl"], ["test-0.jsonl"], 1),
        (["train/a.jsonl", "test/b.jsonl"], ["a.jsonl"], ["b.jsonl"], 1),
        (["gsm_train.jsonl", "gsm_val.jsonl"], ["gsm_train.jsonl"], ["gsm_val.jsonl"], 1),
        (
            ["train.jsonl", "test.jsonl", "dev.jsonl", "x.jsonl"],
            ["train.jsonl"],
            ["test.jsonl"],
            2,
        ),
        (["train_1.jsonl", "train_2.jsonl"], ["train_1.jsonl", "train_2.jsonl"], [], 0),
        (["latest.jsonl", "contest.jsonl"], ["contest.jsonl", "latest.jsonl"], [], 0),
        (["pretrain.jsonl", "test.jsonl"], ["pretrain.jsonl", "test.jsonl"], [], 0),
    ),
)
def test_names_tell_the_splits_where_there_are_both(files, train, test, notes, folder):
    folder(*files)
    found = find_files("jsonl", ".")
    assert (names(found.train), names(found.test), len(found.notes)) == (train, test, notes)


def test_a_pattern_tells_splits_like_a_folder(folder):
    folder("train.jsonl", "test.jsonl", "dev.jsonl")
    found = find_files("jsonl", "*.jsonl")
    assert (names(found.train), names(found.test)) == (["train.jsonl"], ["test.jsonl"])
    assert found.notes[1] == "1 files of neither split are not read: dev.jsonl"


@pytest.mark.parametrize(
    ("path", "message"),
    (
        (
            "b.jsonl",
            r"readable file or folder, got 'b.jsonl', which is not there; closest: a.jsonl",
        ),
        ("a.jsonl,b.jsonl", "got 'b.jsonl', which is not there"),
        ("*.json", r"path must match files, got '\*.json', which matches none"),
        ("sub", r"end with .jsonl, .ndjson .*got 'sub', which has none; it has files for csv:sub"),
        ("hf://data/x.jsonl", "which is not there; it must be on this machine"),
        (
            "a.jsonl,held_out=0.2",
            r"--task-options held_out=0.2 \(load\(…, held_out=…\)",
        ),
    ),
)
def test_what_is_not_there_is_said(path, message, folder):
    folder("a.jsonl", "sub/x.csv")
    with pytest.raises(ValueError, match=f"jsonl: .*{message}"):
        find_files("jsonl", path)


def test_many_files_are_counted(folder):
    folder(*(f"{i}.csv" for i in range(5)))
    assert listed(find_files("csv", ".").train) == "0.csv, 1.csv, 2.csv and 2 more"
