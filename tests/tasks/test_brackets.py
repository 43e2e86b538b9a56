"""Brackets: levels, solutions, and a train split of some prompts."""

from collections import Counter
from types import SimpleNamespace

import pytest

from rlvr_jax.judges import question, rubric_question
from rlvr_jax.tasks import Response, load
from rlvr_jax.tasks.bracket_equations import equation_scores
from rlvr_jax.tasks.brackets import brackets, problem_of
from rlvr_jax.tasks.brackets_judge import effort, nearer, points
from rlvr_jax.types import Criterion


def test_a_solution_is_the_gold_word_by_word():
    for prompt in load("brackets").test:
        assert "".join(prompt.solution) == prompt.gold
        assert [step.strip() for step in prompt.solution] == prompt.gold.split()


def test_a_flawed_attempt_has_one_error_and_may_be_corrected():
    task = load("brackets", train=60)
    for prompt in task.train:
        flawed = prompt.meta["flawed"]
        assert [step.score for step in equation_scores(prompt, flawed["calculation"])] == [0, 1]
        texts = [flawed["calculation"][:-2], flawed["reasoning"][:-2]]
        texts += [f"{start} {prompt.gold}" for start in flawed.values()]
        grades = task.verify([prompt] * 4, list(map(Response, texts)))
        assert [grade.outcome for grade in grades] == [0, 0, 1, 1]
        assert [grade.info["legal"] for grade in grades[:2]] == [0, 1]


def test_the_level_grows_with_the_largest_number():
    largest = {}
    for prompt in load("brackets").train:
        largest.setdefault(prompt.meta["level"], set()).add(max(prompt.answer[:3]))
    bounds = {level: (min(numbers), max(numbers)) for level, numbers in largest.items()}
    assert bounds == {1: (1, 4), 2: (5, 6), 3: (7, 8), 4: (9, 10), 5: (11, 12)}


def test_some_prompts_have_the_shares_of_all():
    everything, some = load("brackets"), load("brackets", train=512)
    assert len(some.train) == 512
    assert set(p.text for p in some.train) <= set(p.text for p in everything.train)
    easy = [Counter(p.kind for p in task.train)["easy"] for task in (everything, some)]
    # Rounded to whole prompts.
    assert abs(easy[1] - 512 * easy[0] / len(everything.train)) <= 0.5
    assert (some.test, some.mixture) == (everything.test, everything.mixture)


def test_fewer_prompts_are_a_part_of_more_and_the_same_every_time():
    texts = {n: [p.text for p in load("brackets", train=n).train] for n in (3, 511, 512)}
    assert set(texts[3]) <= set(texts[511]) <= set(texts[512])
    assert [p.text for p in brackets.__wrapped__(train=512).train] == texts[512]


def test_all_prompts_are_all_prompts():
    everything = load("brackets")
    assert load("brackets", train=len(everything.train)).train == everything.train


@pytest.mark.parametrize("number", [-1, 0, 2, 9769])
def test_a_number_of_prompts_out_of_range_is_refused(number):
    with pytest.raises(ValueError, match=rf"brackets: train must be in \[3, 9768\], got {number}"):
        load("brackets", train=number)


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ("3 * ( 9 - 4 = 5 ) = 15", "right: 1\nlegal: 1"),
        ("( 3 + 9 = 12 ) - 4 = 8", "right: 0\nlegal: 1"),
        ("( 3 + 9 = 12 ) - 4 = 8 ; 3 * ( 9 - 4 = 5 ) = 15", "right: 1\nlegal: 1"),
        ("3 * ( 9 - 4 = 5 ) = 16", "right: 0\nlegal: 0"),
        ("", "right: 0\nlegal: 0"),
    ],
)
def test_the_perfect_judge_gives_the_points_of_a_rubric(response, said):
    rubric = [Criterion("right"), Criterion("legal")]
    shown = rubric_question(rubric)(prompt="3 9 4 15 >", response=response)
    assert points(shown) == said


def test_the_perfect_judge_reads_nothing_else():
    shown = rubric_question([Criterion("right")])(prompt="How are you?", response="fine")
    with pytest.raises(ValueError, match="invalid literal"):
        points(shown)


@pytest.mark.parametrize(
    ("answer", "points"),
    (
        ("( 3 + 9 = 12 ) - 4 = 8 ; 3 * ( 9 - 4 = 5 ) = 15", "10"),
        ("( 3 + 9 = 12 ) - 4 = 8 ; ( 3 * 9 = 27 ) - 4 = 23", "7"),
        ("( 3 + 9 = 12 ) - 4 = 8", "5"),
        ("( 3 + 9 = 12 ) - 4 = 9", "0"),
    ),
)
def test_effort_is_rated_by_the_forms_of_legal_attempts(answer, points):
    (message,) = question()(prompt="3 9 4 15 >", response=answer)
    assert effort([message]) == points


def test_of_two_attempts_the_one_nearer_to_the_target_is_better():
    prompt = problem_of((1, 3, 7), 11)
    texts = ["( 1 + 3 = 4 ) + 7 = 11", "( 1 * 3 = 3 ) + 7 = 10", "( 1 + 3 = 4 ) * 7 = 28", "1 + 3"]
    batch = SimpleNamespace(prompts=[prompt] * 4, responses=list(map(Response, texts)))
    scores, _, _ = nearer(batch, [(0, 1), (1, 2), (3, 2)])
    assert scores.tolist() == [[10, 9.9], [9.9, 8.3], [0, 8.3]]
