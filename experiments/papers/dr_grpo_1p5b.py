"""Dr. GRPO on Qwen2.5-Math-1.5B, from the authors' examples/qwen2.5-math-1.5b.sh."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="dr_grpo_1p5b",
    title="Understanding R1-Zero-Like Training: A Critical Perspective",
    url="https://github.com/sail-sg/understand-r1-zero",
    method="dr_grpo",
    model="qwen2.5-1.5b",
    start="Qwen2.5-Math-1.5B",
    data="MATH, 12,000 questions",
    settings={
        "prompts_per_step": Setting(128, "script"),
        "samples_per_prompt": Setting(8, "script"),
        "minibatches": Setting(8, "script: updates of 128 rollouts"),
        "prompt_tokens": Setting(1024, "script"),
        "response_tokens": Setting(3000, "script"),
        "temperature": Setting(1.0, "script"),
        "learning_rate": Setting(1e-06, "script"),
        "warmup_updates": Setting(0, "script: a constant rate"),
        "mask_truncated": Setting(False, "code: cut answers are wrong"),
        "steps": Setting(1875, "script: 20 passes over the questions"),
    },
    hyperparameters={
        "clip_low": Setting(0.2, "README, as TRL quotes it"),
        "clip_high": Setting(0.2, "README, as TRL quotes it"),
    },
    reported="43.3 % on AIME 2024 at 7B",
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
