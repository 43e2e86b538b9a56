"""The command that writes token traces, on the pair that ships."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from rlvr_jax import policy, tasks
from rlvr_jax.diagnosis.traces import main
from rlvr_jax.rollout import load_rollouts

PAIR = Path(__file__).parents[2] / "docs" / "results" / "brackets" / "pair" / "grpo"
START = tasks.load("brackets").base_model
ATOL = 2e-3  # columns have 4 digits, and log-probs are float32 of another machine


def test_every_token_has_its_columns(tmp_path, capsys):
    out, page = tmp_path / "traces.jsonl", tmp_path / "page.html"
    stored = PAIR / "rollouts" / "before.npz"
    scored_by = ["--policy", str(PAIR), "--reference", START]
    files = ["--out", str(out), "--page", str(page)]
    main([str(stored), *scored_by, "--groups", "2", *files, "--held-out"])
    told = capsys.readouterr().out
    assert told.startswith("32 responses to 2 prompts") and "Reference KL" in told
    rollouts, stats, _ = load_rollouts(stored)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 32 and all(line["held_out"] for line in lines)
    model, params = policy.load(str(PAIR))
    whole = jax.jit(model.logits)
    for row in (0, 31):
        line, kept = lines[row], rollouts.mask[row]
        logp, old = stats.logp[row][kept], rollouts.old_logp[row][kept]
        np.testing.assert_allclose(line["logp"], logp, ATOL, ATOL)
        # The reference is the policy that sampled.
        np.testing.assert_allclose(line["ref_logp"], old, ATOL, ATOL)
        rewards = rollouts.outcome[rollouts.group == rollouts.group[row]]
        advantage = (rollouts.outcome[row] - rewards.mean()) / (rewards.std(ddof=1) + 1e-6)
        np.testing.assert_allclose(line["advantages"], advantage, ATOL, ATOL)
        ratio = np.exp(logp - old)
        clipped = (ratio > 1.28) if advantage > 0 else (ratio < 0.8)
        wanted = np.where(clipped, 0, ratio * advantage)
        np.testing.assert_allclose(line["gradient_weight"], wanted, 1e-2, ATOL)
        # Logits of the whole sequence, without the scorer.
        prompt = rollouts.prompt_tokens[row, : rollouts.prompt_length[row]]
        sequence = np.concatenate([prompt, rollouts.tokens[row][kept]])
        logits = np.asarray(whole(params, sequence[None])[0, len(prompt) - 1 : -1])
        own = np.take_along_axis(logits, rollouts.tokens[row][kept][:, None], 1)
        assert line["rank"] == (logits > own).sum(axis=1).tolist()
        chances = np.sort(np.exp(logits - logits.max(1, keepdims=True)), axis=1)
        chances /= chances.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(line["margin"], chances[:, -1] - chances[:, -2], ATOL, ATOL)
    assert '"clipped"' in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["gone.npz", "--policy", START], r"must be a file of .* --keep, got gone.npz"),
        (["{}", "--policy", "nowhere"], "nowhere"),
        (["{}", "--policy", START, "--groups", "-1"], "--groups must be at least 0, got -1"),
    ],
)
def test_what_cannot_be_scored_ends_in_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    stored = str(PAIR / "rollouts" / "before.npz")
    with pytest.raises(SystemExit, match=sentence):
        main([word.format(stored) for word in arguments])
