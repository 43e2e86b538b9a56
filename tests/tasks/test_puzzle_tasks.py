"""Tasks of puzzles: from a seed, with gold, in levels."""

import json

import pytest

from rlvr_jax.tasks import Response, load, self_check
from rlvr_jax.tasks.puzzles.enigmata import NAMES

TASKS = [
    "countdown",
    "countdown:max_numbers=3,max_value=9,min_numbers=3",
    "knights",
    "knights:reward=logic_rl",
    "sudoku",
    "sudoku:side=9",
    "combinatorial",
    "combinatorial:questions=schedule",
    "enigmata",
    *(f"enigmata:{name}" for name in NAMES),
]
SIZE, TEST_SIZE = 24, 6


def made(name, **options):
    return load(name, **{"size": SIZE, "test_size": TEST_SIZE, **options})


@pytest.mark.parametrize("name", TASKS)
def test_a_known_answer_can_be_imitated(name):
    for prompt in made(name).train:
        assert prompt.solution == ((prompt.gold,) if prompt.gold else ())


@pytest.mark.parametrize("name", TASKS)
def test_gold_scores_one_and_half_and_nothing_score_nothing(name):
    task = made(name)
    checked = self_check(task, prompts_per_kind=SIZE)
    assert checked.problems == ()
    assert {(kind.gold, kind.truncated, kind.empty) for kind in checked.kinds} == {(1, 0, 0)}
    assert (len(task.train), len(task.test)) == (SIZE, TEST_SIZE)


@pytest.mark.parametrize("name", TASKS)
def test_another_prompts_gold_is_wrong(name):
    task = made(name)
    shifted = [*task.train[1:], task.train[0]]
    # Equal golds answer both, as "no path" does.
    pairs = [(a, b) for a, b in zip(task.train, shifted, strict=True) if a.gold != b.gold]
    grades = task.verify([a for a, _ in pairs], [Response(b.gold) for _, b in pairs])
    assert len(pairs) > SIZE / 2
    assert sum(grade.outcome for grade in grades) <= len(pairs) / 4  # some moves are often best


@pytest.mark.thorough
@pytest.mark.parametrize("name", TASKS)
def test_prompts_follow_from_the_seed(name):
    task = made(name)
    larger = made(name, size=2 * SIZE)
    other = made(name, seed=1)
    assert larger.train[:SIZE] == task.train and larger.test == task.test
    assert not {prompt.text for prompt in other.train} >= {prompt.text for prompt in task.train}
    assert all(prompt.answer == json.loads(json.dumps(prompt.answer)) for prompt in task.train)


@pytest.mark.parametrize("name", TASKS)
def test_levels_begin_at_one_and_are_evenly_asked(name):
    levels = [prompt.meta["level"] for prompt in made(name).train]
    counts = {level: levels.count(level) for level in levels}
    assert min(counts) >= 1 and max(counts.values()) - min(counts.values()) <= len(NAMES)


def test_levels_are_those_of_the_generators():
    assert {p.meta["level"] for p in made("enigmata:maze").train} == {1, 2, 3}
    assert {p.meta["level"] for p in made("knights:max_people=6").train} == {1, 2, 3, 4}
    assert {(p.kind, p.meta["level"]) for p in made("countdown:max_numbers=4").train} == {
        ("3_numbers", 2),
        ("4_numbers", 3),
    }


def test_the_mixture_has_every_puzzle():
    task = load("enigmata", size=3 * len(NAMES), test_size=1)
    assert {prompt.kind for prompt in task.train} == set(NAMES)


def test_puzzles_of_knights_that_differ_in_names_alone_are_one():
    task = load("knights:max_people=3", size=300, test_size=100)

    def without_names(prompt):
        text = prompt.text
        for number, name in enumerate(prompt.answer):
            text = text.replace(name, f"person {number}")
        return text

    texts = [without_names(prompt) for prompt in (*task.train, *task.test)]
    assert len(set(texts)) == len(texts)


def test_what_the_template_opened_is_part_of_an_answer():
    task = made("countdown")
    prompt = task.train[0]
    tail = "<think>\n\n</think>\n\n<answer>"
    rest = prompt.gold.removeprefix("<answer>")
    (grade,) = task.verify([prompt], [Response(rest, prompt_tail=tail)])
    assert grade.outcome == 1


def test_combinatorial_has_three_rewards_beside_the_outcome():
    task = made("combinatorial")
    prompt = task.train[0]
    size_alone = prompt.gold.partition(" ")[0]
    (grade,) = task.verify([prompt], [Response(size_alone)])
    assert (grade.outcome, grade.info["answer"], grade.info["exact"]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "enigmata:mazes",
            {},
            "must be one of 'all', 'binario', .*, 'zebra', got 'mazes'; clo",
        ),
        ("enigmata:sudoku", {}, "must be one of 'all', 'binario', "),
        ("sudoku:side=6", {}, "side of task 'sudoku' must be one of 4, 9, got '6'"),
        ("sudoku:side=x", {}, "must be one of 4, 9, got 'x'"),
        ("knights:min_people=2", {}, r"min_people must be in \[3, 12\], got 2"),
        ("knights:min_people=6", {}, "min_people must be at most max_people 5, got 6"),
        ("countdown:min_numbers=1", {}, r"min_numbers must be in \[2, 12\], got 1"),
        ("countdown:max_value=1", {}, "max_value must be at least 2, got 1"),
        ("countdown:max_numbers=3,min_numbers=2,max_value=3,max_target=5", {}, "small enough"),
        ("combinatorial:questions=knapsack", {}, "must be one of lis, schedule, both"),
        ("countdown", dict(size=0), "size must be at least 1, got 0"),
        ("enigmata:maze", dict(test_size=0), "enigmata: test_size must be at least 1"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        load(name, **options)


@pytest.mark.parametrize(
    ("form", "correct", "one_wrong", "unread"),
    [
        ("binary", 1, 0, 0),
        ("share", 1, 2 / 3, 0),
        ("signed_binary", 1, -1, -1),
        ("signed_share", 1, 1 / 3, -1),
        ("logic_rl", 3, -0.5, -3),
    ],
)
def test_the_reward_of_knights_has_the_form_and_the_outcome_does_not(
    form, correct, one_wrong, unread
):
    task = made(f"knights:max_people=3,reward={form}")
    prompt = task.train[0]
    first, *others = prompt.answer.items()
    other = {"knight": "knave", "knave": "knight"}[first[1]]
    roles = ", ".join(f"{name} is a {role}" for name, role in [(first[0], other), *others])
    texts = [prompt.gold, f"<think></think><answer>{roles}</answer>", "nothing"]
    grades = task.verify([prompt] * 3, [Response(text) for text in texts])
    assert [grade.reward for grade in grades] == pytest.approx([correct, one_wrong, unread])
    assert [grade.outcome for grade in grades] == [1, 0, 0]
