"""Optima and their number against all subsets; what of an answer is worth what."""

import itertools
import random

import pytest

from rlvr_jax.verifiers.puzzles.combinatorial import check, generate, increasing, schedule


def largest(items, allowed):
    """The largest size of an allowed choice of items, and all choices of that size."""
    for size in range(len(items), -1, -1):
        found = [c for c in itertools.combinations(range(len(items)), size) if allowed(c)]
        if found:
            return size, found
    raise AssertionError("the empty choice is allowed")


@pytest.mark.parametrize("seed", range(30))
def test_increasing_subsequences_are_counted(seed):
    rng = random.Random(seed)
    values = [rng.randint(1, 9) for _ in range(rng.randint(1, 8))]
    size, found = largest(
        values, lambda c: all(values[a] < values[b] for a, b in itertools.pairwise(c))
    )
    optimum = increasing(values)
    assert (optimum.size, optimum.optima) == (size, len(found))
    assert tuple(i - 1 for i in optimum.ids) in found


@pytest.mark.parametrize("seed", range(30))
def test_schedules_are_counted(seed):
    rng = random.Random(seed)
    starts = [rng.randint(0, 9) for _ in range(rng.randint(1, 8))]
    items = [[start, start + rng.randint(1, 4)] for start in starts]

    def apart(chosen):
        pairs = itertools.combinations([items[i] for i in chosen], 2)
        return all(a[1] <= b[0] or b[1] <= a[0] for a, b in pairs)

    size, found = largest(items, apart)
    optimum = schedule(items)
    assert (optimum.size, optimum.optima) == (size, len(found))
    assert tuple(sorted(i - 1 for i in optimum.ids)) in found
    assert optimum.ids == sorted(optimum.ids, key=lambda i: items[i - 1][1])


@pytest.mark.parametrize("kind", ["lis", "schedule"])
@pytest.mark.parametrize("level", [1, 2, 3])
def test_what_is_generated_has_one_optimum(kind, level):
    for seed in range(5):
        items, ids = generate(random.Random(seed), level, kind)
        optimum = (increasing if kind == "lis" else schedule)(items)
        assert optimum.optima == 1 and optimum.ids == ids
        text = rf"\answer{{{len(ids)}}} \ids{{{', '.join(map(str, ids))}}}"
        assert check(text, ids).outcome == 1
        assert check(text, ids[::-1]).outcome == (len(ids) == 1)


@pytest.mark.parametrize(
    ("response", "wanted"),
    [
        (r"\ids{1,3,4,} \answer{ 3 }", (1, 1, 1)),
        ("\\ids{ 1\n3\t4 } \\answer{3}", (1, 1, 1)),
        (r"\ids{1;3;4} \answer{3}", (1, 0, 0)),
        (r"\ids{,1,3,4} \answer{3}", (1, 0, 0)),
        (r"\ids{1,3,4,,} \answer{3}", (1, 0, 0)),
        (r"\ids{1,3,0000004} \answer{0000003}", (0, 0, 0)),
        (r"\ids{1.0,3,4} \answer{3.0}", (0, 0, 0)),
        (r"\ids{١,3,4} \answer{٣}", (0, 0, 0)),
        (r"\ids {1,3,4} \answer {3}", (0, 0, 0)),
        (r"\ids{1,3,4 \answer{3}", (1, 0, 0)),
        (r"\ids{1,3,4,5,6,7} \answer{3}", (1, 0, 0.5)),
        (r"\ids{,} \answer{}", (0, 0, 0)),
        ("", (0, 0, 0)),
    ],
)
def test_size_and_ids_are_read_by_themselves(response, wanted):
    found = check(response, [1, 3, 4])
    assert (found.info["answer"], found.info["exact"], found.info["prefix"]) == wanted
    assert found.outcome == (wanted[:2] == (1, 1))


def test_nothing_at_all_is_no_answer():
    assert check("so", [1]).answer is None
    assert check(r"\answer{1}", [1]).answer == "1"
