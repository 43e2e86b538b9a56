"""Skywork-OR1's first stage, from or1_scripts/train/7b_8k.sh: entropy held at a target."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="skywork_or1_7b",
    title="Skywork Open Reasoner 1",
    url="https://github.com/SkyworkAI/Skywork-OR1",
    method="entropy_bonus",
    model="qwen2.5-7b",
    start="DeepSeek-R1-Distill-Qwen-7B",
    data="Skywork-OR1-RL-Data, maths and code",
    settings={
        "prompts_per_step": Setting(256, "script"),
        "samples_per_prompt": Setting(16, "script"),
        "minibatches": Setting(1, "script: one update a batch"),
        "prompt_tokens": Setting(2048, "script"),
        "response_tokens": Setting(8192, "script, first stage"),
        "temperature": Setting(1.0, "script"),
        "learning_rate": Setting(1e-06, "script"),
        "warmup_updates": Setting(0, "script: none is named"),
        "dynamic_sampling": Setting(1, "script: groups of equal outcome are left out"),
        "mask_truncated": Setting(False, "script: none is named"),
        "steps": Setting(300, "unknown"),
    },
    hyperparameters={
        "target": Setting(0.2, "script"),
        "entropy_coefficient": Setting(0.0, "script"),
        "coefficient_step": Setting(0.0001, "script"),
        "coefficient_min": Setting(0.0, "script"),
        "coefficient_max": Setting(0.005, "script"),
        "kl_coefficient": Setting(0.0, "script: none is named"),
    },
    reported="",
    missing=(
        "stages of 16k and 32k tokens: run again with --response-tokens from policy/",
        "one task in a run: maths or code",
    ),
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
