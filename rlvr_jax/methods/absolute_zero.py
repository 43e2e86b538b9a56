"""Absolute Zero: the policy proposes programs with inputs, and finds what is missing of them.

"Absolute Zero: Reinforced Self-play Reasoning with Zero Data",
https://github.com/LeapLabTHU/Absolute-Zero-Reasoner

    deduction   program and input, the output is missing;  abduction: the input;  induction: the
                program, of half of the pairs, tried on the others
    propose     sees some of the buffer, must give another valid one;  learnability 1 - s, or 0
    R           solver: 1 right, -0.5 wrong, -1 malformed;  proposer: learnability if above 0, -0.5
                if 0, -1 if not valid
    A           = (R - mean) / √(var + 1e-8) over the tokens of one kind and role, var with n - 1
    loss        = PPO's clip on the token mean, all six cells in one update; no KL

Run it on `expressions`, whose base model knows the form, or on `python_functions`, whose programs
run in the sandbox; with one sample per prompt, for groups are not compared, and prompts in sixes.
Values are compared as values. Buffers begin with one program and without seed batches.
"""

from rlvr_jax.experience import earn_learnability, experience, propose_and_solve
from rlvr_jax.objectives import objective, plain_reward, ppo_clip, token_mean, whitened_by_cell
from rlvr_jax.types import Method, Recipe


def absolute_zero(
    references: int = 6,
    capacity: int = 16384,
    solver_samples: int = 8,
    wrong: float = -0.5,
    malformed: float = -1.0,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Recipe:
    """REINFORCE++ by kind and role on questions that the policy makes up.

    Args:
      references: earlier programs that a proposer sees (K).
      capacity: programs of each buffer.
      solver_samples: answers that a proposal's learnability is estimated from.
      wrong, malformed: rewards.
      clip_low, clip_high: half-widths of the trust region (ε).
    """
    return Recipe(
        objective=objective(
            advantage=whitened_by_cell(plain_reward(), ddof=1, epsilon=1e-8, floor=0.0),
            surrogate=ppo_clip(low=clip_low, high=clip_high),
            aggregation=token_mean(),
        ),
        experience=experience(
            propose_and_solve(references, capacity),
            stages=[earn_learnability(solver_samples, wrong, malformed)],
        ),
    )


METHOD = Method(
    absolute_zero,
    "Absolute Zero: Reinforced Self-play Reasoning with Zero Data",
    "https://github.com/LeapLabTHU/Absolute-Zero-Reasoner",
    changes="advantage, curriculum, reward",
    left_out="seed batches, and messages beside inductions",
    reports=(
        "Qwen2.5-7B-Coder without outside data: 10.2 points more on the mean of code and maths, "
        "15.2 in maths alone and 5.0 in code"
    ),
    traps=(
        "groups are not compared, so one sample per prompt is enough; means are over tokens, so "
        "long answers weigh more; the released check evaluates the model's text, and `1) or (True` "
        "passes it"
    ),
)
