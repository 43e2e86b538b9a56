"""Tasks: the questions that a policy is trained on, and how its answers are graded.

    task = load("arithmetic:hard")              # a Task: prompts, a function that grades, a budget
    grades = task.verify(task.train[:2], [Response("8"), Response("9")])

The name shows where a task comes from:

    brackets                                   built in (`names()` lists them)
    brackets:train=512,held_out=dev            built in, with options of its function
    arithmetic:hard                            the same task with harder questions
    enigmata:maze                              one kind of its puzzles
    reasoning_gym:chain_sum                    a generator of the package reasoning-gym
    jsonl:path/to/questions.jsonl              files of mathematics questions (`data`); also json:,
                                               csv:, parquet: and arrow:
    tfds:name                                  a data set of TensorFlow Datasets
    traces:path/to/teacher.jsonl               another task with verified answers as its solutions
    critiques:path/to/critiques.jsonl          critiques of candidate solutions, to be imitated
    hints:path/to/hints.jsonl                  another task with hints that a policy wrote
    verdicts:path/to/run                       the task of a run, with verdicts on its responses
    package.module:name                        custom: a Task, or a function that returns one

Prefixes and built-in names are reserved: a custom module with such a name is never loaded. Options
of built-in tasks are in the name. On a command line, options of all other tasks follow
--task-options (`load_as_written`).

A custom task is a `Task`; `from_rows` makes one from dictionaries. For its `verify` use
`graded_one_by_one` (a function of one prompt and response), `from_trl` or `from_verl` (their reward
functions), or `verifier` (a check). `Batches` orders the prompts. `self_check` grades known answers
before the first step; `python -m rlvr_jax.tasks` prints the result for all built-in tasks.
"""

from rlvr_jax.tasks.base import Prompt, Response, StepScore, Task
from rlvr_jax.tasks.batches import Batches
from rlvr_jax.tasks.checked import verifier
from rlvr_jax.tasks.data.files import from_rows
from rlvr_jax.tasks.derived.verdicts import Labelled, with_verdicts
from rlvr_jax.tasks.grading import GradingError, grades_of, no_verdict_on_error
from rlvr_jax.tasks.loading import load, load_as_written, module_of, names, without_options
from rlvr_jax.tasks.presets import preset_of
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
    "preset_of",
    "self_check",
    "verifier",
    "with_verdicts",
    "without_options",
]
