"""Tasks: the questions a policy is trained on, how they are picked, and how answers are graded.

`load(name)` gives a `Task`: prompts of two splits, a function that grades responses, a budget. The
name shows its origin:

    brackets                                   built in (`names()` lists them)
    brackets:train=512,held_out=dev            built in, with options of its function
    arithmetic:hard                            the same with harder questions
    enigmata:maze                              one kind of its puzzles
    reasoning_gym:chain_sum                    a generator of the package reasoning-gym
    jsonl:path/to/questions.jsonl              files of mathematics questions (`data`), as are those
                                               of json:, csv:, parquet: and arrow:
    tfds:name                                  a data set of TensorFlow Datasets
    traces:path/to/teacher.jsonl               another task with verified answers as its solutions
    package.module:name                        yours: a Task, or a function that returns one

The words before `:` in all lines but the last are reserved, and so are the names of the first: a
module of yours with such a name is never loaded. Built-in tasks have their options in the name; on
a command line the options of all other tasks follow --task-options (`load_as_written`).

A task of your own is a `Task`; `from_rows` makes one of dictionaries. `graded_one_by_one` makes its
`verify` from a function of one prompt and one response, `from_trl` and `from_verl` from rewards of
theirs, `verifier` from a check (`rlvr_jax.verifiers.checks`). `with_verdicts` adds prompts that
request whether a solution is correct.

`Batches` orders the prompts, `self_check` grades known answers before the first step; `python -m
rlvr_jax.tasks` shows it for all built-in tasks.
"""

from rlvr_jax.tasks.base import Prompt, Response, StepScore, Task
from rlvr_jax.tasks.batches import Batches
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.data.files import from_rows
from rlvr_jax.tasks.derived.verdicts import Labelled, with_verdicts
from rlvr_jax.tasks.grading import GradingError, grades_of, no_verdict_on_error
from rlvr_jax.tasks.loading import load, load_as_written, module_of, names, without_options
from rlvr_jax.tasks.rewards import from_trl, from_verl, graded_one_by_one
from rlvr_jax.tasks.selfcheck import SelfCheck, self_check
from rlvr_jax.verifiers.grade import Comparison, Grade

__all__ = [
    "Batches",
    "Comparison",
    "Grade",
    "GradingError",
    "Labelled",
    "Prompt",
    "Response",
    "SelfCheck",
    "StepScore",
    "Task",
    "from_rows",
    "from_trl",
    "from_verl",
    "graded_one_by_one",
    "grades_of",
    "load",
    "load_as_written",
    "module_of",
    "names",
    "no_verdict_on_error",
    "self_check",
    "verifier",
    "with_verdicts",
    "without_options",
]
