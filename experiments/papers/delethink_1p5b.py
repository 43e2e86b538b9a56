"""Delethink at 24k on R1-Distill-Qwen-1.5B: config r1d-1.5b_deepscaler_delethink_24k.yaml, template
examples/delethink_template.sh."""

import sys

from rlvr_jax.pods import Paper, Setting, run_paper
from rlvr_jax.runs import guarded

PAPER = Paper(
    name="delethink_1p5b",
    title="The Markovian Thinker",
    url="https://github.com/McGill-NLP/the-markovian-thinker",
    method="delethink",
    model="qwen2.5-1.5b",
    start="DeepSeek-R1-Distill-Qwen-1.5B",
    data="DeepScaleR",
    settings={
        "prompts_per_step": Setting(128, "config"),
        "samples_per_prompt": Setting(8, "config"),
        "minibatches": Setting(2, "config: two updates a batch"),
        "prompt_tokens": Setting(2048, "template: longer ones are left out"),
        "response_tokens": Setting(8192, "config: a chunk"),
        "learning_rate": Setting(1e-06, "config"),
        "warmup_updates": Setting(0, "unknown"),
        "weight_decay": Setting(0.0, "template"),
        "mask_truncated": Setting(False, "code: cut answers are graded as they are"),
        "steps": Setting(1000, "template"),
    },
    hyperparameters={
        "max_chunks": Setting(5, "config"),
        "head": Setting(100, "config"),
        "carry": Setting(4096, "config"),
        "temperature": Setting(0.6, "config"),
        "clip_low": Setting(0.2, "config"),
        "clip_high": Setting(0.26, "config"),
        "dual": Setting(3.0, "config"),
        "cap": Setting(2.0, "config"),
    },
    laptop={"max_chunks": 2, "head": 3, "carry": 8, "temperature": 1.0},
    reported="as good as ordinary RL with a context of 24k, in time that is linear in length",
    missing=("--compile counts one chunk of an answer, and it has up to five",),
)

if __name__ == "__main__":
    guarded(lambda arguments: sys.exit(run_paper(PAPER, arguments)))
