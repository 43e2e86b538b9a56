"""Reasoning-gym: any generator of the package of this name, with reliable scorers.

    load("reasoning_gym:chain_sum", size=1000, max_terms=2)

The package makes the questions (https://github.com/open-thought/reasoning-gym, 0.1.25); the grade
is ours. An answer that equals the gold, except for white space around it, has the grade 1. If the
data set allows several spellings, `answers` compares. If several answers are correct, `scorers`
decides. Otherwise the data set's scorer decides if it is safe and strict, in a process that is
killed at a time limit. Its scores below 1.0 count as 0, because the package rewards half-correct
answers. The gold with more text around it also counts as 0. `REFUSED` lists the data sets that
cannot be trained on, with reasons.

The answer is the text between the last `</answer>` and the `<answer>` before it (or the start, if a
chat template has opened the tag). A response without tags is an answer as a whole if it ended by
itself, so small models can get a reward before they learn the form. If the correct answer is the
empty text (`ab`), the tags are required.

These data sets have a worked solution (`solution`), made by the task: chain_sum, decimal_chain_sum,
products, gcd, lcm, prime_factorization, spell_backward, letter_counting, count_bits and
number_sorting. Its last step is the answer in its tags.
"""

import difflib
import functools
import json
import operator
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any

from rlvr_jax.ranges import Positive, Range
from rlvr_jax.tasks.answer_form import joined
from rlvr_jax.tasks.base import Prompt, Response, Task
from rlvr_jax.tasks.generated import SIZE, TEST_SIZE
from rlvr_jax.tasks.grading import one_by_one
from rlvr_jax.tasks.gym.answers import EQUAL, is_padded
from rlvr_jax.tasks.gym.scorers import SCORERS
from rlvr_jax.tasks.settings import ResponseTokens, Seed, Size, TestSize, checked, task
from rlvr_jax.tasks.synthesis.worked import WORKED, worked
from rlvr_jax.verifiers.grade import Grade
from rlvr_jax.verifiers.pool import Result, WorkerPool

__all__ = ["INSTRUCTION", "REFUSED", "data_sets", "extract_answer", "gsm_symbolic", "reasoning_gym"]

INSTRUCTION = "\n\nGive the final answer between <answer> and </answer>."

REFUSED: Mapping[str, str] = {
    "composite": "it mixes other data sets; load them one by one",
    "propositional_logic": "its scorer gives 1.0 to (P ∧ P) for most questions",
}
# One correct answer in the form that the question shows. Their scorers require tuples, which JSON
# does not have, accept rounding, or read "5 days" in "5 years".
_EXACT = frozenset(
    {"ab", "arc_agi", "rearc", "spell_backward", "string_insertion", "time_intervals"}
)
# A gold that the package could not compute.
_NO_GOLD = "Integral("

# They iterate over sets of strings or symbols, so another process makes other questions.
_UNORDERED = frozenset(
    {
        *("codeio", "isomorphic_strings", "knight_swap", "list_functions"),
        *("polynomial_multiplication", "ransom_note", "word_ladder"),
    }
)

# Item i of a data set depends only on seed + i, so the splits use distant ranges of seeds.
_TEST_SEED = 2**30
# Items per requested question before a data set counts as exhausted. If the number of questions is
# not set: items in a row without a new question.
_DRAWS = 10
_IN_VAIN = 200
# For number_sequence: the package tries another rule if a term overflows, and later refuses terms
# above 1000. Without this bound, rules that square repeatedly take minutes.
_LARGEST_TERM = 10**100
# A longer answer is incorrect without a call of the scorer.
_MAX_CHARACTERS = 4096


@checked
def reasoning_gym(
    name: str,
    size: Annotated[int | None, Range(1), "train prompts"] = None,
    test_size: Annotated[int | None, Range(1), "test prompts"] = None,
    seed: Annotated[int, Range(0, _TEST_SEED // 2, open_high=True), "seed of the prompts"] = 0,
    instruction: Annotated[str, "text that is added to each question"] = INSTRUCTION,
    response_tokens: ResponseTokens = 256,
    wall_seconds: Annotated[
        Positive, "time limit of a call of the data set's scorer, seconds"
    ] = 1.0,
    **config: Any,
) -> Task:
    """A task with questions of one data set; no question is in both splits or twice in one.

    Most data sets make a thousand questions per second; knight_swap, futoshiki, sokoban and
    zebra_puzzles need minutes.

    Args:
      name: name of the data set in the package.
      size, test_size: None: 1,000 and 100, or as many as there are, in that proportion and with a
        warning.
      seed: train questions have seeds from `seed` on, test questions from 2^30 + seed on.
      **config: options of the data set, for example `max_terms`; default: those of the package.
    Raises:
      ValueError: the data set is unknown or refused, an option is unknown or invalid, there are too
        few distinct questions, or the questions depend on a PYTHONHASHSEED that is not set.

    Metrics: scorer_error (1 where the scorer raises).
    """
    import reasoning_gym as package
    from reasoning_gym.dataset import ProceduralDataset
    from reasoning_gym.factory import DATASETS

    if name in REFUSED:
        raise ValueError(
            f"reasoning_gym: name must be a data set that can be graded, got {name!r}:"
            f" {REFUSED[name]}"
        )
    if name not in DATASETS:
        close = difflib.get_close_matches(name, set(DATASETS) - set(REFUSED), n=3)
        hint = f"; closest: {', '.join(close)}" if close else ""
        raise ValueError(
            f"reasoning_gym: name must be a data set of reasoning_gym, got {name!r}{hint}"
        )
    if name in _UNORDERED and os.environ.get("PYTHONHASHSEED", "random") == "random":
        raise ValueError(
            "reasoning_gym: PYTHONHASHSEED must be a number when Python starts, as the questions of"
            f" {name!r} depend on it and a run could not be resumed, got none"
        )
    given = size, test_size
    size, test_size = size or SIZE, test_size or TEST_SIZE
    dataset_class, config_class = DATASETS[name]
    known = [field.name for field in fields(config_class) if field.name not in ("seed", "size")]
    unknown = sorted(set(config) - set(known))
    if unknown:
        raise ValueError(
            f"reasoning_gym: options of {name!r} must be among {', '.join(known)}, got"
            f" {', '.join(unknown)}"
        )
    if name == "number_sequence":
        _bound_terms()
    equal = EQUAL.get(name)
    if name in _EXACT or dataset_class.score_answer is ProceduralDataset.score_answer:
        equal = operator.eq

    def prompts(first_seed: int, count: int, taken: set[str]) -> list[Prompt]:
        """The requested number of new questions, or fewer if no more are found."""
        draws = _DRAWS * count
        try:
            items = package.create_dataset(name, seed=first_seed, size=draws, **config)
        except (AssertionError, TypeError, ValueError) as error:
            raise ValueError(
                f"reasoning_gym: options of {name!r} must be valid, got {config}: {error}"
            ) from error
        found: list[Prompt] = []
        in_vain = 0
        for index in range(draws):
            item = items[index]
            in_vain += 1
            if in_vain > _IN_VAIN and given == (None, None):
                break
            if item["question"] in taken or _NO_GOLD in (item["answer"] or ""):
                continue
            in_vain = 0
            taken.add(item["question"])
            gold = None if item["answer"] is None else f"<answer>{item['answer']}</answer>"
            found.append(
                Prompt(
                    text=joined(item["question"], instruction),
                    answer=_as_json(item) if equal is None else item["answer"],
                    kind=name,
                    gold=gold,
                    solution=[*worked(name, item["metadata"]), gold]
                    if gold and name in WORKED
                    else (),
                )
            )
            if len(found) == count:
                break
        return found

    taken: set[str] = set()
    test = prompts(_TEST_SEED + seed, test_size, taken)
    train = prompts(seed, size, taken)
    if len(train) < size or len(test) < test_size:
        train, test = _shared(name, train, test, given)
    return Task(
        name=f"reasoning_gym:{name}",
        train=tuple(train),
        test=tuple(test),
        verify=_Scorer(name, config, train[0].answer, wall_seconds)
        if equal is None
        else functools.partial(_verify_equal, equal),
        response_tokens=response_tokens,
        answers=True,
        derived=("solution",),
    )


@task
def gsm_symbolic(
    size: Size = SIZE,
    test_size: TestSize = TEST_SIZE,
    seed: Seed = 0,
    response_tokens: ResponseTokens = 256,
) -> Task:
    """Word problems of grade-school mathematics: another name for `reasoning_gym:gsm_symbolic`."""
    made = reasoning_gym("gsm_symbolic", size, test_size, seed, response_tokens=response_tokens)
    return replace(made, name="gsm_symbolic")


def data_sets() -> list[str]:
    """The names of all data sets that can be trained on.

    Raises:
      ModuleNotFoundError: the package is not installed.
    """
    from reasoning_gym.factory import DATASETS

    return sorted(set(DATASETS) - set(REFUSED))


def _shared(
    name: str, train: list[Prompt], test: list[Prompt], given: tuple[int | None, int | None]
) -> tuple[list[Prompt], list[Prompt]]:
    """The questions of a small data set, divided in the proportion of the splits.

    Raises:
      ValueError: the user set the sizes, or there are fewer than two questions.
    """
    total = len(train) + len(test)
    if given != (None, None) or total < 2:
        wanted = (given[0] or SIZE) + (given[1] or TEST_SIZE)
        raise ValueError(
            f"reasoning_gym: size and test_size must leave enough distinct questions of {name!r},"
            f" got {total} where {wanted} are requested"
        )
    num_test = min(max(total * TEST_SIZE // (SIZE + TEST_SIZE), 1), len(test))
    warnings.warn(
        f"reasoning_gym: {name!r} has {total} distinct questions where {SIZE + TEST_SIZE} are"
        f" requested: {total - num_test} train, {num_test} test",
        stacklevel=3,
    )
    return [*train, *test[num_test:]], test[:num_test]


def _bound_terms() -> None:
    """Lets a rule of number_sequence overflow, so that the next one is tried."""
    from reasoning_gym.cognition.number_sequences import PatternRule

    if hasattr(PatternRule.apply, "unbounded"):
        return
    unbounded = PatternRule.apply

    def apply(self, sequence, position):
        term = unbounded(self, sequence, position)
        if abs(term) > _LARGEST_TERM:
            raise OverflowError(f"a term above {_LARGEST_TERM:.0e}")
        return term

    apply.unbounded = unbounded
    PatternRule.apply = apply


def extract_answer(response: Response) -> str | None:
    """The answer of a response, without white space around it; None without one."""
    head, closed, _ = response.text.rpartition("</answer>")
    if closed:
        return head.rpartition("<answer>")[2].strip()
    if response.truncated or "<answer>" in response.text:
        return None
    return response.text.strip()


@one_by_one
def _verify_equal(equal: Callable[[str, str], bool], prompt: Prompt, response: Response) -> Grade:
    answer, gold = extract_answer(response), prompt.answer.strip()
    same = answer == gold
    if not gold:  # the empty text is an answer only in tags
        same = same and "</answer>" in response.text
    elif not same and answer is not None and len(answer) <= _MAX_CHARACTERS:
        same = equal(answer, gold)
    return Grade(outcome=float(same), answer=answer)


class _Scorer:
    """Grades by the data set's scorer, in a worker process that starts at the first call."""

    def __init__(self, name: str, config: Mapping[str, Any], entry: dict, wall_seconds: float):
        self._job = {"name": name, "config": _as_json(config)}
        self._pool = WorkerPool(
            "rlvr_jax.tasks.gym.reasoning_gym:score",
            wall_seconds=wall_seconds,
            memory_mb=4096,
            job_bytes=2**20,
            warm_up={**self._job, "entry": entry, "answer": "0"},
        )

    def __call__(self, prompts: Sequence[Prompt], responses: Sequence[Response]) -> list[Grade]:
        answers = [extract_answer(response) for response in responses]
        grades: list[Grade | None] = []
        jobs = []
        for prompt, answer in zip(prompts, answers, strict=True):
            gold = (prompt.answer["answer"] or "").strip()
            if gold and answer == gold:
                grades.append(_grade(1.0))
            elif not answer or len(answer) > _MAX_CHARACTERS or is_padded(answer, gold):
                grades.append(_grade(0.0))
            else:
                grades.append(None)
                jobs.append({**self._job, "entry": prompt.answer, "answer": answer})
        results = iter(self._pool.map(jobs) if jobs else ())
        graded = [grade or _from_result(next(results)) for grade in grades]
        return [
            replace(grade, answer=answer) for grade, answer in zip(graded, answers, strict=True)
        ]


def _grade(outcome: float) -> Grade:
    return Grade(outcome, info={"scorer_error": 0.0})


def _from_result(result: Result) -> Grade:
    return result.failure("scorer_error") or _grade(float(result.value >= 1.0))


def score(job: Mapping[str, Any]) -> float:
    """Runs in the worker: the score of an answer by our scorer, if there is one, or the package."""
    if job["name"] in SCORERS:
        return float(SCORERS[job["name"]](job["answer"], job["entry"]))
    dataset = _dataset(job["name"], json.dumps(job["config"], sort_keys=True))
    try:
        return float(dataset.score_answer(job["answer"], job["entry"]))
    except MemoryError:  # perhaps of an earlier job; the pool tries again in another worker
        raise
    except Exception:
        # Scorers raise on text they cannot read: an incorrect answer like any other.
        return 0.0


@functools.lru_cache(maxsize=4)
def _dataset(name: str, config: str) -> Any:
    import reasoning_gym as package

    return package.create_dataset(name, seed=0, size=1, **json.loads(config))


def _as_json(value: Any) -> Any:
    """The value after a conversion to JSON: Python's numbers for numpy's, text for objects."""
    return json.loads(
        json.dumps(value, default=lambda x: x.item() if hasattr(x, "item") else str(x))
    )
