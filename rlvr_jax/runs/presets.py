"""Settings that differ by task and method, all in one place.

A command line starts from `TrainConfig`. The preset of the task changes it, then that of the method
on this task, then the flags. `--no-preset` leaves both presets out. Published token quotas (2e-4 of
a batch) are made for millions of tokens. They choose no token of an update with a few thousand.
"""

from typing import Any

from rlvr_jax.runs.config import TrainConfig
from rlvr_jax.tasks import without_options

_TASKS: dict[str, dict[str, Any]] = {
    "brackets": dict(
        steps=300,
        prompts_per_step=64,
        samples_per_prompt=8,
        minibatches=4,
        mask_truncated=False,
        learning_rate=3e-4,
        warmup_updates=0,
        adam_b2=0.98,
    ),
}
_TASKS["operators"] = _TASKS["brackets"]
_TASKS["calculations"] = _TASKS["brackets"]
_TASKS["noted_calculations"] = _TASKS["brackets"]
_TASKS["discussed_sums"] = _TASKS["brackets"]
# The tasks of required forms; their base model is as small as that of brackets.
_FORMS = (
    *("abstention", "cited_chains", "critiqued_sums", "judged_sums"),
    *("step_sums", "tool_turns"),
)
_TASKS |= dict.fromkeys(_FORMS, _TASKS["brackets"])
_SKETCHES = ("clips", "equations", "feelings", "number_lists", "queries", "repairs", "routes")
_TASKS |= dict.fromkeys((*_SKETCHES, "searches"), _TASKS["brackets"])
# These tasks have all settings of another task, those of methods included.
_ALIKE = {"hinted_brackets": "brackets"}
# For a pretrained language model. All held-out questions are used, which takes as long as several
# steps. Groups of four see twice as many questions as groups of eight and learn more from them;
# "15 + 17 equals 32" and the token that ends it are 11 tokens, and nine of ten correct answers of
# the first steps end by then. With 1.5e-5 held-out accuracy hardly grows after step 12, with
# 1e-5 it does, and slow cores take 24 steps in five minutes (DEVLOG.md). Two micro-batches
# are faster than four, and as fast as one, which takes more memory. Nine of ten are truncated at
# the start and graded as they are.
_TASKS["arithmetic"] = dict(
    steps=24,
    prompts_per_step=16,
    samples_per_prompt=4,
    response_tokens=12,
    mask_truncated=False,
    micro_batches=2,
    learning_rate=1e-5,
    warmup_updates=0,
    evaluate_every=24,
    evaluation_prompts=1000,
    evaluation_samples=16,
)
# Two updates per batch: in the first one every ratio is 1, and clips and penalties are idle.
_TASKS["arithmetic:hard"] = _TASKS["arithmetic"] | dict(
    steps=100,
    prompts_per_step=8,
    samples_per_prompt=8,
    response_tokens=16,
    minibatches=2,
    evaluate_every=20,
    evaluation_prompts=64,
)

# Without a KL no reference is stored in memory, as in all reasoning recipes since DAPO; the mean
# over all tokens is the one that the other methods use, so differences are those of the method.
_EVERYWHERE: dict[str, dict[str, Any]] = {
    "grpo": dict(hyperparameters=("kl_coefficient=0", "aggregation=token_mean")),
    "entropy_bonus": dict(hyperparameters=("kl_coefficient=0",)),
    "gdro": dict(hyperparameters=("kl_coefficient=0",)),
    # The group size is the method; four prompts make 2,048 rows, sampled a quarter at a time.
    "brorl": dict(prompts_per_step=4, samples_per_prompt=512, sampling_batches=4),
    "intervention_training": dict(epochs=4),
    # Its authors sample up to ten batches a step. Its penalty of truncated rollouts is learned.
    "dapo": dict(hyperparameters=("max_rounds=3",), mask_truncated=False),
}
_METHODS: dict[tuple[str, str], dict[str, Any]] = {
    ("brackets", "clip_cov"): dict(hyperparameters=("fraction=0.0075",)),
    ("brackets", "kl_cov"): dict(hyperparameters=("fraction=0.02",), epochs=2),
    # Being correct, and half of it for an answer that the policy ended: with a fifth, one of two
    # seeds ended none (DEVLOG.md).
    ("arithmetic", "gdpo"): dict(hyperparameters=("weights=1,0.5",)),
    ("arithmetic:hard", "clip_cov"): dict(hyperparameters=("fraction=0.0075",)),
    ("arithmetic:hard", "kl_cov"): dict(hyperparameters=("fraction=0.02",)),
    # The first batches have no group of mixed rewards; the bonus is then all of the gradient, and
    # Adam, which knows no larger one yet, would make full steps of it.
    ("arithmetic:hard", "entropy_bonus"): dict(warmup_updates=20),
    ("brackets", "entropy_bonus"): dict(
        hyperparameters=("entropy_coefficient=0.05", "kl_coefficient=0")
    ),
    # Two attempts fill the budget exactly: a penalty for length would punish the second one.
    ("brackets", "dapo"): dict(hyperparameters=("overlong_factor=0", "max_rounds=3")),
    # Made for one update a batch.
    ("brackets", "simko"): dict(minibatches=1),
    ("arithmetic:hard", "simko"): dict(minibatches=1),
    # The vocabulary has 14 tokens.
    ("brackets", "capo_curvature"): dict(hyperparameters=("top_k=5",)),
    # A quota of tokens, as Clip-Cov's.
    ("brackets", "entropy_dynamics"): dict(hyperparameters=("max_fraction=0.00375",)),
    # The mean log ratio of some 20 tokens varies some 16 times as much as that of 5,000.
    ("brackets", "gspo"): dict(hyperparameters=("clip_low=0.005", "clip_high=0.0065")),
    ("arithmetic:hard", "gspo"): dict(hyperparameters=("clip_low=0.005", "clip_high=0.0065")),
    # Answers are a twentieth of the window.
    ("brackets", "verl_effective_rank"): dict(hyperparameters=("stride=2", "window=24")),
}


def preset(task: str, method: str) -> TrainConfig:
    """Returns the settings with which a command line for this task and method starts.

    Examples:
      >>> from rlvr_jax.runs import preset
      >>> config = preset("brackets", "clip_cov").replace(steps=60)
      >>> config.method, config.steps, config.preset
      ('clip_cov', 60, 'brackets/clip_cov')

    Their `preset` is its name: "brackets/grpo" has settings for the task and others for the method.
    Options in the name of a task are ignored: `brackets:train=512` has the settings of `brackets`.
    """
    plain = without_options(task)
    known = _ALIKE.get(plain, plain)
    of_task = _TASKS.get(known, {})
    of_method = {**_EVERYWHERE.get(method, {}), **_METHODS.get((known, method), {})}
    name = "/".join([known] * bool(of_task) + [method] * bool(of_method))
    settings = {**of_task, **of_method, "preset": name}
    return TrainConfig.of(task=task, method=method, **settings)
