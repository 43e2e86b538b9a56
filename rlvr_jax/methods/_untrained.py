"""Published papers without a method: `python -m rlvr_jax train` rejects these names."""

from typing import NamedTuple


class Untrained(NamedTuple):
    """A paper without a recipe.

    Fields:
      title: title of the paper.
      here: its parts in the library.
      why: reason why it has no method.
    """

    title: str
    here: str
    why: str


_PAIR = "`python -m rlvr_jax.diagnosis POLICY --against START --task TASK` (or `--answers FOLDER`)"
_ANALYSIS = "it is an analysis and trains no weights"

UNTRAINED = {
    "alpha_rl": Untrained(
        "On Predictability of Reinforcement Learning Dynamics for Large Language Models",
        "`python -m rlvr_jax.diagnosis.extrapolate --start START RUN RUN … --target SCORE --out"
        " FOLDER` (`analysis.weights.alpha_rl`)",
        "it predicts the weights of a policy from those of a short run of any method",
    ),
    "did": Untrained(
        "Differential Information: An Information-Theoretic Perspective on Preference Optimization",
        f"{_PAIR}, topic “Differential information” (`analysis.updates.did`)",
        _ANALYSIS,
    ),
    "diversity_metrics": Untrained(
        "The Vendi Score: A Diversity Evaluation Metric for Machine Learning; self-BLEU, Jaccard",
        f"{_PAIR}, topic “Responses” (`analysis.texts.diversity_metrics`)",
        _ANALYSIS,
    ),
    "echo_chamber": Untrained(
        "Echo Chamber: RL Post-training Amplifies Behaviors Learned in Pretraining",
        f"{_PAIR}, or a run directory, topic “Formats”, flag `--formats NAME=REGEX`"
        " (`analysis.texts.echo_chamber`)",
        _ANALYSIS,
    ),
    "interference": Untrained(
        "The Reasoning Boundary Paradox: How Reinforcement Learning Constrains Language Models",
        f"{_PAIR}, topics “Interference between problems” and “Influence of problems on each"
        " other” (`analysis.updates.interference`)",
        _ANALYSIS,
    ),
    "model_task_alignment": Untrained(
        "Mirage or Method? How Model-Task Alignment Induces Divergent RL Conclusions",
        "`python -m rlvr_jax.analysis.boundary.model_task_alignment RUN …`",
        _ANALYSIS,
    ),
    "policy_cliff": Untrained(
        "The Policy Cliff: A Theoretical Analysis of Reward-Policy Maps in Large Language Models",
        f"{_PAIR}, topic “Ties of the reward” (`analysis.updates.policy_cliff`)",
        _ANALYSIS,
    ),
    "empirical_mcts": Untrained(
        "Empirical-MCTS: Continuous Agent Evolution via Dual-Experience Monte Carlo Tree Search",
        "`search_answers` (`experience.draws.trees`), and `Insights` (`experience.memory`) that are"
        " stored across problems",
        "it edits prompts and trains no weights",
    ),
    "hierarchical_temporal": Untrained(
        "Emergent temporal abstractions in autoregressive models enable hierarchical"
        " reinforcement learning",
        "`policy.hooks`: `Hook`, `controlled`, `switched_codes`, `code_loss`",
        "the training of its controller is not published",
    ),
    "imagined_conversations": Untrained(
        "Zero-Shot Goal-Directed Dialogue via RL on Imagined Conversations",
        "`tasks.derived.dialogues`: `imagine`, `split_by_persona`; `implicit_q_losses`,"
        " `moved_targets`, `value_perturbed`",
        "it learns offline with value heads over the vocabulary, which no recipe has",
    ),
    "intercode": Untrained(
        "InterCode: Standardizing and Benchmarking Interactive Coding with Execution Feedback",
        "`tools.intercode`: `sql_episodes`, `tools.intercode_shell`: `shell_episodes`, and"
        " `tools.stepped`, which has the names `reset` and `step`",
        "it has environments, from which any method in turns learns",
    ),
    "rast": Untrained(
        "RAST: Reasoning Activation in LLMs via Small-model Transfer",
        "`rollout.combined`: `with_deltas` adds the logit changes of trained smaller models to a"
        " pool's logits; `behaviour_logp` is that of the sum",
        "it decodes with three models and trains no weights",
    ),
    "reward_consistency": Untrained(
        "The Trickle-down Impact of Reward (In-)consistency on RLHF",
        "`python -m rlvr_jax.diagnosis.swaps --task TASK`, or with a run directory"
        " (`analysis.texts.reward_consistency`)",
        _ANALYSIS,
    ),
    "token_trace_report": Untrained(
        "Token traces: columns of prime-rl, TRL and verl, for people who read rollouts",
        "`python -m rlvr_jax.diagnosis.traces ROLLOUTS.npz --policy POLICY`"
        " (`analysis.entropy.token_trace_report`)",
        _ANALYSIS,
    ),
}
"""Papers by the name of a method of theirs."""
