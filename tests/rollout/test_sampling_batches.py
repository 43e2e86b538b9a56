"""Waves: the equal parts in which a batch can be drawn."""

from rlvr_jax.rollout import sampling_batches


def test_waves_come_from_one_to_the_most():
    found = list(sampling_batches(prompts=8, samples=4, shards=4))
    assert found == [(8, 4), (4, 4), (4, 2), (4, 1)]
    assert list(sampling_batches(prompts=6, samples=2, shards=1)) == [
        (6, 2),
        (3, 2),
        (2, 2),
        (1, 2),
        (1, 1),
    ]


def test_every_device_has_rows_where_prompts_are_fewer():
    assert list(sampling_batches(prompts=2, samples=8, shards=4)) == [(2, 8), (2, 4), (2, 2)]
    assert list(sampling_batches(prompts=2, samples=8, shards=16)) == [(2, 8)]


def test_numbers_of_waves_differ():
    for shards in (1, 4, 16):
        counts = [720 * 12 // (part * own) for part, own in sampling_batches(720, 12, shards)]
        assert counts[0] == 1 and counts == sorted(set(counts))
