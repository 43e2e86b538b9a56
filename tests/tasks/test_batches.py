"""The order of the data: exact quotas, whole epochs, a pure function of seed and step."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rlvr_jax.tasks import Batches, Prompt, Task, graded_one_by_one

MIXTURES = (
    {},
    {"a": 0.67, "b": 0.33},
    {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3},
    {"a": 0.9, "b": 0.05, "c": 0.03, "d": 0.02},
    {"b": 2.0, "d": 1.0},
    {"a": 0.123457, "b": 0.345679, "c": 0.5, "d": 0.030864},
)


def make_task(mixture, sizes=(5, 7, 3, 11), only=None):
    kinds = only or "abcd"
    train = [
        Prompt(f"{kind} {index}", kind=kind)
        for kind, size in zip(kinds, sizes, strict=False)
        for index in range(size)
    ]
    return Task(
        name="counting",
        train=train,
        test=[Prompt("held out")],
        verify=graded_one_by_one(lambda prompt, response: 0.0),
        mixture=mixture,
    )


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("prompts_per_step", (1, 3, 64))
def test_after_every_step_each_kind_is_less_than_one_prompt_off_its_share(
    mixture, prompts_per_step
):
    task = make_task(mixture)
    batches = Batches(task, prompts_per_step)
    counts = dict.fromkeys("abcd", 0)
    for step in range(400 // prompts_per_step + 2):
        for index in batches.indices(step):
            counts[task.train[index].kind] += 1
        total = (step + 1) * prompts_per_step
        assert sum(counts.values()) == total
        for kind, share in batches.shares.items():
            assert abs(counts[kind] - total * share) < 1


def test_shares_are_the_mixture_or_what_train_has():
    assert Batches(make_task({"b": 2.0, "d": 1.0}), 1).shares == {
        "a": 0,
        "b": Fraction(2, 3),
        "c": 0,
        "d": Fraction(1, 3),
    }
    shares = Batches(make_task({}), 1).shares
    assert shares == {kind: Fraction(n, 26) for kind, n in zip("abcd", (5, 7, 3, 11), strict=True)}


def test_random_shares_of_many_kinds_are_kept():
    rng = np.random.default_rng(0)
    for trial in range(8):
        sizes = rng.integers(1, 40, size=rng.integers(2, 9))
        task = make_task({}, sizes=sizes, only="abcdefgh"[: len(sizes)])
        kinds = np.array(["abcdefgh".index(prompt.kind) for prompt in task.train])
        sampled = kinds[np.concatenate([Batches(task, 7, trial).indices(s) for s in range(40)])]
        counts = (sampled[:, None] == np.arange(len(sizes))).cumsum(0)
        wanted = np.arange(1, len(sampled) + 1)[:, None] * (sizes / sizes.sum())
        # The bound is 1; the margin is for rounding in `wanted`.
        assert np.abs(counts - wanted).max() < 1 + 1e-9


@pytest.mark.parametrize("mixture", MIXTURES)
def test_steps_are_the_same_in_any_order_and_in_a_new_object(mixture):
    task = make_task(mixture)
    forward = [Batches(task, 6, seed=3).indices(step) for step in range(30)]
    again = Batches(task, 6, seed=3)
    for step in reversed(range(30)):
        assert_array_equal(again.indices(step), forward[step])


def test_each_kind_runs_through_whole_epochs_in_different_orders():
    task = make_task({"a": 0.5, "b": 0.5})
    batches = Batches(task, 10)
    sampled = np.concatenate([batches.indices(step) for step in range(28)])
    for kind, size in (("a", 5), ("b", 7)):
        of_kind = [index for index in sampled if task.train[index].kind == kind]
        epochs = np.asarray(of_kind).reshape(-1, size)
        assert len(epochs) == 140 // size
        assert (np.sort(epochs) == np.sort(epochs[0])).all()
        assert len({tuple(epoch) for epoch in epochs}) > 1


@pytest.mark.parametrize("rounds", (2, 3, 10))
def test_every_round_runs_through_whole_epochs_and_those_of_a_step_differ(rounds):
    task = make_task({"a": 0.5, "b": 0.5}, sizes=(20, 20), only="ab")
    batches = Batches(task, 4, seed=2)
    sampled = np.array(
        [[batches.indices(step, r, rounds) for r in range(rounds)] for step in range(10)]
    )
    for of_round in sampled.swapaxes(0, 1):
        assert sorted(of_round.flat) == list(range(40))
    assert np.all((sampled < 20) == (sampled[:, :1] < 20))
    for of_step in sampled:
        assert len(np.unique(of_step)) == min(4 * rounds, 40)


def test_shares_without_a_common_denominator_are_kept():
    mixture = {"a": 20**0.5, "b": 7**0.5, "c": 3**0.5, "d": 2**0.5}
    sampled = np.concatenate([Batches(make_task(mixture), 10).indices(step) for step in range(20)])
    counts = np.histogram(sampled, [0, 5, 12, 15, 26])[0]
    wanted = 200 * np.array(list(mixture.values())) / sum(mixture.values())
    assert np.abs(counts - wanted).max() < 1


def test_the_order_of_a_kind_does_not_depend_on_the_other_kinds():
    alone = make_task({}, only="a")
    mixed = make_task({"a": 0.5, "c": 0.5})
    sampled = np.concatenate([Batches(mixed, 8, seed=1).indices(step) for step in range(5)])
    assert_array_equal(sampled[sampled < 5], Batches(alone, 20, seed=1).indices(0))


def test_seeds_give_different_orders():
    task = make_task({})
    assert list(Batches(task, 26, 0).indices(0)) != list(Batches(task, 26, 1).indices(0))


def test_step_a_million_is_at_hand():
    batches = Batches(make_task({"a": 0.67, "b": 0.33}), 512)
    assert len(batches.indices(10**6)) == 512


@pytest.mark.parametrize(
    ("call", "message"),
    (
        (lambda t: Batches(t, 0), "prompts_per_step must be at least 1, got 0"),
        (lambda t: Batches(t, 1, -1), "seed must be at least 0, got -1"),
        (lambda t: Batches(t, 1).indices(-1), "step must be at least 0, got -1"),
        (lambda t: Batches(t, 1).indices(0, 2, 2), "number must be in 0 … 1, got 2"),
        (lambda t: Batches(make_task({"a": -0.5}), 1), "got -0.5 for kind 'a'"),
        (lambda t: Batches(make_task({"a": float("nan")}), 1), "got nan for kind 'a'"),
        (lambda t: Batches(make_task({"a": 0}), 1), "must have a positive fraction"),
    ),
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(make_task({}))
