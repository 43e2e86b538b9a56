"""ProRL's first stage on R1-Distill-Qwen-1.5B."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="prorl_1p5b",
    title="ProRL: Prolonged Reinforcement Learning Expands Reasoning Boundaries in Large"
    " Language Models",
    url="https://arxiv.org/abs/2505.24864",
    method="grpo",
    model="qwen2.5-1.5b",
    start="DeepSeek-R1-Distill-Qwen-1.5B",
    data="136k questions of maths, code, science, puzzles, instructions",
    settings={
        "prompts_per_step": Setting(256, "paper (recalled)"),
        "samples_per_prompt": Setting(16, "paper (recalled)"),
        "minibatches": Setting(4, "paper (recalled): minibatches of 64"),
        "prompt_tokens": Setting(1024, "unknown"),
        "response_tokens": Setting(8192, "paper, first stages"),
        "temperature": Setting(1.2, "paper (recalled)"),
        "learning_rate": Setting(2e-06, "paper (recalled)"),
        "warmup_updates": Setting(0, "unknown"),
        "dynamic_sampling": Setting(10, "paper: as DAPO; the number of rounds is DAPO's"),
        "steps": Setting(2000, "paper: over 2,000"),
    },
    hyperparameters={
        "clip_low": Setting(0.2, "paper"),
        "clip_high": Setting(0.4, "paper"),
        "kl_coefficient": Setting(0.001, "unknown"),
        "aggregation": Setting("token_mean", "paper"),
    },
    reported="pass@k above the base's at large k too",
    missing=(
        "resets of reference and optimizer: end the run, and start another one from its policy/",
        "the length penalty of later stages",
    ),
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
