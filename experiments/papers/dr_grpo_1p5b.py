"""Dr. GRPO on Qwen2.5-Math-1.5B, from the authors' README as TRL quotes it."""

from __future__ import annotations

import sys

from rlvr_jax.runs import guarded
from rlvr_jax.runs.papers import Paper, Setting, run_paper

PAPER = Paper(
    name="dr_grpo_1p5b",
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    url="https://github.com/sail-sg/understand-r1-zero",
    method="dr_grpo",
    model="qwen2.5-1.5b",
    start="Qwen2.5-Math-1.5B",
    data="MATH, levels 3 to 5",
    settings={
        "prompts_per_step": Setting(128, "README"),
        "samples_per_prompt": Setting(8, "README"),
        "minibatches": Setting(1, "unknown"),
        "prompt_tokens": Setting(1024, "unknown"),
        "response_tokens": Setting(3000, "README"),
        "temperature": Setting(1.0, "README"),
        "learning_rate": Setting(1e-06, "README"),
        "warmup_updates": Setting(0, "unknown"),
        "mask_truncated": Setting(False, "README: cut answers are wrong"),
        "steps": Setting(500, "unknown"),
    },
    hyperparameters={
        "clip_low": Setting(0.2, "README"),
        "clip_high": Setting(0.2, "README"),
    },
    reported="43.3 % on AIME 2024 at 7B",
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
