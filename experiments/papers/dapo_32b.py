"""DAPO on Qwen2.5-32B, from dapo/run_dapo_qwen2.5_32b.sh of verl's recipes."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="dapo_32b",
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    url="https://arxiv.org/abs/2503.14476",
    method="dapo",
    model="qwen2.5-32b",
    start="Qwen2.5-32B",
    data="DAPO-Math-17k",
    settings={
        "prompts_per_step": Setting(512, "script"),
        "samples_per_prompt": Setting(16, "script"),
        "minibatches": Setting(16, "script: minibatches of 32 prompts"),
        "prompt_tokens": Setting(2048, "script"),
        "response_tokens": Setting(20480, "script"),
        "temperature": Setting(1.0, "script"),
        "learning_rate": Setting(1e-06, "script"),
        "warmup_updates": Setting(320, "recalled: 20 batches of 16 updates; the script has 10"),
        "mask_truncated": Setting(False, "script: cut answers are charged for their length"),
        "weight_decay": Setting(0.1, "script"),
        "max_gradient_norm": Setting(1.0, "script"),
        "steps": Setting(300, "unknown"),
    },
    hyperparameters={
        "clip_low": Setting(0.2, "script"),
        "clip_high": Setting(0.28, "script"),
        "cache_length": Setting(4096, "script"),
        "overlong_factor": Setting(1.0, "script"),
        "max_rounds": Setting(10, "script"),
    },
    laptop={"cache_length": 5, "max_rounds": 2},
    reported="50 % on AIME 2024",
    missing=(
        "a round of the script draws three times the prompts of a step, one here draws as many",
        "the script's dual clip of 10",
    ),
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
