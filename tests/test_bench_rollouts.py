"""What rollouts cost is measured by one command, all of it."""

import re

import pytest

from rlvr_jax.experiments import bench_rollouts

LINES = [
    r"plain.* [\d,]+ tokens/s: 8 rows, [\d,]+ tokens, \d+ steps of [\d.]+ ms",
    r"turns, two halves.* a turn of all rows computes \d+ ms; tool 10 ms; idle \d+%",
    r"turns, lockstep.* a turn of all rows computes \d+ ms; tool 10 ms; idle \d+%",
    *(
        rf"tail, {32 // batches} rows at a time.* lockstep in {batches} batches \d+ steps, "
        r"[\d.]+ s; .* room: \d+ steps, [\d.]+ s"
        for batches in (1, 2, 4)
    ),
    r"fork.* 4 of 8 rows with \d+ slots, [\d.]+ MB of caches: [\d.]+ ms, [\d.]+ decode steps",
    r"tree.* 8 pieces of 192 places: \d+ kB on the host, \d+ bytes a place",
]


@pytest.mark.slow
def test_every_number_is_told(capsys):
    tiny = ["--size", "tiny", "--rows", "8", "--rounds", "1", "--replies", "1"]
    bench_rollouts.main([*tiny, "--tool-seconds", "0.01"])
    told = " ".join(re.sub(r"[│|]", " ", capsys.readouterr().out).split())
    for line in LINES:
        assert re.search(line.replace(" ", r"\s+"), told), line
    # A row that ends makes room: no more steps than in lockstep.
    for steps, fewer in re.findall(r"batches (\d+) steps.*?room: (\d+) steps", told):
        assert int(fewer) <= int(steps)
