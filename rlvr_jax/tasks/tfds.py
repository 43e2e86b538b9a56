"""Tfds: mathematics questions of TensorFlow Datasets, read without TensorFlow.

    load("gsm8k")
    load("tfds:my_questions", prompt_field="problem", answer_field="solution", answer_after="####")

The package prepares a data set once, as array_record files under `data_dir`, and then reads it by
index. Most builders, including gsm8k's, download the source to prepare it, which requires a
network; some also require TensorFlow. Prepared files need neither. Answers are graded, and
questions whose answer cannot be graded are dropped, as in `mathematics`.
"""

import contextlib
import difflib
import importlib
import inspect
import os
import re
import socket
from typing import Any

from rlvr_jax.tasks.answer_form import BOXED
from rlvr_jax.tasks.base import Prompt, Task
from rlvr_jax.tasks.mathematics import LEFT_OUT, mathematics
from rlvr_jax.tasks.options import takes_options_of
from rlvr_jax.tasks.settings import AnswerAfter, DropContradictions, Instruction, ResponseTokens
from rlvr_jax.verifiers.maths.verifier import MathVerifier

_FOLDERS = ("question_answering", "text")
# A host without an answer by then counts as unreachable; the package would try for minutes.
_SECONDS_TO_ANSWER = 5.0
_HOSTS = 3
_LICENCE = "www.apache.org"  # in the first lines of every builder
_HOST = re.compile(r"https?://([\w.-]+)")


@takes_options_of(MathVerifier, leave_out=LEFT_OUT)
def tfds(
    name: str,
    prompt_field: str = "question",
    answer_field: str = "answer",
    kind_field: str | None = None,
    answer_after: AnswerAfter = None,
    train_split: str = "train",
    test_split: str = "test",
    data_dir: str | None = None,
    instruction: Instruction = BOXED,
    response_tokens: ResponseTokens = 1024,
    drop_contradictions: DropContradictions = False,
    task_name: str | None = None,
    **grading: Any,
) -> Task:
    """The questions of a data set as a task.

    Args:
      name: data set, with configuration and version if needed (`name/config:1.0.0`).
      prompt_field, answer_field, kind_field: names of its text features; no kinds if None.
      answer_after: None: the answer is the whole field.
      train_split, test_split: splits, in the package's notation (`train[:90%]`).
      data_dir: folder of the data set, or where it is prepared; None: the package's folder.
      task_name: name of the task; None: `tfds:name`.
      **grading: options of `MathVerifier`.
    Raises:
      ValueError: the data set is unknown or cannot be prepared, a field or split is unknown, or a
        row does not have the mark.
    """
    task_name = task_name or f"tfds:{name}"
    builder = _prepared(name, data_dir)
    rows = {}
    for split in (train_split, test_split):
        rows[split] = []
        for index, row in enumerate(_source(builder, name, split)):
            place = f"{name}, {split}, row {index}"
            answer = _answer(place, _text(place, row, answer_field), answer_after)
            prompt = Prompt(
                text=_text(place, row, prompt_field),
                answer=answer,
                kind="" if kind_field is None else _text(place, row, kind_field),
            )
            rows[split].append((place, prompt))
    train, test = rows[train_split], rows[test_split]
    return mathematics(
        task_name,
        train,
        test,
        response_tokens,
        instruction=instruction,
        drop_contradictions=drop_contradictions,
        **grading,
    )


_FIXED = ("name", "prompt_field", "answer_field", "kind_field", "answer_after", "train_split")
_FIXED += ("test_split", "drop_contradictions", "task_name")


@takes_options_of(tfds, leave_out=_FIXED)
def gsm8k(response_tokens: int = 512, **options: Any) -> Task:
    """Grade-school word problems: 7473 for training, 1319 for evaluation.

    Cobbe et al. 2021, https://arxiv.org/abs/2110.14168. The answer is the number after `####`; the
    solutions are not shown. `jsonl:` and `parquet:` read its published files.

    Args:
      **options: data_dir and instruction, as in `tfds`, and options of `MathVerifier`.
    """
    options |= {"response_tokens": response_tokens, "task_name": "gsm8k"}
    return tfds("gsm8k", answer_after="####", **options)


def _prepared(name: str, data_dir: str | None) -> Any:
    """The package's builder of a data set, prepared as array_record files."""
    import tensorflow_datasets
    from tensorflow_datasets.core import registered

    # Without TensorFlow, the first folder that fails in the package's order hides the others. Data
    # sets of text are known once their folders are imported.
    for folder in _FOLDERS:
        importlib.import_module(f"tensorflow_datasets.{folder}")
    place = "the package's folder" if data_dir is None else str(data_dir)
    try:
        builder = tensorflow_datasets.builder(
            name, data_dir=data_dir, file_format="array_record", try_gcs=False
        )
    except (tensorflow_datasets.core.DatasetNotFoundError, ValueError) as error:
        known = registered.list_imported_builders()
        close = difflib.get_close_matches(name, known, n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"tfds: name must be a data set that is known or is in {place}, got {name!r}"
            f" ({reason}){hint}"
        ) from None
    _check_reach(builder, name, place)
    try:
        builder.download_and_prepare()
    except ModuleNotFoundError:
        raise  # `load` reports the command that installs it
    except Exception as error:
        # Whatever its builder raises: no network, a page that has moved, no space.
        raise ValueError(
            f"tfds: {name!r} must be prepared in {place} or be possible to prepare now, got"
            f" {type(error).__name__}: {error}"
        ) from error
    return builder


def _check_reach(builder: Any, name: str, place: str) -> None:
    """Raises if a data set must be prepared and no host that its builder names can be reached."""
    proxied = any(value for key, value in os.environ.items() if key.lower() == "https_proxy")
    if builder.is_prepared() or proxied:
        return
    source = ""
    with contextlib.suppress(OSError, TypeError):  # there may be none to read
        if (module := inspect.getmodule(type(builder))) is not None:
            source = inspect.getsource(module)
    found = dict.fromkeys(_HOST.findall(source))
    hosts = [host for host in found if host != _LICENCE][:_HOSTS]
    if not hosts:
        return
    for host in hosts:
        with contextlib.suppress(OSError):
            socket.create_connection((host, 443), timeout=_SECONDS_TO_ANSWER).close()
            return
    raise ValueError(
        f"tfds: {name!r} must be prepared in {place} or be possible to prepare now, got no"
        f" connection to {', '.join(hosts)}. Use data_dir for a folder with the prepared data"
        " set, or jsonl:FOLDER, parquet:FOLDER, … for the published files"
    )


def _source(builder: Any, name: str, split: str) -> Any:
    try:
        return builder.as_data_source(split=split)
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"tfds: split of {name!r} must be made of {sorted(builder.info.splits)}, got {split!r}"
        ) from error


def _answer(place: str, solution: str, mark: str | None) -> str:
    if mark is None:
        return solution.strip()
    _, found, answer = solution.rpartition(mark)
    if not found:
        raise ValueError(f"tfds: {place}: answer_after must be in the answer, got {solution!r}")
    return answer.strip()


def _text(place: str, row: dict[str, Any], field: str) -> str:
    if field not in row:
        raise ValueError(f"tfds: {place}: field must be one of {sorted(row)}, got {field!r}")
    value = row[field]
    return value.decode() if isinstance(value, bytes) else str(value)
