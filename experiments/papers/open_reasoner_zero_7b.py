"""Open-Reasoner-Zero on Qwen2.5-7B, from playground/orz_7b_ppo.py."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="open_reasoner_zero_7b",
    title="Open-Reasoner-Zero",
    url="https://github.com/Open-Reasoner-Zero/Open-Reasoner-Zero",
    method="ppo",
    model="qwen2.5-7b",
    start="Qwen2.5-7B",
    data="57k questions of maths",
    settings={
        "prompts_per_step": Setting(128, "script"),
        "samples_per_prompt": Setting(64, "script"),
        "minibatches": Setting(1, "script: one update a batch"),
        "prompt_tokens": Setting(2048, "script"),
        "response_tokens": Setting(8000, "script"),
        "temperature": Setting(1.0, "script"),
        "learning_rate": Setting(1e-06, "script"),
        "warmup_updates": Setting(50, "script"),
        "critic_learning_rate": Setting(5e-06, "script"),
        "critic_epochs": Setting(12, "script: 12 minibatches of the critic, here as passes"),
        "mask_truncated": Setting(False, "script: cut answers are wrong"),
        "steps": Setting(1000, "paper: over 1,000"),
    },
    hyperparameters={
        "discount": Setting(1.0, "script"),
        "trace_decay": Setting(1.0, "script"),
        "clip_low": Setting(0.2, "script"),
        "clip_high": Setting(0.2, "script"),
        "value_clip": Setting(0.2, "script"),
    },
    reported="above R1-Zero-Qwen-32B with a tenth of its steps (32B)",
    missing=(
        "the critic's 12 updates see a twelfth of the batch each; here each sees all of it, at 12"
        " times the cost",
        "responses end at </answer> and at the next speaker's name, which are several tokens",
    ),
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
