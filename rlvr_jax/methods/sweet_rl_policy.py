"""SWEET-RL, the second step: a policy learns which turns a critic that knows the answer prefers.

"SWEET-RL: Training Multi-Turn LLM Agents on Collaborative Reasoning Tasks",
https://github.com/facebookresearch/sweet_rl

    A    = mean over a turn's tokens of critic's logp - reference_logp, both behind the answer
    pairs: of 16 ways to take a turn, 4 of the better half with 4 of the worse half
    loss = mean over pairs of -log σ(β (S_better - S_worse)) - 0.01 · mean logp of the better ones

S is the mean log ratio of policy and reference over the turn's tokens, without the answer in the
prompt. The critic is a folder, what a run of `sweet_rl` has trained; with "start" it prefers
nothing. One turn of each group is drawn again at a time, by the policy as it is; the authors draw
all turns once.
"""

from collections.abc import Sequence

from jaxtyping import Array, Bool

from rlvr_jax.experience import experience, pair_turns, turns
from rlvr_jax.experience.views import with_reference
from rlvr_jax.objectives.advantages.group_relative import no_advantage
from rlvr_jax.objectives.algebra.core import objective
from rlvr_jax.objectives.regularizers.imitation import imitate
from rlvr_jax.objectives.regularizers.turn_preferences import best_against_rest
from rlvr_jax.objectives.surrogates.aggregations import token_mean
from rlvr_jax.objectives.surrogates.policy_gradient import no_policy_loss
from rlvr_jax.tools import named_toolbox
from rlvr_jax.types import Method, Recipe, Rollouts


def better_turns(rollouts: Rollouts) -> Bool[Array, "B T"]:
    """The tokens of the turns that won their pairs."""
    return rollouts.mask & (rollouts.reward > 0)[:, None]


def sweet_rl_policy(
    critic: str = "start",
    candidates: int = 16,
    pairs: int = 4,
    coefficient: float = 0.1,
    imitation: float = 0.01,
    tools: Sequence[str] | None = None,
    style: str = "json",
    max_turns: int = 8,
    reply_tokens: int = 512,
    describe: bool = True,
) -> Recipe:
    """A preference loss on pairs of turns, and the likelihood of the better ones.

    Args:
      critic: folder of a policy that `sweet_rl` has trained, with the policy's tokens and shape.
      candidates: ways to take a turn.
      pairs: of them.
      coefficient: scale of the scores (β).
      imitation: weight of the mean -logp of the better turns.
      tools: that may be called, by name (`named_toolbox`); None: the task has an environment.
      style: how calls are written: "json", "tags" or "fenced".
      max_turns: replies of a response at most.
      reply_tokens: of a reply at most.
      describe: a system message says what tools there are; it needs a chat template.
    """
    world = named_toolbox(tools, style, most=max_turns, describe=describe)
    return Recipe(
        objective=objective(
            advantage=no_advantage(),
            surrogate=no_policy_loss(),
            regularizers=[
                best_against_rest(coefficient),
                imitate(imitation, where=better_turns, reads=()),
            ],
            aggregation=token_mean(),
        ),
        experience=experience(
            draw=turns(world, limit=max_turns, reply_tokens=reply_tokens),
            stages=[pair_turns(with_reference(), candidates, pairs)],
        ),
        teacher=critic,
    )


METHOD = Method(
    sweet_rl_policy,
    "SWEET-RL: Training Multi-Turn LLM Agents on Collaborative Reasoning Tasks",
    "https://github.com/facebookresearch/sweet_rl",
    changes="sampling, selection, surrogate",
    reports=(
        "ColBench: 6 % more successes and wins than other multi-turn RL; Llama-3.1-8B as good as "
        "GPT-4o"
    ),
    traps=(
        "with the default critic, the start, all turns score alike and pairs say nothing: train "
        "`sweet_rl` first; each group has 16 more rows drawn for one turn; a mean over tokens "
        "keeps the loss almost linear"
    ),
)
