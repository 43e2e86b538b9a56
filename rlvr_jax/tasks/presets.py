"""Settings of a run that differ by task: those with which a command line for the task starts."""

from collections.abc import Mapping
from typing import Any

from rlvr_jax.tasks.loading import without_options

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
_TASKS["option_sums"] = _TASKS["brackets"]
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


def preset_of(task: str) -> tuple[str, Mapping[str, Any]]:
    """Returns the task whose settings these are, and the settings; empty if it has none.

    Options in the name of a task are ignored: `brackets:train=512` has the settings of `brackets`.
    """
    plain = without_options(task)
    known = _ALIKE.get(plain, plain)
    return known, _TASKS.get(known, {})
