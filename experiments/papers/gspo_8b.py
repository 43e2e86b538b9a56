"""GSPO's settings on Qwen3-8B; the paper trains Qwen3-30B-A3B."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="gspo_8b",
    title="Group Sequence Policy Optimization",
    url="https://arxiv.org/abs/2507.18071",
    method="gspo",
    model="qwen3-8b",
    start="Qwen3-8B-Base",
    data="a file of yours",
    settings={
        "prompts_per_step": Setting(512, "unknown"),
        "samples_per_prompt": Setting(16, "unknown"),
        "minibatches": Setting(4, "paper, by two codes"),
        "prompt_tokens": Setting(2048, "unknown"),
        "response_tokens": Setting(8192, "unknown"),
        "temperature": Setting(1.0, "unknown"),
        "learning_rate": Setting(1e-06, "unknown"),
        "warmup_updates": Setting(0, "unknown"),
        "steps": Setting(300, "unknown"),
    },
    hyperparameters={
        "clip_low": Setting(0.0003, "paper, by two codes"),
        "clip_high": Setting(0.0004, "paper, by two codes"),
    },
    laptop={"clip_low": 0.005, "clip_high": 0.0065},
    reported="more stable than GRPO, many more tokens clipped (recalled)",
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
