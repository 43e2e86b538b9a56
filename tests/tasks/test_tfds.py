"""TensorFlow Datasets, from a tiny data set of ours that is built and read without TensorFlow."""

import sys

import pytest

from rlvr_jax.tasks import Response, load

tensorflow_datasets = pytest.importorskip("tensorflow_datasets")

FIELDS = ("question", "answer", "annotation", "short_answer")


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Folder with a data set of the fields of gsm8k, under its name and as `little_sums`."""
    folder = tmp_path_factory.mktemp("tfds")
    for class_name in ("Gsm8k", "LittleSums"):
        with tensorflow_datasets.core.registered.skip_registration():
            builder_class = type(class_name, (_Sums,), {})
        builder = builder_class(data_dir=folder, file_format="array_record")
        builder.download_and_prepare()
    return str(folder)


with tensorflow_datasets.core.registered.skip_registration():

    class _Sums(tensorflow_datasets.core.GeneratorBasedBuilder):
        VERSION = tensorflow_datasets.core.Version("1.0.0")

        def _info(self):
            text = tensorflow_datasets.features.Text()
            features = tensorflow_datasets.features.FeaturesDict(dict.fromkeys(FIELDS, text))
            return tensorflow_datasets.core.DatasetInfo(builder=self, features=features)

        def _split_generators(self, dl_manager):
            del dl_manager
            return {"train": self._generate_examples(0, 6), "test": self._generate_examples(6, 9)}

        def _generate_examples(self, start, stop):
            for i in range(start, stop):
                values = (f"{i} + 1?", f"Add 1.\n#### {i + 1}", "Add 1.", str(i + 1))
                yield i, dict(zip(FIELDS, values, strict=True))


def test_gsm8k_shows_questions_and_grades_what_follows_the_mark(data_dir):
    task = load("gsm8k", data_dir=data_dir)
    assert task.name == "gsm8k"
    assert sorted(prompt.answer for prompt in task.train) == list("123456")
    assert sorted(prompt.text[:6] for prompt in task.test) == ["6 + 1?", "7 + 1?", "8 + 1?"]
    answers = [Response(f"\\boxed{{{prompt.answer}}}") for prompt in task.train]
    assert {grade.outcome for grade in task.verify(task.train, answers)} == {1}
    assert {g.outcome for g in task.verify(task.train, [Response("\\boxed{0}")] * 6)} == {0}


def test_fields_and_splits_are_options(data_dir):
    task = load(
        "tfds:little_sums",
        data_dir=data_dir,
        answer_field="short_answer",
        kind_field="annotation",
        train_split="train[:2]",
        instruction="",
    )
    assert task.name == "tfds:little_sums"
    assert (len(task.train), len(task.test)) == (2, 3)
    assert {(prompt.kind, prompt.text[1:]) for prompt in task.train} == {("Add 1.", " + 1?")}


def test_tensorflow_is_not_imported(data_dir):
    load("gsm8k", data_dir=data_dir)
    assert "tensorflow" not in sys.modules


@pytest.mark.parametrize(
    ("name", "options", "message"),
    (
        ("little_sum", {}, "name must be a data set that is known or is in .*, got 'little_sum'"),
        ("gms8k", {}, "closest: gsm8k"),
        ("little_sums", {"prompt_field": "problem"}, "field must be one of .*, got 'problem'"),
        ("little_sums", {"train_split": "dev"}, r"made of \['test', 'train'\], got 'dev'"),
        ("little_sums", {"answer_after": "=>"}, "row 0: answer_after must be in the answer, got"),
    ),
)
def test_what_does_not_exist_is_named(data_dir, name, options, message):
    with pytest.raises(ValueError, match=f"tfds: .*{message}"):
        load(f"tfds:{name}", data_dir=data_dir, **options)


def test_a_source_that_is_out_of_reach_is_said_at_once(monkeypatch, tmp_path):
    def unreachable(*given, **named):
        raise OSError("no route")

    for key in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setattr("socket.create_connection", unreachable)
    said = r"no connection to raw.githubusercontent.com.*. Use data_dir for a folder"
    with pytest.raises(ValueError, match=said):
        load("gsm8k", data_dir=str(tmp_path))


def test_options_of_the_verifier_reach_it(data_dir):
    task = load("gsm8k", data_dir=data_dir, answer_line=True)
    prompt = task.train[0]
    assert task.verify([prompt], [Response(f"Answer: {prompt.answer}")])[0].outcome == 1
