"""Makes run directories as training writes them, with curves like those of real runs."""

import json
from pathlib import Path

import numpy as np

HOSTILE = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "]]>"]


def write_run(
    path: Path, method="grpo", seed=0, steps=60, every=10, responses=8, extra=(), **config
):
    """Writes a run directory: entropy falls, reward rises; "clip_cov" keeps a rare form alive."""
    rng = np.random.default_rng([seed, len(method)])
    keeps = method == "clip_cov"
    path.mkdir(parents=True)
    config = {
        "method": method,
        "task": "brackets",
        "seed": seed,
        "loss_terms": ["ppo_clip", *(["drop_high_covariance"] if keeps else [])],
        "settings": {
            "learning_rate": 3e-4,
            "prompts_per_step": 64,
            "samples_per_prompt": 8,
            "steps": steps,
        },
    } | config
    (path / "config.json").write_text(json.dumps(config))
    metrics, timings = [], []
    for step in range(steps + 1):
        metrics.append(_metrics(step, step / steps, keeps, rng, step % every == 0))
        timings.append(_timing(step, step % every == 0))
    _write_lines(path / "metrics.jsonl", metrics)
    _write_lines(path / "timings.jsonl", timings)
    (path / "samples").mkdir()
    for step in (1, steps):
        rows = [_sample(step, i, keeps and step > 1, rng, extra) for i in range(responses)]
        _write_lines(path / "samples" / f"step_{step:06d}.jsonl", rows)
    (path / "summary.json").write_text(json.dumps({"steps": steps}))
    return path


def _metrics(step, t, keeps, rng, evaluated):
    entropy = 0.1 + 0.08 * np.exp(-5 * t) + 0.03 * t if keeps else 0.05 + 0.13 * np.exp(-3.5 * t)
    pass_1 = 0.28 + (0.28 if keeps else 0.25) * (1 - np.exp(-3 * t))
    rare = 0.056 + (0.8 / (1 + np.exp(-14 * (t - 0.5))) if keeps else -0.055 * min(1, 4 * t))
    row = {"step": step}
    if evaluated:
        level = pass_1 + rng.normal(0, 0.008)
        pass_32 = 0.70 + (0.22 / (1 + np.exp(-12 * (t - 0.45))) if keeps else -0.08 * t)
        row |= {
            "held_out/pass@1": level,
            "held_out/pass@8": 0.55 * level + 0.45 * pass_32 + 0.04,
            "held_out/pass@32": pass_32 + rng.normal(0, 0.008),
            "held_out/n": 64,
            "held_out/easy/pass@1": level + 0.14,
            "held_out/easy/pass@32": 0.95,
            "held_out/hard/pass@1": rare * 0.45,
            "held_out/hard/pass@32": min(0.95, 0.19 + rare) if keeps else 0.19 * (1 - t),
            "held_out/entropy": entropy,
            "held_out/kl_to_start/k1": 0.4 * t,
            "held_out/hard/info/right_form": rare,
        }
    if step == 0:
        return row
    reward = (2.55 - 1.75 * np.exp(entropy) if not keeps else pass_1 + 0.02) + rng.normal(0, 0.02)
    return row | {
        "reward": reward,
        "outcome": reward,
        "outcome/easy": reward + 0.15,
        "outcome/hard": rare * 0.4,
        "entropy": entropy + rng.normal(0, 0.003),
        "entropy/p10": 0.0,
        "entropy/p50": entropy * 0.1,
        "entropy/p90": entropy * 4,
        "entropy/correct": entropy * 0.8,
        "entropy/incorrect": entropy * 1.3,
        "covariance": 0.03 * np.exp(-3 * t) + rng.normal(0, 0.002),
        "low_entropy_fraction": 0.75 + 0.15 * t,
        "chosen_fraction": 0.0075 if keeps else 0.0,
        "clipped_fraction": 0.001,
        "ratio/min": 0.6,
        "ratio/mean": 1.0,
        "ratio/max": 1.7,
        "ratio/effective_sample_size": 0.99,
        "length": 15 + 3 * t + rng.normal(0, 0.2),
        "truncated_fraction": 0.0,
        "gradient_norm": 0.3 + abs(rng.normal(0, 0.1)),
        "info/right_form": rare,
        "loss": rng.normal(0, 0.01),
    }


def _timing(step, evaluated):
    evaluation = {"evaluate_s": 0.8} if evaluated else {}
    if step == 0:
        return {"step": 0} | evaluation
    return {
        "step": step,
        "sample_s": 0.064,
        "verify_s": 0.002,
        "update_s": 0.12,
        "tokens_per_s": 48000.0,
        **evaluation,
        "wall_s": 0.2 + sum(evaluation.values()),
    }


def _sample(step, number, right_form, rng, extra):
    left = "( 3 + 9 = 12 ) - 4 = 8 ; ( 3 * 9 = 27 ) - 4 = 23 ."
    right = "3 * ( 9 - 4 = 5 ) = 15 ."
    text = right if right_form or number % 4 == 0 else left
    tokens = [*text.split(" "), *extra]
    outcome = float(number % 4 == 0 or right_form)
    forks = [t in "(+-*;3" for t in tokens]
    entropy = np.where(forks, rng.uniform(0.1, 0.8, len(tokens)), rng.uniform(0, 0.04, len(tokens)))
    advantage = 1.6 if outcome else -0.6
    return {
        "step": step,
        "prompt": f"3 9 4 15 > #{number // 4}",
        "response": " ".join(tokens),
        "kind": "hard",
        "group": number // 4,
        "outcome": outcome,
        "reward": outcome,
        "truncated": number == 3,
        "answer": "15" if outcome else "23",
        "stage": "exact",
        "timed_out": number == 2,
        "verdict": True,
        "tokens": tokens,
        "entropy": entropy.tolist(),
        "logp": (-entropy * rng.exponential(1, len(tokens))).tolist(),
        "advantage": [advantage] * len(tokens),
        "ratio": rng.lognormal(0, 0.15, len(tokens)).tolist(),
        "chosen": (entropy > 0.6).astype(int).tolist(),
        "clipped": (rng.uniform(size=len(tokens)) < 0.06).astype(int).tolist(),
    }


def _write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
