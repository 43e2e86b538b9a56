"""SvS: the policy writes variations of problems that it solves now and then, and solves them.

"Beyond Pass@1: Self-Play with Variational Problem Synthesis Sustains RLVR",
https://github.com/MasterVito/SvS

    1. N answers to each prompt;  2. prompts with pass rate in [1/8, 1/2]: each right answer is a
    source;  3. N problems from each source, which see the answer alone and inherit the prompt's;
    4. N answers to each problem;  5. R of a problem = 1 if its pass rate is in [1/8, 5/8], else 0
    loss = PPO's clip on the token mean over mixed groups of 1 and 4 and sources with R > 0 in 3

No answer is ever made by the policy. A problem that gives its answer away is too easy, one that
nobody solves too hard; a copy of the prompt earns everything, for nothing asks for novelty.
`sources` bounds what a step draws, which the authors leave open; so does `most`, with batches cut
to devices. Without prompts in the band it is dynamic sampling without refills.
"""

from rlvr_jax.experience import experience, synthesize_problems
from rlvr_jax.objectives import group_normalized, objective, ppo_clip, token_mean
from rlvr_jax.types import Method, Recipe


def svs(
    low: float = 0.125,
    high: float = 0.5,
    written_low: float = 0.125,
    written_high: float = 0.625,
    sources: int = 64,
    most: float = 4.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    epsilon: float = 1e-6,
) -> Recipe:
    """GRPO on prompts, on problems that the policy writes from its answers, and on writing them.

    Args:
      low, high: pass rates of prompts that are varied.
      written_low, written_high: pass rates of written problems that earn something.
      sources: right answers of a step that problems are written from, at most.
      most: rows of an update at most, as a multiple of prompts × samples.
      clip_low, clip_high: half-widths of the trust region (ε).
      epsilon: added to the standard deviation of a group's rewards.
    """
    stage = synthesize_problems(low, high, written_low, written_high, sources, most)
    return Recipe(
        objective=objective(
            advantage=group_normalized(epsilon),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(stages=[stage]),
    )


METHOD = Method(
    svs,
    "Beyond Pass@1: Self-Play with Variational Problem Synthesis Sustains RLVR",
    "https://github.com/MasterVito/SvS",
    changes="sampling, selection, reward",
    reports=(
        "Qwen2.5-32B-Instruct on DAPO-17k, over plain RLVR: pass@32 18.3 points on AIME24, 22.8 "
        "on AIME25; entropy stays"
    ),
    traps=(
        "prompts never solved are never varied; a copy of the prompt earns everything; a source "
        "of which all problems earn is dead weight; the README's negative reward is 0 in the code"
    ),
)
